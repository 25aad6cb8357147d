//! The members of a spec's flows: their numbers, names, ports and endpoints.

use std::sync::Arc;

use anabranch_scenario::names::{Name, member_name};
use anabranch_scenario::{Flow, Spec, Start};
use anabranch_sim::loss::{Flows, Traffic};
use anabranch_sim::{Inspect, Seed, start_time};
use anabranch_transport::Nanos;

use crate::agent::inspect::{Inspector, Reader, Watched};
use crate::transport::SharedTransport;

/// The first source port and the first sink port. Each member of each flow uses the next pair. The
/// first ports are not assigned to a protocol above SCTP or TCP, so that a dissector shows the
/// payload as plain data.
pub const FIRST_PORTS: [u16; 2] = [42_000, 52_000];

/// One member of a flow, with its number in the world.
#[derive(Clone, Copy, Debug)]
pub struct NumberedMember<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// Index of the flow in the spec.
    pub place: usize,
    /// Index of the member in the flow.
    pub index: u32,
    /// Number of the member among all members of all flows.
    pub number: u32,
}

/// Every member of every flow, in order.
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

/// The source port and the sink port of a member number. The checks of the spec keep the number
/// below [`MAX_FLOWS`](anabranch_scenario::validate::MAX_FLOWS).
pub fn ports(number: u32) -> [u16; 2] {
    FIRST_PORTS.map(|first| first + number as u16)
}

/// Start time of a member of a flow.
pub fn start(flow: &Flow, name: &str, seed: Seed) -> Nanos {
    match flow.start {
        Start::At(at) => at.0,
        Start::Uniform {
            uniform: [from, to],
        } => start_time(seed, name, from.0, to.0),
    }
}

impl NumberedMember<'_> {
    /// The flow's name, with the member's index if there are several.
    pub fn name(&self) -> String {
        member_name(&self.flow.name, self.flow.count.0, self.index)
    }
}

/// The packet reader of a transport.
pub fn reader(transport: &SharedTransport) -> Reader {
    let transport = Arc::clone(transport);
    Box::new(move |packet| transport.inspect(packet))
}

/// The flows of a spec with their transports, in the form that loss models need.
#[derive(Clone, Debug)]
pub struct FlowIndex(Arc<FlowIndexInner>);

/// The flows of a spec with their transports.
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
    /// The traffic of the member in the simulator's form.
    pub fn traffic(&self) -> Traffic {
        Traffic::new(self.clone())
    }
}

/// Members by their names.
#[derive(Debug)]
struct FlowIndexInner {
    /// The flow's name and count, the member's index in it, and its number in the world.
    names: Vec<((String, u32), u32, u32)>,
    /// The members' transports, by their numbers.
    transports: Vec<SharedTransport>,
}

impl Flows for FlowIndex {
    fn numbers(&self, name: &str) -> Vec<u32> {
        let name = Name::parse(name);
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
