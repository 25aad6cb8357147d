//! Outcome of a run: the statistics that metrics read.

use anabranch_scenario::names::{MemberSelection, member_name};
use anabranch_scenario::rates::RateOverTime;
use anabranch_sim::LinkStats;
use anabranch_transport::{Nanos, time};

use super::common_parameters::DeliveredCounting;
use super::snapshot::TrafficSnapshot;
use crate::agent::flow_stats::FlowStats;
use crate::agent::observer::{Observer, Observing};

/// Statistics of all flows and links of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Flows, in the order of the spec.
    pub flows: Vec<FlowOutcome>,
    /// Links, in the order of the spec.
    pub links: Vec<LinkOutcome>,
    /// Snapshots at the requested times, in order; empty for runs that cannot record them.
    pub marks: Vec<TrafficSnapshot>,
    /// Length of the run, nanoseconds.
    pub duration: Nanos,
}

/// Statistics of a flow.
#[derive(Debug)]
pub struct FlowOutcome {
    /// Name of the flow.
    pub name: String,
    /// Size of a full segment in bytes, as counted by the flow's congestion window.
    pub segment: u64,
    /// Size of the receive buffer, bytes.
    pub receive_buffer: u64,
    /// Statistics of each member.
    pub members: Vec<FlowStats>,
}

impl FlowOutcome {
    /// Reasons of the members that ended early, each with the member's name.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let count = self.members.len() as u32;
        self.members
            .iter()
            .zip(0..)
            .filter_map(move |(flow_stats, index)| {
                let reason = flow_stats.failed.as_ref()?;
                Some(format!(
                    "{}: {reason}",
                    member_name(&self.name, count, index)
                ))
            })
    }
}

/// Statistics of a link.
#[derive(Debug)]
pub struct LinkOutcome {
    /// Name of the link.
    pub name: String,
    /// Rate in the forward direction, bits per second.
    pub rate: RateOverTime,
    /// Counters of each member of the link, forward and backward.
    pub members: Vec<[LinkStats; 2]>,
    /// Observers of each member of the link, for both directions.
    pub watched: Vec<Vec<Observing>>,
}

/// Outcome of a run with access to the observers of one metric.
#[derive(Clone, Copy, Debug)]
pub struct RunData<'a> {
    /// Statistics of all flows and links.
    pub outcome: &'a RunOutcome,
    measure: usize,
}

impl<'a> RunData<'a> {
    /// Creates the access for the metric with the index `measure` among the metrics of the run.
    pub fn new(outcome: &'a RunOutcome, measure: usize) -> Self {
        Self { outcome, measure }
    }

    /// The flow named `name`, or the flow to which the member `name` belongs.
    pub fn flow(&self, name: &str) -> Option<&'a FlowOutcome> {
        let group = MemberSelection::parse(name).group;
        self.outcome.flows.iter().find(|flow| flow.name == group)
    }

    /// Size of a full segment of a flow, bytes.
    pub fn segment(&self, name: &str) -> f64 {
        self.flow(name).map_or(1.0, |flow| flow.segment as f64)
    }

    /// Statistics of the members that `name` selects.
    pub fn members(&self, name: &str) -> &'a [FlowStats] {
        self.flow(name)
            .map_or(&[], |flow| within(&flow.members, name))
    }

    /// Observers of the selected members of `flow` for one window of the metric.
    pub fn observers<T: Observer>(&self, flow: &str, window: usize) -> Vec<&'a T> {
        let measure = self.measure;
        let members = self.members(flow).iter();
        let mine = move |it: &&Observing| it.measure == measure && it.window == window;
        members
            .filter_map(|flow_stats| flow_stats.observers.iter().find(mine)?.get())
            .collect()
    }

    /// Sum of a counter over the selected members of a flow; NaN if there are none.
    pub fn sum(&self, flow: &str, of: impl Fn(&FlowStats) -> u64) -> f64 {
        let members = self.members(flow);
        if members.is_empty() {
            return f64::NAN;
        }
        members.iter().map(of).sum::<u64>() as f64
    }

    /// Counters of the selected members of a link.
    pub fn link_members(&self, name: &str) -> &'a [[LinkStats; 2]] {
        let group = MemberSelection::parse(name).group;
        let mut links = self.outcome.links.iter();
        let link = links.find(|link| link.name == group);
        link.map_or(&[], |link| within(&link.members, name))
    }

    /// Observers of the selected members of a link for one window of the metric.
    pub fn lane_observers<T: Observer>(&self, link: &str, window: usize) -> Vec<&'a T> {
        let measure = self.measure;
        let group = MemberSelection::parse(link).group;
        let mut links = self.outcome.links.iter();
        let watched = links.find(|link| link.name == group);
        let watched = watched.map_or(&[][..], |it| within(&it.watched, link));
        let mine = move |it: &&Observing| it.measure == measure && it.window == window;
        let each = watched.iter().flatten().filter(mine);
        each.filter_map(Observing::get).collect()
    }

    /// Length of the run, seconds.
    pub fn seconds(&self) -> f64 {
        time::seconds(self.outcome.duration)
    }
}

/// Members of a group that `name` selects.
fn within<'a, T>(members: &'a [T], name: &str) -> &'a [T] {
    let range = MemberSelection::parse(name).range(members.len() as u32);
    let range = range.start as usize..range.end as usize;
    members.get(range).unwrap_or_default()
}

/// Bytes of a member that count as delivered at the end of the run.
pub fn counted(flow_stats: &FlowStats, counting: DeliveredCounting) -> u64 {
    match counting {
        DeliveredCounting::UniquePayload => flow_stats.delivered,
        DeliveredCounting::UniqueSegments => flow_stats.delivered_segments,
    }
}

/// Mean of `values`; NaN if there are none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}
