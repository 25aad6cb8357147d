//! The IPv4 header in data of raw sockets. Raw IPv6 sockets deliver no header (RFC 3542 §3).

use std::ops::Range;

/// Minimum size of an IPv4 header, bytes.
const MIN_HEADER: usize = 20;

/// Range of the payload of an IPv4 packet; `None` if the header is invalid or does not match the
/// received data.
pub(super) fn payload_of_v4(packet: &[u8]) -> Option<Range<usize>> {
    let &first = packet.first()?;
    let header = usize::from(first & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let whole = first >> 4 == 4 && header >= MIN_HEADER && header <= total;
    (whole && total <= packet.len()).then_some(header..total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(version_and_length: u8, total: u16, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; bytes];
        packet[0] = version_and_length;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet
    }

    #[test]
    fn the_payload_follows_the_header_and_its_options() {
        assert_eq!(payload_of_v4(&packet(0x45, 52, 52)), Some(20..52));
        assert_eq!(payload_of_v4(&packet(0x46, 52, 52)), Some(24..52));
        // Padding of the link layer after the packet is not part of the payload.
        assert_eq!(payload_of_v4(&packet(0x45, 40, 60)), Some(20..40));
    }

    #[test]
    fn inconsistent_ip_headers_are_refused() {
        assert_eq!(payload_of_v4(&[]), None);
        assert_eq!(payload_of_v4(&[0x45, 0, 0]), None);
        assert_eq!(payload_of_v4(&packet(0x65, 52, 52)), None, "version 6");
        assert_eq!(
            payload_of_v4(&packet(0x44, 52, 52)),
            None,
            "header of 16 bytes"
        );
        assert_eq!(payload_of_v4(&packet(0x45, 53, 52)), None, "cut short");
        assert_eq!(
            payload_of_v4(&packet(0x4f, 52, 52)),
            None,
            "header longer than all"
        );
    }
}
