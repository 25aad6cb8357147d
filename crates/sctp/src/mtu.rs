//! Sizes derived from the path MTU (RFC 9260 §1.2 PMTU and PMDCS, §7.3).

use std::net::IpAddr;

/// Length of the common header in bytes.
pub const COMMON_HEADER: usize = 12;
/// Length of the DATA chunk header in bytes.
pub const DATA_HEADER: usize = 16;
/// Minimum MTU in bytes: space for all headers and a little data. Smaller values are raised to this
/// minimum.
pub const MIN_MTU: usize = 128;
/// Maximum MTU in bytes: the maximum of the length field of an IPv4 packet.
pub const MAX_MTU: usize = 65_535;
/// Maximum number of bytes that an encapsulation may add to a packet.
pub const MAX_ENCAPSULATION: usize = MIN_MTU / 4;

/// Length in bytes of the IP header of packets to `remote`, without options or extension headers.
pub const fn ip_header(remote: IpAddr) -> usize {
    if remote.is_ipv6() { 40 } else { 20 }
}

/// Size in bytes of the largest SCTP packet (common header and chunks) in an IP packet of `mtu`
/// bytes to `remote`, with `encapsulation` bytes between IP and SCTP. Always a multiple of 4.
pub fn max_packet(mtu: usize, remote: IpAddr, encapsulation: usize) -> usize {
    (mtu.clamp(MIN_MTU, MAX_MTU) - ip_header(remote) - encapsulation.min(MAX_ENCAPSULATION)) & !3
}

/// Size in bytes of the largest DATA chunk, including its header, in a packet of `max_packet` bytes
/// (PMDCS).
pub const fn pmdcs(max_packet: usize) -> usize {
    max_packet - COMMON_HEADER
}

/// Maximum length in bytes of the user data of one DATA chunk in a packet of `max_packet` bytes.
pub const fn max_user_data(max_packet: usize) -> usize {
    pmdcs(max_packet) - DATA_HEADER
}

/// Space in a packet of `max_packet` bytes without the `reserved` bytes of an AUTH chunk (RFC 4895
/// §6.2). The result is at least the size of a chunk with a little data.
pub(crate) fn less_reserved(max_packet: usize, reserved: usize) -> usize {
    const MIN_CHUNK: usize = COMMON_HEADER + DATA_HEADER + 16;
    max_packet
        .saturating_sub(reserved)
        .max(MIN_CHUNK.min(max_packet))
}
