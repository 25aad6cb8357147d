//! Worlds: builds simulator worlds from specs, runs them, and creates the records of the runs.

mod constellations;
mod division;
mod flows;
pub(crate) mod link_observers;
mod meeting;
mod part;
pub(crate) mod recorder;
mod snapshots;
mod unreachable_flows;

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use anabranch_scenario::Spec;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::records::RunRecord;
use anabranch_settings::KindError;
use anabranch_sim::{
    AddressFamily, BuildError, CaptureError, NodeId, RunError as SimError, Seed, World,
};
use anabranch_transport::Nanos;
use sha2::{Digest, Sha256};

use crate::agent::flow_stats::FlowStats;
use crate::flows::known;
use crate::kinds::Standard;
use crate::metric::{FlowOutcome, LinkOutcome, RunOutcome};
use crate::network::{self, Built, Layout, NetworkError, Parts};
use crate::parallel::Crew;
use crate::plan::PlannedRun;
use crate::point::PlannedPoint;
use crate::sink::{NullSink, Sink, SinkError};
use constellations::ConstellationRecorder;
use link_observers::of_members;
use meeting::{Attendance, Meeting};
use part::{Part, Simulated, SimulatedPart};
use recorder::RunRecorder;
use snapshots::{SnapshotTaker, own_link_stats};

/// Simulated time between two transfers of buffered samples to the sink, nanoseconds.
const SLICE: u64 = 1_000_000_000;

/// Reason why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The simulator rejects the world.
    #[error("the world cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The spec is invalid at the run's point, although the plan accepted it.
    #[error("the plan no longer holds: {0}")]
    Spec(Box<SpecError>),
    /// A kind in the spec cannot be built.
    #[error("the world cannot be built: {0}")]
    Kind(#[from] KindError),
    /// The network of the spec cannot be built.
    #[error("the world cannot be built: {0}")]
    Network(#[from] NetworkError),
    /// The simulation stopped early.
    #[error("the simulation stopped: {0}")]
    Run(#[from] SimError),
    /// The packet counts of the simulator do not balance, which is a defect of this program.
    #[error("packets were lost count of: {0}")]
    Ledger(#[from] anabranch_sim::Imbalance),
    /// Samples could not be written.
    #[error("samples cannot be written: {0}")]
    Sink(#[source] SinkError),
    /// A capture could not be opened.
    #[error("the capture {name} cannot be written: {source}")]
    Capture {
        /// Name of the capture, such as its file name.
        name: String,
        /// Error of the writer.
        source: io::Error,
    },
    /// A capture names a link that the world does not have.
    #[error("there is no link {name} to capture; the links are: {known}")]
    NoSuchLink {
        /// The requested name.
        name: String,
        /// Names of the existing links.
        known: String,
    },
    /// A run on real sockets failed.
    #[error("the run on real sockets failed: {0}")]
    Live(String),
    /// The name of a node that the world does not have.
    #[error("there is no node {name:?}; allowed: {known}")]
    NoSuchNode {
        /// The requested name.
        name: String,
        /// Names of the existing nodes.
        known: String,
    },
    /// All nodes of a world must stay together, so that several threads cannot share it.
    #[error("several threads cannot share this world: {0}")]
    Indivisible(String),
    /// Another part of a divided world failed.
    #[error("another thread of the run failed")]
    OtherPart,
    /// The threads that should share a world cannot be started.
    #[error("cannot start the threads of the run: {0}")]
    Threads(#[source] io::Error),
    /// A capture that the simulator rejected.
    #[error(transparent)]
    Refused(#[from] CaptureError),
}

impl From<SpecError> for WorldError {
    fn from(error: SpecError) -> Self {
        Self::Spec(Box::new(error))
    }
}

/// A capture of the packets of a link, in pcapng format.
pub struct Capture<'a> {
    /// Name of the link; `name[i]` for a member of a group.
    pub link: &'a str,
    /// Name of the capture for messages, such as its file name.
    pub name: String,
    /// Opens the writer; called after the link was found.
    pub open: &'a dyn Fn() -> io::Result<Box<dyn Write>>,
}

/// Network of a spec without its flows, and the two nodes at which packets from outside enter and
/// leave. These are the nodes named `ends`, or by default the first and the last node.
///
/// # Errors
/// [`WorldError`] if the simulator rejects the network or a node does not exist.
pub fn network(
    spec: &Spec,
    kinds: &Standard,
    ends: Option<[&str; 2]>,
    seed: Seed,
) -> Result<(World, [NodeId; 2]), WorldError> {
    let traffic = known(spec, &[]).traffic();
    let mut built = network::build(spec, &Parts::new(spec, kinds)?, &traffic)?;
    let routes = network::routes::resolve(&built, spec)?;
    let addresses = Vec::new();
    Layout { routes, addresses }.apply(&mut built.topology)?;
    let topology = built.topology;
    let all: Vec<NodeId> = topology.nodes().collect();
    let named = |name: &str| {
        let names = topology.nodes().map(|node| topology.node_name(node));
        topology.node(name).ok_or_else(|| WorldError::NoSuchNode {
            name: name.to_owned(),
            known: names.collect::<Vec<_>>().join(", "),
        })
    };
    let ends = match (ends, all.first(), all.last()) {
        (Some([near, far]), _, _) => [named(near)?, named(far)?],
        (None, Some(&first), Some(&last)) => [first, last],
        _ => return Err(BuildError::UnknownNode(0).into()),
    };
    Ok((World::new(topology, seed)?, ends))
}

/// Names of all links of a spec's world, including each member of a group; a capture may name any
/// of them.
pub fn link_names(spec: &Spec) -> Vec<String> {
    network::link_names(spec)
}

/// Executes one run. Its samples and its record are written to `sink`.
///
/// # Errors
/// [`WorldError`].
pub fn run(
    unit: &PlannedRun<'_>,
    seed: u64,
    sink: &mut dyn Sink,
    captures: &[Capture<'_>],
) -> Result<RunRecord, WorldError> {
    let point = &*unit.resolve()?;
    let seed = seed_of(unit, point, seed);
    let simulated = simulate((unit, point), seed, captures, None, sink)?;
    finish((unit, point), seed, simulated, sink)
}

/// Like [`run`], with the world divided among the threads of `crew`. Samples and record do not
/// depend on the number of threads.
///
/// # Errors
/// [`WorldError`]; [`WorldError::Indivisible`] if the crew has several threads, but all nodes of
/// the world must stay together.
pub fn run_divided(
    unit: &PlannedRun<'_>,
    seed: u64,
    sink: &mut dyn Sink,
    crew: &dyn Crew,
) -> Result<RunRecord, WorldError> {
    if crew.threads() < 2 {
        return run(unit, seed, sink, &[]);
    }
    let point = &*unit.resolve()?;
    let seed = seed_of(unit, point, seed);
    let owners = owners(point, crew.threads())?;
    let parts = division::parts(&owners);
    let meeting = Meeting::new(parts, parts <= crew.processors());
    let results: Vec<Mutex<Option<Result<SimulatedPart, WorldError>>>> =
        (0..parts).map(|_| Mutex::default()).collect();
    let simulate = |number, sink: &mut dyn Sink| {
        let part = Part {
            attendance: Attendance::new(&meeting, number),
            owners: &owners,
        };
        simulate((unit, point), seed, &[], Some(part), sink)
    };
    let mut first = None;
    let others = |part| {
        let made = simulate(part, &mut NullSink).map(Simulated::into_part);
        *results[part].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    };
    crew.together(parts, &others, &mut || first = Some(simulate(0, sink)))
        .map_err(WorldError::Threads)?;
    let others = results.into_iter().skip(1);
    let others = others.map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut others: Vec<_> = others
        .map(|it| it.unwrap_or(Err(WorldError::OtherPart)))
        .collect();
    let mut simulated = match first.unwrap_or(Err(WorldError::OtherPart)) {
        // The cause is the error of another part.
        Err(WorldError::OtherPart) => {
            let causes = others.drain(..).filter_map(Result::err);
            let cause = causes
                .into_iter()
                .find(|it| !matches!(it, WorldError::OtherPart));
            return Err(cause.unwrap_or(WorldError::OtherPart));
        }
        first => first?,
    };
    for part in others {
        simulated.add(part?);
    }
    finish((unit, point), seed, simulated, sink)
}

/// Number of parts into which the world of a run is divided if it is shared by `threads` threads;
/// at most `threads`.
///
/// # Errors
/// [`WorldError::Indivisible`], and the errors of building the world.
pub fn check_divisible(unit: &PlannedRun<'_>, threads: usize) -> Result<usize, WorldError> {
    Ok(division::parts(&owners(&*unit.resolve()?, threads)?))
}

/// Assigns each node of a point's world to one of at most `threads` parts.
fn owners(point: &PlannedPoint, threads: usize) -> Result<Vec<u32>, WorldError> {
    division::divide(point, &build(point)?, threads).map_err(WorldError::Indivisible)
}

/// Builds the world of a run, or a part of this world, and simulates it.
fn simulate(
    (unit, point): (&PlannedRun<'_>, &PlannedPoint),
    seed: Seed,
    captures: &[Capture<'_>],
    mut part: Option<Part<'_>>,
    sink: &mut dyn Sink,
) -> Result<Simulated, WorldError> {
    let (spec, experiment) = (&*point.spec, &*point.experiment);
    let duration = spec.world.duration.0;
    let measures = &point.resolved.measures;
    let mut recording = RunRecorder::new(experiment, unit.replication);
    // Routes for recorded paths are computed in a second topology, because the world owns the
    // first.
    let routes = match recording.constellations().next() {
        Some(_) => Some(build(point)?),
        None => None,
    };
    let built = build(point)?;
    let checksum = spec.world.checksum || !captures.is_empty() || network::corrupts(spec);
    let mut world = World::new(built.topology, seed)?;
    let context = flows::Attaching {
        point,
        seed,
        checksum,
        part: part.as_ref().map(Part::numbers),
    };
    let tallies = flows::attach(&mut world, &context, &mut recording)?;
    attach_proxies(&mut world, &context)?;
    if measures.need_packets() {
        world.set_tap(Box::new(flows::packet_counter(point, &tallies)));
    }
    let lanes = recording.attach_links(&mut world, spec, &built.links, measures)?;
    let mut skies = match &routes {
        Some(routes) => ConstellationRecorder::all(&mut recording, point, routes),
        None => Vec::new(),
    };
    for capture in captures {
        start_capture(&mut world, capture)?;
    }
    if let Some(part) = &part {
        part.divide(&mut world, &mut skies)?;
    }
    let mut marker = SnapshotTaker::new(measures.moments(duration), &built.links, &tallies);
    run_world(
        &mut world,
        captures,
        (unit, point),
        &mut marker,
        (&mut recording, &mut skies),
        (part.as_mut().map(|it| &mut it.attendance), sink),
    )?;
    let marks = marker.marks();
    let links = built.links.iter();
    let stats = links
        .map(|members| own_link_stats(&world, members))
        .collect();
    let mut watched = lanes.take();
    watched.retain(|(link, direction), _| world.owns(*link, *direction));
    let (progress, ledger) = (world.progress(), world.packet_counts());
    // Dropping the world drops its agents, which hold the other references to the statistics.
    drop(world);
    let flows = tallies
        .iter()
        .map(|tally| flows::close(tally, duration))
        .collect();
    if let Some(part) = part {
        part.attendance.finish();
    }
    Ok(Simulated {
        flows,
        links: built.links,
        stats,
        watched,
        marks,
        progress,
        ledger,
    })
}

/// Makes the record of a run, and ends its output.
fn finish(
    (unit, point): (&PlannedRun<'_>, &PlannedPoint),
    seed: Seed,
    mut simulated: Simulated,
    sink: &mut dyn Sink,
) -> Result<RunRecord, WorldError> {
    let spec = &*point.spec;
    let duration = spec.world.duration.0;
    simulated.ledger.check()?;
    let each = simulated.links.iter().zip(&simulated.stats);
    let links = spec
        .carriers()
        .zip(each)
        .map(|(link, (members, stats))| LinkOutcome {
            name: link.name().to_owned(),
            rate: network::rate(link),
            members: stats
                .iter()
                .filter_map(|it| Some([it[0]?, it[1]?]))
                .collect(),
            watched: of_members(&mut simulated.watched, members, duration),
        });
    let links: Vec<LinkOutcome> = links.collect();
    let flows = outcomes(point, simulated.flows);
    let mut failures: Vec<String> = flows.iter().flat_map(FlowOutcome::failures).collect();
    failures.extend(unreachable_flows::failures(point, seed, &flows, &links)?);
    let outcome = RunOutcome {
        flows,
        links,
        marks: simulated.marks,
        duration,
    };
    let record = RunRecord {
        experiment: unit.experiment.id.clone(),
        point: point.point.clone(),
        replication: unit.replication,
        metrics: point.resolved.measures.values(&outcome),
        events: simulated.progress.events,
        packet_hops: simulated.progress.hops,
        simulated: spec.world.duration.seconds(),
        failures,
    };
    sink.end(&record).map_err(WorldError::Sink)?;
    Ok(record)
}

/// Attaches the proxies of all nodes.
fn attach_proxies(world: &mut World, context: &flows::Attaching<'_>) -> Result<(), WorldError> {
    for (name, proxy) in &context.point.resolved.proxies {
        let node = world.topology().node(name);
        let node = node.ok_or(BuildError::UnknownNode(0))?;
        let rng = context.seed.stream(&format!("proxy {name}"));
        let agent = proxy.agent(rng, context.checksum);
        world.attach_transit(node, proxy.protocol(), agent)?;
    }
    Ok(())
}

/// Builds the topology of a point with its addresses and routes.
fn build(point: &PlannedPoint) -> Result<Built, WorldError> {
    let resolved = &point.resolved;
    let mut built = network::build(&point.spec, &resolved.parts, &resolved.known.traffic())?;
    resolved.layout.apply(&mut built.topology)?;
    Ok(built)
}

/// Statistics of the flows of a point. `tallies` has the statistics of the members of all flows, in
/// the order of the member numbers.
pub(crate) fn outcomes(
    point: &PlannedPoint,
    tallies: impl IntoIterator<Item = FlowStats>,
) -> Vec<FlowOutcome> {
    let flows = point.spec.flows.iter().zip(&point.resolved.transports);
    let mut outcomes: Vec<FlowOutcome> = flows
        .map(|(flow, transport)| FlowOutcome {
            name: flow.name.clone(),
            segment: transport.segment(),
            receive_buffer: transport.receive_buffer(),
            members: Vec::with_capacity(flow.count.0 as usize),
        })
        .collect();
    for (member, tally) in point.resolved.members.iter().zip(tallies) {
        outcomes[member.flow].members.push(tally);
    }
    outcomes
}

/// Runs the world to its end. Samples are moved to the sink periodically, so that only few are
/// buffered.
fn run_world(
    world: &mut World,
    captures: &[Capture<'_>],
    (unit, point): (&PlannedRun<'_>, &PlannedPoint),
    marker: &mut SnapshotTaker<'_>,
    (recording, skies): (&mut RunRecorder, &mut [ConstellationRecorder<'_>]),
    (mut attendance, sink): (Option<&mut Attendance<'_>>, &mut dyn Sink),
) -> Result<(), WorldError> {
    sink.begin(unit.id(point), &recording.take_keys())
        .map_err(WorldError::Sink)?;
    let duration = point.spec.world.duration.0;
    let mut now = 0;
    marker.look(world, now);
    skies.iter_mut().for_each(|sky| sky.look(world, now));
    while now < duration {
        let next = skies.iter().map(ConstellationRecorder::next).min();
        let next = next.unwrap_or(Nanos::MAX).min(now + SLICE);
        now = marker.stop(now, duration.min(next));
        match &mut attendance {
            None => world.run_until(now)?,
            Some(attendance) => attendance.run_until(world, now)?,
        }
        marker.look(world, now);
        skies.iter_mut().for_each(|sky| sky.look(world, now));
        if now == duration {
            // The error does not say which capture failed, so all are named. Captures usually fail
            // together, because they share a disk.
            world.finish().map_err(|source| WorldError::Capture {
                name: captures
                    .first()
                    .map(|capture| capture.name.clone())
                    .unwrap_or_default(),
                source,
            })?;
            marker.settle(now);
        }
        if let Some(attendance) = &mut attendance {
            attendance.gather(&mut recording.buffer().borrow_mut())?;
        }
        recording.drain(sink).map_err(WorldError::Sink)?;
    }
    Ok(())
}

/// Seed of a run at a point. With `common_random_numbers`, replications with the same number have
/// the same seed in all such experiments and at all points. Otherwise each experiment and point has
/// separate seeds.
pub fn seed_of(unit: &PlannedRun<'_>, point: &PlannedPoint, seed: u64) -> Seed {
    let replication = u64::from(unit.replication);
    if point.experiment.common_random_numbers {
        return Seed::new(seed, replication);
    }
    let mut digest = Sha256::new();
    digest.update(seed.to_le_bytes());
    digest.update(&unit.experiment.id);
    digest.update(serde_json::to_string(&point.point).unwrap_or_default());
    let digest = digest.finalize();
    let own = digest
        .first_chunk::<8>()
        .map_or(seed, |bytes| u64::from_le_bytes(*bytes));
    Seed::new(own, replication)
}

fn start_capture(world: &mut World, capture: &Capture<'_>) -> Result<(), WorldError> {
    let topology = world.topology();
    let Some(link) = topology.link(capture.link) else {
        let known: Vec<&str> = topology
            .links()
            .map(|link| topology.link_name(link))
            .collect();
        return Err(WorldError::NoSuchLink {
            name: capture.link.to_owned(),
            known: known.join(", "),
        });
    };
    let at_link = |node: &NodeId| topology.address(*node, link, AddressFamily::V4).is_ok();
    let ends: Vec<_> = topology
        .nodes()
        .filter(at_link)
        .take(1)
        .map(|node| (node, link))
        .collect();
    let writer = (capture.open)().map_err(|source| WorldError::Capture {
        name: capture.name.clone(),
        source,
    })?;
    // Capturing at one end is sufficient, because all packets of the link pass it in either
    // direction.
    world.capture(writer, &ends)?;
    Ok(())
}
