//! Parser for ICMP messages and the packets they quote (RFC 9260 §10, RFC 6951 §5.5).
//! [`Endpoint::handle_icmp`](crate::Endpoint::handle_icmp) applies an ICMP message to its
//! association.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_wire::chunk::kind;

const SCTP: u8 = 132;
const UDP: u8 = 17;
/// Maximum number of IPv6 extension headers parsed in a quoted packet, which is more than this
/// stack ever sends.
const MAX_EXTENSIONS: usize = 8;

/// ICMP message without its IP header. The driver or the operating system should verify its
/// checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp<'a> {
    /// Whether the message is ICMPv6 (RFC 4443). Otherwise it is ICMPv4 (RFC 792).
    pub v6: bool,
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Next-hop MTU in bytes in Packet Too Big and Fragmentation Needed messages; meaningless in
    /// other messages.
    pub mtu: u32,
    /// Quoted packet, starting at its IP header; may be truncated.
    pub quoted: &'a [u8],
}

/// Meaning of an ICMP message for SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpError {
    /// The message is ignored (RFC 9260 §10, ICMP1, ICMP2 and ICMP4).
    Nothing,
    /// Packet too big: maximum size of an IP packet in bytes, including its header (ICMP7).
    TooBig(u32),
    /// The peer's host does not support SCTP (ICMP8).
    NoProtocol,
    /// The UDP port is closed; ignored without UDP encapsulation (ICMP3, RFC 6951 §5.5).
    NoPort,
    /// The address is currently unreachable (ICMP9).
    Unreachable,
}

impl<'a> Icmp<'a> {
    /// Parses a message, starting at its type; `None` if it is shorter than a header.
    pub fn read(v6: bool, message: &'a [u8]) -> Option<Self> {
        let (header, quoted) = message.split_first_chunk::<8>()?;
        let mtu = if v6 {
            u32::from_be_bytes([header[4], header[5], header[6], header[7]])
        } else {
            u16::from_be_bytes([header[6], header[7]]).into()
        };
        Some(Self {
            v6,
            kind: header[0],
            code: header[1],
            mtu,
            quoted,
        })
    }

    /// SCTP source port of the quoted packet; `None` if the quoted packet is not SCTP.
    pub fn source_port(&self) -> Option<u16> {
        Some(QuotedPacket::read(self.v6, self.quoted)?.source_port)
    }

    /// Whether the quoted packet was sent from SCTP port `port`. A driver that receives all ICMP
    /// messages of its host should pass on only those for which this is true.
    pub fn is_about(&self, port: u16) -> bool {
        self.source_port() == Some(port)
    }

    pub(crate) fn meaning(&self) -> IcmpError {
        match (self.v6, self.kind, self.code) {
            // An MTU of 0 means that the router predates RFC 1191 and reports no MTU.
            (false, 3, 4) | (true, 2, _) if self.mtu == 0 => IcmpError::Nothing,
            (false, 3, 4) | (true, 2, _) => IcmpError::TooBig(self.mtu),
            (false, 3, 2) | (true, 4, 1) => IcmpError::NoProtocol,
            (false, 3, 3) | (true, 1, 4) => IcmpError::NoPort,
            (false, 3, _) | (true, 1, _) => IcmpError::Unreachable,
            _ => IcmpError::Nothing,
        }
    }
}

/// Fields of a quoted packet, which this side may have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotedPacket {
    /// Destination address of the packet.
    pub(crate) remote: IpAddr,
    /// Destination UDP port of the packet; 0 without UDP encapsulation.
    pub(crate) udp_port: u16,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) verification_tag: u32,
    /// Initiate Tag, if the packet is an INIT and the quote is long enough.
    pub(crate) initiate_tag: Option<u32>,
}

impl QuotedPacket {
    /// Parses a quoted packet; `None` if it is not an SCTP packet, not a first fragment, or
    /// truncated before its verification tag.
    pub(crate) fn read(v6: bool, packet: &[u8]) -> Option<Self> {
        let (remote, protocol, payload) = if v6 {
            above_v6(packet)
        } else {
            above_v4(packet)
        }?;
        let (udp_port, sctp) = match protocol {
            SCTP => (0, payload),
            UDP => (be16(payload, 2)?, payload.get(8..)?),
            _ => return None,
        };
        let is_init = sctp.get(12) == Some(&kind::INIT);
        Some(Self {
            remote,
            udp_port,
            source_port: be16(sctp, 0)?,
            destination_port: be16(sctp, 2)?,
            verification_tag: be32(sctp, 4)?,
            initiate_tag: if is_init { be32(sctp, 16) } else { None },
        })
    }
}

/// Destination, protocol and payload of an IPv4 packet.
fn above_v4(packet: &[u8]) -> Option<(IpAddr, u8, &[u8])> {
    let header = usize::from(packet.first()? & 0x0F) * 4;
    let is_first = be16(packet, 6)? & 0x1FFF == 0;
    if packet[0] >> 4 != 4 || header < 20 || !is_first {
        return None;
    }
    let remote = Ipv4Addr::from(be32(packet, 16)?);
    Some((remote.into(), packet[9], packet.get(header..)?))
}

/// Destination, protocol and payload of an IPv6 packet, after its extension headers.
fn above_v6(packet: &[u8]) -> Option<(IpAddr, u8, &[u8])> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let remote: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
    let (mut next, mut rest) = (packet[6], packet.get(40..)?);
    for _ in 0..MAX_EXTENSIONS {
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(*rest.get(1)?) + 1) * 8,
            FRAGMENT if be16(rest, 2)? >> 3 == 0 => 8,
            FRAGMENT => return None,
            _ => return Some((Ipv6Addr::from(remote).into(), next, rest)),
        };
        next = rest[0];
        rest = rest.get(length..)?;
    }
    None
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sctp(kind: u8) -> Vec<u8> {
        let mut bytes = vec![0x13, 0x88, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0];
        bytes.extend_from_slice(&[kind, 0, 0, 20, 0, 0, 0, 77]);
        bytes
    }

    fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        packet.extend_from_slice(payload);
        packet
    }

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[6] = next;
        packet[39] = 1;
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn quoted_packets_over_both_families_and_udp() {
        let quote = QuotedPacket::read(false, &v4(SCTP, &sctp(kind::INIT))).expect("whole");
        assert_eq!(quote.remote, IpAddr::from([10, 0, 0, 2]));
        assert_eq!((quote.source_port, quote.destination_port), (5_000, 7));
        assert_eq!((quote.verification_tag, quote.initiate_tag), (9, Some(77)));
        let mut udp = vec![0x26, 0xAB, 0x30, 0x39, 0, 28, 0, 0];
        udp.extend_from_slice(&sctp(kind::DATA));
        let quote = QuotedPacket::read(false, &v4(UDP, &udp)).expect("whole");
        assert_eq!((quote.udp_port, quote.initiate_tag), (12_345, None));
        let mut extended = vec![SCTP, 0, 0, 0, 0, 0, 0, 0];
        extended.extend_from_slice(&sctp(kind::DATA));
        for packet in [
            v6(SCTP, &sctp(kind::DATA)),
            v6(60, &extended),
            v6(44, &extended),
        ] {
            let quote = QuotedPacket::read(true, &packet).expect("whole");
            assert_eq!(quote.remote, IpAddr::from(Ipv6Addr::LOCALHOST));
            assert_eq!(quote.destination_port, 7);
        }
    }

    #[test]
    fn truncated_quotes_and_later_fragments_are_ignored() {
        let whole = v4(SCTP, &sctp(kind::INIT));
        for cut in 0..28 {
            assert_eq!(QuotedPacket::read(false, &whole[..cut]), None, "{cut}");
        }
        // Old routers quote only eight bytes of payload, which include the ports and the tag.
        let short = QuotedPacket::read(false, &whole[..28]).expect("ports and tag");
        assert_eq!(short.initiate_tag, None);
        let mut fragment = whole.clone();
        fragment[7] = 1;
        assert_eq!(QuotedPacket::read(false, &fragment), None);
        assert_eq!(QuotedPacket::read(true, &whole), None);
        assert_eq!(QuotedPacket::read(false, &v4(6, &sctp(0))), None);
        let later = [SCTP, 0, 0, 8, 0, 0, 0, 0];
        assert_eq!(QuotedPacket::read(true, &v6(44, &later)), None);
        // A very long chain of extension headers is not parsed.
        let chain = [60, 0, 0, 0, 0, 0, 0, 0].repeat(50);
        assert_eq!(QuotedPacket::read(true, &v6(60, &chain)), None);
    }

    #[test]
    fn icmp_messages_are_classified_by_type_and_code() {
        let meaning = |v6, kind, code, mtu| {
            let icmp = Icmp {
                v6,
                kind,
                code,
                mtu,
                quoted: &[],
            };
            icmp.meaning()
        };
        assert_eq!(meaning(false, 3, 4, 1_400), IcmpError::TooBig(1_400));
        assert_eq!(meaning(false, 3, 4, 0), IcmpError::Nothing);
        assert_eq!(meaning(false, 3, 2, 0), IcmpError::NoProtocol);
        assert_eq!(meaning(false, 3, 3, 0), IcmpError::NoPort);
        assert_eq!(meaning(false, 3, 1, 0), IcmpError::Unreachable);
        assert_eq!(meaning(false, 11, 0, 0), IcmpError::Nothing);
        assert_eq!(meaning(false, 4, 1, 0), IcmpError::Nothing, "source quench");
        assert_eq!(meaning(true, 2, 0, 1_280), IcmpError::TooBig(1_280));
        assert_eq!(meaning(true, 4, 1, 0), IcmpError::NoProtocol);
        assert_eq!(meaning(true, 4, 0, 0), IcmpError::Nothing);
        assert_eq!(meaning(true, 1, 4, 0), IcmpError::NoPort);
        assert_eq!(meaning(true, 1, 3, 0), IcmpError::Unreachable);
        assert_eq!(meaning(true, 128, 0, 0), IcmpError::Nothing);
    }

    #[test]
    fn the_header_names_the_mtu() {
        let message = [3, 4, 0, 0, 0, 0, 5, 120, 1, 2];
        let icmp = Icmp::read(false, &message).expect("a header");
        assert_eq!(
            (icmp.kind, icmp.code, icmp.mtu, icmp.quoted),
            (3, 4, 1_400, &[1, 2][..])
        );
        let message = [2, 0, 0, 0, 0, 0, 5, 0];
        assert_eq!(Icmp::read(true, &message).map(|icmp| icmp.mtu), Some(1_280));
        assert_eq!(Icmp::read(true, &message[..7]), None);
    }
}
