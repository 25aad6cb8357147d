//! The counters of a run, as metrics read them.

use anabranch_scenario::names::{Name, member_name};
use anabranch_scenario::rates::RateOverTime;
use anabranch_sim::LinkStats;
use anabranch_transport::{Nanos, time};

use super::common_parameters::Counting;
use super::snapshot::Snapshot;
use crate::agent::flow_stats::FlowStats;
use crate::agent::observer::{Observer, Observing};

/// The counters of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The flows, in the order of the spec.
    pub flows: Vec<FlowOutcome>,
    /// The links, in the order of the spec.
    pub links: Vec<LinkOutcome>,
    /// Snapshots at the requested moments, in order; empty if snapshots were not possible.
    pub marks: Vec<Snapshot>,
    /// Length of the run.
    pub duration: Nanos,
}

/// The counters of a flow.
#[derive(Debug)]
pub struct FlowOutcome {
    /// Name.
    pub name: String,
    /// Bytes of a full segment in the units of its window.
    pub segment: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Members.
    pub members: Vec<FlowStats>,
}

impl FlowOutcome {
    /// The members that ended early, each with its reason.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let count = self.members.len() as u32;
        self.members
            .iter()
            .zip(0..)
            .filter_map(move |(tally, index)| {
                let reason = tally.failed.as_ref()?;
                Some(format!(
                    "{}: {reason}",
                    member_name(&self.name, count, index)
                ))
            })
    }
}

/// The counters of a link.
#[derive(Debug)]
pub struct LinkOutcome {
    /// Name.
    pub name: String,
    /// Rate in the forward direction, bits per second.
    pub rate: RateOverTime,
    /// Members of the link, each with forward and backward.
    pub members: Vec<[LinkStats; 2]>,
    /// The observers of each member, in any direction.
    pub watched: Vec<Vec<Observing>>,
}

/// The counters of a run, in the view of one measure.
#[derive(Clone, Copy, Debug)]
pub struct RunData<'a> {
    /// All counters.
    pub outcome: &'a RunOutcome,
    measure: usize,
}

impl<'a> RunData<'a> {
    /// The view of the measure with this index among those of the run.
    pub fn new(outcome: &'a RunOutcome, measure: usize) -> Self {
        Self { outcome, measure }
    }

    /// The flow of that name, or the flow with the named member.
    pub fn flow(&self, name: &str) -> Option<&'a FlowOutcome> {
        let group = Name::parse(name).group;
        self.outcome.flows.iter().find(|flow| flow.name == group)
    }

    /// Bytes of a full segment of a flow.
    pub fn segment(&self, name: &str) -> f64 {
        self.flow(name).map_or(1.0, |flow| flow.segment as f64)
    }

    /// The members that a name covers.
    pub fn members(&self, name: &str) -> &'a [FlowStats] {
        self.flow(name)
            .map_or(&[], |flow| within(&flow.members, name))
    }

    /// The observers of the members of a flow for one of the measure's windows.
    pub fn observers<T: Observer>(&self, flow: &str, window: usize) -> Vec<&'a T> {
        let measure = self.measure;
        let members = self.members(flow).iter();
        let mine = move |it: &&Observing| it.measure == measure && it.window == window;
        members
            .filter_map(|tally| tally.observers.iter().find(mine)?.get())
            .collect()
    }

    /// The sum over the members of a flow; NaN without members.
    pub fn sum(&self, flow: &str, of: impl Fn(&FlowStats) -> u64) -> f64 {
        let members = self.members(flow);
        if members.is_empty() {
            return f64::NAN;
        }
        members.iter().map(of).sum::<u64>() as f64
    }

    /// The members of a link that a name covers.
    pub fn link_members(&self, name: &str) -> &'a [[LinkStats; 2]] {
        let group = Name::parse(name).group;
        let mut links = self.outcome.links.iter();
        let link = links.find(|link| link.name == group);
        link.map_or(&[], |link| within(&link.members, name))
    }

    /// The observers of the members of a link for one of the measure's windows.
    pub fn lane_observers<T: Observer>(&self, link: &str, window: usize) -> Vec<&'a T> {
        let measure = self.measure;
        let group = Name::parse(link).group;
        let mut links = self.outcome.links.iter();
        let watched = links.find(|link| link.name == group);
        let watched = watched.map_or(&[][..], |it| within(&it.watched, link));
        let mine = move |it: &&Observing| it.measure == measure && it.window == window;
        let each = watched.iter().flatten().filter(mine);
        each.filter_map(Observing::get).collect()
    }

    /// The length of the run in seconds.
    pub fn seconds(&self) -> f64 {
        time::seconds(self.outcome.duration)
    }
}

/// The members of a group that a name covers.
fn within<'a, T>(members: &'a [T], name: &str) -> &'a [T] {
    let range = Name::parse(name).range(members.len() as u32);
    let range = range.start as usize..range.end as usize;
    members.get(range).unwrap_or_default()
}

/// Bytes that a member had delivered by the end of the run. Bytes on the wire are counted at links
/// only.
pub fn counted(tally: &FlowStats, counting: Counting) -> u64 {
    match counting {
        Counting::UniquePayload => tally.delivered,
        Counting::UniqueSegments | Counting::Wire => tally.delivered_segments,
    }
}

/// The mean of some numbers; NaN if there are none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}
