//! `anabranch run --live`: experiments on real sockets, over the emulated network of their spec, in
//! real time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_emulate::{Config as EmulatorConfig, Emulator, Framing, Path};
use anabranch_engine::live::{self, LIVE, Live, Observed};
use anabranch_engine::plan::{Plan, PlannedRun};
use anabranch_engine::point::PlannedPoint;
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::Sink;
use anabranch_engine::transport::sctp;
use anabranch_engine::world::{self, WorldError};
use anabranch_lab::run::Simulator;
use anabranch_net::sctp::{AssociationId, Config as SctpConfig};
use anabranch_net::{
    Association, BindOptions, Carrier, Config, Endpoint, Observer, Peer, SendOptions,
};
use anabranch_scenario::records::RunRecord;
use anabranch_scenario::{Flow, Spec};
use anabranch_settings::counted;
use anabranch_sim::workload::{NextMessage, Workload};
use anabranch_sim::{BuildError, Seed};
use anabranch_transport::{Nanos, Probe, ProbeSet, Sample};
use bytes::Bytes;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::stderr::note;

/// Size of the UDP header, bytes. It is deducted, because the packets in specs have no UDP header.
const UDP_HEADER: usize = 8;
/// The server's SCTP port.
const PORT: u16 = 52_000;

/// Runner that simulates some experiments, and runs the others on real sockets.
pub struct MixedRunner<'a> {
    /// Runner of the simulations.
    pub simulator: Simulator,
    /// Identifiers of the experiments on real sockets.
    pub live: &'a [String],
}

impl Runner for MixedRunner<'_> {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        if self.live.contains(&unit.experiment.id) {
            Live(observe).run(unit, seed, sink)
        } else {
            self.simulator.run(unit, seed, sink)
        }
    }

    fn kind(&self, unit: &PlannedRun<'_>) -> &'static str {
        if self.live.contains(&unit.experiment.id) {
            LIVE
        } else {
            self.simulator.kind(unit)
        }
    }

    fn live(&self) -> Vec<String> {
        self.live.to_vec()
    }

    fn wants(&self, unit: &PlannedRun<'_>) -> bool {
        self.simulator.wants(unit)
    }
}

/// Refuses experiments that do not exist or cannot be run on real sockets.
pub fn check(plan: &Plan, wanted: &[String]) -> Result<(), Failure> {
    for id in wanted {
        let known: Vec<&str> = plan.experiments.iter().map(|it| it.id.as_str()).collect();
        let Some(experiment) = plan.experiments.iter().find(|it| it.id == *id) else {
            return Err(Failure::unknown("--live", id, known));
        };
        for point in &experiment.points {
            let point = experiment.resolve(point)?;
            flow(&point.spec).map_err(|why| {
                Failure::Usage(format!(
                    "experiment {id} cannot be run on real sockets: {why}"
                ))
            })?;
        }
    }
    Ok(())
}

/// The only flow of a spec, if it is one that real sockets can carry.
fn flow(spec: &Spec) -> Result<&Flow, String> {
    let [flow] = &spec.flows[..] else {
        let found = spec.flows.len();
        return Err(format!("it has {}; one can be run", counted(found, "flow")));
    };
    if flow.count.0 != 1 {
        return Err(format!(
            "flow {} has {}; one can be run",
            flow.name,
            counted(flow.count.0, "member")
        ));
    }
    if !sctp::ENTRY.kind.is_of(&flow.transport) {
        return Err(format!("flow {} is not SCTP by this stack", flow.name));
    }
    if flow.workload.kind != "bulk" {
        return Err(format!("flow {} has another workload than bulk", flow.name));
    }
    Ok(flow)
}

/// Runs one replication in real time.
fn observe(unit: &PlannedRun<'_>, seed: u64) -> Result<Vec<Observed>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let point = unit.resolve().map_err(|error| error.to_string())?;
    let probes = live::probes(&point, unit.replication);
    let seed = world::seed_of(unit, &point, seed);
    let observed = runtime.block_on(run(&point, seed, probes))?;
    Ok(vec![observed])
}

async fn run(point: &PlannedPoint, seed: Seed, probes: ProbeSet) -> Result<Observed, String> {
    let spec = &point.spec;
    let flow = flow(spec)?;
    let origin = Instant::now();
    let kept = Arc::new(Mutex::new(Observed::default()));
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let bind = |port: u16, accept: bool| {
        let config = Config::default().with(|it| {
            it.sctp = transport(flow);
            it.port = port;
            it.accept = accept;
            it.addresses = vec![loopback];
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
        });
        let observer = Recorder {
            kept: Arc::clone(&kept),
            probes,
            // The endpoint's clock, and with it the times of its samples, starts when the endpoint
            // is bound.
            begin: origin.elapsed().as_nanos() as Nanos,
        };
        Endpoint::bind_with(
            config,
            BindOptions::default().with_observer(Box::new(observer)),
        )
        .map_err(|error| error.to_string())
    };
    let (server, client) = (bind(PORT, true)?, bind(0, false)?);
    let emulator = emulator(point, flow, seed, server.udp_port())?;
    let peer = Peer::from((loopback, PORT)).over_udp(emulator.address().port());
    let end = origin + Duration::from_nanos(spec.world.duration.0);
    let work = async {
        let taking = tokio::spawn(async move {
            let association = server.accept().await.map_err(|error| error.to_string())?;
            while let Ok(Some(_)) = association.recv().await {}
            Ok::<(), String>(())
        });
        let association = client
            .connect(peer)
            .await
            .map_err(|error| error.to_string())?;
        feed(&association, flow, point).await?;
        taking.await.map_err(|error| error.to_string())?
    };
    let failed = match tokio::time::timeout_at(end, work).await {
        // The duration is over, which is the regular end.
        Err(_) => None,
        Ok(Ok(())) => None,
        Ok(Err(reason)) => Some(reason),
    };
    let report = emulator.stop();
    if report.overrun > 0 {
        return Err(format!(
            "the emulator could not keep up; lost in addition to the emulated losses: {}",
            counted(report.overrun, "packet")
        ));
    }
    note(format_args!(
        "live: packets left {:.2} ms late on average, {:.2} ms (99 %), {:.2} ms at most",
        report.timing.mean() as f64 / 1e6,
        report.timing.quantile(0.99) as f64 / 1e6,
        report.timing.most() as f64 / 1e6
    ));
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let mut observed = std::mem::take(&mut *kept);
    // Sorted by time, because the two endpoints have recorded separately.
    observed.samples.sort_by_key(|sample| sample.at);
    observed.failed = failed;
    Ok(observed)
}

/// The flow's SCTP settings, with packets of the spec's size including UDP.
fn transport(flow: &Flow) -> SctpConfig {
    let mut config = sctp::config(&flow.transport);
    config.mtu += UDP_HEADER;
    config
}

fn emulator(point: &PlannedPoint, flow: &Flow, seed: Seed, to: u16) -> Result<Emulator, String> {
    let (spec, kinds) = (Arc::clone(&point.spec), Arc::clone(&point.kinds));
    let (from, end) = (flow.from.clone(), flow.to.clone());
    let address = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let config = EmulatorConfig::new(address(0), address(to)).with(|it| it.framing = Framing::Sctp);
    let build = move || match world::network(&spec, &kinds, Some([&from, &end]), seed) {
        Ok((world, [near, far])) => Ok(Path { world, near, far }),
        Err(WorldError::Build(error)) => Err(error),
        // Not reached, because the checks of the spec have found the nodes.
        Err(_) => Err(BuildError::UnknownNode(0)),
    };
    Emulator::start(config, build).map_err(|error| error.to_string())
}

/// Sends the workload; returns when all of it has arrived.
async fn feed(association: &Association, flow: &Flow, point: &PlannedPoint) -> Result<(), String> {
    let rng = anabranch_sim::Seed::default().stream("workload");
    // The spec has only one flow.
    let packet = point.resolved.transports[0].packet();
    let made = point.kinds.workload(&flow.workload, rng, packet);
    let mut bulk = made.map_err(|refusal| refusal.to_string())?;
    let unordered = sctp::application(&flow.transport).unordered;
    let payload = Bytes::from(vec![0; bulk.facts().sizes[1] as usize]);
    let options = SendOptions::default().with_unordered(unordered);
    // A bulk workload without a rate offers a message whenever it is polled, so the time is always
    // 0.
    while let NextMessage::Now(message) = bulk.next(0) {
        let piece = payload.slice(..message.size);
        let sent = association.send(piece, options.with_stream(None)).await;
        sent.map_err(|error| error.to_string())?;
    }
    association
        .shutdown()
        .await
        .map_err(|lost| lost.to_string())
}

/// Observer that records the samples of both ends.
struct Recorder {
    kept: Arc<Mutex<Observed>>,
    probes: ProbeSet,
    begin: Nanos,
}

impl Observer for Recorder {
    fn probes(&self) -> ProbeSet {
        self.probes.with(Probe::Delivered)
    }

    fn sample(&mut self, _: AssociationId, sample: Sample) {
        let sample = Sample {
            at: sample.at + self.begin,
            ..sample
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if sample.probe == Probe::Delivered {
            kept.deliveries.push((sample.at, sample.value as u64));
        }
        if self.probes.contains(sample.probe) {
            kept.samples.push(sample);
        }
    }
}
