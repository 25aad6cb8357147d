//! Sizes that follow from the path MTU (RFC 9260 §1.2 PMTU and PMDCS, §7.3).

use std::net::IpAddr;

/// Bytes of the common header.
pub const COMMON_HEADER: usize = 12;
/// Bytes of a DATA chunk before the user data.
pub const DATA_HEADER: usize = 16;
/// The least MTU: room for the headers and a little data. A smaller one is taken as this.
pub const LEAST_MTU: usize = 128;
/// The most that the length field of an IPv4 packet can say.
pub const MOST_MTU: usize = 65_535;
/// The most that an encapsulation may take of each packet.
pub const MOST_ENCAPSULATION: usize = LEAST_MTU / 4;

/// Bytes of the IP header of packets to `remote`, without options or extensions.
pub const fn ip_header(remote: IpAddr) -> usize {
    if remote.is_ipv6() { 40 } else { 20 }
}

/// The largest SCTP packet (common header and chunks) within `mtu` bytes of IP packet to `remote`, with
/// `encapsulation` bytes between IP and SCTP. A multiple of 4.
pub fn max_packet(mtu: usize, remote: IpAddr, encapsulation: usize) -> usize {
    (mtu.clamp(LEAST_MTU, MOST_MTU) - ip_header(remote) - encapsulation.min(MOST_ENCAPSULATION))
        & !3
}

/// The largest DATA chunk in a packet of `max_packet` bytes, header included (PMDCS).
pub const fn pmdcs(max_packet: usize) -> usize {
    max_packet - COMMON_HEADER
}

/// The most user data that one DATA chunk carries in a packet of `max_packet` bytes.
pub const fn max_user_data(max_packet: usize) -> usize {
    pmdcs(max_packet) - DATA_HEADER
}

/// What an AUTH of `reserved` bytes (RFC 4895 §6.2) leaves of a packet of `max_packet`: at least what a chunk with a little data
/// needs.
pub(crate) fn less_reserved(max_packet: usize, reserved: usize) -> usize {
    const LEAST: usize = COMMON_HEADER + DATA_HEADER + 16;
    max_packet
        .saturating_sub(reserved)
        .max(LEAST.min(max_packet))
}
