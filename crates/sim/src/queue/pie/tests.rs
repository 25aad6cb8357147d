use anabranch_transport::Ecn;

use super::super::testing::{MS, QueueTester};
use super::*;

fn pie(config: PieConfig) -> Pie {
    Pie::new(config).expect("a queue")
}

/// Computed by hand, starting from probability 0. If the delay rises from 0 to 35 ms, the increase
/// is 0.125 x 20 ms + 1.25 x 35 ms = 0.04625. It is divided by 2048, because the probability is
/// below 0.000001, and is 0.0000225830. With an unchanged delay, 0.125 x 20 ms = 0.0025, divided by
/// 128, adds 0.0000195313.
#[test]
fn an_update_is_what_it_is_by_hand() {
    let mut pie = pie(PieConfig::default());
    pie.update(35 * MS);
    assert!((pie.probability - 0.04625 / 2048.0).abs() < 1e-15);
    pie.update(35 * MS);
    let expected = 0.04625 / 2048.0 + 0.0025 / 128.0;
    assert!(
        (pie.probability - expected).abs() < 1e-15,
        "{}",
        pie.probability
    );
    assert_eq!(pie.burst, 120 * MS);
}

/// From 10 % on the probability grows by at most 2 percentage points per update, and it never
/// exceeds 1 (§5.5).
#[test]
fn growth_is_capped() {
    let mut pie = pie(PieConfig::default());
    pie.probability = 0.1;
    pie.update(1_000 * MS);
    assert!((pie.probability - 0.12).abs() < 1e-12);
    for _ in 0..100 {
        pie.update(1_000 * MS);
    }
    assert_eq!(pie.probability, 1.0);
}

/// While the queue is empty the probability falls to 0: by 2 % per update, and by the controller.
/// Then a burst is allowed again.
#[test]
fn an_empty_queue_forgets() {
    let mut pie = pie(PieConfig::default());
    (pie.probability, pie.burst) = (0.05, 0);
    pie.update(0);
    assert!((pie.probability - (0.05 - 0.001_875 / 2.0) * 0.98).abs() < 1e-12);
    pie.catch_up(3_600_000 * MS);
    assert_eq!((pie.probability, pie.burst), (0.0, 150 * MS));
    assert!(pie.next_update > 3_600_000 * MS && pie.next_update <= 3_600_015 * MS);
}

/// A packet of 1500 bytes leaves every millisecond, which is 1.5 MB/s. The rate is measured over
/// the first 11 packets, which have at least 16384 bytes, so 40 queued packets are a delay of 40
/// ms.
#[test]
fn the_delay_is_what_waits_by_the_rate_that_leaves() {
    let mut pie = pie(PieConfig::default());
    for ms in 0..12 {
        assert_eq!(pie.rate, None);
        pie.waiting = Fifo::new();
        pie.measured = pie.measured.or(Some((ms * MS, 0)));
        pie.measure(ms * MS, 1500);
    }
    assert_eq!(pie.rate, Some(1_500_000.0));
}

/// If packets arrive at twice the service rate, the queueing delay settles near the target; without
/// PIE it would grow to the limit.
#[test]
fn a_standing_queue_is_brought_to_the_target() {
    let mut bench = QueueTester::new(Box::new(pie(PieConfig::default())), Ecn::NotEct);
    // Each millisecond one packet leaves and two arrive, so half of them must be dropped.
    let (mut longest, mut refused) = (0, 0);
    for ms in 0..60_000 {
        refused += bench.come(ms * MS, 2, 0);
        bench.go([ms * MS]);
        if ms > 30_000 {
            longest = longest.max(bench.waiting());
        }
    }
    assert!((5..60).contains(&longest), "{longest} packets of 1 ms each");
    assert!((55_000..62_000).contains(&refused), "{refused} of 120,000");
}

/// Packets of ECN senders are marked while the probability is below 10 %, and dropped above it
/// (§5.1).
#[test]
fn marks_end_where_the_probability_is_large() {
    let config = PieConfig {
        ecn: true,
        ..PieConfig::default()
    };
    for (probability, marked) in [(0.09, true), (0.11, false)] {
        let mut pie = pie(config);
        (pie.probability, pie.delay, pie.burst) = (probability, 30 * MS, 0);
        // The accumulated probability is so large that the next packet is selected.
        pie.accumulated = 8.5;
        pie.next_update = 1_000 * MS;
        let mut bench = QueueTester::new(Box::new(pie), Ecn::Ect0);
        // Three packets are not dropped, because the queue is short in bytes; the fourth may be
        // dropped.
        assert_eq!(bench.come(0, 3, 0), 0);
        assert_eq!(bench.come(0, 1, 0), u64::from(!marked));
        bench.go([0; 4]);
        let expected: &[u64] = if marked { &[3] } else { &[] };
        assert_eq!(bench.marked, expected);
    }
}
