//! `anabranch shell`: runs programs on simulated links, in network namespaces.

mod parent_death;
mod plan;
mod processes;
mod report;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anabranch_emulate::namespace::{self, Namespace, NamespaceError};
use anabranch_emulate::tun::{Tun, TunEmulator, TunHost};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::ShellArguments;
use crate::failure::Failure;
use crate::stderr::note;
pub use parent_death::become_one;
use plan::ShellPlan;
use processes::{BackgroundCommand, Processes};

/// Maximum time until a program of --wait-for listens.
const LISTENING: Duration = Duration::from_secs(30);
/// Interval at which it is checked whether the program listens.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs all commands. Fails with the exit status of the main command.
pub fn shell(arguments: ShellArguments) -> Result<(), Failure> {
    let plan = ShellPlan::new(&arguments)?;
    if arguments.dry_run {
        return Ok(write!(io::stdout(), "{}", plan.addresses())?);
    }
    let captures = plan.open_captures()?;
    namespace::prepare().map_err(wrong)?;
    let mut hosts = Vec::new();
    let mut namespaces = Vec::new();
    for node in plan.hosts() {
        let (namespace, tun) = Namespace::new(plan.setup(node)).map_err(wrong)?;
        namespaces.push(namespace);
        hosts.push(plan.host(node, tun));
    }
    let mut running = Running {
        plan: &plan,
        namespaces,
        children: Processes::adopt(),
        emulator: None,
    };
    let begun = super::on_this_thread(running.run(hosts, captures));
    running.children.end();
    let ended = running.report(arguments.report.as_deref());
    match begun? {
        0 => ended,
        status => ended.and(Err(Failure::Program(status))),
    }
}

/// The error if a namespace cannot be created; no command was run.
fn wrong(error: NamespaceError) -> Failure {
    Failure::Net(error.to_string())
}

/// A running emulation.
struct Running<'a> {
    plan: &'a ShellPlan,
    /// A namespace for each host, in the order of the plan.
    namespaces: Vec<Namespace>,
    children: Processes,
    emulator: Option<(TunEmulator, Instant)>,
}

impl Running<'_> {
    /// Starts all commands, and waits for the main command. Returns its exit status.
    async fn run(&mut self, hosts: Vec<TunHost>, captures: plan::Captures) -> Result<u8, Failure> {
        let mut signals = Signals::new()?;
        for run in self.plan.runs() {
            let what = format!("{}: {}", self.plan.name(run.host), run.command);
            let namespace = &self.namespaces[run.host];
            self.children.start(namespace, what, run.command.clone())?;
        }
        tokio::select! {
            listening = listening(self.plan, &self.namespaces) => listening?,
            _ = signals.next() => return Err(Failure::Interrupted),
        }
        let build = self.plan.builder(captures);
        let emulator =
            TunEmulator::start(hosts, build).map_err(|error| Failure::Net(error.to_string()))?;
        self.emulator = Some((emulator, now()));
        let namespace = &self.namespaces[self.plan.at()];
        let mut command = self.children.run(namespace, self.plan.command())?;
        let mut asked = false;
        loop {
            tokio::select! {
                status = command.ended() => return Ok(status),
                Some(ended) = self.children.next_ended() => say(ended),
                signal = signals.next() => {
                    command.signal(match signal {
                        Signal::SIGINT => Signal::SIGINT,
                        // Escalates, because the command has received a signal before.
                        _ if asked => Signal::SIGKILL,
                        _ => Signal::SIGTERM,
                    });
                    asked |= signal != Signal::SIGINT;
                }
            }
        }
    }

    /// Stops the emulator and prints its report.
    fn report(&mut self, file: Option<&std::path::Path>) -> Result<(), Failure> {
        let Some((emulator, began)) = self.emulator.take() else {
            return Ok(());
        };
        let (report, captured) = emulator.stop();
        let untaken = self.namespaces.iter().map(Namespace::untaken).sum();
        let report = report::ShellReport::new(report, untaken, now() - began);
        note(&report);
        if let Some(file) = file {
            std::fs::write(file, report.json()).map_err(|error| {
                Failure::Net(format!("cannot write {}: {error}", file.display()))
            })?;
        }
        captured.map_err(|error| Failure::Net(format!("cannot write a capture: {error}")))
    }
}

#[allow(clippy::disallowed_methods, reason = "an emulator lives in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Prints the failure of a background command. Nothing is printed about successful ones.
fn say(ended: &BackgroundCommand) {
    if let Some(how) = ended.failure() {
        note(format_args!("anabranch: {} {how}", ended.what));
    }
}

/// Waits until the programs of --wait-for listen.
async fn listening(plan: &ShellPlan, namespaces: &[Namespace]) -> Result<(), Failure> {
    for &(host, port) in plan.waits() {
        let listens = async {
            while !namespaces[host].listens(port) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(LISTENING, listens).await.is_err() {
            let (name, seconds) = (plan.name(host), LISTENING.as_secs());
            return Err(Failure::Net(format!(
                "--wait-for {name}:{port}: nothing listens there after {seconds} s"
            )));
        }
    }
    Ok(())
}

/// Signals to this process.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// True if a terminal sends its interrupt to the command too.
    terminal: bool,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::Net(format!("cannot listen to signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            terminal: io::IsTerminal::is_terminal(&io::stdin()),
        })
    }

    /// Waits for the next signal to pass to the command.
    async fn next(&mut self) -> Signal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    if !self.terminal {
                        return Signal::SIGINT;
                    }
                }
                _ = self.terminate.recv() => return Signal::SIGTERM,
                _ = self.hangup.recv() => return Signal::SIGHUP,
            }
        }
    }
}

impl ShellPlan {
    /// A host with its device.
    fn host(&self, host: usize, tun: Tun) -> TunHost {
        TunHost {
            name: self.name(host).to_owned(),
            node: self.node(host),
            tun,
        }
    }
}
