use std::net::{IpAddr, Ipv4Addr};

use anabranch_transport::Ecn;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::*;
use crate::packet::Packet;
use crate::rng::Seed;

const MS: Nanos = MILLISECOND;
const PAYLOAD: usize = 1480;

/// A CoDel queue under test; packets are numbered in the order of arrival.
struct Bench {
    codel: CoDel,
    ecn: Ecn,
    came: u64,
    /// Times and numbers of the dropped packets, and of the marked packets.
    dropped: Vec<(Nanos, u64)>,
    marked: Vec<(Nanos, u64)>,
}

impl Bench {
    fn new(config: CoDelConfig, ecn: Ecn) -> Self {
        Self {
            codel: CoDel::new(config).unwrap(),
            ecn,
            came: 0,
            dropped: Vec::new(),
            marked: Vec::new(),
        }
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut CoDel, &mut TransmitterView<'_>) -> T,
    ) -> (T, Vec<u64>) {
        let (mut rng, mut dropped) = (Seed::new(1, 0).stream("queue"), Vec::new());
        let result = act(
            &mut self.codel,
            &mut TransmitterView {
                in_service: Occupancy::default(),
                rng: &mut rng,
                dropped: &mut dropped,
            },
        );
        let ids = dropped.iter().map(|refused| {
            assert_eq!(refused.reason, DropReason::Aqm);
            refused.packet.packet().id
        });
        (result, ids.collect())
    }

    fn come(&mut self, now: Nanos, packets: u64) {
        for _ in 0..packets {
            let packet = Packet {
                bytes: Bytes::from_static(&[0; PAYLOAD]),
                id: self.came,
                source: IpAddr::V4(Ipv4Addr::LOCALHOST),
                destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
                target: 0,
                receiver: 0,
                sent: now,
                departed: now,
                added: 0,
                ecn: self.ecn,
                may_fragment: false,
                fragment: 0,
                header: 0,
                protocol: 17,
                hops_left: 64,
            };
            self.came += 1;
            let size = packet.wire_size();
            let queued = QueuedPacket::new(Box::new(packet), now, size);
            let (taken, _) =
                self.with(|codel, transmitter| codel.enqueue(now, queued, transmitter).is_ok());
            assert!(taken);
        }
    }

    /// Dequeues at each of `times`. Returns the numbers of the dequeued packets.
    fn go(&mut self, times: impl IntoIterator<Item = Nanos>) -> Vec<Option<u64>> {
        let mut out = Vec::new();
        for now in times {
            let (next, dropped) = self.with(|codel, transmitter| codel.dequeue(now, transmitter));
            self.dropped.extend(dropped.into_iter().map(|id| (now, id)));
            if let Some(next) = &next
                && next.was_marked()
            {
                self.marked.push((now, next.packet().id));
            }
            out.push(next.map(|next| next.packet().id));
        }
        out
    }
}

/// Times at which the transmitter calls the queue: every 10 ms from 0 to before `end`.
fn every_10_ms(end: Nanos) -> impl Iterator<Item = Nanos> {
    (0..end / (10 * MS)).map(|n| n * 10 * MS)
}

/// 100 packets arrive at 0 ms, and one is sent every 10 ms. The sojourn time is above 5 ms from 10
/// ms on, so at 110 ms, with packet 11 at the head, it has been above for an interval. The
/// following drops are 100, 100/sqrt 2 = 70.7, 57.7 and 50 ms apart: at 210, 280.7, 338.4 and 388.4
/// ms. Each occurs at the first call of the transmitter after this time. Each drop advances the
/// head by one.
#[test]
fn packets_of_a_standing_queue_go_by_the_square_root_law() {
    let mut bench = Bench::new(CoDelConfig::default(), Ecn::NotEct);
    bench.come(0, 100);
    let out = bench.go(every_10_ms(400 * MS));
    let expected = [(110, 11), (210, 22), (290, 31), (340, 37), (390, 43)];
    assert_eq!(bench.dropped, expected.map(|(at, id)| (at * MS, id)));
    assert_eq!(out.len(), 40);
    assert!(out.iter().all(Option::is_some), "the link is never idle");
    assert_eq!(out[11], Some(12), "the next one in its place");
}

/// Like the test above, with marks: no packet is dropped, so the head at n x 10 ms is packet n.
#[test]
fn packets_that_can_be_marked_are_not_dropped() {
    let config = CoDelConfig {
        ecn: true,
        ..CoDelConfig::default()
    };
    let mut bench = Bench::new(config, Ecn::Ect0);
    bench.come(0, 100);
    let out = bench.go(every_10_ms(400 * MS));
    assert_eq!(out, (0..40).map(Some).collect::<Vec<_>>());
    let expected = [(110, 11), (210, 21), (290, 29), (340, 34), (390, 39)];
    assert_eq!(bench.marked, expected.map(|(at, id)| (at * MS, id)));
    assert_eq!(bench.dropped, []);
    // Packets of senders without ECN are dropped.
    let mut bench = Bench::new(config, Ecn::NotEct);
    bench.come(0, 100);
    bench.go(every_10_ms(400 * MS));
    assert_eq!((bench.dropped.len(), bench.marked.len()), (5, 0));
}

/// A burst that drains within an interval causes no drop, whatever its length in packets.
#[test]
fn a_burst_is_let_pass() {
    let mut bench = Bench::new(CoDelConfig::default(), Ecn::NotEct);
    bench.come(0, 100);
    let out = bench.go((0..=100).map(|n| n * MS));
    assert_eq!(out.iter().flatten().count(), 100);
    assert_eq!(bench.dropped, []);
}

/// A queue of one packet of the link's MTU is never dropped, whatever its sojourn time (RFC 8289
/// §4.4).
#[test]
fn the_last_packet_is_never_dropped() {
    let mut bench = Bench::new(CoDelConfig::default(), Ecn::NotEct);
    bench.come(0, 2);
    let out = bench.go([500 * MS, 900 * MS, 901 * MS]);
    assert_eq!(out, [Some(0), Some(1), None]);
    assert_eq!(bench.dropped, []);
}

/// If a new drop state begins within 16 intervals after one with 4 further drops, it continues with
/// the earlier drop rate: the second drop follows after 100/sqrt 4 = 50 ms and not after 100 ms.
#[test]
fn a_drop_state_that_comes_back_soon_goes_on_where_it_was() {
    for (pause, second) in [(0, 50), (16 * 100, 100)] {
        let mut bench = Bench::new(CoDelConfig::default(), Ecn::NotEct);
        bench.come(0, 46);
        // After 41 sent and 5 dropped packets the queue is empty, which ends the drop state.
        assert_eq!(bench.go(every_10_ms(420 * MS)).last(), Some(&None));
        assert_eq!(bench.dropped.len(), 5);
        let begin = (420 + pause) * MS;
        bench.dropped.clear();
        bench.come(begin, 60);
        bench.go(every_10_ms(300 * MS).map(|at| begin + at));
        let first = bench.dropped[0].0;
        assert_eq!(first, begin + 110 * MS);
        assert_eq!(
            bench.dropped[1].0,
            first + second * MS,
            "pause of {pause} ms"
        );
    }
}

#[test]
fn a_limit_drops_at_the_tail() {
    let config = CoDelConfig {
        limit: QueueLimit::Packets(2),
        ..CoDelConfig::default()
    };
    let mut bench = Bench::new(config, Ecn::NotEct);
    bench.come(0, 2);
    let (taken, _) = bench.with(|codel, transmitter| {
        transmitter.in_service.add(1500);
        let packet = codel.remove().unwrap();
        codel.enqueue(0, packet, transmitter).is_ok()
    });
    assert!(!taken, "one waits and one is being sent");
    assert!(
        CoDel::new(CoDelConfig {
            limit: QueueLimit::Bytes(0),
            ..config
        })
        .is_err()
    );
}

/// RFC 8289 §4.4: a queue of at most one packet of the link's MTU is never too long, whatever its
/// sojourn time.
#[test]
fn one_packet_behind_the_head_is_no_queue() {
    for (standing, drops) in [(2, false), (3, true)] {
        let mut bench = Bench::new(CoDelConfig::default(), Ecn::NotEct);
        bench.come(0, standing);
        for round in 1..20 {
            bench.go([round * 50 * MS]);
            bench.come(round * 50 * MS, 1);
        }
        assert_eq!(!bench.dropped.is_empty(), drops, "{standing} wait");
    }
}
