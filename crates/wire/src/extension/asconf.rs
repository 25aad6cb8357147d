//! ASCONF and its parameters (RFC 5061 §4.1.1, §4.2).

use std::net::IpAddr;

use bytes::{Buf, Bytes, BytesMut};

use super::{chunk_len, put_chunk};
use crate::chunk::kind as chunk_kind;
use crate::chunk::{DecodeError, fixed_part};
use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::packet::RawChunk;
use crate::parameter::{Parameter, Parameters, kind};
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, TlvList};

/// Number of value bytes before the address parameter.
const FIXED: usize = 4;

/// Changes the addresses of the sender.
///
/// RFC 5061 §4.1.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 193  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Sequence Number                        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Address Parameter                       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       ASCONF Parameter 1                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       ASCONF Parameter N                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asconf {
    /// Serial number of the request.
    pub serial: u32,
    /// The address parameter: an address of the sender that the receiver can use to find the
    /// association.
    pub address: IpAddr,
    /// Requested changes in their order, decoded during iteration.
    pub parameters: TlvList<AsconfParameter>,
}

impl Asconf {
    /// Decodes a chunk of type ASCONF.
    ///
    /// # Errors
    /// The chunk is shorter than its serial number, or no address parameter follows.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let serial = u32::from_be_bytes(*fixed_part::<FIXED>(&raw)?);
        let mut rest = raw.into_value().slice(FIXED..);
        let (address, length) = leading_address(&rest).ok_or(DecodeError::NoAddress)?;
        rest.advance(length);
        Ok(Self {
            serial,
            address,
            parameters: TlvList::from_bytes(rest),
        })
    }

    fn fixed(&self) -> BytesMut {
        let mut fixed = BytesMut::with_capacity(FIXED + 20);
        fixed.extend_from_slice(&self.serial.to_be_bytes());
        Parameter::address(self.address).encode(&mut fixed);
        fixed
    }
}

impl Encode for Asconf {
    fn encoded_len(&self) -> usize {
        let address = Parameter::address(self.address).encoded_len();
        chunk_len(FIXED + address, self.parameters.as_bytes())
    }

    fn encode(&self, out: &mut BytesMut) {
        let rest = self.parameters.as_bytes();
        put_chunk(chunk_kind::ASCONF, &self.fixed(), rest, out);
    }
}

/// The address parameter at the beginning of `bytes`, and its length.
fn leading_address(bytes: &Bytes) -> Option<(IpAddr, usize)> {
    let address = match Parameters::from_bytes(bytes.clone()).iter().next()? {
        Ok(Parameter::Ipv4Address(address)) => IpAddr::from(address),
        Ok(Parameter::Ipv6Address(address)) => IpAddr::from(address),
        _ => return None,
    };
    Some((address, Parameter::address(address).encoded_len()))
}

/// Type of request in an ASCONF parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsconfRequest {
    /// Add the address (RFC 5061 §4.2.1). The unspecified address stands for the source of the
    /// packet (§4.2.1).
    Add,
    /// Delete the address (RFC 5061 §4.2.2). The unspecified address stands for all addresses
    /// except the source of the packet (§4.2.2).
    Delete,
    /// The receiver should use the address as its primary destination (RFC 5061 §4.2.4).
    SetPrimary,
}

impl AsconfRequest {
    const fn kind(self) -> u16 {
        match self {
            Self::Add => kind::ADD_IP_ADDRESS,
            Self::Delete => kind::DELETE_IP_ADDRESS,
            Self::SetPrimary => kind::SET_PRIMARY_ADDRESS,
        }
    }

    fn of(kind: u16) -> Option<Self> {
        [Self::Add, Self::Delete, Self::SetPrimary]
            .into_iter()
            .find(|request| request.kind() == kind)
    }
}

/// A parameter of an ASCONF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsconfParameter {
    /// A request about an address.
    Request {
        /// Type of the request.
        request: AsconfRequest,
        /// Identifier chosen by the sender; the response repeats it.
        correlation_id: u32,
        /// The address.
        address: IpAddr,
    },
    /// A parameter whose type is not known.
    Unknown(Tlv),
}

impl AsconfParameter {
    /// Parameter type.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Request { request, .. } => request.kind(),
            Self::Unknown(tlv) => tlv.kind,
        }
    }
}

/// Correlation id and address in the value of `tlv`. The value must not contain anything else.
pub(super) fn correlated_address(tlv: &Tlv) -> Result<(u32, IpAddr), TlvError> {
    let (kind, length) = (tlv.kind, tlv.whole().len());
    let mut rest = tlv.clone().into_value();
    let bad = TlvError::BadLength { kind, length };
    let correlation_id = rest.try_get_u32().map_err(|_| bad)?;
    let (address, taken) = leading_address(&rest).ok_or(TlvError::NoAddress { kind })?;
    if taken == rest.len() {
        Ok((correlation_id, address))
    } else {
        Err(bad)
    }
}

/// Length of a parameter that contains this address, bytes. The parameter needs no padding.
pub(super) fn correlated_len(address: IpAddr) -> usize {
    padded(HEADER + 4 + Parameter::address(address).encoded_len())
}

/// Encodes a parameter that contains an address.
pub(super) fn put_correlated(kind: u16, correlation_id: u32, address: IpAddr, out: &mut BytesMut) {
    let length = correlated_len(address);
    out.extend_from_slice(&tlv_header(kind, length));
    out.extend_from_slice(&correlation_id.to_be_bytes());
    Parameter::address(address).encode(out);
    put_padding(out, length);
}

impl Encode for AsconfParameter {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Request { address, .. } => correlated_len(*address),
            Self::Unknown(tlv) => tlv.encoded_len(),
        }
    }

    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Request {
                request,
                correlation_id,
                address,
            } => put_correlated(request.kind(), *correlation_id, *address, out),
            Self::Unknown(tlv) => tlv.encode(out),
        }
    }
}

impl TlvItem for AsconfParameter {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let Some(request) = AsconfRequest::of(tlv.kind) else {
            return Ok(Self::Unknown(tlv));
        };
        let (correlation_id, address) = correlated_address(&tlv)?;
        Ok(Self::Request {
            request,
            correlation_id,
            address,
        })
    }
}
