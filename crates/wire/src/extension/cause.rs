//! Error causes of the extensions (RFC 5061 §4.3, RFC 4895 §4, draft-ietf-tsvwg-sctp-dtls-chunk-04
//! §4.3).

use bytes::{Bytes, BytesMut};

use crate::cause::code;
use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::parameter::exactly;
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem};

/// An error cause of an extension. The decoder of the base protocol returns it as
/// [`Cause::Unknown`](crate::Cause::Unknown).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionCause {
    /// The last address cannot be deleted (RFC 5061 §4.3.1).
    DeleteLastAddress {
        /// The parameter that requested the deletion, with its header.
        parameter: Bytes,
    },
    /// The receiver has not enough resources for the address (RFC 5061 §4.3.2).
    ResourceShortage {
        /// The parameter that requested the change, with its header.
        parameter: Bytes,
    },
    /// The source address of the request cannot be deleted (RFC 5061 §4.3.3).
    DeleteSourceAddress {
        /// The parameter that requested the deletion, with its header.
        parameter: Bytes,
    },
    /// An ASCONF-ACK arrived that matches no outstanding ASCONF (RFC 5061 §4.3.4).
    IllegalAsconfAck,
    /// The policy of the receiver forbids the change (RFC 5061 §4.3.5).
    NoAuthorization {
        /// The parameter that requested the change, with its header.
        parameter: Bytes,
    },
    /// An AUTH used an algorithm that the receiver did not offer (RFC 4895 §4).
    UnsupportedHmac {
        /// Identifier of that algorithm.
        hmac_id: u16,
    },
    /// The DTLS chunk is required, but the peer did not offer it
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.1).
    MissingDtlsChunkSupport,
    /// The two ends have no key management method in common (draft-ietf-tsvwg-sctp-dtls-chunk-04
    /// §4.3.2).
    NoCommonDtlsKeyManagement,
    /// Both ends chose the same tie breaker (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.3).
    DtlsTieBreakerCollision,
    /// The key management roles do not complement each other
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.4).
    IncompatibleDtlsRoles,
    /// A cause whose code is not known.
    Unknown(Tlv),
}

impl ExtensionCause {
    /// The cause code.
    pub fn code(&self) -> u16 {
        match self {
            Self::DeleteLastAddress { .. } => code::DELETE_LAST_ADDRESS,
            Self::ResourceShortage { .. } => code::RESOURCE_SHORTAGE,
            Self::DeleteSourceAddress { .. } => code::DELETE_SOURCE_ADDRESS,
            Self::IllegalAsconfAck => code::ILLEGAL_ASCONF_ACK,
            Self::NoAuthorization { .. } => code::NO_AUTHORIZATION,
            Self::UnsupportedHmac { .. } => code::UNSUPPORTED_HMAC,
            Self::MissingDtlsChunkSupport => code::MISSING_DTLS_CHUNK_SUPPORT,
            Self::NoCommonDtlsKeyManagement => code::NO_COMMON_DTLS_KEY_MANAGEMENT,
            Self::DtlsTieBreakerCollision => code::DTLS_TIE_BREAKER_COLLISION,
            Self::IncompatibleDtlsRoles => code::INCOMPATIBLE_DTLS_ROLES,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    /// Calls `take` with the encoded value of the cause.
    fn with_value<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::DeleteLastAddress { parameter }
            | Self::ResourceShortage { parameter }
            | Self::DeleteSourceAddress { parameter }
            | Self::NoAuthorization { parameter } => take(parameter),
            Self::IllegalAsconfAck
            | Self::MissingDtlsChunkSupport
            | Self::NoCommonDtlsKeyManagement
            | Self::DtlsTieBreakerCollision
            | Self::IncompatibleDtlsRoles => take(&[]),
            Self::UnsupportedHmac { hmac_id } => take(&hmac_id.to_be_bytes()),
            Self::Unknown(tlv) => take(tlv.value()),
        }
    }
}

impl Encode for ExtensionCause {
    fn encoded_len(&self) -> usize {
        padded(HEADER + self.with_value(<[u8]>::len))
    }

    fn encode(&self, out: &mut BytesMut) {
        self.with_value(|value| {
            let length = HEADER + value.len();
            out.extend_from_slice(&tlv_header(self.code(), length));
            out.extend_from_slice(value);
            put_padding(out, length);
        });
    }
}

impl TlvItem for ExtensionCause {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        Ok(match tlv.kind {
            code::DELETE_LAST_ADDRESS => Self::DeleteLastAddress {
                parameter: tlv.into_value(),
            },
            code::RESOURCE_SHORTAGE => Self::ResourceShortage {
                parameter: tlv.into_value(),
            },
            code::DELETE_SOURCE_ADDRESS => Self::DeleteSourceAddress {
                parameter: tlv.into_value(),
            },
            code::ILLEGAL_ASCONF_ACK => bare(&tlv, Self::IllegalAsconfAck)?,
            code::MISSING_DTLS_CHUNK_SUPPORT => bare(&tlv, Self::MissingDtlsChunkSupport)?,
            code::NO_COMMON_DTLS_KEY_MANAGEMENT => bare(&tlv, Self::NoCommonDtlsKeyManagement)?,
            code::DTLS_TIE_BREAKER_COLLISION => bare(&tlv, Self::DtlsTieBreakerCollision)?,
            code::INCOMPATIBLE_DTLS_ROLES => bare(&tlv, Self::IncompatibleDtlsRoles)?,
            code::NO_AUTHORIZATION => Self::NoAuthorization {
                parameter: tlv.into_value(),
            },
            code::UNSUPPORTED_HMAC => Self::UnsupportedHmac {
                hmac_id: u16::from_be_bytes(exactly(&tlv)?),
            },
            _ => Self::Unknown(tlv),
        })
    }
}

/// Returns `cause`, which must have no value.
fn bare(tlv: &Tlv, cause: ExtensionCause) -> Result<ExtensionCause, TlvError> {
    exactly::<0>(tlv).map(|_| cause)
}
