//! Counters of a link direction.

use anabranch_transport::Nanos;

use crate::packet::DropCounts;
use crate::queue::Assignments;

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, including IP headers.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// Reverts the counting of a packet of `size` bytes.
    pub(super) fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// Statistics of one direction of a link up to a given time.
///
/// `offered + duplicated = delivered + dropped + in channel`, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Packets offered to the link, including lost packets.
    pub offered: Count,
    /// Packets sent completely, including packets lost in the air.
    pub transmitted: Count,
    /// Arrived at the far end.
    pub delivered: Count,
    /// Dropped, by reason. A drop is counted when it is decided, which for a loss in the air or an
    /// outage may be up to a queueing delay before it happens.
    pub dropped: DropCounts,
    /// Packets in which the queue discipline has set CE.
    pub marked: u64,
    /// Duplicates created by the impairments.
    pub duplicated: u64,
    /// Packets with a byte flipped by the impairments.
    pub corrupted: u64,
    /// Packets held back by the impairments.
    pub reordered: u64,
    /// Time for which the transmitter was busy, whole packets only; on a link with assigned slots,
    /// the slots that carried packets.
    pub busy: Nanos,
    /// Maximum number of packets in the queue, including the one in transmission.
    pub longest_queue: usize,
    /// Sum of the times of packets from admission to their last bit. Divided by the length of the
    /// run it is the mean number of packets in the queue, divided by the number of sent packets the
    /// mean sojourn time (Little's law).
    pub sojourn: u128,
    /// Requests and assignments of capacity, if the link is assigned on demand.
    pub assignments: Option<Assignments>,
}
