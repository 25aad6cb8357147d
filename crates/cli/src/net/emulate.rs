//! `anabranch emulate`: emulates the simulator's links in real time.

#[cfg(target_os = "linux")]
mod tun;

use std::fs;
use std::time::Duration;

use anabranch_emulate::{
    Carrier, Config, DepartureLateness, EmulationReport, Emulator, Framing, Path, StartError,
};
use anabranch_engine::kinds::Standard;
use anabranch_engine::planner;
use anabranch_engine::world::{self, WorldError};
use anabranch_lab::spec_files;
use anabranch_lab::spec_source::Folder;
use anabranch_scenario::Spec;
use anabranch_settings::counted;
use anabranch_sim::{AddressFamily, BuildError, DropCounts, DropReason, Seed};

use super::Interrupts;
use super::arguments::Emulate;
use super::print::Printer;
use crate::failure::{Failure, unread};

/// Runs an emulator until it is interrupted or its time is over.
pub async fn emulate(arguments: Emulate) -> Result<(), Failure> {
    let file = &arguments.spec;
    #[cfg(target_os = "linux")]
    if !arguments.tun.is_empty() {
        return tun::emulate(arguments).await;
    }
    if !arguments.is_ip() && arguments.to.port() == 0 {
        return Err(Failure::Usage(format!(
            "--to: found {}, which names no port to send to; write ADDRESS:PORT",
            arguments.to.ip()
        )));
    }
    let spec = network(file, &arguments.set)?;
    let ends = match &arguments.between[..] {
        [] => None,
        [near, far] => Some([near.clone(), far.clone()]),
        other => {
            return Err(Failure::Usage(format!(
                "found --between {}; write two nodes: --between near,far",
                other.join(",")
            )));
        }
    };
    // A first build finds the errors that the checks of the spec do not find.
    let path = build(&spec, ends.as_ref(), arguments.seed)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    check(&path).map_err(|why| Failure::Usage(format!("{}: {why}", file.display())))?;
    if arguments.listen == arguments.to {
        return Err(Failure::Usage(format!(
            "found {} for both --listen and --to; packets would loop forever",
            arguments.to
        )));
    }
    let config = Config::new(arguments.listen, arguments.to).with(|it| {
        it.carrier = if arguments.is_ip() {
            Carrier::Ip
        } else {
            Carrier::Udp
        };
        it.from = arguments.from;
        it.framing = if arguments.no_udp_header {
            Framing::Sctp
        } else {
            Framing::Udp
        };
    });
    let seed = arguments.seed;
    let started = Emulator::start(config, move || {
        build(&spec, ends.as_ref(), seed).map_err(|error| match error {
            WorldError::Build(error) => error,
            // Not reached, because the first build above reports other errors.
            _ => BuildError::UnknownNode(0),
        })
    });
    let emulator = started.map_err(|error| match error {
        StartError::Build(error) => Failure::Usage(error.to_string()),
        error @ StartError::Addresses { .. } => Failure::Usage(error.to_string()),
        error => Failure::Net(error.to_string()),
    })?;
    let (printer, written) = Printer::stdout();
    let [listen, to] = [emulator.address(), arguments.to].map(|address| match arguments.is_ip() {
        true => address.ip().to_string(),
        false => address.to_string(),
    });
    printer.line(format!(
        "emulating {}: from {listen} to {to}",
        file.display()
    ))?;
    watch(&arguments, &printer, || line(&emulator.report())).await?;
    printer.line(line(&emulator.stop()))?;
    drop(printer);
    // Limited in time: a reader that is active has received all lines by then, and a blocked one
    // must not delay the exit.
    let _ = tokio::time::timeout(super::SHUTDOWN_TIMEOUT, written.wait()).await;
    Ok(())
}

/// Prints reports until the command is interrupted or its time is over.
async fn watch(
    arguments: &Emulate,
    printer: &Printer,
    report: impl Fn() -> String,
) -> Result<(), Failure> {
    let mut interrupts = Interrupts::new();
    let over = async {
        match arguments.duration {
            Some(time) => tokio::time::sleep(Duration::from_nanos(time.0)).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let period = match arguments.interval.0 {
        0 => super::FAR_FUTURE,
        nanoseconds => Duration::from_nanos(nanoseconds),
    };
    let mut ticks = tokio::time::interval(period);
    ticks.tick().await;
    loop {
        tokio::select! {
            () = interrupts.next() => break,
            () = &mut over => break,
            _ = ticks.tick() => printer.line(report())?,
        }
    }
    Ok(())
}

/// Reads the network of a spec.
pub(super) fn network(file: &std::path::Path, set: &[String]) -> Result<Spec, Failure> {
    let text = fs::read_to_string(file).map_err(|error| {
        let why = unread(&error);
        Failure::Usage(format!("cannot read the spec {}: {why}", file.display()))
    })?;
    let files = spec_files::files(&Folder::of(file));
    let spec = planner::network(&file.display().to_string(), &text, set, &files)?;
    Ok(spec)
}

fn build(spec: &Spec, ends: Option<&[String; 2]>, seed: u64) -> Result<Path, WorldError> {
    let ends = ends.map(|[near, far]| [near.as_str(), far.as_str()]);
    let (world, [near, far]) =
        world::network(spec, &Standard::default(), ends, Seed::new(seed, 0))?;
    Ok(Path { world, near, far })
}

/// Refuses end nodes through which no packet can enter or leave.
fn check(path: &Path) -> Result<(), String> {
    let topology = path.world.topology();
    if path.near == path.far {
        let name = topology.node_name(path.near);
        return Err(format!(
            "found node {name} as both ends; packets enter at one node and leave at another"
        ));
    }
    let linked = |node| topology.addresses(node, AddressFamily::V4).next().is_some();
    match [path.near, path.far]
        .into_iter()
        .find(|&node| !linked(node))
    {
        None => Ok(()),
        Some(node) => Err(format!(
            "node {} has no link; name two nodes with links by --between NODE,NODE",
            topology.node_name(node)
        )),
    }
}

/// Formats a report as one line.
fn line(report: &EmulationReport) -> String {
    let [there, back] = [report.sent[1], report.sent[0]];
    let dropped = drops(&report.dropped);
    format!(
        "{} there, {back} back, dropped: {dropped}, overrun: {}; {}",
        counted(there, "packet"),
        report.overrun,
        timing(&report.timing)
    )
}

/// Formats the accuracy of the timing.
fn timing(timing: &DepartureLateness) -> String {
    let us = |nanos: u64| nanos as f64 / 1e3;
    format!(
        "late by {:.0} us on average, {:.0} us (99 %), {:.0} us at most",
        us(timing.mean()),
        us(timing.quantile(0.99)),
        us(timing.most())
    )
}

/// Formats the number of drops by reason.
pub(super) fn drops(dropped: &DropCounts) -> String {
    let counted = DropReason::ALL
        .iter()
        .filter(|reason| dropped.count(**reason) > 0)
        .map(|&reason| format!("{} {}", dropped.count(reason), reason.name()));
    let words: Vec<String> = counted.collect();
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}
