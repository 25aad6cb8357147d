use super::*;
use crate::cause::{Cause, Causes};
use crate::chunk::{Abort, Chunk, CookieEcho, Data, DecodeError, ErrorChunk, Shutdown};
use crate::encode::Full;
use crate::parameter::{Parameter, Parameters};
use crate::serial::{Ssn, Tsn};
use crate::tlv::{MAX_LIST, Tlv, TlvError, TlvWriter};

const HEADER: CommonHeader = CommonHeader {
    source_port: 5000,
    destination_port: 5001,
    verification_tag: 0x0102_0304,
};

/// A datagram with a common header, these chunks and a correct checksum.
fn datagram(chunks: &[u8]) -> Bytes {
    let mut bytes = vec![0x13, 0x88, 0x13, 0x89, 1, 2, 3, 4, 0, 0, 0, 0];
    bytes.extend(chunks);
    checksum::fill(&mut bytes);
    bytes.into()
}

/// Types and lengths of the chunks before the first error, and the error.
fn walk(chunks: &[u8]) -> (Vec<(u8, usize)>, Option<ChunkError>) {
    let datagram = datagram(chunks);
    let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
    let mut iterator = packet.chunks();
    let mut seen = Vec::new();
    let error = loop {
        match iterator.next() {
            None => break None,
            Some(Ok(raw)) => seen.push((raw.kind, raw.whole().len())),
            Some(Err(error)) => break Some(error),
        }
    };
    assert_eq!(iterator.next(), None, "nothing follows an error or the end");
    (seen, error)
}

fn decode(chunk: &[u8]) -> Result<Chunk, DecodeError> {
    let datagram = datagram(chunk);
    let packet = Packet::parse(&datagram, Checksum::Ignore).unwrap();
    Chunk::decode(packet.chunks().next().unwrap().unwrap())
}

#[test]
fn packet_byte_for_byte() {
    let mut out = BytesMut::from(&b"earlier packet"[..]);
    let mut builder = PacketBuilder::new(&mut out, HEADER, 100);
    assert!(builder.is_empty());
    assert_eq!(builder.room(), 88);
    builder
        .push(&Shutdown {
            cumulative_tsn_ack: Tsn(0xA0B0_C0D0),
        })
        .unwrap();
    builder
        .push(&CookieEcho {
            cookie: Bytes::from_static(b"12345"),
        })
        .unwrap();
    assert!(!builder.is_empty());
    assert_eq!(builder.len(), 32);
    assert_eq!(builder.finish(true), 32);
    #[rustfmt::skip]
    let expected = datagram(&[
        7, 0, 0, 8, 0xA0, 0xB0, 0xC0, 0xD0,
        10, 0, 0, 9, b'1', b'2', b'3', b'4', b'5', 0, 0, 0,
    ]);
    assert_eq!(out[14..], expected);
    let datagram = out.split_off(14).freeze();
    assert_eq!(
        Packet::parse(&datagram, Checksum::Verify).unwrap().header,
        HEADER
    );
}

#[test]
fn headers_refused() {
    let parse = |bytes: &[u8]| {
        let bytes = Bytes::copy_from_slice(bytes);
        Packet::parse(&bytes, Checksum::Verify).map(|packet| packet.header)
    };
    let good = datagram(&[14, 0, 0, 4]);
    assert_eq!(parse(&good), Ok(HEADER));
    for length in 0..12 {
        assert_eq!(
            parse(&good[..length]),
            Err(PacketError::TooShort { length })
        );
    }
    // CVE-2006-2934: a packet without any chunk.
    assert_eq!(parse(&datagram(&[])), Err(PacketError::NoChunk));

    let mut bytes = good.to_vec();
    bytes[15] ^= 1;
    assert_eq!(parse(&bytes), Err(PacketError::BadChecksum));
    let corrupt = Bytes::from(bytes);
    assert_eq!(
        Packet::parse(&corrupt, Checksum::Ignore).unwrap().header,
        HEADER
    );

    for port in [0, 2] {
        let mut bytes = good.to_vec();
        bytes[port..port + 2].fill(0);
        checksum::fill(&mut bytes);
        assert_eq!(parse(&bytes), Err(PacketError::PortZero));
    }
}

#[test]
fn chunks_one_after_another() {
    assert_eq!(
        walk(&[8, 0, 0, 4, 11, 0, 0, 4]),
        (vec![(8, 4), (11, 4)], None)
    );
    assert_eq!(
        walk(&[10, 0, 0, 5, 1, 0, 0, 0, 11, 0, 0, 4]),
        (vec![(10, 5), (11, 4)], None)
    );
    // The contents of the padding do not matter (RFC 9260 §3.2).
    assert_eq!(
        walk(&[10, 0, 0, 5, 1, 9, 9, 9, 11, 0, 0, 4]),
        (vec![(10, 5), (11, 4)], None)
    );
}

/// CVE-2010-0008, sipsorcery PR 1758, dpkt 583: a length of 0 must not stop the iterator from
/// advancing.
#[test]
fn length_less_than_a_header() {
    for length in 0..4 {
        let error = ChunkError::LengthTooSmall { kind: 6, length };
        assert_eq!(
            walk(&[8, 0, 0, 4, 6, 0, 0, length as u8]),
            (vec![(8, 4)], Some(error))
        );
    }
}

/// CVE-2016-9555, CVE-2020-6831: the length must be checked against the packet before any byte is
/// read.
#[test]
fn length_past_the_packet() {
    let error = ChunkError::PastEnd {
        kind: 6,
        length: 9,
        remaining: 8,
    };
    assert_eq!(
        walk(&[8, 0, 0, 4, 6, 0, 0, 9, 0, 0, 0, 0]),
        (vec![(8, 4)], Some(error))
    );
    let error = ChunkError::PastEnd {
        kind: 0,
        length: 0xFFFF,
        remaining: 4,
    };
    assert_eq!(walk(&[0, 3, 0xFF, 0xFF]), (vec![], Some(error)));
}

#[test]
fn header_cut_off() {
    for remaining in 1..4 {
        let bytes = [&[8, 0, 0, 4][..], &[6; 3][..remaining]].concat();
        assert_eq!(
            walk(&bytes),
            (vec![(8, 4)], Some(ChunkError::Truncated { remaining }))
        );
    }
}

#[test]
fn padding_cut_off() {
    for length in 5..8u16 {
        let bytes = [
            &[10, 0, 0, length as u8][..],
            &[1; 4][..usize::from(length) - 4],
        ]
        .concat();
        assert_eq!(
            walk(&bytes),
            (
                vec![],
                Some(ChunkError::MissingPadding { kind: 10, length })
            )
        );
    }
}

#[test]
fn unknown_chunk_is_there_whole() {
    let bytes = [0xC1, 0x55, 0, 6, 1, 2, 0, 0];
    let Ok(Chunk::Unknown(raw)) = decode(&bytes) else {
        panic!("known?")
    };
    assert_eq!(
        (raw.kind, raw.flags, raw.value(), &raw.whole()[..]),
        (0xC1, 0x55, &[1, 2][..], &bytes[..6])
    );
    assert_eq!(
        raw.action(),
        UnknownAction {
            stop: false,
            report: true
        }
    );
    assert_eq!(raw.clone().into_value()[..], [1, 2]);
}

/// CVE-2021-3655: the minimum length of each type must be enforced.
#[test]
fn fixed_parts_cut_off() {
    for (kind, needed) in [(0, 16), (1, 20), (2, 20), (3, 16), (7, 8), (12, 8), (13, 8)] {
        for length in 4..needed {
            let mut bytes = vec![0; padded(length)];
            (bytes[0], bytes[3]) = (kind, length as u8);
            assert_eq!(
                decode(&bytes),
                Err(DecodeError::TooShort {
                    kind,
                    length,
                    needed
                }),
                "type {kind}"
            );
        }
        let mut bytes = vec![0; needed];
        (bytes[0], bytes[3]) = (kind, needed as u8);
        assert_eq!(decode(&bytes).unwrap().kind(), kind);
    }
}

#[test]
fn heartbeats_without_info() {
    for kind in [4, 5] {
        let error = Err(DecodeError::NoHeartbeatInfo { kind });
        assert_eq!(decode(&[kind, 0, 0, 4]), error, "no parameter");
        assert_eq!(
            decode(&[kind, 0, 0, 8, 0, 2, 0, 4]),
            error,
            "another parameter"
        );
        assert_eq!(
            decode(&[kind, 0, 0, 8, 0, 1, 0, 5]),
            error,
            "longer than the chunk"
        );
        assert_eq!(
            decode(&[kind, 0, 0, 8, 0, 1, 0, 3]),
            error,
            "shorter than a header"
        );
        assert_eq!(decode(&[kind, 0, 0, 6, 0, 1, 0, 0]), error, "half a header");
    }
}

/// GHSA-jwjp-4649-v8jp: the announced counts of a SACK must be checked against the length of the
/// chunk.
#[test]
fn sack_counts_past_the_chunk() {
    let sack = |length: u8, gaps: u16, duplicates: u16| {
        let mut bytes = vec![0; padded(length.into())];
        bytes[..4].copy_from_slice(&[3, 0, 0, length]);
        bytes[12..14].copy_from_slice(&gaps.to_be_bytes());
        bytes[14..16].copy_from_slice(&duplicates.to_be_bytes());
        bytes
    };
    for (length, gap_blocks, duplicates) in [
        (16, 1, 0),
        (16, 0, 1),
        (20, 1, 1),
        (23, 2, 0),
        (16, 0xFFFF, 0xFFFF),
        (20, 0x8000, 0x8000),
    ] {
        let error = DecodeError::SackCounts {
            gap_blocks,
            duplicates,
            length: length.into(),
        };
        assert_eq!(decode(&sack(length, gap_blocks, duplicates)), Err(error));
    }
    let Ok(Chunk::Sack(read)) = decode(&sack(28, 1, 1)) else {
        panic!("room for three")
    };
    assert_eq!(
        (read.gap_blocks().len(), read.duplicates().len()),
        (1, 1),
        "what is not counted is not read"
    );
}

/// CVE-2019-20503: the last parameter exceeds its INIT, but not the packet.
#[test]
fn parameter_partly_outside_its_chunk() {
    let mut init = vec![1, 0, 0, 28];
    init.extend([0; 16]);
    init.extend([0, 5, 0, 12, 192, 0, 2, 1]);
    init.extend([11, 0, 0, 4]);
    let Ok(Chunk::Init(read)) = decode(&init) else {
        panic!("the fixed part is sound")
    };
    let error = TlvError::PastEnd {
        kind: 5,
        length: 12,
        remaining: 8,
    };
    assert_eq!(read.parameters.iter().collect::<Vec<_>>(), [Err(error)]);
    assert!(error.ends_walk());
}

#[test]
fn broken_lists_end_their_walk() {
    let walk = |bytes: &'static [u8]| {
        Parameters::from_bytes(Bytes::from_static(bytes))
            .iter()
            .collect::<Vec<_>>()
    };
    let ecn = Ok(Parameter::EcnCapable);
    for remaining in 1..4 {
        let bytes = [0x80, 0, 0, 4, 0, 5, 0];
        let list = Parameters::from_bytes(Bytes::copy_from_slice(&bytes[..4 + remaining]));
        assert_eq!(
            list.iter().collect::<Vec<_>>(),
            [ecn.clone(), Err(TlvError::Truncated { remaining })]
        );
    }
    let too_small = |length| Err(TlvError::LengthTooSmall { kind: 5, length });
    assert_eq!(
        walk(&[0x80, 0, 0, 4, 0, 5, 0, 0, 0, 0, 0, 0]),
        [ecn.clone(), too_small(0)]
    );
    assert_eq!(
        walk(&[0x80, 0, 0, 4, 0, 5, 0, 3, 0, 0, 0, 0]),
        [ecn.clone(), too_small(3)]
    );
    // A value of invalid length should affect only its own entry.
    let bad = Err(TlvError::BadLength { kind: 5, length: 7 });
    assert_eq!(walk(&[0, 5, 0, 7, 1, 2, 3, 0, 0x80, 0, 0, 4]), [bad, ecn]);
    // The padding of the last entry should be optional.
    let info = |bytes| Ok(Parameter::HeartbeatInfo(Bytes::from_static(bytes)));
    assert_eq!(walk(&[0, 1, 0, 5, 9]), [info(&[9])]);
    assert_eq!(walk(&[0, 1, 0, 5, 9, 0]), [info(&[9])]);
    assert_eq!(walk(&[0, 1, 0, 5, 9, 0, 0, 0]), [info(&[9])]);
}

#[test]
fn values_of_a_wrong_length() {
    for (kind, good) in [(5u16, 4usize), (6, 16), (9, 4), (0x8000, 0), (0xC000, 0)] {
        for value in 0..20 {
            let read =
                Parameters::from_bytes(Tlv::new(kind, &vec![1; value]).unwrap().whole().clone());
            let read = read.iter().next().unwrap();
            let expected = TlvError::BadLength {
                kind,
                length: value + 4,
            };
            assert_eq!(
                read.err(),
                (value != good).then_some(expected),
                "parameter {kind:#x}, {value} bytes"
            );
        }
    }
    for (kind, good) in [(1u16, 4usize), (3, 4), (4, 0), (7, 0), (9, 4), (10, 0)] {
        for value in 0..20 {
            let read = Causes::from_bytes(Tlv::new(kind, &vec![1; value]).unwrap().whole().clone());
            let read = read.iter().next().unwrap();
            let expected = TlvError::BadLength {
                kind,
                length: value + 4,
            };
            assert_eq!(
                read.err(),
                (value != good).then_some(expected),
                "cause {kind}, {value} bytes"
            );
        }
    }
    let addresses = Parameters::from_bytes(Bytes::from_static(&[0, 12, 0, 7, 0, 5, 0]));
    assert_eq!(
        addresses.iter().next(),
        Some(Err(TlvError::BadLength {
            kind: 12,
            length: 7
        }))
    );
}

/// The announced count of missing parameters must be checked as well.
#[test]
fn missing_parameters_miscounted() {
    for (count, bytes) in [
        (0, 2),
        (1, 0),
        (1, 4),
        (2, 3),
        (u32::MAX, 2),
        (0x8000_0001, 2),
    ] {
        let value = [&count.to_be_bytes()[..], &[0; 4][..bytes]].concat();
        let list = Causes::from_bytes(Tlv::new(2, &value).unwrap().whole().clone());
        let error = TlvError::BadLength {
            kind: 2,
            length: 8 + bytes,
        };
        assert_eq!(
            list.iter().next(),
            Some(Err(error)),
            "{count} in {bytes} bytes"
        );
    }
}

/// CVE-2010-1173: many unknown parameters request a report. The response should not exceed the
/// space that is reserved for it.
#[test]
fn many_unknown_parameters_to_report() {
    let entries = [0xC1, 0x23, 0, 5, 9, 0, 0, 0].repeat(8_000);
    let parameters = Parameters::from_bytes(entries.into());
    let mut answer = TlvWriter::new(1_000);
    let mut reported = 0;
    for parameter in &parameters {
        let parameter = parameter.unwrap();
        let Parameter::Unknown(tlv) = &parameter else {
            panic!("known?")
        };
        assert!(parameter.action().report && !parameter.action().stop);
        reported += usize::from(
            answer
                .push(&Parameter::UnrecognizedParameter(tlv.whole().clone()))
                .is_ok(),
        );
    }
    // Each report has 4 + 5 bytes and is padded to 12. The padding of the last one is not part of
    // the list.
    assert_eq!(reported, 83);
    let answer: Parameters = answer.finish();
    assert_eq!(answer.as_bytes().len(), 83 * 12 - 3);
    assert_eq!(answer.iter().filter(Result::is_ok).count(), 83);
}

/// CVE-2018-5803: nothing that is built from input of the peer should exceed a 16-bit length.
#[test]
fn echoes_that_do_not_fit_a_length() {
    let huge = Bytes::from(vec![0; 65_535]);
    assert_eq!(Tlv::new(1, &huge), Err(Full));
    assert!(
        Causes::of(&[Cause::UnrecognizedChunkType {
            chunk: huge.clone()
        }])
        .is_empty()
    );
    let largest = Cause::UnrecognizedChunkType {
        chunk: huge.slice(..(MAX_LIST - 4) / 4 * 4),
    };
    let causes = Causes::of(std::slice::from_ref(&largest));
    assert_eq!(causes.iter().collect::<Vec<_>>(), [Ok(largest)]);

    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, HEADER, usize::MAX);
    assert_eq!(
        builder.push(&CookieEcho {
            cookie: huge.clone()
        }),
        Err(Full)
    );
    assert_eq!(
        builder.push(&ErrorChunk {
            causes: Causes::from_bytes(huge)
        }),
        Err(Full)
    );
    assert!(builder.is_empty());
    builder
        .push(&Abort {
            tag_reflected: false,
            causes,
        })
        .unwrap();
    assert!(builder.finish(false) <= 65_535);
}

#[test]
fn a_limit_holds_to_the_byte() {
    let data = |size| Data {
        tsn: Tsn(1),
        stream_id: 0,
        ssn: Ssn(0),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from(vec![7; size]),
    };
    for (limit, largest) in [
        (1_472, 1_444),
        (1_475, 1_444),
        (1_476, 1_448),
        (28, 0),
        (32, 4),
    ] {
        let mut out = BytesMut::new();
        let mut builder = PacketBuilder::new(&mut out, HEADER, limit);
        assert_eq!(builder.push(&data(largest + 1)), Err(Full), "limit {limit}");
        builder.push(&data(largest)).unwrap();
        assert_eq!(builder.room(), 0);
        assert_eq!(builder.finish(false), limit / 4 * 4);
    }
    for limit in 0..16 {
        let mut out = BytesMut::new();
        let mut builder = PacketBuilder::new(&mut out, HEADER, limit);
        assert_eq!(builder.room(), 0);
        assert_eq!(builder.push(&crate::chunk::CookieAck), Err(Full));
    }
}

#[test]
fn a_builder_that_is_dropped_leaves_nothing() {
    let mut out = BytesMut::from(&b"kept"[..]);
    let mut builder = PacketBuilder::new(&mut out, HEADER, 100);
    builder
        .push(&Shutdown {
            cumulative_tsn_ack: Tsn(1),
        })
        .unwrap();
    drop(builder);
    assert_eq!(out, "kept");
}

/// If the allocation is large enough, many packets should use it, and finished packets should not
/// be moved.
#[test]
fn packets_share_an_allocation() {
    let mut out = BytesMut::with_capacity(64 * 1024);
    let place = out.as_ptr();
    for i in 0..40 {
        let mut builder = PacketBuilder::new(&mut out, HEADER, 1_472);
        builder
            .push(&CookieEcho {
                cookie: vec![0; 1_400].into(),
            })
            .unwrap();
        let length = builder.finish(false);
        let packet = out.split().freeze();
        assert_eq!(packet.as_ptr(), place.wrapping_add(i * length));
    }
}
