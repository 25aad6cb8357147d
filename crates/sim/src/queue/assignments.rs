//! Counters of capacity on demand.

use anabranch_transport::Nanos;

/// Requests and assignments of capacity of a link that is assigned on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignments {
    /// Requests that have arrived.
    pub requests: u64,
    /// Requests that have been assigned completely, and those of a rate that have had a first slot.
    pub answered: u64,
    /// Sum of the times from the sending of such a request to the superframe of that slot.
    pub delay: u128,
    /// Maximum of these times.
    pub longest_delay: Nanos,
    /// Assigned slots.
    pub slots: u64,
    /// Bytes of the assigned slots.
    pub assigned: u64,
    /// Bytes of packets in them.
    pub used: u64,
}

impl Assignments {
    /// A request has been assigned `delay` after it was sent.
    pub(crate) fn answered(&mut self, delay: Nanos) {
        self.answered += 1;
        self.delay += u128::from(delay);
        self.longest_delay = self.longest_delay.max(delay);
    }
}
