//! Tests of successful stream resets, additional streams and association resets between two ends of
//! this stack (RFC 6525). `reconfiguration_faults.rs` has the requests that fail or are delayed.

use crate::common;

use anabranch_sctp::{
    AssociationId, Config, Event, ReconfigError, ReconfigOutcome, Reconfiguration, SendOptions,
    StreamDirection,
};
use anabranch_transport::time::SECOND;
use bytes::Bytes;
use common::*;

use ReconfigOutcome::Performed;
use StreamDirection::{Incoming, Outgoing};

pub(crate) fn settings() -> Config {
    Config::default().with(|it| it.reconfiguration = true)
}

/// An association between `A` and `Z`.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) ids: [AssociationId; 2],
}

impl Rig {
    pub(crate) fn new(a: Config, z: Config) -> Self {
        let mut world = World::with_configs(a, z);
        let (a, z) = world.established();
        let ids = [a, z];
        Self { world, ids }
    }

    pub(crate) fn both() -> Self {
        Self::new(settings(), settings())
    }

    pub(crate) fn of(&mut self, host: usize) -> &mut anabranch_sctp::Association {
        let id = self.ids[host];
        self.world.endpoints[host]
            .association_mut(id)
            .expect("known")
    }

    pub(crate) fn send(&mut self, host: usize, stream: u16, text: &str) {
        let id = self.ids[host];
        self.world.send(host, id, stream, text.to_owned());
    }

    /// Stream, stream sequence number and text of each message that was received.
    pub(crate) fn read(&mut self, host: usize) -> Vec<(u16, u16, String)> {
        let messages = self.world.receive_all(host, self.ids[host]);
        let text = |payload: Bytes| String::from_utf8_lossy(&payload).into_owned();
        let all = messages.into_iter();
        all.map(|it| (it.stream, it.ssn.0, text(it.payload.into_bytes())))
            .collect()
    }

    pub(crate) fn told(&self, host: usize) -> Vec<Event> {
        self.world.told(host)
    }

    pub(crate) fn run(&mut self, span: u64) {
        self.world.drain(A);
        self.world.drain(Z);
        self.world.run_for(span);
    }

    pub(crate) fn re_configs(&self) -> usize {
        let shots = self.world.shots.iter();
        shots.filter(|it| it.chunks.contains("RE-CONFIG")).count()
    }
}

pub(crate) fn reset(
    direction: StreamDirection,
    streams: &[u16],
    outcome: ReconfigOutcome,
) -> Event {
    Event::StreamsReset {
        direction,
        streams: streams.to_vec(),
        outcome,
    }
}

pub(crate) fn message(stream: u16, ssn: u16, text: &str) -> (u16, u16, String) {
    (stream, ssn, text.to_owned())
}

#[test]
fn reset_streams_restart_and_the_others_continue() {
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
    assert_eq!(rig.of(A).send_buffer().unsent(), 10, "both wait");
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
fn the_peer_is_asked_to_reset_its_streams() {
    let mut rig = Rig::both();
    rig.send(Z, 2, "before");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::request_incoming_reset([2]))
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
        .reconfigure(0, &Reconfiguration::request_incoming_reset([2]))
        .expect("negotiated");
    rig.run(SECOND);
    rig.world.forget();
    // While one request is outstanding, further ones should be collected into the next request.
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([2]))
        .expect("negotiated");
    rig.of(A)
        .reconfigure(0, &Reconfiguration::request_incoming_reset([2]))
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
            .reconfigure(0, &Reconfiguration::request_incoming_reset([5]))
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
fn all_numbers_restart_and_nothing_is_lost() {
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

/// Both ends request a reset of all numbers at the same time. One request should be performed, and
/// it should satisfy both ends.
#[test]
fn both_ends_let_all_restart_at_once() {
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
