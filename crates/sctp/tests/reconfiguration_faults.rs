//! Tests of reconfiguration (RFC 6525) in which a request is refused, denied, lost, deferred, or
//! overtaken by a shutdown.

use crate::common;
use crate::reconfiguration::{Rig, message, reset, settings};

use std::collections::VecDeque;

use anabranch_sctp::{
    CloseReason, Config, Event, ReconfigError, ReconfigOutcome, Reconfiguration, SendOptions,
    StreamDirection,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::*;

use ReconfigOutcome::{Denied, Failed, Performed};
use StreamDirection::{Incoming, Outgoing};

#[test]
fn a_peer_that_does_not_speak_it_is_not_asked() {
    for (a, z) in [
        (settings(), Config::default()),
        (Config::default(), settings()),
    ] {
        let mut rig = Rig::new(a, z);
        for host in [A, Z] {
            assert!(!rig.of(host).negotiated().reconfiguration);
            assert_eq!(
                rig.of(host)
                    .reconfigure(0, &Reconfiguration::reset_outgoing([1])),
                Err(ReconfigError::NotNegotiated)
            );
            assert_eq!(
                rig.of(host)
                    .reconfigure(0, &Reconfiguration::add_streams(1, 1)),
                Err(ReconfigError::NotNegotiated)
            );
        }
        rig.run(SECOND);
        assert_eq!(rig.re_configs(), 0);
    }
}

#[test]
fn requests_that_the_peer_does_not_accept_are_denied() {
    let closed = settings().with(|it| {
        it.accept_stream_resets = false;
        it.accept_association_reset = false;
        it.accept_added_streams = false;
    });
    let mut rig = Rig::new(settings(), closed);
    rig.send(A, 1, "before");
    let now = rig.world.now;
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::request_incoming_reset([2]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::add_streams(1, 1))
        .expect("negotiated");
    rig.send(A, 1, "after");
    rig.run(5 * SECOND);
    rig.of(A)
        .reconfigure(now, &Reconfiguration::ResetAssociation)
        .expect("negotiated");
    rig.send(A, 1, "last");
    rig.run(5 * SECOND);
    let told = rig.told(A);
    assert!(told.contains(&reset(Outgoing, &[1], Denied)), "{told:?}");
    assert!(told.contains(&reset(Incoming, &[2], Denied)), "{told:?}");
    let added = |it: &&Event| {
        matches!(
            it,
            Event::StreamsAdded {
                outcome: Denied,
                ..
            }
        )
    };
    assert_eq!(told.iter().filter(added).count(), 2, "{told:?}");
    let all = |it: &Event| {
        matches!(
            it,
            Event::AssociationReset {
                outcome: Denied,
                ..
            }
        )
    };
    assert!(told.iter().any(all), "{told:?}");
    assert_eq!(rig.told(Z), []);
    // No numbers should restart, and no message should be lost.
    let expected = [
        message(1, 0, "before"),
        message(1, 1, "after"),
        message(1, 2, "last"),
    ];
    assert_eq!(rig.read(Z), expected);
}

#[test]
fn requests_that_make_no_sense_are_refused_at_once() {
    let mut rig = Rig::both();
    let no_such = ReconfigError::NoSuchStream {
        stream: 10,
        streams: 10,
    };
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([3, 10])),
        Err(no_such)
    );
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::request_incoming_reset([10])),
        Err(no_such)
    );
    let again = Err(ReconfigError::AlreadyInProgress);
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([3]))
        .expect("negotiated");
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([4, 3])),
        again
    );
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([])),
        again
    );
    let now = rig.world.now;
    assert_eq!(
        rig.of(A)
            .reconfigure(now, &Reconfiguration::ResetAssociation),
        again
    );
    rig.of(A)
        .reconfigure(0, &Reconfiguration::request_incoming_reset([]))
        .expect("negotiated");
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::request_incoming_reset([1])),
        again
    );
    rig.run(SECOND);
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([3]))
        .expect("settled before");
    let id = rig.ids[A];
    rig.world.shutdown(A, id);
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([5])),
        Err(ReconfigError::NotEstablished)
    );
}

/// Lost requests and responses should be retransmitted, and no request should be performed twice.
#[test]
fn lost_requests_and_answers_are_repeated() {
    for lost in 0..4 {
        let mut rig = Rig::both();
        rig.send(A, 1, "before");
        rig.run(SECOND);
        let mut left = lost;
        rig.world.fate = Box::new(move |shot| {
            // Requests (packets of A) are dropped if `lost` is odd, and responses (packets of Z) if
            // it is even.
            let hit = shot.from == [Z, A][lost % 2] && left > 0;
            left -= usize::from(hit);
            if hit { Fate::Drop } else { Fate::Deliver }
        });
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
            .expect("negotiated");
        rig.send(A, 1, "after");
        rig.run(60 * SECOND);
        assert_eq!(rig.told(A), [reset(Outgoing, &[1], Performed)], "{lost}");
        assert_eq!(rig.told(Z), [reset(Incoming, &[1], Performed)], "{lost}");
        assert_eq!(
            rig.read(Z),
            [message(1, 0, "before"), message(1, 0, "after")]
        );
        let asked = rig.of(A).stats().control.re_configs;
        assert_eq!(asked, 1 + lost as u64);
    }
}

#[test]
fn a_peer_that_never_answers_is_found_dead() {
    let mut rig = Rig::both();
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.world.fate = Box::new(|_| Fate::Drop);
    rig.run(2_000 * SECOND);
    let told = rig.told(A);
    assert!(
        told.contains(&Event::Closed(CloseReason::PeerUnreachable)),
        "{told:?}"
    );
}

/// Data that was sent before the reset is lost. The request and later data should wait until this
/// data is acknowledged.
#[test]
fn a_reset_waits_until_all_before_it_is_acknowledged() {
    let mut rig = Rig::both();
    let mut drops = VecDeque::from([true, true]);
    rig.world.fate = Box::new(move |shot| match (shot.from, drops.pop_front()) {
        (A, Some(true)) => Fate::Drop,
        _ => Fate::Deliver,
    });
    rig.send(A, 1, "lost at first");
    rig.send(A, 1, "and this");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.send(A, 1, "after");
    rig.run(500 * MILLISECOND);
    assert_eq!(rig.re_configs(), 0, "{:#?}", rig.world.story);
    rig.run(20 * SECOND);
    assert_eq!(
        rig.read(Z),
        [
            message(1, 0, "lost at first"),
            message(1, 1, "and this"),
            message(1, 0, "after")
        ]
    );
}

/// Other streams continue to send. The peer should defer the reset until all data that was sent
/// before it has arrived (RFC 6525 §5.2.2 E2).
#[test]
fn a_peer_that_lacks_data_defers_the_reset() {
    let mut rig = Rig::both();
    rig.send(A, 1, "before");
    rig.run(SECOND);
    rig.world.fate = Box::new(|shot| {
        let late = shot.from == A && shot.chunks.contains("DATA");
        if late {
            Fate::Late(300 * MILLISECOND)
        } else {
            Fate::Deliver
        }
    });
    rig.send(A, 2, "slow");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.run(100 * MILLISECOND);
    assert_eq!(rig.told(Z), [], "not before the slow one has come");
    rig.run(5 * SECOND);
    assert_eq!(rig.told(Z), [reset(Incoming, &[1], Performed)]);
    assert_eq!(rig.told(A), [reset(Outgoing, &[1], Performed)]);
    rig.send(A, 1, "after");
    rig.run(5 * SECOND);
    let read = rig.read(Z);
    assert_eq!(read.last(), Some(&message(1, 0, "after")), "{read:?}");
    assert_eq!(read.len(), 3);
}

/// A shutdown should send data that has to wait for a reset. Requests that were not sent yet should
/// fail.
#[test]
fn a_shutdown_loses_nothing_behind_a_reset() {
    for host in [A, Z] {
        let mut rig = Rig::both();
        rig.send(A, 1, "before");
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
            .expect("negotiated");
        rig.send(A, 1, "after");
        let id = rig.ids[host];
        rig.world.shutdown(host, id);
        rig.run(60 * SECOND);
        assert!(rig.told(A).contains(&Event::Closed(CloseReason::Shutdown)));
        let read = rig.read(Z);
        assert_eq!(
            read.iter().map(|it| &it.2[..]).collect::<Vec<_>>(),
            ["before", "after"]
        );
    }
    // No request was sent yet. The failure should be reported at once.
    let mut rig = Rig::both();
    rig.send(A, 1, "before");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::request_incoming_reset([2]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::add_streams(1, 0))
        .expect("negotiated");
    let id = rig.ids[A];
    rig.world.shutdown(A, id);
    assert!(
        rig.told(A).contains(&reset(Outgoing, &[1], Failed)),
        "{:?}",
        rig.told(A)
    );
}

#[test]
fn messages_deferred_by_a_reset_occupy_the_send_buffer_and_can_be_cancelled() {
    let small = settings().with(|it| it.send_buffer = 30);
    let mut rig = Rig::new(small, settings());
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    let message = || Bytes::from(vec![7; 20]);
    let sent = rig.of(A).send(0, message(), &SendOptions::on(1));
    sent.expect("room");
    assert_eq!(rig.of(A).send_buffer().unsent(), 20);
    let full = Err(anabranch_sctp::SendError::BufferFull);
    let sent = rig.of(A).send(0, message(), &SendOptions::on(2));
    assert_eq!(sent, full);
    assert_eq!(rig.of(A).cancel_unsent(), 1);
    assert_eq!(rig.of(A).send_buffer().unsent(), 0);
    rig.run(SECOND);
    assert_eq!(rig.read(Z), []);
    assert_eq!(rig.told(A), [reset(Outgoing, &[1], Performed)]);
}
