//! RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937), with traces computed by hand for
//! segments of 1000 bytes that take a millisecond each, and links with 50 ms delay each way.

use crate::common;

use std::collections::BTreeMap;

use anabranch_tcp::profile::InitialWindow;
use anabranch_tcp::{Config, Profile};
use anabranch_transport::time::{MILLISECOND as MS, SECOND};
use anabranch_transport::{Nanos, Probe};
use common::{Fate, Line, World};

/// Number of the segment that a packet of the client carries, counted from 1; `None` without data.
fn segment_of(packet: &[u8]) -> Option<u32> {
    let sequence = u32::from_be_bytes(packet[4..8].try_into().unwrap());
    (packet.len() > 900).then(|| sequence.wrapping_sub(0xFFFF_F001) / 1000 + 1)
}

/// A world in which the client sends `segments` segments with an initial window of `window`.
/// Segment `n` is lost `k` times for each `(n, k)` in `losses`.
fn world(
    segments: u64,
    window: u32,
    losses: &[(u32, u32)],
    set: impl FnOnce(&mut Config),
) -> World {
    let mut profile = Profile::rfc6675();
    profile.initial_window = InitialWindow::Segments(window);
    profile.delayed_ack = false;
    let config = Config::new(profile).with(|it| {
        it.mss = 1000;
        set(it);
    });
    let mut world = World::new(config.clone(), config);
    world.lines = [
        vec![Line::new(0, 0), Line::new(8_320_000, 50 * MS)],
        vec![Line::new(0, 50 * MS)],
    ];
    let mut left: BTreeMap<u32, u32> = losses.iter().copied().collect();
    world.fate = Box::new(move |end, _, packet| {
        let segment = segment_of(packet).filter(|_| end == 0);
        match segment.and_then(|segment| left.get_mut(&segment)) {
            Some(times) if *times > 0 => {
                *times -= 1;
                Fate::Drop
            }
            _ => Fate::Pass,
        }
    });
    world.ends[1].set_discard(true);
    world.run_until(150 * MS);
    world.ends[0].write_zeros(segments * 1000).unwrap();
    world.drain(0);
    world
}

/// Send time, ms, and number of each segment sent.
fn sends(world: &World) -> Vec<(Nanos, u64)> {
    world.samples[0]
        .iter()
        .filter(|sample| matches!(sample.probe, Probe::Sent | Probe::Retransmitted))
        .map(|sample| (sample.at / MS, sample.value as u64 + 1))
        .collect()
}

fn again(world: &World) -> Vec<(Nanos, u64)> {
    let again = world.samples[0].iter();
    again
        .filter(|sample| sample.probe == Probe::Retransmitted)
        .map(|sample| (sample.at / MS, sample.value as u64 + 1))
        .collect()
}

/// The last two of ten segments are lost. The last acknowledgement arrives at 258 ms, the probe
/// follows two round trips later, and the loss is detected one round trip after the probe. Without
/// a probe, the timeout takes a second.
#[test]
fn a_lost_tail_is_probed_two_round_trips_after_the_last_acknowledgement() {
    let mut probed = world(10, 10, &[(9, 1), (10, 1)], |it| it.rack = true);
    probed.run_until(3 * SECOND);
    let [(first, 10), (second, 9)] = again(&probed)[..] else {
        panic!("{:?}", again(&probed));
    };
    assert!((456..=464).contains(&first), "{first}");
    assert!((556..=566).contains(&second), "{second}");
    let stats = probed.ends[0].stats();
    assert_eq!((stats.timeouts, stats.tail_probes), (0, 1));
    assert_eq!(probed.ends[0].unacknowledged(), 0);

    let mut waits = world(10, 10, &[(9, 1), (10, 1)], |_| {});
    waits.run_until(3 * SECOND);
    assert_eq!(again(&waits)[0].1, 9);
    assert!(again(&waits)[0].0 >= 1256, "{:?}", again(&waits));
    assert!(waits.ends[0].stats().timeouts >= 1);
}

/// Segment 3 and its retransmission are lost.
#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let run = |rack: bool| {
        let mut world = world(60, 20, &[(3, 2)], |it| it.rack = rack);
        world.run_until(10 * SECOND);
        assert_eq!(world.ends[0].unacknowledged(), 0);
        let times: Vec<Nanos> = again(&world)
            .into_iter()
            .filter(|&(_, segment)| segment == 3)
            .map(|(at, _)| at)
            .collect();
        (times, world.ends[0].stats().timeouts)
    };
    let (times, timeouts) = run(true);
    // The acknowledgements of three segments sent after segment 3 arrive by 256 ms. Data sent after
    // the retransmission is acknowledged a round trip later.
    assert_eq!(timeouts, 0);
    assert!((254..=258).contains(&times[0]), "{times:?}");
    assert!((355..=390).contains(&times[1]), "{times:?}");
    let (times, timeouts) = run(false);
    assert!(timeouts >= 1 && times[1] > 1200, "{times:?}");
}

/// A segment that arrives 20 ms late must not be retransmitted, because the delay is less than a
/// quarter of the round-trip time.
#[test]
fn reordering_within_a_quarter_of_the_round_trip_is_no_loss() {
    let mut world = world(4, 4, &[], |it| it.rack = true);
    world.fate = Box::new(|_, _, _| Fate::Pass);
    world.run_until(SECOND);
    world.fate = Box::new(|end, _, packet| match segment_of(packet) {
        Some(5) if end == 0 => Fate::Late(20 * MS),
        _ => Fate::Pass,
    });
    world.ends[0].write_zeros(2_000).unwrap();
    world.drain(0);
    world.run_until(2 * SECOND);
    assert_eq!(again(&world), []);
    assert_eq!(world.ends[0].unacknowledged(), 0);
}

/// Segment 1 of 20 is lost. With proportional rate reduction, the recovery sends one segment for
/// every second one that arrives, from the start. Without it, the sender first pauses for half a
/// window.
#[test]
fn the_reduction_is_spread_over_the_recovery() {
    let gaps = |spread: bool, rack: bool| {
        let mut world = world(200, 20, &[(1, 1)], |it| {
            it.proportional_rate_reduction = spread;
            it.rack = rack;
        });
        world.run_until(10 * SECOND);
        assert_eq!(world.ends[0].unacknowledged(), 0);
        let times: Vec<Nanos> = sends(&world).iter().map(|&(at, _)| at).collect();
        let recovery = times.iter().filter(|at| (252..=271).contains(*at));
        let times: Vec<Nanos> = recovery.copied().collect();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        (gaps.max().unwrap_or(99), times.len())
    };
    for rack in [false, true] {
        let (silence, _) = gaps(false, rack);
        assert!(silence >= 6, "{rack}: {silence}");
        let (silence, sent) = gaps(true, rack);
        assert!(silence <= 4, "{rack}: {silence}");
        assert!((9..=14).contains(&sent), "{rack}: {sent}");
    }
}

/// Under random losses in both directions, all data arrives, and timeouts are rare with RACK-TLP.
#[test]
fn random_losses_cost_few_timeouts() {
    let seed = std::env::var("CASE").map_or(8985, |seed| seed.parse().expect("a number"));
    println!("CASE={seed}");
    let run = |rack: bool| {
        let mut world = world(2_000, 10, &[], |it| it.rack = rack);
        world.keep_sent = false;
        let mut random: u64 = seed;
        world.fate = Box::new(move |_, _, _| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let lost = (random >> 33) % 100 < 8;
            if lost { Fate::Drop } else { Fate::Pass }
        });
        let mut until = world.now;
        while world.ends[0].unacknowledged() > 0 {
            until += SECOND;
            assert!(until < 3_600 * SECOND);
            world.run_until(until);
        }
        (until / SECOND, world.ends[0].stats().timeouts)
    };
    let (with, without) = (run(true), run(false));
    println!("with RACK-TLP {with:?}, without {without:?}");
    assert!(with.1 * 2 < without.1, "{with:?}, {without:?}");
}

/// Every other packet of the client is lost from segment 100 on. Recoveries follow one another, and
/// the cumulative acknowledgement lags behind the data that has arrived, so more than twice the
/// window is outstanding, most of which has already arrived. Each of the five recoveries should
/// still halve the window. If the arriving packets are marked, the sender responds to one mark. The
/// first recovery after it concerns the same window of data (RFC 3168 §6.1.2). The other recoveries
/// are caused by lost retransmissions, which indicate new congestion (RFC 5681 §4.3).
#[test]
fn the_window_falls_while_half_of_all_packets_are_lost() {
    for other in [Fate::Pass, Fate::Mark] {
        let mut world = world(20_000, 200, &[], |it| {
            (it.rack, it.profile.ecn) = (true, other == Fate::Mark);
        });
        world.fate = Box::new(move |end, number, _| match end == 0 && number > 100 {
            true if number % 2 == 0 => Fate::Drop,
            true => other,
            false => Fate::Pass,
        });
        world.run_until(SECOND);
        let windows = world.probe(0, Probe::Cwnd);
        let last = windows.last().expect("a window").1 / 1000.0;
        assert!(last <= 4.0, "{other:?}: {last} segments after a second");
        let marks = world.ends[0].stats().reductions_by_mark;
        assert_eq!(marks > 0, other == Fate::Mark, "{marks}");
    }
}

/// For all combinations of losses and marks, a reduction may halve the window, but not the larger
/// amount of outstanding data, most of which has arrived.
#[test]
fn a_mark_halves_no_more_than_the_window() {
    let mut marks = 0;
    for seed in 1..=100_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut below = move |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        let mut world = world(20_000, 200, &[], |it| {
            (it.rack, it.profile.ecn) = (seed % 2 == 0, true);
        });
        world.fate = Box::new(move |end, number, _| match (end, below(10)) {
            (0, 0..3) if (100..400).contains(&number) => Fate::Drop,
            (0, 3..6) if number >= 100 => Fate::Mark,
            _ => Fate::Pass,
        });
        world.run_until(3 * SECOND);
        let windows = world.probe(0, Probe::Cwnd);
        for (at, value) in world.probe(0, Probe::Ssthresh) {
            let before = windows.iter().rev().find(|(then, _)| *then < at);
            let (_, before) = before.expect("a window");
            // The same acknowledgement may have increased the window by one segment before the
            // reduction.
            let most = (before / 2.0).max(2_000.0) + 1_000.0;
            let at = at / MS;
            assert!(value <= most, "seed {seed}: {value} of {before} at {at} ms");
        }
        marks += world.ends[0].stats().reductions_by_mark;
    }
    assert!(marks > 100, "{marks} marks were answered");
}
