use super::*;
use crate::reference::{Mean, Reference};

fn printed(value: &str, unit: &str) -> Published {
    let text = format!("where,series,x_name,x,metric,value,unit\nTable,s,n,2,m,{value},{unit}\n");
    let mut reference = Reference::default();
    reference.read_published("published.csv", &text).unwrap();
    reference.published("Table").next().unwrap().clone()
}

fn sample(mean: f64, deviation: f64, replications: usize) -> Summary {
    Summary {
        replications,
        mean,
        deviation,
    }
}

/// `count` runs with this mean and standard deviation, distributed symmetrically.
fn runs(mean: f64, deviation: f64, count: usize) -> Vec<f64> {
    let middle = (count as f64 - 1.0) / 2.0;
    let places: Vec<f64> = (0..count).map(|index| index as f64 - middle).collect();
    let squares: f64 = places.iter().map(|place| place * place).sum();
    let step = match count {
        1 => 0.0,
        _ => deviation / (squares / (count as f64 - 1.0)).sqrt(),
    };
    places.iter().map(|place| mean + step * place).collect()
}

fn verdict(runs: &[f64], value: &str, rule: Rule) -> Verdict {
    judge(runs, &printed(value, "%"), rule).verdict
}

#[test]
fn a_printed_single_run_is_compatible_inside_the_interval_for_one_more_run() {
    // The half width of the interval is t(19) = 2.093 times 9 * sqrt(1.05), which is 19.30.
    let ours = runs(22.9, 9.0, 20);
    for (value, wanted) in [
        ("23.9", Verdict::Compatible),
        ("42.1", Verdict::Compatible),
        ("42.4", Verdict::Differs),
        ("3.7", Verdict::Compatible),
        ("3.4", Verdict::Differs),
    ] {
        assert_eq!(verdict(&ours, value, Rule::OneMoreRun), wanted, "{value}");
    }
}

/// The half width of the band is 2.093 * s * sqrt(1.05) = 2.1447 s; a fifth of 101 is 20.2.
#[test]
fn a_narrow_band_makes_a_compatible_value_a_reproduced_one() {
    for (deviation, wanted) in [
        (9.4, Verdict::Reproduced),  // 20.16
        (9.45, Verdict::Compatible), // 20.27
    ] {
        let ours = runs(101.0, deviation, 20);
        assert_eq!(
            verdict(&ours, "101", Rule::OneMoreRun),
            wanted,
            "{deviation}"
        );
    }
}

/// A value with one significant digit may be wrong by half its size. Agreement with it proves
/// little, even if the runs are exact.
#[test]
fn a_value_printed_too_coarsely_is_compatible_at_most() {
    for rule in [Rule::OneMoreRun, Rule::Quantiles, Rule::Within(0.0)] {
        for (ours, value, wanted) in [
            (990.0, "1000", Verdict::Compatible),
            (510.0, "1000", Verdict::Compatible),
            (490.0, "1000", Verdict::Differs),
            (1000.0, "1.0e3", Verdict::Reproduced),
            (200.0, "200", Verdict::Compatible),
            (300.0, "300", Verdict::Reproduced), // 16.7 %
            (2.0, "2", Verdict::Compatible),
            (0.0, "0", Verdict::Compatible),
        ] {
            assert_eq!(
                verdict(&[ours; 20], value, rule),
                wanted,
                "{ours} {value} {rule:?}"
            );
        }
    }
    let reason = judge(&[990.0; 20], &printed("1000", "kbit/s"), Rule::OneMoreRun).reason;
    let says = "; the printed 1000 stands for 500 to 1500 kbit/s (50 % to either side): compatible at most";
    assert!(reason.ends_with(says), "{reason}");
    let differs = judge(&[90.0; 20], &printed("1000", "kbit/s"), Rule::OneMoreRun);
    assert_eq!((differs.verdict, differs.remark), (Verdict::Differs, None));
    // The limit also applies to a stated tolerance, as for values that were read off a figure.
    let read = |tolerance| Published {
        tolerance: Some(tolerance),
        ..printed("1000", "kbit/s")
    };
    let judged = |tolerance| judge(&[990.0; 20], &read(tolerance), Rule::OneMoreRun).verdict;
    assert_eq!(judged(20.0), Verdict::Reproduced);
    assert_eq!(judged(9.0), Verdict::Differs);
    assert_eq!(judged(201.0), Verdict::Compatible);
}

#[test]
fn the_reason_names_band_and_rank() {
    let judgement = judge(
        &runs(22.9, 9.0, 20),
        &printed("23.9", "%"),
        Rule::OneMoreRun,
    );
    assert_eq!(
        judgement.reason,
        "one more run would give 3.598 to 42.2 % with 95 %; rank 12 of 21"
    );
    let rank = judgement.rank.unwrap();
    assert_eq!((rank.below, rank.equal, rank.of), (11, 0, 21));
}

/// Jain's index in twenty runs, all below 0.995: a normal distribution would include the printed
/// value, but the quantiles do not.
#[test]
fn a_bounded_quantity_is_held_against_quantiles() {
    let mut ours = runs(0.975, 0.012, 19);
    ours.push(0.9908);
    ours.iter_mut().for_each(|run| *run = run.min(0.9908));
    assert_eq!(
        verdict(&ours, "0.995", Rule::OneMoreRun),
        Verdict::Reproduced
    );
    assert_eq!(verdict(&ours, "0.995", Rule::Quantiles), Verdict::Differs);
    // One more run falls between the smallest and the largest of 20 with a probability of 19/21.
    let judgement = judge(&ours, &printed("0.980", "%"), Rule::Quantiles);
    assert_eq!(judgement.verdict, Verdict::Reproduced);
    assert!(
        judgement.reason.contains("to 0.9908 % with 90 %"),
        "{}",
        judgement.reason
    );
    assert_eq!(
        verdict(&ours[..18], "0.980", Rule::Quantiles),
        Verdict::NotAttempted
    );
}

#[test]
fn printed_rounding_widens_the_interval() {
    // With identical runs only the rounding remains.
    let exact = |mean: f64, value| verdict(&[mean; 20], value, Rule::OneMoreRun);
    assert_eq!(exact(7.4, "7"), Verdict::Reproduced);
    assert_eq!(exact(7.4, "7.0"), Verdict::Differs);
    assert_eq!(exact(1540.0, "1500"), Verdict::Reproduced);
    assert_eq!(exact(1560.0, "1500"), Verdict::Differs);
}

#[test]
fn too_few_replications_decide_nothing() {
    for count in 0..MIN_REPLICATIONS {
        let few = runs(23.9, 1.0, count);
        assert_eq!(
            verdict(&few, "23.9", Rule::OneMoreRun),
            Verdict::NotAttempted,
            "{count}"
        );
    }
}

#[test]
fn without_chance_rounding_and_tolerance_decide() {
    let exact = |value: f64, text| judge(&[value], &printed(text, "segments"), Rule::Within(0.0));
    // A window of 4.25 + 1 / 4.25 = 4.48529 segments of 1448 bytes is 6494 / 1448 = 4.48481
    // segments if it is rounded down to whole bytes.
    assert_eq!(exact(4.485_294, "4.485").verdict, Verdict::Reproduced);
    assert_eq!(exact(4.484_81, "4.485").verdict, Verdict::Reproduced);
    assert_eq!(exact(4.484_4, "4.485").verdict, Verdict::Differs);
    let time = |value: f64| judge(&[value], &printed("2.880", "s"), Rule::Within(0.001));
    assert_eq!(time(2.8814).verdict, Verdict::Reproduced);
    let late = time(2.8816);
    assert_eq!(late.verdict, Verdict::Differs);
    assert_eq!(
        late.reason,
        "2.8816 s against the printed 2.880 s; allowed: 0.001 s and its rounding"
    );
    assert_eq!((late.rank, late.score), (None, None));
}

#[test]
fn intervals_overlap_those_of_another_program_or_not() {
    let compare = |ours: Option<&Summary>, theirs: &Mean| super::with_baseline(ours, "ns2", theirs);
    let ns2 = |mean, confidence| Mean {
        line: 2,
        place: "Table".into(),
        condition: "era".into(),
        metric: "m".into(),
        mean,
        confidence,
        replications: 20,
        unit: String::new(),
    };
    // t(19) s / sqrt(20) = 2.093 * 4 / 4.4721 = 1.872
    let ours = sample(20.0, 4.0, 20);
    let near = compare(Some(&ours), &ns2(22.0, Some(0.2)));
    assert_eq!((near.overlap, near.difference), (Some(true), Some(-2.0)));
    assert!((near.relative().unwrap() + 0.090_909).abs() < 1e-6);
    assert_eq!(
        compare(Some(&ours), &ns2(22.1, Some(0.2))).overlap,
        Some(false)
    );
    // Runs without variation. The reference is stored with six digits.
    let exact = |mean| sample(mean, 0.0, 20);
    let overlap = |ours, theirs| compare(Some(&exact(ours)), &ns2(theirs, Some(0.0))).overlap;
    assert_eq!(overlap(23.98365, 23.9837), Some(true));
    assert_eq!(overlap(23.983_64, 23.9837), Some(false));
    assert_eq!(overlap(144_990.4, 144_990.0), Some(true));
    assert_eq!(overlap(144_990.6, 144_990.0), Some(false));
    assert_eq!(overlap(0.0, 0.0), Some(true));
    assert_eq!(compare(Some(&ours), &ns2(22.0, None)).overlap, None);
    assert_eq!(
        compare(Some(&sample(20.0, 0.0, 1)), &ns2(22.0, Some(9.0))).overlap,
        None
    );
    assert_eq!(compare(None, &ns2(22.0, Some(9.0))).difference, None);
    assert_eq!(compare(Some(&ours), &ns2(0.0, Some(9.0))).relative(), None);
}

#[test]
fn numbers_keep_their_significant_digits() {
    for (value, text) in [
        (22.877_8, "22.8778"),
        (0.988_645_2, "0.988645"),
        (1500.0, "1500"),
        (123_456_789.0, "123456789"),
        (9.999_999_9, "10"),
        (-0.000_123_456_7, "-0.000123457"),
        (0.0, "0"),
    ] {
        assert_eq!(digits(value, 6), text);
    }
}

#[test]
fn a_printed_number_is_converted_into_the_measured_unit() {
    let (ours, rule) = (runs(0.020, 0.001, 20), Rule::OneMoreRun);
    let milli = printed("20.0", "ms");
    let judged = judge_in(&ours, "s", &milli, rule);
    assert_eq!(judged.verdict, Verdict::Reproduced);
    let reason = "one more run would give 0.01786 to 0.02214 s with 95 %; rank 11 of 21";
    assert_eq!(judged.reason, reason);
    let other = judge_in(&runs(20.0, 1.0, 20), "s", &milli, rule);
    assert_eq!(other.verdict, Verdict::Differs);
    assert_eq!(milli.shown_with("s"), "20.0 ms");
    assert_eq!(milli.shown_with("ms"), "20.0");
    // The range of rounding is converted too: 2.0 Mbit/s is 1950 to 2050 kbit/s.
    let megabits = printed("2.0", "Mbit/s");
    let exact = |value| judge_in(&[value], "kbit/s", &megabits, Rule::Within(0.0)).verdict;
    assert_eq!([1951.0, 2049.0].map(exact), [Verdict::Reproduced; 2]);
    assert_eq!([1949.0, 2051.0].map(exact), [Verdict::Differs; 2]);
    let unitless = Published {
        unit: String::new(),
        ..printed("0.020", "ms")
    };
    let judgement = judge_in(&ours, "s", &unitless, rule);
    assert_eq!(judgement.verdict, Verdict::Reproduced);
}

#[test]
fn numbers_of_other_units_are_not_judged() {
    let judged = judge_in(
        &[2000.0],
        "kbit/s",
        &printed("2.0", "mbit/s"),
        Rule::Within(0.0),
    );
    assert_eq!(judged.verdict, Verdict::NotAttempted);
    assert_eq!(
        judged.reason,
        "printed in \"mbit/s\" and measured in \"kbit/s\"; allowed: kbit/s, bit/s, Mbit/s, Gbit/s; did you mean \"Mbit/s\"?"
    );
}

/// 211.499704 is printed as 211.49 if it is truncated, and as 211.50 if it is rounded. 12.34 and
/// 12.3501 do not match.
#[test]
fn digits_that_were_cut_off_count_as_printed() {
    let printed = |value: &str, how: &str| {
        let text = format!("series,metric,value,unit,printed\ns,m,{value},ms,{how}\n");
        let mut reference = Reference::default();
        reference.read_published("published.csv", &text).unwrap();
        reference.published[0].clone()
    };
    for (ours, value, how, wanted) in [
        (211.499704, "211.49", "truncated", Verdict::Reproduced),
        (211.499704, "211.49", "rounded", Verdict::Differs),
        (211.499704, "211.50", "rounded", Verdict::Reproduced),
        (12.3401, "12.34", "truncated", Verdict::Reproduced),
        (12.3399, "12.34", "truncated", Verdict::Differs),
        (12.3501, "12.34", "truncated", Verdict::Differs),
        (100.4, "100", "truncated", Verdict::Reproduced),
        (99.9, "100", "truncated", Verdict::Differs),
        (-12.3499, "-12.34", "truncated", Verdict::Reproduced),
    ] {
        let judged = judge(&[ours], &printed(value, how), Rule::Within(0.0));
        assert_eq!(judged.verdict, wanted, "{ours} printed {value} {how}");
    }
    // Random runs reproduce a truncated value if each of them would be printed as this value.
    let judged = judge(
        &[211.493; 20],
        &printed("211.49", "truncated"),
        Rule::OneMoreRun,
    );
    assert_eq!(judged.verdict, Verdict::Reproduced);
    assert_eq!(judged.rank.map(crate::statistics::Rank::place), Some(11.0));
}
