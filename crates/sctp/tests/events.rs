//! Events that the user never polls.

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, Config, Endpoint, Event, ReconfigOutcome, Reconfiguration, StreamDirection,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Transport};
use bytes::BytesMut;

/// Two ends. One of them never polls events.
struct Pair {
    ends: [Endpoint; 2],
    now: Nanos,
}

impl Pair {
    fn new() -> (Self, AssociationId) {
        let addresses: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let mut ends = addresses.map(|address| {
            let config = Config::default().with(|it| {
                it.reconfiguration = true;
                it.addresses = vec![address];
            });
            Endpoint::new(config, 7, [1; 32]).expect("settings")
        });
        ends[1].listen(true);
        let now = SECOND;
        let id = ends[0].connect(now, &[addresses[1]], 7).expect("free");
        let mut pair = Self { ends, now };
        pair.settle();
        (pair, id)
    }

    /// Delivers all packets, and polls only the events of the first end.
    fn settle(&mut self) {
        let mut out = BytesMut::new();
        loop {
            let mut silent = true;
            for end in [0, 1] {
                while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut out) {
                    silent = false;
                    let path = transmit.path.reversed();
                    let packet = out.split().freeze();
                    self.ends[1 - end].handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
            }
            if silent {
                break;
            }
        }
        while self.ends[0].poll_event().is_some() {}
    }
}

/// A peer resets its streams repeatedly. Dropped events are counted, and later events are reported
/// again.
#[test]
fn events_that_are_not_taken_are_counted() {
    const RESETS: u64 = 1_000;
    let (mut pair, id) = Pair::new();
    for _ in 0..RESETS {
        let association = pair.ends[0].association_mut(id).expect("up");
        association
            .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
            .expect("nothing under way");
        pair.now += MILLISECOND;
        pair.settle();
    }
    let (mut told, mut missed) = (0, 0);
    while let Some((_, event)) = pair.ends[1].poll_event() {
        match event {
            Event::StreamsReset {
                direction: StreamDirection::Incoming,
                outcome: ReconfigOutcome::Performed,
                ..
            } => told += 1,
            Event::Missed { events } => missed += events,
            Event::Established { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, 255, "and the one of the beginning, which stays");
    assert_eq!(missed, RESETS - told);
    let association = pair.ends[0].association_mut(id).expect("up");
    association
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("nothing under way");
    pair.settle();
    assert!(matches!(
        pair.ends[1].poll_event(),
        Some((_, Event::StreamsReset { .. }))
    ));
}
