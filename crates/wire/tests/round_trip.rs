//! Property tests: an encoded value should be decoded to the same value, and decoded input should
//! be encoded with the same meaning.

use std::net::IpAddr;

use anabranch_wire::chunk::*;
use anabranch_wire::extension::*;
use anabranch_wire::tlv::{Tlv, TlvList, U16List};
use anabranch_wire::*;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::oracle::{
    check_packet, check_segment, read_chunks, read_extension, write_chunks, write_extensions,
};

const HEADER: CommonHeader = CommonHeader {
    source_port: 5000,
    destination_port: 5001,
    verification_tag: 7,
};

fn some_bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn any_parameter() -> impl Strategy<Value = Parameter> {
    const KNOWN: &[u16] = &[1, 5, 6, 7, 8, 9, 11, 12, 0x8000, 0x8008, 0xBF52, 0xC000];
    let unknown = (any::<u16>(), some_bytes(30))
        .prop_filter("known", |(kind, _)| !KNOWN.contains(kind))
        .prop_map(|(kind, value)| Parameter::Unknown(Tlv::new(kind, &value).unwrap()));
    prop_oneof![
        any::<IpAddr>().prop_map(Parameter::address),
        some_bytes(40).prop_map(Parameter::StateCookie),
        some_bytes(40).prop_map(Parameter::UnrecognizedParameter),
        any::<u32>().prop_map(Parameter::CookiePreservative),
        some_bytes(40).prop_map(Parameter::HostNameAddress),
        vec(any::<u16>(), 0..4)
            .prop_map(|kinds| Parameter::SupportedAddressTypes(U16List::of(&kinds))),
        Just(Parameter::EcnCapable),
        Just(Parameter::ForwardTsnSupported),
        Just(Parameter::Rsctp),
        some_bytes(9).prop_map(Parameter::SupportedExtensions),
        some_bytes(40).prop_map(Parameter::HeartbeatInfo),
        unknown,
    ]
}

fn any_parameters() -> impl Strategy<Value = Vec<Parameter>> {
    vec(any_parameter(), 0..6)
}

fn any_cause() -> impl Strategy<Value = Cause> {
    let unknown = (15u16.., some_bytes(30))
        .prop_map(|(code, value)| Cause::Unknown(Tlv::new(code, &value).unwrap()));
    prop_oneof![
        any::<u16>().prop_map(|stream_id| Cause::InvalidStreamIdentifier { stream_id }),
        vec(any::<u16>(), 0..5).prop_map(|kinds| Cause::MissingMandatoryParameter {
            kinds: U16List::of(&kinds)
        }),
        any::<u32>().prop_map(|measure_of_staleness| Cause::StaleCookie {
            measure_of_staleness
        }),
        Just(Cause::OutOfResource),
        some_bytes(20).prop_map(|parameter| Cause::UnresolvableAddress { parameter }),
        some_bytes(20).prop_map(|chunk| Cause::UnrecognizedChunkType { chunk }),
        Just(Cause::InvalidMandatoryParameter),
        any_parameters().prop_map(|list| Cause::UnrecognizedParameters {
            parameters: Parameters::of(&list)
        }),
        any::<u32>().prop_map(|tsn| Cause::NoUserData { tsn: Tsn(tsn) }),
        Just(Cause::CookieReceivedWhileShuttingDown),
        any_parameters().prop_map(|list| Cause::RestartWithNewAddresses {
            addresses: Parameters::of(&list)
        }),
        some_bytes(20).prop_map(|reason| Cause::UserInitiatedAbort { reason }),
        some_bytes(20).prop_map(|information| Cause::ProtocolViolation { information }),
        (any::<u16>(), any::<u16>())
            .prop_map(|(current, new)| Cause::RestartWithNewUdpPort { current, new }),
        unknown,
    ]
}

prop_compose! {
    fn any_data()(numbers in any::<(u32, u16, u16, u32)>(), bits in any::<[bool; 4]>(), user_data in some_bytes(200)) -> Data {
        Data {
            tsn: Tsn(numbers.0),
            stream_id: numbers.1,
            ssn: Ssn(numbers.2),
            ppid: numbers.3,
            unordered: bits[0],
            beginning: bits[1],
            ending: bits[2],
            immediate: bits[3],
            user_data,
        }
    }
}

prop_compose! {
    fn any_init()(numbers in any::<(u32, u32, u16, u16, u32)>(), parameters in any_parameters()) -> Init {
        Init {
            initiate_tag: numbers.0,
            a_rwnd: numbers.1,
            outbound_streams: numbers.2,
            inbound_streams: numbers.3,
            initial_tsn: Tsn(numbers.4),
            parameters: Parameters::of(&parameters),
        }
    }
}

prop_compose! {
    fn any_sack()(
        numbers in any::<(u32, u32)>(),
        gaps in vec(any::<(u16, u16)>(), 0..40),
        duplicates in vec(any::<u32>().prop_map(Tsn), 0..40),
    ) -> Sack {
        let gap_blocks = gaps.iter().map(|&(start, end)| GapAckBlock { start, end });
        OutgoingSack { cumulative_tsn_ack: Tsn(numbers.0), a_rwnd: numbers.1, gap_blocks, duplicates: &duplicates }.to_sack()
    }
}

fn any_chunk() -> impl Strategy<Value = Chunk> {
    let causes = || vec(any_cause(), 0..5).prop_map(|list| Causes::of(&list));
    let tsn = || any::<u32>().prop_map(Tsn);
    prop_oneof![
        any_data().prop_map(Chunk::Data),
        any_init().prop_map(Chunk::Init),
        any_init().prop_map(|init| Chunk::InitAck(InitAck(init))),
        any_sack().prop_map(Chunk::Sack),
        some_bytes(50).prop_map(|info| Chunk::Heartbeat(Heartbeat { info })),
        some_bytes(50).prop_map(|info| Chunk::HeartbeatAck(HeartbeatAck { info })),
        (any::<bool>(), causes()).prop_map(|(tag_reflected, causes)| Chunk::Abort(Abort {
            tag_reflected,
            causes
        })),
        tsn().prop_map(|cumulative_tsn_ack| Chunk::Shutdown(Shutdown { cumulative_tsn_ack })),
        Just(Chunk::ShutdownAck),
        causes().prop_map(|causes| Chunk::Error(ErrorChunk { causes })),
        some_bytes(100).prop_map(|cookie| Chunk::CookieEcho(CookieEcho { cookie })),
        Just(Chunk::CookieAck),
        tsn().prop_map(|lowest_tsn| Chunk::Ecne(Ecne { lowest_tsn })),
        tsn().prop_map(|lowest_tsn| Chunk::Cwr(Cwr { lowest_tsn })),
        any::<bool>()
            .prop_map(|tag_reflected| Chunk::ShutdownComplete(ShutdownComplete { tag_reflected })),
        (0u16..2000).prop_map(|length| Chunk::Pad(Pad { length })),
        (15u8.., any::<u8>(), some_bytes(50))
            .prop_map(|(kind, flags, value)| unknown(kind, flags, &value)),
    ]
}

fn some_streams() -> impl Strategy<Value = U16List> {
    vec(any::<u16>(), 0..5).prop_map(|streams| U16List::of(&streams))
}

fn any_re_config_parameter() -> impl Strategy<Value = ReConfigParameter> {
    let tsn = || any::<u32>().prop_map(Tsn);
    prop_oneof![
        (any::<(u32, u32)>(), tsn(), some_streams()).prop_map(
            |((request, response), last_tsn, streams)| ReConfigParameter::OutgoingSsnReset {
                request,
                response,
                last_tsn,
                streams
            }
        ),
        (any::<u32>(), some_streams()).prop_map(|(request, streams)| {
            ReConfigParameter::IncomingSsnReset { request, streams }
        }),
        any::<u32>().prop_map(|request| ReConfigParameter::SsnTsnReset { request }),
        (any::<u32>(), 0u32..9, proptest::option::of((tsn(), tsn()))).prop_map(
            |(response, result, next_tsns)| {
                ReConfigParameter::Response {
                    response,
                    result: ReConfigResult::of(result),
                    next_tsns,
                }
            }
        ),
        any::<(u32, u16)>().prop_map(|(request, count)| {
            ReConfigParameter::AddOutgoingStreams { request, count }
        }),
        any::<(u32, u16)>().prop_map(|(request, count)| {
            ReConfigParameter::AddIncomingStreams { request, count }
        }),
    ]
}

fn any_asconf_parameter() -> impl Strategy<Value = AsconfParameter> {
    use AsconfRequest::{Add, Delete, SetPrimary};
    let request = proptest::sample::select(vec![Add, Delete, SetPrimary]);
    (request, any::<u32>(), any::<IpAddr>()).prop_map(|(request, correlation_id, address)| {
        AsconfParameter::Request {
            request,
            correlation_id,
            address,
        }
    })
}

fn any_asconf_response() -> impl Strategy<Value = AsconfResponse> {
    prop_oneof![
        any::<u32>().prop_map(|correlation_id| AsconfResponse::Success { correlation_id }),
        (any::<u32>(), vec(any_cause(), 0..3)).prop_map(|(correlation_id, causes)| {
            AsconfResponse::Error {
                correlation_id,
                causes: Causes::of(&causes),
            }
        }),
    ]
}

prop_compose! {
    fn any_i_data()(numbers in any::<(u32, u16, u32, u32)>(), bits in any::<[bool; 4]>(), user_data in some_bytes(200)) -> IData {
        IData {
            tsn: Tsn(numbers.0),
            stream_id: numbers.1,
            mid: Mid(numbers.2),
            position: if bits[0] { FragmentPosition::First { ppid: numbers.3 } } else { FragmentPosition::Later { fsn: Fsn(numbers.3) } },
            unordered: bits[1],
            ending: bits[2],
            immediate: bits[3],
            user_data,
        }
    }
}

fn any_extension() -> impl Strategy<Value = Extension> {
    let skipped = any::<(u16, u16)>().prop_map(|(stream_id, ssn)| SkippedStream {
        stream_id,
        ssn: Ssn(ssn),
    });
    let message =
        any::<(u16, bool, u32)>().prop_map(|(stream_id, unordered, mid)| SkippedMessage {
            stream_id,
            unordered,
            mid: Mid(mid),
        });
    let tsn = || any::<u32>().prop_map(Tsn);
    prop_oneof![
        (tsn(), vec(skipped, 0..20))
            .prop_map(|(tsn, skipped)| Extension::ForwardTsn(ForwardTsn::new(tsn, &skipped))),
        (tsn(), vec(message, 0..20))
            .prop_map(|(tsn, skipped)| Extension::IForwardTsn(IForwardTsn::new(tsn, skipped))),
        any_i_data().prop_map(Extension::IData),
        vec(any_re_config_parameter(), 0..4).prop_map(|list| Extension::ReConfig(ReConfig {
            parameters: TlvList::of(&list)
        })),
        (any::<(u16, u16)>(), some_bytes(40)).prop_map(|((shared_key_id, hmac_id), hmac)| {
            Extension::Auth(Auth {
                shared_key_id,
                hmac_id,
                hmac,
            })
        }),
        (any::<bool>(), some_bytes(60))
            .prop_map(|(restart, record)| Extension::Dtls(Dtls { restart, record })),
        (
            any::<u32>(),
            any::<IpAddr>(),
            vec(any_asconf_parameter(), 0..5)
        )
            .prop_map(|(serial, address, list)| Extension::Asconf(Asconf {
                serial,
                address,
                parameters: TlvList::of(&list),
            })),
        (any::<u32>(), vec(any_asconf_response(), 0..5)).prop_map(|(serial, list)| {
            Extension::AsconfAck(AsconfAck {
                serial,
                parameters: TlvList::of(&list),
            })
        }),
    ]
}

fn any_offered() -> impl Strategy<Value = InitParameter> {
    prop_oneof![
        any::<u32>().prop_map(|edmid| InitParameter::ZeroChecksumAcceptable { edmid }),
        some_bytes(40).prop_map(InitParameter::Random),
        some_bytes(9).prop_map(InitParameter::Chunks),
        some_streams().prop_map(InitParameter::HmacAlgo),
        any::<(u32, IpAddr)>().prop_map(|(correlation_id, address)| InitParameter::SetPrimary {
            correlation_id,
            address
        }),
        any::<u32>().prop_map(InitParameter::AdaptationLayer),
        (
            any::<u32>(),
            any::<[bool; 3]>(),
            0..32_u8,
            vec(any::<u8>(), 1..6)
        )
            .prop_map(
                |(tie_breaker, [restart, server, client], reserved, methods)| {
                    InitParameter::DtlsKeyManagement(DtlsKeyManagement {
                        tie_breaker,
                        restart,
                        server,
                        client,
                        reserved: reserved << 3,
                        methods: methods.into(),
                    })
                }
            ),
    ]
}

/// Creates a raw chunk by parsing a packet, because there is no other way to create one.
fn unknown(kind: u8, flags: u8, value: &[u8]) -> Chunk {
    let mut bytes = vec![
        0,
        1,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        kind,
        flags,
        0,
        4 + value.len() as u8,
    ];
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0xEE);
    let datagram = Bytes::from(bytes);
    let packet = Packet::parse(&datagram, Checksum::Ignore).unwrap();
    Chunk::decode(packet.chunks().next().unwrap().unwrap()).unwrap()
}

proptest! {
    #[test]
    fn packets_are_read_as_written(chunks in vec(any_chunk(), 1..6)) {
        let datagram = write_chunks(HEADER, &chunks);
        let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
        prop_assert_eq!(packet.header, HEADER);
        prop_assert_eq!(read_chunks(&packet), chunks);
    }

    #[test]
    fn parameters_come_back(list in any_parameters()) {
        let again: Result<Vec<Parameter>, _> = Parameters::of(&list).iter().collect();
        prop_assert_eq!(again, Ok(list));
    }

    #[test]
    fn extensions_come_back(chunks in vec(any_extension(), 1..5)) {
        prop_assert_eq!(read_extension(&write_extensions(&chunks)), chunks);
    }

    #[test]
    fn offers_come_back(list in vec(any_offered(), 0..6)) {
        let parameters: Vec<_> = list.iter().map(|offer| offer.to_parameter().unwrap()).collect();
        let parameters = Parameters::of(&parameters);
        let again: Result<Vec<_>, _> = TlvList::<InitParameter>::from_bytes(parameters.as_bytes().clone()).iter().collect();
        prop_assert_eq!(again, Ok(list));
        prop_assert!(parameters.iter().all(|parameter| matches!(parameter, Ok(Parameter::Unknown(_)))));
    }

    /// Inputs that are almost valid extension chunks.
    #[test]
    fn mangled_extensions(
        chunks in vec(any_extension(), 1..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = write_extensions(&chunks).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check_packet(&bytes.into());
    }

    #[test]
    fn causes_come_back(list in vec(any_cause(), 0..6)) {
        let again: Result<Vec<Cause>, _> = Causes::of(&list).iter().collect();
        prop_assert_eq!(again, Ok(list));
    }

    #[test]
    fn a_limit_is_kept(list in vec(any_parameter(), 0..12), limit in 0usize..200) {
        let fitting = Parameters::fitting(&list, limit);
        prop_assert!(fitting.as_bytes().len() <= limit);
        prop_assert!(fitting.iter().all(|parameter| list.contains(&parameter.unwrap())));
    }

    #[test]
    fn any_bytes_as_packet(bytes in vec(any::<u8>(), 0..300)) {
        check_packet(&bytes.into());
    }

    /// Inputs that are almost valid packets, so that they reach the inner decoders.
    #[test]
    fn mangled_packets(
        chunks in vec(any_chunk(), 1..5),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = write_chunks(HEADER, &chunks).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check_packet(&bytes.into());
    }

    #[test]
    fn any_bytes_as_segment(mut bytes in vec(any::<u8>(), 0..100), words in 5u8..16) {
        if let Some(offset) = bytes.get_mut(12) {
            *offset = words << 4;
        }
        check_segment(&bytes.into());
    }
}
