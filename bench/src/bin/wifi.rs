//! The 100 s scenarios of rafiq2007 with 0.1 % loss and without tracing. Whole processes of
//! anabranch and ns-2.35 alternate in each round.
//!
//!     cargo run --profile fair -p anabranch-bench --bin wifi [-- ROUNDS] [--write]
//!
//! Requires `ns` (Debian package ns2), and `anabranch` built with the same profile in the directory
//! of this program.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{Round, beside_this_program, head, measure, packet_hops, report};

const LOSS: &str = "0.001";

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wifi: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let rounds: u32 = arguments.first().map_or(Ok(5), |text| text.parse())?;
    let mut figures = Vec::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("wifi");
    let anabranch = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;
    let mut page = Page::open("wifi", write)?;
    head(rounds, &mut page);
    for scenario in ["e2w", "w2e"] {
        for protocol in ["tcp", "sctp"] {
            let mut all = Vec::new();
            for round in 0..rounds {
                let theirs = measure(&mut ns2(&directory, scenario, protocol, round))?;
                let out = scratch
                    .path()
                    .join(format!("{scenario}-{protocol}-{round}"));
                let mut command = Command::new(&anabranch);
                command.arg("run").arg(directory.join("rafiq.toml"));
                command.arg("--out").arg(&out);
                let command = ours_settings(&mut command, scenario, protocol, round);
                all.push(Round {
                    theirs,
                    ours: measure(command)?,
                    // Not counted, because the trace of ns-2 has one line for each layer that a
                    // packet passes.
                    their_hops: None,
                    our_hops: packet_hops(&out)?,
                });
                fs::remove_dir_all(&out)?;
            }
            let name = format!("{scenario} {protocol}, 100 s");
            let ratio = report(&name, &all, &mut page).whole;
            let what = format!("simulator, wireless, {name}, by ns-2.35");
            figures.push((what, BenchResult::ratio(ratio, None, 10.0)));
        }
    }
    page.close()?;
    if write {
        scoreboard::note(figures)?;
    }
    Ok(())
}

fn ns2(directory: &Path, scenario: &str, protocol: &str, round: u32) -> Command {
    let mut command = Command::new("ns");
    command.arg(directory.join("rafiq.tcl"));
    command.args([scenario, protocol, LOSS, &(round + 1).to_string(), "100"]);
    command
}

fn ours_settings<'a>(
    command: &'a mut Command,
    scenario: &str,
    protocol: &str,
    round: u32,
) -> &'a mut Command {
    command.args(["--jobs", "1", "--seed", &(round + 1).to_string()]);
    let ends = match scenario {
        "e2w" => [
            ("downward", LOSS),
            ("upward", "0.0"),
            ("from", "wired-1"),
            ("to", "station-1"),
        ],
        _ => [
            ("downward", "0.0"),
            ("upward", LOSS),
            ("from", "station-1"),
            ("to", "wired-1"),
        ],
    };
    let start = format!("{protocol}_start");
    for (key, value) in ends.into_iter().chain([(start.as_str(), "2 s")]) {
        command
            .arg("--set")
            .arg(format!("parameters.{key}={value}"));
    }
    command
}
