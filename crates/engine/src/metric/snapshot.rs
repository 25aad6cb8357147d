//! Snapshots of the carried traffic at given times, for metrics of links over a part of the run.

use std::ops::Range;

use anabranch_sim::LinkStats;
use anabranch_transport::Nanos;

use super::common_parameters::Counting;
use crate::agent::flow_stats::FlowStats;

/// Traffic carried from the start of the run until the time of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficSnapshot {
    /// Time of the snapshot, nanoseconds.
    pub at: Nanos,
    /// Bytes on the wire that arrived over each member of each link in the forward direction, in
    /// the order of the spec.
    pub wire: Vec<Vec<u64>>,
    /// Unique payload that all flows delivered, bytes.
    pub payload: u64,
    /// Like `payload`, with the headers of segments, bytes.
    pub segments: u64,
}

impl TrafficSnapshot {
    /// Takes a snapshot of the counters of links and flows at `at`.
    pub fn read<'a>(
        at: Nanos,
        links: impl Iterator<Item = Vec<[LinkStats; 2]>>,
        tallies: impl Iterator<Item = &'a FlowStats>,
    ) -> Self {
        let wire = |members: Vec<[LinkStats; 2]>| -> Vec<u64> {
            let forward = members.iter().map(|[forward, _]| forward.delivered.bytes);
            forward.collect()
        };
        let (payload, segments) = tallies.fold((0, 0), |(payload, segments), flow_stats| {
            (
                payload + flow_stats.delivered,
                segments + flow_stats.delivered_segments,
            )
        });
        Self {
            at,
            wire: links.map(wire).collect(),
            payload,
            segments,
        }
    }

    /// Adds the traffic of another part of a divided world.
    pub fn add(&mut self, part: &Self) {
        self.payload += part.payload;
        self.segments += part.segments;
        for (link, more) in self.wire.iter_mut().zip(&part.wire) {
            for (bytes, more) in link.iter_mut().zip(more) {
                *bytes += more;
            }
        }
    }

    /// Bytes of the type `counting`. `link`, the index of a link in the spec, and the numbers of
    /// its `members` are used only for bytes on the wire.
    pub fn bytes(&self, link: usize, members: &Range<u32>, counting: Counting) -> u64 {
        match counting {
            Counting::UniquePayload => self.payload,
            Counting::UniqueSegments => self.segments,
            Counting::Wire => {
                let all = self.wire.get(link).map_or(&[][..], Vec::as_slice);
                let range = members.start as usize..members.end as usize;
                all.get(range).unwrap_or_default().iter().sum()
            }
        }
    }
}
