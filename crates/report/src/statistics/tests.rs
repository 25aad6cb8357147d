use super::*;

fn close(left: f64, right: f64, tolerance: f64) {
    assert!(
        (left - right).abs() <= tolerance,
        "{left} is not within {tolerance} of {right}"
    );
}

#[test]
fn t_quantiles_are_those_of_the_printed_tables() {
    for (degrees, printed) in [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (9, 2.262),
        (19, 2.093),
        (29, 2.045),
    ] {
        close(t_quantile(degrees).unwrap(), printed, 0.0005);
    }
    close(t_quantile(100_000).unwrap(), 1.960, 0.0005);
    assert_eq!(t_quantile(0), None);
}

#[test]
fn summary_of_four_numbers_by_hand() {
    // Mean 5, deviations -3, -1, 1, 3, sum of squares 20, s = sqrt(20 / 3) = 2.58199, and t(3) =
    // 3.18245.
    let summary = Summary::of(&[2.0, 4.0, 6.0, 8.0]).unwrap();
    assert_eq!((summary.replications, summary.mean), (4, 5.0));
    close(summary.deviation, 2.581_99, 1e-5);
    close(
        summary.confidence().unwrap(),
        3.182_45 * 2.581_99 / 2.0,
        1e-4,
    );
    let one_more = summary.prediction().unwrap();
    close(
        one_more.high - 5.0,
        3.182_45 * 2.581_99 * 1.25_f64.sqrt(),
        1e-4,
    );
    close(5.0 - one_more.low, one_more.high - 5.0, 1e-12);
}

#[test]
fn one_replication_has_a_mean_and_no_interval() {
    let summary = Summary::of(&[7.5]).unwrap();
    assert_eq!((summary.mean, summary.deviation), (7.5, 0.0));
    assert_eq!(summary.confidence(), None);
    assert_eq!(summary.prediction(), None);
    assert_eq!(Summary::of(&[]), None);
}

#[test]
fn equal_replications_have_an_interval_of_no_width() {
    let summary = Summary::of(&[4.25; 5]).unwrap();
    assert_eq!(summary.confidence(), Some(0.0));
    assert!(summary.prediction().unwrap().contains(4.25));
}

#[test]
fn differences_are_taken_over_common_replications_only() {
    let later = [(0, 10.0), (1, 12.0), (3, 20.0), (4, 1.0)];
    let earlier = [(1, 11.0), (2, 99.0), (3, 17.0), (5, 0.0)];
    let difference = paired_difference(&later, &earlier).unwrap();
    assert_eq!((difference.replications, difference.mean), (2, 2.0));
    assert_eq!(paired_difference(&later, &[(7, 1.0)]), None);
}

#[test]
fn pairing_removes_what_both_share() {
    let shared = [3.0, 90.0, -20.0, 41.0, 7.0];
    let earlier: Vec<_> = shared
        .iter()
        .enumerate()
        .map(|(i, v)| (i as u32, *v))
        .collect();
    let later: Vec<_> = earlier.iter().map(|(i, v)| (*i, v + 2.0)).collect();
    let difference = paired_difference(&later, &earlier).unwrap();
    assert_eq!(difference.mean, 2.0);
    assert_eq!(difference.confidence(), Some(0.0));
}

#[test]
fn intervals_touch_when_they_share_an_end() {
    let left = Interval {
        low: 1.0,
        high: 2.0,
    };
    assert!(left.overlaps(Interval {
        low: 2.0,
        high: 3.0
    }));
    assert!(!left.overlaps(Interval {
        low: 2.1,
        high: 3.0
    }));
    assert!(left.widened(0.2).overlaps(Interval {
        low: 2.1,
        high: 3.0
    }));
}

#[test]
fn scores_are_those_of_the_t_distribution() {
    let runs = Summary {
        replications: 20,
        mean: 10.0,
        deviation: 2.0,
    };
    // The standard deviation of one more run is s sqrt(1.05) = 2.04939. The end of the 95 % band
    // has the normal score 1.96.
    let end = 10.0 + 2.093_024 * 2.049_39;
    close(normal_score(&runs, end, 0.0).unwrap(), 1.959_96, 1e-3);
    close(
        normal_score(&runs, 20.0 - end, 0.0).unwrap(),
        -1.959_96,
        1e-3,
    );
    close(normal_score(&runs, end + 0.5, 0.5).unwrap(), 1.959_96, 1e-3);
    assert_eq!(normal_score(&runs, 10.3, 0.5), Some(0.0));
    let still = Summary {
        deviation: 0.0,
        ..runs
    };
    assert_eq!(normal_score(&still, 11.0, 0.5), Some(MAX_SCORE));
    assert_eq!(
        normal_score(
            &Summary {
                replications: 1,
                ..runs
            },
            11.0,
            0.5
        ),
        None
    );
}

#[test]
fn ranks_stand_in_the_middle_of_their_equals() {
    let runs = [1.0, 2.0, 2.0, 3.0];
    let rank = Rank::of(&runs, 2.04, 0.05);
    assert_eq!(
        (rank.below, rank.equal, rank.of, rank.place()),
        (1, 2, 5, 3.0)
    );
    close(rank_score(rank), 0.0, 1e-9);
    // The value is above all twenty runs, so its score is the normal quantile at 20.5 / 21 =
    // 0.97619.
    let above = Rank::of(&[0.0; 20], 1.0, 0.0);
    close(rank_score(above), 1.981, 1e-3);
}

#[test]
fn a_quantile_lies_between_two_values() {
    let values = [1.0, 2.0, 4.0, 8.0];
    for (part, expected) in [(0.0, 1.0), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
        close(quantile(&values, part).unwrap(), expected, 1e-12);
    }
    assert_eq!(quantile(&[5.0], 0.1), Some(5.0));
    assert_eq!(quantile(&[], 0.5), None);
}

#[test]
fn quantiles_hold_one_more_run_as_often_as_they_say() {
    let runs: Vec<f64> = (1..=20).map(f64::from).collect();
    let (band, likely) = quantile_band(&runs).unwrap();
    assert_eq!((band.low, band.high), (1.0, 20.0));
    close(likely, 19.0 / 21.0, 1e-12);
    // 79 runs have 80 gaps. The two outermost gaps are 2.5 % of these, so the band starts at the
    // second run from either end.
    let runs: Vec<f64> = (1..=79).map(f64::from).collect();
    let (band, likely) = quantile_band(&runs).unwrap();
    assert_eq!((band.low, band.high), (2.0, 78.0));
    close(likely, 0.95, 1e-12);
    assert_eq!(quantile_band(&[1.0]), None);
}

#[test]
fn a_column_is_unlikely_when_all_lean_to_one_side_or_stray() {
    let p = |scores: &[f64]| joint_probability(scores).unwrap();
    // With a single score the test is a two-sided normal test.
    close(p(&[1.959_96]), 0.05, 1e-4);
    // The sum of four scores of 1.5, divided by its standard deviation of 2, is 3. This has a
    // two-sided probability of 0.0027; doubled, it is 0.0054. The sum of squares, 9, has a
    // probability of 0.061 with 4 degrees of freedom.
    close(p(&[1.5; 4]), 0.0054, 1e-4);
    // If the deviations to the two sides are equal, only the sum of squares contributes, with a
    // probability of 0.0611, which is doubled.
    close(p(&[1.5, -1.5, 1.5, -1.5]), 0.1222, 1e-3);
    close(p(&[0.1, -0.2, 0.1]), 1.0, 1e-9);
    assert_eq!(joint_probability(&[]), None);
}
