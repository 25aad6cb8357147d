use anabranch_transport::Ecn;

use super::super::testing::{MS, QueueTester};
use super::*;
use crate::rng::Seed;

fn red(config: RedConfig) -> Red {
    Red::new(config).expect("a queue")
}

/// Computed by hand with a weight of 1/4: samples of 8, 8 and 0 packets result in 2, 3.5 and 2.625.
/// Two idle packet times multiply the average by 9/16, and a sample of 0 then by 3/4.
#[test]
fn the_average_is_what_it_is_by_hand() {
    let mut red = red(RedConfig {
        w_q: 0.25,
        ..RedConfig::default()
    });
    red.idle = None;
    for (packets, average) in [(8, 2.0), (8, 3.5), (0, 2.625)] {
        red.sample(0, packets);
        assert_eq!(red.average, average);
    }
    red.idle = Some(10 * MS);
    red.sample(12 * MS, 0);
    assert_eq!(red.average, 2.625 * 9.0 / 16.0 * 0.75);
}

/// A packet that is dropped at an empty queue does not end the idle time. After two seconds, or
/// 2,000 packet times, the average is below `min_th`, and the next packet is queued.
#[test]
fn a_packet_that_an_idle_queue_drops_leaves_it_idle() {
    let mut red = red(RedConfig::default());
    red.average = 100.0;
    let mut bench = QueueTester::new(Box::new(red), Ecn::NotEct);
    assert_eq!(bench.come(0, 1, 0), 1, "above twice `max_th` all go");
    assert_eq!(bench.come(2_000 * MS, 1, 0), 0);
}

/// The average is above twice `max_th`, so all packets are dropped. With `spare`, no packet is
/// dropped at a queue of at most one packet, nor is the first packet after that (`old` of ns-2). Of
/// four arriving packets three are queued; after two have left, another packet is queued.
#[test]
fn a_short_queue_is_spared() {
    for (spare, refused, then) in [(true, 1, 0), (false, 4, 1)] {
        let mut red = red(RedConfig {
            spare,
            ..RedConfig::default()
        });
        red.average = 100.0;
        let mut bench = QueueTester::new(Box::new(red), Ecn::NotEct);
        assert_eq!(bench.come(0, 4, 0), refused);
        bench.go([0, 0]);
        assert_eq!(bench.come(0, 1, 0), then);
    }
}

/// p_b is always 1/20. The first two packets are not dropped, because the queue is short. As in
/// ns-2, counting begins with the third packet, which is queued without a draw. The fourth packet
/// is dropped with probability 1/18, and one of the first 19 counted packets is always dropped.
#[test]
fn ns_2_counts_the_packet_behind_a_short_queue() {
    let mut red = red(RedConfig {
        spare: true,
        w_q: 1e-12,
        ..RedConfig::default()
    });
    red.average = 10.0;
    let mut bench = QueueTester::new(Box::new(red), Ecn::NotEct);
    let joined: Vec<usize> = (0..300)
        .map(|_| {
            let joined = (0..40).take_while(|_| bench.come(0, 1, 0) == 0).count();
            bench.go([0; 40]);
            joined
        })
        .collect();
    let bounds = (joined.iter().min(), joined.iter().max());
    assert_eq!(bounds, (Some(&3), Some(&20)));
}

/// With a weight of 1, three packets arrive during a transmission. The third finds two queued
/// packets, which exceeds `max_th` only if the packet in transmission counts.
#[test]
fn the_packet_in_transmission_counts_or_not() {
    for (waiting_only, refused) in [(false, 1), (true, 0)] {
        let red = red(RedConfig {
            min_th: 2,
            max_th: 3,
            w_q: 1.0,
            gentle: false,
            waiting_only,
            ..RedConfig::default()
        });
        let mut bench = QueueTester::new(Box::new(red), Ecn::NotEct);
        bench.in_service.packets = 1;
        assert_eq!(bench.come(0, 3, 0), refused);
    }
}

#[test]
fn the_probability_rises_in_two_slopes() {
    let mut gentle = red(RedConfig::default());
    for (average, base) in [
        (4.9, 0.0),
        (5.0, 0.0),
        (10.0, 0.05),
        (15.0, 0.1),
        (22.5, 0.55),
    ] {
        gentle.average = average;
        let (found, surely) = gentle.base();
        assert!(
            (found - base).abs() < 1e-12 && !surely,
            "{average}: {found}"
        );
    }
    gentle.average = 30.0;
    assert_eq!(gentle.base(), (1.0, true));
    let mut harsh = red(RedConfig {
        gentle: false,
        ..RedConfig::default()
    });
    harsh.average = 15.0;
    assert_eq!(harsh.base(), (1.0, true));
}

/// With p_b = 1/20 the counter of the paper's figure 2 is 1 at the first packet after a drop. This
/// packet is dropped with probability 1/19, and the 19th certainly, so gaps are uniform on 1 to 19
/// (§7), and 10 on average.
#[test]
fn gaps_are_uniform() {
    let (least, most, mean) = gaps(RedConfig::default());
    assert_eq!((least, most), (1, 19));
    // Standard error of 20,000 gaps: 5.48 / sqrt(20,000) = 0.039.
    assert!((mean - 10.0).abs() < 0.2, "{mean}");
}

/// With a minimum distance no packet is dropped before 20 packets have arrived, and the gaps are
/// uniform on 20 to 39.
#[test]
fn gaps_with_a_minimum_distance_are_uniform() {
    let (least, most, mean) = gaps(RedConfig {
        wait: true,
        ..RedConfig::default()
    });
    assert_eq!((least, most), (20, 39));
    // Standard error of 6,800 gaps: 5.77 / sqrt(6,800) = 0.07.
    assert!((mean - 29.5).abs() < 0.35, "{mean}");
}

/// Minimum, maximum and mean number of packets between two drops, with p_b = 1/20.
fn gaps(config: RedConfig) -> (u64, u64, f64) {
    let mut red = red(config);
    red.average = 10.0;
    red.count = Some(0);
    let mut rng = Seed::new(1, 0).stream("queue");
    let (mut gap, mut gaps) = (0, Vec::new());
    for _ in 0..200_000 {
        gap += 1;
        if red.chooses(&mut rng).is_some() {
            gaps.push(gap);
            gap = 0;
        }
    }
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    let [least, most] = [gaps.iter().min(), gaps.iter().max()].map(|it| *it.expect("a gap"));
    (least, most, mean)
}

/// If the arrival rate is twice the service rate, the average settles between `max_th` and twice
/// `max_th`, at a drop probability of one half.
#[test]
fn a_standing_queue_comes_to_rest() {
    for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true)] {
        let config = RedConfig {
            ecn: true,
            ..RedConfig::default()
        };
        let mut bench = QueueTester::new(Box::new(red(config)), ecn);
        let mut refused = 0;
        for ms in 0..20_000 {
            // Packets of senders that are marked but do not slow down are dropped in the end.
            refused += bench.come(ms * MS, 2, 0);
            bench.go([ms * MS]);
        }
        assert!((19_000..20_100).contains(&refused), "{refused} of 40,000");
        assert!(bench.waiting() < 60, "{}", bench.waiting());
        assert_eq!(!bench.marked.is_empty(), marks);
    }
}

/// The idle time before a packet that is dropped at an empty queue is counted only once.
#[test]
fn idle_time_counts_once() {
    let mut red = red(RedConfig {
        w_q: 0.5,
        ..RedConfig::default()
    });
    (red.average, red.idle) = (8.0, Some(0));
    for (at, average) in [(1, 2.0), (1, 1.0), (3, 0.125), (4, 0.03125)] {
        red.sample(at * MS, 0);
        assert_eq!(red.average, average, "at {at} ms");
    }
}
