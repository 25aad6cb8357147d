//! Where every packet went: the conservation law of the world.

use crate::packet::DropCounts;

/// The packets of a world, all links and nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that agents sent.
    pub sent: u64,
    /// Second copies that links made.
    pub duplicated: u64,
    /// Packets that agents were given.
    pub delivered: u64,
    /// Packets that ended before, by reason.
    pub dropped: DropCounts,
    /// Packets on a link, counted one by one.
    pub in_flight: u64,
}

/// A ledger that does not add up: a defect of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packets were lost or made without account: {0:?}")]
pub struct Imbalance(pub Ledger);

impl Ledger {
    /// Checks that `sent + duplicated = delivered + dropped + in flight`.
    ///
    /// # Errors
    /// [`Imbalance`] if not.
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

/// How much work a world has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events handled: arrivals at the end of a link, and wake-ups of agents.
    pub events: u64,
    /// Arrivals among them: packets times hops.
    pub hops: u64,
    /// Packets that agents sent.
    pub sent: u64,
}
