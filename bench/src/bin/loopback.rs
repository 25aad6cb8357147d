//! One association on the loopback interface, one way: this stack, usrsctp and pion, each with itself, in turn in each
//! round.
//!
//! `loopback [ROUNDS]`, 3 unless told. Wants root (a network namespace), what `scripts/setup` installs, and
//! `anabranch-peer` beside this program (`cargo build --release -p anabranch-interop --bins`).

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anabranch_interop::namespace;
use anabranch_interop::peer::{Peer, Setup, Stack, Transport};
use anabranch_interop::programs::Programs;

/// Bytes of a message.
const SIZES: [u32; 4] = [100, 1024, 16 * 1024, 256 * 1024];
/// The stacks, ours first.
const STACKS: [(Stack, Transport); 5] = [
    (Stack::Anabranch, Transport::Plain),
    (Stack::Anabranch, Transport::Encap),
    (Stack::Usrsctp, Transport::Plain),
    (Stack::Usrsctp, Transport::Encap),
    (Stack::Pion, Transport::Plain),
];
/// How many of [`STACKS`] are ours.
const OURS: usize = 2;

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
    let rounds = match std::env::args().nth(1) {
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
            "there is no {}; build it: cargo build --release -p anabranch-interop --bins",
            programs.anabranch.display()
        ));
    }
    println!("| message | stack | messages/s | MB/s | range of MB/s | to the best peer |");
    println!("|---|---|---|---|---|---|");
    for size in SIZES {
        print_size(size, rounds, &programs)?;
    }
    Ok(())
}

/// The rows of one size: each stack's median over the rounds.
fn print_size(size: u32, rounds: usize, programs: &Programs) -> Result<(), String> {
    let mut rates = vec![Vec::new(); STACKS.len()];
    for _ in 0..rounds {
        for (place, (stack, transport)) in STACKS.into_iter().enumerate() {
            let rate = namespace::inside(|| flood(stack, transport, size, programs))?;
            rates[place].push(rate);
        }
    }
    rates
        .iter_mut()
        .for_each(|of_stack| of_stack.sort_by(f64::total_cmp));
    let median = |place: usize| rates[place][rounds / 2];
    let best = (OURS..STACKS.len()).map(median).fold(0.0, f64::max);
    for (place, (stack, transport)) in STACKS.into_iter().enumerate() {
        let megabytes = |rate: f64| rate * f64::from(size) / 1e6;
        println!(
            "| {size} | {stack}, {transport} | {:.0} | {:.1} | {:.1} to {:.1} | {:.2} |",
            median(place),
            megabytes(median(place)),
            megabytes(rates[place][0]),
            megabytes(rates[place][rounds - 1]),
            median(place) / best,
        );
    }
    Ok(())
}

/// Messages a second, from the first that came to the last, in the network of this thread.
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
        bare_init: false,
        hold: false,
        netem: false,
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
