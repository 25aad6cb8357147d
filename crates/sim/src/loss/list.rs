//! Deterministic losses: a list of the packets to lose.

use std::fmt;

use anabranch_settings::{Kind, KindEntry, SettingValue, kind, table};
use anabranch_transport::Nanos;

use super::{Loss, Traffic};
use crate::packet::{Inspect, Packet};
use crate::rng::Rng;

kind! {
    /// The parameter of [`Segments`].
    struct SegmentsConfig {
        /// The segments: `[{ flow = "web", number = 8 }]`.
        segments: Vec<NamedSegment>, Kind::List(&NamedSegment::KIND);
    }
    /// Only the listed data segments are lost.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> = "list", |config, traffic: Traffic| {
        let losses = config.segments.iter().flat_map(|segment| segment.losses(&traffic));
        let losses: Vec<SegmentLoss> = losses.collect();
        Ok(Box::new(Segments::new(losses, traffic.inspector())))
    };
}

kind! {
    /// The parameter of [`Ordinals`].
    struct OrdinalsConfig {
        /// Numbers of the packets in the order of their arrival, counted from 0.
        packets: Vec<u64>, Kind::List(&Kind::count(0, u64::MAX));
    }
    /// Only the packets with the listed numbers are lost.
    pub(super) static ORDINALS: KindEntry<Box<dyn Loss>, Traffic> =
        "ordinals", |config, _| Ok(Box::new(Ordinals::new(config.packets)));
}

table! {
    /// A data segment to lose, as written in a spec.
    struct NamedSegment {
        /// Name of a flow, or of a group, which selects all its members.
        flow: String, Kind::Name("flow");
        /// Number of the segment in its flow, counted from 1.
        number: u64, FROM_ONE;
        /// Number of the transmission of the segment, counted from 1.
        transmission: u32 = 1, FROM_ONE;
    }
}

const FROM_ONE: Kind = Kind::count(1, u32::MAX as u64);

impl NamedSegment {
    /// Lists one segment to lose for each flow that the name selects: a flow, or all members of a
    /// group.
    fn losses(&self, traffic: &Traffic) -> Vec<SegmentLoss> {
        let numbers = traffic.numbers(&self.flow).into_iter();
        let loss = |flow| SegmentLoss {
            flow: Some(flow),
            number: self.number.saturating_sub(1),
            transmission: self.transmission.saturating_sub(1),
        };
        numbers.map(loss).collect()
    }
}

/// Loss model that drops packets by their order of arrival, counted from 0.
#[derive(Clone, Debug)]
pub struct Ordinals {
    /// The remaining indices in descending order, so that the next one is the last entry.
    left: Vec<u64>,
    seen: u64,
}

impl Ordinals {
    /// Loses the packets with these indices, counted from 0 in their order of arrival at this
    /// position of the link. The order of `numbers` and repeated numbers do not matter.
    pub fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut left: Vec<u64> = numbers.into_iter().collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.dedup();
        Self { left, seen: 0 }
    }
}

impl Loss for Ordinals {
    fn takes(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> bool {
        let number = self.seen;
        self.seen += 1;
        self.left.pop_if(|next| *next == number).is_some()
    }
}

/// One data segment that is lost once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLoss {
    /// Number of the flow, as assigned by the [`Inspect`]; `None`: the first flow that sends this
    /// segment.
    pub flow: Option<u32>,
    /// Number of the segment in its flow, counted from 0: the "8th segment" of a paper that counts
    /// from 1 is 7.
    pub number: u64,
    /// The transmission to lose: 0 the first, 1 the first retransmission, and so on.
    pub transmission: u32,
}

/// Loss model that drops listed data segments, which an [`Inspect`] identifies.
pub struct Segments {
    /// The remaining losses, with the number of transmissions that still pass.
    left: Vec<SegmentLoss>,
    inspect: Box<dyn Inspect>,
}

impl Segments {
    /// Loses these segments. Only transmissions that reach this position of the link are counted;
    /// those lost earlier on the path are not.
    pub fn new(losses: impl IntoIterator<Item = SegmentLoss>, inspect: Box<dyn Inspect>) -> Self {
        Self {
            left: losses.into_iter().collect(),
            inspect,
        }
    }
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Loss for Segments {
    fn takes(&mut self, _at: Nanos, packet: &Packet, _rng: &mut Rng) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let Some(segment) = self.inspect.inspect(packet) else {
            return false;
        };
        let mut lost = false;
        self.left.retain_mut(|entry| {
            if entry.number != segment.number || entry.flow.is_some_and(|flow| flow != segment.flow)
            {
                return true;
            }
            if entry.transmission == 0 {
                lost = true;
                return false;
            }
            entry.transmission -= 1;
            // Limits the entry to this flow, because otherwise a segment of another flow would
            // count as a retransmission.
            entry.flow = Some(segment.flow);
            true
        });
        lost
    }
}
