//! ASCONF-ACK and its parameters (RFC 5061 §4.1.2, §4.2.3, §4.2.5).

use bytes::{Buf, BytesMut};

use super::{chunk_len, put_chunk};
use crate::cause::Causes;
use crate::chunk::kind as chunk_kind;
use crate::chunk::{DecodeError, fixed_part};
use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::packet::RawChunk;
use crate::parameter::{exactly, kind};
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, TlvList};

/// Number of value bytes before the parameters.
const FIXED: usize = 4;

/// Answers an ASCONF.
///
/// RFC 5061 §4.1.2:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 128  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Sequence Number                        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  ASCONF Parameter Response 1                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  ASCONF Parameter Response N                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsconfAck {
    /// Serial number of the ASCONF that is acknowledged.
    pub serial: u32,
    /// Results, decoded during iteration. A request without a response was successful (RFC 5061
    /// §4.2.5).
    pub parameters: TlvList<AsconfResponse>,
}

impl AsconfAck {
    /// Decodes a chunk of type ASCONF-ACK.
    ///
    /// # Errors
    /// The chunk is shorter than its serial number.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let serial = u32::from_be_bytes(*fixed_part::<FIXED>(&raw)?);
        let parameters = TlvList::from_bytes(raw.into_value().slice(FIXED..));
        Ok(Self { serial, parameters })
    }
}

impl Encode for AsconfAck {
    fn encoded_len(&self) -> usize {
        chunk_len(FIXED, self.parameters.as_bytes())
    }

    fn encode(&self, out: &mut BytesMut) {
        let serial = self.serial.to_be_bytes();
        put_chunk(
            chunk_kind::ASCONF_ACK,
            &serial,
            self.parameters.as_bytes(),
            out,
        );
    }
}

/// A parameter of an ASCONF-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsconfResponse {
    /// The request was successful (RFC 5061 §4.2.5).
    Success {
        /// Correlation id of the request.
        correlation_id: u32,
    },
    /// The request failed (RFC 5061 §4.2.3).
    Error {
        /// Correlation id of the request.
        correlation_id: u32,
        /// Reasons, decoded during iteration. The causes of RFC 5061 are
        /// [`ExtensionCause`](super::ExtensionCause).
        causes: Causes,
    },
    /// A parameter whose type is not known.
    Unknown(Tlv),
}

impl AsconfResponse {
    /// Parameter type.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Success { .. } => kind::SUCCESS_INDICATION,
            Self::Error { .. } => kind::ERROR_CAUSE_INDICATION,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Success { .. } => HEADER + 4,
            Self::Error { causes, .. } => HEADER + 4 + causes.as_bytes().len(),
            Self::Unknown(tlv) => tlv.whole().len(),
        }
    }
}

impl Encode for AsconfResponse {
    fn encoded_len(&self) -> usize {
        padded(self.length())
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&tlv_header(self.kind(), self.length()));
        match self {
            Self::Success { correlation_id } => {
                out.extend_from_slice(&correlation_id.to_be_bytes());
            }
            Self::Error {
                correlation_id,
                causes,
            } => {
                out.extend_from_slice(&correlation_id.to_be_bytes());
                out.extend_from_slice(causes.as_bytes());
            }
            Self::Unknown(tlv) => out.extend_from_slice(tlv.value()),
        }
        put_padding(out, self.length());
    }
}

impl TlvItem for AsconfResponse {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let (kind, length) = (tlv.kind, tlv.whole().len());
        Ok(match kind {
            kind::SUCCESS_INDICATION => Self::Success {
                correlation_id: u32::from_be_bytes(exactly(&tlv)?),
            },
            kind::ERROR_CAUSE_INDICATION => {
                let mut rest = tlv.into_value();
                let correlation_id = rest
                    .try_get_u32()
                    .map_err(|_| TlvError::BadLength { kind, length })?;
                Self::Error {
                    correlation_id,
                    causes: Causes::from_bytes(rest),
                }
            }
            _ => Self::Unknown(tlv),
        })
    }
}
