//! What the benches share: two programs, whole processes, one after the other in each round, so that both meet the same machine.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::env;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

pub mod arrival;
pub mod callgrind;
pub mod contest;
pub mod page;
pub mod raw;
pub mod siege;
pub mod standing;

/// What one process cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// From its start to its exit, seconds.
    pub wall: f64,
    /// Of the processor, user and system, seconds.
    pub cpu: f64,
    /// Largest resident memory, KiB.
    pub peak_kib: u64,
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or fails.
pub fn measure(command: &mut Command) -> Result<Cost, Box<dyn Error>> {
    let begin = Instant::now();
    // ns-2 talks there, but less than a pipe holds.
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

/// Prints what the columns of [`report`] are.
pub fn head(rounds: u32) {
    println!(
        "whole processes, median of {rounds} alternating rounds; ratio > 1: anabranch is faster"
    );
    println!(
        "{:<14} {:>9} {:>9} {:>7} {:>15} {:>9} {:>9} {:>9} {:>12} {:>9} {:>9} {:>9}",
        "scenario",
        "ns-2 s",
        "ours s",
        "ratio",
        "range of ratio",
        "ns-2 cpu",
        "our cpu",
        "cpu ratio",
        "packet-hops",
        "ns each",
        "ns-2 MiB",
        "ours MiB"
    );
}

/// Prints the line of a scenario: what the rounds of both programs cost, and how many packets ours carried over a link. Gives their
/// processor time by ours, the median of the rounds.
pub fn report(name: &str, theirs: &[Cost], ours: &[Cost], hops: u64) -> f64 {
    let ratios: Vec<f64> = theirs
        .iter()
        .zip(ours)
        .map(|(t, o)| t.wall / o.wall)
        .collect();
    let (low, high) = ratios
        .iter()
        .fold((f64::MAX, 0.0_f64), |(l, h), &r| (l.min(r), h.max(r)));
    let cpu_ratio = median(theirs.iter().zip(ours).map(|(t, o)| t.cpu / o.cpu));
    let their_cpu = median(theirs.iter().map(|cost| cost.cpu));
    let our_cpu = median(ours.iter().map(|cost| cost.cpu));
    println!(
        "{:<14} {:>9.3} {:>9.3} {:>7.2} {:>15} {:>9.3} {:>9.3} {:>9.2} {:>12} {:>9.0} {:>9.1} {:>9.1}",
        name,
        median(theirs.iter().map(|cost| cost.wall)),
        median(ours.iter().map(|cost| cost.wall)),
        median(ratios.iter().copied()),
        format!("{low:.2} - {high:.2}"),
        their_cpu,
        our_cpu,
        cpu_ratio,
        hops,
        our_cpu * 1e9 / hops as f64,
        median(theirs.iter().map(|cost| cost.peak_kib as f64)) / 1024.0,
        median(ours.iter().map(|cost| cost.peak_kib as f64)) / 1024.0,
    );
    cpu_ratio
}

/// The packets and hops that a results directory's manifest tells.
///
/// # Errors
/// There is no manifest, or no such number in it.
pub fn packet_hops(out: &Path) -> Result<u64, Box<dyn Error>> {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json"))?)?;
    manifest["packet_hops"]
        .as_u64()
        .ok_or_else(|| "manifest.json has no packet_hops".into())
}

/// A program that was built into the same directory as this one.
///
/// # Errors
/// It was not.
pub fn beside_this_program(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!("no {name} beside this program; build it: cargo build --release -p {name}").into())
}

/// The middle one, the upper of two; there must be one.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
