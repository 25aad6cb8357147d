//! Ending: SHUTDOWN in all flavours, ABORT, and associations that fail.

mod common;

use anabranch_sctp::{CloseError, CloseReason, Config, Event, Message, SendError, StateName};
use anabranch_transport::Transport;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::{Chunk, Shutdown};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

/// Lets everything happen that a shutdown may need.
fn finish(world: &mut World) {
    world.run_for(200 * SECOND);
}

#[test]
fn three_packets_and_both_are_closed() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.shutdown(A, a);
    assert_eq!(world.state(A, a), StateName::ShutdownSent);
    finish(&mut world);
    let expected = [
        "A -> SHUTDOWN -> Z",
        "Z -> SHUTDOWN ACK -> A",
        "A -> SHUTDOWN COMPLETE -> Z",
    ];
    assert_eq!(world.story, expected);
    assert_eq!(world.told(A), [Event::Closed(CloseReason::Shutdown)]);
    assert_eq!(
        world.told(Z),
        [Event::PeerShutdown, Event::Closed(CloseReason::Shutdown)]
    );
    for (host, id) in [(A, a), (Z, z)] {
        assert!(world.endpoints[host].release(id));
        assert!(!world.endpoints[host].release(id), "once");
        assert_eq!(world.endpoints[host].poll_timeout(), None);
    }
}

#[test]
fn what_was_accepted_is_delivered_first_from_both_sides() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    for number in 0..20_u8 {
        world.send(A, a, 0, vec![number; 1_000]);
        world.send(Z, z, 0, vec![100 + number; 1_000]);
    }
    world.shutdown(A, a);
    assert_eq!(world.state(A, a), StateName::ShutdownPending);
    let late = Message {
        ppid: 0,
        unordered: false,
        payload: Bytes::from_static(b"late"),
    };
    assert_eq!(
        world.endpoints[A].association_mut(a).unwrap().send(0, late),
        Err(SendError::Closing)
    );
    finish(&mut world);
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::Shutdown),
        "{:#?}",
        world.story
    );
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
    let got = |world: &mut World, host, id| {
        world
            .receive_all(host, id)
            .iter()
            .map(|message| message.payload.parts()[0][0])
            .collect::<Vec<_>>()
    };
    assert_eq!(
        got(&mut world, Z, z),
        (0..20).collect::<Vec<_>>(),
        "readable after the end"
    );
    assert_eq!(got(&mut world, A, a), (100..120).collect::<Vec<_>>());
}

#[test]
fn both_close_at_the_same_time() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.shutdown(A, a);
    world.shutdown(Z, z);
    finish(&mut world);
    assert_eq!(
        world.story[..2],
        ["A -> SHUTDOWN -> Z", "Z -> SHUTDOWN -> A"]
    );
    assert_eq!(
        world.story[2..4],
        ["Z -> SHUTDOWN ACK -> A", "A -> SHUTDOWN ACK -> Z"]
    );
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::Shutdown),
        "{:#?}",
        world.story
    );
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn each_shutdown_packet_may_be_lost() {
    for lost in ["SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"] {
        let mut world = World::new(Config::default());
        let (a, z) = world.established();
        world.fate = lose(lost, 1);
        world.shutdown(A, a);
        finish(&mut world);
        assert_eq!(
            world.close_reason(A, a),
            Some(CloseReason::Shutdown),
            "{lost}: {:#?}",
            world.story
        );
        assert_eq!(
            world.close_reason(Z, z),
            Some(CloseReason::Shutdown),
            "{lost}: {:#?}",
            world.story
        );
    }
}

#[test]
fn a_lost_shutdown_complete_is_made_good_out_of_the_blue() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.fate = lose("SHUTDOWN COMPLETE", 1);
    world.shutdown(A, a);
    world.run_for(100 * MILLISECOND);
    assert_eq!(world.state(Z, z), StateName::ShutdownAckSent);
    assert!(world.endpoints[A].release(a));
    finish(&mut world);
    // T2-shutdown; A knows nothing any more and answers with the tag it got (RFC 9260 §8.4, rule 5).
    let expected = ["Z -> SHUTDOWN ACK -> A", "A -> SHUTDOWN COMPLETE -> Z"];
    assert_eq!(world.story[3..], expected, "{:#?}", world.story);
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn data_in_shutdown_sent_brings_the_shutdown_again() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    // Z's data crosses A's SHUTDOWN.
    world.shutdown(A, a);
    world.send(Z, z, 0, "crossing");
    world.run_for(15 * MILLISECOND);
    assert!(
        world
            .story
            .iter()
            .skip(1)
            .any(|line| line.starts_with("A -> ") && line.contains("SHUTDOWN"))
    );
    finish(&mut world);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(
        world.close_reason(Z, z),
        Some(CloseReason::Shutdown),
        "{:#?}",
        world.story
    );
}

#[test]
fn shutdown_before_the_association_is_up_waits_for_it() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.send(A, a, 0, "only");
    world.shutdown(A, a);
    finish(&mut world);
    let z = world.only_association(Z);
    assert_eq!(world.receive_all(Z, z).len(), 1, "{:#?}", world.story);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn a_shutdown_that_is_never_answered_fails_the_association() {
    let mut world = World::new(Config {
        association_max_retrans: 3,
        ..Config::default()
    });
    let (a, _) = world.established();
    world.fate = Box::new(|shot| {
        if shot.from == A {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.shutdown(A, a);
    world.run_for(30 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    // 1 + 3 times, the RTO doubling from 1 s.
    let sent = world
        .story
        .iter()
        .filter(|line| line.starts_with("A -> SHUTDOWN"))
        .count();
    assert_eq!(sent, 4);
}

#[test]
fn t5_guards_a_shutdown_whose_peer_goes_on_sending() {
    let config = Config {
        rto_max: 2 * SECOND,
        ..Config::default()
    };
    let mut world = World::new(config);
    let (a, z) = world.established();
    // Z never hears the SHUTDOWN, yet goes on sending: each DATA brings the SHUTDOWN again and starts T2 anew, so that
    // its errors cannot end this.
    world.fate = Box::new(|shot| match shot.chunks.contains("SHUTDOWN") {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let began = world.now;
    world.shutdown(A, a);
    while world.state(A, a) != StateName::Closed && world.now < began + 60 * SECOND {
        world.send(Z, z, 0, "more");
        world.run_for(200 * MILLISECOND);
    }
    assert_eq!(world.close_reason(A, a), Some(CloseReason::ShutdownTimeout));
    let waited = world.now - began;
    let guard = 5 * 2 * SECOND;
    assert!(
        (guard..=guard + 200 * MILLISECOND).contains(&waited),
        "5 x RTO.Max, not {waited}"
    );
    assert_eq!(
        world.close_reason(Z, z),
        None,
        "the ABORT is still on its way"
    );
    world.run_for(SECOND);
    assert!(matches!(
        world.close_reason(Z, z),
        Some(CloseReason::AbortedByPeer { .. })
    ));
}

#[test]
fn shutdown_ack_in_cookie_wait_is_out_of_the_blue() {
    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    let a = world.connect();
    world.inject(A, packet(Z, 4_711, &[&Chunk::ShutdownAck]));
    let complete = world.shot(A, "SHUTDOWN COMPLETE");
    assert_eq!(header_of(&complete).verification_tag, 4_711);
    let Chunk::ShutdownComplete(complete) = chunks_of(&complete).remove(0) else {
        panic!()
    };
    assert!(complete.tag_reflected);
    assert_eq!(world.state(A, a), StateName::CookieWait);
}

#[test]
fn shutdown_in_the_cookie_states_is_ignored() {
    let mut world = World::new(Config::default());
    world.fate = lose("COOKIE ECHO", 1);
    let a = world.connect();
    let shutdown = Chunk::Shutdown(Shutdown {
        cumulative_tsn_ack: Tsn(1),
    });
    let Chunk::Init(init) = chunks_of(&world.shot(A, "INIT")).remove(0) else {
        panic!()
    };
    world.inject(A, packet(Z, init.initiate_tag, &[&shutdown]));
    assert_eq!(world.state(A, a), StateName::CookieWait);
    world.run_for(25 * MILLISECOND);
    world.inject(A, packet(Z, init.initiate_tag, &[&shutdown]));
    assert_eq!(world.state(A, a), StateName::CookieEchoed);
}

#[test]
fn abort_tells_the_peer_and_its_user_why() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).unwrap();
    association
        .abort(now, Bytes::from_static(b"enough"))
        .unwrap();
    assert_eq!(
        association.abort(now, Bytes::new()),
        Err(CloseError::Closed)
    );
    assert_eq!(association.shutdown(now), Err(CloseError::Closed));
    world.drain(A);
    world.run_for(SECOND);
    assert_eq!(world.story, ["A -> ABORT -> Z"]);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::AbortedHere));
    let cause = Some(code::USER_INITIATED_ABORT);
    assert_eq!(
        world.close_reason(Z, z),
        Some(CloseReason::AbortedByPeer { cause })
    );
}

#[test]
fn what_arrives_before_the_abort_is_sent_draws_no_answer_that_overtakes_it() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.send(A, a, 0, "last words");
    world.run_for(SECOND);
    let sack = world.shot(Z, "SACK");
    world.forget();
    let now = world.now;
    world.endpoints[A]
        .association_mut(a)
        .unwrap()
        .abort(now, Bytes::from_static(b"enough"))
        .unwrap();
    // Nothing was drained: the ABORT still waits when the SACK comes.
    world.inject(A, sack.clone());
    world.run_for(SECOND);
    assert_eq!(world.story, ["? -> SACK -> A", "A -> ABORT -> Z"]);
    let cause = Some(code::USER_INITIATED_ABORT);
    assert_eq!(
        world.close_reason(Z, z),
        Some(CloseReason::AbortedByPeer { cause })
    );
    // Once it is out, the same packet belongs to nobody and is answered as such (RFC 9260 §8.4, rule 8).
    world.inject(A, sack);
    assert_eq!(world.story[2..], ["? -> SACK -> A", "A -> ABORT -> Z"]);
}

#[test]
fn an_abort_with_a_reason_larger_than_a_packet_still_goes() {
    let mut world = World::new(Config {
        mtu: 500,
        ..Config::default()
    });
    let (a, z) = world.established();
    let now = world.now;
    world.endpoints[A]
        .association_mut(a)
        .unwrap()
        .abort(now, vec![b'x'; 100_000].into())
        .unwrap();
    world.drain(A);
    world.run_for(SECOND);
    assert!(matches!(
        world.close_reason(Z, z),
        Some(CloseReason::AbortedByPeer { .. })
    ));
}

#[test]
fn a_peer_that_fell_silent_fails_path_and_association() {
    let config = Config {
        path_max_retrans: 2,
        association_max_retrans: 4,
        ..Config::default()
    };
    let mut world = World::new(config);
    let (a, _) = world.established();
    world.fate = Box::new(|_| Fate::Drop);
    world.send(A, a, 0, "anyone?");
    world.run_for(100 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    let told = world.told(A);
    assert!(
        matches!(
            told[0],
            Event::PathChanged {
                state: anabranch_sctp::PathState::Inactive,
                ..
            }
        ),
        "the path first: {told:?}"
    );
    assert_eq!(
        told.last(),
        Some(&Event::Closed(CloseReason::PeerUnreachable))
    );
    let data = world
        .story
        .iter()
        .filter(|line| line.contains("DATA"))
        .count();
    assert!(
        (5..=6).contains(&data),
        "1 + 4 retransmissions: {:#?}",
        world.story
    );
}

#[test]
fn an_idle_association_fails_by_heartbeat() {
    let config = Config {
        hb_interval: Some(5 * SECOND),
        path_max_retrans: 1,
        association_max_retrans: 2,
        ..Config::default()
    };
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.run_for(60 * SECOND);
    assert_eq!(world.state(A, a), StateName::Established);
    assert!(world.story.iter().any(|line| line == "A -> HEARTBEAT -> Z"));
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(60 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::PeerUnreachable));
}

#[test]
fn an_inactive_path_comes_back_with_the_first_heartbeat_ack() {
    let config = Config {
        hb_interval: Some(2 * SECOND),
        path_max_retrans: 1,
        ..Config::default()
    };
    let mut world = World::new(config);
    let (a, _) = world.established();
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(20 * SECOND);
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(20 * SECOND);
    let states: Vec<_> = world
        .told(A)
        .into_iter()
        .filter_map(|event| match event {
            Event::PathChanged { state, .. } => Some(state),
            _ => None,
        })
        .collect();
    assert_eq!(
        states,
        [
            anabranch_sctp::PathState::Inactive,
            anabranch_sctp::PathState::Active
        ]
    );
    assert_eq!(world.state(A, a), StateName::Established);
}
