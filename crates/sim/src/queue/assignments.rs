//! Counters of capacity that is assigned on demand.

use anabranch_transport::Nanos;

/// Numbers of requests and assigned slots of a link whose capacity is assigned on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignments {
    /// Requests that have arrived at the controller.
    pub requests: u64,
    /// Requests that are answered: volume requests that are assigned completely, and rate requests
    /// that have received a first slot.
    pub answered: u64,
    /// Sum over the answered requests of the time from sending the request to the superframe of its
    /// (last) slot, nanoseconds.
    pub delay: u128,
    /// Maximum of the times that `delay` adds, nanoseconds.
    pub longest_delay: Nanos,
    /// Number of assigned slots.
    pub slots: u64,
    /// Capacity of the assigned slots, bytes.
    pub assigned: u64,
    /// Bytes of packets in the assigned slots.
    pub used: u64,
}

impl Assignments {
    /// Counts a request as answered, `delay` nanoseconds after it was sent.
    pub(crate) fn answered(&mut self, delay: Nanos) {
        self.answered += 1;
        self.delay += u128::from(delay);
        self.longest_delay = self.longest_delay.max(delay);
    }
}
