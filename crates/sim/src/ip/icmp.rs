//! ICMP errors of routers (RFC 792, RFC 1191, RFC 4443).

use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};

use super::HOP_LIMIT;
use super::checksum::sum;
use super::header::Header;

/// IP protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Maximum length of an error message with its IP header, bytes: 576 for ICMP (RFC 1812 §4.3.2.3),
/// and the minimum MTU of IPv6 for ICMPv6 (RFC 4443 §2.4 (c)).
const MAX_ERROR_V4: usize = 576;
const MAX_ERROR_V6: usize = 1280;
/// ICMP types of queries and their replies, in response to which an error may be sent. All other
/// types of ICMP are errors.
const QUERIES: &[u8] = &[0, 8, 9, 10, 13, 14, 15, 16, 17, 18, 42, 43];
/// First type of ICMPv6 that is not an error.
const FIRST_INFORMATION: u8 = 128;

/// Reason why a router drops a packet and sends an ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// The packet exceeds the MTU of the next link, in bytes.
    TooBig(usize),
    /// The router has no route to the destination.
    NoRoute,
    /// The hop limit was exceeded.
    HopLimit,
}

impl Complaint {
    /// Type, code, and the second word for version 4: destination unreachable (fragmentation
    /// needed, with the MTU of RFC 1191; net unreachable) and time exceeded.
    fn v4(self) -> (u8, u8, u32) {
        match self {
            Complaint::TooBig(mtu) => (3, 4, mtu.min(0xffff) as u32),
            Complaint::NoRoute => (3, 0, 0),
            Complaint::HopLimit => (11, 0, 0),
        }
    }

    /// Type, code, and the second word for version 6: packet too big, no route to destination, time
    /// exceeded.
    fn v6(self) -> (u8, u8, u32) {
        match self {
            Complaint::TooBig(mtu) => (2, 0, u32::try_from(mtu).unwrap_or(u32::MAX)),
            Complaint::NoRoute => (1, 0, 0),
            Complaint::HopLimit => (3, 0, 0),
        }
    }
}

/// The error that the router `from` sends to the source of `datagram`, as a whole datagram. Returns
/// `None` if no error may be sent, because the datagram is an error itself, is a fragment other
/// than the first, or has a source that is not a single host (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)).
pub(crate) fn complain(complaint: Complaint, datagram: &[u8], from: IpAddr) -> Option<Bytes> {
    let header = Header::read(datagram).ok()?;
    let to = header.source;
    if to.is_unspecified() || to.is_multicast() || is_error(&header, datagram) {
        return None;
    }
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (kind, code, word) = complaint.v4();
            let quoted = quote(datagram, MAX_ERROR_V4 - 28);
            let message = message(kind, code, word, quoted, 0);
            let mut out = BytesMut::with_capacity(20 + message.len());
            let total = (20 + message.len()) as u16;
            // Precedence 6, internetwork control (RFC 1812 §4.3.2.5).
            out.put_slice(&[0x45, 0xc0]);
            out.put_u16(total);
            out.put_slice(&[0, 0, 0, 0, HOP_LIMIT, ICMP, 0, 0]);
            out.put_slice(&from.octets());
            out.put_slice(&to.octets());
            let checksum = !sum(&out, 0);
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
            out.put_slice(&message);
            Some(out.freeze())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (kind, code, word) = complaint.v6();
            let quoted = quote(datagram, MAX_ERROR_V6 - 48);
            let len = 8 + quoted.len();
            // The pseudo header of RFC 8200 §8.1.
            let addresses = sum(&to.octets(), sum(&from.octets(), 0));
            let tail = [0, 0, (len >> 8) as u8, len as u8, 0, 0, 0, ICMP_V6];
            let message = message(kind, code, word, quoted, sum(&tail, addresses));
            let mut out = BytesMut::with_capacity(40 + len);
            out.put_slice(&[0x60, 0, 0, 0]);
            out.put_u16(len as u16);
            out.put_slice(&[ICMP_V6, HOP_LIMIT]);
            out.put_slice(&from.octets());
            out.put_slice(&to.octets());
            out.put_slice(&message);
            Some(out.freeze())
        }
        _ => None,
    }
}

fn quote(datagram: &[u8], at_most: usize) -> &[u8] {
    &datagram[..datagram.len().min(at_most)]
}

fn message(kind: u8, code: u8, word: u32, quoted: &[u8], pseudo: u16) -> BytesMut {
    let mut out = BytesMut::with_capacity(8 + quoted.len());
    out.put_slice(&[kind, code, 0, 0]);
    out.put_u32(word);
    out.put_slice(quoted);
    let checksum = !sum(&out, pseudo);
    out[2..4].copy_from_slice(&checksum.to_be_bytes());
    out
}

/// Whether the datagram is an ICMP error, to which no error may be sent in reply.
fn is_error(header: &Header, datagram: &[u8]) -> bool {
    let kind = datagram.get(header.len).copied();
    match header.protocol {
        ICMP if header.source.is_ipv4() => {
            offset_v4(datagram) != 0 || kind.is_none_or(|kind| !QUERIES.contains(&kind))
        }
        ICMP_V6 => kind.is_none_or(|kind| kind < FIRST_INFORMATION),
        _ => header.source.is_ipv4() && offset_v4(datagram) != 0,
    }
}

/// Fragment offset of an IPv4 datagram, in units of 8 bytes.
fn offset_v4(datagram: &[u8]) -> u16 {
    let field = datagram
        .get(6..8)
        .and_then(|field| field.first_chunk::<2>());
    field.map_or(0, |&field| u16::from_be_bytes(field) & 0x1fff)
}
