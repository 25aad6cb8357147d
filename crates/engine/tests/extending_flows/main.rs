//! Worked examples of `docs/extending` about flows and metrics: each page contains the text of a
//! file here, which is compiled and tested.

mod congestion_control;
mod metric;
mod paced_congestion_control;
mod probe;
mod transport;
mod workload;

use std::path::Path;

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

/// Runs a spec with additional kinds. Returns its only value.
fn value(kinds: &Standard, text: &str) -> f64 {
    let request = PlanRequest::default().with(|it| it.text = text.to_owned());
    let plan = Plan::with(request, kinds).unwrap_or_else(|error| panic!("{error}"));
    let unit = PlannedRun::all(&plan)[0];
    let record = world::run(&unit, 1, &mut NullSink, &[]).expect("a run");
    assert_eq!(record.metrics.len(), 1, "{:?}", record.metrics);
    record.metrics[0].value
}

#[test]
fn the_pages_hold_what_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for kind in [
        "workload",
        "metric",
        "congestion_control",
        "paced_congestion_control",
        "transport",
        "probe",
    ] {
        let page = format!("../../docs/extending/{}.md", kind.replace('_', "-"));
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        let code = read(&root.join(format!("tests/extending_flows/{kind}.rs")));
        let page = read(&root.join(page));
        let fenced = format!("```rust\n{code}```\n");
        assert!(
            page.contains(&fenced),
            "the page of {kind} holds another text"
        );
    }
}
