//! The GEO dumbbell of alamgir2002 without tracing. Whole processes of anabranch and ns-2.35
//! alternate in each round.
//!
//!     cargo run --profile fair -p anabranch-bench --bin geo [-- ROUNDS] [--write]
//!
//! Requires `ns` (Debian package ns2), and `anabranch` built with the same profile in the directory
//! of this program.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anabranch_bench::callgrind::between;
use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{
    Round, beside_this_program, geo_of, head, hops_of, measure, packet_hops, report,
};

/// A scenario that both programs run.
struct Scenario {
    name: &'static str,
    pairs: u32,
    rate: &'static str,
    buffer: u32,
    seconds: u32,
    /// Speedup over ns-2.35 at commit 3763e40, by processor time.
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

    let mut page = Page::open("geo", write)?;
    head(rounds, &mut page);
    for scenario in &SCENARIOS {
        let mut all = Vec::new();
        for round in 0..rounds {
            let theirs = measure(&mut ns2(&directory, scenario, round))?;
            let out = scratch
                .path()
                .join(format!("{}-{}-{round}", scenario.pairs, scenario.seconds));
            let mut command = ours_command(&anabranch, &directory, scenario, round, &out);
            all.push(Round {
                theirs,
                ours: measure(&mut command)?,
                their_hops: Some(hops_of_ns2(&directory, scenario, round)?),
                our_hops: packet_hops(&out)?,
            });
            fs::remove_dir_all(&out)?;
        }
        let ratio = report(scenario.name, &all, &mut page);
        let what = format!("simulator, {}, by ns-2.35", scenario.name);
        if let Some(by_hop) = ratio.by_hop {
            let what = format!("{what}, by packet and hop");
            figures.push((what, BenchResult::ratio(by_hop, None, 3.0)));
        }
        figures.push((
            what,
            BenchResult::ratio(ratio.whole, Some(scenario.before), 3.0),
        ));
    }
    page.line("");
    figures.extend(instructions(&directory, &mut page)?);
    page.close()?;
    if write {
        scoreboard::note(figures)?;
    }
    Ok(())
}

/// Instructions per packet on a link, with and without transports. They do not depend on the load
/// of the machine.
fn instructions(
    directory: &Path,
    page: &mut Page,
) -> Result<Vec<(String, BenchResult)>, Box<dyn Error>> {
    page.line("| by callgrind | instructions a packet and hop | goal |");
    page.line("|---|---|---|");
    let mut figures = Vec::new();
    let mut note = |what: &str, each: f64, before: f64, goal: f64| {
        page.line(&format!("| {what} | {each:.0} | {goal:.0} |"));
        let figure = BenchResult {
            unit: "instructions a packet and hop".to_string(),
            goal,
            more: false,
            ..BenchResult::ratio(each, Some(before), goal)
        };
        figures.push((format!("simulator, {what}"), figure));
    };
    let program = beside_this_program("run_spec")?;
    let spec = directory.join("geo.toml");
    let (less, more) = (geo_of(&spec, 100), geo_of(&spec, 300));
    let hops = hops_of(&program, &more)? - hops_of(&program, &less)?;
    let each = between(&program, &less, &more)? as f64 / hops as f64;
    note("n=8", each, 2_624.0, 1_300.0);
    let program = beside_this_program("hops")?;
    for (what, air, before, goal) in [
        ("two wires without transport", None, 1_284.0, 500.0),
        (
            "a wire and 802.11b without transport",
            Some("air"),
            9_488.0,
            2_000.0,
        ),
    ] {
        let arguments = |packets: u32| {
            let words = [packets.to_string(), "1480".to_string()];
            let air = air.map(str::to_string);
            words.into_iter().chain(air).collect::<Vec<_>>()
        };
        let each = between(&program, &arguments(4_000), &arguments(12_000))? as f64 / 16_000.0;
        note(what, each, before, goal);
    }
    Ok(figures)
}

/// Number of packets that crossed a link in ns-2, from the trace of a separate run that is not
/// timed.
fn hops_of_ns2(directory: &Path, scenario: &Scenario, round: u32) -> Result<u64, Box<dyn Error>> {
    let mut child = ns2(directory, scenario, round)
        .arg("/dev/stdout")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut hops = 0;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            hops += u64::from(line?.starts_with(b"r "));
        }
    }
    match child.wait()?.success() {
        true => Ok(hops),
        false => Err("ns failed while it was traced".into()),
    }
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
