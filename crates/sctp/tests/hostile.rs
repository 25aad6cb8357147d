//! Packets that a conforming peer would not send: forged cookies, wrong tags, invalid INITs, and
//! out of the blue packets. These packets should be answered according to the RFC, or not at all,
//! and have no other effects. Invalid chunks are tested in `hostile_chunks.rs`. Tests for
//! vulnerabilities of other stacks are here, in `cves.rs` or in the wire crate.

use crate::common;

use anabranch_sctp::{AssociationState, CloseReason, Config, DiscardReason};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Path, Transport};
use anabranch_wire::Cause;
use anabranch_wire::Causes;
use anabranch_wire::chunk::{Chunk, CookieEcho, Ecne, Heartbeat, Init, Shutdown, ShutdownComplete};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::Tlv;
use bytes::{Bytes, BytesMut};
use common::wrong::*;
use common::*;

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
        discarded(&world, Z, DiscardReason::InvalidCookie),
        6 + cookie.len() as u64
    );
    assert!(
        !world.story.iter().any(|line| line.starts_with("Z -> ")),
        "in silence"
    );
    assert_eq!(world.state(Z, z), AssociationState::Established);
    // Even a valid cookie is rejected if it comes with another port, address or tag.
    let before = discarded(&world, Z, DiscardReason::InvalidCookie);
    let stranger = Path::new(address(Z, 0), [10, 9, 9, 9].into());
    world.inject_from(Z, stranger, echo.clone());
    world.inject(Z, retag(&echo, tag ^ 1));
    let mut other_port = echo.to_vec();
    other_port[1] ^= 1;
    anabranch_wire::checksum::fill(&mut other_port);
    world.inject(Z, other_port.into());
    assert_eq!(
        discarded(&world, Z, DiscardReason::InvalidCookie),
        before + 3
    );
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
    assert_eq!(discarded(&world, Z, DiscardReason::LateCookie), 1);
    // Later the cookie is stale as well.
    world.run_for(130 * SECOND);
    world.inject(Z, echo);
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(discarded(&world, Z, DiscardReason::StaleCookie), 1);
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
                AssociationState::Established,
                "{tag:#x} {chunk:?}"
            );
        }
    }
    // ABORT with this side's tag and the T bit, or with the peer's tag and no T bit (RFC 9260
    // §8.5.1 B).
    world.inject(A, packet(Z, to_a, &[&abort(true)]));
    world.inject(A, packet(Z, to_z, &[&abort(false)]));
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert!(discarded(&world, A, DiscardReason::BadTagAbort) >= 2);
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
    assert_eq!(discarded(&world, A, DiscardReason::VerificationTag), 1);
    assert_eq!(discarded(&world, A, DiscardReason::ForbiddenBundle), 2);
    assert!(!world.story.iter().any(|line| line.contains("INIT ACK")));
    assert_eq!(world.state(A, a), AssociationState::Established);
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
    // If the driver does not send packets, only a limited number of answers is queued.
    assert!(discarded(&world, Z, DiscardReason::RateLimited) > 0);
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
    assert_eq!(discarded(&world, A, DiscardReason::BadInit), 1);
    assert_eq!(world.state(A, a), AssociationState::Established);
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
fn a_broadcast_is_not_answered() {
    let mut world = World::new(Config::default());
    for remote in [[224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
        let path = Path::new(address(Z, 0), remote.into());
        world.inject_from(Z, path, packet(A, 0, &[&init(Parameters::empty())]));
    }
    assert_eq!(discarded(&world, Z, DiscardReason::NotUnicast), 3);
    assert_eq!(world.story.len(), 3);
}

#[test]
fn a_wrong_checksum_or_port_is_out_of_reach_packet() {
    let mut world = World::new(Config::default());
    let good = packet(A, 0, &[&init(Parameters::empty())]);
    let mut bad = good.to_vec();
    bad[8] ^= 1;
    world.inject(Z, bad.into());
    let mut port = good.to_vec();
    port[3] ^= 1;
    anabranch_wire::checksum::fill(&mut port);
    world.inject(Z, port.into());
    assert_eq!(discarded(&world, Z, DiscardReason::Checksum), 1);
    assert_eq!(discarded(&world, Z, DiscardReason::Port), 1);
    assert_eq!(world.story.len(), 2);
}
