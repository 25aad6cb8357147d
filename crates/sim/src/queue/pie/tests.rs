use anabranch_transport::Ecn;

use super::super::testing::{Bench, MS};
use super::*;

fn pie(config: PieConfig) -> Pie {
    Pie::new(config).expect("a queue")
}

/// Computed by hand, from probability 0 and a delay that rises from 0 to 35 ms: 0.125 x 20 ms +
/// 1.25 x 35 ms = 0.04625, divided by 2048 because the probability is below 0.000001: 0.0000225830.
/// With an unchanged delay 0.125 x 20 ms = 0.0025, divided by 128: 0.0000195313 more.
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

/// From 10 % on the probability grows by at most 2 points per update, and it is at most 1 (§5.5).
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

/// While the queue is empty the probability shrinks by 2 % and by the controller, to 0; then a
/// burst is allowed again.
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

/// A packet of 1500 bytes leaves each ms: 1.5 MB/s, measured over the first 11 packets, which are
/// at least 16384 bytes; 40 queued packets are 40 ms.
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

/// The delay of a queue that receives twice its service rate settles near the target; without PIE
/// it would not.
#[test]
fn a_standing_queue_is_brought_to_the_target() {
    let mut bench = Bench::new(Box::new(pie(PieConfig::default())), Ecn::NotEct);
    // One packet leaves each ms and two arrive: half of them must be dropped.
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

/// Packets of ECN senders are marked while the probability is below 10 %, and dropped from then on
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
        // The next packet is certainly selected.
        pie.accumulated = 8.5;
        pie.next_update = 1_000 * MS;
        let mut bench = Bench::new(Box::new(pie), Ecn::Ect0);
        // Three packets are spared because the queue is short in bytes; the fourth is not.
        assert_eq!(bench.come(0, 3, 0), 0);
        assert_eq!(bench.come(0, 1, 0), u64::from(!marked));
        bench.go([0; 4]);
        let expected: &[u64] = if marked { &[3] } else { &[] };
        assert_eq!(bench.marked, expected);
    }
}
