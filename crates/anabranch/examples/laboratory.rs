//! A laboratory program with its own kinds. `cargo run --release -- SPEC.toml RESULTS` runs a spec
//! that may name the congestion control `patient` and the loss model `every`, and writes the same
//! outputs as `anabranch run`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anabranch::congestion::{
    AckSample, Algorithm, Base, CongestionControl, LossCause, Requirement, registry,
};
use anabranch::engine::kinds::Standard;
use anabranch::engine::plan::{Plan, PlanRequest};
use anabranch::lab::reference::Loaded;
use anabranch::lab::run::{self, Quiet, Simulator};
use anabranch::lab::spec_source::Folder;
use anabranch::lab::store::Store;
use anabranch::lab::{outputs, spec_files};
use anabranch::report::Outputs;
use anabranch::settings::{Kind, KindEntry, kind};
use anabranch::sim::loss::{Loss, Traffic};
use anabranch::sim::{Packet, Rng};
use anabranch::transport::Nanos;

/// Congestion control `patient`: that of the protocol, but only every third loss counts as
/// congestion.
static PATIENT: Algorithm = Algorithm {
    name: "patient",
    about: "the protocol's own, which answers every third loss",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Patient { base, losses: 0 }),
};

#[derive(Debug)]
struct Patient {
    base: Base,
    losses: u64,
}

impl CongestionControl for Patient {
    fn on_ack(&mut self, ack: &AckSample) {
        self.base.on_ack(ack);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.losses += 1;
        if self.losses.is_multiple_of(3) {
            self.base.on_loss(now, cause, flightsize);
        }
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        self.base.on_idle(now, idle_for, rto);
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    fn cwnd(&self) -> u64 {
        self.base.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.base.ssthresh()
    }

    fn name(&self) -> &'static str {
        PATIENT.name
    }
}

kind! {
    /// A loss model without randomness: one of every `packets` packets is lost.
    struct EveryConfig {
        /// One of this number of packets is lost.
        packets: u64, Kind::count(1, 1_000_000);
    }
    /// Of every `packets` packets, the last one is lost.
    static EVERY: KindEntry<Box<dyn Loss>, Traffic> =
        "every", |it, _| Ok(Box::new(Every { every: it.packets, seen: 0 }));
}

struct Every {
    every: u64,
    seen: u64,
}

impl Loss for Every {
    fn takes(&mut self, _at: u64, _packet: &Packet, _rng: &mut Rng) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.every)
    }
}

/// Runs a spec and writes its results. Runs that are finished already are not repeated.
fn laboratory(spec: &Path, results: &Path) -> Result<(), Box<dyn Error>> {
    registry::add(&PATIENT);
    let kinds = Standard::default().with_loss(&EVERY);
    let folder = Folder::of(spec);
    let text = std::fs::read_to_string(spec)?;
    let request = PlanRequest::new(spec.display().to_string(), text).with(|it| {
        it.seed = 1;
        it.files = spec_files::files(&folder);
    });
    let plan = Plan::with(request, &kinds)?;
    for note in &plan.notes {
        eprintln!("note: {note}");
    }
    let reference = Loaded::read(&plan.spec.reference, &folder)?;
    let store = Store::create(results)?;
    reference.keep(results)?;
    // The source text is part of the key of stored runs, so that a run with an older `Patient` is
    // not reused.
    let simulator = Simulator::default().with(|it| it.code = include_str!("laboratory.rs"));
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let made = run::run(&plan, &store, &simulator, jobs, &Quiet)?;
    outputs::write(&Outputs::make(&made, &reference.reference)?, results)?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spec, results] = arguments.as_slice() else {
        eprintln!("usage: laboratory SPEC.toml RESULTS");
        return ExitCode::from(2);
    };
    match laboratory(Path::new(spec), Path::new(results)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"anabranch = 1
name = "kinds"
world = { duration = "20 s" }
node = [{ name = "a" }, { name = "b" }]
measure = [{ metric = "goodput", flow = "f" }]

[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "50 ms"
loss = { forward = { model = "every", packets = 300 } }

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "sctp", receive_buffer = "1 MiB" }

[[experiment]]
id = "controls"
replications = 1
sweep = [{ parameter = "flow.f.transport.congestion", values = ["sctp", "patient"] }]
"#;

    #[test]
    fn a_spec_that_names_them_is_run_into_files() -> Result<(), Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let spec = directory.path().join("kinds.toml");
        std::fs::write(&spec, SPEC)?;
        let results = directory.path().join("results");
        laboratory(&spec, &results)?;
        assert!(results.join("report.html").exists());
        let measures = std::fs::read_to_string(results.join("measures.csv"))?;
        let goodput = |control: &str| -> f64 {
            let line = measures.lines().find(|line| line.contains(control));
            let value = line.and_then(|line| line.rsplit(',').nth(1)?.parse().ok());
            value.expect("a line of the control")
        };
        assert!(goodput(",patient,") > 1.2 * goodput(",sctp,"), "{measures}");
        Ok(())
    }

    #[test]
    fn the_page_shows_it() -> Result<(), Box<dyn Error>> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let page = std::fs::read_to_string(format!("{root}/docs/extending/program.md"))?;
        let own = include_str!("laboratory.rs");
        let shown = own.split("\n#[cfg(test)]").next().unwrap_or_default();
        assert!(
            page.contains(shown),
            "docs/extending/program.md does not show examples/laboratory.rs"
        );
        Ok(())
    }
}
