//! Goodput of SCTP stacks with packet loss, and in competition with TCP: this stack and models of
//! others in the simulator with `bench/loss.toml`, and pion in real time over the same path.
//!
//! Usage: `losses [ROUNDS] [--write]`. ROUNDS is the number of rounds in real time: 3 by default, 0
//! for none, and twenty times as many for high loss rates. `--write` updates the tables in
//! `bench/README.md`. Requires `anabranch` built with the same profile in the directory of this
//! program; the real-time comparison also requires root (network namespaces) and Go.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::thread;

use anabranch_bench::beside_this_program;
use anabranch_bench::page::{self, Page};
use anabranch_interop::programs::Programs;
use anabranch_report::statistics::{Summary, paired_difference};

type Outcome<T> = Result<T, Box<dyn Error>>;
/// Goodput of this stack and of pion in one round, bit/s.
type Pair = (f64, f64);

/// Sender that is the reference for all others.
const OURS: &str = "anabranch, RACK, PRR, CUBIC, L = 2";
/// Loss rates of the real-time comparison: as parameter of the spec, and as text.
const LOSSES: [(&str, &str); 4] = [
    ("0.001", "0.1 %"),
    ("0.01", "1 %"),
    ("0.05", "5 %"),
    ("0", "by the queue"),
];
/// Loss rates that limit a flow to about 150 packets per second. More runs are made with them,
/// because runs vary more than the stacks differ; two processors can execute many such runs in
/// parallel.
const SLOW: [&str; 2] = ["0.01", "0.05"];
/// Number of runs with these loss rates per round, and number of these runs that are executed in
/// parallel.
const SLOW_ROUNDS: u64 = 20;
const AT_ONCE: u64 = 10;
/// Duration of a run, seconds.
const SECONDS: u32 = 20;
/// Size of a message that fills a packet of every stack, bytes. The headers of pion are the
/// longest, because it uses interleaving.
const MESSAGE: &str = "1440";

fn main() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    let rounds = arguments.first().map_or(Ok(3), |text| text.parse())?;
    let anabranch = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;
    let mut page = Page::open("losses", write)?;
    let simulated = Simulated::run(&anabranch)?;
    simulated.alone(&mut page)?;
    simulated.beside(&mut page)?;
    if rounds > 0 {
        races(&anabranch, scratch.path(), rounds, &mut page)?;
    }
    page.close()
}

/// A point of the spec: loss rate and sender.
type Point = (String, String);

/// Results of the spec: values of a measure by replication, for each experiment, point and series.
struct Simulated {
    values: BTreeMap<[String; 5], Vec<(u32, f64)>>,
    /// Points of each experiment, in the order of the spec.
    points: BTreeMap<String, Vec<Point>>,
}

impl Simulated {
    fn run(anabranch: &Path) -> Outcome<Self> {
        // The directory is kept, so that an interrupted run can be continued. Stored results are
        // used only if the code has not changed.
        let out = page::folder().join("../target/losses");
        let status = Command::new(anabranch)
            .arg("run")
            .arg(page::folder().join("loss.toml"))
            .arg("--out")
            .arg(&out)
            .status()?;
        if !status.success() {
            return Err(format!("the runs of loss.toml ended with {status}").into());
        }
        let mut this = Self {
            values: BTreeMap::new(),
            points: BTreeMap::new(),
        };
        for experiment in ["alone", "full", "beside", "sharing"] {
            this.read(experiment, &out.join("measures"))?;
        }
        Ok(this)
    }

    fn read(&mut self, experiment: &str, measures: &Path) -> Outcome<()> {
        let mut rows = csv::Reader::from_path(measures.join(format!("{experiment}.csv")))?;
        let heads = rows.headers()?.clone();
        for row in rows.records() {
            let row = row?;
            let field = |name: &str| -> Outcome<&str> {
                let place = heads.iter().position(|head| head == name);
                let value = place.and_then(|place| row.get(place));
                value.ok_or_else(|| format!("{experiment}: no column {name}").into())
            };
            let point = (field("loss")?.to_owned(), field("sender")?.to_owned());
            let points = self.points.entry(experiment.to_owned()).or_default();
            if !points.contains(&point) {
                points.push(point.clone());
            }
            let (series, metric) = (field("series")?, field("metric")?);
            let key = [experiment, &point.0, &point.1, series, metric].map(str::to_owned);
            let value = (field("replication")?.parse()?, field("value")?.parse()?);
            self.values.entry(key).or_default().push(value);
        }
        Ok(())
    }

    /// Values of a measure at a point, by replication.
    fn of(&self, experiment: &str, point: &Point, what: [&str; 2]) -> Outcome<&[(u32, f64)]> {
        let key = [experiment, &point.0, &point.1, what[0], what[1]].map(str::to_owned);
        let values = self.values.get(&key);
        Ok(values.ok_or_else(|| format!("no values of {key:?}"))?)
    }

    fn summary(&self, experiment: &str, point: &Point, what: [&str; 2]) -> Outcome<Summary> {
        let values = self.of(experiment, point, what)?;
        let bare: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        Ok(Summary::of(&bare).ok_or("no runs")?)
    }

    /// Prints the goodput of each sender alone, and the advantage of this stack, paired by
    /// replication.
    fn alone(&self, page: &mut Page) -> Outcome<()> {
        page.line("Alone:");
        page.line("");
        page.line("| lost | sender | goodput, Mbit/s | runs | ours by it | |");
        page.line("|---|---|---|---|---|---|");
        for experiment in ["alone", "full"] {
            for point in &self.points[experiment] {
                let what = ["sctp", "goodput"];
                let all = self.summary(experiment, point, what)?;
                let ours = (point.0.clone(), OURS.to_owned());
                let (ours, theirs) = (
                    self.of(experiment, &ours, what)?,
                    self.of(experiment, point, what)?,
                );
                let ahead = paired_difference(ours, theirs).ok_or("no common runs")?;
                let ratio = 1.0 + ahead.mean / all.mean;
                let half = ahead.confidence().unwrap_or(f64::INFINITY) / all.mean;
                let verdict = match point.1 == OURS {
                    true => "",
                    false => verdict(ratio, half),
                };
                page.line(&format!(
                    "| {} | {} | {} | {} | {ratio:.2} ± {half:.2} | {verdict} |",
                    in_words(&point.0),
                    point.1,
                    megabits(&all),
                    all.replications,
                ));
            }
        }
        page.line("");
        Ok(())
    }

    /// Prints the results of each sender in competition with a TCP flow.
    fn beside(&self, page: &mut Page) -> Outcome<()> {
        page.line("In competition with one TCP flow, whose congestion control is the last word of the column `sender`:");
        page.line("");
        page.line("| lost | sender | its goodput, Mbit/s | TCP's, Mbit/s | runs | Jain's index of the means | mean of the runs' indices |");
        page.line("|---|---|---|---|---|---|---|");
        for experiment in ["beside", "sharing"] {
            for point in &self.points[experiment] {
                let of = |series| self.summary(experiment, point, [series, "goodput"]);
                let (own, tcp) = (of("sctp")?, of("tcp")?);
                let index = self.summary(experiment, point, ["all", "jain_fairness"])?;
                page.line(&format!(
                    "| {} | {} | {} | {} | {} | {:.3} | {:.3} ± {:.3} |",
                    in_words(&point.0),
                    point.1,
                    megabits(&own),
                    megabits(&tcp),
                    own.replications,
                    jain(own.mean, tcp.mean),
                    index.mean,
                    index.confidence().unwrap_or(f64::INFINITY),
                ));
            }
        }
        page.line("");
        Ok(())
    }
}

/// Jain's fairness index for two goodputs.
fn jain(one: f64, other: f64) -> f64 {
    (one + other).powi(2) / (2.0 * (one * one + other * other))
}

fn megabits(summary: &Summary) -> String {
    let half = summary.confidence().unwrap_or(f64::INFINITY);
    format!("{:.2} ± {:.2}", summary.mean / 1e6, half / 1e6)
}

/// The loss rate as text.
fn in_words(loss: &str) -> &str {
    let known = LOSSES.iter().find(|(parameter, _)| *parameter == loss);
    known.map_or(loss, |(_, words)| words)
}

/// This stack and pion, each at both ends, alternate over the link of the spec in real time
/// (`anabranch shell`).
fn races(anabranch: &Path, scratch: &Path, rounds: u64, page: &mut Page) -> Outcome<()> {
    let programs = Programs::new(&scratch.to_string_lossy(), "", "");
    let pion = programs.pion()?;
    page.line(&format!(
        "Alone and in real time, {SECONDS} s for each stack and round:"
    ));
    page.line("");
    page.line(
        "| lost | rounds | ours, Mbit/s | least - most | pion, Mbit/s | least - most | ours by it | |",
    );
    page.line("|---|---|---|---|---|---|---|---|");
    for (loss, words) in LOSSES {
        let (rounds, at_once) = match SLOW.contains(&loss) {
            true => (rounds * SLOW_ROUNDS, AT_ONCE),
            false => (rounds, 1),
        };
        let mut pairs = Vec::new();
        for first in (1..=rounds).step_by(at_once as usize) {
            let seeds = first..(first + at_once).min(rounds + 1);
            pairs.extend(rounds_of(seeds, &|seed| {
                let ours = race_of_ours(anabranch, loss, seed)?;
                Ok((ours, race_of_pion(anabranch, pion, scratch, loss, seed)?))
            })?);
        }
        page.line(&format!("| {words} | {rounds} | {}", row_of(&pairs)?));
    }
    Ok(())
}

/// Runs one round for each seed, several in parallel.
fn rounds_of(
    seeds: Range<u64>,
    round: &(dyn Fn(u64) -> Outcome<Pair> + Sync),
) -> Outcome<Vec<Pair>> {
    thread::scope(|scope| {
        let told = |seed| scope.spawn(move || round(seed).map_err(|error| error.to_string()));
        let all: Vec<_> = seeds.map(told).collect();
        let joined = all.into_iter().map(|it| it.join());
        joined
            .map(|it| Ok(it.map_err(|_| "a race panicked")??))
            .collect()
    })
}

/// Cells of a row: the goodput of both stacks, and the advantage of this stack, paired by round.
fn row_of(pairs: &[Pair]) -> Outcome<String> {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let numbered = |rates: &[f64]| (0..).zip(rates.iter().copied()).collect::<Vec<_>>();
    let ahead = paired_difference(&numbered(&ours), &numbered(&theirs)).ok_or("no rounds")?;
    let all = Summary::of(&theirs).ok_or("no rounds")?;
    let ratio = 1.0 + ahead.mean / all.mean;
    let half = ahead.confidence().unwrap_or(f64::INFINITY) / all.mean;
    Ok(format!(
        "{} | {} | {ratio:.2} ± {half:.2} | {} |",
        of_rounds(&ours)?,
        of_rounds(&theirs)?,
        verdict(ratio, half),
    ))
}

/// Text that interprets the confidence interval of a ratio.
fn verdict(ratio: f64, half: f64) -> &'static str {
    match (ratio - half > 1.0, ratio + half < 1.0) {
        (true, _) => "ahead",
        (_, true) => "behind",
        _ => "no difference found",
    }
}

/// Mean of the rounds with its confidence interval, minimum and maximum, as text.
fn of_rounds(rates: &[f64]) -> Outcome<String> {
    let all = || rates.iter().map(|rate| rate / 1e6);
    Ok(format!(
        "{} | {:.2} - {:.2}",
        megabits(&Summary::of(rates).ok_or("no rounds")?),
        all().fold(f64::MAX, f64::min),
        all().fold(0.0, f64::max),
    ))
}

/// The command `anabranch shell` for the path of the spec, with this loss rate and seed.
fn shell(anabranch: &Path, loss: &str, seed: u64) -> Command {
    let mut command = Command::new(anabranch);
    command
        .arg("shell")
        .arg(page::folder().join("loss.toml"))
        .args(["--set", &format!("loss={loss}"), "--seed"])
        .arg(seed.to_string());
    command
}

/// Goodput of this stack with its best settings, bit/s.
fn race_of_ours(anabranch: &Path, loss: &str, seed: u64) -> Outcome<f64> {
    let own = anabranch.display();
    let sink = format!("{own} serve sink --pmtu '1500 B' --set receive_buffer='8 MiB' > /dev/null");
    let mut command = shell(anabranch, loss, seed);
    command
        .args([
            "--run",
            &format!("there={sink}"),
            "--wait-for",
            "there:9899",
            "--",
        ])
        .arg(anabranch)
        .args([
            "perf",
            "10.0.0.2",
            "--json",
            "--interval",
            "0",
            "--pmtu",
            "1500 B",
        ])
        .args([
            "--message-size",
            MESSAGE,
            "--duration",
            &format!("{SECONDS} s"),
        ])
        .args(["--congestion", "cubic", "--set", "rack=true"])
        .args(["--set", "proportional_rate_reduction=true"])
        .args(["--set", "abc_limit=2"]);
    let output = command.output()?;
    // If the last packets of the shutdown are lost, `perf` fails after it has printed its report.
    let said: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
    let rate = said.and_then(|it| it["end"]["sum_received"]["bits_per_second"].as_f64());
    let failed = || String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(rate.ok_or_else(failed)?)
}

/// Goodput of pion, bit/s. The receiving program does not end by itself, so it runs in the
/// background until it has printed the rate.
fn race_of_pion(
    anabranch: &Path,
    pion: &Path,
    scratch: &Path,
    loss: &str,
    seed: u64,
) -> Outcome<f64> {
    let pion = pion.display();
    let connect = format!(
        "{pion} connect local=10.0.0.1 remote=10.0.0.2 local-udp=9900 remote-udp=9899 size={MESSAGE} seconds={SECONDS} > /dev/null"
    );
    let said = scratch.join(format!("pion-{loss}-{seed}"));
    let heard = said.display();
    let accept = format!(
        "{pion} accept local=10.0.0.2 remote=10.0.0.1 local-udp=9899 remote-udp=9900 size={MESSAGE} > {heard} & \
         for i in $(seq 1200); do grep -q '^rate\\|^error' {heard} && break; sleep 0.1; done; cat {heard}"
    );
    let mut command = shell(anabranch, loss, seed);
    // The connecting peer may start first, because it repeats its INIT.
    command
        .args(["--at", "there", "--run", &format!("here={connect}"), "--"])
        .args(["sh", "-c", &accept]);
    let said = String::from_utf8(output(&mut command)?)?;
    let field = |name: &str| -> Outcome<f64> {
        let value = said
            .split_whitespace()
            .find_map(|part| part.strip_prefix(name));
        Ok(value.ok_or_else(|| format!("pion: {said:?}"))?.parse()?)
    };
    Ok(field("bytes=")? * 8.0 / field("seconds=")?)
}

/// Runs a command; returns its standard output.
fn output(command: &mut Command) -> Outcome<Vec<u8>> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {said}", output.status).into());
    }
    Ok(output.stdout)
}
