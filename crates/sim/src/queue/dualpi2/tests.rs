use super::super::testing::{MS, QueueTester};
use anabranch_transport::time::MICROSECOND;

use super::*;

fn bench(config: DualPi2Config) -> QueueTester {
    let queue = DualPi2::new(config).expect("a queue");
    QueueTester::new(Box::new(queue), Ecn::NotEct)
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

/// Computed by hand with updates every 15 ms; the gains are 0.1 x 0.015 / 0.1^2 = 0.15 and 0.3 /
/// 0.1 = 3. When the delay rises from 0 to 35 ms, 0.15 x 0.02 + 3 x 0.035 is added to the
/// probability. With an unchanged delay, 0.15 x 0.02 is added. When the delay falls to 5 ms, 0.15 x
/// -0.01 - 3 x 0.03 is added.
#[test]
fn an_update_is_what_it_is_by_hand() {
    let mut queue = DualPi2::new(DualPi2Config::default()).expect("a queue");
    assert_eq!(queue.update, 15 * MS);
    queue.move_probability(35 * MS);
    close(queue.probability, 0.003 + 0.105);
    queue.move_probability(35 * MS);
    close(queue.probability, 0.111);
    queue.move_probability(5 * MS);
    close(queue.probability, 0.111 - 0.0015 - 0.09);
    (0..100).for_each(|_| queue.move_probability(0));
    assert_eq!(queue.probability, 0.0);
}

/// Thirty packets arrive at once. The updates at 15, 30 and 45 ms use the sojourn times of the
/// packets that are first in the queue then.
#[test]
fn the_delay_is_that_of_the_first_packet() {
    let mut queue = DualPi2::new(DualPi2Config::default()).expect("a queue");
    queue.probability = 0.1;
    queue.catch_up(46 * MS);
    // The queue is empty, so each of three updates adds 0.15 x -0.015.
    close(queue.probability, 0.1 - 3.0 * 0.002_25);
    assert_eq!(queue.next_update, 60 * MS);
}

/// While both queues have packets, the classic queue gets one byte in 16. A queue that is alone
/// gets the whole link.
#[test]
fn the_scheduler_prefers_low_delay_and_starves_no_queue() {
    let mut it = bench(DualPi2Config {
        l4s_min_th: 1_000_000 * MS,
        l4s_max_th: 1_000_000 * MS,
        ..DualPi2Config::default()
    });
    it.come(0, 200, 1);
    it.ecn = Ecn::Ect1;
    it.come(0, 2000, 2);
    let out: Vec<u64> = it.go([0; 1600]).into_iter().flatten().collect();
    let classic = out.iter().filter(|&&id| id < 200).count();
    assert_eq!(out.len(), 1600);
    assert!((95..=105).contains(&classic), "{classic}");
    let order: Vec<u64> = out.iter().copied().filter(|&id| id < 200).collect();
    assert!(order.is_sorted());
    assert!(it.marked.is_empty() && it.dropped.is_empty());
}

/// If the L queue has more than two packets, a packet with a sojourn time of 1 ms is marked with a
/// likelihood of one half, and from 1.2 ms on always. With two packets none is marked.
#[test]
fn the_ramp_marks_by_the_time_waited() {
    let queue = DualPi2::new(DualPi2Config::default()).expect("a queue");
    for (microseconds, bytes, likelihood) in [
        (799, 9000, 0.0),
        (1000, 9000, 0.5),
        (1200, 9000, 1.0),
        (9000, 9000, 1.0),
        (9000, 3000, 0.0),
    ] {
        close(queue.ramp(microseconds * MICROSECOND, bytes), likelihood);
    }
    let mut it = bench(DualPi2Config::default());
    it.ecn = Ecn::Ect1;
    it.come(0, 10, 1);
    it.go([2 * MS; 10]);
    // The first packet is not marked, because its sum of 1 is not above 1 (`recur`). The last two
    // are not marked, because the L queue then has only two packets.
    assert_eq!(it.marked, [1, 2, 3, 4, 5, 6, 7]);
    assert!(it.dropped.is_empty());
}

fn held_at(probability: f64, ecn: Ecn) -> (usize, usize) {
    let mut queue = DualPi2::new(DualPi2Config {
        l4s_min_th: 1_000_000 * MS,
        l4s_max_th: 1_000_000 * MS,
        ..DualPi2Config::default()
    })
    .expect("a queue");
    queue.probability = probability;
    let mut it = QueueTester::new(Box::new(queue), ecn);
    it.come(0, 1000, 1);
    it.go([0; 1000]);
    (it.marked.len(), it.dropped.len())
}

/// At a base probability of 10 %, one in a hundred classic packets is dropped and one in five L
/// packets is marked. At 60 %, L packets are dropped as often as classic ones (36 %), the other L
/// packets are marked, and classic packets are always dropped and not marked.
#[test]
fn both_queues_are_judged_by_one_probability() {
    // The counts may differ by one packet, because the accumulated likelihood is a sum of many
    // rounded numbers.
    let ((none, dropped), (marked, no_drop)) = (held_at(0.1, Ecn::NotEct), held_at(0.1, Ecn::Ect0));
    assert_eq!((none, no_drop, dropped), (0, 0, marked));
    assert!((9..=10).contains(&dropped), "{dropped}");
    let (marked, dropped) = held_at(0.1, Ecn::Ect1);
    assert!((198..=200).contains(&marked) && dropped == 0, "{marked}");
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let (marked, dropped) = held_at(0.6, ecn);
        assert!(
            marked == 0 && dropped.abs_diff(360) <= 1,
            "{marked} {dropped}"
        );
    }
    let (marked, dropped) = held_at(0.6, Ecn::Ect1);
    assert!(
        dropped.abs_diff(360) <= 2 && marked + dropped >= 997,
        "{marked} {dropped}"
    );
}

#[test]
fn a_full_queue_refuses_either_kind() {
    let mut it = bench(DualPi2Config {
        limit: QueueLimit::Packets(3),
        ..DualPi2Config::default()
    });
    assert_eq!(it.come(0, 2, 1), 0);
    it.ecn = Ecn::Ect1;
    assert_eq!(it.come(0, 2, 1), 1);
    it.ecn = Ecn::NotEct;
    assert_eq!(it.come(0, 1, 1), 1);
    assert_eq!(it.waiting(), 3);
}
