//! Division of a world among threads: finds the nodes that must stay together, and assigns each
//! node to a part. Each part runs on a separate thread.

use std::collections::BTreeSet;

use anabranch_sim::{NodeId, PathFinder};
use anabranch_transport::Probe;

use crate::agent::flow_stats::end_of;
use crate::agent::observer::End;
use crate::network::Built;
use crate::point::PlannedPoint;
use crate::probe::RecordOptions;
use crate::resolved_point::PlannedMember;
use crate::world::recorder::means;

/// Load of a node at an end of a flow, as a multiple of the load of a node that only forwards
/// packets of the flow, because the transport does more work.
const END: u64 = 8;
/// Number of times in a run at which the paths of flows are examined for the loads of nodes.
const MOMENTS: u64 = 3;
/// Maximum number of flow members whose paths are examined.
const WEIGHED: usize = 2_000;

/// Number of the part of each node, in the order of the node indices.
pub type Owners = Vec<u32>;

/// The number of parts.
pub fn parts(owners: &[u32]) -> usize {
    owners.iter().max().map_or(1, |last| *last as usize + 1)
}

/// Groups of nodes that must be in the same part, as a union-find structure: each node has the
/// index of another node of its group, or its own index if it represents the group.
struct Groups(Vec<u32>);

impl Groups {
    fn of(&mut self, node: u32) -> u32 {
        let mut root = node;
        while self.0[root as usize] != root {
            root = self.0[root as usize];
        }
        self.0[node as usize] = root;
        root
    }

    fn join(&mut self, [one, other]: [NodeId; 2]) {
        let (one, other) = (self.of(one.index() as u32), self.of(other.index() as u32));
        // The node with the lowest index represents the group.
        self.0[one.max(other) as usize] = one.min(other);
    }
}

/// Divides the nodes of a world into at most `parts` parts of about equal load.
///
/// # Errors
/// The reasons why all nodes must stay together.
pub fn divide(point: &PlannedPoint, built: &Built, parts: usize) -> Result<Owners, String> {
    let topology = &built.topology;
    let count = topology.nodes().len();
    let mut groups = Groups((0..count as u32).collect());
    let mut reasons = BTreeSet::new();
    for pair in topology.inseparable() {
        let [one, other] = pair.map(|node| topology.node_name(node));
        if reasons.len() < 3 {
            reasons.insert(format!(
                "the delay between {one} and {other} is 0, or its kind states no least delay"
            ));
        }
        groups.join(pair);
    }
    let mut stores: Vec<(&str, NodeId)> = Vec::new();
    let mut of_flows = vec![None; point.spec.flows.len()];
    for member in &point.resolved.members {
        let of_flow = *of_flows[member.flow].get_or_insert_with(|| shared(point, member));
        let series = || has_mutual_series(point, member).then_some("a recorded series");
        if let Some(reason) = of_flow.or_else(series) {
            if reasons.len() < 6 {
                let name = &point.spec.flows[member.flow].name;
                reasons.insert(format!("both ends of the flow {name} share {reason}"));
            }
            groups.join(member.nodes);
        }
        if let Some(store) = point.spec.flows[member.flow].resume.as_deref() {
            match stores.iter().find(|(known, _)| *known == store) {
                Some((_, node)) => groups.join([*node, member.nodes[0]]),
                None => stores.push((store, member.nodes[0])),
            }
        }
    }
    let owners = assign(&mut groups, &loads(point, built), parts);
    match owners.iter().any(|owner| *owner != owners[0]) {
        true => Ok(owners),
        false if reasons.is_empty() => Err("one node has all the load".into()),
        false => Err(reasons.into_iter().collect::<Vec<_>>().join("; ")),
    }
}

/// Description of the state that the two ends of each member of a flow share, except for counters
/// that can be added; `None` if there is no such state. `member` may be any member of the flow.
fn shared(point: &PlannedPoint, member: &PlannedMember) -> Option<&'static str> {
    let flow = &point.spec.flows[member.flow];
    let measures = &point.resolved.measures;
    let needs = measures.needs_of(&flow.name);
    let workload = &point.resolved.workloads[member.flow];
    let answered = || {
        let rng = anabranch_sim::Seed::new(0, 0).stream("");
        let packet = point.resolved.transports[member.flow].packet();
        let context = anabranch_sim::workload::Context::new(rng, packet);
        workload.build(context).is_ok_and(|it| it.facts().answered)
    };
    let life = crate::metric::Life {
        start: 0,
        end: point.spec.world.duration.0,
        alone: member.alone,
    };
    let unknown_end = || {
        let observers = measures.observers(&flow.name, life);
        observers.iter().any(|it| it.observer.end() == End::Both)
    };
    if needs.transfers || answered() {
        Some("its transfers")
    } else if needs.delays {
        Some("the times of its messages")
    } else if needs.numbers {
        Some("the numbers of its messages")
    } else if needs.packets {
        Some("its packets")
    } else if flow.resume.is_some() {
        Some("saved parameters")
    } else if unknown_end() {
        Some("a measure")
    } else if !point.resolved.transports[member.flow].has_separate_ends() {
        Some("the state of the transport")
    } else {
        None
    }
}

/// Whether a recorded series of a member observes both ends of the member.
fn has_mutual_series(point: &PlannedPoint, member: &PlannedMember) -> bool {
    let flow = &point.spec.flows[member.flow];
    let records = point.experiment.records.iter();
    let mut records = records.filter(|record| {
        means(
            record.flow.as_deref(),
            &flow.name,
            member.index,
            flow.count.0,
        )
    });
    records.any(|record| {
        let bin = record.bin_width().0;
        let of_transport = |name: &String| Probe::from_name(name).map(|probe| end_of(&[probe]));
        let of_engine = |name: &String| {
            let entry = point.kinds.probes.iter().find(|entry| entry.name == name)?;
            Some((entry.make)(RecordOptions { bin }).end())
        };
        let ends = record.probes.iter();
        let mut ends = ends.filter_map(|name| of_transport(name).or_else(|| of_engine(name)));
        ends.any(|end| end == End::Both)
    })
}

/// For each node: its load, and its place in the order of assignment. The place of an end of a flow
/// is the index of the next node on the path, so that both are usually in the same part.
fn loads(point: &PlannedPoint, built: &Built) -> Vec<(u64, u32)> {
    let nodes = 0..built.topology.nodes().len() as u32;
    let mut loads: Vec<(u64, u32)> = nodes.map(|node| (0, node)).collect();
    let mut finder = PathFinder::new(&built.topology);
    let members = &point.resolved.members;
    let step = members.len().div_ceil(WEIGHED).max(1);
    for moment in 0..MOMENTS {
        let now = point.spec.world.duration.0 / MOMENTS * moment;
        for member in members.iter().step_by(step) {
            let Some(&[from, to]) = member.paths.first() else {
                continue;
            };
            let path = finder.nodes(now, member.nodes[0], from, to);
            let path = path.unwrap_or_default();
            for (place, node) in path.iter().enumerate() {
                let load = &mut loads[node.index()];
                let is_end = place == 0 || place + 1 == path.len();
                load.0 += if is_end { END } else { 1 };
                if is_end && moment == 0 {
                    let next = if place == 0 {
                        1
                    } else {
                        place.saturating_sub(1)
                    };
                    load.1 = path.get(next).map_or(load.1, |next| next.index() as u32);
                }
            }
        }
    }
    loads
}

/// Assigns groups to parts of about equal load, in the order of their places. Neighbours usually
/// have consecutive places, and are therefore usually in the same part.
fn assign(groups: &mut Groups, loads: &[(u64, u32)], parts: usize) -> Owners {
    let count = loads.len() as u32;
    let of: Vec<u32> = (0..count).map(|node| groups.of(node)).collect();
    // Load, place, and the node that represents the group.
    let mut all: Vec<(u64, u32, u32)> = (0..count).map(|node| (0, count, node)).collect();
    for ((load, place), group) in loads.iter().zip(&of) {
        let known = &mut all[*group as usize];
        known.0 += load;
        known.1 = known.1.min(*place);
    }
    let mut order: Vec<(u32, u32, u64)> = (0..count)
        .filter(|node| of[*node as usize] == *node)
        .map(|node| {
            let (load, place, _) = all[node as usize];
            (place, node, load)
        })
        .collect();
    order.sort_unstable();
    let total: u64 = order.iter().map(|(.., load)| load).sum();
    let mut owner_of = vec![0; loads.len()];
    let mut before = 0;
    for (_, group, load) in order {
        // The group belongs to the part whose share of the total load contains the middle of the
        // group's load.
        let middle = 2 * before + load;
        let part = u128::from(middle) * parts as u128 / (2 * u128::from(total.max(1)));
        owner_of[group as usize] = (part as u32).min(parts as u32 - 1);
        before += load;
    }
    // Parts without nodes are omitted, and the remaining parts are numbered from 0.
    let used: BTreeSet<u32> = of.iter().map(|group| owner_of[*group as usize]).collect();
    let used: Vec<u32> = used.into_iter().collect();
    let number = |owner: u32| used.partition_point(|it| *it < owner) as u32;
    of.iter()
        .map(|group| number(owner_of[*group as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stay_together_and_the_load_is_divided() {
        let mut groups = Groups((0..6).collect());
        let loads: Vec<(u64, u32)> = [4, 1, 1, 1, 4, 1].into_iter().zip(0..).collect();
        assert_eq!(assign(&mut groups, &loads, 2), [0, 0, 0, 1, 1, 1]);
        assert_eq!(assign(&mut groups, &loads, 3), [0, 1, 1, 1, 2, 2]);
        groups.0[5] = 0;
        let divided = assign(&mut groups, &loads, 2);
        assert_eq!(divided[0], divided[5]);
        assert_ne!(divided[0], divided[4]);
        (1..6).for_each(|node| groups.0[node] = 0);
        assert_eq!(assign(&mut groups, &loads, 3), [0; 6]);
    }
}
