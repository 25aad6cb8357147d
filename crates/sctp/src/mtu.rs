//! Sizes derived from the path MTU (RFC 9260 §1.2 PMTU and PMDCS, §7.3).

use std::net::IpAddr;

/// Length of the common header in bytes.
pub const COMMON_HEADER: usize = 12;
/// Length of the DATA chunk header in bytes.
pub const DATA_HEADER: usize = 16;
/// Minimum MTU: space for the headers and a little data. Smaller values are raised to it.
pub const MIN_MTU: usize = 128;
/// Maximum value of the length field of an IPv4 packet.
pub const MAX_MTU: usize = 65_535;
/// Maximum number of bytes that an encapsulation may add to each packet.
pub const MAX_ENCAPSULATION: usize = MIN_MTU / 4;

/// Length in bytes of the IP header of packets to `remote`, without options or extension headers.
pub const fn ip_header(remote: IpAddr) -> usize {
    if remote.is_ipv6() { 40 } else { 20 }
}

/// Size of the largest SCTP packet (common header and chunks) in an IP packet of `mtu` bytes to
/// `remote`, with `encapsulation` bytes between IP and SCTP. A multiple of 4.
pub fn max_packet(mtu: usize, remote: IpAddr, encapsulation: usize) -> usize {
    (mtu.clamp(MIN_MTU, MAX_MTU) - ip_header(remote) - encapsulation.min(MAX_ENCAPSULATION)) & !3
}

/// Size of the largest DATA chunk in a packet of `max_packet` bytes, including its header (PMDCS).
pub const fn pmdcs(max_packet: usize) -> usize {
    max_packet - COMMON_HEADER
}

/// Maximum user data of one DATA chunk in a packet of `max_packet` bytes.
pub const fn max_user_data(max_packet: usize) -> usize {
    pmdcs(max_packet) - DATA_HEADER
}

/// Space left in a packet of `max_packet` bytes by an AUTH chunk of `reserved` bytes (RFC 4895
/// §6.2), at least enough for a chunk with a little data.
pub(crate) fn less_reserved(max_packet: usize, reserved: usize) -> usize {
    const MIN_CHUNK: usize = COMMON_HEADER + DATA_HEADER + 16;
    max_packet
        .saturating_sub(reserved)
        .max(MIN_CHUNK.min(max_packet))
}
