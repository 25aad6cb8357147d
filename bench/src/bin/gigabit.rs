//! One TCP flow over 1 Gbit/s. Whole processes of anabranch and ns-3.37 alternate in each round.
//!
//! Usage: `gigabit [ROUNDS] [SECONDS] [--write]`, 1 round of 10 simulated seconds by default.
//! `--write` updates the table in `bench/README.md`. Requires `libns3-dev` of Debian, a C++
//! compiler, `valgrind`, and `anabranch` built with the same profile in the directory of this
//! program.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_bench::page::{self, Page};
use anabranch_bench::{Cost, beside_this_program, callgrind, measure, median};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Congestion controls: the name in a spec, and the name in ns-3.
const CONTROLS: [(&str, &str); 2] = [("cubic", "TcpCubic"), ("bbr", "TcpBbr")];
/// Simulated seconds of the two runs whose instructions are counted. Both contain slow start.
const COUNTED: [u32; 2] = [1, 2];
/// Size of the user data in a segment with timestamps, bits.
const SEGMENT: f64 = 1448.0 * 8.0;

fn main() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    let mut numbers = arguments.iter().map(|text| text.parse::<u32>());
    let rounds = numbers.next().transpose()?.unwrap_or(1).max(1);
    let seconds = numbers.next().transpose()?.unwrap_or(10);
    let scratch = tempfile::tempdir()?;
    let ns3 = compiled(scratch.path())?;
    let mut page = Page::open("gigabit", write)?;
    page.line(&format!(
        "Medians of {rounds} rounds of {seconds} simulated seconds."
    ));
    page.line("");
    page.line("| control | program | goodput, Mbit/s | segments | processor s | us a segment | instructions a segment | MiB | ours by it |");
    page.line("|---|---|---|---|---|---|---|---|---|");
    for (control, of_ns3) in CONTROLS {
        let ours = Ours {
            anabranch: beside_this_program("anabranch")?,
            control,
            out: scratch.path().join(control),
        };
        let said = scratch.path().join("ns3");
        let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
        let mut our_goodput = 0.0;
        for _ in 0..rounds {
            our_costs.push(measure(&mut ours.command(seconds))?);
            our_goodput = ours.goodput()?;
            fs::remove_dir_all(&ours.out)?;
            let mut theirs = Command::new(&ns3);
            theirs.args([of_ns3, &seconds.to_string()]).arg(&said);
            their_costs.push(measure(&mut theirs)?);
        }
        let their_goodput = fs::read_to_string(&said)?.trim().parse()?;
        let mut row = |program, costs: &[Cost], goodput: f64, instructions: &str| {
            let segments = goodput * f64::from(seconds) / SEGMENT;
            let cpu = median(costs.iter().map(|cost| cost.cpu));
            let ratios = our_costs.iter().zip(costs);
            page.line(&format!(
                "| `{control}` | {program} | {:.0} | {segments:.0} | {cpu:.2} | {:.2} | {instructions} | {:.0} | {:.2} |",
                goodput / 1e6,
                cpu * 1e6 / segments,
                median(costs.iter().map(|cost| cost.peak_kib as f64)) / 1024.0,
                median(ratios.map(|(ours, it)| it.cpu / ours.cpu)),
            ));
        };
        let counted = format!("{:.0}", ours.instructions(our_goodput)?);
        row("anabranch", &our_costs, our_goodput, &counted);
        row("ns-3.37", &their_costs, their_goodput, "-");
    }
    page.close()
}

/// Compiles the ns-3 program.
fn compiled(scratch: &Path) -> Outcome<PathBuf> {
    const MODULES: [&str; 8] = [
        "core",
        "network",
        "internet",
        "point-to-point",
        "traffic-control",
        "applications",
        "bridge",
        "stats",
    ];
    let program = scratch.join("gigabit");
    let source = page::folder().join("../validation/ns3/gigabit.cc");
    let output = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(&program)
        .arg(source)
        .args(MODULES.map(|module| format!("-lns3-{module}")))
        .output()?;
    match output.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Files of the runs with anabranch.
struct Ours {
    anabranch: PathBuf,
    control: &'static str,
    out: PathBuf,
}

impl Ours {
    fn arguments(&self, seconds: u32) -> Vec<String> {
        let spec = page::folder().join("gigabit/gigabit.toml");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut all = vec!["run".to_owned(), text(&spec), "--out".to_owned()];
        all.push(text(&self.out));
        for value in [
            format!("control={}", self.control),
            format!("world.duration={seconds} s"),
        ] {
            all.extend(["--set".to_owned(), value]);
        }
        all
    }

    fn command(&self, seconds: u32) -> Command {
        let mut command = Command::new(&self.anabranch);
        command.args(self.arguments(seconds));
        command
    }

    /// Goodput in the last run, bit/s.
    fn goodput(&self) -> Outcome<f64> {
        let mut rows = csv::Reader::from_path(self.out.join("measures.csv"))?;
        for row in rows.records() {
            let row = row?;
            let is_it = row.iter().any(|field| field == "goodput");
            if let (true, Some(value)) = (is_it, row.get(row.len() - 2)) {
                return Ok(value.parse()?);
            }
        }
        Err("no goodput in measures.csv".into())
    }

    /// Instructions per segment after slow start.
    fn instructions(&self, goodput: f64) -> Outcome<f64> {
        let mut counts = Vec::new();
        for seconds in COUNTED {
            let arguments = self.arguments(seconds);
            counts.push(callgrind::instructions(&self.anabranch, &arguments)?);
            fs::remove_dir_all(&self.out)?;
        }
        let segments = goodput * f64::from(COUNTED[1] - COUNTED[0]) / SEGMENT;
        Ok((counts[1] - counts[0]) as f64 / segments)
    }
}
