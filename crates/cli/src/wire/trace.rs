//! The results directory of a run on real sockets: the same files as a simulation's, so that the same commands read it.

use std::path::Path;

use anabranch_engine::live::{Live, Observed};
use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_lab::outputs;
use anabranch_lab::outputs::WriteError;
use anabranch_lab::run::{self, Quiet};
use anabranch_lab::store::Store;
use anabranch_report::Outputs;
use anabranch_report::reference::Reference;
use anabranch_scenario::quantity::Span;
use anabranch_transport::{Nanos, Probe};

use crate::failure::Failure;

/// Tries the directory before anything is run.
pub fn check(directory: &Path) -> Result<(), Failure> {
    Store::create(directory)
        .map(drop)
        .map_err(|error| Failure::Asked(format!("{error}; `--trace` names another directory")))
}

/// Writes the directory of one association.
pub fn write(directory: &Path, transport: &str, mut observed: Observed) -> Result<(), Failure> {
    let start = observed.start;
    shift(&mut observed, start);
    let plan = Plan::new(Request {
        file: "trace.toml".to_owned(),
        text: spec(transport, &observed),
        seed: 1,
        ..Request::default()
    })?;
    let store = Store::create(directory).map_err(|error| Failure::Directory(Box::new(error)))?;
    let runner = Live(|_: &Unit<'_>, _: u64| Ok(vec![observed.clone()]));
    let results = run::run(&plan, &store, &runner, 1, &Quiet)
        .map_err(|error| Failure::Run(Box::new(error), directory.to_owned()))?;
    let failed = |error: WriteError| Failure::Outputs(Box::new(error), directory.to_owned());
    let made = Outputs::make(&results, &Reference::default());
    let made = made.map_err(|error| failed(error.into()))?;
    outputs::write(&made, directory).map_err(failed)
}

/// Counts times from the begin of the association.
fn shift(observed: &mut Observed, start: Nanos) {
    observed.start = 0;
    for sample in &mut observed.samples {
        sample.at = sample.at.saturating_sub(start);
    }
    for (at, _) in &mut observed.deliveries {
        *at = at.saturating_sub(start);
    }
}

/// A spec that says what was recorded. Its link stands for a network of which nothing is known.
fn spec(transport: &str, observed: &Observed) -> String {
    let last = observed.samples.last().map_or(0, |sample| sample.at);
    let end = Span(last.max(1_000_000).next_multiple_of(1_000_000));
    let recorded = |probe: &&Probe| observed.samples.iter().any(|it| it.probe == **probe);
    let probes: Vec<String> = Probe::ALL
        .iter()
        .filter(recorded)
        .map(|probe| format!("{:?}", probe.name()))
        .collect();
    // A sender alone does not know when what it sent was delivered.
    let goodput = if observed.deliveries.is_empty() {
        ""
    } else {
        "[[measure]]\nmetric = \"goodput\"\nflow = \"association\"\n\n"
    };
    let mut text = format!(
        r#"# A run on real sockets. The link stands for a network of which nothing is known: its rate and delay are no
# measurements, and simulating this file would not repeat the run.

anabranch = 1
name = "trace"
title = "One association on real sockets"

[world]
duration = "{end}"

[[node]]
name = "here"

[[node]]
name = "there"

[[link]]
name = "network"
between = ["here", "there"]
rate = "1 Gbit/s"
delay = "1 ms"

[[flow]]
name = "association"
from = "here"
to = "there"
workload = {{ kind = "bulk" }}

[flow.transport]
{transport}
{goodput}[[measure]]
metric = "retransmissions"
flow = "association"

[[measure]]
metric = "timeouts"
flow = "association"

[[experiment]]
id = "main"

[[experiment.record]]
flow = "association"
probes = [{probes}]
"#,
        probes = probes.join(", ")
    );
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
        if recorded(&&probe) {
            let name = probe.name();
            text.push_str(&format!(
                r#"
[[figure]]
id = "{name}"
title = "{title}"
kind = "time"
experiment = "main"

[[figure.curve]]
label = "association"
flow = "association"
probe = "{name}"
style = "{style}"
"#
            ));
        }
    }
    text
}
