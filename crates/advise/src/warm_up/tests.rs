use anabranch_scenario::quantity::{Probability, Rate};

use super::*;
use crate::executor::{NoProgress, TrialExecutor};

/// Values that grow to 100 in steps of `step`, and then alternate by one.
fn growing(step: f64) -> Vec<f64> {
    let value = |place: usize| (step * place as f64).min(100.0) + (place % 2) as f64;
    (0..40).map(value).collect()
}

#[test]
fn the_warm_up_is_truncated_where_the_series_stops_growing() {
    assert_eq!(
        truncation(&growing(1e9).split_off(1)),
        0,
        "level from the first on"
    );
    let cut = truncation(&growing(10.0));
    assert!((9..=11).contains(&cut), "100 is reached at 10: {cut}");
    let cut = truncation(&growing(2.6));
    assert!(cut > 20, "it grows until nearly the end: {cut}");
}

#[test]
fn halves_are_alike_unless_they_surely_differ_by_more_than_a_tie() {
    let with = |more: f64, spread: f64| {
        let halves: Vec<(f64, f64)> = [-1.0, 0.0, 1.0, 0.0]
            .iter()
            .map(|part| (100.0, 100.0 + more + part * spread))
            .collect();
        drifts(&halves)
    };
    // The deviation is 0.816 x spread, and the half width 3.182 x 0.816 / 2 = 1.3 x spread.
    assert!(!with(0.9, 0.0), "less than a hundredth");
    assert!(with(1.1, 0.0) && with(-1.1, 0.0));
    assert!(with(2.5, 1.0) && !with(2.2, 1.0));
}

#[test]
fn a_window_that_keeps_growing_is_not_measured_before_it_has_grown() {
    // With 8 Mbit/s x 100 ms, 67 packets fit on the link and 67 in the queue; filling both takes
    // 13.4 s.
    let mut question = Question::new(TimeSpan(100_000_000), Rate(8_000_000), Probability(0.002));
    let warm_up = |question: &Question| {
        let executor = TrialExecutor {
            jobs: 2,
            runner: &anabranch_lab::run::Simulator::default(),
            progress: &NoProgress,
        };
        find_warm_up(question, 2_000.0, executor).expect("it runs")
    };
    question.duration = Some(TimeSpan(5_000_000_000));
    question.congestion = vec!["westwood".to_owned()];
    let slow = warm_up(&question);
    question.congestion = vec!["sctp".to_owned()];
    let fast = warm_up(&question);
    assert!(slow.surely && fast.surely, "{slow:?} {fast:?}");
    assert!(slow.begin > fast.begin, "{slow:?} {fast:?}");
    assert!(slow.events <= EVENTS, "{slow:?}");
}
