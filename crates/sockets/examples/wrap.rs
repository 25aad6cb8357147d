//! Runs a program on this stack's SCTP sockets, with the arguments of `anabranch wrap`. The host
//! runs in this process, so that a benchmark can measure it without the rest of the command.
//!
//! `cargo run --release -p anabranch-sockets --example wrap -- wrap [--udp-port=N]
//! [--peer-udp-port=N] [--no-seccomp] -- COMMAND ARGUMENTS...`; the variable ANABRANCH_PRELOAD is
//! the path of `libanabranch_preload.so` (crate `anabranch-capi`).

use std::process::{Command, ExitCode};

use anabranch_net::{Carrier, Config};
use anabranch_sockets::HOST_VARIABLE;
use anabranch_sockets::host::Host;

/// Port of SCTP in UDP (RFC 6951).
const PORT: u16 = 9899;
const USAGE: &str =
    "wrap [--udp-port=N] [--peer-udp-port=N] [--no-seccomp] -- COMMAND ARGUMENTS...";

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some("wrap") {
        return Err(USAGE.into());
    }
    let (mut port, mut peer_port) = (PORT, PORT);
    loop {
        let word = words.next().ok_or(USAGE)?;
        match word.split_once('=') {
            Some(("--udp-port", number)) => port = number.parse()?,
            Some(("--peer-udp-port", number)) => peer_port = number.parse()?,
            None if word == "--" => break,
            // Accepted without effect, because this example never detects bypassing calls.
            None if word == "--no-seccomp" => (),
            _ => return Err(format!("found {word}; {USAGE}").into()),
        }
    }
    let name = format!("example-{}", std::process::id());
    let mut program = Command::new(words.next().ok_or(USAGE)?);
    program
        .args(words)
        .env("LD_PRELOAD", std::env::var("ANABRANCH_PRELOAD")?);
    program.env(HOST_VARIABLE, &name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let config =
        Config::default().with(|it| it.carrier = Carrier::Encapsulated { port, peer_port });
    let status = runtime.block_on(async {
        let host = Host::start(&name, config)?;
        let idle = host.idle();
        let serving = tokio::spawn(host.serve());
        let status = tokio::task::spawn_blocking(move || program.status()).await??;
        // The last messages of the program may still be in transit.
        idle.await;
        serving.abort();
        Ok::<_, std::io::Error>(status)
    })?;
    let code = status.code().and_then(|it| u8::try_from(it).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
