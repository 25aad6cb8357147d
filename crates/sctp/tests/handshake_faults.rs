//! Handshakes that must succeed despite faults that a correct network or a malicious peer can
//! cause. `transfer_faults.rs` has the corresponding tests of transfers.

use crate::common;

use anabranch_sctp::{AssociationState, CloseReason, Config, Event, UndeliveredCause};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Transport};
use anabranch_wire::chunk::{Chunk, ErrorChunk, Init};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::serial::Tsn;
use anabranch_wire::{Cause, Causes};
use bytes::BytesMut;
use common::*;

/// Polls the packets of `host` like a driver, but stops if a driver would loop forever. Returns
/// their number.
fn packets_until_quiet(world: &mut World, host: usize) -> usize {
    let mut out = BytesMut::new();
    for packets in 0..1_000 {
        out.clear();
        if world.endpoints[host]
            .poll_transmit(world.now, &mut out)
            .is_none()
        {
            return packets;
        }
    }
    panic!("{} never falls silent", name(host));
}

/// Initiate Tag in the first INIT of `host`.
fn tag_in_init(world: &World, host: usize) -> u32 {
    match chunks_of(&world.shot(host, "INIT")).remove(0) {
        Chunk::Init(init) => init.initiate_tag,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unknown_chunk_in_cookie_wait_draws_no_storm_of_inits() {
    for kind in [0x7F, 0xFF] {
        let mut world = World::new(Config::default());
        world.fate = Box::new(|_| Fate::Drop);
        let a = world.connect();
        let tag = tag_in_init(&world, A);
        let unknown = raw_packet(Z, tag, &[kind, 0, 0, 8, 1, 2, 3, 4]);
        let path = anabranch_transport::Path::new(address(A, 0), address(Z, 0));
        world.endpoints[A].handle_datagram(world.now, path, Ecn::NotEct, unknown);
        assert_eq!(
            packets_until_quiet(&mut world, A),
            0,
            "the peer's tag is not known yet"
        );
        // The connection attempt continues.
        world.fate = Box::new(|_| Fate::Deliver);
        world.run_for(10 * SECOND);
        assert_eq!(world.state(A, a), AssociationState::Established);
    }
}

#[test]
fn an_answer_owed_when_the_cookie_turns_stale_draws_no_storm_of_inits() {
    let mut world = World::new(Config::default());
    world.fate = lose("COOKIE ECHO", 1);
    let a = world.connect();
    world.run_for(100 * MILLISECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    let tag = tag_in_init(&world, A);
    let stale = Chunk::Error(ErrorChunk {
        causes: Causes::of(&[Cause::StaleCookie {
            measure_of_staleness: 1,
        }]),
    });
    let mut bytes = vec![0xFF, 0, 0, 8, 1, 2, 3, 4];
    bytes.extend_from_slice(&packet(Z, tag, &[&stale])[12..]);
    let path = anabranch_transport::Path::new(address(A, 0), address(Z, 0));
    world.endpoints[A].handle_datagram(world.now, path, Ecn::NotEct, raw_packet(Z, tag, &bytes));
    assert!(packets_until_quiet(&mut world, A) <= 1, "the new INIT");
}

/// If a cookie expires while COOKIE ECHOs are lost, a new cookie is requested, up to
/// Max.Init.Retransmits times, because each request counts as a retransmission (RFC 9260 §5.2.6 has
/// no separate limit).
#[test]
fn several_stale_cookies_in_a_row_do_not_end_the_attempt() {
    let z = Config::default().with(|it| it.valid_cookie_life = 500 * MILLISECOND);
    let mut world = World::with_configs(Config::default(), z);
    // The first COOKIE ECHO with each of three cookies is lost. T1-cookie repeats it after at least
    // 1 s, when the cookie has expired. The COOKIE ECHO with the fourth cookie arrives at once.
    let mut echoes = 0;
    world.fate = Box::new(move |shot| {
        if shot.chunks.starts_with("COOKIE ECHO") {
            echoes += 1;
            if echoes % 2 == 1 && echoes < 7 {
                return Fate::Drop;
            }
        }
        Fate::Deliver
    });
    let a = world.connect();
    world.run_for(60 * SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
    let stale = world.story.iter().filter(|line| *line == "Z -> ERROR -> A");
    assert_eq!(stale.count(), 3);
}

#[test]
fn a_peer_whose_cookies_are_always_stale_is_abandoned() {
    let z = Config::default().with(|it| it.valid_cookie_life = 20 * MILLISECOND);
    let mut world = World::with_configs(Config::default(), z);
    world.delay = 60 * MILLISECOND;
    let a = world.connect();
    world.run_for(200 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::StaleCookie));
    let inits = world.story.iter().filter(|line| *line == "A -> INIT -> Z");
    assert_eq!(inits.count(), 9, "1 + Max.Init.Retransmits");
    assert_eq!(world.endpoints[Z].associations().count(), 0);
}

/// RFC 9260 §5.2.6: Z has accepted A's cookie, and its COOKIE ACK is lost. The ERROR that A
/// receives refers to an earlier COOKIE ECHO. A starts again with a new tag, so that Z detects a
/// restart (§5.2.4, action A), because the table in §5.2.4 has no row for a restart with the same
/// tag.
#[test]
fn a_peer_that_begins_again_after_a_stale_cookie_is_answered() {
    for times in [1, 2] {
        let mut world = World::new(Config::default());
        world.fate = lose("COOKIE ACK", times);
        let a = world.connect();
        for _ in 0..times {
            world.run_for(100 * MILLISECOND);
            assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
            let z = world.only_association(Z);
            assert_eq!(world.state(Z, z), AssociationState::Established);
            let causes = Causes::of(&[Cause::StaleCookie {
                measure_of_staleness: 1,
            }]);
            let inits = world.shots.iter().filter(|shot| shot.chunks == "INIT");
            let Chunk::Init(init) = chunks_of(&inits.last().expect("sent").bytes).remove(0) else {
                panic!()
            };
            let error = Chunk::Error(ErrorChunk { causes });
            world.inject(A, packet(Z, init.initiate_tag, &[&error]));
        }
        world.run_for(SECOND);
        let z = world.only_association(Z);
        assert_eq!(
            world.state(A, a),
            AssociationState::Established,
            "{:#?}",
            world.story
        );
        world.send(A, a, 0, "over");
        world.send(Z, z, 0, "back");
        world.run_for(SECOND);
        assert_eq!(world.receive_all(A, a).len(), 1);
        assert_eq!(world.receive_all(Z, z).len(), 1);
    }
}

/// Z is in COOKIE-ECHOED after an INIT ACK of A's first incarnation, and answers the INIT of a
/// second incarnation. The handshake with the first incarnation completes, and data is exchanged.
/// Only now the COOKIE ECHO of the second incarnation arrives (RFC 9260 §5.2.4, action B, in
/// ESTABLISHED). Its cookie is newer than the INIT ACK, which distinguishes it from a late cookie
/// (`collision.rs`).
#[test]
fn action_b_in_established_restarts_both_directions() {
    let mut world = World::new(Config::default());
    world.endpoints[A].listen(true);
    let z = world.endpoints[Z]
        .connect(world.now, &[address(A, 0)], PORT_A)
        .unwrap();
    world.fate = Box::new(|shot| match shot.from {
        A => Fate::Late(500 * MILLISECOND),
        _ => Fate::Deliver,
    });
    world.drain(Z);
    world.run_for(600 * MILLISECOND);
    assert_eq!(world.state(Z, z), AssociationState::CookieEchoed);
    // Hand-made INIT of a second incarnation of A.
    let second = Chunk::Init(Init {
        initiate_tag: 0x0BAD_CAFE,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 10,
        initial_tsn: Tsn(77),
        parameters: Parameters::empty(),
    });
    let first_drop = std::mem::replace(&mut world.fate, Box::new(|_| Fate::Drop));
    world.inject(Z, packet(A, 0, &[&second]));
    world.fate = first_drop;
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let cookie = ack
        .parameters
        .iter()
        .flatten()
        .find_map(|parameter| match parameter {
            anabranch_wire::parameter::Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        })
        .expect("a cookie");
    world.run_for(3 * SECOND);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    for _ in 0..3 {
        world.send(Z, z, 0, "for the first life");
    }
    world.run_for(3 * SECOND);
    world.forget();
    let echo = Chunk::CookieEcho(anabranch_wire::chunk::CookieEcho { cookie });
    world.fate = Box::new(|_| Fate::Drop);
    world.inject(Z, packet(A, ack.initiate_tag, &[&echo]));
    assert_eq!(world.told(Z), [Event::Restarted { data_lost: false }]);
    world.send(Z, z, 0, "for the second life");
    let data = world
        .shots
        .iter()
        .flat_map(|shot| chunks_of(&shot.bytes))
        .find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data),
            _ => None,
        })
        .expect("DATA");
    assert_eq!(data.tsn, ack.initial_tsn, "as the INIT ACK promised");
    assert_eq!(data.ssn.0, 0);
}

#[test]
fn messages_on_streams_that_the_peer_does_not_grant_fail_with_a_word() {
    let z = Config::default().with(|it| it.inbound_streams = 2);
    let mut world = World::with_configs(Config::default(), z);
    let a = world.connect();
    for stream in [0, 5, 1, 7] {
        world.send(A, a, stream, "hello");
    }
    world.run_for(5 * SECOND);
    let mut told = world.told(A);
    let undelivered: Vec<_> = told
        .extract_if(.., |it| matches!(it, Event::MessageUndelivered(_)))
        .collect();
    let of = |event: &Event| match event {
        Event::MessageUndelivered(it) => (it.stream, it.payload.clone(), it.cause.clone()),
        _ => unreachable!(),
    };
    let undelivered: Vec<_> = undelivered.iter().map(of).collect();
    let expected = [5, 7].map(|it| (Some(it), "hello".into(), UndeliveredCause::NoSuchStream));
    assert_eq!(undelivered, expected);
    assert_eq!(
        told,
        [
            Event::SendFailed { messages: 2 },
            Event::Established {
                outbound_streams: 2,
                inbound_streams: 10
            }
        ]
    );
    let z = world.only_association(Z);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

/// RFC 9260 §3.2: all four classes of unknown chunks in every state. One ERROR is sent if the class
/// requires it, the peer's tag is known, and no COOKIE ACK is awaited (§5.1 C); otherwise none. The
/// chunks after the unknown one are processed if the class requires it.
#[test]
fn unknown_chunks_of_all_classes_in_every_state() {
    for state in STATES {
        for (kind, report, goes_on) in [
            (0x3F, false, false),
            (0x7F, true, false),
            (0xBF, false, true),
            (0xFF, true, true),
        ] {
            let (mut world, tag) = in_state(state);
            world.narrate = true;
            world.forget();
            world.fate = Box::new(|_| Fate::Drop);
            let mut chunks = vec![kind, 0, 0, 8, 1, 2, 3, 4];
            chunks.extend_from_slice(&[4, 0, 0, 12, 0, 1, 0, 8, 9, 9, 9, 9]);
            world.inject(A, raw_packet(Z, tag, &chunks));
            let all: Vec<&str> = world
                .shots
                .iter()
                .flat_map(|shot| shot.chunks.split(", "))
                .collect();
            let count = |name: &str| all.iter().filter(|&&chunk| chunk == name).count();
            let waiting = state == AssociationState::CookieWait;
            let context = format!("{state:?} {kind:#x}: {all:?}");
            let silent = waiting || state == AssociationState::CookieEchoed;
            assert_eq!(count("ERROR"), usize::from(report && !silent), "{context}");
            let answered = usize::from(goes_on && !waiting);
            assert_eq!(count("HEARTBEAT ACK"), answered, "{context}");
            assert_eq!(count("INIT"), 0, "{context}");
            let a = world.only_association(A);
            assert_eq!(world.state(A, a), state);
        }
    }
}

/// Addresses that do not fit into an INIT or INIT ACK are omitted, and the packets are sent without
/// them.
#[test]
fn more_addresses_than_a_packet_holds() {
    let many = |host| {
        Config::default().with(|it| {
            it.mtu = 400;
            it.addresses = (0..100).map(|network| address(host, network)).collect();
        })
    };
    let mut world = World::with_configs(many(A), many(Z));
    let (a, _) = world.established();
    let association = world.endpoints[A].association(a).unwrap();
    assert!(association.paths().addresses().count() > 1);
}

/// A cookie that does not fit into a packet to the peer is returned complete, and IP fragments it.
#[test]
fn a_path_too_narrow_for_the_cookie() {
    let narrow = Config::default().with(|it| it.mtu = 128);
    let mut world = World::with_configs(narrow, Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let echo = world.shots.iter().find(|it| it.chunks == "COOKIE ECHO");
    let echo = echo.expect("sent");
    assert!(echo.may_fragment && echo.bytes.len() > 128 - 20);
    let z = world.only_association(Z);
    world.send(A, a, 0, vec![1; 1_000]);
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    let others = world.shots.iter().filter(|it| it.from == A);
    assert_eq!(others.filter(|it| it.may_fragment).count(), 1);
}

/// An INIT ACK whose cookie does not fit into a packet is also sent complete, and IP fragments it.
/// Its only parameter is the cookie.
#[test]
fn a_path_too_narrow_for_the_init_ack() {
    for mtu in [128, 140, 156, 160] {
        let narrow = || Config::default().with(|it| it.mtu = mtu);
        let mut world = World::with_configs(narrow(), narrow());
        let a = world.connect();
        world.run_for(SECOND);
        assert_eq!(world.state(A, a), AssociationState::Established, "{mtu}");
        for shot in &world.shots {
            let large = shot.bytes.len() + 20 > mtu;
            assert_eq!(shot.may_fragment, large, "{mtu}: {}", shot.chunks);
        }
        let fragmented = |kind| {
            let mut of_kind = world.shots.iter().filter(|it| it.chunks == kind);
            of_kind.any(|it| it.may_fragment)
        };
        assert_eq!(fragmented("INIT ACK"), mtu < 160, "{mtu}");
        world.send(A, a, 0, vec![1; 1_000]);
        world.run_for(SECOND);
        let z = world.only_association(Z);
        assert_eq!(world.receive_all(Z, z).len(), 1, "{mtu}");
    }
}
