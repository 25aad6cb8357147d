//! Members of a spec's flows: their numbers, names, ports and endpoints.

use std::sync::Arc;

use anabranch_scenario::names::{MemberSelection, member_name};
use anabranch_scenario::{Flow, Spec, StartTime};
use anabranch_sim::loss::{Flows, Traffic};
use anabranch_sim::{Inspect, Seed, start_time};
use anabranch_transport::Nanos;

use crate::agent::inspect::{Inspector, PacketReader, Watched};
use crate::transport::SharedTransport;

/// First source port and first sink port. Each member of each flow uses the next pair. No protocol
/// over SCTP or TCP is assigned to the first ports, so that a dissector shows the payload as plain
/// data.
pub const FIRST_PORTS: [u16; 2] = [42_000, 52_000];

/// A member of a flow with its number in the world.
#[derive(Clone, Copy, Debug)]
pub struct NumberedMember<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// Index of the flow in the spec, from 0.
    pub place: usize,
    /// Index of the member in the flow, from 0.
    pub index: u32,
    /// Number of the member among all members of all flows, from 0.
    pub number: u32,
}

/// All members of all flows, in order.
pub fn members(spec: &Spec) -> impl Iterator<Item = NumberedMember<'_>> {
    let flows = spec.flows.iter().enumerate();
    let all =
        flows.flat_map(|(place, flow)| (0..flow.count.0).map(move |index| (place, flow, index)));
    all.zip(0..)
        .map(|((place, flow, index), number)| NumberedMember {
            flow,
            place,
            index,
            number,
        })
}

/// Source port and sink port of the member with this number. The checks of the spec keep the number
/// below [`MAX_FLOWS`](anabranch_scenario::validate::MAX_FLOWS).
pub fn ports(number: u32) -> [u16; 2] {
    FIRST_PORTS.map(|first| first + number as u16)
}

/// Start time of a member of a flow.
pub fn start(flow: &Flow, name: &str, seed: Seed) -> Nanos {
    match flow.start {
        StartTime::At(at) => at.0,
        StartTime::Uniform {
            uniform: [from, to],
        } => start_time(seed, name, from.0, to.0),
    }
}

impl NumberedMember<'_> {
    /// Name of the flow, followed by the index of the member if the flow has several members.
    pub fn name(&self) -> String {
        member_name(&self.flow.name, self.flow.count.0, self.index)
    }
}

/// Packet reader for the packets of a transport.
pub fn reader(transport: &SharedTransport) -> PacketReader {
    let transport = Arc::clone(transport);
    Box::new(move |packet| transport.inspect(packet))
}

/// Flows of a spec with their transports, as loss models need them.
#[derive(Clone, Debug)]
pub struct FlowIndex(Arc<FlowIndexInner>);

/// Collects the flows of a spec with their transports.
pub fn known(spec: &Spec, transports: &[SharedTransport]) -> FlowIndex {
    let names = members(spec).map(|member| {
        let flow = (member.flow.name.clone(), member.flow.count.0);
        (flow, member.index, member.number)
    });
    let transports = members(spec).filter_map(|member| transports.get(member.place).cloned());
    FlowIndex(Arc::new(FlowIndexInner {
        names: names.collect(),
        transports: transports.collect(),
    }))
}

impl FlowIndex {
    /// The flows as the simulator's loss models need them.
    pub fn traffic(&self) -> Traffic {
        Traffic::new(self.clone())
    }
}

/// Names, numbers and transports of the members.
#[derive(Debug)]
struct FlowIndexInner {
    /// Name and count of the flow, index of the member in the flow, and number of the member in the
    /// world.
    names: Vec<((String, u32), u32, u32)>,
    /// Transports of the members, by member number.
    transports: Vec<SharedTransport>,
}

impl Flows for FlowIndex {
    fn numbers(&self, name: &str) -> Vec<u32> {
        let name = MemberSelection::parse(name);
        let named = self.0.names.iter().filter(|((flow, count), member, _)| {
            flow == name.group && name.contains(*member, *count)
        });
        named.map(|(.., number)| *number).collect()
    }

    fn inspector(&self) -> Box<dyn Inspect> {
        let all = self.0.transports.iter().zip(0..);
        let watched = all.map(|(transport, flow)| Watched {
            protocol: transport.protocol(),
            ports: ports(flow),
            step: transport.sequence_step(),
            flow,
            read: reader(transport),
        });
        Box::new(Inspector::new(watched))
    }
}
