//! IP headers of packets from outside the world: parsing, and updating of the fields that routers
//! change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_transport::Ecn;
use bytes::{Bytes, BytesMut};

use super::{IPV4_HEADER, IPV6_HEADER, SCTP, TCP, UDP};

/// IP protocol number of UDP-Lite (RFC 3828), whose header has ports like that of UDP.
const UDP_LITE: u8 = 136;

/// Fields of an IP header that the world uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Length of the header in bytes; for IPv6 the fixed header without extension headers.
    pub len: usize,
    /// Total length of the datagram in bytes, as stated in its header.
    pub total: usize,
    pub protocol: u8,
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hops_left: u8,
    /// Whether the datagram is IPv4 without the "don't fragment" flag.
    pub may_fragment: bool,
}

/// Error: the bytes are not an IP datagram that a host may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong;

impl Header {
    /// Reads the header at the start of `datagram` (RFC 791 §3.1, RFC 8200 §3).
    pub fn read(datagram: &[u8]) -> Result<Self, Wrong> {
        let header = match datagram.first().map(|first| first >> 4) {
            Some(4) => Self::read_v4(datagram),
            Some(6) => Self::read_v6(datagram),
            _ => None,
        };
        let sound =
            |it: &Self| it.total >= it.len && it.total <= datagram.len() && it.hops_left > 0;
        header.filter(sound).ok_or(Wrong)
    }

    fn read_v4(datagram: &[u8]) -> Option<Self> {
        let fixed: &[u8; IPV4_HEADER] = datagram.first_chunk()?;
        let len = usize::from(fixed[0] & 0x0f) * 4;
        if len < IPV4_HEADER {
            return None;
        }
        let address = |at| fixed[at..at + 4].first_chunk::<4>().copied();
        Some(Self {
            source: Ipv4Addr::from(address(12)?).into(),
            destination: Ipv4Addr::from(address(16)?).into(),
            len,
            total: usize::from(u16::from_be_bytes([fixed[2], fixed[3]])),
            protocol: fixed[9],
            ecn: Ecn::from_bits(fixed[1]),
            hops_left: fixed[8],
            may_fragment: fixed[6] & 0x40 == 0,
        })
    }

    fn read_v6(datagram: &[u8]) -> Option<Self> {
        let fixed: &[u8; IPV6_HEADER] = datagram.first_chunk()?;
        let address = |at| fixed[at..at + 16].first_chunk::<16>().copied();
        Some(Self {
            source: Ipv6Addr::from(address(8)?).into(),
            destination: Ipv6Addr::from(address(24)?).into(),
            len: IPV6_HEADER,
            total: IPV6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])),
            protocol: fixed[6],
            ecn: Ecn::from_bits(fixed[1] >> 4),
            hops_left: fixed[7],
            may_fragment: false,
        })
    }
}

/// Whether the payload after `header` begins with ports: the protocol is a known transport, and the
/// packet is not an IPv4 fragment. An IPv6 fragment has the protocol number 44, which is no
/// transport.
pub(crate) fn has_ports(header: &[u8]) -> bool {
    let (protocol, fragment) = match header {
        [first, ..] if first >> 4 == 6 => (header.get(6), false),
        _ => {
            // "More fragments" and the fragment offset.
            let flags = header.get(6).map_or(0, |flags| flags & 0x3f);
            let offset = header.get(7).copied().unwrap_or(0);
            (header.get(9), flags != 0 || offset != 0)
        }
    };
    let ported = protocol.is_some_and(|it| [TCP, UDP, SCTP, UDP_LITE].contains(it));
    ported && !fragment
}

/// Copy of the datagram with the given time to live and ECN field. The checksum of an IPv4 header
/// is updated incrementally (RFC 1624), so that a damaged header remains damaged.
pub(crate) fn rewritten(datagram: &[u8], hops_left: u8, ecn: Ecn) -> Bytes {
    let mut out = BytesMut::from(datagram);
    match datagram.first().map(|first| first >> 4) {
        Some(4) if datagram.len() >= IPV4_HEADER => {
            let class = [out[0], out[1] & !0b11 | ecn.bits()];
            change(&mut out, 0, class);
            let life = [hops_left, out[9]];
            change(&mut out, 8, life);
        }
        Some(6) if datagram.len() >= IPV6_HEADER => {
            out[1] = out[1] & !0b0011_0000 | ecn.bits() << 4;
            out[7] = hops_left;
        }
        // The version field is damaged. The datagram stays unchanged, so that the receiver can
        // detect the damage.
        _ => {}
    }
    out.freeze()
}

/// Replaces a 16-bit word of an IPv4 header and updates the checksum: HC' = ~(~HC + ~m + m') (RFC
/// 1624).
fn change(header: &mut [u8], at: usize, word: [u8; 2]) {
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    let new = u16::from_be_bytes(word);
    if old == new {
        return;
    }
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    header[at..at + 2].copy_from_slice(&word);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::sum;

    /// A hand-written IPv4 datagram of TCP with 4 bytes of payload.
    fn v4() -> Vec<u8> {
        let mut out = vec![0x45, 0xb8 | 0b10, 0, 24, 0x12, 0x34, 0x40, 0, 64, TCP, 0, 0];
        out.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 81]);
        let checksum = !sum(&out[..20], 0);
        out[10..12].copy_from_slice(&checksum.to_be_bytes());
        out
    }

    fn v6() -> Vec<u8> {
        let mut out = vec![0x6b, 0x81 | 0b0010_0000, 0xab, 0xcd, 0, 4, UDP, 9];
        out.extend_from_slice(&"fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        out.extend_from_slice(&"fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        out.extend_from_slice(&[0, 80, 0, 81]);
        out
    }

    #[test]
    fn a_header_is_read_and_what_is_none_is_refused() {
        let header = Header::read(&v4()).unwrap();
        assert_eq!((header.len, header.total, header.protocol), (20, 24, TCP));
        assert_eq!((header.ecn, header.hops_left), (Ecn::Ect0, 64));
        assert!(!header.may_fragment, "DF is set");
        let header = Header::read(&v6()).unwrap();
        assert_eq!((header.len, header.total, header.protocol), (40, 44, UDP));
        assert_eq!((header.ecn, header.hops_left), (Ecn::Ect0, 9));
        assert_eq!(header.destination, "fd00::2".parse::<IpAddr>().unwrap());
        // Wrong version, wrong header length, a total length beyond the end and below the header,
        // and a time to live of 0.
        for (at, wrong) in [(0, 0x35), (0, 0x44), (3, 25), (3, 19), (8, 0)] {
            let mut datagram = v4();
            datagram[at] = wrong;
            assert_eq!(Header::read(&datagram), Err(Wrong), "{at}");
        }
        assert_eq!(Header::read(&v4()[..19]), Err(Wrong));
        assert_eq!(Header::read(&[]), Err(Wrong));
    }

    #[test]
    fn a_router_changes_time_to_live_and_ecn_field_alone() {
        let changed = rewritten(&v4(), 61, Ecn::Ce);
        assert_eq!(sum(&changed[..20], 0), 0xffff, "the checksum is right");
        assert_eq!((changed[1], changed[8]), (0xb8 | 0b11, 61));
        let mut back = changed.to_vec();
        (back[1], back[8]) = (v4()[1], v4()[8]);
        back[10..12].copy_from_slice(&v4()[10..12]);
        assert_eq!(back, v4());
        // A header that is already damaged remains damaged.
        let mut damaged = v4();
        damaged[13] ^= 4;
        assert_ne!(sum(&rewritten(&damaged, 61, Ecn::Ce)[..20], 0), 0xffff);

        let changed = rewritten(&v6(), 8, Ecn::NotEct);
        assert_eq!(changed[..8], [0x6b, 0x81, 0xab, 0xcd, 0, 4, UDP, 8]);
        assert_eq!(changed[8..], v6()[8..]);
    }

    #[test]
    fn fragments_and_strangers_have_no_ports() {
        assert!(has_ports(&v4()[..20]) && has_ports(&v6()[..40]));
        for (at, value) in [(6, 0x20), (7, 1), (9, 1)] {
            let mut datagram = v4();
            datagram[at] = value;
            assert!(!has_ports(&datagram[..20]), "{at}");
        }
        let mut datagram = v6();
        datagram[6] = 44;
        assert!(!has_ports(&datagram[..40]));
    }
}
