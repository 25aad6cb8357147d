//! Packets with data as a trace of the network shows them: sent, received, and how long they were on their way.

use anabranch_sim::Packet;
use anabranch_transport::Nanos;

use super::inspect::Seen;

/// The packets of one member of a flow that carry data from its source to its sink, repetitions included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccount {
    /// Sent by the source.
    pub sent: u64,
    /// Given to the sink.
    pub received: u64,
    /// Their delays from when the source sent them.
    pub from_host: Delays,
    /// Their delays from when their first link began to send them.
    pub from_wire: Delays,
    /// The first of them.
    pub first: FirstPackets,
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
    pub(super) fn add(&mut self, delay: Nanos) {
        let delay = u128::from(delay);
        self.sum += delay;
        self.squares += delay * delay;
    }
}

/// The first packets of a member and what became of each, repetitions being one with what they repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstPackets {
    /// The sequence number of its first data, and when it was first sent; then its delays once it arrived.
    packets: Vec<(u32, Nanos, Option<[Nanos; 2]>)>,
    /// How many have arrived.
    arrived: usize,
}

impl FirstPackets {
    /// So many are kept.
    pub const MOST: usize = 64;

    /// Delays of the packet that was the `number`-th, from 0, to be sent: from the host and from its wire, nanoseconds. One
    /// that was repeated counts from when it was first sent.
    pub fn delays(&self, number: usize) -> Option<[Nanos; 2]> {
        self.packets.get(number)?.2
    }

    pub(super) fn sent(&mut self, packet: &Packet, seen: Seen) {
        let Seen::Data(id) = seen else { return };
        if self.packets.len() == Self::MOST {
            return;
        }
        if self.packets.iter().all(|(known, ..)| *known != id) {
            self.packets.push((id, packet.sent, None));
        }
    }

    pub(super) fn delivered(&mut self, now: Nanos, packet: &Packet, seen: Seen) {
        let Seen::Data(id) = seen else { return };
        if self.arrived == self.packets.len() {
            return;
        }
        let waiting = self.packets.iter_mut();
        let found = waiting
            .filter(|(.., delays)| delays.is_none())
            .find(|(known, ..)| *known == id);
        if let Some((_, sent, delays)) = found {
            let from_host = now.saturating_sub(*sent);
            let repeated = packet.sent != *sent;
            let from_wire = now.saturating_sub(packet.departed);
            *delays = Some([from_host, if repeated { from_host } else { from_wire }]);
            self.arrived += 1;
        }
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
