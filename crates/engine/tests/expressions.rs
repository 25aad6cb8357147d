//! Tests of expressions over parameters in a spec, unused parameters, and settings without effect.

use std::sync::Arc;

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_engine::point::PlannedPoint;
use anabranch_scenario::{Link, Queue};

const GOOD: &str = r#"anabranch = 1
name = "sized"
title = "A buffer that costs $$5, or 5 $"

[parameters]
rate = "2 Mbit/s"
rtt = "500 ms"
share = 0.5
bdp = "$rate * $rtt"
streams = 2

[profiles.own]
base = "rfc9260"
streams = "2 * $streams"
missing_reports = 3

[world]
duration = "20 * $rtt"

[[node]]
name = "a"

[[node]]
name = "b"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "$rate"
delay = "$rtt / 2"
queue = "2 * $share * $bdp"
loss = { model = "bernoulli", probability = "$share / 100" }

[[flow]]
name = "one"
from = "a"
to = "b"
workload = { kind = "bulk", message = "1 KiB + 400 B" }
transport = { protocol = "sctp", profile = "own", receive_buffer = "4 * $bdp" }

[[experiment]]
id = "rates"
sweep = [{ parameter = "rate", values = ["1 Mbit/s", "2 * 1.5 Mbit/s"] }]

[[experiment]]
id = "times"
sweep = [{ name = "rtt", points = [{ x = 1, rtt = "100 ms" }, { x = 2, rtt = "2 * 100 ms" }] }]
"#;

/// Forward propagation delay of a link, as written in the spec.
fn delay(link: &Link) -> Option<&str> {
    link.delay.side(true)?.parameters["delay"].as_str()
}

/// Forward rate of a link, bits per second.
fn rate(link: &Link) -> Option<u64> {
    link.rate.side(true)?.as_constant()
}

/// A drop-tail queue with the given limit.
fn bytes(limit: &str) -> Option<Queue> {
    Some(Queue::new("drop-tail").with("limit", limit))
}

fn plan(text: &str, overrides: &[&str], only: &[&str]) -> Result<Plan, String> {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Plan::new(PlanRequest::new("sized.toml", text).with(|it| {
        it.overrides = owned(overrides);
        it.only = owned(only);
    }))
    .map_err(|error| error.to_string())
}

fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the good spec");
    GOOD.replacen(from, to, 1)
}

#[test]
fn an_expression_stands_wherever_a_value_does() {
    let plan = plan(GOOD, &[], &[]).unwrap_or_else(|error| panic!("{error}"));
    let spec = &at(&plan, 1, 1).spec;
    let link = &spec.links[0];
    assert_eq!(delay(link), Some("100 ms"));
    assert_eq!(spec.world.duration.0, 4_000_000_000);
    assert_eq!(link.queue.forward, bytes("50000 B"));
    assert_eq!(
        spec.title.as_deref(),
        Some("A buffer that costs $5, or 5 $")
    );
    let transport = &spec.flows[0].transport.settings;
    assert_eq!(transport["receive_buffer"], "200000 B");
    assert_eq!(transport["streams"], 4);
    let link = &at(&plan, 0, 1).spec.links[0];
    assert_eq!(rate(link), Some(3_000_000));
    assert_eq!(link.queue.forward, bytes("187500 B"));
}

#[test]
fn an_expression_may_be_set() {
    let overrides = [
        "share=1 / 4",
        "link.wire.delay=$rtt / 4",
        "flow.one.transport.receive_buffer=ceil($bdp / 1 KiB) * 1 KiB",
        "profiles.own.missing_reports=2 + 2",
        "experiment.times.replications=1 + 1",
    ];
    let plan = plan(GOOD, &overrides, &[]).unwrap_or_else(|error| panic!("{error}"));
    let spec = &at(&plan, 1, 0).spec;
    assert_eq!(delay(&spec.links[0]), Some("25 ms"));
    assert_eq!(spec.links[0].queue.forward, bytes("12500 B"));
    let transport = &spec.flows[0].transport.settings;
    assert_eq!(transport["receive_buffer"], "25 KiB");
    assert_eq!(plan.experiments[1].replications, 2);
}

/// An override can also replace the values of a sweep in the file.
#[test]
fn the_values_of_a_sweep_may_be_set() {
    let values = ["experiment.rates.sweep.0.values=['4 Mbit/s']"];
    let plan = plan(GOOD, &values, &["rates"]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.experiments[0].points.len(), 1);
    assert_eq!(rate(&at(&plan, 0, 0).spec.links[0]), Some(4_000_000));
}

/// The resolved point `point` of the experiment with this index.
fn at(plan: &Plan, experiment: usize, point: usize) -> Arc<PlannedPoint> {
    let experiment = &plan.experiments[experiment];
    let point = experiment.resolve(&experiment.points[point]);
    point.unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! wrong {
    ($($name:ident: $from:expr, $to:expr;)*) => {$(
        #[test]
        fn $name() {
            let error = plan(&changed($from, $to), &[], &[]).map(drop).expect_err("a mistake");
            insta::assert_snapshot!(error);
        }
    )*};
}

wrong! {
    time_and_size: "\"2 * $share * $bdp\"", "\"2 * $rtt + $bdp\"";
    size_for_a_time: "\"$rtt / 2\"", "\"$bdp / 2\"";
    no_such_parameter_in_an_expression: "\"$rtt / 2\"", "\"$rt / 2\"";
    no_such_unit_in_an_expression: "\"$rate * $rtt\"", "\"$rate * 5 msec\"";
    division_by_nothing: "\"$rtt / 2\"", "\"$rtt / ($streams - 2)\"";
    half_a_packet: "\"2 * $share * $bdp\"", "\"$bdp / 1500 B * 1 packet\"";
    an_expression_on_text: "share = 0.5", "share = \"half\"";
    a_ring_of_expressions: "rate = \"2 Mbit/s\"", "rate = \"$bdp / 1 s\"";
    an_expression_without_end: "\"$rtt / 2\"", "\"($rtt / 2\"";
    unused_parameter: "share = 0.5", "share = 0.5\nspare = \"$share\"";
    own_parameter_that_is_swept: "id = \"rates\"", "id = \"rates\"\nparameters = { rate = \"5 Mbit/s\" }";
    own_parameter_without_effect: "id = \"times\"", "id = \"times\"\nparameters = { \"profiles.own.receive_buffer\" = \"5 MiB\" }";
}

/// Each of 64 parameters mentions the next one twice, so without caching there would be 2^64
/// evaluations.
#[test]
fn a_parameter_is_computed_once() {
    let mut parameters = String::from("share = \"$p0 / $p0 / 2\"\np64 = 1\n");
    for number in 0..64 {
        let next = number + 1;
        parameters += &format!("p{number} = \"($p{next} + $p{next}) / 2\"\n");
    }
    let plan = plan(&changed("share = 0.5\n", &parameters), &[], &[]);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let link = &at(&plan, 1, 0).spec.links[0];
    assert_eq!(link.queue.forward, bytes("25000 B"));
}

/// A parameter that only one experiment uses counts as used.
#[test]
fn a_parameter_of_one_experiment_is_used() {
    let text = changed(
        "id = \"times\"",
        "id = \"times\"\nmeasure = [{ metric = \"goodput\", flow = \"one\", window = [\"$from\", \"2 s\"] }]",
    );
    let text = text.replacen("share = 0.5", "share = 0.5\nfrom = \"1 s\"", 1);
    plan(&text, &[], &["rates"]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_setting_without_effect_is_a_mistake() {
    for (only, setting, words) in [
        (
            &["rates"][..],
            "rate=4 Mbit/s",
            &[
                "--set rate=4 Mbit/s",
                "the sweep `rate` of the experiment `rates`",
                "experiment.rates.sweep.rate.values",
            ][..],
        ),
        (
            &["times"],
            "rtt=1 s",
            &["the sweep `rtt` of the experiment `times`"],
        ),
        (
            &[],
            "profiles.own.receive_buffer=1 MiB",
            &["nothing that is run depends on it"],
        ),
        (&[], "spare=1", &["no parameter has this name"]),
        (
            &[],
            "link.wire=4 Mbit/s",
            &["names the whole of `wire`; write `link.wire.KEY`"],
        ),
        (&["times"], "rate=4 Mbit/s", &[]),
        (&[], "rate=4 Mbit/s", &[]),
        (&[], "profiles.own.missing_reports=3", &[]),
        (&[], "link.wire.rate=4 Mbit/s", &[]),
        (&[], "title=Another", &[]),
    ] {
        let found = plan(GOOD, &[setting], only)
            .map(drop)
            .err()
            .unwrap_or_default();
        assert_eq!(found.is_empty(), words.is_empty(), "{setting}: {found}");
        for word in words {
            assert!(found.contains(word), "{setting}: {found}");
        }
    }
}
