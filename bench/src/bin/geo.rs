//! The GEO dumbbell of alamgir2002, untraced: anabranch beside ns-2.35, whole processes, alternating in one run.
//!
//!     cargo run --release -p anabranch-bench --bin geo [-- ROUNDS]
//!
//! Wants `ns` (Debian's package ns2) and the release build of `anabranch` beside this program.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use wait4::Wait4;

/// One of the scenarios that both programs run.
struct Scenario {
    name: &'static str,
    pairs: u32,
    rate: &'static str,
    buffer: u32,
    seconds: u32,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "n=2,  500 s",
        pairs: 1,
        rate: "2",
        buffer: 10,
        seconds: 500,
    },
    Scenario {
        name: "n=8,  500 s",
        pairs: 4,
        rate: "11",
        buffer: 160,
        seconds: 500,
    },
    Scenario {
        name: "n=2, 5000 s",
        pairs: 1,
        rate: "2",
        buffer: 10,
        seconds: 5000,
    },
    Scenario {
        name: "n=8, 5000 s",
        pairs: 4,
        rate: "11",
        buffer: 160,
        seconds: 5000,
    },
];

/// What one process cost.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
    peak_kib: u64,
}

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
    let rounds: u32 = env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("geo");
    let anabranch = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;

    println!(
        "whole processes, median of {rounds} alternating rounds; ratio > 1: anabranch is faster"
    );
    println!(
        "{:<12} {:>9} {:>9} {:>7} {:>15} {:>12} {:>9} {:>10} {:>10}",
        "scenario",
        "ns-2 s",
        "ours s",
        "ratio",
        "range of ratio",
        "packet-hops",
        "ns each",
        "ns-2 MiB",
        "ours MiB"
    );
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
        report(scenario, &theirs, &ours, hops);
    }
    Ok(())
}

fn report(scenario: &Scenario, theirs: &[Cost], ours: &[Cost], hops: u64) {
    let ratios: Vec<f64> = theirs
        .iter()
        .zip(ours)
        .map(|(t, o)| t.wall / o.wall)
        .collect();
    let (low, high) = ratios
        .iter()
        .fold((f64::MAX, 0.0_f64), |(l, h), &r| (l.min(r), h.max(r)));
    let our_cpu = median(ours.iter().map(|cost| cost.cpu));
    println!(
        "{:<12} {:>9.3} {:>9.3} {:>7.2} {:>15} {:>12} {:>9.0} {:>10.1} {:>10.1}",
        scenario.name,
        median(theirs.iter().map(|cost| cost.wall)),
        median(ours.iter().map(|cost| cost.wall)),
        median(ratios.iter().copied()),
        format!("{low:.2} - {high:.2}"),
        hops,
        our_cpu * 1e9 / hops as f64,
        median(theirs.iter().map(|cost| cost.peak_kib as f64)) / 1024.0,
        median(ours.iter().map(|cost| cost.peak_kib as f64)) / 1024.0,
    );
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

fn measure(command: &mut Command) -> Result<Cost, Box<dyn Error>> {
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    let end = child.wait4()?;
    if !end.status.success() {
        return Err(format!("{command:?} ended with {}", end.status).into());
    }
    Ok(Cost {
        wall: begin.elapsed().as_secs_f64(),
        cpu: (end.rusage.utime + end.rusage.stime).as_secs_f64(),
        peak_kib: end.rusage.maxrss / 1024,
    })
}

fn packet_hops(out: &Path) -> Result<u64, Box<dyn Error>> {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json"))?)?;
    manifest["packet_hops"]
        .as_u64()
        .ok_or_else(|| "manifest.json has no packet_hops".into())
}

fn beside_this_program(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!("no {name} beside this program; build it: cargo build --release -p {name}").into())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
