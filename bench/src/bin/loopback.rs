//! Throughput of one association over the loopback interface, with data in one direction. This
//! stack, usrsctp and pion (each at both ends), and UDP without SCTP alternate in each round.
//!
//! Usage: `loopback [ROUNDS] [--write]`, 3 rounds by default. `--write` updates the table in
//! `bench/README.md`, and the ratios in `bench/scoreboard.json`. Requires root (network namespace),
//! the packages installed by `scripts/setup`, and `anabranch-peer` in the directory of this program
//! (`cargo build --profile fair -p anabranch-interop --bins`).

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{median, raw};
use anabranch_interop::extension::Extension;
use anabranch_interop::namespace;
use anabranch_interop::peer::{Peer, Setup, Stack, Transport};
use anabranch_interop::programs::Programs;

/// Message sizes, bytes.
const SIZES: [u32; 4] = [100, 1024, 16 * 1024, 256 * 1024];
/// The stacks and their encapsulation. This project's stack is listed first.
const STACKS: [(Stack, Transport); 5] = [
    (Stack::Anabranch, Transport::Plain),
    (Stack::Anabranch, Transport::Encap),
    (Stack::Usrsctp, Transport::Plain),
    (Stack::Usrsctp, Transport::Encap),
    (Stack::Pion, Transport::Plain),
];
/// Number of entries in [`STACKS`] that are this stack.
const OURS: usize = 2;
/// Duration of the measurement of UDP, equal to that of the stacks.
const DURATION: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loopback: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    let (arguments, write) = page::arguments();
    let rounds = match arguments.first() {
        None => 3,
        Some(text) => text
            .parse()
            .ok()
            .filter(|rounds| *rounds > 0)
            .ok_or(format!(
                "found {text}; write the number of rounds, 1 or more"
            ))?,
    };
    namespace::allowed()?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = |name| own.with_file_name(name).to_string_lossy().into_owned();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let programs = Programs::new(
        &directory.path().to_string_lossy(),
        &beside("anabranch-peer"),
        &beside("dcsctp-peer"),
    );
    if !Path::new(&programs.anabranch).exists() {
        return Err(format!(
            "there is no {}; build it: cargo build --profile fair -p anabranch-interop --bins",
            programs.anabranch.display()
        ));
    }
    // Built before the namespace is entered, because downloads are impossible in it.
    programs.usrsctp()?;
    programs.pion()?;
    let mut page = Page::open("loopback", write).map_err(|error| error.to_string())?;
    page.line(&format!("Median of {rounds} rounds."));
    page.line("");
    page.line(
        "| message | stack | messages/s | MB/s | range of MB/s | to the best peer | to UDP alone |",
    );
    page.line("|---|---|---|---|---|---|---|");
    let mut figures = Vec::new();
    for size in SIZES {
        let [by_peer, by_udp] = print_size(size, rounds, &programs, &mut page)?;
        let what = |beside| format!("loopback, {size} B, inside UDP, by {beside}");
        figures.push((
            what("the best peer"),
            BenchResult::ratio(by_peer, None, 5.0),
        ));
        figures.push((
            what("UDP alone"),
            BenchResult::ratio(by_udp, None, 1.0 / 3.0),
        ));
    }
    page.close().map_err(|error| error.to_string())?;
    if write {
        scoreboard::note(figures).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Prints the rows for one message size: the median of each stack over the rounds, and its ratios
/// to the faster other stack of the same round and to UDP alone. Returns both ratios of this stack
/// inside UDP.
fn print_size(
    size: u32,
    rounds: usize,
    programs: &Programs,
    page: &mut Page,
) -> Result<[f64; 2], String> {
    let mut alone = Vec::new();
    let mut rates = vec![Vec::new(); STACKS.len()];
    for _ in 0..rounds {
        for (place, (stack, transport)) in STACKS.into_iter().enumerate() {
            let rate = namespace::inside(|| flood(stack, transport, size, programs))?;
            rates[place].push(rate);
        }
        let bytes = namespace::inside(|| {
            raw::rate(DURATION).map_err(|error| format!("UDP alone: {error}"))
        })?;
        alone.push(bytes / f64::from(size));
    }
    let best = |round: usize| {
        let peers = rates[OURS..].iter().map(|of_peer| of_peer[round]);
        peers.fold(0.0, f64::max)
    };
    let to_best = |place: usize| median((0..rounds).map(|round| rates[place][round] / best(round)));
    let to_alone =
        |place: usize| median((0..rounds).map(|round| rates[place][round] / alone[round]));
    let mut row = |name: &str, rates: &[f64], ratios: &str| {
        let megabytes = |rate: f64| rate * f64::from(size) / 1e6;
        let all = || rates.iter().copied();
        page.line(&format!(
            "| {size} | {name} | {:.0} | {:.1} | {:.1} to {:.1} | {ratios} |",
            median(all()),
            megabytes(median(all())),
            megabytes(all().fold(f64::MAX, f64::min)),
            megabytes(all().fold(0.0, f64::max)),
        ));
    };
    for (place, (stack, transport)) in STACKS.into_iter().enumerate() {
        let ratios = format!("{:.2} | {:.2}", to_best(place), to_alone(place));
        row(&format!("{stack}, {transport}"), &rates[place], &ratios);
    }
    row("UDP alone", &alone, " | 1.00");
    let encapsulated = STACKS
        .iter()
        .position(|it| *it == (Stack::Anabranch, Transport::Encap));
    Ok(encapsulated.map_or([f64::NAN; 2], |place| [to_best(place), to_alone(place)]))
}

/// Messages per second between the first and the last that arrived, in the network namespace of
/// this thread.
#[allow(clippy::disallowed_methods, reason = "a bench has a clock")]
fn flood(
    stack: Stack,
    transport: Transport,
    size: u32,
    programs: &Programs,
) -> Result<f64, String> {
    let until = Instant::now() + Duration::from_secs(60);
    let one = vec![IpAddr::from([127, 0, 0, 1])];
    let setup = |connects| Setup {
        stack,
        connects,
        transport,
        local: one.clone(),
        remote: one.clone(),
        local_udp: if connects { 9899 } else { 9900 },
        remote_udp: if connects { 9900 } else { 9899 },
        seed: 0,
        messages: 0,
        rto_min: 0,
        max_retrans: 0,
        flood: size,
        minimal_init: false,
        extension: Extension::None,
        expects: 0,
        hold: false,
        impaired: 0,
        moves_to: None,
        at_once: false,
        leaves_late: false,
        names_streams: false,
    };
    let mut accepting = Peer::start(&setup(false), programs)?;
    accepting.wait("ready", until)?;
    let mut connecting = Peer::start(&setup(true), programs)?;
    let line = match accepting.wait("rate", until) {
        Ok(line) => line,
        Err(error) => {
            let heard = connecting.wait("closed", until);
            return Err(format!("{stack}, {size} bytes: {error}; {heard:?}"));
        }
    };
    let field = |name: &str| -> Result<f64, String> {
        let value = line.split(' ').find_map(|part| part.strip_prefix(name));
        let number = value.and_then(|text| text.parse().ok());
        number.ok_or(format!("{stack}: no {name} in {line:?}"))
    };
    Ok(field("messages=")? / field("seconds=")?)
}
