//! Results of a world, or of one part of a world that is divided among threads.

use anabranch_sim::{LinkId, LinkStats, PacketCounts, WorkCounts, World};

use super::WorldError;
use super::constellations::ConstellationRecorder;
use super::link_observers::Watched;
use super::meeting::Attendance;
use crate::agent::flow_stats::{FlowStats, FlowStatsPart};
use crate::metric::snapshot::TrafficSnapshot;

/// The part of a divided world that one thread runs.
pub struct Part<'a> {
    pub attendance: Attendance<'a>,
    /// Number of the part to which each node belongs.
    pub owners: &'a [u32],
}

impl<'a> Part<'a> {
    /// Part number of each node, and the number of this part.
    pub fn numbers(&self) -> (&'a [u32], u32) {
        (self.owners, self.attendance.part as u32)
    }

    /// Restricts a world to the nodes of this part. Only part 0 records positions and paths of
    /// constellations.
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

/// Counters of the members of a link, forward and backward; `None` if another part has the counter.
type OwnStats = Vec<[Option<LinkStats>; 2]>;

/// Counters and samples of a world at the end of a run.
pub struct Simulated {
    /// Statistics of the members of all flows, in the order of their numbers.
    pub flows: Vec<FlowStats>,
    /// For each link of the spec, the links of the simulator that are its members; `stats` has
    /// their counters.
    pub links: Vec<Vec<LinkId>>,
    pub stats: Vec<OwnStats>,
    pub watched: Watched,
    pub marks: Vec<TrafficSnapshot>,
    pub progress: WorkCounts,
    pub ledger: PacketCounts,
}

/// Results of another part, in a form that can be moved to the thread of part 0.
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

    /// Adds the results of another part.
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
