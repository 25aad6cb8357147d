//! Error causes of the extensions (RFC 5061 §4.3, RFC 4895 §4).

use bytes::{Bytes, BytesMut};

use crate::cause::code;
use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::parameter::exactly;
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem};

/// A cause of an extension; comes as [`Cause::Unknown`](crate::Cause::Unknown) of a list of causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionCause {
    /// The last address cannot be taken away (RFC 5061 §4.3.1).
    DeleteLastAddress {
        /// The parameter that asked for it, whole.
        parameter: Bytes,
    },
    /// There is no room for the address (RFC 5061 §4.3.2).
    ResourceShortage {
        /// The parameter that asked for it, whole.
        parameter: Bytes,
    },
    /// The address that the request came from cannot be taken away (RFC 5061 §4.3.3).
    DeleteSourceAddress {
        /// The parameter that asked for it, whole.
        parameter: Bytes,
    },
    /// An ASCONF-ACK came that answers nothing that was asked (RFC 5061 §4.3.4).
    IllegalAsconfAck,
    /// The receiver's policy forbids the change (RFC 5061 §4.3.5).
    NoAuthorization {
        /// The parameter that asked for it, whole.
        parameter: Bytes,
    },
    /// An AUTH used an algorithm that was not offered (RFC 4895 §4).
    UnsupportedHmac {
        /// Its identifier.
        hmac_id: u16,
    },
    /// A cause that is not known here.
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
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    /// Gives `take` the value.
    fn with_value<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::DeleteLastAddress { parameter }
            | Self::ResourceShortage { parameter }
            | Self::DeleteSourceAddress { parameter }
            | Self::NoAuthorization { parameter } => take(parameter),
            Self::IllegalAsconfAck => take(&[]),
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
            code::ILLEGAL_ASCONF_ACK => exactly::<0>(&tlv).map(|_| Self::IllegalAsconfAck)?,
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
