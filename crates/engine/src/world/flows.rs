//! Flows of a spec, attached to a world as pairs of agents.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use anabranch_scenario::Flow;
use anabranch_sim::workload::Context;
use anabranch_sim::{Attachment, Seed, World};
use anabranch_transport::Nanos;

use super::WorldError;
use super::recorder::RunRecorder;
use crate::agent::duplicate_check::DuplicateCheck;
use crate::agent::flow_stats::{FlowStats, SharedFlowStats};
use crate::agent::packet_counter::PacketCounter;
use crate::agent::resume::{Resume, Stores};
use crate::agent::transfers::TransferTracker;
use crate::flows::{FIRST_PORTS, ports, reader, start};
use crate::metric::Life;
use crate::point::PlannedPoint;
use crate::resolved_point::PlannedMember;
use crate::transport;

/// Inputs for attaching flows and proxies to a world.
pub struct Attaching<'a> {
    /// Point of the run.
    pub point: &'a PlannedPoint,
    /// Seed of the run.
    pub seed: Seed,
    /// Whether checksums are computed and verified.
    pub checksum: bool,
    /// In a divided world: the part of each node, and the part that this thread runs.
    pub part: Option<(&'a [u32], u32)>,
}

/// Attaches the members of all flows. Returns their statistics in the order of their numbers.
pub fn attach(
    world: &mut World,
    context: &Attaching<'_>,
    recording: &mut RunRecorder,
) -> Result<Vec<SharedFlowStats>, WorldError> {
    let members = context.point.resolved.members.iter().zip(0..);
    let mut stores = Stores::default();
    members
        .map(|(member, number)| {
            let resume = stores.of(&context.point.spec.flows[member.flow]);
            attach_member(world, context, recording, (member, number), resume)
        })
        .collect()
}

fn attach_member(
    world: &mut World,
    context: &Attaching<'_>,
    recording: &mut RunRecorder,
    (member, number): (&PlannedMember, u32),
    resume: Option<Resume>,
) -> Result<SharedFlowStats, WorldError> {
    let PlannedPoint {
        spec,
        kinds,
        resolved,
        ..
    } = context.point;
    let flow = &spec.flows[member.flow];
    let transport = &resolved.transports[member.flow];
    let start = start(flow, &member.name, context.seed);
    let life = Life {
        start,
        end: spec.world.duration.0,
        alone: member.alone,
    };
    let rng = context.seed.stream(&format!("workload {}", member.name));
    let packet = transport.packet();
    let workload = resolved.workloads[member.flow].build(Context::new(rng, packet))?;
    let needs = resolved.measures.needs_of(&flow.name);
    let mut tally = FlowStats::new(
        resolved.measures.observers(&flow.name, life),
        recording.of_flow(flow, member.index),
        recording.buffer(),
    );
    tally.series = recording.series_of(&kinds.probes, flow, member.index);
    tally.once = needs.numbers.then(DuplicateCheck::default);
    // A workload with answers requires that transfers are tracked, even if no metric requires it.
    let told_apart = needs.transfers || workload.facts().answered;
    tally.transfers = told_apart.then(TransferTracker::default);
    if let Some((owners, part)) = context.part {
        tally.keep_ends(member.nodes.map(|node| owners[node.index()] == part));
    }
    let tally = Rc::new(RefCell::new(tally));
    let ports = ports(number);
    let [source, sink] = transport.ends(transport::FlowMember {
        name: &member.name,
        paths: &member.paths,
        outages: &member.outages,
        bound: !flow.paths.is_empty() || member.paths.len() > 1,
        ports,
        seed: context.seed,
        checksum: context.checksum,
        workload,
        delays: needs.delays,
        flow_stats: Rc::clone(&tally),
        resume,
    });
    let at = |end: usize| Attachment::new(member.nodes[end], transport.protocol(), ports[end]);
    let mut sender = at(0).starting(start);
    sender.stop = stop(flow, start);
    world.attach_boxed(at(1), sink)?;
    world.attach_boxed(sender, source)?;
    Ok(tally)
}

/// Stop time of a flow member that starts at `start`; `None`: it does not stop.
fn stop(flow: &Flow, start: Nanos) -> Option<Nanos> {
    let end = flow
        .duration
        .map(|duration| start.saturating_add(duration.0));
    flow.stop.map(|stop| stop.0.max(start)).or(end)
}

/// Packet counter for the members of all flows.
pub fn packet_counter(point: &PlannedPoint, tallies: &[SharedFlowStats]) -> PacketCounter {
    let resolved = &point.resolved;
    let members = resolved.members.iter().zip(tallies);
    let members = members.map(|(member, tally)| {
        let read = reader(&resolved.transports[member.flow]);
        (Rc::clone(tally), read)
    });
    PacketCounter::new(FIRST_PORTS, members)
}

/// Closes the statistics of a member at the end of the run, and takes them out of the shared
/// reference.
pub fn close(tally: &SharedFlowStats, end: Nanos) -> FlowStats {
    let mut tally = mem::take(&mut *tally.borrow_mut());
    tally.close(end);
    tally
}
