//! `anabranch emulate --tun`: emulates links for all IP packets between TUN devices, which the user
//! configures.

use std::io;

use anabranch_emulate::tun::{Tun, TunEmulator, TunHost, TunReport};
use anabranch_engine::world::WorldError;
use anabranch_sim::{BuildError, Topology};

use super::super::SHUTDOWN_TIMEOUT;
use super::super::arguments::Emulate;
use super::super::print::Printer;
use super::{build, drops, network, timing, watch};
use crate::failure::Failure;

/// Runs an emulator between TUN devices until it is interrupted or its time is over.
pub async fn emulate(arguments: Emulate) -> Result<(), Failure> {
    let file = &arguments.spec;
    let spec = network(file, &arguments.set)?;
    let path =
        build(&spec, None, arguments.seed).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut hosts: Vec<TunHost> = Vec::new();
    for text in &arguments.tun {
        let host = host(path.world.topology(), text)?;
        if hosts.iter().any(|it| it.node == host.node) {
            return Err(Failure::Usage(format!(
                "--tun: found node {} twice; a node has one device",
                host.name
            )));
        }
        hosts.push(host);
    }
    if hosts.len() < 2 {
        return Err(Failure::Usage(
            "--tun: found one node; packets enter at one and leave at another".to_owned(),
        ));
    }
    let seed = arguments.seed;
    let emulator = TunEmulator::start(hosts, move || {
        let built = build(&spec, None, seed).map_err(|error| match error {
            WorldError::Build(error) => error,
            // Not reached, because the first build above reports other errors.
            _ => BuildError::UnknownNode(0),
        });
        built.map(|path| path.world)
    });
    let emulator = emulator.map_err(|error| Failure::Net(error.to_string()))?;
    let (printer, written) = Printer::stdout();
    let devices = arguments.tun.join(", ");
    printer.line(format!("emulating {}: {devices}", file.display()))?;
    watch(&arguments, &printer, || line(&emulator.report())).await?;
    printer.line(line(&emulator.stop().0))?;
    drop(printer);
    // Limited in time: a reader that is active has received all lines by then, and a blocked one
    // must not delay the exit.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, written.wait()).await;
    Ok(())
}

/// Parses `NODE=DEVICE`; returns the host with its device.
fn host(topology: &Topology, text: &str) -> Result<TunHost, Failure> {
    let Some((name, device)) = text.split_once('=') else {
        return Err(Failure::Usage(format!(
            "--tun: found {text:?}; write NODE=DEVICE"
        )));
    };
    let node = topology.node(name).ok_or_else(|| {
        let known = topology.nodes().map(|it| topology.node_name(it));
        Failure::unknown("--tun", name, known)
    })?;
    let tun = Tun::open(device).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::Net(format!(
            "--tun {text}: {error}; run it as root or give it CAP_NET_ADMIN, or make the device for this user before: `ip tuntap add dev {device} mode tun user USER`"
        )),
        _ => Failure::Net(format!(
            "--tun {text}: {error}; it needs /dev/net/tun (`modprobe tun`)"
        )),
    })?;
    Ok(TunHost {
        name: name.to_owned(),
        node,
        tun,
    })
}

/// Formats a report as one line.
fn line(report: &TunReport) -> String {
    let hosts = report
        .hosts
        .iter()
        .map(|it| format!("{} sent {} and was given {}", it.name, it.entered, it.left));
    let hosts: Vec<String> = hosts.collect();
    format!(
        "{}; dropped: {}, overrun: {}; {}",
        hosts.join(", "),
        drops(&report.dropped),
        report.overrun,
        timing(&report.timing)
    )
}
