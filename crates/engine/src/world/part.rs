//! Results of a world, and of a part of a divided one.

use anabranch_sim::{LinkId, LinkStats, PacketCounts, WorkCounts, World};

use super::WorldError;
use super::constellations::ConstellationRecorder;
use super::link_observers::Watched;
use super::meeting::Attendance;
use crate::agent::flow_stats::{FlowStats, FlowStatsPart};
use crate::metric::snapshot::TrafficSnapshot;

/// A part of a divided world.
pub struct Part<'a> {
    pub attendance: Attendance<'a>,
    /// The part of each node.
    pub owners: &'a [u32],
}

impl<'a> Part<'a> {
    /// The parts of all nodes, and the number of this part.
    pub fn numbers(&self) -> (&'a [u32], u32) {
        (self.owners, self.attendance.part as u32)
    }

    /// Restricts a world and its recorders to the part.
    pub fn divide(
        &self,
        world: &mut World,
        skies: &mut [ConstellationRecorder<'_>],
    ) -> Result<(), WorldError> {
        world.divide(self.attendance.part as u32, self.owners)?;
        if self.attendance.part > 0 {
            skies.iter_mut().for_each(ConstellationRecorder::keep_links);
        }
        Ok(())
    }
}

/// Counters of the members of a link, forward and backward, if the part has them.
type OwnStats = Vec<[Option<LinkStats>; 2]>;

/// Counters and samples of a world at the end of a run.
pub struct Simulated {
    /// The members of flows, in the order of their numbers.
    pub flows: Vec<FlowStats>,
    /// The links of the spec, each with its members, and their counters.
    pub links: Vec<Vec<LinkId>>,
    pub stats: Vec<OwnStats>,
    pub watched: Watched,
    pub marks: Vec<TrafficSnapshot>,
    pub progress: WorkCounts,
    pub ledger: PacketCounts,
}

/// The same of another part, which can be moved to the thread of the first.
pub struct SimulatedPart {
    flows: Vec<FlowStatsPart>,
    stats: Vec<OwnStats>,
    watched: Watched,
    marks: Vec<TrafficSnapshot>,
    progress: WorkCounts,
    ledger: PacketCounts,
}

impl Simulated {
    pub fn into_part(self) -> SimulatedPart {
        SimulatedPart {
            flows: self.flows.into_iter().map(FlowStats::into_part).collect(),
            stats: self.stats,
            watched: self.watched,
            marks: self.marks,
            progress: self.progress,
            ledger: self.ledger,
        }
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, part: SimulatedPart) {
        for (flow, more) in self.flows.iter_mut().zip(part.flows) {
            flow.add(more);
        }
        let all = self.stats.iter_mut().flatten().flatten();
        for (stats, more) in all.zip(part.stats.into_iter().flatten().flatten()) {
            *stats = stats.take().or(more);
        }
        self.watched.extend(part.watched);
        for (mark, more) in self.marks.iter_mut().zip(&part.marks) {
            mark.add(more);
        }
        self.progress.add(part.progress);
        self.ledger.add(&part.ledger);
    }
}
