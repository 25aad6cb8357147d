//! Tests of the points of a plan, which are resolved when the plan is made and again when they are
//! run.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};

const SPEC: &str = r#"
anabranch = 1
name = "two"
world = { duration = "1 s" }
parameters = { rate = "1 Mbit/s", recorded = "f", title = "T" }
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "l", between = ["a", "b"], rate = "$rate", delay = "1 ms" }]
measure = [{ metric = "goodput", flow = "f" }]
[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "tcp" }
[[flow]]
name = "g"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "tcp" }
[[table]]
id = "t"
title = "$title"
note = "$title"
row = [{ series = "f", metric = "goodput" }]
[[figure]]
id = "c"
title = "C"
curve = [{ label = "f", flow = "f", probe = "cwnd" }]
[[experiment]]
id = "e"
record = [{ flow = "$recorded", probes = ["cwnd"] }]
"#;

/// The plan of the spec with a sweep of a key over these values.
fn swept(key: &str, values: &str) -> Result<Plan, String> {
    let sweep = format!("sweep = [{{ name = \"x\", parameter = \"{key}\", values = {values} }}]");
    let plan = Plan::new(PlanRequest::new("two.toml", format!("{SPEC}{sweep}\n")));
    plan.map_err(|error| error.to_string())
}

/// A point can be run even if its sweep sets a key of an output, although runs omit the outputs.
#[test]
fn every_planned_point_can_be_run() {
    for (key, values) in [
        ("rate", "[\"1 Mbit/s\", \"2 Mbit/s\"]"),
        ("title", "[\"A\", \"B\"]"),
        ("table.t.title", "[\"A\", \"B\"]"),
        ("experiment.e.replications", "[1, 2]"),
    ] {
        let plan = swept(key, values).unwrap_or_else(|error| panic!("{key}: {error}"));
        for unit in PlannedRun::all(&plan) {
            let point = unit
                .resolve()
                .unwrap_or_else(|error| panic!("{key}: {error}"));
            assert_eq!(point.hash(), unit.point.hash(), "{key}");
        }
    }
}

/// If a figure needs a probe, the figure should be checked at every point whose records differ.
#[test]
fn an_output_is_checked_at_every_point_that_records_something_else() {
    let error =
        swept("recorded", "[\"f\", \"g\"]").expect_err("nothing of `f` at the second point");
    assert!(error.contains("records nothing of it"), "{error}");
}
