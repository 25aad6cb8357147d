//! Records of runs on real sockets, in the same format as those of the simulator.

use anabranch_scenario::records::RunRecord;
use anabranch_sim::LinkStats;
use anabranch_transport::{Nanos, ProbeSet, Sample};

use crate::agent::flow_stats::FlowStats;
use crate::metric::{FlowOutcome, Life, LinkOutcome, RunOutcome};
use crate::network;
use crate::plan::PlannedRun;
use crate::point::PlannedPoint;
use crate::resolved_point::PlannedMember;
use crate::runner::Runner;
use crate::sink::Sink;
use crate::transport::Transport;
use crate::world::recorder::RunRecorder;
use crate::world::{WorldError, outcomes};

/// Observations of one member of a flow in a run on real sockets. Times are nanoseconds from the
/// start of the run.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Start time of the member.
    pub start: Nanos,
    /// Samples of the sender and the receiver, in the order of time.
    pub samples: Vec<Sample>,
    /// Messages that reached the receiving application: the time and the size in bytes of each.
    pub deliveries: Vec<(Nanos, u64)>,
    /// Reason why the member ended early, if it did.
    pub failed: Option<String>,
}

/// Probes that the sender and the receiver of each flow must enable in a replication of a point.
pub fn probes(point: &PlannedPoint, replication: u32) -> ProbeSet {
    let mut recording = RunRecorder::new(&point.experiment, replication);
    let members = point.resolved.members.iter();
    members.fold(ProbeSet::NONE, |all, member| {
        let flow_stats = flow_stats(point, member, 0, &mut recording);
        all.union(flow_stats.sender_probes())
            .union(flow_stats.receiver_probes())
    })
}

/// Statistics of a member that starts at `start`.
fn flow_stats(
    point: &PlannedPoint,
    member: &PlannedMember,
    start: Nanos,
    recording: &mut RunRecorder,
) -> FlowStats {
    let flow = &point.spec.flows[member.flow];
    let life = Life {
        start,
        end: point.spec.world.duration.0,
        alone: None,
    };
    let observers = point.resolved.measures.observers(&flow.name, life);
    let recorded = recording.of_flow(flow, member.index);
    FlowStats::new(observers, recorded, recording.buffer())
}

/// Builds the record of a run from the observations of all members of its flows, in the order of
/// the members. Samples that are kept are written to `sink`, followed by the record.
///
/// # Errors
/// The errors of the sink.
pub fn record(
    unit: &PlannedRun<'_>,
    observed: &[Observed],
    sink: &mut dyn Sink,
) -> Result<RunRecord, WorldError> {
    let point = &*unit.resolve()?;
    let (spec, experiment) = (&*point.spec, &*point.experiment);
    let duration = spec.world.duration.0;
    let resolved = &point.resolved;
    let mut recording = RunRecorder::new(experiment, unit.replication);
    let members = resolved.members.iter().zip(observed);
    let tallies = members.map(|(member, seen)| {
        let mut flow_stats = flow_stats(point, member, seen.start, &mut recording);
        fill(
            &mut flow_stats,
            seen,
            duration,
            &*resolved.transports[member.flow],
        );
        flow_stats.close(duration);
        flow_stats
    });
    let outcomes = outcomes(point, tallies);
    sink.begin(unit.id(point), &recording.take_keys())
        .map_err(WorldError::Sink)?;
    recording.drain(sink).map_err(WorldError::Sink)?;
    // The counters of links stay 0, because it is unknown what happens to packets inside a real
    // network.
    let links = spec.links.iter().map(|link| LinkOutcome {
        name: link.name.clone(),
        rate: network::forward_rate(link),
        members: vec![[LinkStats::default(); 2]],
        watched: Vec::new(),
    });
    let failures = outcomes.iter().flat_map(FlowOutcome::failures).collect();
    let outcome = RunOutcome {
        links: links.collect(),
        flows: outcomes,
        marks: Vec::new(),
        duration,
    };
    let record = RunRecord {
        experiment: unit.experiment.id.clone(),
        point: point.point.clone(),
        replication: unit.replication,
        metrics: resolved.measures.values(&outcome),
        events: 0,
        packet_hops: 0,
        simulated: spec.world.duration.seconds(),
        failures,
    };
    sink.end(&record).map_err(WorldError::Sink)?;
    Ok(record)
}

/// Replays the observations of a member in the order of time into its statistics, up to the end of
/// the run.
fn fill(flow_stats: &mut FlowStats, seen: &Observed, duration: Nanos, transport: &dyn Transport) {
    let fragment = (transport.packet() as u64).max(1);
    let header = transport.segment().saturating_sub(fragment);
    let mut samples = seen.samples.iter().peekable();
    for &(at, bytes) in seen.deliveries.iter().take_while(|(at, _)| *at <= duration) {
        while let Some(sample) = samples.next_if(|sample| sample.at <= at) {
            flow_stats.sample(*sample);
        }
        flow_stats.deliver(at, bytes, header * bytes.div_ceil(fragment));
        flow_stats.message(at, None);
    }
    samples
        .take_while(|sample| sample.at <= duration)
        .for_each(|sample| flow_stats.sample(*sample));
    flow_stats.failed.clone_from(&seen.failed);
}

/// Runner that obtains its observations from real sockets.
pub struct Live<F>(
    /// Function that runs a unit with its seed, and returns the observations of the members of its
    /// flows.
    pub F,
);

/// The value of [`Runner::kind`] for real runs.
pub const LIVE: &str = "live";

impl<F> Runner for Live<F>
where
    F: Fn(&PlannedRun<'_>, u64) -> Result<Vec<Observed>, String> + Sync,
{
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        let observed = (self.0)(unit, seed).map_err(WorldError::Live)?;
        record(unit, &observed, sink)
    }

    fn kind(&self, _: &PlannedRun<'_>) -> &'static str {
        LIVE
    }
}
