//! Throughput of an association that the DTLS chunk protects, compared with that of the cipher
//! alone. The example `cost` with packets of at most 1220 bytes and `openssl speed -bytes 1200` for
//! AES-128-GCM alternate in each round, measured by processor time. In addition,
//! `valgrind --tool=callgrind` counts instructions per byte; it has no AVX-512, so that the cipher
//! uses the code for older processors.
//!
//! Usage: `protected [ROUNDS] [--write]`. `--write` updates the table in `bench/README.md`.
//! Requires the example `cost`, built with the same profile, in the directory of this program.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{callgrind, median};
use wait4::Wait4;

/// Size of a message, bytes.
const MESSAGE: u64 = 16_384;
/// Number of messages in a run whose time is measured.
const TIMED: u64 = 40_000;
/// Number of messages in the shorter of the runs whose instructions are counted.
const COUNTED: u64 = 1_000;
/// Goal: the rate of the association as a fraction of the cipher's rate.
const GOAL: f64 = 0.6;

fn main() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let rounds: usize = match &arguments[..] {
        [] => 7,
        [rounds] => rounds.parse()?,
        _ => return Err("protected [ROUNDS] [--write]".into()),
    };
    let cost = next_to_this("cost")?;
    let [mut plain, mut protected, mut cipher, mut ratios] = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        plain.push(rate(&cost, false)?);
        protected.push(rate(&cost, true)?);
        // Halved, because each byte is both sealed and opened.
        cipher.push(openssl()? / 2.0);
        ratios.extend(
            protected
                .last()
                .zip(cipher.last())
                .map(|(ours, it)| ours / it),
        );
    }
    let mut page = Page::open("protected", write)?;
    page.line(&format!("Median of {rounds} rounds.\n"));
    page.line("| | MB/s | by the cipher alone | instructions a byte |");
    page.line("|---|---|---|---|");
    let plain = median(plain.into_iter());
    let count = instructions(&cost, false)?;
    page.line(&format!("| not protected | {plain:.0} | | {count:.2} |"));
    let (rate, ratio) = (median(protected.into_iter()), median(ratios.into_iter()));
    let count = instructions(&cost, true)?;
    page.line(&format!(
        "| DTLS chunk, AES-128-GCM | {rate:.0} | {ratio:.2} | {count:.2} |"
    ));
    let cipher = median(cipher.into_iter());
    page.line(&format!(
        "| `openssl speed`, both ends | {cipher:.0} | 1.00 | |"
    ));
    page.close()?;
    if write {
        let name = "DTLS chunk, 1200 B packets, by AES-128-GCM of OpenSSL alone";
        let figure = BenchResult::ratio(ratio, None, GOAL);
        scoreboard::note(vec![(name.to_string(), figure)])?;
    }
    Ok(())
}

fn next_to_this(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(name);
    if !path.exists() {
        return Err(format!(
            "{} is missing: build it with the same profile",
            path.display()
        )
        .into());
    }
    Ok(path)
}

fn words(messages: u64, protected: bool) -> Vec<String> {
    let mut words = vec![MESSAGE.to_string(), messages.to_string(), "1".to_string()];
    words.extend(protected.then(|| "dtls-chunk".to_string()));
    words
}

/// User data per second of the processor time of both ends, MB.
fn rate(cost: &Path, protected: bool) -> Result<f64, Box<dyn Error>> {
    let mut child = Command::new(cost)
        .args(words(TIMED, protected))
        .stdout(Stdio::null())
        .spawn()?;
    let ended = child.wait4()?;
    if !ended.status.success() {
        return Err("`cost` failed".into());
    }
    let spent = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
    Ok((TIMED * MESSAGE) as f64 / 1e6 / spent)
}

/// Instructions per byte of user data, both ends together.
fn instructions(cost: &Path, protected: bool) -> Result<f64, Box<dyn Error>> {
    let [less, more] = [COUNTED, 3 * COUNTED].map(|it| words(it, protected));
    let count = callgrind::between(cost, &less, &more)?;
    Ok(count as f64 / (2 * COUNTED * MESSAGE) as f64)
}

/// Data that OpenSSL encrypts per second of processor time, MB.
fn openssl() -> Result<f64, Box<dyn Error>> {
    let output = Command::new("openssl")
        .args([
            "speed",
            "-bytes",
            "1200",
            "-seconds",
            "1",
            "-evp",
            "aes-128-gcm",
        ])
        .output()
        .map_err(|error| format!("cannot run openssl: {error}"))?;
    let text = String::from_utf8(output.stdout)?;
    let thousands = text.lines().last().and_then(|line| {
        let number = line.strip_prefix("AES-128-GCM")?.trim();
        number.strip_suffix('k')?.parse::<f64>().ok()
    });
    let thousands = thousands.ok_or_else(|| format!("openssl speed printed: {text}"))?;
    Ok(thousands / 1e3)
}
