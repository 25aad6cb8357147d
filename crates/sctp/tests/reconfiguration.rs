//! Stream resets, additional streams, and association resets between two ends of this stack (RFC
//! 6525).

use crate::common;

use std::collections::VecDeque;

use anabranch_sctp::{
    AssociationId, CloseReason, Config, Event, ReconfigError, ReconfigOutcome, Reconfiguration,
    SendOptions, StreamDirection,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::*;

use ReconfigOutcome::{Denied, Failed, Performed};
use StreamDirection::{Incoming, Outgoing};

fn settings() -> Config {
    Config::default().with(|it| it.reconfiguration = true)
}

struct Rig {
    world: World,
    ids: [AssociationId; 2],
}

impl Rig {
    fn new(a: Config, z: Config) -> Self {
        let mut world = World::with_configs(a, z);
        let (a, z) = world.established();
        let ids = [a, z];
        Self { world, ids }
    }

    fn both() -> Self {
        Self::new(settings(), settings())
    }

    fn of(&mut self, host: usize) -> &mut anabranch_sctp::Association {
        let id = self.ids[host];
        self.world.endpoints[host]
            .association_mut(id)
            .expect("known")
    }

    fn send(&mut self, host: usize, stream: u16, text: &str) {
        let id = self.ids[host];
        self.world.send(host, id, stream, text.to_owned());
    }

    /// Stream, number and text of each message.
    fn read(&mut self, host: usize) -> Vec<(u16, u16, String)> {
        let messages = self.world.receive_all(host, self.ids[host]);
        let text = |payload: Bytes| String::from_utf8_lossy(&payload).into_owned();
        let all = messages.into_iter();
        all.map(|it| (it.stream, it.ssn.0, text(it.payload.into_bytes())))
            .collect()
    }

    fn told(&self, host: usize) -> Vec<Event> {
        self.world.told(host)
    }

    fn run(&mut self, span: u64) {
        self.world.drain(A);
        self.world.drain(Z);
        self.world.run_for(span);
    }

    fn re_configs(&self) -> usize {
        let shots = self.world.shots.iter();
        shots.filter(|it| it.chunks.contains("RE-CONFIG")).count()
    }
}

fn reset(direction: StreamDirection, streams: &[u16], outcome: ReconfigOutcome) -> Event {
    Event::StreamsReset {
        direction,
        streams: streams.to_vec(),
        outcome,
    }
}

fn message(stream: u16, ssn: u16, text: &str) -> (u16, u16, String) {
    (stream, ssn, text.to_owned())
}

#[test]
fn streams_begin_anew_and_the_others_go_on() {
    let mut rig = Rig::both();
    for stream in [1, 2, 3] {
        rig.send(A, stream, "before");
    }
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([3, 1]))
        .expect("negotiated");
    for stream in [1, 2, 3] {
        rig.send(A, stream, "after");
    }
    rig.run(SECOND);
    assert_eq!(rig.told(A), [reset(Outgoing, &[1, 3], Performed)]);
    assert_eq!(rig.told(Z), [reset(Incoming, &[1, 3], Performed)]);
    let mut read = rig.read(Z);
    read.sort();
    assert_eq!(
        read,
        [
            message(1, 0, "after"),
            message(1, 0, "before"),
            message(2, 0, "before"),
            message(2, 1, "after"),
            message(3, 0, "after"),
            message(3, 0, "before"),
        ]
    );
    assert!(rig.of(A).stats().control.re_configs == 1);
}

#[test]
fn a_reset_of_all_streams_holds_what_has_no_stream_too() {
    let mut rig = Rig::both();
    let any = SendOptions::new().with_stream(None);
    rig.send(A, 9, "before");
    rig.of(A).send(0, "before".into(), &any).expect("room");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([]))
        .expect("negotiated");
    rig.of(A).send(0, "after".into(), &any).expect("room");
    rig.send(A, 9, "after");
    assert_eq!(rig.of(A).buffered(), 10, "both wait");
    rig.run(SECOND);
    assert_eq!(rig.told(Z), [reset(Incoming, &[], Performed)]);
    assert_eq!(
        rig.read(Z),
        [
            message(9, 0, "before"),
            message(0, 0, "before"),
            message(1, 0, "after"),
            message(9, 0, "after")
        ]
    );
}

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
fn the_peer_is_asked_to_reset_its_streams() {
    let mut rig = Rig::both();
    rig.send(Z, 2, "before");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_incoming([2]))
        .expect("negotiated");
    rig.run(SECOND);
    rig.send(Z, 2, "after");
    rig.run(SECOND);
    assert_eq!(rig.told(A), [reset(Incoming, &[2], Performed)]);
    assert_eq!(rig.told(Z), [reset(Outgoing, &[2], Performed)]);
    assert_eq!(
        rig.read(A),
        [message(2, 0, "before"), message(2, 0, "after")]
    );
}

#[test]
fn both_directions_go_in_one_chunk() {
    let mut rig = Rig::both();
    rig.send(A, 2, "a");
    rig.run(SECOND);
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_incoming([2]))
        .expect("negotiated");
    rig.run(SECOND);
    rig.world.forget();
    // While one request is outstanding, the next ones are collected.
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([2]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_incoming([2]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([4]))
        .expect("negotiated");
    rig.run(SECOND);
    assert_eq!(
        rig.told(A),
        [
            reset(Outgoing, &[1], Performed),
            reset(Outgoing, &[2, 4], Performed),
            reset(Incoming, &[2], Performed),
        ]
    );
}

#[test]
fn both_ends_reset_at_once() {
    let mut rig = Rig::both();
    for host in [A, Z] {
        rig.of(host)
            .reconfigure(0, &Reconfiguration::reset_outgoing([0, 5]))
            .expect("negotiated");
        rig.of(host)
            .reconfigure(0, &Reconfiguration::reset_incoming([5]))
            .expect("negotiated");
    }
    rig.run(20 * SECOND);
    for host in [A, Z] {
        let told = rig.told(host);
        let done =
            |direction, streams: &[u16]| told.contains(&reset(direction, streams, Performed));
        assert!(
            done(Outgoing, &[0, 5]) && done(Incoming, &[0, 5]),
            "{told:?}"
        );
        rig.send(host, 5, "after");
    }
    rig.run(SECOND);
    for host in [A, Z] {
        let read = rig.read(host);
        assert_eq!(
            read,
            [message(5, 0, "after")],
            "{:#?} {:?} {:?}",
            rig.world.story,
            rig.told(A),
            rig.told(Z)
        );
    }
}

#[test]
fn streams_are_added_in_both_directions() {
    let mut rig = Rig::both();
    let (outbound, inbound) = (
        rig.of(A).status().outbound_streams,
        rig.of(A).status().inbound_streams,
    );
    assert_eq!((outbound, inbound), (10, 10));
    rig.of(A)
        .reconfigure(0, &Reconfiguration::add_streams(5, 7))
        .expect("negotiated");
    rig.run(SECOND);
    assert_eq!(rig.of(A).status().outbound_streams, 15);
    assert_eq!(rig.of(Z).status().inbound_streams, 15);
    assert_eq!(rig.of(Z).status().outbound_streams, 17);
    assert_eq!(rig.of(A).status().inbound_streams, 17);
    rig.send(A, 14, "a");
    rig.send(Z, 16, "z");
    rig.run(SECOND);
    assert_eq!(rig.read(Z), [message(14, 0, "a")]);
    assert_eq!(rig.read(A), [message(16, 0, "z")]);
    let too_many = ReconfigError::TooManyStreams {
        asked: u16::MAX,
        streams: 15,
    };
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::add_streams(u16::MAX, 0)),
        Err(too_many)
    );
    assert!(rig.told(Z).contains(&Event::StreamsAdded {
        outbound_streams: 17,
        inbound_streams: 15,
        outcome: Performed
    }));
}

#[test]
fn all_numbers_begin_anew_and_nothing_is_lost() {
    let mut rig = Rig::both();
    for round in 0..40 {
        rig.send(A, round % 10, "a before");
        rig.send(Z, round % 10, "z before");
    }
    let now = rig.world.now;
    rig.of(A)
        .reconfigure(now, &Reconfiguration::ResetAssociation)
        .expect("negotiated");
    for host in [A, Z] {
        rig.send(host, 3, "after");
    }
    rig.run(10 * SECOND);
    let [a, z] = [A, Z].map(|host| rig.told(host));
    let [
        Event::AssociationReset {
            local_tsn,
            remote_tsn,
            outcome: Performed,
        },
    ] = a[..]
    else {
        panic!("{a:?}")
    };
    let mirrored = Event::AssociationReset {
        local_tsn: remote_tsn,
        remote_tsn: local_tsn,
        outcome: Performed,
    };
    assert_eq!(z, [mirrored]);
    for host in [A, Z] {
        let read = rig.read(host);
        assert_eq!(read.len(), 41, "{read:?}");
        assert_eq!(read[40].2, "after");
    }
    let now = rig.world.now;
    assert_eq!(
        rig.of(A)
            .reconfigure(now, &Reconfiguration::ResetAssociation),
        Err(ReconfigError::TooSoon)
    );
    for round in 0..100 {
        for host in [A, Z] {
            rig.send(host, round % 10, "much later");
        }
    }
    rig.run(10 * SECOND);
    assert_eq!([A, Z].map(|host| rig.read(host).len()), [100, 100]);
}

/// Both ends request it at the same time: one request wins, and satisfies both.
#[test]
fn both_ends_let_all_begin_anew_at_once() {
    let mut rig = Rig::both();
    for host in [A, Z] {
        rig.send(host, 3, "before");
        let now = rig.world.now;
        rig.of(host)
            .reconfigure(now, &Reconfiguration::ResetAssociation)
            .expect("negotiated");
        rig.send(host, 3, "after");
    }
    rig.run(30 * SECOND);
    for host in [A, Z] {
        let told = rig.told(host);
        let performed = |it: &Event| {
            matches!(
                it,
                Event::AssociationReset {
                    outcome: Performed,
                    ..
                }
            )
        };
        assert!(told.len() == 1 && performed(&told[0]), "{told:?}");
        let read = rig.read(host);
        assert_eq!(read, [message(3, 0, "before"), message(3, 0, "after")]);
    }
}

#[test]
fn what_the_peer_does_not_accept_is_denied() {
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
        .reconfigure(0, &Reconfiguration::reset_incoming([2]))
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
    // Nothing restarts, and nothing is lost.
    let expected = [
        message(1, 0, "before"),
        message(1, 1, "after"),
        message(1, 2, "last"),
    ];
    assert_eq!(rig.read(Z), expected);
}

#[test]
fn wishes_that_make_no_sense_are_refused_at_once() {
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
            .reconfigure(0, &Reconfiguration::reset_incoming([10])),
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
        .reconfigure(0, &Reconfiguration::reset_incoming([]))
        .expect("negotiated");
    assert_eq!(
        rig.of(A)
            .reconfigure(0, &Reconfiguration::reset_incoming([1])),
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

/// Lost requests and responses are retransmitted, and nothing is performed twice.
#[test]
fn lost_requests_and_answers_are_repeated() {
    for lost in 0..4 {
        let mut rig = Rig::both();
        rig.send(A, 1, "before");
        rig.run(SECOND);
        let mut left = lost;
        rig.world.fate = Box::new(move |shot| {
            // The responses of the first case, the requests of the second, both.
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

/// Data before the reset is lost: the request waits for it, and so does later data.
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

/// Other streams continue to send: the peer defers the reset until all earlier data has arrived
/// (RFC 6525 §5.2.2 E2).
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

/// A shutdown sends data that waits for a reset; requests that were not sent fail.
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
    // No request was sent yet: the failure is reported at once.
    let mut rig = Rig::both();
    rig.send(A, 1, "before");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_incoming([2]))
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
fn what_waits_behind_a_reset_counts_in_the_send_buffer_and_can_be_taken_back() {
    let small = settings().with(|it| it.send_buffer = 30);
    let mut rig = Rig::new(small, settings());
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    let message = || Bytes::from(vec![7; 20]);
    let sent = rig.of(A).send(0, message(), &SendOptions::on(1));
    sent.expect("room");
    assert_eq!(rig.of(A).buffered(), 20);
    let full = Err(anabranch_sctp::SendError::BufferFull);
    let sent = rig.of(A).send(0, message(), &SendOptions::on(2));
    assert_eq!(sent, full);
    assert_eq!(rig.of(A).withdraw_unsent(), 1);
    assert_eq!(rig.of(A).buffered(), 0);
    rig.run(SECOND);
    assert_eq!(rig.read(Z), []);
    assert_eq!(rig.told(A), [reset(Outgoing, &[1], Performed)]);
}
