//! Counters of a link direction.

use anabranch_transport::Nanos;

use crate::packet::DropCounts;
use crate::queue::Assignments;

/// Number of packets, and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Number of packets.
    pub packets: u64,
    /// Bytes, including IP headers.
    pub bytes: u64,
}

impl TrafficCount {
    /// Counts one packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// Subtracts one packet of `size` bytes.
    pub(super) fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// Statistics of one direction of a link up to a given time.
///
/// In packets, `offered + duplicated = delivered + dropped + in channel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Packets offered to the link, including those that were dropped.
    pub offered: TrafficCount,
    /// Packets sent completely, including those lost in the channel.
    pub transmitted: TrafficCount,
    /// Packets that arrived at the far end.
    pub delivered: TrafficCount,
    /// Dropped packets, by reason. A drop is counted when it is decided. A loss in the channel or
    /// an outage may be decided up to a queueing delay before it occurs.
    pub dropped: DropCounts,
    /// Packets in which the queue discipline has set CE.
    pub marked: u64,
    /// Duplicates created by the impairments.
    pub duplicated: u64,
    /// Packets in which the impairments flipped a bit.
    pub corrupted: u64,
    /// Packets that the impairments delayed.
    pub reordered: u64,
    /// Time for which the transmitter was busy, nanoseconds; only complete packets count. On a link
    /// with assigned slots, the duration of the slots that carried packets.
    pub busy: Nanos,
    /// Maximum number of packets in the queue, including the one in transmission.
    pub longest_queue: usize,
    /// Sum over all packets of the time from admission to the departure of the last bit,
    /// nanoseconds. This sum divided by the length of the run is the mean number of packets in the
    /// queue; divided by the number of sent packets, it is the mean sojourn time (Little's law).
    pub sojourn: u128,
    /// Capacity requests and assignments, if capacity is assigned on demand.
    pub assignments: Option<Assignments>,
}
