//! Parameters of INIT and INIT ACK that offer an extension (RFC 4895 §3, RFC 5061 §4.2.4 and
//! §4.2.6, RFC 9653 §4, draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1).
//!
//! Two more are part of [`Parameter`](crate::Parameter): Forward-TSN-Supported and Supported
//! Extensions.

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};

use super::DtlsKeyManagement;
use super::asconf::{correlated_address, correlated_len, put_correlated};
use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::parameter::{exactly, kind};
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, U16List};

/// Identifiers of error detection methods that replace the checksum (RFC 9653 §8).
pub mod edmid {
    /// SCTP over DTLS (RFC 8261).
    pub const DTLS: u32 = 1;
}

/// A parameter that offers an extension. The decoder of the base protocol returns it as
/// [`Parameter::Unknown`](crate::Parameter::Unknown).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitParameter {
    /// The sender accepts packets whose checksum is zero (RFC 9653 §4).
    ZeroChecksumAcceptable {
        /// Identifier of the alternative error detection method, see [`edmid`].
        edmid: u32,
    },
    /// A random number from which keys of AUTH are derived (RFC 4895 §3.1). It should have 32
    /// bytes, but the decoder accepts any length.
    Random(Bytes),
    /// Types of the chunks that the sender accepts only if they are authenticated (RFC 4895 §3.2).
    Chunks(Bytes),
    /// HMAC identifiers in order of preference (RFC 4895 §3.3).
    HmacAlgo(U16List),
    /// The receiver should use this address as its primary destination (RFC 5061 §4.2.4).
    SetPrimary {
        /// Identifier chosen by the sender.
        correlation_id: u32,
        /// The address.
        address: IpAddr,
    },
    /// Adaptation layer indication, whose meaning the upper layer defines (RFC 5061 §4.2.6).
    AdaptationLayer(u32),
    /// Offer of the DTLS chunk and of key management methods (draft-ietf-tsvwg-sctp-dtls-chunk-04
    /// §4.1).
    DtlsKeyManagement(DtlsKeyManagement),
    /// A parameter whose type is not known.
    Unknown(Tlv),
}

impl InitParameter {
    /// Parameter type.
    pub fn kind(&self) -> u16 {
        match self {
            Self::ZeroChecksumAcceptable { .. } => kind::ZERO_CHECKSUM_ACCEPTABLE,
            Self::Random(_) => kind::RANDOM,
            Self::Chunks(_) => kind::CHUNKS,
            Self::HmacAlgo(_) => kind::HMAC_ALGO,
            Self::SetPrimary { .. } => kind::SET_PRIMARY_ADDRESS,
            Self::AdaptationLayer(_) => kind::ADAPTATION_LAYER,
            Self::DtlsKeyManagement(_) => kind::DTLS_KEY_MANAGEMENT,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    /// Converts this parameter to an entry of [`Parameters`](crate::Parameters).
    ///
    /// # Errors
    /// The list is longer than the maximum length.
    pub fn to_parameter(&self) -> Result<crate::Parameter, crate::Full> {
        let mut bytes = BytesMut::with_capacity(self.encoded_len());
        self.encode(&mut bytes);
        let length = HEADER + self.value_len();
        Tlv::new(self.kind(), &bytes[HEADER..length]).map(crate::Parameter::Unknown)
    }

    fn value_len(&self) -> usize {
        match self {
            Self::ZeroChecksumAcceptable { .. } | Self::AdaptationLayer(_) => 4,
            Self::Random(bytes) | Self::Chunks(bytes) => bytes.len(),
            Self::HmacAlgo(list) => list.as_bytes().len(),
            Self::SetPrimary { address, .. } => correlated_len(*address) - HEADER,
            Self::DtlsKeyManagement(parameter) => parameter.value_len(),
            Self::Unknown(tlv) => tlv.value().len(),
        }
    }

    fn put(&self, value: &[u8], out: &mut BytesMut) {
        let length = HEADER + value.len();
        out.extend_from_slice(&tlv_header(self.kind(), length));
        out.extend_from_slice(value);
        put_padding(out, length);
    }
}

impl Encode for InitParameter {
    fn encoded_len(&self) -> usize {
        padded(HEADER + self.value_len())
    }

    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::ZeroChecksumAcceptable { edmid: number } | Self::AdaptationLayer(number) => {
                self.put(&number.to_be_bytes(), out);
            }
            Self::Random(bytes) | Self::Chunks(bytes) => self.put(bytes, out),
            Self::HmacAlgo(list) => self.put(list.as_bytes(), out),
            Self::SetPrimary {
                correlation_id,
                address,
            } => put_correlated(self.kind(), *correlation_id, *address, out),
            Self::DtlsKeyManagement(parameter) => {
                let length = HEADER + parameter.value_len();
                out.extend_from_slice(&tlv_header(self.kind(), length));
                parameter.put_value(out);
                put_padding(out, length);
            }
            Self::Unknown(tlv) => self.put(tlv.value(), out),
        }
    }
}

impl TlvItem for InitParameter {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let (kind, length) = (tlv.kind, tlv.whole().len());
        Ok(match kind {
            kind::ZERO_CHECKSUM_ACCEPTABLE => Self::ZeroChecksumAcceptable {
                edmid: u32::from_be_bytes(exactly(&tlv)?),
            },
            kind::RANDOM => Self::Random(tlv.into_value()),
            kind::CHUNKS => Self::Chunks(tlv.into_value()),
            kind::HMAC_ALGO => Self::HmacAlgo(
                U16List::from_bytes(tlv.into_value())
                    .ok_or(TlvError::BadLength { kind, length })?,
            ),
            kind::SET_PRIMARY_ADDRESS => {
                let (correlation_id, address) = correlated_address(&tlv)?;
                Self::SetPrimary {
                    correlation_id,
                    address,
                }
            }
            kind::ADAPTATION_LAYER => Self::AdaptationLayer(u32::from_be_bytes(exactly(&tlv)?)),
            kind::DTLS_KEY_MANAGEMENT => Self::DtlsKeyManagement(DtlsKeyManagement::decode(tlv)?),
            _ => Self::Unknown(tlv),
        })
    }
}
