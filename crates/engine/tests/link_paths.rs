//! The two implementations of a link should have the same results in the worlds of all papers: the
//! analytic one, and the event-driven one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::Memory;
use anabranch_engine::world;
use anabranch_scenario::quantity::TimeSpan;

/// Simulated duration of each run, nanoseconds.
const LONG_ENOUGH: u64 = 12_000_000_000;

/// Finds the spec of every paper.
fn papers(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("papers/") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            papers(&path, found);
        } else if path.file_name().is_some_and(|name| name == "paper.toml") {
            found.push(path);
        }
    }
    found.sort();
}

fn plan(path: &Path, kinds: &Standard) -> Plan {
    let request = PlanRequest::new(
        path.display().to_string(),
        fs::read_to_string(path).expect("a paper"),
    )
    .with(|it| {
        it.quick = true;
        it.seed = 7;
    });
    Plan::with(request, kinds).unwrap_or_else(|error| panic!("{error}"))
}

/// The first and the last point of each experiment, with a shorter duration.
fn shortened(mut plan: Plan) -> Plan {
    for experiment in &mut plan.experiments {
        experiment.replications = 1;
        if experiment.points.len() > 2 {
            let last = experiment.points.pop();
            experiment.points.truncate(1);
            experiment.points.extend(last);
        }
        let shortened = experiment.change(|point| {
            let spec = Arc::make_mut(&mut point.spec);
            spec.world.duration = spec.world.duration.min(TimeSpan(LONG_ENOUGH));
        });
        shortened.unwrap_or_else(|error| panic!("{error}"));
    }
    plan
}

#[test]
fn the_worlds_of_every_paper_are_the_same_at_once_and_step_by_step() {
    let mut found = Vec::new();
    papers(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers"),
        &mut found,
    );
    assert!(found.len() >= 5, "{found:?}");
    let (mut runs, mut more_events) = (0, 0);
    for paper in found {
        let at_once = shortened(plan(&paper, &Standard::default()));
        let by_steps = shortened(plan(&paper, &Standard::default().event_driven()));
        for (one, other) in PlannedRun::all(&at_once)
            .iter()
            .zip(PlannedRun::all(&by_steps))
        {
            let [mut one_sink, mut other_sink] = [Memory::default(), Memory::default()];
            let mut one_record = world::run(one, 7, &mut one_sink, &[]).expect("a run");
            let other_record = world::run(&other, 7, &mut other_sink, &[]).expect("a run");
            let name = format!("{} {:?}", paper.display(), one.point());
            // The event-driven implementation has more events; all other results should be equal.
            more_events += u64::from(other_record.events > one_record.events);
            one_record.events = other_record.events;
            assert_eq!(one_record, other_record, "{name}");
            let series = one_sink.series.iter().zip(&other_sink.series);
            for (one, other) in series.filter(|(one, _)| one.probe != "drop") {
                assert_eq!(one, other, "{name}: {}", one.probe);
            }
            runs += 1;
        }
    }
    // Both implementations were used, because the numbers of events differ.
    assert!(
        runs > 50 && more_events * 2 > runs,
        "{more_events} of {runs}"
    );
}
