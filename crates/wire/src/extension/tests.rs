//! Byte-exact tests of every chunk, parameter and cause of the extensions, and tests of the errors.

mod re_config;

use bytes::{Bytes, BytesMut};

use super::*;
use crate::cause::Causes;
use crate::packet::{Checksum, CommonHeader, Packet, PacketBuilder};
use crate::parameter::{Parameter, Parameters};
use crate::serial::{Fsn, Mid, Ssn, Tsn};
use crate::tlv::{Tlv, TlvError, TlvItem, TlvList, U16List};
use crate::{Cause, Chunk, UnknownAction};

const HEADER: CommonHeader = CommonHeader {
    source_port: 1,
    destination_port: 1,
    verification_tag: 0,
};

/// A chunk of exactly these bytes.
fn raw(bytes: &[u8]) -> RawChunk {
    let datagram = Bytes::from([&[0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], bytes].concat());
    let packet = Packet::parse(&datagram, Checksum::Ignore).unwrap();
    packet.chunks().next().unwrap().unwrap()
}

/// Asserts that `chunk` is encoded as `bytes`, that `bytes` are decoded as `chunk`, and that the
/// decoder of the base protocol handles them as unknown.
fn is(chunk: Extension, bytes: &[u8]) {
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, HEADER, 1_472);
    builder.push(&chunk).unwrap();
    builder.finish(true);
    assert_eq!(out[12..], *bytes, "{chunk:?}");
    assert_eq!(chunk.encoded_len(), bytes.len());
    let raw = raw(bytes);
    assert_eq!(Chunk::decode(raw.clone()), Ok(Chunk::Unknown(raw.clone())));
    assert_eq!(raw.kind, chunk.kind());
    assert_eq!(Extension::decode(raw), Ok(chunk));
}

/// Asserts that `item` is encoded as `bytes` (without the last padding), and that `bytes` are
/// decoded as `item`.
fn is_item<T: TlvItem + Clone + PartialEq + std::fmt::Debug>(item: T, bytes: &'static [u8]) {
    let list = TlvList::of(std::slice::from_ref(&item));
    assert_eq!(list.as_bytes()[..], *bytes, "{item:?}");
    assert_eq!(item.encoded_len(), bytes.len().next_multiple_of(4));
    let read = TlvList::<T>::from_bytes(Bytes::from_static(bytes));
    assert_eq!(read.iter().collect::<Vec<_>>(), [Ok(item)]);
}

/// Decoding error of the only entry in `bytes`, which must be invalid.
fn refused<T: TlvItem + std::fmt::Debug>(bytes: &'static [u8]) -> TlvError {
    let list = TlvList::<T>::from_bytes(Bytes::from_static(bytes));
    let mut walk = list.iter();
    let error = walk.next().expect("an entry").expect_err("refused");
    assert!(!error.ends_walk() && walk.next().is_none());
    error
}

const fn of_length(kind: u16, length: usize) -> TlvError {
    TlvError::BadLength { kind, length }
}

/// Chunks of each type, without flags, are truncated to every shorter length. Values that are too
/// short should be rejected, and nothing should panic.
#[test]
fn chunks_that_are_too_short_are_refused() {
    for &(kind, least) in SHORTEST {
        for length in 4_usize..least {
            let mut bytes = vec![kind, 0, 0, length as u8];
            bytes.resize(length.next_multiple_of(4), 0);
            let needed = least;
            assert_eq!(
                Extension::decode(raw(&bytes)),
                Err(DecodeError::TooShort {
                    kind,
                    length,
                    needed
                })
            );
        }
    }
}

#[test]
fn forward_tsn() {
    let skipped = [
        SkippedStream {
            stream_id: 0x0506,
            ssn: Ssn(0x0708),
        },
        SkippedStream {
            stream_id: 9,
            ssn: Ssn(0xFFFF),
        },
    ];
    let forward = ForwardTsn::new(Tsn(0x0102_0304), &skipped);
    assert!(forward.skipped().eq(skipped));
    is(
        Extension::ForwardTsn(forward),
        &[0xC0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0xFF, 0xFF],
    );
    is(
        Extension::ForwardTsn(ForwardTsn::new(Tsn(1), &[])),
        &[0xC0, 0, 0, 8, 0, 0, 0, 1],
    );
    for length in 9..12 {
        assert_eq!(
            Extension::decode(raw(&[0xC0, 0, 0, length, 1, 2, 3, 4, 5, 6, 7, 8])),
            Err(DecodeError::PartialEntry {
                kind: 0xC0,
                length: length.into()
            })
        );
    }
}

#[test]
fn as_many_as_a_chunk_holds() {
    let skipped = vec![
        SkippedStream {
            stream_id: 1,
            ssn: Ssn(1)
        };
        20_000
    ];
    let forward = ForwardTsn::new(Tsn(1), &skipped);
    assert_eq!(
        (forward.skipped().len(), forward.encoded_len()),
        (16_381, 65_532)
    );
    let message = SkippedMessage {
        stream_id: 1,
        unordered: true,
        mid: Mid(1),
    };
    let forward = IForwardTsn::new(Tsn(1), std::iter::repeat(message));
    assert_eq!(
        (forward.skipped().len(), forward.encoded_len()),
        (8_190, 65_528)
    );
    for (room, few, fewer) in [
        (0, 0, 0),
        (8, 0, 0),
        (12, 1, 0),
        (16, 2, 1),
        (1_460, 363, 181),
    ] {
        assert_eq!(ForwardTsn::skipped_within(room), few);
        assert_eq!(IForwardTsn::skipped_within(room), fewer);
    }
}

#[test]
fn i_forward_tsn() {
    let skipped = [
        SkippedMessage {
            stream_id: 0x0506,
            unordered: false,
            mid: Mid(0x0708_090A),
        },
        SkippedMessage {
            stream_id: 7,
            unordered: true,
            mid: Mid(u32::MAX),
        },
    ];
    let forward = IForwardTsn::new(Tsn(0x0102_0304), skipped);
    assert!(forward.skipped().eq(skipped));
    #[rustfmt::skip]
    let bytes = [
        0xC2, 0, 0, 24, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 0, 7, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF,
    ];
    is(Extension::IForwardTsn(forward), &bytes);
    // The 15 reserved bits should be ignored.
    let Ok(Extension::IForwardTsn(read)) = Extension::decode(raw(&[
        0xC2, 0, 0, 16, 0, 0, 0, 1, 0, 2, 0xFF, 0xFE, 0, 0, 0, 3,
    ])) else {
        panic!("sound")
    };
    let message = SkippedMessage {
        stream_id: 2,
        unordered: false,
        mid: Mid(3),
    };
    assert!(read.skipped().eq([message]));
    assert_eq!(
        Extension::decode(raw(&[0xC2, 0, 0, 12, 0, 0, 0, 1, 0, 2, 0, 0])),
        Err(DecodeError::PartialEntry {
            kind: 0xC2,
            length: 12
        })
    );
}

#[test]
fn i_data() {
    let mut data = IData {
        tsn: Tsn(0x0102_0304),
        stream_id: 0x0506,
        mid: Mid(0x0708_090A),
        position: FragmentPosition::Later {
            fsn: Fsn(0x0B0C_0D0E),
        },
        unordered: false,
        ending: false,
        immediate: false,
        user_data: Bytes::from_static(b"abcde"),
    };
    let mut expected = *b"\x40\x00\x00\x19\x01\x02\x03\x04\x05\x06\x00\x00\x07\x08\x09\x0a\x0b\x0c\x0d\x0eabcde\0\0\0";
    for flags in 0..16 {
        data.ending = flags & 1 != 0;
        data.position = if flags & 2 != 0 {
            FragmentPosition::First { ppid: 0x0B0C_0D0E }
        } else {
            FragmentPosition::Later {
                fsn: Fsn(0x0B0C_0D0E),
            }
        };
        data.unordered = flags & 4 != 0;
        data.immediate = flags & 8 != 0;
        expected[1] = flags;
        is(Extension::IData(data.clone()), &expected);
    }
    // The four reserved flags and the reserved field should be ignored.
    (expected[1], expected[10], expected[11]) = (0xFF, 0xFF, 0xFF);
    assert_eq!(
        Extension::decode(raw(&expected)),
        Ok(Extension::IData(data))
    );
}

#[test]
fn auth() {
    is(
        Extension::Auth(Auth {
            shared_key_id: 0x0102,
            hmac_id: hmac_id::SHA_256,
            hmac: Bytes::from_static(b"hmac!"),
        }),
        b"\x0f\0\0\x0d\x01\x02\0\x03hmac!\0\0\0",
    );
}

fn request(request: AsconfRequest, correlation_id: u32, address: &str) -> AsconfParameter {
    AsconfParameter::Request {
        request,
        correlation_id,
        address: address.parse().unwrap(),
    }
}

#[test]
fn asconf() {
    #[rustfmt::skip]
    is(
        Extension::Asconf(Asconf {
            serial: 0x0102_0304,
            address: "192.0.2.1".parse().unwrap(),
            parameters: TlvList::of(&[
                request(AsconfRequest::Add, 1, "2001:db8::2"),
                request(AsconfRequest::Delete, 2, "0.0.0.0"),
                request(AsconfRequest::SetPrimary, 3, "192.0.2.2"),
                AsconfParameter::Unknown(Tlv::new(0xC0FF, b"?").unwrap()),
            ]),
        }),
        &[
            0xC1, 0, 0, 81, 1, 2, 3, 4, 0, 5, 0, 8, 192, 0, 2, 1,
            0xC0, 1, 0, 28, 0, 0, 0, 1, 0, 6, 0, 20, 0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
            0xC0, 2, 0, 16, 0, 0, 0, 2, 0, 5, 0, 8, 0, 0, 0, 0,
            0xC0, 4, 0, 16, 0, 0, 0, 3, 0, 5, 0, 8, 192, 0, 2, 2,
            0xC0, 0xFF, 0, 5, b'?', 0, 0, 0,
        ],
    );
    #[rustfmt::skip]
    is(
        Extension::Asconf(Asconf {
            serial: 1,
            address: "2001:db8::1".parse().unwrap(),
            parameters: TlvList::empty(),
        }),
        &[0xC1, 0, 0, 28, 0, 0, 0, 1, 0, 6, 0, 20, 0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    );
}

#[test]
fn asconf_without_an_address() {
    for value in [
        &[][..],
        &[0, 5, 0],
        &[0, 5, 0, 12, 192, 0, 2, 1],
        &[0, 5, 0, 4],
        &[0, 11, 0, 8, b'h', b'o', b's', b't'],
        &[0xC0, 1, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 1],
    ] {
        let mut bytes = vec![0xC1, 0, 0, 8 + value.len() as u8, 0, 0, 0, 1];
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        assert_eq!(
            Extension::decode(raw(&bytes)),
            Err(DecodeError::NoAddress),
            "{value:?}"
        );
    }
    type P = AsconfParameter;
    let nothing = TlvError::NoAddress { kind: 0xC001 };
    assert_eq!(refused::<P>(&[0xC0, 1, 0, 8, 0, 0, 0, 1]), nothing);
    assert_eq!(
        refused::<P>(&[0xC0, 1, 0, 16, 0, 0, 0, 1, 0, 5, 0, 9, 192, 0, 2, 1]),
        nothing
    );
    assert_eq!(
        refused::<P>(&[0xC0, 1, 0, 16, 0, 0, 0, 1, 0, 9, 0, 8, 192, 0, 2, 1]),
        nothing
    );
    assert_eq!(refused::<P>(&[0xC0, 2, 0, 6, 0, 0]), of_length(0xC002, 6));
    let two = b"\xc0\x04\x00\x18\0\0\0\x01\0\x05\0\x08\xc0\0\x02\x01\0\x05\0\x08\xc0\0\x02\x02";
    assert_eq!(refused::<P>(two), of_length(0xC004, 24));
    assert_eq!(refused::<InitParameter>(two), of_length(0xC004, 24));
}

#[test]
fn asconf_ack() {
    let tlv = Tlv::new(0xC002, b"asked").unwrap();
    let cause = ExtensionCause::DeleteLastAddress {
        parameter: tlv.whole().clone(),
    };
    let causes = Causes::from_bytes(TlvList::of(std::slice::from_ref(&cause)).as_bytes().clone());
    // The decoder of the base protocol (RFC 9260) should return the cause as unknown.
    let Some(Ok(Cause::Unknown(unknown))) = causes.iter().next() else {
        panic!("a cause of an extension is unknown to the base")
    };
    assert_eq!(ExtensionCause::decode(unknown), Ok(cause));
    #[rustfmt::skip]
    is(
        Extension::AsconfAck(AsconfAck {
            serial: 0x0102_0304,
            parameters: TlvList::of(&[
                AsconfResponse::Success { correlation_id: 1 },
                AsconfResponse::Error { correlation_id: 2, causes },
            ]),
        }),
        &[
            0x80, 0, 0, 37, 1, 2, 3, 4, 0xC0, 5, 0, 8, 0, 0, 0, 1,
            0xC0, 3, 0, 21, 0, 0, 0, 2, 0, 0xA0, 0, 13, 0xC0, 2, 0, 9, b'a', b's', b'k', b'e', b'd', 0, 0, 0,
        ],
    );
    is_item(
        AsconfResponse::Unknown(Tlv::new(1, b"").unwrap()),
        &[0, 1, 0, 4],
    );
    type R = AsconfResponse;
    assert_eq!(refused::<R>(&[0xC0, 5, 0, 6, 0, 0]), of_length(0xC005, 6));
    assert_eq!(
        refused::<R>(&[0xC0, 3, 0, 7, 0, 0, 0]),
        of_length(0xC003, 7)
    );
}

#[test]
fn causes() {
    let parameter = Bytes::from_static(b"\xc0\x01\0\x05!");
    let of = |make: fn(Bytes) -> ExtensionCause| make(parameter.clone());
    is_item(
        of(|parameter| ExtensionCause::DeleteLastAddress { parameter }),
        b"\0\xa0\0\x09\xc0\x01\0\x05!",
    );
    is_item(
        of(|parameter| ExtensionCause::ResourceShortage { parameter }),
        b"\0\xa1\0\x09\xc0\x01\0\x05!",
    );
    is_item(
        of(|parameter| ExtensionCause::DeleteSourceAddress { parameter }),
        b"\0\xa2\0\x09\xc0\x01\0\x05!",
    );
    is_item(ExtensionCause::IllegalAsconfAck, &[0, 0xA3, 0, 4]);
    is_item(
        of(|parameter| ExtensionCause::NoAuthorization { parameter }),
        b"\0\xa4\0\x09\xc0\x01\0\x05!",
    );
    is_item(
        ExtensionCause::UnsupportedHmac { hmac_id: 0x0203 },
        &[1, 5, 0, 6, 2, 3],
    );
    is_item(
        ExtensionCause::Unknown(Tlv::new(4, b"").unwrap()),
        &[0, 4, 0, 4],
    );
    for (code, cause) in [
        (100, ExtensionCause::MissingDtlsChunkSupport),
        (101, ExtensionCause::NoCommonDtlsKeyManagement),
        (102, ExtensionCause::DtlsTieBreakerCollision),
        (103, ExtensionCause::IncompatibleDtlsRoles),
    ] {
        let list = TlvList::of(std::slice::from_ref(&cause));
        assert_eq!(list.as_bytes()[..], [0, code, 0, 4]);
        assert_eq!(list.iter().collect::<Vec<_>>(), [Ok(cause)]);
        let longer = TlvList::<ExtensionCause>::from_bytes(Bytes::from(vec![0, code, 0, 5, 1]));
        let error = longer.iter().next();
        assert_eq!(error, Some(Err(of_length(code.into(), 5))));
    }
    type C = ExtensionCause;
    assert_eq!(refused::<C>(&[0, 0xA3, 0, 5, 0]), of_length(0xA3, 5));
    assert_eq!(refused::<C>(&[1, 5, 0, 8, 0, 1, 0, 0]), of_length(0x105, 8));
}

#[test]
fn offers() {
    is_item(
        InitParameter::ZeroChecksumAcceptable { edmid: edmid::DTLS },
        &[0x80, 1, 0, 8, 0, 0, 0, 1],
    );
    is_item(
        InitParameter::Random(Bytes::from_static(b"dice!")),
        b"\x80\x02\0\x09dice!",
    );
    is_item(
        InitParameter::Chunks(Bytes::from_static(&[0xC1, 0x80])),
        &[0x80, 3, 0, 6, 0xC1, 0x80],
    );
    is_item(
        InitParameter::HmacAlgo(U16List::of(&[hmac_id::SHA_256, hmac_id::SHA_1])),
        &[0x80, 4, 0, 8, 0, 3, 0, 1],
    );
    is_item(
        InitParameter::SetPrimary {
            correlation_id: 5,
            address: [192, 0, 2, 1].into(),
        },
        &[0xC0, 4, 0, 16, 0, 0, 0, 5, 0, 5, 0, 8, 192, 0, 2, 1],
    );
    is_item(
        InitParameter::AdaptationLayer(0x0102_0304),
        &[0xC0, 6, 0, 8, 1, 2, 3, 4],
    );
    is_item(
        InitParameter::Unknown(Tlv::new(99, b"?").unwrap()),
        &[0, 99, 0, 5, b'?'],
    );
    type O = InitParameter;
    assert_eq!(refused::<O>(&[0x80, 1, 0, 4]), of_length(0x8001, 4));
    assert_eq!(
        refused::<O>(&[0x80, 4, 0, 7, 0, 3, 0]),
        of_length(0x8004, 7)
    );
    assert_eq!(refused::<O>(&[0xC0, 6, 0, 6, 0, 0]), of_length(0xC006, 6));
}

/// Compares the encoding with the figures of draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1 and §4.2,
/// byte by byte.
#[test]
fn dtls() {
    for (restart, flags) in [(false, 0), (true, 1)] {
        let record = Bytes::from_static(&[0x2C, 0xAB, 0xCD, 1, 2, 3]);
        let bytes = [
            0x41, flags, 0, 11, 0, 0x2C, 0xAB, 0xCD, 1, 2, 3, 0, /* aligned */
        ];
        is(Extension::Dtls(Dtls { restart, record }), &bytes);
    }
    // Reserved flags, the Pre-Padding and the Post-Padding should be ignored.
    let read = Extension::decode(raw(&[0x41, 0xFE, 0, 7, 0xFF, 1, 2, 0xFF]));
    let record = Bytes::from_static(&[1, 2]);
    let restart = false;
    assert_eq!(read, Ok(Extension::Dtls(Dtls { restart, record })));
    let (stop, report) = (true, true);
    assert_eq!(
        raw(&[0x41, 0, 0, 4]).action(),
        UnknownAction { stop, report }
    );
}

#[test]
fn dtls_key_management() {
    for bits in 0..8_u8 {
        let parameter = DtlsKeyManagement {
            tie_breaker: 0x0102_0304,
            restart: bits & 4 != 0,
            server: bits & 2 != 0,
            client: bits & 1 != 0,
            reserved: 0,
            methods: Bytes::from_static(&[192, 0]),
        };
        let bytes = [0x80, 6, 0, 11, 1, 2, 3, 4, bits, 192, 0];
        assert_eq!(parameter.whole()[..], bytes);
        let list = TlvList::of(&[InitParameter::DtlsKeyManagement(parameter.clone())]);
        assert_eq!(list.as_bytes()[..], bytes);
        let reserved = [0x80, 6, 0, 11, 1, 2, 3, 4, bits | 0xF8, 192, 0];
        let read = TlvList::<InitParameter>::from_bytes(Bytes::copy_from_slice(&reserved));
        let read: Vec<_> = read.iter().collect();
        let parameter = DtlsKeyManagement {
            reserved: 0xF8,
            ..parameter
        };
        assert_eq!(parameter.whole()[..], reserved, "keys are derived from it");
        assert_eq!(read, [Ok(InitParameter::DtlsKeyManagement(parameter))]);
    }
    // The parameter has no method.
    type O = InitParameter;
    assert_eq!(
        refused::<O>(&[0x80, 6, 0, 9, 1, 2, 3, 4, 7]),
        of_length(0x8006, 9)
    );
    assert_eq!(refused::<O>(&[0x80, 6, 0, 4]), of_length(0x8006, 4));
}

/// An endpoint that does not support an extension should handle its parameters as unknown, whether
/// they are valid or malformed.
#[test]
fn offers_among_parameters() {
    let offers = [
        InitParameter::Random(Bytes::from_static(&[7; 32])),
        InitParameter::SetPrimary {
            correlation_id: 1,
            address: [192, 0, 2, 1].into(),
        },
        InitParameter::ZeroChecksumAcceptable { edmid: edmid::DTLS },
    ];
    let parameters: Vec<_> = offers
        .iter()
        .map(|offer| offer.to_parameter().unwrap())
        .collect();
    let list = Parameters::of(&parameters);
    let same = TlvList::<InitParameter>::from_bytes(list.as_bytes().clone());
    assert!(same.iter().eq(offers.map(Ok)));
    let malformed = Parameters::from_bytes(Bytes::from_static(&[0x80, 1, 0, 4, 0x80, 4, 0, 5, 1]));
    for parameter in list.iter().chain(malformed.iter()) {
        assert!(
            matches!(parameter, Ok(Parameter::Unknown(_))),
            "{parameter:?}"
        );
    }
}
