//! The GEO dumbbell of alamgir2002, untraced: anabranch beside ns-2.35, whole processes, alternating in one run.
//!
//!     cargo run --profile fair -p anabranch-bench --bin geo [-- ROUNDS] [--write]
//!
//! Wants `ns` (Debian's package ns2) and `anabranch` built with the same profile beside this program.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anabranch_bench::page;
use anabranch_bench::standing::{self, Figure};
use anabranch_bench::{beside_this_program, head, measure, packet_hops, report};

/// One of the scenarios that both programs run.
struct Scenario {
    name: &'static str,
    pairs: u32,
    rate: &'static str,
    buffer: u32,
    seconds: u32,
    /// Times as fast as ns-2.35 at commit 3763e40, by processor time.
    before: f64,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "n=2,  500 s",
        pairs: 1,
        rate: "2",
        buffer: 10,
        seconds: 500,
        before: 2.80,
    },
    Scenario {
        name: "n=8,  500 s",
        pairs: 4,
        rate: "11",
        buffer: 160,
        seconds: 500,
        before: 2.26,
    },
    Scenario {
        name: "n=2, 5000 s",
        pairs: 1,
        rate: "2",
        buffer: 10,
        seconds: 5000,
        before: 1.43,
    },
    Scenario {
        name: "n=8, 5000 s",
        pairs: 4,
        rate: "11",
        buffer: 160,
        seconds: 5000,
        before: 1.54,
    },
];

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("geo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let rounds: u32 = arguments.first().map_or(Ok(5), |text| text.parse())?;
    let mut figures = Vec::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("geo");
    let anabranch = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;

    head(rounds);
    for scenario in &SCENARIOS {
        let mut theirs = Vec::new();
        let mut ours = Vec::new();
        let mut hops = 0;
        for round in 0..rounds {
            theirs.push(measure(&mut ns2(&directory, scenario, round))?);
            let out = scratch
                .path()
                .join(format!("{}-{}-{round}", scenario.pairs, scenario.seconds));
            ours.push(measure(&mut ours_command(
                &anabranch, &directory, scenario, round, &out,
            ))?);
            hops = packet_hops(&out)?;
            fs::remove_dir_all(&out)?;
        }
        let ratio = report(scenario.name, &theirs, &ours, hops);
        let what = format!("simulator, {}, by ns-2.35", scenario.name);
        figures.push((what, Figure::ratio(ratio, Some(scenario.before), 3.0)));
    }
    if write {
        standing::note(figures)?;
    }
    Ok(())
}

fn ns2(directory: &Path, scenario: &Scenario, round: u32) -> Command {
    let mut command = Command::new("ns");
    command.arg(directory.join("geo.tcl")).args([
        scenario.pairs.to_string(),
        scenario.rate.to_owned(),
        scenario.buffer.to_string(),
        scenario.seconds.to_string(),
        (round + 1).to_string(),
    ]);
    command
}

fn ours_command(
    program: &Path,
    directory: &Path,
    scenario: &Scenario,
    round: u32,
    out: &Path,
) -> Command {
    let mut command = Command::new(program);
    command
        .arg("run")
        .arg(directory.join("geo.toml"))
        .arg("--out")
        .arg(out);
    command.args(["--jobs", "1", "--seed", &(round + 1).to_string()]);
    for (key, value) in [
        ("parameters.pairs", scenario.pairs.to_string()),
        ("parameters.rate", format!("{} Mbit/s", scenario.rate)),
        ("parameters.buffer", format!("{} packets", scenario.buffer)),
        ("world.duration", format!("{} s", scenario.seconds)),
    ] {
        command.arg("--set").arg(format!("{key}={value}"));
    }
    command
}
