use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::encode::Full;

const ADDRESSES: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
);
const ADDRESSES_V6: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
);

fn parse(bytes: &[u8]) -> Result<Segment, SegmentError> {
    Segment::parse(&Bytes::copy_from_slice(bytes), ADDRESSES, Checksum::Ignore)
}

fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[12] = (((HEADER + options.len()) / 4) as u8) << 4;
    bytes.extend(options);
    bytes
}

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock {
        left: SeqNumber(left),
        right: SeqNumber(right),
    }
}

#[test]
fn syn_byte_for_byte() {
    let header = Header {
        source_port: 0x1234,
        destination_port: 80,
        sequence_number: SeqNumber(0xDEAD_BEEF),
        acknowledgment_number: SeqNumber(0),
        flags: Flags::SYN,
        window: 0xFFFF,
        urgent_pointer: 0,
        options: Options {
            maximum_segment_size: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps {
                value: 1,
                echo_reply: 0,
            }),
            ..Options::default()
        },
    };
    let mut out = BytesMut::new();
    assert_eq!(header.encode(&mut out, ADDRESSES, true, []), 44);
    #[rustfmt::skip]
    let expected = [
        0x12, 0x34, 0x00, 0x50, 0xDE, 0xAD, 0xBE, 0xEF, 0, 0, 0, 0, 0xB0, 0x02, 0xFF, 0xFF, 0x01, 0xD4, 0, 0,
        2, 4, 0x05, 0xB4,  1, 1, 4, 2,  1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0,  1, 3, 3, 7,
    ];
    assert_eq!(out[..], expected);
    let segment = Segment::parse(&out.freeze(), ADDRESSES, Checksum::Verify).unwrap();
    assert_eq!(segment.header, header);
    assert_eq!(segment.sequence_len(), 1);
}

#[test]
fn payload_in_pieces_is_one_payload() {
    let header = Header {
        flags: Flags::ACK | Flags::FIN,
        ..Header::default()
    };
    let mut out = BytesMut::from(&b"before"[..]);
    let length = header.encode(&mut out, ADDRESSES, true, [&b"sat"[..], b"", b"ellite"]);
    assert_eq!(length, 29);
    let segment = Segment::parse(&out.freeze().slice(6..), ADDRESSES, Checksum::Verify).unwrap();
    assert_eq!(segment.payload, "satellite");
    assert_eq!(segment.sequence_len(), 10);
}

#[test]
fn space_for_sack_blocks() {
    let mut options = Options::default();
    for i in 0..4 {
        options
            .sack_blocks
            .push(block(i * 100, i * 100 + 50))
            .unwrap();
    }
    assert_eq!(options.sack_blocks.push(block(0, 1)), Err(Full));
    assert_eq!(
        (options.sack_blocks_that_fit(), options.encoded_len()),
        (4, 36)
    );
    options.timestamps = Some(Timestamps::default());
    assert_eq!(
        (options.sack_blocks_that_fit(), options.encoded_len()),
        (3, 40)
    );

    let header = Header {
        options,
        ..Header::default()
    };
    let mut out = BytesMut::new();
    assert_eq!(header.encode(&mut out, ADDRESSES, false, []), 60);
    let read = parse(&out).unwrap().header.options;
    assert_eq!(read.sack_blocks[..], header.options.sack_blocks[..3]);
    assert_eq!(read.timestamps, header.options.timestamps);
}

#[test]
fn options_unknown_repeated_and_after_the_end() {
    let read = |options: &[u8]| parse(&with_options(options)).unwrap().header.options;
    let mss = |size| Options {
        maximum_segment_size: Some(size),
        ..Options::default()
    };
    assert_eq!(
        read(&[99, 4, 7, 7, 2, 4, 1, 0]),
        mss(256),
        "unknown ones are skipped"
    );
    assert_eq!(
        read(&[99, 2, 1, 1, 2, 4, 1, 0]),
        mss(256),
        "also empty ones"
    );
    assert_eq!(
        read(&[2, 4, 1, 0, 2, 4, 2, 0]),
        mss(512),
        "the last one counts"
    );
    assert_eq!(
        read(&[2, 4, 1, 0, 0, 4, 2, 0]),
        mss(256),
        "nothing after the end of the list"
    );
    assert_eq!(read(&[0, 0, 0, 0]), Options::default());
}

#[test]
fn illegal_option_lengths() {
    for (options, kind) in [
        (&[2, 0, 0, 0][..], 2),
        (&[99, 1, 0, 0], 99),
        (&[99, 5, 0, 0], 99),
        (&[1, 1, 1, 99], 99),
        (&[2, 3, 5, 0], 2),
        (&[3, 2, 0, 0], 3),
        (&[3, 4, 0, 0], 3),
        (&[4, 3, 0, 0], 4),
        (&[5, 2, 0, 0], 5),
        (&[5, 8, 0, 0, 0, 0, 0, 0], 5),
        (&[8, 8, 0, 0, 0, 0, 0, 0], 8),
        (&[[5, 38].as_slice(), &[0; 38]].concat(), 5),
    ] {
        assert_eq!(
            parse(&with_options(options)),
            Err(SegmentError::BadOption { kind }),
            "{options:?}"
        );
    }
}

#[test]
fn bad_frames() {
    for length in 0..HEADER {
        assert_eq!(
            parse(&vec![0x50; length]),
            Err(SegmentError::TooShort { length })
        );
    }
    let mut bytes = with_options(&[]);
    for words in (0..5).chain(6..16) {
        bytes[12] = words << 4;
        let offset = usize::from(words) * 4;
        assert_eq!(
            parse(&bytes),
            Err(SegmentError::BadDataOffset { offset, length: 20 })
        );
    }
}

#[test]
fn checksum_protects_addresses_too() {
    let mut out = BytesMut::new();
    Header::default().encode(&mut out, ADDRESSES, true, [&b"odd"[..]]);
    let datagram = out.freeze();
    assert!(Segment::parse(&datagram, ADDRESSES, Checksum::Verify).is_ok());
    let elsewhere = (ADDRESSES.0, IpAddr::from([192, 0, 2, 3]));
    assert_eq!(
        Segment::parse(&datagram, elsewhere, Checksum::Verify),
        Err(SegmentError::BadChecksum)
    );
    assert!(Segment::parse(&datagram, elsewhere, Checksum::Ignore).is_ok());
}

/// RFC 9768 figure 4 and table 5: tests both orders with each number of counters. With other
/// lengths, the complete counters should be read.
#[test]
fn accurate_ecn_byte_for_byte() {
    use EcnFieldOrder::{Ect0First, Ect1First};
    let cases: [(_, usize, &[u8]); 6] = [
        (
            Ect0First,
            3,
            &[1, 172, 11, 0, 0, 1, 2, 3, 4, 0xff, 0xff, 0xfe],
        ),
        (Ect0First, 2, &[172, 8, 0, 0, 1, 2, 3, 4]),
        (Ect0First, 1, &[1, 1, 1, 172, 5, 0, 0, 1]),
        (Ect0First, 0, &[1, 1, 172, 2]),
        (
            Ect1First,
            3,
            &[1, 174, 11, 0xff, 0xff, 0xfe, 2, 3, 4, 0, 0, 1],
        ),
        (Ect1First, 2, &[174, 8, 0xff, 0xff, 0xfe, 2, 3, 4]),
    ];
    for (order, count, expected) in cases {
        // Only the 24 least significant bits of a counter should be sent.
        let option = AccurateEcn::new(order, 0x0700_0001, 0x0002_0304, 0xffff_fffe, count);
        let header = Header {
            flags: Flags::AE | Flags::ACK,
            options: Options {
                accurate_ecn: Some(option),
                ..Options::default()
            },
            ..Header::default()
        };
        let mut out = BytesMut::new();
        header.encode(&mut out, ADDRESSES, false, []);
        assert_eq!(out[20..], *expected);
        assert_eq!(out[12] & 0x0f, 1, "AE is the lowest bit of its byte");
        assert_eq!(parse(&out).expect("a segment").header, header);
        let present = [option.ect0(), option.ce(), option.ect1()];
        assert_eq!(present.iter().flatten().count(), count);
    }
    let read = |options: &[u8]| parse(&with_options(options)).expect("a segment").header;
    let odd = read(&[172, 4, 7, 7]).options.accurate_ecn.expect("option");
    assert_eq!([odd.ect0(), odd.ce(), odd.ect1()], [None; 3]);
    let longer = [&[174, 16][..], &[0, 0, 5, 0, 0, 6, 0, 0, 7, 9, 9, 9, 9, 9]].concat();
    let longer = read(&longer).options.accurate_ecn.expect("option");
    let counters = [longer.ect0(), longer.ce(), longer.ect1()];
    assert_eq!(counters, [Some(7), Some(6), Some(5)]);
}

/// RFC 9768 §3.2.2, figure 3: AE should be the highest bit of the ACE field, and ECE the lowest.
#[test]
fn the_ace_field_is_a_number() {
    for (number, flags) in [
        (0, Flags::NONE),
        (1, Flags::ECE),
        (2, Flags::CWR),
        (4, Flags::AE),
        (7, Flags::AE | Flags::CWR | Flags::ECE),
    ] {
        assert_eq!(Flags::from_ace(8 + number), flags);
        assert_eq!(u64::from((flags | Flags::ACK | Flags::URG).ace()), number);
    }
}

fn any_header() -> impl Strategy<Value = Header> {
    let timestamps = any::<Option<(u32, u32)>>()
        .prop_map(|pair| pair.map(|(value, echo_reply)| Timestamps { value, echo_reply }));
    let accurate = any::<Option<(bool, u32, u32, u32, u8)>>().prop_map(|parts| {
        parts.map(|(first, ect0, ce, ect1, count)| {
            let order = match first {
                true => EcnFieldOrder::Ect1First,
                false => EcnFieldOrder::Ect0First,
            };
            AccurateEcn::new(order, ect0, ce, ect1, usize::from(count % 4))
        })
    });
    let options = (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        timestamps,
        accurate,
    );
    let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..5);
    (
        any::<(u16, u16, u32, u32, u16, u16, u16)>(),
        options,
        blocks,
    )
        .prop_map(|(fields, options, blocks)| {
            let mut options = Options {
                maximum_segment_size: options.0,
                window_scale: options.1,
                sack_permitted: options.2,
                timestamps: options.3,
                accurate_ecn: options.4,
                ..Options::default()
            };
            for (left, right) in blocks.into_iter().take(options.sack_blocks_that_fit()) {
                options.sack_blocks.push(block(left, right)).unwrap();
            }
            Header {
                source_port: fields.0,
                destination_port: fields.1,
                sequence_number: SeqNumber(fields.2),
                acknowledgment_number: SeqNumber(fields.3),
                flags: Flags(fields.4 & 0x1ff),
                window: fields.5,
                urgent_pointer: fields.6,
                options,
            }
        })
}

proptest! {
    #[test]
    fn tcp_segments_are_read_as_written(header in any_header(), payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let segment = Segment { header, payload: payload.into() };
        for addresses in [ADDRESSES, ADDRESSES_V6] {
            let mut out = BytesMut::new();
            let length = segment.encode(&mut out, addresses, true);
            prop_assert_eq!(length, segment.header.encoded_len() + segment.payload.len());
            prop_assert_eq!(Segment::parse(&out.freeze(), addresses, Checksum::Verify), Ok(segment.clone()));
        }
    }
}
