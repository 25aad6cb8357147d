//! The results directory of a run on real sockets. It has the same files as that of a simulation,
//! so that the same commands read it.

use std::path::Path;

use anabranch_engine::live::{Live, Observed};
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::outputs;
use anabranch_lab::outputs::WriteError;
use anabranch_lab::run::{self, Quiet};
use anabranch_lab::store::Store;
use anabranch_report::Outputs;
use anabranch_report::reference::Reference;
use anabranch_scenario::Transport;
use anabranch_scenario::document::{Document, SpecTable};
use anabranch_scenario::quantity::{Rate, TimeSpan};
use anabranch_transport::{Nanos, Probe};

use crate::failure::Failure;
use crate::overwrite_note::print_overwrite_note;

/// The name of the spec in a trace.
const NAME: &str = "trace";

/// Checks the results directory before the command starts.
pub fn check(directory: &Path) -> Result<(), Failure> {
    Store::create(directory)
        .map(drop)
        .map_err(|error| Failure::Usage(format!("{error}; `--trace` names another directory")))?;
    print_overwrite_note(directory, NAME);
    Ok(())
}

/// Writes the results directory of one association.
pub fn write(
    directory: &Path,
    transport: &Transport,
    mut observed: Observed,
) -> Result<(), Failure> {
    let start = observed.start;
    shift(&mut observed, start);
    let request = PlanRequest::default().with(|it| {
        it.file = "trace.toml".to_owned();
        it.seed = 1;
    });
    let plan = Plan::of(&spec(transport, &observed), request)?;
    let store = Store::create(directory).map_err(|error| Failure::Directory(Box::new(error)))?;
    let runner = Live(|_: &PlannedRun<'_>, _: u64| Ok(vec![observed.clone()]));
    let results = run::run(&plan, &store, &runner, 1, &Quiet)
        .map_err(|error| Failure::Run(Box::new(error), directory.to_owned()))?;
    let failed = |error: WriteError| Failure::Outputs(Box::new(error), directory.to_owned());
    let made = Outputs::make(&results, &Reference::default());
    let made = made.map_err(|error| failed(error.into()))?;
    outputs::write(&made, directory).map_err(failed)
}

/// Makes times relative to the start of the association.
fn shift(observed: &mut Observed, start: Nanos) {
    observed.start = 0;
    for sample in &mut observed.samples {
        sample.at = sample.at.saturating_sub(start);
    }
    for (at, _) in &mut observed.deliveries {
        *at = at.saturating_sub(start);
    }
}

/// A spec that describes the recording, with a placeholder link, because the network is unknown.
fn spec(transport: &Transport, observed: &Observed) -> Document {
    const FLOW: &str = "association";
    let last = observed.samples.last().map_or(0, |sample| sample.at);
    let end = TimeSpan(last.max(1_000_000).next_multiple_of(1_000_000));
    let recorded = |probe: &Probe| observed.samples.iter().any(|it| it.probe == *probe);
    let probes = Probe::ALL.iter().filter(|probe| recorded(probe));
    let probes: Vec<&str> = probes.map(|probe| probe.name()).collect();
    let named = |name: &str| SpecTable::new().with("name", name);
    let link = named("network")
        .with("between", ["here", "there"])
        .with("rate", Rate(1_000_000_000))
        .with("delay", TimeSpan(1_000_000));
    let flow = named(FLOW)
        .with("from", "here")
        .with("to", "there")
        .with("workload", SpecTable::new().with("kind", "bulk"))
        .with("transport", transport);
    let record = SpecTable::new().with("flow", FLOW).with("probes", probes);
    let mut document = Document::new(NAME)
        .head(
            "A run on real sockets. The link stands for a network of which nothing is known: its rate and delay are no\nmeasurements, and simulating this file would not repeat the run.",
        )
        .with("title", "One association on real sockets")
        .table("world", SpecTable::new().with("duration", end))
        .push("node", named("here"))
        .push("node", named("there"))
        .push("link", link)
        .push("flow", flow);
    // Goodput requires delivery times, which the sender alone does not know.
    let goodput = (!observed.deliveries.is_empty()).then_some("goodput");
    for metric in goodput.into_iter().chain(["retransmissions", "timeouts"]) {
        let measure = SpecTable::new().with("metric", metric).with("flow", FLOW);
        document = document.push("measure", measure);
    }
    let main = SpecTable::new().with("id", "main").with("record", [record]);
    document = document.push("experiment", main);
    for (probe, title, style) in [
        (Probe::Cwnd, "Congestion window", "step"),
        (Probe::FlightSize, "Bytes in flight", "step"),
        (
            Probe::PeerRwnd,
            "Receive window as the sender believes it",
            "step",
        ),
        (Probe::Srtt, "Smoothed round-trip time", "step"),
        (Probe::AdvertisedRwnd, "Receive window advertised", "step"),
        (Probe::Received, "Chunks received", "points"),
    ] {
        if recorded(&probe) {
            let curve = SpecTable::new()
                .with("label", FLOW)
                .with("flow", FLOW)
                .with("probe", probe.name())
                .with("style", style);
            let figure = SpecTable::new()
                .with("id", probe.name())
                .with("title", title)
                .with("kind", "time")
                .with("experiment", "main")
                .with("window", [TimeSpan(0), end])
                .with("curve", [curve]);
            document = document.push("figure", figure);
        }
    }
    document
}
