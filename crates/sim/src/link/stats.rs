//! What a link direction counts.

use anabranch_transport::Nanos;

use crate::packet::DropCounts;

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, IP headers included.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// Takes one packet of `size` bytes out again.
    pub(super) fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// What one direction of a link did up to a moment.
///
/// `offered + duplicated = delivered + dropped + in flight`, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Offered to the link, lost ones included.
    pub offered: Count,
    /// Sent to the last bit, those lost in the air included.
    pub transmitted: Count,
    /// Arrived at the far end.
    pub delivered: Count,
    /// Dropped, by reason. A drop is counted when it is decided, which for a loss in the air or an
    /// outage may be up to a queueing delay before it happens.
    pub dropped: DropCounts,
    /// Packets in which the queue discipline has set CE.
    pub marked: u64,
    /// Second copies made by the impairments.
    pub duplicated: u64,
    /// Packets with a byte flipped by the impairments.
    pub corrupted: u64,
    /// Packets held back by the impairments.
    pub reordered: u64,
    /// How long the transmitter was busy, whole packets only.
    pub busy: Nanos,
    /// The most packets that were ever in the queue, the one in transmission included.
    pub longest_queue: usize,
    /// Sum of the times that packets spent from admission to their last bit. Divided by the length
    /// of the run it is the mean number of packets in the queue, divided by the packets sent the
    /// mean time in it (Little's law).
    pub sojourn: u128,
}
