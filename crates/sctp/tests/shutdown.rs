//! Tests of the end of an association: all variants of SHUTDOWN, ABORT and failure.

use crate::common;

use anabranch_sctp::{
    AssociationState, CloseReason, Config, Event, PathId, SendError, SendOptions,
};
use anabranch_transport::Transport;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, Shutdown};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

/// Runs for longer than any shutdown should take.
fn finish(world: &mut World) {
    world.run_for(200 * SECOND);
}

#[test]
fn three_packets_and_both_are_closed() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.shutdown(A, a);
    assert_eq!(world.state(A, a), AssociationState::ShutdownSent);
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
fn accepted_data_of_both_sides_is_delivered_before_the_shutdown() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    for number in 0..20_u8 {
        world.send(A, a, 0, vec![number; 1_000]);
        world.send(Z, z, 0, vec![100 + number; 1_000]);
    }
    world.shutdown(A, a);
    assert_eq!(world.state(A, a), AssociationState::ShutdownPending);
    let late = Bytes::from_static(b"late");
    assert_eq!(
        world.endpoints[A]
            .association_mut(a)
            .unwrap()
            .send(0, late, &SendOptions::new()),
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
    assert_eq!(world.state(Z, z), AssociationState::ShutdownAckSent);
    assert!(world.endpoints[A].release(a));
    finish(&mut world);
    // T2-shutdown expires. A has no state any more and answers with the tag in the packet (RFC 9260
    // §8.4, rule 5).
    let expected = ["Z -> SHUTDOWN ACK -> A", "A -> SHUTDOWN COMPLETE -> Z"];
    assert_eq!(world.story[3..], expected, "{:#?}", world.story);
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn data_in_shutdown_sent_brings_the_shutdown_again() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    // Data of Z is in transit when A sends its SHUTDOWN.
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
    let mut world = World::new(Config::default().with(|it| it.association_max_retrans = 3));
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
    // The SHUTDOWN is sent once and retransmitted three times, and the RTO doubles from 1 s.
    let sent = world
        .story
        .iter()
        .filter(|line| line.starts_with("A -> SHUTDOWN"))
        .count();
    assert_eq!(sent, 4);
}

#[test]
fn t5_guards_a_shutdown_whose_peer_goes_on_sending() {
    let config = Config::default().with(|it| it.rto_max = 2 * SECOND);
    let mut world = World::new(config);
    let (a, z) = world.established();
    // Z never receives the SHUTDOWN and continues to send. Each DATA should cause another SHUTDOWN
    // and restart T2. Expirations of T2 should therefore not end the association.
    world.fate = Box::new(|shot| match shot.chunks.contains("SHUTDOWN") {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let began = world.now;
    world.shutdown(A, a);
    while world.state(A, a) != AssociationState::Closed && world.now < began + 60 * SECOND {
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
    assert_eq!(world.state(A, a), AssociationState::CookieWait);
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
    assert_eq!(world.state(A, a), AssociationState::CookieWait);
    world.run_for(25 * MILLISECOND);
    world.inject(A, packet(Z, init.initiate_tag, &[&shutdown]));
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
}

/// RFC 9260 §9.2: the end that sent SHUTDOWN runs T5-shutdown-guard, which should end the
/// association regardless of the number of retransmissions. SHUTDOWN ACK should be repeated
/// Association.Max.Retrans times, and then the association should fail.
#[test]
fn a_shutdown_ack_is_repeated_as_often_as_the_user_says() {
    for closes in [A, Z] {
        let mut world = World::new(Config::default());
        let (a, z) = world.established();
        let ends = [a, z];
        // The last packet of A is never answered. It is a SHUTDOWN if A closes, and otherwise a
        // SHUTDOWN ACK.
        let lost = ["SHUTDOWN", "SHUTDOWN ACK"][usize::from(closes == Z)];
        let mut answers = 0;
        world.fate = Box::new(move |shot| {
            answers += usize::from(shot.from == A && shot.chunks == lost);
            match answers {
                0 => Fate::Deliver,
                _ => Fate::Drop,
            }
        });
        let began = world.now;
        world.shutdown(closes, ends[closes]);
        world.run_for(400 * SECOND);
        let sent: Vec<u64> = world
            .shots
            .iter()
            .filter(|shot| shot.from == A && shot.chunks == lost)
            .map(|shot| (shot.at - began) / SECOND)
            .collect();
        let at = [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303];
        let (repeats, ended, expected) = match closes {
            A => (10, 300, CloseReason::ShutdownTimeout),
            _ => (11, 363, CloseReason::PeerUnreachable),
        };
        assert_eq!(sent, at[..repeats], "{lost}, then doubling up to a minute");
        assert_eq!(world.close_reason(A, a), Some(expected), "{lost}");
        let abort = world.shots.iter().rfind(|shot| shot.from == A);
        let last = abort.map(|shot| (shot.chunks.as_str(), (shot.at - began) / SECOND));
        assert_eq!(last, Some(("ABORT", ended)), "{lost}");
    }
}

/// RFC 9260 §9.2: a SHUTDOWN acknowledges all earlier data. A SACK should be added only if there
/// are gaps or duplicates, or if the peer does not know the window.
#[test]
fn a_shutdown_that_acknowledges_everything_goes_without_a_sack() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.shutdown(A, a);
    world.send(Z, z, 0, "crossing");
    world.run_for(10 * MILLISECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    world.run_for(5 * MILLISECOND);
    let answers = |world: &World| -> Vec<String> {
        let of_a = world.shots.iter().filter(|shot| shot.from == A);
        of_a.map(|shot| shot.chunks.clone()).collect()
    };
    let told = answers(&world);
    assert!(told.iter().all(|chunks| chunks == "SHUTDOWN"), "{told:?}");
    assert!(told.len() >= 2, "{told:?}");
    finish(&mut world);
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
    // The first of two packets is lost. The SHUTDOWN cannot report that the second one has arrived.
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.shutdown(A, a);
    world.fate = lose("DATA", 1);
    world.send(Z, z, 0, "lost");
    world.send(Z, z, 0, "crossing");
    world.run_for(15 * MILLISECOND);
    let told = answers(&world);
    assert!(
        told.iter().any(|chunks| chunks == "SACK, SHUTDOWN"),
        "{told:?}"
    );
    finish(&mut world);
    assert_eq!(world.receive_all(A, a).len(), 2);
}

/// The time limit of the user should apply in every state: if the INIT, the data or the SHUTDOWN is
/// never answered.
#[test]
fn a_shutdown_within_a_limit_ends_with_the_limit() {
    for silent_from in ["INIT", "DATA", "SHUTDOWN"] {
        let mut world = World::new(Config::default());
        world.fate = Box::new(move |shot| match shot.chunks.starts_with(silent_from) {
            true => Fate::Drop,
            false => Fate::Deliver,
        });
        let a = world.connect();
        world.run_for(SECOND);
        if silent_from != "SHUTDOWN" {
            world.send(A, a, 0, "last words");
        }
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).unwrap();
        association.shutdown(now, Some(7 * SECOND)).unwrap();
        association.shutdown(now, Some(60 * SECOND)).unwrap();
        world.drain(A);
        world.run_for(7 * SECOND - 1);
        assert_ne!(world.state(A, a), AssociationState::Closed, "{silent_from}");
        world.run_for(1);
        let reason = Some(CloseReason::ShutdownTimeout);
        assert_eq!(world.close_reason(A, a), reason, "{silent_from}");
        let aborts = world.story.iter().filter(|it| *it == "A -> ABORT -> Z");
        let known = usize::from(silent_from != "INIT");
        assert_eq!(aborts.count(), known, "only to a peer whose tag is known");
    }
}

/// Data is still queued when the user closes the association. The peer keeps its window closed and
/// answers every window probe. Because RFC 9260 §6.1 A counts no error then, only `drain_timeout`
/// should end the association.
#[test]
fn drain_timeout_ends_a_shutdown_behind_a_closed_window() {
    for (drain_timeout, ended) in [(Some(40 * SECOND), true), (None, false)] {
        let mut world = World::new(Config::default().with(|it| {
            it.receive_buffer = 4_000;
            it.drain_timeout = drain_timeout;
        }));
        world.narrate = false;
        let (a, z) = world.established();
        for _ in 0..10 {
            world.send(A, a, 0, vec![1; 1_000]);
        }
        world.run_for(100 * SECOND);
        world.shutdown(A, a);
        // After a while the reader reads some data. The cumulative TSN then advances, and the
        // timeout should restart.
        world.run_for(30 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 4);
        world.run_for(39 * SECOND);
        assert_eq!(world.state(A, a), AssociationState::ShutdownPending);
        world.run_for(if ended { 2 * SECOND } else { 86_400 * SECOND });
        let reason = ended.then_some(CloseReason::ShutdownTimeout);
        assert_eq!(world.close_reason(A, a), reason);
        world.run_for(SECOND);
        assert_eq!(world.close_reason(Z, z).is_some(), ended);
    }
}

/// An application waits for acknowledgments before it requests the shutdown. With a closed window
/// `drain_timeout` ends the association, unless the application has ended its wait.
#[test]
fn drain_timeout_ends_an_expected_drain_behind_a_closed_window() {
    for waits in [true, false] {
        let mut world = World::new(Config::default().with(|it| {
            it.receive_buffer = 4_000;
            it.drain_timeout = Some(40 * SECOND);
        }));
        world.narrate = false;
        let (a, z) = world.established();
        for _ in 0..10 {
            world.send(A, a, 0, vec![1; 1_000]);
        }
        world.run_for(100 * SECOND);
        let expect = |world: &mut World, drains| {
            let now = world.now;
            let association = world.endpoints[A].association_mut(a).expect("established");
            association.expect_drain(now, drains);
            world.drain(A);
        };
        expect(&mut world, true);
        world.run_for(30 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 4);
        world.run_for(39 * SECOND);
        assert_eq!(world.state(A, a), AssociationState::Established);
        // The last message of a protocol above can still be sent.
        world.send(A, a, 0, "last");
        if !waits {
            expect(&mut world, false);
        }
        world.run_for(if waits { 2 * SECOND } else { 1_000 * SECOND });
        let reason = waits.then_some(CloseReason::ShutdownTimeout);
        assert_eq!(world.close_reason(A, a), reason);
        world.run_for(SECOND);
        assert_eq!(world.close_reason(Z, z).is_some(), waits);
    }
}

/// RFC 9260 §8.3, §11.1.8: the user requests HEARTBEATs more often than once per RTO. They should
/// detect a peer that no longer answers. They should not report a failure if the round-trip time is
/// longer than the interval.
#[test]
fn heartbeats_on_request_tell_the_dead_from_the_living() {
    for every in [1, 10, 300, 999, 5_000] {
        for dead in [true, false] {
            let mut world = World::new(Config::default().with(|it| {
                it.association_max_retrans = 2;
                it.path_max_retrans = 2;
                it.heartbeat_interval = None;
            }));
            world.delay = 200 * MILLISECOND;
            let a = world.connect();
            world.run_for(3 * SECOND);
            world.narrate = false;
            if dead {
                world.fate = Box::new(|_| Fate::Drop);
            }
            let began = world.now;
            let span = 30 * SECOND;
            while world.now < began + span && world.state(A, a) == AssociationState::Established {
                let association = world.endpoints[A].association_mut(a).unwrap();
                association.request_heartbeat(PathId(0));
                world.drain(A);
                world.run_for(every * MILLISECOND);
            }
            let closed = world.state(A, a) == AssociationState::Closed;
            assert_eq!(closed, dead, "asked every {every} ms");
            if dead {
                // There should be one error per RTO, which doubles, and not one per HEARTBEAT.
                let waited = world.now - began;
                assert!(waited >= 7 * SECOND, "{every}: given up after {waited} ns");
            }
        }
    }
}

/// A peer repeats its SHUTDOWN and never sends the SHUTDOWN COMPLETE. Each SHUTDOWN should be
/// answered, but only for a limited time.
#[test]
fn a_shutdown_that_is_only_repeated_is_not_answered_for_ever() {
    let config = Config::default().with(|it| it.drain_timeout = Some(400 * SECOND));
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.send(A, a, 0, "hello");
    world.run_for(SECOND);
    let to_z = world.tag_sent_by(A);
    let association = world.endpoints[A].association(a).expect("established");
    let cumulative_tsn_ack = Tsn(association.cumulative_tsn());
    world.fate = Box::new(|_| Fate::Drop);
    let shutdown = Chunk::Shutdown(Shutdown { cumulative_tsn_ack });
    let shutdown = packet(A, to_z, &[&shutdown]);
    let began = world.now;
    while world.now < began + 380 * SECOND {
        world.inject(Z, shutdown.clone());
        world.run_for(20 * SECOND);
        assert_eq!(world.state(Z, z), AssociationState::ShutdownAckSent);
    }
    world.inject(Z, shutdown);
    world.run_for(21 * SECOND);
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::ShutdownTimeout));
}
