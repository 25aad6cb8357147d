//! A sweep of many short runs: what a run costs beside what it simulates, and how memory grows with their number.
//!
//!     cargo run --release -p anabranch-bench --bin sweep [-- RUNS...]
//!
//! RUNS are numbers of runs, multiples of 100 (100, 1000 and 10000 if left out), each of one simulated second. For each number the
//! command is measured as a whole process, with one job: making the runs, resuming when all of them are there, and in one run
//! of a sweep with a tenth of the length of its runs, from which the cost of what is not simulation follows.
//!
//! Wants the release build of `anabranch` beside this program.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anabranch_bench::{Cost, beside_this_program, measure};

/// Points of the sweep.
const POINTS: u32 = 100;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sweep: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<(), Box<dyn Error>> {
    let asked: Result<Vec<u32>, _> = env::args().skip(1).map(|text| text.parse()).collect();
    let mut counts = asked?;
    if counts.is_empty() {
        counts = vec![100, 1000, 10_000];
    }
    let program = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;
    println!(
        "{:>7} {:>9} {:>9} {:>12} {:>14} {:>12} {:>10} {:>10}",
        "runs",
        "wall s",
        "cpu s",
        "cpu us/run",
        "overhead us/run",
        "resume s",
        "peak MiB",
        "disk MiB"
    );
    for runs in counts {
        let replications = (runs / POINTS).max(1);
        let runs = replications * POINTS;
        let whole = scratch.path().join("whole");
        let made = sweep(&program, replications, "1 s", &whole)?;
        let resumed = sweep(&program, replications, "1 s", &whole)?;
        let disk = size(&whole)?;
        fs::remove_dir_all(&whole)?;
        let short = scratch.path().join("short");
        let shorter = sweep(&program, replications, "0.1 s", &short)?;
        fs::remove_dir_all(&short)?;
        // cpu = overhead + simulated seconds * cost of a second: two lengths give the overhead.
        let second = (made.cpu - shorter.cpu) / 0.9;
        let each = 1e6 / f64::from(runs);
        println!(
            "{runs:>7} {:>9.2} {:>9.2} {:>12.0} {:>14.0} {:>12.2} {:>10.1} {:>10.1}",
            made.wall,
            made.cpu,
            made.cpu * each,
            (made.cpu - second) * each,
            resumed.wall,
            made.peak_kib as f64 / 1024.0,
            disk as f64 / f64::from(1 << 20),
        );
    }
    Ok(())
}

fn sweep(
    program: &Path,
    replications: u32,
    duration: &str,
    out: &Path,
) -> Result<Cost, Box<dyn Error>> {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("sweep/sweep.toml");
    let mut command = Command::new(program);
    command.arg("run").arg(spec).arg("--out").arg(out);
    command.args(["--jobs", "1", "--replications", &replications.to_string()]);
    command.args(["--set", &format!("world.duration={duration}")]);
    measure(&mut command)
}

/// Bytes of all files below a directory.
fn size(directory: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
