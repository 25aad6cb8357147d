//! Checksums of packets: CRC32c for SCTP (RFC 9260 §6.8, Appendix A), and the Internet checksum for
//! TCP (RFC 9293 §3.1).

mod crc32c;

use std::net::IpAddr;

use crc32c::{crc32c, crc32c_without};

/// Whether the checksum of a received packet is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// A packet with a wrong checksum must be rejected (RFC 9260 §6.8, RFC 9293 §3.1).
    Verify,
    /// The checksum is not read, because a simulated link does not corrupt packets, or because a
    /// lower layer protects them.
    Ignore,
}

/// Offset of the checksum field in an SCTP packet (RFC 9260 §3.1).
const FIELD: usize = 8;
/// Length of the common header, bytes.
const HEADER: usize = 12;

/// CRC32c of an SCTP packet, computed as if its checksum field were zero. If the slice is shorter
/// than the common header, all its bytes are included.
///
/// The field carries the value in little-endian order, see [`fill`].
pub fn crc32c_packet(packet: &[u8]) -> u32 {
    if packet.len() < HEADER {
        return crc32c(packet);
    }
    crc32c_without(packet, FIELD)
}

/// Whether the checksum field of the packet contains its CRC32c. False for a slice shorter than the
/// common header.
#[inline]
pub fn verify(packet: &[u8]) -> bool {
    packet.len() >= HEADER && packet[FIELD..HEADER] == crc32c_packet(packet).to_le_bytes()
}

/// Whether the checksum field of the packet is zero (RFC 9653). Zero is also the correct CRC32c of
/// one packet in 2^32. False for a slice shorter than the common header.
#[inline]
pub fn is_zero(packet: &[u8]) -> bool {
    packet.len() >= HEADER && packet[FIELD..HEADER] == [0; 4]
}

/// Writes the CRC32c into the checksum field of the packet. A slice shorter than the common header
/// is left unchanged.
#[inline]
pub fn fill(packet: &mut [u8]) {
    if packet.len() >= HEADER {
        packet[FIELD..HEADER].fill(0);
        let crc = crc32c(packet);
        packet[FIELD..HEADER].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Protocol number of TCP, part of the pseudo header.
const TCP: u32 = 6;

/// Internet checksum of a TCP segment with its IPv4 or IPv6 pseudo header (RFC 9293 §3.1, RFC 8200
/// §8.1), as the value of the checksum field. If the checksum field is already filled in, the
/// result is 0 for an intact segment.
///
/// Source and destination should be of the same family. If they are not, each address is summed
/// with the length of its family.
pub fn internet_tcp(source: IpAddr, destination: IpAddr, segment: &[u8]) -> u16 {
    let mut sum = sum_words(&TCP.to_be_bytes()) + sum_words(&(segment.len() as u32).to_be_bytes());
    for address in [source, destination] {
        sum += match address {
            IpAddr::V4(v4) => sum_words(&v4.octets()),
            IpAddr::V6(v6) => sum_words(&v6.octets()),
        };
    }
    // The byte order does not affect the sum if only the result is swapped (RFC 1071 §2 B).
    u16::from_be(!fold(sum + sum_words(segment)))
}

/// Sum of the 16-bit words in native byte order, congruent modulo 0xFFFF. An odd last byte is
/// padded with zero. The sum cannot overflow because each four bytes add less than 2^32.
fn sum_words(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let mut tail = [0; 4];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    let sum: u64 = words
        .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    sum + u64::from(u32::from_ne_bytes(tail))
}

/// Folds a sum to 16 bits in ones' complement: carries out of the low half are added back to it.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16 & 0xFFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests;
