//! Accounting of all packets of a world: their number is conserved.

use crate::packet::DropCounts;

/// Numbers of packets in a world, over all links and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that agents sent.
    pub sent: u64,
    /// Duplicates that links created.
    pub duplicated: u64,
    /// Packets that were delivered to agents.
    pub delivered: u64,
    /// Packets that were dropped, by reason.
    pub dropped: DropCounts,
    /// Packets on a link, counted individually.
    pub in_flight: u64,
}

/// Packet counts that do not add up: a defect of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packets were lost or made without account: {0:?}")]
pub struct Imbalance(pub Ledger);

impl Ledger {
    /// Checks that `sent + duplicated = delivered + dropped + in flight`.
    ///
    /// # Errors
    /// [`Imbalance`] if the two sides differ.
    pub fn check(&self) -> Result<(), Imbalance> {
        let came = self.sent + self.duplicated;
        let went = self.delivered + self.dropped.total() + self.in_flight;
        if came == went {
            Ok(())
        } else {
            Err(Imbalance(*self))
        }
    }
}

/// Amount of work that a world has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events handled: arrivals at the end of a link, and wake-ups of agents.
    pub events: u64,
    /// Arrivals among these events: packets times hops.
    pub hops: u64,
    /// Packets that agents sent.
    pub sent: u64,
}
