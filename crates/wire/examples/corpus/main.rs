//! Writes the seeds of the fuzz targets: `cargo run -p anabranch-wire --example corpus
//! [DIRECTORY]`, by default `fuzz/corpus`. The seeds are valid packets that cover each chunk,
//! parameter and cause, and invalid packets that are modelled on bugs of other stacks.

mod segments;

use std::net::IpAddr;
use std::path::Path;

use anabranch_wire::chunk::*;
use anabranch_wire::extension::*;
use anabranch_wire::tlv::{Tlv, TlvList, U16List};
use anabranch_wire::*;
use bytes::{Bytes, BytesMut};

const HEADER: CommonHeader = CommonHeader {
    source_port: 5000,
    destination_port: 5001,
    verification_tag: 0xC0FF_EE00,
};

fn main() -> std::io::Result<()> {
    let root = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "fuzz/corpus".into());
    write_all(&Path::new(&root).join("packet"), "sound", sound_packets())?;
    write_all(
        &Path::new(&root).join("packet"),
        "unsound",
        unsound_packets(),
    )?;
    write_all(
        &Path::new(&root).join("segment"),
        "sound",
        segments::sound_segments(),
    )?;
    write_all(
        &Path::new(&root).join("segment"),
        "unsound",
        segments::unsound_segments(),
    )
}

fn write_all(directory: &Path, prefix: &str, files: Vec<(String, Bytes)>) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (name, bytes) in files {
        std::fs::write(directory.join(format!("{prefix}-{name}")), bytes)?;
    }
    Ok(())
}

fn sound_packets() -> Vec<(String, Bytes)> {
    let mut seeds: Vec<(String, Bytes)> = chunks()
        .into_iter()
        .map(|(name, chunk)| (name.to_owned(), packet(&[chunk])))
        .collect();
    seeds.extend(causes().into_iter().map(|cause| {
        let name = format!("error-cause-{:02}", cause.code());
        (
            name,
            packet(&[Chunk::Error(ErrorChunk {
                causes: Causes::of(&[cause]),
            })]),
        )
    }));
    let causes = Causes::of(&causes());
    seeds.push((
        "abort-all-causes".into(),
        packet(&[Chunk::Abort(Abort {
            tag_reflected: true,
            causes,
        })]),
    ));
    let all: Vec<Chunk> = chunks().into_iter().map(|(_, chunk)| chunk).collect();
    seeds.push(("bundle-all".into(), packet(&all)));
    let extensions = extensions();
    seeds.extend(
        extensions
            .iter()
            .map(|(name, chunk)| ((*name).to_owned(), packet(std::slice::from_ref(chunk)))),
    );
    let all: Vec<Extension> = extensions.into_iter().map(|(_, chunk)| chunk).collect();
    seeds.push(("bundle-extensions".into(), packet(&all)));
    seeds.push((
        "bundle-cookie-sack-data".into(),
        packet(&[
            Chunk::CookieAck,
            sack(0, 0),
            data(b"first", 3),
            data(b"second", 3),
        ]),
    ));
    seeds
}

fn packet<C: Encode>(chunks: &[C]) -> Bytes {
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, HEADER, 65_535);
    for chunk in chunks {
        builder.push(chunk).expect("a packet has room for it");
    }
    builder.finish(true);
    out.freeze()
}

fn chunks() -> Vec<(&'static str, Chunk)> {
    let tsn = Tsn(0xFFFF_FFFF);
    vec![
        ("data-whole", data(b"whole message", 0x03)),
        ("data-first", data(b"first fragment", 0x02)),
        ("data-middle-unordered", data(b"middle", 0x04)),
        ("data-last-immediate", data(b"last", 0x09)),
        ("data-empty", data(b"", 0x03)),
        ("init", Chunk::Init(init(init_parameters()))),
        ("init-offers", Chunk::Init(init(offers()))),
        ("init-bare", Chunk::Init(init(Vec::new()))),
        (
            "init-ack",
            Chunk::InitAck(InitAck(init(init_ack_parameters()))),
        ),
        ("sack", sack(0, 0)),
        ("sack-gaps", sack(3, 0)),
        ("sack-gaps-duplicates", sack(2, 3)),
        (
            "heartbeat",
            Chunk::Heartbeat(Heartbeat {
                info: Bytes::from_static(b"heartbeat info"),
            }),
        ),
        (
            "heartbeat-ack",
            Chunk::HeartbeatAck(HeartbeatAck {
                info: Bytes::from_static(b"heartbeat info"),
            }),
        ),
        (
            "abort",
            Chunk::Abort(Abort {
                tag_reflected: false,
                causes: Causes::empty(),
            }),
        ),
        (
            "shutdown",
            Chunk::Shutdown(Shutdown {
                cumulative_tsn_ack: tsn,
            }),
        ),
        ("shutdown-ack", Chunk::ShutdownAck),
        (
            "error",
            Chunk::Error(ErrorChunk {
                causes: Causes::of(&[Cause::OutOfResource]),
            }),
        ),
        (
            "cookie-echo",
            Chunk::CookieEcho(CookieEcho {
                cookie: Bytes::from_static(b"a cookie of 21 bytes."),
            }),
        ),
        ("cookie-ack", Chunk::CookieAck),
        ("ecne", Chunk::Ecne(Ecne { lowest_tsn: tsn })),
        ("cwr", Chunk::Cwr(Cwr { lowest_tsn: tsn })),
        (
            "shutdown-complete",
            Chunk::ShutdownComplete(ShutdownComplete {
                tag_reflected: true,
            }),
        ),
        ("unknown", unknown(0xC0)),
        ("unknown-stop", unknown(0x40)),
    ]
}

fn extensions() -> Vec<(&'static str, Extension)> {
    let tsn = Tsn(0xFFFF_FFFF);
    let skipped = |stream_id| SkippedStream {
        stream_id,
        ssn: Ssn(0xFFFF),
    };
    let message = |stream_id, unordered| SkippedMessage {
        stream_id,
        unordered,
        mid: Mid(u32::MAX),
    };
    let mut seeds = vec![
        (
            "forward-tsn",
            Extension::ForwardTsn(ForwardTsn::new(tsn, &[skipped(1), skipped(2)])),
        ),
        (
            "i-forward-tsn",
            Extension::IForwardTsn(IForwardTsn::new(tsn, [message(1, false), message(2, true)])),
        ),
        (
            "i-data-first",
            i_data(FragmentPosition::First { ppid: 51 }, false),
        ),
        (
            "i-data-last",
            i_data(FragmentPosition::Later { fsn: Fsn(7) }, true),
        ),
        (
            "auth",
            Extension::Auth(Auth {
                shared_key_id: 1,
                hmac_id: hmac_id::SHA_256,
                hmac: Bytes::from_static(&[0xAA; 32]),
            }),
        ),
        ("asconf", asconf()),
        ("asconf-ack", asconf_ack()),
        (
            "dtls",
            Extension::Dtls(Dtls {
                restart: false,
                record: Bytes::from_static(&[0x2F; 25]),
            }),
        ),
    ];
    seeds.extend(re_configs().map(|(name, parameters)| {
        let parameters = TlvList::of(&parameters);
        (name, Extension::ReConfig(ReConfig { parameters }))
    }));
    seeds
}

fn i_data(position: FragmentPosition, ending: bool) -> Extension {
    Extension::IData(IData {
        tsn: Tsn(0xFFFF_FFFE),
        stream_id: 3,
        mid: Mid(9),
        position,
        unordered: ending,
        ending,
        immediate: ending,
        user_data: Bytes::from_static(b"a position"),
    })
}

fn asconf() -> Extension {
    let request = |request, correlation_id, address: [u8; 4]| AsconfParameter::Request {
        request,
        correlation_id,
        address: address.into(),
    };
    Extension::Asconf(Asconf {
        serial: u32::MAX,
        address: [192, 0, 2, 1].into(),
        parameters: TlvList::of(&[
            request(AsconfRequest::Add, 1, [0; 4]),
            request(AsconfRequest::Delete, 2, [192, 0, 2, 1]),
            request(AsconfRequest::SetPrimary, 3, [192, 0, 2, 2]),
        ]),
    })
}

fn asconf_ack() -> Extension {
    let cause = ExtensionCause::NoAuthorization {
        parameter: Bytes::from_static(&[0xC0, 1, 0, 4]),
    };
    let causes = Causes::from_bytes(TlvList::of(&[cause]).as_bytes().clone());
    Extension::AsconfAck(AsconfAck {
        serial: u32::MAX,
        parameters: TlvList::of(&[
            AsconfResponse::Success { correlation_id: 1 },
            AsconfResponse::Error {
                correlation_id: 2,
                causes,
            },
        ]),
    })
}

fn re_configs() -> [(&'static str, Vec<ReConfigParameter>); 4] {
    let request = u32::MAX;
    let streams = U16List::of(&[1, 2, 3]);
    let response = |result, next_tsns| ReConfigParameter::Response {
        response: 1,
        result,
        next_tsns,
    };
    [
        (
            "re-config-resets",
            vec![
                ReConfigParameter::OutgoingSsnReset {
                    request,
                    response: 1,
                    last_tsn: Tsn(0xFFFF_FFFF),
                    streams: streams.clone(),
                },
                ReConfigParameter::IncomingSsnReset { request, streams },
            ],
        ),
        (
            "re-config-all",
            vec![ReConfigParameter::SsnTsnReset { request }],
        ),
        (
            "re-config-streams",
            vec![
                ReConfigParameter::AddOutgoingStreams { request, count: 1 },
                ReConfigParameter::AddIncomingStreams { request, count: 1 },
            ],
        ),
        (
            "re-config-responses",
            vec![
                response(ReConfigResult::InProgress, None),
                response(ReConfigResult::Performed, Some((Tsn(1), Tsn(2)))),
            ],
        ),
    ]
}

fn data(user_data: &'static [u8], flags: u8) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(0xFFFF_FFFE),
        stream_id: 3,
        ssn: Ssn(0xFFFF),
        ppid: 46,
        unordered: flags & 4 != 0,
        beginning: flags & 2 != 0,
        ending: flags & 1 != 0,
        immediate: flags & 8 != 0,
        user_data: Bytes::from_static(user_data),
    })
}

fn init(parameters: Vec<Parameter>) -> Init {
    Init {
        initiate_tag: 0x1234_5678,
        a_rwnd: 65_536,
        outbound_streams: 10,
        inbound_streams: 2_048,
        initial_tsn: Tsn(0xFFFF_FFF0),
        parameters: Parameters::of(&parameters),
    }
}

fn init_parameters() -> Vec<Parameter> {
    vec![
        Parameter::address(IpAddr::from([192, 0, 2, 1])),
        Parameter::address(IpAddr::from([0x2001, 0xDB8, 0, 0, 0, 0, 0, 1])),
        Parameter::CookiePreservative(1_000),
        Parameter::SupportedAddressTypes(U16List::of(&[5, 6, 11])),
        Parameter::EcnCapable,
        Parameter::ForwardTsnSupported,
        Parameter::SupportedExtensions(Bytes::from_static(&[0xC0, 0x82, 0xC1])),
        Parameter::HostNameAddress(Bytes::from_static(b"host.example\0")),
    ]
}

fn offers() -> Vec<Parameter> {
    [
        InitParameter::ZeroChecksumAcceptable { edmid: edmid::DTLS },
        InitParameter::Random(Bytes::from_static(&[0x55; 32])),
        InitParameter::Chunks(Bytes::from_static(&[0xC1, 0x80])),
        InitParameter::HmacAlgo(U16List::of(&[hmac_id::SHA_256, hmac_id::SHA_1])),
        InitParameter::SetPrimary {
            correlation_id: 1,
            address: [192, 0, 2, 1].into(),
        },
        InitParameter::AdaptationLayer(1),
    ]
    .iter()
    .map(|offer| offer.to_parameter().expect("it is short"))
    .collect()
}

fn init_ack_parameters() -> Vec<Parameter> {
    let unknown = Tlv::new(0xC123, b"?").expect("it is short");
    vec![
        Parameter::StateCookie(Bytes::from_static(b"a cookie of 21 bytes.")),
        Parameter::UnrecognizedParameter(unknown.whole().clone()),
        Parameter::Unknown(unknown),
        Parameter::address(IpAddr::from([192, 0, 2, 2])),
    ]
}

fn causes() -> Vec<Cause> {
    let bytes = Bytes::from_static;
    vec![
        Cause::InvalidStreamIdentifier { stream_id: 9 },
        Cause::MissingMandatoryParameter {
            kinds: U16List::of(&[7, 5, 6]),
        },
        Cause::StaleCookie {
            measure_of_staleness: 1_000_000,
        },
        Cause::OutOfResource,
        Cause::UnresolvableAddress {
            parameter: bytes(&[0, 11, 0, 8, b'h', b'o', b's', b't']),
        },
        Cause::UnrecognizedChunkType {
            chunk: bytes(&[0xC1, 0, 0, 6, 1, 2]),
        },
        Cause::InvalidMandatoryParameter,
        Cause::UnrecognizedParameters {
            parameters: Parameters::of(&init_ack_parameters()[2..]),
        },
        Cause::NoUserData { tsn: Tsn(7) },
        Cause::CookieReceivedWhileShuttingDown,
        Cause::RestartWithNewAddresses {
            addresses: Parameters::of(&init_parameters()[..2]),
        },
        Cause::UserInitiatedAbort {
            reason: bytes(b"done with it"),
        },
        Cause::ProtocolViolation {
            information: bytes(b"SACK of a TSN never sent"),
        },
        Cause::Unknown(Tlv::new(0xB0, b"!").expect("it is short")),
    ]
}

fn sack(gap_blocks: u16, duplicates: u32) -> Chunk {
    let duplicates: Vec<Tsn> = (0..duplicates).map(Tsn).collect();
    let gap_blocks = (1..=gap_blocks).map(|i| GapAckBlock {
        start: 3 * i,
        end: 3 * i + 1,
    });
    let gap_blocks = gap_blocks.collect::<Vec<_>>().into_iter();
    let cumulative_tsn_ack = Tsn(0xFFFF_FFFE);
    Chunk::Sack(
        OutgoingSack {
            cumulative_tsn_ack,
            a_rwnd: 1_500,
            gap_blocks,
            duplicates: &duplicates,
        }
        .to_sack(),
    )
}

fn unknown(kind: u8) -> Chunk {
    let datagram = raw(&[kind, 0xFF, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0]);
    let packet = Packet::parse(&datagram, Checksum::Verify).expect("it is sound");
    Chunk::Unknown(
        packet
            .chunks()
            .next()
            .expect("there is one")
            .expect("it is sound"),
    )
}

/// A packet whose chunks are exactly these bytes.
fn raw(chunks: &[u8]) -> Bytes {
    let mut bytes = vec![0x13, 0x88, 0x13, 0x89, 0xC0, 0xFF, 0xEE, 0, 0, 0, 0, 0];
    bytes.extend(chunks);
    checksum::fill(&mut bytes);
    bytes.into()
}

fn unsound_packets() -> Vec<(String, Bytes)> {
    let init = |length: u8, parameters: &[u8]| {
        [
            &[
                1, 0, 0, length, 0, 0, 0, 1, 0, 0, 0x10, 0, 0, 1, 0, 1, 0, 0, 0, 1,
            ][..],
            parameters,
        ]
        .concat()
    };
    let sack = |gaps: u8, duplicates: u8| {
        [
            3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0x10, 0, 0, gaps, 0, duplicates, 0, 2, 0, 2,
        ]
    };
    let flaws: Vec<(&str, Vec<u8>)> = vec![
        ("no-chunk", vec![]),
        ("chunk-length-0", vec![6, 0, 0, 0]),
        ("chunk-length-3", vec![11, 0, 0, 4, 6, 0, 0, 3]),
        ("chunk-past-packet", vec![6, 0, 0xFF, 0xFF, 0, 4, 0, 4]),
        ("chunk-header-cut", vec![11, 0, 0, 4, 6, 0]),
        ("padding-cut", vec![10, 0, 0, 5, 1]),
        ("data-short", vec![0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0]),
        ("init-short", vec![1, 0, 0, 8, 0, 0, 0, 1]),
        (
            "parameter-past-chunk",
            [init(28, &[0, 5, 0, 12, 192, 0, 2, 1]), vec![11, 0, 0, 4]].concat(),
        ),
        ("parameter-length-0", init(28, &[0, 5, 0, 0, 192, 0, 2, 1])),
        (
            "parameter-wrong-length",
            init(28, &[0, 5, 0, 7, 192, 0, 2, 0]),
        ),
        (
            "parameters-unknown-many",
            init(100, &[0xC1, 0x23, 0, 5, 9, 0, 0, 0].repeat(10)),
        ),
        ("sack-gap-count", sack(200, 0).to_vec()),
        ("sack-duplicate-count", sack(1, 200).to_vec()),
        (
            "forward-tsn-partial",
            vec![0xC0, 0, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0],
        ),
        (
            "i-forward-tsn-partial",
            vec![0xC2, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0],
        ),
        ("i-data-short", [&[0x40, 3, 0, 16][..], &[0; 12]].concat()),
        (
            "re-config-odd",
            vec![0x82, 0, 0, 13, 0, 14, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0],
        ),
        (
            "re-config-one-tsn",
            [&[0x82, 0, 0, 20, 0, 16, 0, 16][..], &[0; 12]].concat(),
        ),
        ("auth-short", vec![0x0F, 0, 0, 6, 0, 1, 0, 0]),
        (
            "asconf-no-address",
            vec![0xC1, 0, 0, 12, 0, 0, 0, 1, 0xC0, 1, 0, 4],
        ),
        (
            "asconf-address-past-parameter",
            [
                &[0xC1, 0, 0, 32, 0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 1][..],
                &[0xC0, 1, 0, 16, 0, 0, 0, 1, 0, 6, 0, 20, 192, 0, 2, 1],
            ]
            .concat(),
        ),
        (
            "asconf-ack-cause-length-0",
            vec![
                0x80, 0, 0, 20, 0, 0, 0, 1, 0xC0, 3, 0, 12, 0, 0, 0, 1, 0, 0xA0, 0, 0,
            ],
        ),
        ("heartbeat-without-info", vec![4, 0, 0, 8, 0, 2, 0, 4]),
        ("cause-length-0", vec![9, 0, 0, 8, 0, 1, 0, 0]),
        (
            "cause-miscounted",
            vec![9, 0, 0, 16, 0, 2, 0, 10, 0, 0, 0, 9, 0, 7, 0, 0],
        ),
    ];
    let mut seeds: Vec<_> = flaws
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), raw(&bytes)))
        .collect();
    seeds.push(("header-cut".into(), raw(&[]).slice(..11)));
    seeds
}
