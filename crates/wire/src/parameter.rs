//! Parameters of INIT, INIT ACK, HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.2.1, §3.3.3.1, §3.3.5;
//! RFC 3758 §3.1; RFC 5061 §4.2.7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::{Bytes, BytesMut};

use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, TlvList, U16List};
use crate::unrecognized::UnknownAction;

/// Parameter types.
pub mod kind {
    /// Heartbeat Info.
    pub const HEARTBEAT_INFO: u16 = 1;
    /// IPv4 Address.
    pub const IPV4_ADDRESS: u16 = 5;
    /// IPv6 Address.
    pub const IPV6_ADDRESS: u16 = 6;
    /// State Cookie.
    pub const STATE_COOKIE: u16 = 7;
    /// Unrecognized Parameter.
    pub const UNRECOGNIZED_PARAMETER: u16 = 8;
    /// Cookie Preservative.
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    /// Host Name Address (deprecated).
    pub const HOST_NAME_ADDRESS: u16 = 11;
    /// Supported Address Types.
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    /// Outgoing SSN Reset Request (RFC 6525 §4.1).
    pub const OUTGOING_SSN_RESET: u16 = 13;
    /// Incoming SSN Reset Request (RFC 6525 §4.2).
    pub const INCOMING_SSN_RESET: u16 = 14;
    /// SSN/TSN Reset Request (RFC 6525 §4.3).
    pub const SSN_TSN_RESET: u16 = 15;
    /// Re-configuration Response (RFC 6525 §4.4).
    pub const RE_CONFIG_RESPONSE: u16 = 16;
    /// Add Outgoing Streams Request (RFC 6525 §4.5).
    pub const ADD_OUTGOING_STREAMS: u16 = 17;
    /// Add Incoming Streams Request (RFC 6525 §4.6).
    pub const ADD_INCOMING_STREAMS: u16 = 18;
    /// Reserved for ECN Capable.
    pub const ECN_CAPABLE: u16 = 0x8000;
    /// Zero Checksum Acceptable (RFC 9653 §4).
    pub const ZERO_CHECKSUM_ACCEPTABLE: u16 = 0x8001;
    /// Random (RFC 4895 §3.1).
    pub const RANDOM: u16 = 0x8002;
    /// Chunk List (RFC 4895 §3.2).
    pub const CHUNKS: u16 = 0x8003;
    /// Requested HMAC Algorithm (RFC 4895 §3.3).
    pub const HMAC_ALGO: u16 = 0x8004;
    /// DTLS Key Management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1).
    pub const DTLS_KEY_MANAGEMENT: u16 = 0x8006;
    /// Supported Extensions.
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    /// RSCTP. The two high bits are 10, as in Supported Extensions. A peer that does not know the
    /// parameter therefore skips it without a report and works without RSCTP (RFC 9260 §3.2.1).
    /// IANA has not assigned the number. The value of the parameter distinguishes it from other
    /// uses of the number.
    pub const RSCTP: u16 = 0xBF52;
    /// Forward-TSN-Supported.
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xC000;
    /// Add IP Address (RFC 5061 §4.2.1).
    pub const ADD_IP_ADDRESS: u16 = 0xC001;
    /// Delete IP Address (RFC 5061 §4.2.2).
    pub const DELETE_IP_ADDRESS: u16 = 0xC002;
    /// Error Cause Indication (RFC 5061 §4.2.3).
    pub const ERROR_CAUSE_INDICATION: u16 = 0xC003;
    /// Set Primary IP Address (RFC 5061 §4.2.4).
    pub const SET_PRIMARY_ADDRESS: u16 = 0xC004;
    /// Success Indication (RFC 5061 §4.2.5).
    pub const SUCCESS_INDICATION: u16 = 0xC005;
    /// Adaptation Layer Indication (RFC 5061 §4.2.6).
    pub const ADAPTATION_LAYER: u16 = 0xC006;
}

/// Value of [`Parameter::Rsctp`]. It stands for receiver bandwidth estimation, format 1.
pub const RSCTP_VALUE: &[u8] = b"RBE1";

/// A list of parameters.
pub type Parameters = TlvList<Parameter>;

/// A parameter of INIT or INIT ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// An address of the sender (RFC 9260 §3.3.2.1.1).
    Ipv4Address(Ipv4Addr),
    /// An address of the sender (RFC 9260 §3.3.2.1.2).
    Ipv6Address(Ipv6Addr),
    /// The State Cookie, which the receiver must return unchanged (RFC 9260 §3.3.3.1.1).
    StateCookie(Bytes),
    /// A parameter of the INIT, with its header, that the sender of this INIT ACK did not recognize
    /// (RFC 9260 §3.3.3.1.2).
    UnrecognizedParameter(Bytes),
    /// Requests a cookie whose lifetime is longer by this number of milliseconds (RFC 9260
    /// §3.3.2.1.3).
    CookiePreservative(u32),
    /// A host name. It must not be sent. A receiver of a host name aborts with Unresolvable Address
    /// (RFC 9260 §3.3.2.1.4).
    HostNameAddress(Bytes),
    /// Address types that the sender can use, as parameter types (RFC 9260 §3.3.2.1.5).
    SupportedAddressTypes(U16List),
    /// The sender supports ECN (RFC 4960 Appendix A; RFC 9260 §3.3.2.1 keeps the type reserved).
    EcnCapable,
    /// The sender supports FORWARD TSN (RFC 3758 §3.1).
    ForwardTsnSupported,
    /// Chunk types of the extensions that the sender supports (RFC 5061 §4.2.7).
    SupportedExtensions(Bytes),
    /// The sender supports RSCTP (Ho and Cheng 2008): see [`crate::rsctp`].
    Rsctp,
    /// Data of the sender of a HEARTBEAT. The receiver must return it unchanged (RFC 9260 §3.3.5).
    HeartbeatInfo(Bytes),
    /// Any other type; [`UnknownAction`] defines how it should be handled. This includes the
    /// parameters of extensions. An endpoint that supports an extension should decode them as
    /// [`InitParameter`](crate::extension::InitParameter). For all other endpoints they are
    /// unknown.
    Unknown(Tlv),
}

impl Parameter {
    /// The address parameter for `address`.
    pub const fn address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::Ipv4Address(v4),
            IpAddr::V6(v6) => Self::Ipv6Address(v6),
        }
    }

    /// Parameter type.
    pub const fn kind(&self) -> u16 {
        match self {
            Self::HeartbeatInfo(_) => kind::HEARTBEAT_INFO,
            Self::Ipv4Address(_) => kind::IPV4_ADDRESS,
            Self::Ipv6Address(_) => kind::IPV6_ADDRESS,
            Self::StateCookie(_) => kind::STATE_COOKIE,
            Self::UnrecognizedParameter(_) => kind::UNRECOGNIZED_PARAMETER,
            Self::CookiePreservative(_) => kind::COOKIE_PRESERVATIVE,
            Self::HostNameAddress(_) => kind::HOST_NAME_ADDRESS,
            Self::SupportedAddressTypes(_) => kind::SUPPORTED_ADDRESS_TYPES,
            Self::EcnCapable => kind::ECN_CAPABLE,
            Self::SupportedExtensions(_) => kind::SUPPORTED_EXTENSIONS,
            Self::Rsctp => kind::RSCTP,
            Self::ForwardTsnSupported => kind::FORWARD_TSN_SUPPORTED,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    /// How the parameter must be handled if its type is not recognized. This applies to
    /// [`Parameter::Unknown`], and to known types in a chunk that does not define them.
    pub const fn action(&self) -> UnknownAction {
        UnknownAction::of_parameter(self.kind())
    }

    fn value_len(&self) -> usize {
        match self {
            Self::EcnCapable | Self::ForwardTsnSupported => 0,
            Self::Ipv4Address(_) | Self::CookiePreservative(_) => 4,
            Self::Ipv6Address(_) => 16,
            Self::Rsctp => RSCTP_VALUE.len(),
            Self::StateCookie(value)
            | Self::UnrecognizedParameter(value)
            | Self::HostNameAddress(value)
            | Self::SupportedExtensions(value)
            | Self::HeartbeatInfo(value) => value.len(),
            Self::SupportedAddressTypes(list) => list.as_bytes().len(),
            Self::Unknown(tlv) => tlv.value().len(),
        }
    }
}

impl Encode for Parameter {
    fn encoded_len(&self) -> usize {
        padded(HEADER + self.value_len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = HEADER + self.value_len();
        out.extend_from_slice(&tlv_header(self.kind(), length));
        match self {
            Self::EcnCapable | Self::ForwardTsnSupported => {}
            Self::Rsctp => out.extend_from_slice(RSCTP_VALUE),
            Self::Ipv4Address(address) => out.extend_from_slice(&address.octets()),
            Self::Ipv6Address(address) => out.extend_from_slice(&address.octets()),
            Self::CookiePreservative(increment) => out.extend_from_slice(&increment.to_be_bytes()),
            Self::StateCookie(value)
            | Self::UnrecognizedParameter(value)
            | Self::HostNameAddress(value)
            | Self::SupportedExtensions(value)
            | Self::HeartbeatInfo(value) => out.extend_from_slice(value),
            Self::SupportedAddressTypes(list) => out.extend_from_slice(list.as_bytes()),
            Self::Unknown(tlv) => out.extend_from_slice(tlv.value()),
        }
        put_padding(out, length);
    }
}

impl TlvItem for Parameter {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let (kind, length) = (tlv.kind, tlv.whole().len());
        let bad = TlvError::BadLength { kind, length };
        Ok(match kind {
            kind::HEARTBEAT_INFO => Self::HeartbeatInfo(tlv.into_value()),
            kind::IPV4_ADDRESS => Self::Ipv4Address(Ipv4Addr::from(exactly::<4>(&tlv)?)),
            kind::IPV6_ADDRESS => Self::Ipv6Address(Ipv6Addr::from(exactly::<16>(&tlv)?)),
            kind::STATE_COOKIE => Self::StateCookie(tlv.into_value()),
            kind::UNRECOGNIZED_PARAMETER => Self::UnrecognizedParameter(tlv.into_value()),
            kind::COOKIE_PRESERVATIVE => {
                Self::CookiePreservative(u32::from_be_bytes(exactly(&tlv)?))
            }
            kind::HOST_NAME_ADDRESS => Self::HostNameAddress(tlv.into_value()),
            kind::SUPPORTED_ADDRESS_TYPES => {
                Self::SupportedAddressTypes(U16List::from_bytes(tlv.into_value()).ok_or(bad)?)
            }
            kind::ECN_CAPABLE => exactly::<0>(&tlv).map(|_| Self::EcnCapable)?,
            kind::SUPPORTED_EXTENSIONS => Self::SupportedExtensions(tlv.into_value()),
            // A parameter of this type with another value is not RSCTP, but another use of the type
            // number.
            kind::RSCTP if tlv.value() == RSCTP_VALUE => Self::Rsctp,
            kind::FORWARD_TSN_SUPPORTED => exactly::<0>(&tlv).map(|_| Self::ForwardTsnSupported)?,
            _ => Self::Unknown(tlv),
        })
    }
}

/// Returns the value, which must have `N` bytes.
pub(crate) fn exactly<const N: usize>(tlv: &Tlv) -> Result<[u8; N], TlvError> {
    tlv.value().try_into().map_err(|_| TlvError::BadLength {
        kind: tlv.kind,
        length: tlv.whole().len(),
    })
}
