//! Packet counts of a world, and the check that packets are conserved.

use crate::packet::DropCounts;

/// Numbers of packets in a world, over all links and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets that agents sent.
    pub sent: u64,
    /// Duplicates that links created.
    pub duplicated: u64,
    /// Packets that were delivered to agents.
    pub delivered: u64,
    /// Packets that were dropped, by reason.
    pub dropped: DropCounts,
    /// Packets on links, as the links count them; not computed from the other numbers, so that all
    /// of them can be checked for balance.
    pub in_flight: u64,
}

/// Error: packet counts that do not add up, which is a defect of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packets were lost or made without account: {0:?}")]
pub struct Imbalance(pub PacketCounts);

impl WorkCounts {
    /// Adds the work of another part of a divided world.
    pub fn add(&mut self, part: Self) {
        self.events += part.events;
        self.hops += part.hops;
        self.sent += part.sent;
    }
}

impl PacketCounts {
    /// Adds the packets of another part of a divided world.
    pub fn add(&mut self, part: &Self) {
        self.sent += part.sent;
        self.duplicated += part.duplicated;
        self.delivered += part.delivered;
        self.dropped = self.dropped.plus(&part.dropped);
        self.in_flight += part.in_flight;
    }

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

/// Work that a world has done: events, hops, and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounts {
    /// Events handled: arrivals at the end of a link, and wake-ups of agents.
    pub events: u64,
    /// Those events that are arrivals at the end of a link: each packet counts once per link.
    pub hops: u64,
    /// Packets that agents sent.
    pub sent: u64,
}
