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

#[test]
fn a_printed_single_run_is_reproduced_inside_the_interval_for_one_more_run() {
    // t(19) = 2.093; 2.093 * 9 * sqrt(1.05) = 19.30
    let ours = sample(22.9, 9.0, 20);
    for (value, verdict) in [
        ("23.9", Verdict::Reproduced),
        ("42.1", Verdict::Reproduced),
        ("42.4", Verdict::Differs),
        ("3.7", Verdict::Reproduced),
        ("3.4", Verdict::Differs),
    ] {
        let judgement = judge(Some(&ours), &printed(value, "%"), Rule::OneMoreRun);
        assert_eq!(judgement.verdict, verdict, "{value}: {}", judgement.reason);
    }
}

#[test]
fn the_reason_names_the_interval() {
    let judgement = judge(
        Some(&sample(22.9, 9.0, 20)),
        &printed("23.9", "%"),
        Rule::OneMoreRun,
    );
    assert_eq!(judgement.reason, "one more run would give 3.598 to 42.2 %");
}

#[test]
fn printed_rounding_widens_the_interval() {
    // Twenty equal runs: only the rounding is left.
    let ours = sample(7.4, 0.0, 20);
    assert_eq!(
        judge(Some(&ours), &printed("7", "segments"), Rule::OneMoreRun).verdict,
        Verdict::Reproduced
    );
    assert_eq!(
        judge(Some(&ours), &printed("7.0", "segments"), Rule::OneMoreRun).verdict,
        Verdict::Differs
    );
    assert_eq!(
        judge(
            Some(&sample(1540.0, 0.0, 9)),
            &printed("1500", "segments"),
            Rule::OneMoreRun
        )
        .verdict,
        Verdict::Reproduced
    );
    assert_eq!(
        judge(
            Some(&sample(1560.0, 0.0, 9)),
            &printed("1500", "segments"),
            Rule::OneMoreRun
        )
        .verdict,
        Verdict::Differs
    );
}

#[test]
fn too_few_replications_decide_nothing() {
    for replications in 1..MIN_REPLICATIONS {
        let judgement = judge(
            Some(&sample(23.9, 1.0, replications)),
            &printed("23.9", "%"),
            Rule::OneMoreRun,
        );
        assert_eq!(judgement.verdict, Verdict::NotAttempted, "{replications}");
    }
    assert_eq!(
        judge(None, &printed("23.9", "%"), Rule::OneMoreRun).verdict,
        Verdict::NotAttempted
    );
}

#[test]
fn without_chance_rounding_and_tolerance_decide() {
    let exact = Rule::Within(0.0);
    // 4.25 + 1 / 4.25 = 4.48529, and the same in whole bytes of 1448: 6494 / 1448 = 4.48481
    assert_eq!(
        judge(
            Some(&sample(4.485_294, 0.0, 1)),
            &printed("4.485", "segments"),
            exact
        )
        .verdict,
        Verdict::Reproduced
    );
    assert_eq!(
        judge(
            Some(&sample(4.484_81, 0.0, 1)),
            &printed("4.485", "segments"),
            exact
        )
        .verdict,
        Verdict::Reproduced
    );
    assert_eq!(
        judge(
            Some(&sample(4.484_4, 0.0, 1)),
            &printed("4.485", "segments"),
            exact
        )
        .verdict,
        Verdict::Differs
    );
    let time = printed("2.880", "s");
    assert_eq!(
        judge(Some(&sample(2.8954, 0.0, 1)), &time, Rule::Within(0.015)).verdict,
        Verdict::Reproduced
    );
    let late = judge(Some(&sample(2.8956, 0.0, 1)), &time, Rule::Within(0.015));
    assert_eq!(late.verdict, Verdict::Differs);
    assert_eq!(
        late.reason,
        "2.8956 s against the printed 2.880 s; allowed: 0.015 s and its rounding"
    );
}

#[test]
fn intervals_overlap_those_of_another_program_or_not() {
    let compare = |ours: Option<&Summary>, theirs: &Mean| super::beside(ours, "ns2", theirs);
    let ns2 = |mean, confidence| Mean {
        line: 2,
        place: "Table".into(),
        condition: "era".into(),
        metric: "m".into(),
        mean,
        confidence,
        replications: 20,
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
    // Runs without spread, of which the yardstick keeps six digits.
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
fn numbers_in_different_units_are_not_judged() {
    let (ours, rule) = (sample(20.0, 1.0, 20), Rule::OneMoreRun);
    let printed = printed("20", "ms");
    let verdict = |unit| judge_in(Some(&ours), unit, &printed, rule);
    assert_eq!(verdict("ms").verdict, Verdict::Reproduced);
    let other = verdict("s");
    assert_eq!(other.verdict, Verdict::NotAttempted);
    assert_eq!(
        other.reason,
        "printed in ms and measured in s: the two cannot be compared"
    );
    let unitless = Published {
        unit: String::new(),
        ..printed.clone()
    };
    let judgement = judge_in(Some(&ours), "s", &unitless, rule);
    assert_eq!(judgement.verdict, Verdict::Reproduced);
}
