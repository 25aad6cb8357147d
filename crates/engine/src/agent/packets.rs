//! Packets with data as a trace of the network shows them: sent, received, and how long they were on their way.

use std::rc::Rc;

use anabranch_sim::{Packet, PacketWatch};
use anabranch_transport::Nanos;

use super::inspect::Reader;
use super::tally::SharedTally;

/// The packets of one member of a flow that carry data from its source to its sink, repetitions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketAccount {
    /// Sent by the source.
    pub sent: u64,
    /// Given to the sink.
    pub received: u64,
    /// Their delays from when the source sent them.
    pub from_host: Delays,
    /// Their delays from when their first link began to send them.
    pub from_wire: Delays,
}

/// Sums of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Of the delays, nanoseconds.
    pub sum: u128,
    /// Of their squares.
    pub squares: u128,
}

impl Delays {
    fn add(&mut self, delay: Nanos) {
        let delay = u128::from(delay);
        self.sum += delay;
        self.squares += delay * delay;
    }
}

impl PacketAccount {
    /// Mean and mean square of delays, in milliseconds and their squares; not finite if nothing was received.
    pub fn moments(&self, delays: &Delays) -> [f64; 2] {
        let count = self.received as f64;
        [
            delays.sum as f64 / count / 1e6,
            delays.squares as f64 / count / 1e12,
        ]
    }
}

/// Tells the packets of all flows apart by their ports, and counts them.
pub struct PacketCounter {
    /// The first of the sources' ports and of the sinks'; member `n` has the `n`-th after each.
    ports: [u16; 2],
    /// The tallies of all members of all flows, in order, and who reads their packets.
    members: Vec<(SharedTally, Reader)>,
}

impl PacketCounter {
    /// A counter for members whose ports count up from `ports`.
    pub fn new(ports: [u16; 2], members: impl IntoIterator<Item = (SharedTally, Reader)>) -> Self {
        Self {
            ports,
            members: members.into_iter().collect(),
        }
    }

    /// The tally of the member whose data are in `packet`.
    fn tally(&self, packet: &Packet) -> Option<SharedTally> {
        let &[a, b, c, d] = packet.bytes.first_chunk::<4>()?;
        let number = u16::from_be_bytes([a, b]).checked_sub(self.ports[0])?;
        let other = u16::from_be_bytes([c, d]).checked_sub(self.ports[1])?;
        if number != other {
            return None;
        }
        let (tally, read) = self.members.get(usize::from(number))?;
        read(&packet.bytes).is_data().then(|| Rc::clone(tally))
    }
}

impl PacketWatch for PacketCounter {
    fn sent(&mut self, packet: &Packet) {
        if let Some(tally) = self.tally(packet) {
            tally.borrow_mut().packets.sent += 1;
        }
    }

    fn delivered(&mut self, now: Nanos, packet: &Packet) {
        if let Some(tally) = self.tally(packet) {
            let packets = &mut tally.borrow_mut().packets;
            packets.received += 1;
            packets.from_host.add(now.saturating_sub(packet.sent));
            packets.from_wire.add(now.saturating_sub(packet.departed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_milliseconds() {
        let mut account = PacketAccount {
            received: 2,
            ..PacketAccount::default()
        };
        account.from_host.add(3_000_000);
        account.from_host.add(5_000_000);
        assert_eq!(account.moments(&account.from_host), [4.0, 17.0]);
    }
}
