//! Byte-exact tests of every chunk, parameter and cause.

use bytes::Bytes;

use super::*;
use crate::cause::{Cause, Causes};
use crate::packet::{Checksum, CommonHeader, Packet, PacketBuilder};
use crate::parameter::{Parameter, Parameters};
use crate::serial::{Ssn, Tsn};
use crate::tlv::{Tlv, U16List};

/// Asserts that `chunk` is encoded as `bytes`, and that `bytes` are decoded as `chunk`.
fn is(chunk: Chunk, bytes: &[u8]) {
    let header = CommonHeader {
        source_port: 1,
        destination_port: 1,
        verification_tag: 0,
    };
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, header, 1_472);
    builder.push(&chunk).unwrap();
    builder.finish(true);
    assert_eq!(out[12..], *bytes, "{chunk:?}");
    assert_eq!(chunk.encoded_len(), bytes.len());
    let datagram = out.freeze();
    let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
    let raw: Vec<_> = packet.chunks().map(Result::unwrap).collect();
    assert_eq!(raw.len(), 1);
    assert_eq!(raw[0].kind, chunk.kind());
    assert_eq!(Chunk::decode(raw[0].clone()), Ok(chunk));
}

fn bytes(bytes: &'static [u8]) -> Bytes {
    Bytes::from_static(bytes)
}

#[test]
fn data() {
    let mut data = Data {
        tsn: Tsn(0x0102_0304),
        stream_id: 0x0506,
        ssn: Ssn(0x0708),
        ppid: 0x090A_0B0C,
        unordered: false,
        beginning: false,
        ending: false,
        immediate: false,
        user_data: bytes(b"abcde"),
    };
    let mut expected =
        *b"\x00\x00\x00\x15\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0cabcde\0\0\0";
    for flags in 0..16 {
        data.ending = flags & 1 != 0;
        data.beginning = flags & 2 != 0;
        data.unordered = flags & 4 != 0;
        data.immediate = flags & 8 != 0;
        expected[1] = flags;
        is(Chunk::Data(data.clone()), &expected);
    }
    assert!(!data.has_no_user_data());
    data.user_data = Bytes::new();
    assert!(data.has_no_user_data());
    is(
        Chunk::Data(data),
        b"\x00\x0f\x00\x10\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c",
    );
}

#[test]
fn init_and_init_ack() {
    let init = Init {
        initiate_tag: 0x1122_3344,
        a_rwnd: 0x0001_0000,
        outbound_streams: 10,
        inbound_streams: 0xFFFF,
        initial_tsn: Tsn(0xFFFF_FFFF),
        parameters: Parameters::of(&[
            Parameter::address("192.0.2.1".parse().unwrap()),
            Parameter::address("2001:db8::1".parse().unwrap()),
            Parameter::CookiePreservative(1_000),
            Parameter::EcnCapable,
            Parameter::ForwardTsnSupported,
            Parameter::SupportedExtensions(bytes(&[0xC0, 0x82])),
            Parameter::SupportedAddressTypes(U16List::of(&[5, 6, 11])),
        ]),
    };
    #[rustfmt::skip]
    let mut expected = [
        1, 0, 0, 82, 0x11, 0x22, 0x33, 0x44, 0, 1, 0, 0, 0, 10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0, 5, 0, 8, 192, 0, 2, 1,
        0, 6, 0, 20, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0, 9, 0, 8, 0, 0, 0x03, 0xE8,
        0x80, 0, 0, 4,
        0xC0, 0, 0, 4,
        0x80, 8, 0, 6, 0xC0, 0x82, 0, 0,
        0, 12, 0, 10, 0, 5, 0, 6, 0, 11, 0, 0,
    ];
    // The length of a chunk includes the padding of each parameter except the last (RFC 9260 §3.2).
    is(Chunk::Init(init.clone()), &expected);
    expected[0] = 2;
    is(Chunk::InitAck(InitAck(init)), &expected);
}

/// A parameter with the type number of RSCTP but another value belongs to another use of the
/// number. It should be skipped without a report.
#[test]
fn rsctp_is_recognised_by_its_value() {
    let list = Parameters::of(&[Parameter::Rsctp]);
    assert_eq!(list.as_bytes()[..], *b"\xbf\x52\0\x08RBE1");
    assert_eq!(list.iter().next(), Some(Ok(Parameter::Rsctp)));
    let other = Parameters::from_bytes(bytes(b"\xbf\x52\0\x08RBE2"));
    let Some(Ok(other)) = other.iter().next() else {
        panic!("a parameter of unknown type is no error")
    };
    assert!(matches!(other, Parameter::Unknown(_)));
    assert!(!other.action().report && !other.action().stop);
}

#[test]
fn parameters_of_an_init_ack() {
    let list = Parameters::of(&[
        Parameter::StateCookie(bytes(b"cookie")),
        Parameter::UnrecognizedParameter(bytes(&[0xC1, 2, 0, 5, 9])),
        Parameter::HostNameAddress(bytes(b"a.b\0")),
        Parameter::HeartbeatInfo(bytes(b"x")),
        Parameter::Unknown(Tlv::new(0x1234, b"?").unwrap()),
    ]);
    #[rustfmt::skip]
    let expected = [
        0, 7, 0, 10, b'c', b'o', b'o', b'k', b'i', b'e', 0, 0,
        0, 8, 0, 9, 0xC1, 2, 0, 5, 9, 0, 0, 0,
        0, 11, 0, 8, b'a', b'.', b'b', 0,
        0, 1, 0, 5, b'x', 0, 0, 0,
        0x12, 0x34, 0, 5, b'?',
    ];
    assert_eq!(list.as_bytes()[..], expected);
    let kinds: Vec<u16> = list
        .iter()
        .map(|parameter| parameter.unwrap().kind())
        .collect();
    assert_eq!(kinds, [7, 8, 11, 1, 0x1234]);
}

#[test]
fn sack() {
    let gaps = [
        GapAckBlock { start: 2, end: 3 },
        GapAckBlock {
            start: 5,
            end: 0x0506,
        },
    ];
    let outgoing = OutgoingSack {
        cumulative_tsn_ack: Tsn(12),
        a_rwnd: 4_660,
        gap_blocks: gaps.iter().copied(),
        duplicates: &[Tsn(0xAABB_CCDD)],
    };
    #[rustfmt::skip]
    let expected = [
        3, 0, 0, 28, 0, 0, 0, 12, 0, 0, 0x12, 0x34, 0, 2, 0, 1,
        0, 2, 0, 3, 0, 5, 5, 6, 0xAA, 0xBB, 0xCC, 0xDD,
    ];
    let mut out = BytesMut::new();
    outgoing.encode(&mut out);
    assert_eq!(out[..], expected);
    let sack = outgoing.to_sack();
    assert!(sack.gap_blocks().eq(gaps));
    assert!(sack.duplicates().eq([Tsn(0xAABB_CCDD)]));
    is(Chunk::Sack(sack), &expected);
}

/// Example of RFC 9260 §3.3.4: TSNs up to 12, then 14 and 15, then 17.
#[test]
fn sack_of_the_rfc() {
    let gaps = [
        GapAckBlock { start: 2, end: 3 },
        GapAckBlock { start: 5, end: 5 },
    ];
    let outgoing = OutgoingSack {
        cumulative_tsn_ack: Tsn(12),
        a_rwnd: 4_660,
        gap_blocks: gaps.into_iter(),
        duplicates: &[],
    };
    #[rustfmt::skip]
    is(Chunk::Sack(outgoing.to_sack()), &[
        3, 0, 0, 24, 0, 0, 0, 12, 0, 0, 0x12, 0x34, 0, 2, 0, 0,
        0, 2, 0, 3, 0, 5, 0, 5,
    ]);
    let read = outgoing.to_sack();
    let acked: Vec<Tsn> = read
        .gap_blocks()
        .flat_map(|block| {
            (block.start..=block.end).map(|offset| read.cumulative_tsn_ack.add(offset.into()))
        })
        .collect();
    assert_eq!(acked, [Tsn(14), Tsn(15), Tsn(17)]);
}

#[test]
fn sack_as_long_as_the_space() {
    assert_eq!(Sack::gap_blocks_within(0, 0), 0);
    assert_eq!(Sack::gap_blocks_within(16, 0), 0);
    assert_eq!(Sack::gap_blocks_within(1_460, 0), 361);
    assert_eq!(Sack::gap_blocks_within(1_460, 1), 360);
    assert_eq!(Sack::gap_blocks_within(1_460, 400), 0);
    // There are more entries than fit into a chunk. Gap blocks should take precedence over
    // duplicates, and nothing should overflow.
    let duplicates = vec![Tsn(1); 20_000];
    let outgoing = OutgoingSack {
        cumulative_tsn_ack: Tsn(0),
        a_rwnd: 0,
        gap_blocks: (0..16_000u16).map(|start| GapAckBlock { start, end: start }),
        duplicates: &duplicates,
    };
    let sack = outgoing.to_sack();
    assert_eq!(
        (sack.gap_blocks().len(), sack.duplicates().len()),
        (16_000, 379)
    );
    assert_eq!(sack.encoded_len(), 65_532);
}

#[test]
fn heartbeats() {
    is(
        Chunk::Heartbeat(Heartbeat {
            info: bytes(b"info!"),
        }),
        b"\x04\x00\x00\x0d\x00\x01\x00\x09info!\0\0\0",
    );
    is(
        Chunk::HeartbeatAck(HeartbeatAck { info: bytes(b"") }),
        b"\x05\x00\x00\x08\x00\x01\x00\x04",
    );
}

#[test]
fn small_ones() {
    is(
        Chunk::Shutdown(Shutdown {
            cumulative_tsn_ack: Tsn(0x0102_0304),
        }),
        &[7, 0, 0, 8, 1, 2, 3, 4],
    );
    is(Chunk::ShutdownAck, &[8, 0, 0, 4]);
    is(
        Chunk::CookieEcho(CookieEcho {
            cookie: bytes(b"ab"),
        }),
        b"\x0a\x00\x00\x06ab\0\0",
    );
    is(Chunk::CookieAck, &[11, 0, 0, 4]);
    is(
        Chunk::Ecne(Ecne {
            lowest_tsn: Tsn(0x0102_0304),
        }),
        &[12, 0, 0, 8, 1, 2, 3, 4],
    );
    is(
        Chunk::Cwr(Cwr {
            lowest_tsn: Tsn(0x0102_0304),
        }),
        &[13, 0, 0, 8, 1, 2, 3, 4],
    );
    is(
        Chunk::ShutdownComplete(ShutdownComplete {
            tag_reflected: false,
        }),
        &[14, 0, 0, 4],
    );
    is(
        Chunk::ShutdownComplete(ShutdownComplete {
            tag_reflected: true,
        }),
        &[14, 1, 0, 4],
    );
    is(
        Chunk::Abort(Abort {
            tag_reflected: false,
            causes: Causes::empty(),
        }),
        &[6, 0, 0, 4],
    );
    is(
        Chunk::Abort(Abort {
            tag_reflected: true,
            causes: Causes::empty(),
        }),
        &[6, 1, 0, 4],
    );
}

#[test]
fn causes() {
    let addresses = Parameters::of(&[Parameter::address("192.0.2.1".parse().unwrap())]);
    let causes: [(Cause, &[u8]); 15] = [
        (
            Cause::InvalidStreamIdentifier { stream_id: 0x0102 },
            &[0, 1, 0, 8, 1, 2, 0, 0],
        ),
        (
            Cause::MissingMandatoryParameter {
                kinds: U16List::of(&[7, 0x0102]),
            },
            &[0, 2, 0, 12, 0, 0, 0, 2, 0, 7, 1, 2],
        ),
        (
            Cause::StaleCookie {
                measure_of_staleness: 0x0102_0304,
            },
            &[0, 3, 0, 8, 1, 2, 3, 4],
        ),
        (Cause::OutOfResource, &[0, 4, 0, 4]),
        (
            Cause::UnresolvableAddress {
                parameter: bytes(&[0, 11, 0, 6, b'x', 0]),
            },
            &[0, 5, 0, 10, 0, 11, 0, 6, b'x', 0, 0, 0],
        ),
        (
            Cause::UnrecognizedChunkType {
                chunk: bytes(&[0xC1, 7, 0, 4]),
            },
            &[0, 6, 0, 8, 0xC1, 7, 0, 4],
        ),
        (Cause::InvalidMandatoryParameter, &[0, 7, 0, 4]),
        (
            Cause::UnrecognizedParameters {
                parameters: Parameters::of(&[Parameter::EcnCapable]),
            },
            &[0, 8, 0, 8, 0x80, 0, 0, 4],
        ),
        (
            Cause::NoUserData {
                tsn: Tsn(0x0102_0304),
            },
            &[0, 9, 0, 8, 1, 2, 3, 4],
        ),
        (Cause::CookieReceivedWhileShuttingDown, &[0, 10, 0, 4]),
        (
            Cause::RestartWithNewAddresses { addresses },
            &[0, 11, 0, 12, 0, 5, 0, 8, 192, 0, 2, 1],
        ),
        (
            Cause::UserInitiatedAbort {
                reason: bytes(b"why"),
            },
            &[0, 12, 0, 7, b'w', b'h', b'y', 0],
        ),
        (
            Cause::RestartWithNewUdpPort {
                current: 9899,
                new: 40000,
            },
            &[0, 14, 0, 8, 0x26, 0xab, 0x9c, 0x40],
        ),
        (
            Cause::ProtocolViolation {
                information: bytes(b""),
            },
            &[0, 13, 0, 4],
        ),
        (
            Cause::Unknown(Tlv::new(0x0105, &[1]).unwrap()),
            &[1, 5, 0, 5, 1, 0, 0, 0],
        ),
    ];
    for (cause, expected) in &causes {
        let mut out = BytesMut::new();
        cause.encode(&mut out);
        assert_eq!(out[..], **expected, "{cause:?}");
        assert_eq!(cause.encoded_len(), expected.len());
        assert_eq!(cause.code(), u16::from_be_bytes([expected[0], expected[1]]));
        let padding = padding_of(expected);
        let chunk = [
            &[9, 0, 0, (4 + expected.len() - padding) as u8][..],
            expected,
        ]
        .concat();
        is(
            Chunk::Error(ErrorChunk {
                causes: Causes::of(std::slice::from_ref(cause)),
            }),
            &chunk,
        );
    }
    let (all, encoded): (Vec<Cause>, Vec<&[u8]>) = causes.into_iter().unzip();
    let list = Causes::of(&all);
    let encoded = encoded.concat();
    assert_eq!(list.as_bytes()[..], encoded[..encoded.len() - 3]);
    assert_eq!(list.iter().map(Result::unwrap).collect::<Vec<_>>(), all);
}

fn padding_of(entry: &[u8]) -> usize {
    entry.len() - usize::from(u16::from_be_bytes([entry[2], entry[3]]))
}
