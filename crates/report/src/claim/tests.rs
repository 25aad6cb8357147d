use std::sync::Arc;

use anabranch_scenario::records::{Manifest, Measure, RunRecord};

use super::*;

/// Results with six replications of `goodput` at hops 1 to 3 with one and four streams. In a
/// replication, both numbers of streams have the same random variation, plus `value` and a small
/// deviation of up to 0.4.
fn results(value: impl Fn(f64, i64) -> f64) -> Results {
    let mut records = Vec::new();
    for hops in 1..=3 {
        for streams in [1, 4] {
            for replication in 0..6 {
                let weather = [0.0, 5.0, -5.0, 3.0, -3.0, 1.0][replication as usize];
                let noise = 0.1 * ((7 * replication + 3 * hops as u32 + streams as u32) % 5) as f64;
                records.push(RunRecord {
                    experiment: "main".into(),
                    point: vec![
                        ("hops".into(), SweepValue::Integer(hops)),
                        ("streams".into(), SweepValue::Integer(streams)),
                    ],
                    replication,
                    metrics: vec![Measure {
                        series: "sctp".into(),
                        metric: "goodput".into(),
                        value: value(hops as f64, streams) + weather + noise,
                        unit: "bit/s".into(),
                    }],
                    events: 0,
                    packet_hops: 0,
                    simulated: 0.0,
                    failures: Vec::new(),
                });
            }
        }
    }
    let text = "anabranch = 1\nname = \"a\"\nnode = []\nflow = []\n[world]\nduration = \"1 s\"\n\
        [[experiment]]\nid = \"main\"\nreplications = 6\n";
    let tree = anabranch_scenario::tree::SpecNode::parse(text).expect("TOML");
    let spec = anabranch_scenario::decode::decode(&tree, "").expect("a spec");
    Results {
        manifest: Manifest {
            version: String::new(),
            commit: None,
            name: String::new(),
            spec: String::new(),
            overrides: Vec::new(),
            only: Vec::new(),
            files: BTreeMap::new(),
            spec_hash: String::new(),
            seed: 1,
            record_all: false,
            added: Vec::new(),
            live: Vec::new(),
            replications: Vec::new(),
            runs: 36,
            packet_hops: 0,
        },
        spec,
        records,
        series: Arc::new(Vec::new()),
    }
}

fn claim(text: &str) -> Claim {
    let head = "id = \"c\"\ntext = \"t\"\nseries = \"sctp\"\nmetric = \"goodput\"\n";
    let tree = anabranch_scenario::tree::SpecNode::parse(&format!("{head}{text}")).expect("TOML");
    anabranch_scenario::decode::decode(&tree, "").expect("a claim")
}

fn judged(text: &str, value: impl Fn(f64, i64) -> f64) -> EvaluatedClaim {
    EvaluatedClaim::make(&claim(text), &results(value))
}

const OF_THAN: &str = "of = { where = { streams = 4 } }\nreference = { where = { streams = 1 } }\n";

/// Values with which four streams exceed one stream by `more` at 1, 2 and 3 hops.
fn more(more: [f64; 3]) -> impl Fn(f64, i64) -> f64 {
    move |hops, streams| match streams {
        4 => 100.0 + more[hops as usize - 1],
        _ => 100.0,
    }
}

#[test]
fn an_order_is_judged_by_differences_within_replications() {
    let text = format!("kind = \"greater\"\n{OF_THAN}");
    // The random variation has a size of 5, and the differences are 1.
    let held = judged(&text, more([1.0; 3]));
    assert_eq!(
        (held.verdict, held.findings.len()),
        (Verdict::Reproduced, 3)
    );
    assert!((held.findings[0].value - 1.0).abs() < 0.3, "{held:?}");
    assert_eq!(held.reason(), "holds at 3 of 3 points");
    let broken = judged(&text, more([1.0, 1.0, -1.0]));
    assert_eq!(broken.verdict, Verdict::Differs);
    assert_eq!(
        broken.reason(),
        "holds at 2 of 3 points; the contrary at hops 3"
    );
    let open = judged(&text, more([1.0, 0.0, 1.0]));
    assert_eq!(open.verdict, Verdict::Compatible);
    assert_eq!(open.reason(), "holds at 2 of 3 points; undecided at hops 2");
    // The same claim without the undecided point.
    let text = format!("{text}where = {{ hops = [1, 3] }}\n");
    assert_eq!(
        judged(&text, more([1.0, 0.0, 1.0])).verdict,
        Verdict::Reproduced
    );
}

#[test]
fn a_number_may_stand_on_the_other_side() {
    let text = |value| {
        format!(
            "kind = \"greater\"\nof = {{ where = {{ streams = 4 }} }}\nreference = {{ value = {value} }}\n"
        )
    };
    assert_eq!(
        judged(&text(80), more([1.0; 3])).verdict,
        Verdict::Reproduced
    );
    assert_eq!(judged(&text(120), more([1.0; 3])).verdict, Verdict::Differs);
    assert_eq!(
        judged(&text(101), more([1.0; 3])).verdict,
        Verdict::Compatible
    );
}

#[test]
fn no_difference_is_shown_and_not_assumed() {
    let text = |within| format!("kind = \"equal\"\nwithin = {within}\n{OF_THAN}");
    assert_eq!(
        judged(&text("0.05"), more([0.0; 3])).verdict,
        Verdict::Reproduced
    );
    // An interval of about ±0.3 is too wide to show that the difference is within 0.001 of the
    // reference 100, which is 0.1.
    assert_eq!(
        judged(&text("0.001"), more([0.0; 3])).verdict,
        Verdict::Compatible
    );
    assert_eq!(
        judged(&text("0.05"), more([9.0; 3])).verdict,
        Verdict::Differs
    );
}

#[test]
fn slopes_are_those_of_the_least_squares() {
    let along = "along = \"hops\"\nof = { where = { streams = 4 } }\n";
    let falls = format!("kind = \"falls\"\n{along}");
    let found = judged(&falls, more([8.0, 6.0, 4.0]));
    assert_eq!(
        (found.verdict, found.findings.len()),
        (Verdict::Reproduced, 1)
    );
    assert_eq!(found.unit, "bit/s per hops");
    // The values of claims that hold are positive: a decrease by 2 per hop gives 2.
    assert!((found.findings[0].value - 2.0).abs() < 0.2, "{found:?}");
    let rises = format!("kind = \"rises\"\n{along}reference = {{ where = {{ streams = 1 }} }}\n");
    assert_eq!(
        judged(&rises, more([8.0, 6.0, 4.0])).verdict,
        Verdict::Differs
    );
    assert_eq!(
        judged(&rises, more([4.0, 4.0, 4.0])).verdict,
        Verdict::Compatible
    );
}

#[test]
fn curves_cross_when_the_ends_have_both_signs() {
    let text = format!("kind = \"crosses\"\nalong = \"hops\"\n{OF_THAN}");
    assert_eq!(
        judged(&text, more([5.0, 0.0, -5.0])).verdict,
        Verdict::Reproduced
    );
    assert_eq!(
        judged(&text, more([5.0, 3.0, 2.0])).verdict,
        Verdict::Differs
    );
    assert_eq!(
        judged(&text, more([5.0, 3.0, 0.0])).verdict,
        Verdict::Compatible
    );
}

#[test]
fn a_series_that_is_best_at_one_point_contradicts_never_best() {
    let text = "kind = \"never-best\"\nof = { where = { streams = 1 } }\n";
    assert_eq!(judged(text, more([1.0; 3])).verdict, Verdict::Reproduced);
    assert_eq!(
        judged(text, more([1.0, -1.0, 1.0])).verdict,
        Verdict::Differs
    );
    assert_eq!(
        judged(text, more([1.0, 0.0, 1.0])).verdict,
        Verdict::Compatible
    );
    let least = format!("best = \"least\"\n{text}");
    assert_eq!(judged(&least, more([-1.0; 3])).verdict, Verdict::Reproduced);
}

#[test]
fn few_replications_decide_nothing_unless_one_is_all_that_is_asked_for() {
    let claim = claim(&format!("kind = \"greater\"\n{OF_THAN}"));
    let mut results = results(more([1.0; 3]));
    results.records.retain(|record| record.replication < 4);
    let made = EvaluatedClaim::make(&claim, &results);
    assert_eq!(made.verdict, Verdict::NotAttempted);
    assert_eq!(made.findings[0].interval, None);
    results.records.retain(|record| record.replication < 1);
    results.spec.experiments[0].replications = 1;
    assert_eq!(
        EvaluatedClaim::make(&claim, &results).verdict,
        Verdict::Reproduced
    );
    results.records.clear();
    let none = EvaluatedClaim::make(&claim, &results);
    assert_eq!(
        (none.verdict, none.reason().as_str()),
        (Verdict::NotAttempted, "not measured in this run")
    );
}
