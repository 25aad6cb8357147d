//! Tests of links: arrival times, queues, losses and outages, compared with values computed by
//! hand.

use crate::common;

use anabranch_sim::loss::{
    Bernoulli, GilbertElliott, GilbertElliottConfig, Ordinals, Schedule, SegmentLoss, Segments,
};
use anabranch_sim::{
    DataSegment, DirectionConfig, DropReason, DropTail, Impairments, Inspect, Outage, Packet,
    PlacedLoss, Probability, QueueLimit, Reordering,
};
use anabranch_transport::Nanos;
use common::{Line, MS, SECOND, Sender, burst, every};

/// The satellite link of Alamgir et al.: 2 Mbit/s and 250 ms.
fn satellite() -> DirectionConfig {
    DirectionConfig::new(2_000_000, 250 * MS)
}

fn drop_tail(limit: QueueLimit) -> DropTail {
    DropTail::new(limit).unwrap()
}

#[test]
fn a_packet_takes_serialisation_and_propagation_on_each_hop() {
    // A packet of 1480 + 20 bytes takes 1.2 ms at 10 Mbit/s, and 6 ms at 2 Mbit/s.
    let access = DirectionConfig::new(10_000_000, 2 * MS);
    let line = Line::new(1, vec![access, satellite()], burst(0, 3, 1480)).run(SECOND);
    let first = 1_200_000 + 2 * MS + 6 * MS + 250 * MS;
    // The slower hop determines the spacing.
    let expected = [(first, 0), (first + 6 * MS, 1), (first + 12 * MS, 2)];
    assert_eq!(line.arrivals(), expected);
    let stats = line.stats(1);
    assert_eq!((stats.delivered.packets, stats.delivered.bytes), (3, 4500));
    assert_eq!(stats.busy, 18 * MS);
    // The first packet stays for 6 ms. The second arrives 1.2 ms later and leaves at 12 ms; the
    // third arrives 2.4 ms after the first and leaves at 18 ms.
    assert_eq!(stats.sojourn, u128::from(6 * MS + 10_800_000 + 15_600_000));
    let progress = line.world.progress();
    assert_eq!((progress.hops, progress.sent), (6, 3));
    // One event per packet and hop, and one for the start of each agent. There is no other event,
    // because the burst is sent at the start.
    assert_eq!(progress.events, 8);
}

#[test]
fn serialisation_rounds_to_the_nearest_nanosecond() {
    // 100 bytes take 266,666.67 ns at 3 Mbit/s, 114,285.71 ns at 7 Mbit/s, and 266.67 ns at 3
    // Gbit/s.
    for (rate, expected) in [
        (3_000_000, 266_667),
        (7_000_000, 114_286),
        (3_000_000_000, 267),
    ] {
        let line = Line::new(1, vec![DirectionConfig::new(rate, 0)], burst(0, 1, 80)).run(SECOND);
        assert_eq!(line.arrivals(), [(expected, 0)], "{rate} bit/s");
    }
}

/// 36 bytes take 2.88 ns at 100 Gbit/s and 0.72 ns at 400 Gbit/s. If each packet were rounded to
/// whole nanoseconds, the links would carry 96 % and 138.9 % of their rate.
#[test]
fn a_link_carries_no_more_than_its_rate() {
    for (rate, picoseconds) in [
        (100_000_000_000, 2_880),
        (400_000_000_000, 720),
        (1_500_000, 192_000_000),
    ] {
        let by = |n: u64| (n * picoseconds + 500) / 1000;
        let expected: Vec<(Nanos, u64)> = (0..1000).map(|n| (by(n + 1), n)).collect();
        let wire = DirectionConfig::new(rate, 0);
        let mut event_driven = DirectionConfig::new(rate, 0);
        event_driven.event_driven = true;
        for direction in [wire, event_driven] {
            let line = Line::new(1, vec![direction], burst(0, 1000, 16)).run(SECOND);
            assert_eq!(line.arrivals(), expected, "{rate} bit/s");
            assert_eq!(line.stats(0).busy, by(1000), "{rate} bit/s");
        }
    }
}

#[test]
fn a_link_without_rate_only_delays() {
    let line = Line::new(1, vec![DirectionConfig::instant(5 * MS)], burst(3, 2, 80)).run(SECOND);
    assert_eq!(line.arrivals(), [(5 * MS + 3, 0), (5 * MS + 3, 1)]);
}

#[test]
fn drop_tail_counts_the_packet_in_transmission() {
    // As in ns-2 with limit 10: one packet is in transmission and nine are queued, so the eleventh
    // is dropped.
    let direction = satellite().with_queue(drop_tail(QueueLimit::Packets(10)));
    let line = Line::new(1, vec![direction], burst(0, 12, 1480)).run(SECOND);
    assert_eq!(line.numbers(), (0..10).collect::<Vec<_>>());
    let stats = line.stats(0);
    assert_eq!(stats.dropped.count(DropReason::QueueFull), 2);
    assert_eq!(stats.longest_queue, 10);
}

#[test]
fn a_place_is_free_when_the_last_bit_leaves() {
    // With a limit of 2, packets 0 and 1 fill the queue at 0. Packet 2 arrives 1 ns before a slot
    // is free, and packet 3 when it is free.
    let plan = [(0, 1480), (0, 1480), (6 * MS - 1, 1480), (6 * MS, 1480)];
    let direction = satellite().with_queue(drop_tail(QueueLimit::Packets(2)));
    let line = Line::new(1, vec![direction], plan).run(SECOND);
    assert_eq!(line.numbers(), [0, 1, 3]);
}

#[test]
fn a_limit_in_bytes_counts_bytes_on_the_wire() {
    // 4500 bytes hold three packets of 1500 bytes exactly. After shorter packets, a small packet
    // still fits and a larger one does not.
    let plan = [(0, 1480), (0, 1480), (0, 1400), (0, 61), (0, 60)];
    let direction = satellite().with_queue(drop_tail(QueueLimit::Bytes(4500)));
    let line = Line::new(1, vec![direction], plan).run(SECOND);
    assert_eq!(line.numbers(), [0, 1, 2, 4]);
}

#[test]
fn the_mtu_stops_larger_packets() {
    let mut direction = satellite();
    direction.mtu = Some(1500);
    let line = Line::new(1, vec![direction], [(0, 1480), (0, 1481)]).run(SECOND);
    assert_eq!(line.numbers(), [0]);
    assert_eq!(line.stats(0).dropped.count(DropReason::TooBig), 1);
}

#[test]
fn the_mtu_changes_at_its_time() {
    let direction = satellite().with_mtu(Some(1500), [(2 * SECOND, 1300), (4 * SECOND, 1400)]);
    // 1,400 bytes arrive each second, including the header.
    let plan = (0..6).map(|second| (second * SECOND, 1380));
    let line = Line::new(1, vec![direction], plan).run(10 * SECOND);
    assert_eq!(line.numbers(), [0, 1, 4, 5]);
    assert_eq!(line.stats(0).dropped.count(DropReason::TooBig), 2);
}

/// 1,480 bytes of payload cross links with MTUs of 620 and 1,000 bytes. The fragments have 600 (a
/// multiple of 8), 600 and 280 bytes, so both links carry 40 bytes more.
#[test]
fn fragmented_datagrams_pass_with_additional_headers() {
    let narrow = satellite().with_mtu(Some(620), []);
    let wide = satellite().with_mtu(Some(1000), []);
    let line = Line::with_sender(1, vec![narrow, wide], |path| Sender {
        may_fragment: true,
        ..Sender::new(path, [(0, 1480)])
    });
    let line = line.run(SECOND);
    assert_eq!(line.numbers(), [0]);
    let stats = [0, 1].map(|link| line.stats(link).delivered.bytes);
    assert_eq!(stats, [1540, 1540]);
}

#[test]
fn the_mean_queue_is_that_of_the_theory() {
    // An M/D/1 queue with a load of 0.8 has a mean waiting time of 0.8 / (2 * 0.2) = 2 service
    // times, and a mean sojourn time of 3 service times.
    let mut rng = anabranch_sim::Seed::new(3, 0).stream("arrivals");
    let service = MS;
    let mut at = 0;
    let plan: Vec<_> = (0..100_000)
        .map(|_| {
            at += rng.exponential(service * 10 / 8);
            (at, 105)
        })
        .collect();
    // 125 bytes in 1 ms are 1 Mbit/s.
    let line = Line::new(1, vec![DirectionConfig::new(1_000_000, 0)], plan).run(at + 10 * SECOND);
    let stats = line.stats(0);
    let mean = stats.sojourn as f64 / stats.transmitted.packets as f64 / service as f64;
    assert!((mean - 3.0).abs() < 0.15, "{mean} services");
}

#[test]
fn losses_before_the_queue_take_no_time_and_losses_after_it_do() {
    let run = |loss| {
        let direction = satellite().with_loss(loss);
        Line::new(1, vec![direction], burst(0, 3, 1480)).run(SECOND)
    };
    let before = run(PlacedLoss::before_queue(Ordinals::new([1])));
    assert_eq!(before.arrivals(), [(256 * MS, 0), (262 * MS, 2)]);
    assert_eq!(before.stats(0).transmitted.packets, 2);
    let after = run(PlacedLoss::after_queue(Ordinals::new([1])));
    assert_eq!(after.arrivals(), [(256 * MS, 0), (268 * MS, 2)]);
    assert_eq!(after.stats(0).transmitted.packets, 3);
    for line in [before, after] {
        assert_eq!(line.stats(0).dropped.count(DropReason::Loss), 1);
    }
}

#[test]
fn ordinals_in_any_order_are_lost_once() {
    let loss = PlacedLoss::before_queue(Ordinals::new([4, 1, 1, 0]));
    let direction = satellite().with_loss(loss);
    let line = Line::new(1, vec![direction], burst(0, 6, 100)).run(SECOND);
    assert_eq!(line.numbers(), [2, 3, 5]);
}

#[test]
fn bernoulli_losses_have_their_rate_and_both_places_lose_the_same_packets() {
    let run = |loss| {
        let direction = DirectionConfig::instant(0).with_loss(loss);
        Line::new(5, vec![direction], every(MS, 100_000, 20)).run(200 * SECOND)
    };
    let model = || Bernoulli::new(0.015).unwrap();
    let before = run(PlacedLoss::before_queue(model()));
    let lost = before.stats(0).dropped.count(DropReason::Loss);
    // 1500 losses are expected, with a standard deviation of 38.
    assert!((1370..1630).contains(&lost), "{lost}");
    assert_eq!(
        before.numbers(),
        run(PlacedLoss::after_queue(model())).numbers()
    );
}

#[test]
fn a_schedule_changes_the_probability_at_its_times() {
    let steps = [(10 * MS, 1.0), (20 * MS, 0.0), (30 * MS, 1.0)];
    let loss = PlacedLoss::before_queue(Schedule::new(steps).unwrap());
    let direction = DirectionConfig::instant(0).with_loss(loss);
    let line = Line::new(5, vec![direction], every(5 * MS, 8, 20)).run(SECOND);
    // At 0 and 5 no packet is lost, at 10 and 15 every packet, at 20 and 25 none, and from 30 on
    // every packet.
    assert_eq!(line.numbers(), [0, 1, 4, 5]);
    assert!(Schedule::new([(5, 0.1), (5, 0.2)]).is_err());
    assert!(Schedule::new([(5, 1.1)]).is_err());
}

#[test]
fn gilbert_elliott_loses_in_bursts() {
    let model = GilbertElliott::new(&GilbertElliottConfig {
        to_bad: 0.01.into(),
        to_good: 0.25.into(),
        loss_good: 0.0.into(),
        loss_bad: 1.0.into(),
    });
    let loss = PlacedLoss::after_queue(model.unwrap());
    let direction = DirectionConfig::instant(0).with_loss(loss);
    let count = 200_000;
    let line = Line::new(9, vec![direction], every(MS, count, 20)).run(300 * SECOND);
    let numbers = line.numbers();
    let lost = count - numbers.len() as u64;
    // In the stationary state, the channel is bad for 0.01 / 0.26 = 3.85 % of the packets; bursts
    // have a mean length of 4.
    let rate = lost as f64 / count as f64;
    assert!((rate - 0.0385).abs() < 0.004, "{rate}");
    let bursts = numbers
        .windows(2)
        .filter(|pair| pair[1] > pair[0] + 1)
        .count();
    let length = lost as f64 / bursts as f64;
    assert!((length - 4.0).abs() < 0.3, "{length}");
}

/// Inspector that treats every packet as a segment of flow 0, whose numbers repeat after `period`.
struct Periodic {
    period: u64,
    seen: u64,
}

impl Inspect for Periodic {
    fn inspect(&mut self, _packet: &Packet) -> Option<DataSegment> {
        let number = self.seen % self.period;
        let retransmission = self.seen >= self.period;
        self.seen += 1;
        Some(DataSegment {
            flow: 0,
            number,
            retransmission,
        })
    }
}

#[test]
fn segments_are_lost_by_name_and_transmission() {
    let loss = |flow, number, transmission| SegmentLoss {
        flow,
        number,
        transmission,
    };
    let list = [
        loss(Some(0), 2, 0),
        loss(Some(0), 2, 1),
        loss(None, 1, 2),
        loss(Some(7), 3, 0),
    ];
    let inspect = Periodic { period: 4, seen: 0 };
    let model = Segments::new(list, Box::new(inspect));
    let direction = DirectionConfig::instant(0).with_loss(PlacedLoss::before_queue(model));
    let line = Line::new(1, vec![direction], every(MS, 16, 20)).run(SECOND);
    // Segment 2 is lost in its first and second transmission (packets 2 and 6), and segment 1 in
    // its third (packet 9). Flow 7 never sends.
    let expected: Vec<u64> = (0..16).filter(|n| ![2, 6, 9].contains(n)).collect();
    assert_eq!(line.numbers(), expected);
}

#[test]
fn an_outage_drops_what_waits_and_what_comes_but_not_what_flies() {
    let outage = |from, until| Outage { from, until };
    let plan = [
        (0, 1480),       // leaves at 6 ms, arrives at 256 ms although the link is down by then
        (0, 1480),       // would leave at 12 ms: the link goes down at 10 ms
        (9 * MS, 1480),  // is queued after it
        (15 * MS, 1480), // arrives while it is down
        (20 * MS, 1480), // arrives when it is up again
    ];
    let direction =
        satellite().with_outages([outage(10 * MS, 20 * MS), outage(250 * MS, 260 * MS)]);
    let line = Line::new(1, vec![direction], plan).run(SECOND);
    assert_eq!(line.arrivals(), [(256 * MS, 0), (276 * MS, 4)]);
    let stats = line.stats(0);
    assert_eq!(stats.dropped.count(DropReason::LinkDown), 3);
    assert_eq!(stats.transmitted.packets, 2);
    assert_eq!(stats.busy, 12 * MS);
}

#[test]
fn impairments_are_counted_and_conserve() {
    let p = |value| Probability::new(value).unwrap();
    let impairments = Impairments {
        reordering: Reordering {
            probability: p(0.3),
            up_to: 20 * MS,
        },
        duplication: p(0.1),
        corruption: p(0.1),
    };
    for seed in 0..20 {
        let direction = DirectionConfig::new(10_000_000, 5 * MS)
            .with_impairments(impairments)
            .with_loss(PlacedLoss::after_queue(Bernoulli::new(0.05).unwrap()));
        let mut line = Line::new(seed, vec![direction], every(MS, 2000, 400));
        // The ledger is balanced at all times.
        for at in [3 * MS, 500 * MS, 501 * MS, SECOND] {
            line.world.run_until(at).unwrap();
            line.world
                .packet_counts()
                .check()
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        let line = line.run(10 * SECOND);
        let stats = line.stats(0);
        let mut numbers = line.numbers();
        assert!(!numbers.is_sorted(), "seed {seed}");
        // If a bit of the destination port is flipped, the packet matches no agent.
        let strays = line
            .world
            .packet_counts()
            .dropped
            .count(DropReason::NoAgent);
        let received = numbers.len() as u64;
        assert_eq!(received + strays, stats.delivered.packets, "seed {seed}");
        assert!(stats.duplicated > 0 && stats.reordered > 0, "seed {seed}");
        assert!(line.sink().damaged > 0 && line.sink().damaged <= stats.corrupted);
        assert_eq!(line.world.packet_counts().in_flight, 0, "seed {seed}");
        let lost = stats.dropped.count(DropReason::Loss);
        assert_eq!(2000 + stats.duplicated, stats.delivered.packets + lost);
        // A flipped bit may change the number of a packet. All other packets must have distinct
        // numbers of sent packets.
        numbers.sort_unstable();
        numbers.dedup();
        let distinct = numbers.iter().filter(|n| **n < 2000).count() as u64;
        assert!(distinct + lost <= 2000 && distinct + lost + stats.corrupted >= 2000);
        assert!(
            line.arrivals()
                .is_sorted_by_key(|(at, _): &(Nanos, u64)| *at)
        );
    }
}
