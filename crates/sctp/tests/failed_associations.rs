//! ABORT, and failed associations.

use crate::common;

use anabranch_sctp::{AssociationState, CloseError, CloseReason, Config, Event};
use anabranch_transport::time::SECOND;
use anabranch_wire::cause::code;
use bytes::Bytes;
use common::*;

#[test]
fn abort_gives_the_peer_and_its_user_the_reason() {
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
    assert_eq!(association.shutdown(now, None), Err(CloseError::Closed));
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
fn packets_received_before_a_queued_abort_get_no_answer_before_it() {
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
    // No packet was polled, so the ABORT is still queued when the SACK arrives.
    world.inject(A, sack.clone());
    world.run_for(SECOND);
    assert_eq!(world.story, ["? -> SACK -> A", "A -> ABORT -> Z"]);
    let cause = Some(code::USER_INITIATED_ABORT);
    assert_eq!(
        world.close_reason(Z, z),
        Some(CloseReason::AbortedByPeer { cause })
    );
    // After the ABORT was sent, the same packet is out of the blue, and answered accordingly (RFC
    // 9260 §8.4, rule 8).
    world.inject(A, sack);
    assert_eq!(world.story[2..], ["? -> SACK -> A", "A -> ABORT -> Z"]);
}

#[test]
fn an_abort_with_a_reason_larger_than_a_packet_still_goes() {
    let mut world = World::new(Config::default().with(|it| it.mtu = 500));
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
    let config = Config::default().with(|it| {
        it.path_max_retrans = 2;
        it.association_max_retrans = 4;
    });
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
    let config = Config::default().with(|it| {
        it.heartbeat_interval = Some(5 * SECOND);
        it.path_max_retrans = 1;
        it.association_max_retrans = 2;
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.run_for(60 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert!(world.story.iter().any(|line| line == "A -> HEARTBEAT -> Z"));
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(60 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::PeerUnreachable));
}

#[test]
fn an_inactive_path_comes_back_with_the_first_heartbeat_ack() {
    let config = Config::default().with(|it| {
        it.heartbeat_interval = Some(2 * SECOND);
        it.path_max_retrans = 1;
    });
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
    assert_eq!(world.state(A, a), AssociationState::Established);
}

/// RFC 9260 §8.1, §9.1: a peer that is alive, but whose packets do not arrive, gets an ABORT.
#[test]
fn a_failed_peer_is_notified_by_an_abort() {
    let mut world = World::new(Config::default().with(|it| it.association_max_retrans = 2));
    let (a, z) = world.established();
    world.fate = Box::new(|shot| match shot.from {
        Z => Fate::Drop,
        _ => Fate::Deliver,
    });
    world.send(A, a, 0, "heard and not answered");
    world.run_for(30 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    assert_eq!(
        world
            .story
            .iter()
            .filter(|it| *it == "A -> ABORT -> Z")
            .count(),
        1
    );
    let told = Some(CloseReason::AbortedByPeer { cause: None });
    assert_eq!(world.close_reason(Z, z), told, "{:#?}", world.story);
}
