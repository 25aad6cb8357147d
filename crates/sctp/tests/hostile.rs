//! Packets that an honest peer would not send: answered as the RFC says or not at all, and nothing else is touched.
//! Most rows of a list of other stacks' flaws have a test here or in the wire crate.

mod common;

use anabranch_sctp::{CloseReason, Config, Discard, Event, StateName, Violation};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Path, Transport};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::{
    Abort, Chunk, CookieEcho, Data, Ecne, Heartbeat, HeartbeatAck, Init, Shutdown, ShutdownComplete,
};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::{Ssn, Tsn};
use anabranch_wire::tlv::Tlv;
use anabranch_wire::{Cause, Causes, Encode};
use bytes::{Bytes, BytesMut};
use common::*;

fn init(parameters: Parameters) -> Chunk {
    Chunk::Init(Init {
        initiate_tag: 0xAAAA,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters,
    })
}

fn data(tsn: u32, user_data: &'static [u8]) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream_id: 0,
        ssn: Ssn(0),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from_static(user_data),
    })
}

fn abort(tag_reflected: bool) -> Chunk {
    Chunk::Abort(Abort {
        tag_reflected,
        causes: Causes::empty(),
    })
}

fn discarded(world: &World, host: usize, reason: Discard) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// An established pair, and the tags in packets to A and to Z.
fn pair() -> (
    World,
    anabranch_sctp::AssociationId,
    anabranch_sctp::AssociationId,
    u32,
    u32,
) {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let (to_z, to_a) = (world.tag_sent_by(A), world.tag_sent_by(Z));
    world.forget();
    (world, a, z, to_a, to_z)
}

/// Chunks of `bytes` padded, as one.
fn encoded(chunk: &Chunk) -> Bytes {
    let mut out = BytesMut::new();
    chunk.encode(&mut out);
    out.freeze()
}

#[test]
fn forged_replayed_and_truncated_cookies() {
    let mut world = World::new(Config::default());
    world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let tag = header_of(&echo).verification_tag;
    let Chunk::CookieEcho(CookieEcho { cookie }) = chunks_of(&echo).remove(0) else {
        panic!()
    };
    let z = world.only_association(Z);
    world.forget();
    let send = |world: &mut World, cookie: Bytes| {
        world.inject(
            Z,
            packet(A, tag, &[&Chunk::CookieEcho(CookieEcho { cookie })]),
        );
    };
    for len in [0, 1, 31, 32, 33, cookie.len() - 1] {
        send(&mut world, cookie.slice(..len));
    }
    for index in 0..cookie.len() {
        let mut forged = cookie.to_vec();
        forged[index] ^= 0x80;
        send(&mut world, forged.into());
    }
    assert_eq!(
        discarded(&world, Z, Discard::ForgedCookie),
        6 + cookie.len() as u64
    );
    assert!(
        !world.story.iter().any(|line| line.starts_with("Z -> ")),
        "in silence"
    );
    assert_eq!(world.state(Z, z), StateName::Established);
    // From another port or address, or under another tag, even a genuine one is worth nothing.
    let before = discarded(&world, Z, Discard::ForgedCookie);
    let stranger = Path::new(address(Z, 0), [10, 9, 9, 9].into());
    world.inject_from(Z, stranger, echo.clone());
    world.inject(Z, retag(&echo, tag ^ 1));
    let mut other_port = echo.to_vec();
    other_port[1] ^= 1;
    anabranch_wire::checksum::fill(&mut other_port);
    world.inject(Z, other_port.into());
    assert_eq!(discarded(&world, Z, Discard::ForgedCookie), before + 3);
    assert_eq!(world.endpoints[Z].associations().count(), 1);
}

#[test]
fn a_cookie_seen_on_the_way_revives_nothing_after_the_end() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let z = world.only_association(Z);
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert!(world.endpoints[Z].release(z));
    world.inject(Z, echo.clone());
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(discarded(&world, Z, Discard::LateCookie), 1);
    // Later it is stale as well.
    world.run_for(130 * SECOND);
    world.inject(Z, echo);
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(discarded(&world, Z, Discard::StaleCookie), 1);
}

#[test]
fn wrong_tags_touch_nothing() {
    let (mut world, a, _, to_a, to_z) = pair();
    for tag in [to_a ^ 1, to_z ^ 1, 0, u32::MAX] {
        if tag == to_a {
            continue;
        }
        for chunk in [
            data(1, b"x"),
            abort(false),
            abort(true),
            Chunk::Shutdown(Shutdown {
                cumulative_tsn_ack: Tsn(1),
            }),
            Chunk::ShutdownAck,
            Chunk::ShutdownComplete(ShutdownComplete {
                tag_reflected: false,
            }),
            Chunk::ShutdownComplete(ShutdownComplete {
                tag_reflected: true,
            }),
            Chunk::CookieAck,
            init(Parameters::empty()),
        ] {
            if tag == 0 && chunk.kind() == anabranch_wire::chunk::kind::INIT {
                continue;
            }
            world.inject(A, packet(Z, tag, &[&chunk]));
            assert_eq!(
                world.state(A, a),
                StateName::Established,
                "{tag:#x} {chunk:?}"
            );
        }
    }
    // ABORT with our own tag and the T bit, or the peer's tag without it (RFC 9260 §8.5.1 B).
    world.inject(A, packet(Z, to_a, &[&abort(true)]));
    world.inject(A, packet(Z, to_z, &[&abort(false)]));
    assert_eq!(world.state(A, a), StateName::Established);
    assert!(discarded(&world, A, Discard::BlindEnd) >= 2);
    assert!(
        !world.story.iter().any(|line| line.starts_with("A -> ")),
        "no answer: {:#?}",
        world.story
    );
    assert_eq!(world.told(A), []);
}

#[test]
fn an_abort_with_the_peers_tag_and_the_t_bit_is_believed() {
    let (mut world, a, _, _, to_z) = pair();
    world.inject(A, packet(Z, to_z, &[&abort(true)]));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::AbortedByPeer { cause: None })
    );
}

#[test]
fn init_must_be_alone_and_under_tag_0() {
    let (mut world, a, _, to_a, _) = pair();
    world.inject(A, packet(Z, to_a, &[&init(Parameters::empty())]));
    world.inject(
        A,
        packet(Z, 0, &[&init(Parameters::empty()), &data(1, b"x")]),
    );
    world.inject(
        A,
        packet(Z, to_a, &[&Chunk::CookieAck, &init(Parameters::empty())]),
    );
    assert_eq!(discarded(&world, A, Discard::VerificationTag), 1);
    assert_eq!(discarded(&world, A, Discard::ForbiddenBundle), 2);
    assert!(!world.story.iter().any(|line| line.contains("INIT ACK")));
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn a_flood_of_inits_leaves_nothing_behind() {
    let mut world = World::new(Config::default());
    world.narrate = false;
    for number in 0..20_000_u32 {
        let source = Path::new(
            address(Z, 0),
            std::net::Ipv4Addr::from(0x0B00_0000 + number).into(),
        );
        world.endpoints[Z].handle_datagram(
            world.now,
            source,
            Ecn::NotEct,
            packet(A, 0, &[&init(Parameters::empty())]),
        );
        if number % 100 == 0 {
            world.drain(Z);
        }
    }
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(world.endpoints[Z].poll_timeout(), None);
    // A driver that does not send finds no more than a handful of answers waiting.
    assert!(discarded(&world, Z, Discard::Overload) > 0);
    let mut out = BytesMut::new();
    let mut answers = 0;
    while world.endpoints[Z]
        .poll_transmit(world.now, &mut out)
        .is_some()
    {
        answers += 1;
    }
    assert!(answers <= 64, "{answers}");
}

#[test]
fn an_init_with_thousands_of_unknown_parameters_is_answered_in_one_small_packet() {
    let mut world = World::new(Config::default());
    let unknown = Parameter::Unknown(Tlv::new(0xFFFF, &[0; 12]).unwrap());
    let many = Parameters::of(&vec![unknown; 3_000]);
    world.inject(Z, packet(A, 0, &[&init(many)]));
    assert!(world.shot(Z, "INIT ACK").len() <= 1_480);
}

#[test]
fn an_init_whose_parameters_cannot_be_read_changes_nothing() {
    let (mut world, a, _, _, _) = pair();
    let list = Parameters::of(&[Parameter::Ipv4Address([10, 1, 1, 1].into())]);
    let cut = Parameters::from_bytes(list.as_bytes().slice(..6));
    world.inject(A, packet(Z, 0, &[&init(cut)]));
    assert_eq!(discarded(&world, A, Discard::BadInit), 1);
    assert_eq!(world.state(A, a), StateName::Established);
    assert_eq!(
        header_of(&world.shot(A, "ABORT")).verification_tag,
        0xAAAA,
        "told to whoever sent it"
    );
}

#[test]
fn init_fields_that_break_their_rules() {
    let mut world = World::new(Config::default());
    let Chunk::Init(good) = init(Parameters::empty()) else {
        panic!()
    };
    for (bad, answered) in [
        (
            Init {
                initiate_tag: 0,
                ..good.clone()
            },
            false,
        ),
        (
            Init {
                outbound_streams: 0,
                ..good.clone()
            },
            true,
        ),
        (
            Init {
                inbound_streams: 0,
                ..good.clone()
            },
            true,
        ),
        (
            Init {
                a_rwnd: 0,
                ..good.clone()
            },
            true,
        ),
    ] {
        world.forget();
        world.inject(Z, packet(A, 0, &[&Chunk::Init(bad)]));
        assert_eq!(
            world.story.len(),
            1 + usize::from(answered),
            "{:#?}",
            world.story
        );
    }
}

#[test]
fn zero_length_and_overlong_chunks_end_the_packet() {
    let (mut world, a, _, to_a, _) = pair();
    for chunk in [
        &[0x7F, 0, 0, 0][..],
        &[0, 3, 0, 0],
        &[3, 0, 0, 3],
        &[1, 0, 255, 255],
        &[6, 0, 0, 5],
        &[0xFF, 0],
    ] {
        world.inject(A, raw_packet(Z, to_a, chunk));
        world.inject(Z, raw_packet(A, 0x1234, chunk));
    }
    world.inject(A, raw_packet(Z, to_a, &[]));
    assert_eq!(discarded(&world, A, Discard::ChunkLength), 6);
    assert_eq!(discarded(&world, A, Discard::Malformed), 1);
    assert_eq!(world.state(A, a), StateName::Established);
    assert!(!world.story.iter().any(|line| line.starts_with("A -> ")));
}

#[test]
fn chunks_before_a_broken_one_count() {
    let (mut world, a, _, to_a, _) = pair();
    let mut bytes = encoded(&Chunk::Heartbeat(Heartbeat {
        info: Bytes::from_static(b"1234"),
    }))
    .to_vec();
    bytes.extend_from_slice(&[3, 0, 0, 200]);
    world.inject(A, raw_packet(Z, to_a, &bytes));
    assert!(
        world
            .story
            .iter()
            .any(|line| line == "A -> HEARTBEAT ACK -> Z")
    );
    assert_eq!(discarded(&world, A, Discard::ChunkLength), 1);
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn sack_that_counts_more_than_it_holds() {
    let (mut world, a, _, to_a, _) = pair();
    let mut sack = vec![3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255];
    world.inject(A, raw_packet(Z, to_a, &sack));
    sack[12..16].copy_from_slice(&[0, 1, 0, 0]);
    world.inject(A, raw_packet(Z, to_a, &sack));
    assert_eq!(discarded(&world, A, Discard::ChunkFields), 2);
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn sack_for_data_never_sent_is_a_protocol_violation() {
    let (mut world, a, _, to_a, _) = pair();
    world.send(A, a, 0, "x");
    let Some(Chunk::Data(sent)) = chunks_of(&world.shot(A, "DATA")).pop() else {
        panic!()
    };
    let beyond = sent.tsn.add(5).0.to_be_bytes();
    let mut sack = vec![3, 0, 0, 16];
    sack.extend_from_slice(&beyond);
    sack.extend_from_slice(&[0, 0, 255, 255, 0, 0, 0, 0]);
    world.inject(A, raw_packet(Z, to_a, &sack));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::PeerViolation(Violation::Protocol))
    );
    let Chunk::Abort(abort) = chunks_of(&world.shot(A, "ABORT")).remove(0) else {
        panic!()
    };
    assert_eq!(
        abort.causes.iter().next().unwrap().unwrap().code(),
        code::PROTOCOL_VIOLATION
    );
}

#[test]
fn data_without_user_data_ends_the_association() {
    let (mut world, a, _, to_a, _) = pair();
    world.inject(A, packet(Z, to_a, &[&data(42, b"")]));
    let reason = CloseReason::PeerViolation(Violation::NoUserData(Tsn(42)));
    assert_eq!(world.close_reason(A, a), Some(reason));
    let Chunk::Abort(abort) = chunks_of(&world.shot(A, "ABORT")).remove(0) else {
        panic!()
    };
    assert_eq!(
        abort.causes.iter().next(),
        Some(Ok(Cause::NoUserData { tsn: Tsn(42) }))
    );
}

#[test]
fn data_on_a_stream_that_does_not_exist_is_reported() {
    let mut world = World::with_configs(
        Config {
            inbound_streams: 2,
            ..Config::default()
        },
        Config {
            outbound_streams: 10,
            ..Config::default()
        },
    );
    let a = world.connect();
    world.run_for(SECOND);
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let to_a = world.tag_sent_by(Z);
    let Chunk::Data(odd) = data(ack.initial_tsn.0, b"x") else {
        panic!()
    };
    world.inject(
        A,
        packet(
            Z,
            to_a,
            &[&Chunk::Data(Data {
                stream_id: 2,
                ..odd
            })],
        ),
    );
    let answers = world
        .shots
        .iter()
        .rev()
        .find(|shot| shot.from == A)
        .unwrap();
    let Chunk::Error(error) = chunks_of(&answers.bytes).remove(0) else {
        panic!("{}", answers.chunks)
    };
    assert_eq!(
        error.causes.iter().next(),
        Some(Ok(Cause::InvalidStreamIdentifier { stream_id: 2 }))
    );
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn data_before_the_cookie() {
    let mut world = World::new(Config::default());
    world.inject(Z, packet(A, 5, &[&data(1, b"x")]));
    assert_eq!(world.story, ["? -> DATA -> Z", "Z -> ABORT -> A"]);
    world.fate = lose("COOKIE ACK", 1);
    let a = world.connect();
    world.run_for(45 * MILLISECOND);
    // The COOKIE ACK was lost; DATA that comes in COOKIE-ECHOED is not taken (RFC 9260 §6).
    assert_eq!(world.state(A, a), StateName::CookieEchoed);
    let z = world.only_association(Z);
    world.send(Z, z, 0, "early");
    world.run_for(30 * MILLISECOND);
    assert_eq!(discarded(&world, A, Discard::Unexpected), 1);
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1, "it comes again");
}

#[test]
fn out_of_the_blue() {
    let mut world = World::new(Config::default());
    let tag = 0x77;
    let silent: [&[&Chunk]; 6] = [
        &[&abort(false)],
        &[&Chunk::CookieAck],
        &[&Chunk::ShutdownComplete(ShutdownComplete {
            tag_reflected: false,
        })],
        &[&data(1, b"x"), &abort(false)],
        &[&Chunk::ShutdownAck, &abort(true)],
        &[&Chunk::Error(anabranch_wire::chunk::ErrorChunk {
            causes: Causes::of(&[Cause::StaleCookie {
                measure_of_staleness: 0,
            }]),
        })],
    ];
    for chunks in silent {
        world.forget();
        world.inject(Z, packet(A, tag, chunks));
        assert_eq!(world.story.len(), 1, "{:?}", world.story);
    }
    let answered: [(&Chunk, &str); 5] = [
        (&Chunk::ShutdownAck, "SHUTDOWN COMPLETE"),
        (&data(1, b"x"), "ABORT"),
        (
            &Chunk::Shutdown(Shutdown {
                cumulative_tsn_ack: Tsn(0),
            }),
            "ABORT",
        ),
        (
            &Chunk::Heartbeat(Heartbeat {
                info: Bytes::from_static(b"abcd"),
            }),
            "ABORT",
        ),
        (&Chunk::Ecne(Ecne { lowest_tsn: Tsn(0) }), "ABORT"),
    ];
    for (chunk, answer) in answered {
        world.forget();
        world.inject(Z, packet(A, tag, &[chunk]));
        let bytes = world.shot(Z, answer);
        assert_eq!(header_of(&bytes).verification_tag, tag, "reflected");
        assert_eq!(bytes[13] & 1, 1, "and the T bit says so");
    }
    assert_eq!(world.endpoints[Z].associations().count(), 0);
}

#[test]
fn nobody_answers_a_broadcast() {
    let mut world = World::new(Config::default());
    for remote in [[224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
        let path = Path::new(address(Z, 0), remote.into());
        world.inject_from(Z, path, packet(A, 0, &[&init(Parameters::empty())]));
    }
    assert_eq!(discarded(&world, Z, Discard::NotUnicast), 3);
    assert_eq!(world.story.len(), 3);
}

#[test]
fn a_wrong_checksum_or_port_is_nobodys_packet() {
    let mut world = World::new(Config::default());
    let good = packet(A, 0, &[&init(Parameters::empty())]);
    let mut bad = good.to_vec();
    bad[8] ^= 1;
    world.inject(Z, bad.into());
    let mut port = good.to_vec();
    port[3] ^= 1;
    anabranch_wire::checksum::fill(&mut port);
    world.inject(Z, port.into());
    assert_eq!(discarded(&world, Z, Discard::Checksum), 1);
    assert_eq!(discarded(&world, Z, Discard::Port), 1);
    assert_eq!(world.story.len(), 2);
}

#[test]
fn unknown_chunks_follow_their_two_high_bits() {
    for (kind, reported, goes_on) in [
        (0x3F, false, false),
        (0x7F, true, false),
        (0xBF, false, true),
        (0xFF, true, true),
    ] {
        let (mut world, _, _, to_a, _) = pair();
        let mut bytes = vec![kind, 0, 0, 8, 1, 2, 3, 4];
        bytes.extend_from_slice(&encoded(&Chunk::Heartbeat(Heartbeat {
            info: Bytes::from_static(b"1234"),
        })));
        world.inject(A, raw_packet(Z, to_a, &bytes));
        let answer = world
            .shots
            .iter()
            .find(|shot| shot.from == A)
            .map_or("", |shot| &shot.chunks);
        assert_eq!(answer.contains("ERROR"), reported, "{kind:#x}: {answer}");
        assert_eq!(
            answer.contains("HEARTBEAT ACK"),
            goes_on,
            "{kind:#x}: {answer}"
        );
        if reported {
            let bytes = &world
                .shots
                .iter()
                .find(|shot| shot.from == A)
                .unwrap()
                .bytes;
            let Chunk::Error(error) = chunks_of(bytes).remove(0) else {
                panic!()
            };
            let chunk = Bytes::from(vec![kind, 0, 0, 8, 1, 2, 3, 4]);
            assert_eq!(
                error.causes.iter().next(),
                Some(Ok(Cause::UnrecognizedChunkType { chunk }))
            );
        }
    }
}

#[test]
fn a_packet_full_of_unknown_chunks_draws_few_answers() {
    let (mut world, a, _, to_a, _) = pair();
    let bytes = [0xFF, 0, 0, 4].repeat(300);
    world.inject(A, raw_packet(Z, to_a, &bytes));
    let sent: usize = world
        .shots
        .iter()
        .filter(|shot| shot.from == A)
        .map(|shot| shot.bytes.len())
        .sum();
    assert!(sent <= bytes.len(), "no amplification: {sent} bytes");
    assert_eq!(discarded(&world, A, Discard::UnknownChunk), 300);
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn heartbeat_acks_that_answer_nothing() {
    let (mut world, a, _, to_a, _) = pair();
    for info in [&b""[..], b"short", &[0; 17], &[0xFF; 17], &[7; 400]] {
        let ack = Chunk::HeartbeatAck(HeartbeatAck {
            info: Bytes::copy_from_slice(info),
        });
        world.inject(A, packet(Z, to_a, &[&ack]));
    }
    assert_eq!(discarded(&world, A, Discard::HeartbeatNonce), 5);
    assert_eq!(world.state(A, a), StateName::Established);
}

#[test]
fn a_heartbeat_ack_counts_once() {
    let config = Config {
        hb_interval: Some(SECOND),
        ..Config::default()
    };
    let mut world = World::new(config);
    world.established();
    world.run_for(4 * SECOND);
    let ack = world.shot(Z, "HEARTBEAT ACK");
    let before = discarded(&world, A, Discard::HeartbeatNonce);
    world.inject(A, ack);
    assert_eq!(discarded(&world, A, Discard::HeartbeatNonce), before + 1);
}

#[test]
fn ecn_chunks_are_taken_and_mean_nothing() {
    let (mut world, a, _, to_a, _) = pair();
    world.inject(
        A,
        packet(Z, to_a, &[&Chunk::Ecne(Ecne { lowest_tsn: Tsn(1) })]),
    );
    assert_eq!(world.state(A, a), StateName::Established);
    assert_eq!(world.story.len(), 1);
}

#[test]
fn peer_errors_do_not_pile_up_unread() {
    let (mut world, _, _, to_a, _) = pair();
    let causes = Causes::of(&vec![Cause::OutOfResource; 300]);
    world.inject(
        A,
        packet(
            Z,
            to_a,
            &[&Chunk::Error(anabranch_wire::chunk::ErrorChunk { causes })],
        ),
    );
    let told = world.told(A);
    assert!(!told.is_empty() && told.len() <= 16, "{}", told.len());
    assert!(told.iter().all(|event| matches!(
        event,
        Event::PeerError {
            cause: code::OUT_OF_RESOURCE
        }
    )));
}

#[test]
fn random_bytes_after_a_good_header_do_no_harm() {
    use rand_core::{RngCore, SeedableRng};
    for seed in 0..300 {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let (mut world, _, _, to_a, _) = pair();
        world.narrate = false;
        for _ in 0..20 {
            let mut bytes = vec![0; (random.next_u32() % 200) as usize];
            random.fill_bytes(&mut bytes);
            if bytes.len() >= 4 {
                // Likely kinds and a length that fits.
                bytes[0] %= 16;
                let len = bytes.len() as u16;
                bytes[2..4].copy_from_slice(&len.to_be_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            let tag = if random.next_u32() % 4 == 0 { 0 } else { to_a };
            world.inject(A, raw_packet(Z, tag, &bytes));
        }
        assert!(
            world.endpoints[A].associations().count() <= 1,
            "seed {seed}"
        );
    }
}
