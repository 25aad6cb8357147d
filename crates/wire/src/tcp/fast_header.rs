//! Fast path for headers whose options have a fixed length, because most segments have no options
//! or only timestamps. Headers with options are encoded by the fast path, but not decoded.

use std::net::IpAddr;

use bytes::BytesMut;

use super::{Flags, HEADER, MAX_OPTIONS, fill_checksum};
use crate::checksum::internet_tcp;
use crate::serial::SeqNumber;

/// Control bits in the 16-bit word that begins with the data offset.
const FLAGS: u16 = 0x01ff;
/// Reserved bits in that word.
const RESERVED: u16 = 0x0e00;

/// Bits of the data offset in that word, for a header with `options` bytes of options.
#[inline(always)]
fn offset_bits(options: usize) -> u16 {
    (((HEADER + options) / 4) as u16) << 12
}

/// The 20 bytes of a header before its options, without urgent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// SEG.SEQ.
    pub sequence_number: SeqNumber,
    /// SEG.ACK.
    pub acknowledgment_number: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// SEG.WND.
    pub window: u16,
}

impl FastHeader {
    /// Decodes the header of a segment without options. ACK must be set, PSH may be set, and no
    /// other control bit may be set. The bytes after the header are data.
    #[inline(always)]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let fixed = datagram.first_chunk::<HEADER>()?;
        let header = Self::of(fixed);
        let word = u16::from_be_bytes([fixed[12], fixed[13]]) & !(RESERVED | Flags::PSH.0);
        (word == offset_bits(0) | Flags::ACK.0).then_some(header)
    }

    /// Extracts the fields of this structure from the fixed part of a header that may have any
    /// options and control bits.
    #[inline(always)]
    pub(super) fn of(
        &[
            s0,
            s1,
            d0,
            d1,
            n0,
            n1,
            n2,
            n3,
            a0,
            a1,
            a2,
            a3,
            offset,
            flags,
            w0,
            w1,
            ..,
        ]: &[u8; HEADER],
    ) -> Self {
        Self {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            sequence_number: SeqNumber(u32::from_be_bytes([n0, n1, n2, n3])),
            acknowledgment_number: SeqNumber(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags(u16::from_be_bytes([offset, flags]) & FLAGS),
            window: u16::from_be_bytes([w0, w1]),
        }
    }

    /// The encoded header without checksum and urgent data. Its data offset includes `options`
    /// bytes of options after it.
    #[inline(always)]
    pub(super) fn bytes(&self, options: usize) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sequence_number.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.acknowledgment_number.0.to_be_bytes());
        let word = offset_bits(options) | (self.flags.0 & FLAGS);
        bytes[12..14].copy_from_slice(&word.to_be_bytes());
        bytes[14..16].copy_from_slice(&self.window.to_be_bytes());
        bytes
    }

    /// Appends a segment with this header, encoded `options` of a fixed length (a multiple of 4
    /// bytes up to [`MAX_OPTIONS`](super::MAX_OPTIONS)) and `payload`, and returns its length in
    /// bytes, as [`Header::encode`](super::Header::encode) does.
    #[inline(always)]
    pub fn encode<const OPTIONS: usize>(
        &self,
        out: &mut BytesMut,
        addresses: (IpAddr, IpAddr),
        checksum: bool,
        options: [u8; OPTIONS],
        payload: &[u8],
    ) -> usize {
        const { assert!(OPTIONS.is_multiple_of(4) && OPTIONS <= MAX_OPTIONS) };
        let start = out.len();
        let length = HEADER + OPTIONS + payload.len();
        out.reserve(length);
        out.extend_from_slice(&self.bytes(OPTIONS));
        out.extend_from_slice(&options);
        out.extend_from_slice(payload);
        if checksum {
            fill_checksum(&mut out[start..], addresses);
        }
        length
    }
}

/// Whether the checksum of a segment sent from `source` to `destination` is correct.
pub fn is_intact(datagram: &[u8], (source, destination): (IpAddr, IpAddr)) -> bool {
    internet_tcp(source, destination, datagram) == 0
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{Header, Options, SackBlock, Segment, Timestamps};
    use super::*;
    use crate::checksum::Checksum;

    fn addresses() -> (IpAddr, IpAddr) {
        (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]))
    }

    /// Bits of [`Flags`] that are not control bits should change neither the data offset nor the
    /// reserved bits.
    #[test]
    fn only_control_bits_are_written() {
        let mut out = BytesMut::new();
        let header = Header {
            flags: Flags(u16::MAX),
            ..Header::default()
        };
        header.encode(&mut out, addresses(), false, [&b"data"[..]]);
        assert_eq!(out[12..14], [0x51, 0xff]);
        let segment = Segment::parse(&out.freeze(), addresses(), Checksum::Ignore);
        let segment = segment.expect("a data offset of 5");
        assert_eq!(
            (segment.header.flags, &segment.payload[..]),
            (Flags(FLAGS), &b"data"[..])
        );
    }

    /// For every combination of control bits, with and without options, the fast path and the
    /// general code should encode and decode headers identically.
    #[test]
    fn fast_headers_are_read_and_written_as_others_are() {
        let mut plain = 0;
        for flags in 0..=FLAGS {
            for (option, payload) in [(0, 0), (0, 1), (0, 700), (1, 0), (1, 700), (2, 0)] {
                let mut options = Options::default();
                if option == 1 {
                    options.timestamps = Some(Timestamps {
                        value: 7,
                        echo_reply: 8,
                    });
                }
                if option == 2 {
                    let block = SackBlock {
                        left: SeqNumber(1),
                        right: SeqNumber(2),
                    };
                    options.sack_blocks.push(block).expect("there is room");
                }
                let header = Header {
                    source_port: 0x1234,
                    destination_port: 0x5678,
                    sequence_number: SeqNumber(0x9abc_def0 + u32::from(flags)),
                    acknowledgment_number: SeqNumber(0x0fed_cba9),
                    flags: Flags(flags),
                    window: 0x8765,
                    urgent_pointer: 0,
                    options,
                };
                let text: Vec<u8> = (0..payload).map(|at| at as u8).collect();
                for checksum in [false, true] {
                    let mut long = BytesMut::new();
                    header.encode(&mut long, addresses(), checksum, [&text[..]]);
                    let long = long.freeze();
                    assert_eq!(is_intact(&long, addresses()), checksum);
                    if let Some(timestamps) = header.options.timestamps {
                        let mut out = BytesMut::from(&b"before"[..]);
                        let options = timestamps.aligned();
                        let length = (header.fixed()).encode(
                            &mut out,
                            addresses(),
                            checksum,
                            options,
                            &text,
                        );
                        assert_eq!((&out[6..], length), (&long[..], long.len()));
                    }
                    let Some(short) = FastHeader::read(&long) else {
                        let others = flags & !(Flags::ACK.0 | Flags::PSH.0) != 0;
                        let bare = !Flags(flags).contains(Flags::ACK);
                        assert!(others || bare || option != 0, "{header:?}");
                        continue;
                    };
                    plain += 1;
                    let mut out = BytesMut::from(&b"before"[..]);
                    let length = short.encode(&mut out, addresses(), checksum, [], &text);
                    assert_eq!((&out[6..], length), (&long[..], long.len()));
                    let segment = Segment::parse(&long, addresses(), Checksum::Ignore);
                    let expected = Segment {
                        header: header.clone(),
                        payload: Bytes::from(text.clone()),
                    };
                    assert_eq!(segment, Ok(expected));
                    assert_eq!(short.flags, header.flags);
                }
            }
        }
        assert_eq!(plain, 2 * 3 * 2, "ACK, with and without PSH");
        assert_eq!(FastHeader::read(&[0; HEADER - 1]), None);
    }
}
