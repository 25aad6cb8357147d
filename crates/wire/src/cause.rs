//! Error causes of ABORT and ERROR (RFC 9260 §3.3.10).

use bytes::{Buf, Bytes, BytesMut};

use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::parameter::{Parameters, exactly};
use crate::serial::Tsn;
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, TlvList, U16List};

/// Generates the cause codes and their names from one list. An entry has a constant, a code, the
/// name in the RFC, and an optional clause for the documentation.
macro_rules! causes {
    ($($constant:ident = $code:literal, $name:literal $(, $clause:literal)?;)+) => {
        /// Cause codes.
        pub mod code {
            $(#[doc = concat!($name, $(" (", $clause, ")",)? ".")] pub const $constant: u16 = $code;)+
        }

        /// Name of the cause with this code, as in its RFC; `None` if the code is not known.
        pub fn name(code: u16) -> Option<&'static str> {
            match code {
                $(code::$constant => Some($name),)+
                _ => None,
            }
        }
    };
}

causes! {
    INVALID_STREAM_IDENTIFIER = 1, "Invalid Stream Identifier";
    MISSING_MANDATORY_PARAMETER = 2, "Missing Mandatory Parameter";
    STALE_COOKIE = 3, "Stale Cookie";
    OUT_OF_RESOURCE = 4, "Out of Resource";
    UNRESOLVABLE_ADDRESS = 5, "Unresolvable Address";
    UNRECOGNIZED_CHUNK_TYPE = 6, "Unrecognized Chunk Type";
    INVALID_MANDATORY_PARAMETER = 7, "Invalid Mandatory Parameter";
    UNRECOGNIZED_PARAMETERS = 8, "Unrecognized Parameters";
    NO_USER_DATA = 9, "No User Data";
    COOKIE_RECEIVED_WHILE_SHUTTING_DOWN = 10, "Cookie Received While Shutting Down";
    RESTART_WITH_NEW_ADDRESSES = 11, "Restart of an Association with New Addresses";
    USER_INITIATED_ABORT = 12, "User-Initiated Abort";
    PROTOCOL_VIOLATION = 13, "Protocol Violation";
    RESTART_WITH_NEW_UDP_PORT = 14, "Restart of an Association with New Encapsulation Port";
    MISSING_DTLS_CHUNK_SUPPORT = 100, "Missing DTLS Chunk Support", "draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.1";
    NO_COMMON_DTLS_KEY_MANAGEMENT = 101, "No Common DTLS Key Management Method", "draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.2";
    DTLS_TIE_BREAKER_COLLISION = 102, "DTLS Key Management Tie Breaker Collision", "draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.3";
    INCOMPATIBLE_DTLS_ROLES = 103, "Incompatible DTLS Key Management Roles", "draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.4";
    DELETE_LAST_ADDRESS = 0x00A0, "Request to Delete Last Remaining IP Address", "RFC 5061 §4.3.1";
    RESOURCE_SHORTAGE = 0x00A1, "Operation Refused Due to Resource Shortage", "RFC 5061 §4.3.2";
    DELETE_SOURCE_ADDRESS = 0x00A2, "Request to Delete Source IP Address", "RFC 5061 §4.3.3";
    ILLEGAL_ASCONF_ACK = 0x00A3, "Association Aborted Due to Illegal ASCONF-ACK", "RFC 5061 §4.3.4";
    NO_AUTHORIZATION = 0x00A4, "Request Refused - No Authorization", "RFC 5061 §4.3.5";
    UNSUPPORTED_HMAC = 0x0105, "Unsupported HMAC Identifier", "RFC 4895 §4";
}

/// A list of causes.
pub type Causes = TlvList<Cause>;

/// An error cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// DATA arrived for a stream that does not exist (RFC 9260 §3.3.10.1).
    InvalidStreamIdentifier {
        /// Identifier of that stream.
        stream_id: u16,
    },
    /// Parameters of these types are missing in an INIT or INIT ACK (RFC 9260 §3.3.10.2).
    MissingMandatoryParameter {
        /// Types of the missing parameters.
        kinds: U16List,
    },
    /// A cookie arrived after its lifetime (RFC 9260 §3.3.10.3).
    StaleCookie {
        /// Time since the cookie expired, microseconds; 0 if the sender does not report it.
        measure_of_staleness: u32,
    },
    /// The sender is out of resources (RFC 9260 §3.3.10.4).
    OutOfResource,
    /// The receiver has sent an address that cannot be used (RFC 9260 §3.3.10.5).
    UnresolvableAddress {
        /// The address parameter with its header.
        parameter: Bytes,
    },
    /// The type of a chunk was not recognized, and the type requests a report (RFC 9260 §3.3.10.6).
    UnrecognizedChunkType {
        /// The chunk with its header.
        chunk: Bytes,
    },
    /// A mandatory parameter has an invalid value (RFC 9260 §3.3.10.7).
    InvalidMandatoryParameter,
    /// Parameters of an INIT ACK were not recognized, and their types request a report (RFC 9260
    /// §3.3.10.8).
    UnrecognizedParameters {
        /// The unrecognized parameters.
        parameters: Parameters,
    },
    /// A DATA chunk had no user data (RFC 9260 §3.3.10.9).
    NoUserData {
        /// TSN of that chunk.
        tsn: Tsn,
    },
    /// A COOKIE ECHO arrived in SHUTDOWN-ACK-SENT (RFC 9260 §3.3.10.10).
    CookieReceivedWhileShuttingDown,
    /// A restart tried to add addresses (RFC 9260 §3.3.10.11).
    RestartWithNewAddresses {
        /// The addresses that would be added.
        addresses: Parameters,
    },
    /// The user has aborted the association (RFC 9260 §3.3.10.12).
    UserInitiatedAbort {
        /// Reason that the user gave.
        reason: Bytes,
    },
    /// The peer violated the protocol in a way that no other cause describes (RFC 9260 §3.3.10.13).
    ProtocolViolation {
        /// Additional information, text or binary.
        information: Bytes,
    },
    /// A restart came from another UDP port (draft-tuexen-tsvwg-sctp-udp-encaps-cons §3).
    RestartWithNewUdpPort {
        /// UDP port that the association uses.
        current: u16,
        /// UDP port from which the INIT was sent.
        new: u16,
    },
    /// A cause whose code is not known.
    Unknown(Tlv),
}

impl Cause {
    /// The cause code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::InvalidStreamIdentifier { .. } => code::INVALID_STREAM_IDENTIFIER,
            Self::MissingMandatoryParameter { .. } => code::MISSING_MANDATORY_PARAMETER,
            Self::StaleCookie { .. } => code::STALE_COOKIE,
            Self::OutOfResource => code::OUT_OF_RESOURCE,
            Self::UnresolvableAddress { .. } => code::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunkType { .. } => code::UNRECOGNIZED_CHUNK_TYPE,
            Self::InvalidMandatoryParameter => code::INVALID_MANDATORY_PARAMETER,
            Self::UnrecognizedParameters { .. } => code::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData { .. } => code::NO_USER_DATA,
            Self::CookieReceivedWhileShuttingDown => code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN,
            Self::RestartWithNewAddresses { .. } => code::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort { .. } => code::USER_INITIATED_ABORT,
            Self::ProtocolViolation { .. } => code::PROTOCOL_VIOLATION,
            Self::RestartWithNewUdpPort { .. } => code::RESTART_WITH_NEW_UDP_PORT,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    /// Value of the cause: a fixed part of at most 4 bytes, the length of this part, and the
    /// variable part after it.
    fn value(&self) -> ([u8; 4], usize, &[u8]) {
        match self {
            Self::InvalidStreamIdentifier { stream_id } => {
                let [high, low] = stream_id.to_be_bytes();
                ([high, low, 0, 0], 4, &[])
            }
            Self::MissingMandatoryParameter { kinds } => {
                ((kinds.len() as u32).to_be_bytes(), 4, kinds.as_bytes())
            }
            Self::StaleCookie {
                measure_of_staleness,
            } => (measure_of_staleness.to_be_bytes(), 4, &[]),
            Self::NoUserData { tsn } => (tsn.0.to_be_bytes(), 4, &[]),
            Self::RestartWithNewUdpPort { current, new } => {
                let ports = u32::from(*current) << 16 | u32::from(*new);
                (ports.to_be_bytes(), 4, &[])
            }
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieReceivedWhileShuttingDown => ([0; 4], 0, &[]),
            Self::UnresolvableAddress { parameter: bytes }
            | Self::UnrecognizedChunkType { chunk: bytes }
            | Self::UserInitiatedAbort { reason: bytes }
            | Self::ProtocolViolation { information: bytes } => ([0; 4], 0, bytes),
            Self::UnrecognizedParameters { parameters: list }
            | Self::RestartWithNewAddresses { addresses: list } => ([0; 4], 0, list.as_bytes()),
            Self::Unknown(tlv) => ([0; 4], 0, tlv.value()),
        }
    }
}

impl Encode for Cause {
    fn encoded_len(&self) -> usize {
        let (_, fixed, variable) = self.value();
        padded(HEADER + fixed + variable.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let (bytes, fixed, variable) = self.value();
        let length = HEADER + fixed + variable.len();
        out.extend_from_slice(&tlv_header(self.code(), length));
        out.extend_from_slice(&bytes[..fixed]);
        out.extend_from_slice(variable);
        put_padding(out, length);
    }
}

impl TlvItem for Cause {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        Ok(match tlv.kind {
            code::INVALID_STREAM_IDENTIFIER => {
                let [high, low, _, _] = exactly(&tlv)?;
                Self::InvalidStreamIdentifier {
                    stream_id: u16::from_be_bytes([high, low]),
                }
            }
            code::MISSING_MANDATORY_PARAMETER => Self::MissingMandatoryParameter {
                kinds: missing_kinds(tlv)?,
            },
            code::STALE_COOKIE => Self::StaleCookie {
                measure_of_staleness: u32::from_be_bytes(exactly(&tlv)?),
            },
            code::OUT_OF_RESOURCE => exactly::<0>(&tlv).map(|_| Self::OutOfResource)?,
            code::UNRESOLVABLE_ADDRESS => Self::UnresolvableAddress {
                parameter: tlv.into_value(),
            },
            code::UNRECOGNIZED_CHUNK_TYPE => Self::UnrecognizedChunkType {
                chunk: tlv.into_value(),
            },
            code::INVALID_MANDATORY_PARAMETER => {
                exactly::<0>(&tlv).map(|_| Self::InvalidMandatoryParameter)?
            }
            code::UNRECOGNIZED_PARAMETERS => Self::UnrecognizedParameters {
                parameters: Parameters::from_bytes(tlv.into_value()),
            },
            code::NO_USER_DATA => Self::NoUserData {
                tsn: Tsn(u32::from_be_bytes(exactly(&tlv)?)),
            },
            code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN => {
                exactly::<0>(&tlv).map(|_| Self::CookieReceivedWhileShuttingDown)?
            }
            code::RESTART_WITH_NEW_ADDRESSES => Self::RestartWithNewAddresses {
                addresses: Parameters::from_bytes(tlv.into_value()),
            },
            code::USER_INITIATED_ABORT => Self::UserInitiatedAbort {
                reason: tlv.into_value(),
            },
            code::PROTOCOL_VIOLATION => Self::ProtocolViolation {
                information: tlv.into_value(),
            },
            code::RESTART_WITH_NEW_UDP_PORT => {
                let [a, b, c, d] = exactly(&tlv)?;
                Self::RestartWithNewUdpPort {
                    current: u16::from_be_bytes([a, b]),
                    new: u16::from_be_bytes([c, d]),
                }
            }
            _ => Self::Unknown(tlv),
        })
    }
}

/// Decodes the list in a Missing Mandatory Parameter cause. The number of entries that it states
/// must agree with the length of the cause.
fn missing_kinds(tlv: Tlv) -> Result<U16List, TlvError> {
    let bad = TlvError::BadLength {
        kind: tlv.kind,
        length: tlv.whole().len(),
    };
    let mut value = tlv.into_value();
    let count = value.try_get_u32().map_err(|_| bad)?;
    let kinds = U16List::from_bytes(value).ok_or(bad)?;
    if kinds.len() as u64 == u64::from(count) {
        Ok(kinds)
    } else {
        Err(bad)
    }
}
