use anabranch_transport::Ecn;

use super::super::testing::{MS, QueueTester};
use super::*;

/// One terminal and superframes of 40 ms, with 10 slots of 100 bytes and 4 ms each (200 kbit/s). A
/// request takes 100 ms and an assignment 110 ms, each of which takes effect after three
/// superframes.
const BASE: DvbRcs2Config = DvbRcs2Config {
    terminals: 1,
    superframe: 40 * MS,
    slot: 100,
    cra: 0,
    rbdc: 0,
    vbdc: 0,
    fca: false,
    request_interval: 40 * MS,
    request_delay: 100 * MS,
    processing_delay: 10 * MS,
    assignment_delay: 100 * MS,
    limit: QueueLimit::Unlimited,
};

fn queue(config: DvbRcs2Config) -> DvbRcs2 {
    let mut queue = DvbRcs2::new(config).expect("a queue");
    let mut rate = Some(200_000.into());
    queue.take_rate(&mut rate).expect("a rate");
    assert!(rate.is_none());
    queue
}

/// Departure times and numbers of packets up to `until`, polled in steps of 1 ms.
fn departures(bench: &mut QueueTester, from: Nanos, until: Nanos) -> Vec<(Nanos, u64)> {
    let mut all = Vec::new();
    for at in (from..=until).step_by(MS as usize) {
        while let Some(packet) = bench.go([at])[0] {
            all.push((at / MS, packet));
        }
    }
    all
}

/// The constant rate of 20 kbit/s is one slot of 100 bytes per superframe, without requests. A
/// packet of 250 bytes takes three slots.
#[test]
fn a_constant_rate_has_its_slots_without_a_request() {
    let mut bench = QueueTester::new(
        Box::new(queue(DvbRcs2Config {
            cra: 20_000,
            ..BASE
        })),
        Ecn::NotEct,
    );
    bench.come_sized(10 * MS, 1, 1, 250);
    bench.come_sized(10 * MS, 1, 1, 50);
    // Slots begin at 40, 80 and 120 ms. The second packet fits into the last slot.
    assert_eq!(
        departures(&mut bench, 10 * MS, 300 * MS),
        [(124, 0), (124, 1)]
    );
    // After a long pause the slots have the same positions.
    bench.come_sized(1_000_000 * MS + 1, 1, 1, 80);
    let left = departures(&mut bench, 1_000_001 * MS, 1_000_100 * MS);
    assert_eq!(left, [(1_000_044, 2)]);
}

/// A packet of 250 bytes arrives at 10 ms. The request is sent at 40 ms, arrives at 140 ms, and is
/// used at 160 ms. The assignment is sent at 170 ms, arrives at 270 ms, and applies from 280 ms on:
/// three slots, until 292 ms.
#[test]
fn a_volume_is_assigned_after_both_ways_over_the_satellite() {
    let config = DvbRcs2Config { vbdc: 1000, ..BASE };
    let mut bench = QueueTester::new(Box::new(queue(config)), Ecn::NotEct);
    bench.come_sized(10 * MS, 1, 1, 250);
    assert_eq!(departures(&mut bench, 10 * MS, 600 * MS), [(292, 0)]);
    // The next request, at 800 ms, covers only 1000 of the 1500 bytes. The request for the other
    // 500 bytes is sent when the slots of the first request have begun, at 1080 ms, and receives
    // slots in the superframe at 1320 ms.
    bench.come_sized(790 * MS, 5, 1, 300);
    let left = departures(&mut bench, 790 * MS, 2000 * MS);
    assert_eq!(
        left,
        [(1052, 1), (1064, 2), (1076, 3), (1328, 4), (1340, 5)]
    );
}

/// 50 bytes arrive every 20 ms, a rate of 20 kbit/s. The first request, at 40 ms, covers the two
/// earlier packets, and its slot is at 280 ms. Each later superframe has one slot, for the packets
/// that arrived six superframes before.
#[test]
fn a_rate_follows_the_arrivals_six_superframes_later() {
    let config = DvbRcs2Config {
        rbdc: 100_000,
        ..BASE
    };
    let mut bench = QueueTester::new(Box::new(queue(config)), Ecn::NotEct);
    let mut left = Vec::new();
    for packet in 0..40 {
        let at = 10 * MS + packet * 20 * MS;
        bench.come_sized(at, 1, 1, 50);
        left.extend(departures(&mut bench, at, at + 19 * MS));
    }
    left.extend(departures(&mut bench, 810 * MS, 1100 * MS));
    let expected = (0..40).map(|packet| (284 + packet / 2 * 40, packet));
    assert_eq!(left, expected.collect::<Vec<_>>());
}

/// Two terminals both request the whole link. Each gets five slots (500 bytes) in each superframe
/// of 40 ms; the slots of terminal 0 come first.
#[test]
fn terminals_share_what_they_ask_for() {
    let mut shared = queue(DvbRcs2Config {
        terminals: 2,
        vbdc: 100_000,
        ..BASE
    });
    for source in [1, 2] {
        let address = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, source));
        assert_eq!(shared.terminal_of(address), usize::from(source) - 1);
    }
    let other = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 3));
    assert_eq!(shared.terminal_of(other), 0);
    for terminal in [0, 1] {
        let request = terminal::Request {
            rate: None,
            volume: 2000,
        };
        shared.controller.send(0, terminal, request);
    }
    let runs = (0..12).map(|number| shared.controller.step(number, 10).0);
    let runs: Vec<_> = runs
        .map(|plan| {
            plan.iter()
                .map(|run| (run.terminal, run.first, run.slots))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(runs[..6].iter().all(Vec::is_empty), "{runs:?}");
    assert!(
        runs[6..10]
            .iter()
            .all(|plan| *plan == [(0, 0, 5), (1, 5, 5)]),
        "{runs:?}"
    );
    assert!(runs[10..].iter().all(Vec::is_empty), "{runs:?}");
    // Both requests of 2000 bytes are answered completely by the superframe that begins at 360 ms.
    let all = shared.controller.assignments();
    assert_eq!((all.requests, all.answered, all.slots), (2, 2, 40));
    assert_eq!(
        (all.delay, all.longest_delay),
        (2 * 360 * u128::from(MS), 360 * MS)
    );
}

/// The remaining slots of the superframe are assigned to the terminals in equal shares, and unused
/// slots are lost. 250 bytes at 0 ms use three of the ten slots; the packet that arrives at 13 ms
/// uses the next slot after that time.
#[test]
fn free_capacity_needs_no_request() {
    let config = DvbRcs2Config { fca: true, ..BASE };
    let mut free = queue(config);
    free.advance(0);
    assert_eq!(
        free.assignments(0).map(|it| (it.assigned, it.used)),
        Some((1000, 0))
    );
    let mut bench = QueueTester::new(Box::new(free), Ecn::NotEct);
    bench.come_sized(0, 1, 1, 250);
    bench.come_sized(13 * MS, 1, 1, 80);
    // The first slot has begun before the packet arrives, so the packet uses the slots at 4, 8 and
    // 12 ms.
    assert_eq!(departures(&mut bench, 0, 100 * MS), [(16, 0), (20, 1)]);
}

#[test]
fn each_terminal_has_its_limit_and_a_link_that_goes_down_loses_all() {
    let config = DvbRcs2Config {
        cra: 20_000,
        limit: QueueLimit::Packets(2),
        ..BASE
    };
    let mut bench = QueueTester::new(Box::new(queue(config)), Ecn::NotEct);
    assert_eq!(bench.come_sized(0, 3, 1, 50), 1);
    assert_eq!(bench.waiting(), 2);
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    assert!(DvbRcs2::new(BASE).is_err(), "no category");
    let rate = |config: DvbRcs2Config, rate: u64| {
        DvbRcs2::new(config)
            .unwrap()
            .take_rate(&mut Some(rate.into()))
    };
    let vbdc = DvbRcs2Config { vbdc: 1, ..BASE };
    assert!(rate(vbdc, 200_000).is_ok());
    assert!(rate(vbdc, 19_999).is_err(), "no slot");
    assert!(rate(vbdc, 1 << 50).is_err(), "too many slots");
    let cra = DvbRcs2Config {
        cra: 100_001,
        terminals: 2,
        ..BASE
    };
    assert!(rate(cra, 200_000).is_err(), "more than the link");
    assert!(DvbRcs2::new(vbdc).unwrap().take_rate(&mut None).is_err());
}

#[test]
fn delays_of_too_many_superframes_are_refused() {
    let refused = |terminals, delay| {
        let config = DvbRcs2Config {
            terminals,
            superframe: MS,
            cra: 1_000,
            request_delay: delay,
            ..BASE
        };
        DvbRcs2::new(config).err().map(|error| error.to_string())
    };
    let refusal = refused(10_000, 0).expect("110 superframes each");
    assert!(refusal.contains("too many superframes"), "{refusal}");
    assert_eq!(refused(8_000, 0), None);
    assert_eq!(refused(1, 60_000 * MS), None);
}
