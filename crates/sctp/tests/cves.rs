//! Inputs that triggered vulnerabilities of other stacks. Chunks of extensions (ASCONF, AUTH,
//! FORWARD-TSN, RE-CONFIG) are unknown chunks here; `cves_of_extensions.rs` tests them with the
//! extensions enabled.
//!
//! Tests in other files: the parsers behind CVE-2019-20503 and CVE-2010-1173 also in `wire`
//! (`packet/tests.rs`); truncated cookies (CVE-2026-53224) in `hostile.rs` and, with a valid
//! signature, in `cookie.rs`; the gap counts of GHSA-jwjp-4649-v8jp and the chunk lengths of
//! sipsorcery 1758 and dpkt 583 in `hostile_chunks.rs`; more collisions in `collision.rs`; the
//! attacks of RFC 5062 in `rfc5062.rs` and `address_camping.rs`.

use crate::common;

use anabranch_sctp::{AssociationId, AssociationState, Config, DiscardReason, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, CookieEcho, Data, Init, kind};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::{Ssn, Tsn};
use bytes::Bytes;
use common::*;

/// An established pair, and the tags of packets to A and to Z.
fn pair(config: Config) -> (World, AssociationId, AssociationId, u32, u32) {
    let mut world = World::new(config);
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let tags = (world.tag_sent_by(Z), world.tag_sent_by(A));
    world.forget();
    (world, a, z, tags.0, tags.1)
}

fn chunk(kind: u8, length: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn encoded(chunk: &Chunk) -> Bytes {
    let packet = packet(A, 0, &[chunk]);
    packet.slice(12..)
}

fn sent_by(world: &World, host: usize) -> Vec<&Shot> {
    world
        .shots
        .iter()
        .filter(|shot| shot.from == host)
        .collect()
}

fn init_from(remote: u8) -> Chunk {
    Chunk::Init(Init {
        initiate_tag: 0xAAAA,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(u32::from(remote)),
        parameters: Parameters::empty(),
    })
}

#[test]
fn cve_2016_9555_and_2010_0008_lengths_out_of_the_blue() {
    let mut world = World::new(Config::default());
    for kind in 0..=255 {
        for length in [0, 1, 3, 5, 8, 17, 65_535] {
            world.inject(Z, raw_packet(A, 9, &chunk(kind, length, &[])));
        }
    }
    assert_eq!(sent_by(&world, Z).len(), 0, "none is answered");
    assert_eq!(discarded(&world, Z, DiscardReason::ChunkLength), 256 * 7);
}

#[test]
fn cve_2006_2934_a_packet_without_chunks() {
    let (mut world, a, _, to_a, _) = pair(Config::default());
    for len in 0..4 {
        world.inject(A, raw_packet(Z, to_a, &[0; 3][..len.min(3)]));
    }
    assert_eq!(sent_by(&world, A).len(), 0);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(
        discarded(&world, A, DiscardReason::Malformed),
        1,
        "no chunk"
    );
    assert_eq!(
        discarded(&world, A, DiscardReason::ChunkLength),
        3,
        "part of one"
    );
}

/// A parameter of any type whose length exceeds its chunk. No byte after the chunk may be read, and
/// no part of it reported.
#[test]
fn cve_2019_20503_the_last_parameter_reaches_past_the_init() {
    for kind in [0xC0FF_u16, 0x40FF, 0x80FF, 5, 7, 9] {
        let mut world = World::new(Config::default());
        let mut value = encoded(&init_from(1))[4..20].to_vec();
        value.extend_from_slice(&kind.to_be_bytes());
        value.extend_from_slice(&[0, 40, 10, 0, 0, 1]);
        let mut bytes = raw_packet(A, 0, &chunk(kind::INIT, 28, &value)).to_vec();
        // Bytes that a parser would read if it trusted the length.
        bytes.resize(bytes.len() + 64, 0x5E);
        bytes[12 + 3] = 28;
        for bytes in [&bytes[..12 + 28], &bytes[..]] {
            let mut bytes = bytes.to_vec();
            anabranch_wire::checksum::fill(&mut bytes);
            world.inject(Z, bytes.into());
        }
        let answers = sent_by(&world, Z);
        assert!(
            answers.iter().all(|shot| shot.chunks == "ABORT"),
            "{kind:#x}: {:?}",
            world.story
        );
        assert!(
            answers.iter().all(|shot| !shot.bytes.contains(&0x5E)),
            "{kind:#x}: what lay behind the chunk is told"
        );
        assert_eq!(discarded(&world, Z, DiscardReason::BadInit), 1, "{kind:#x}");
        assert_eq!(world.endpoints[Z].associations().count(), 0);
    }
}

/// All parameters request to be reported. The INIT ACK must contain its cookie, and fit into a
/// packet.
#[test]
fn cve_2010_1173_many_unknown_parameters() {
    let (mut world, _, _, _, _) = pair(Config::default());
    let mut value = encoded(&init_from(1))[4..20].to_vec();
    for index in 0..300_u16 {
        value.extend_from_slice(&(0xC100 + index).to_be_bytes());
        value.extend_from_slice(&[0, 4]);
    }
    let path = anabranch_transport::Path::new(address(Z, 0), [10, 0, 9, 9].into());
    let init = raw_packet(A, 0, &chunk(kind::INIT, 4 + value.len() as u16, &value));
    world.inject_from(Z, path, init);
    let ack = world.shot(Z, "INIT ACK");
    assert!(ack.len() <= 1_480, "{} bytes", ack.len());
    let Chunk::InitAck(ack) = chunks_of(&ack).remove(0) else {
        panic!("an INIT ACK");
    };
    let mut parameters = ack.0.parameters.iter().map(|it| it.expect("well formed"));
    assert!(parameters.any(|it| matches!(it, Parameter::StateCookie(_))));
    assert!(parameters.any(|it| matches!(it, Parameter::UnrecognizedParameter(_))));
}

/// Chunks with the right tag that are shorter than their fixed part: they are discarded without
/// further effect.
#[test]
fn cve_2021_3655_chunks_shorter_than_their_fields() {
    let fixed = [
        (kind::DATA, 12),
        (kind::INIT_ACK, 16),
        (kind::SACK, 12),
        (kind::SHUTDOWN, 4),
        (kind::ECNE, 4),
        (kind::CWR, 4),
    ];
    for (kind, fields) in fixed {
        for len in 0..fields {
            let (mut world, a, _, to_a, _) = pair(Config::default());
            let short = chunk(kind, 4 + len as u16, &vec![0; len]);
            // Bytes of the next chunk are in the position of the missing fields.
            let rest = chunk(0xBF, 20, &[0xFF; 16]);
            world.inject(A, raw_packet(Z, to_a, &[short, rest].concat()));
            assert_eq!(
                world.state(A, a),
                AssociationState::Established,
                "{kind} {len}"
            );
            assert_eq!(sent_by(&world, A).len(), 0, "{kind} {len}");
            let reasons = [DiscardReason::ChunkFields, DiscardReason::ForbiddenBundle];
            let thrown = reasons.map(|reason| discarded(&world, A, reason));
            assert_eq!(thrown.iter().sum::<u64>(), 1, "{kind} {len}");
        }
    }
    // An INIT must be the only chunk of its packet, so no other chunk follows it here.
    for len in 0..16 {
        let mut world = World::new(Config::default());
        let short = chunk(kind::INIT, 4 + len as u16, &vec![1; len]);
        world.inject(Z, raw_packet(A, 0, &short));
        assert_eq!(sent_by(&world, Z).len(), 0, "{len}");
        assert_eq!(discarded(&world, Z, DiscardReason::ChunkFields), 1, "{len}");
    }
}

#[test]
fn cve_2018_5803_an_answer_made_of_the_peers_input_outgrows_no_packet() {
    let (mut world, a, _, to_a, _) = pair(Config::default());
    for kind in [kind::HEARTBEAT, 0x7F, 0xFF, kind::ERROR] {
        for len in [1_400, 1_484, 1_485, 60_000, 65_400] {
            let mut value = vec![0, 1];
            value.extend_from_slice(&(len as u16).to_be_bytes());
            value.resize(len, 0xEE);
            world.inject(A, raw_packet(Z, to_a, &chunk(kind, 4 + len as u16, &value)));
        }
    }
    assert!(
        sent_by(&world, A)
            .iter()
            .all(|shot| shot.bytes.len() <= 1_480)
    );
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn cve_2014_4667_duplicate_cookie_echoes_use_up_no_place() {
    let mut world = World::new(Config::default());
    world.endpoints[Z].set_max_associations(2);
    let _ = world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    for _ in 0..100 {
        world.inject(Z, echo.clone());
    }
    assert_eq!(world.endpoints[Z].associations().count(), 1);
    let path = anabranch_transport::Path::new(address(Z, 0), [10, 0, 9, 9].into());
    world.inject_from(Z, path, packet(A, 0, &[&init_from(9)]));
    let acks = sent_by(&world, Z)
        .iter()
        .filter(|shot| shot.chunks == "INIT ACK" && shot.path.remote == path.remote)
        .count();
    assert_eq!(acks, 1, "the second place is free");
}

#[test]
fn cve_2014_0101_auth_before_the_cookie() {
    let mut world = World::new(Config::default());
    world.fate = lose("COOKIE ECHO", 1);
    let _ = world.connect();
    world.run_for(100 * MILLISECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let mut chunks = chunk(15, 8, &[0, 0, 0, 1]);
    chunks.extend_from_slice(&echo[12..]);
    let tag = header_of(&echo).verification_tag;
    world.inject(Z, raw_packet(A, tag, &chunks));
    assert_eq!(
        world.endpoints[Z].associations().count(),
        0,
        "a COOKIE ECHO comes first in its packet or not at all"
    );
}

#[test]
fn cve_2021_3772_a_bad_chunk_under_a_wrong_tag_ends_nothing() {
    let (mut world, a, _, to_a, to_z) = pair(Config::default());
    let bad = [
        chunk(kind::INIT, 20, &[0; 16]),
        chunk(kind::INIT, 8, &[0; 4]),
        chunk(kind::INIT_ACK, 20, &[0; 16]),
        chunk(kind::DATA, 16, &[0; 12]),
        chunk(kind::ABORT, 4, &[]),
        chunk(kind::SHUTDOWN, 4, &[]),
        chunk(kind::SACK, 8, &[0; 4]),
        chunk(kind::SHUTDOWN_COMPLETE, 4, &[]),
    ];
    for chunks in &bad {
        for tag in [0, to_z, to_a ^ 1, 1] {
            world.inject(A, raw_packet(Z, tag, chunks));
        }
    }
    assert_eq!(world.state(A, a), AssociationState::Established);
}

/// A packet full of one-byte fragments, the last fragment first: it must cause no recursion and
/// little work.
#[test]
fn cve_2006_2274_many_small_fragments() {
    let config = Config::default().with(|it| it.receive_buffer = 1 << 20);
    let (mut world, a, z, _, to_z) = pair(config);
    let first = initial_tsn_of_a(&mut world, a, z);
    let fragments: Vec<Chunk> = (0..2_000)
        .rev()
        .map(|index: u32| {
            Chunk::Data(Data {
                tsn: first.add(index),
                stream_id: 0,
                ssn: Ssn(1),
                ppid: 0,
                unordered: false,
                beginning: index == 0,
                ending: index == 1_999,
                immediate: false,
                user_data: Bytes::from_static(b"x"),
            })
        })
        .collect();
    for some in fragments.chunks(1_000) {
        let some: Vec<&Chunk> = some.iter().collect();
        world.inject(Z, packet(A, to_z, &some));
    }
    let got = world.receive_all(Z, z);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].payload.len(), 2_000);
}

/// Lets A send one message, and returns the TSN of A's next message.
fn initial_tsn_of_a(world: &mut World, a: AssociationId, z: AssociationId) -> Tsn {
    world.send(A, a, 0, "first");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    let sent = world
        .shots
        .iter()
        .flat_map(|shot| chunks_of(&shot.bytes))
        .find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
    sent.expect("DATA").next()
}

/// Tiny messages exhaust the buffer by their number before their bytes do. The window closes, opens
/// again when they are read, and all arrive.
#[test]
fn cve_2006_2275_tiny_messages_do_not_lock_the_window() {
    let config = Config::default().with(|it| it.receive_buffer = 4_000);
    let (mut world, a, z, _, _) = pair(config);
    world.narrate = false;
    let mut sent = 0_u32;
    let mut got = Vec::new();
    // The number of buffered and reported messages is bounded, too. Reading causes a window update,
    // so the peer needs no window probes.
    for round in 0..60 {
        while sent < 3_000 {
            let message = Bytes::from(vec![sent as u8; 1]);
            let association = world.endpoints[A].association_mut(a).unwrap();
            if association.send_buffer().unsent() > 200
                || association
                    .send(world.now, message, &SendOptions::new())
                    .is_err()
            {
                break;
            }
            sent += 1;
        }
        world.drain(A);
        world.run_for(100 * MILLISECOND);
        // No message is read during the first second.
        if round >= 10 {
            got.extend(world.receive_all(Z, z));
            assert!(round > 10 || got.len() <= 320, "{} held", got.len());
        }
        if got.len() == 3_000 {
            break;
        }
    }
    assert_eq!(got.len(), 3_000, "all of them within 6 s");
    let stats = world.endpoints[A].association(a).unwrap().stats();
    assert!(stats.sender.chunks_retransmitted < 5, "{stats:?}");
    for (number, message) in got.into_iter().enumerate() {
        assert_eq!(message.payload.into_bytes()[..], [number as u8]);
    }
}

/// RFC 5062 §2.3: an INIT that lists many addresses is answered once, to its source. Other
/// addresses are not probed before the cookie has been returned from the source.
#[test]
fn rfc_5062_listed_addresses_draw_nothing_before_the_cookie() {
    let mut world = World::new(Config::default());
    let listed: Vec<Parameter> = (0..200)
        .map(|last| Parameter::Ipv4Address([10, 7, 0, last].into()))
        .collect();
    let Chunk::Init(init) = init_from(1) else {
        panic!()
    };
    let init = Chunk::Init(Init {
        parameters: Parameters::of(&listed),
        ..init
    });
    world.fate = Box::new(|_| Fate::Drop);
    world.inject(Z, packet(A, 0, &[&init]));
    let answers = sent_by(&world, Z);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].path.remote, address(A, 0));
    // After the cookie is returned, each of the few stored addresses gets at most one HEARTBEAT
    // until one is answered.
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let cookie = ack
        .parameters
        .iter()
        .flatten()
        .find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
    let echo = Chunk::CookieEcho(CookieEcho {
        cookie: cookie.expect("a cookie"),
    });
    world.forget();
    world.inject(Z, packet(A, ack.initiate_tag, &[&echo]));
    let mut probed: Vec<_> = sent_by(&world, Z)
        .iter()
        .filter(|shot| shot.chunks == "HEARTBEAT")
        .map(|shot| shot.path.remote)
        .collect();
    let probes = probed.len();
    probed.dedup();
    assert_eq!(probes, probed.len(), "each once");
    assert!(probes <= 8, "{probes}");
}

fn discarded(world: &World, host: usize, reason: DiscardReason) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// CVE-2014-7841, 3688, 3687, 3673, CVE-2021-3655, CVE-2020-6831, CVE-2022-46871, CVE-2009-0065:
/// chunks of extensions that were not negotiated: complete, truncated and many.
#[test]
fn extensions_that_are_not_spoken_here_are_unknown_chunks() {
    const AUTH: u8 = 0x0F;
    const ASCONF_ACK: u8 = 0x80;
    const RE_CONFIG: u8 = 0x82;
    const FORWARD_TSN: u8 = 0xC0;
    const ASCONF: u8 = 0xC1;
    let bodies: [&[u8]; 5] = [
        &[],
        // ASCONF with a serial number only; with an address parameter of an illegal family;
        // truncated; and of length 0.
        &[0, 0, 0, 1],
        &[0, 0, 0, 1, 0xC0, 0x01, 0, 8, 0, 5, 0, 4],
        &[0, 0, 0, 1, 0, 5, 0, 8, 10, 0],
        &[0, 0, 0, 1, 0xFF, 0xFF, 0, 0],
    ];
    let (mut world, a, _, to_a, _) = pair(Config::default());
    for kind in [AUTH, ASCONF_ACK, RE_CONFIG, FORWARD_TSN, ASCONF] {
        for body in bodies {
            let one = chunk(kind, 4 + body.len() as u16, body);
            world.inject(A, raw_packet(Z, to_a, &one));
            world.inject(A, raw_packet(Z, to_a, &one));
            world.inject(A, raw_packet(Z, to_a, &one.repeat(1_400 / one.len())));
        }
    }
    assert_eq!(world.state(A, a), AssociationState::Established);
    let answers = sent_by(&world, A);
    assert!(answers.iter().all(|shot| shot.bytes.len() <= 1_480));
    assert!(
        answers.len() <= 5 * 5 * 3 * 2,
        "{} answers to 75 packets",
        answers.len()
    );
    // The chunk was not processed as a FORWARD TSN, so data still arrives.
    let z = world.only_association(Z);
    world.send(Z, z, 0, vec![1; 3_000]);
    world.run_for(SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
}

/// Duplicate COOKIE ECHOs in every state leave one association in an unchanged state (RFC 9260
/// §5.2.4).
#[test]
fn cve_2013_2206_a_duplicate_cookie_echo_leaves_no_half_made_association() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let z = world.only_association(Z);
    for _ in 0..3 {
        world.inject(Z, echo.clone());
        assert_eq!(world.state(Z, z), AssociationState::Established);
    }
    // The same should hold during and after the shutdown.
    world.fate = lose("SHUTDOWN ACK", 2);
    world.shutdown(A, a);
    world.run_for(30 * MILLISECOND);
    for _ in 0..3 {
        world.inject(Z, echo.clone());
        assert_eq!(world.endpoints[Z].associations().count(), 1);
    }
    world.run_for(30 * SECOND);
    world.inject(Z, echo);
    let left: Vec<_> = world.endpoints[Z].associations().collect();
    assert!(
        left.iter()
            .all(|&id| world.state(Z, id) == AssociationState::Closed)
    );
    assert!(discarded(&world, Z, DiscardReason::LateCookie) > 0);
}

/// A state cookie is fully determined by the seed and the INIT, so it contains no uninitialized
/// memory.
#[test]
fn cve_2013_5209_a_cookie_holds_nothing_but_what_was_put_in() {
    let cookie_of = || {
        let mut world = World::new(Config::default());
        // Uninitialized memory would differ between the two runs, because of these allocations.
        let rubbish: Vec<Vec<u8>> = (0..100).map(|len| vec![0xA5; len * 7]).collect();
        drop(rubbish);
        world.inject(Z, packet(A, 0, &[&init_from(1)]));
        world.shot(Z, "INIT ACK")
    };
    assert_eq!(cookie_of(), cookie_of());
}

#[test]
fn cve_2006_2271_ecne_where_there_is_no_association() {
    let mut world = World::new(Config::default());
    for kind in [kind::ECNE, kind::CWR] {
        world.inject(Z, raw_packet(A, 9, &chunk(kind, 8, &[0, 0, 0, 1])));
    }
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(discarded(&world, Z, DiscardReason::OutOfTheBlue), 2);
}

/// A COOKIE ECHO in fragments: each fragment is treated as a forged cookie.
#[test]
fn cve_2006_2272_a_cookie_echo_in_pieces() {
    let mut world = World::new(Config::default());
    world.fate = lose("COOKIE ECHO", 1);
    let _ = world.connect();
    world.run_for(100 * MILLISECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let tag = header_of(&echo).verification_tag;
    let Chunk::CookieEcho(CookieEcho { cookie }) = chunks_of(&echo).remove(0) else {
        panic!()
    };
    let pieces = cookie.len().div_ceil(16);
    for piece in cookie.chunks(16) {
        let one = chunk(kind::COOKIE_ECHO, 4 + piece.len() as u16, piece);
        world.inject(Z, raw_packet(A, tag, &one));
    }
    assert_eq!(
        discarded(&world, Z, DiscardReason::InvalidCookie),
        pieces as u64
    );
    assert_eq!(world.endpoints[Z].associations().count(), 0);
}

/// CVE-2015-1421 and CVE-2014-5077: both ends connect at the same time, and the INITs have AUTH
/// parameters, although AUTH is off here (RFC 4895 §3): Random, Chunk List and Requested HMAC
/// Algorithm, of which some have no value.
#[test]
fn cve_2015_1421_and_2014_5077_a_collision_with_the_parameters_of_auth() {
    const RANDOM: u16 = 0x8002;
    const CHUNKS: u16 = 0x8003;
    const HMAC_ALGO: u16 = 0x8004;
    let sets: [&[(u16, &[u8])]; 4] = [
        &[
            (RANDOM, &[7; 32]),
            (CHUNKS, &[0xC1, 0x80]),
            (HMAC_ALGO, &[0, 1]),
        ],
        &[(RANDOM, &[]), (CHUNKS, &[]), (HMAC_ALGO, &[])],
        &[(HMAC_ALGO, &[0, 1])],
        &[],
    ];
    let init = |tag, set: &[(u16, &[u8])]| {
        let of = |&(kind, value): &(u16, &[u8])| {
            Parameter::Unknown(anabranch_wire::tlv::Tlv::new(kind, value).unwrap())
        };
        let parameters: Vec<_> = set.iter().map(of).collect();
        Chunk::Init(Init {
            initiate_tag: tag,
            a_rwnd: 65_536,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(tag),
            parameters: Parameters::of(&parameters),
        })
    };
    for first in sets {
        for second in sets {
            let mut world = World::new(Config::default());
            world.fate = Box::new(|_| Fate::Drop);
            let a = world.connect();
            // Two incarnations of the other end, whose INITs cross ours; the cookies are returned
            // in either order.
            let mut echoes = Vec::new();
            for (tag, set) in [(0x11, first), (0x22, second)] {
                world.forget();
                world.inject(A, packet(Z, 0, &[&init(tag, set)]));
                let Chunk::InitAck(ack) = chunks_of(&world.shot(A, "INIT ACK")).remove(0) else {
                    panic!()
                };
                let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
                    Parameter::StateCookie(cookie) => Some(cookie),
                    _ => None,
                });
                let cookie = cookie.expect("a cookie");
                let echo = Chunk::CookieEcho(CookieEcho { cookie });
                echoes.push(packet(Z, ack.initiate_tag, &[&echo]));
                world.now += MILLISECOND;
            }
            for echo in [&echoes[1], &echoes[0], &echoes[1]] {
                world.inject(A, echo.clone());
                assert_eq!(world.only_association(A), a);
                assert_eq!(world.state(A, a), AssociationState::Established);
            }
            assert_eq!(world.tag_sent_by(A), 0x22, "the younger life's");
        }
    }
}
