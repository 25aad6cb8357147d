//! Code that the benchmarks share. When two programs are compared as whole processes, they
//! alternate in each round, because both should run under the same conditions.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::env;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use page::Page;
use wait4::Wait4;

pub mod arrival;
pub mod attack;
pub mod callgrind;
pub mod harness;
pub mod page;
pub mod processors;
pub mod raw;
pub mod scoreboard;

/// Cost of a process.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Elapsed time from start to exit, seconds.
    pub wall: f64,
    /// User and system processor time, seconds.
    pub cpu: f64,
    /// Peak resident memory, KiB.
    pub peak_kib: u64,
}

/// Runs a command until it exits.
///
/// # Errors
/// The command cannot be started, or fails.
pub fn measure(command: &mut Command) -> Result<Cost, Box<dyn Error>> {
    let begin = Instant::now();
    // Standard error is piped and read only after the end of the program: ns-2 prints messages to
    // it, but too few to fill the pipe.
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let end = child.wait4()?;
    if !end.status.success() {
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_string(&mut said)?;
        }
        return Err(format!("{command:?} ended with {}: {said}", end.status).into());
    }
    Ok(Cost {
        wall: begin.elapsed().as_secs_f64(),
        cpu: (end.rusage.utime + end.rusage.stime).as_secs_f64(),
        peak_kib: end.rusage.maxrss / 1024,
    })
}

/// Adds the heading of the table whose rows [`report`] prints.
pub fn head(rounds: u32, page: &mut Page) {
    page.line(&format!(
        "Medians of {rounds} alternating rounds of whole processes. anabranch is faster if `ratio` is above 1."
    ));
    page.line("");
    page.line(
        "| scenario | ns-2, processor s | ours, processor s | ratio | ratio of wall times | range | packets and hops, ns-2 | ours | ratio by \
         packet and hop | ns a packet and hop | ns-2 MiB | ours MiB |",
    );
    page.line("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

/// Cost of one round of a scenario in both programs.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Cost of ns-2.
    pub theirs: Cost,
    /// Cost of anabranch.
    pub ours: Cost,
    /// Number of packets that crossed a link in ns-2, if it was counted.
    pub their_hops: Option<u64>,
    /// Number of packets that crossed a link in anabranch.
    pub our_hops: u64,
}

/// Speedup over ns-2 by processor time, as median over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct SpeedRatio {
    /// Speedup for the whole scenario.
    pub whole: f64,
    /// Speedup per packet on a link, if the packets of ns-2 were counted. It differs, because the
    /// two programs have different random losses.
    pub by_hop: Option<f64>,
}

/// Adds the row of a scenario to the table.
pub fn report(name: &str, rounds: &[Round], page: &mut Page) -> SpeedRatio {
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let ratios = rounds.iter().map(|it| it.theirs.cpu / it.ours.cpu);
    let (low, high) = ratios.fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
    let by_hop: Option<Vec<f64>> = rounds
        .iter()
        .map(|it| {
            let work = it.our_hops as f64 / it.their_hops? as f64;
            Some(it.theirs.cpu / it.ours.cpu * work)
        })
        .collect();
    let ratio = SpeedRatio {
        whole: of(|it| it.theirs.cpu / it.ours.cpu),
        by_hop: by_hop.map(|it| median(it.into_iter())),
    };
    let counted = |value: Option<String>| value.unwrap_or_else(|| "-".to_string());
    let their_hops = rounds
        .iter()
        .map(|it| it.their_hops.map(|hops| hops as f64));
    let their_hops: Option<Vec<f64>> = their_hops.collect();
    page.line(&format!(
        "| {name} | {:.3} | {:.3} | {:.2} | {:.2} | {low:.2} - {high:.2} | {} | {:.0} | {} | {:.0} | {:.1} | {:.1} |",
        of(|it| it.theirs.cpu),
        of(|it| it.ours.cpu),
        ratio.whole,
        of(|it| it.theirs.wall / it.ours.wall),
        counted(their_hops.map(|it| format!("{:.0}", median(it.into_iter())))),
        of(|it| it.our_hops as f64),
        counted(ratio.by_hop.map(|it| format!("{it:.2}"))),
        of(|it| it.ours.cpu * 1e9 / it.our_hops as f64),
        of(|it| it.theirs.peak_kib as f64 / 1024.0),
        of(|it| it.ours.peak_kib as f64 / 1024.0),
    ));
    ratio
}

/// The number of packet hops in the manifest of a results directory.
///
/// # Errors
/// The manifest or the number is missing.
pub fn packet_hops(out: &Path) -> Result<u64, Box<dyn Error>> {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json"))?)?;
    manifest["packet_hops"]
        .as_u64()
        .ok_or_else(|| "manifest.json has no packet_hops".into())
}

/// Arguments of `run_spec` for `geo.toml` with eight flows and this simulated duration in seconds.
pub fn geo_of(spec: &Path, seconds: u32) -> Vec<String> {
    let settings = [
        "1".to_string(),
        "parameters.pairs=4".to_string(),
        "parameters.rate=11 Mbit/s".to_string(),
        "parameters.buffer=160 packets".to_string(),
        format!("world.duration={seconds} s"),
    ];
    let spec = spec.display().to_string();
    [spec].into_iter().chain(settings).collect()
}

/// The number of packet hops that a run of `run_spec` prints.
///
/// # Errors
/// The program cannot be run, or does not print the number.
pub fn hops_of(run_spec: &Path, arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    let output = Command::new(run_spec).args(arguments).output()?;
    let said = String::from_utf8(output.stdout)?;
    let word = said.lines().find_map(|it| it.strip_prefix("packet-hops "));
    let word = word.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(word.parse()?)
}

/// Path of a program in the directory of the running program.
///
/// # Errors
/// The program does not exist.
pub fn beside_this_program(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!("no {name} next to this program; build it: cargo build --release -p {name}").into())
}

/// The median; for an even number of values, the mean of the middle two. There must be at least one
/// value.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 9.0].into_iter()), 3.0);
        assert_eq!(median([7.0].into_iter()), 7.0);
    }
}
