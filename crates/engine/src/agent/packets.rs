//! Data packets as a network trace shows them: sent, received, and their delays.

use anabranch_sim::Packet;
use anabranch_transport::Nanos;

use super::inspect::PacketContent;

/// The packets of one member of a flow that carry data from its source to its sink, including
/// retransmissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccount {
    /// Sent by the source.
    pub sent: u64,
    /// Delivered to the sink.
    pub received: u64,
    /// Delays from the time at which the source sent them.
    pub from_host: Delays,
    /// Delays from the start of their transmission on the first link.
    pub from_wire: Delays,
    /// The first packets.
    pub first: FirstPackets,
}

/// Sums of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Sum of the delays, nanoseconds.
    pub sum: u128,
    /// Sum of their squares.
    pub squares: u128,
}

impl Delays {
    pub(super) fn add(&mut self, delay: Nanos) {
        let delay = u128::from(delay);
        self.sum += delay;
        self.squares += delay * delay;
    }
}

/// The first packets of a member and their fates. A retransmission counts as the same packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstPackets {
    /// Sequence number of the first data, time of the first transmission, and the delays after
    /// arrival.
    packets: Vec<(u32, Nanos, Option<[Nanos; 2]>)>,
    /// Number of arrived packets.
    arrived: usize,
}

impl FirstPackets {
    /// Maximum number of packets kept.
    pub const MAX_PACKETS: usize = 64;

    /// Delays of the `number`-th packet sent, from 0: from the host and from its wire, nanoseconds.
    /// For a retransmitted packet they count from the first transmission.
    pub fn delays(&self, number: usize) -> Option<[Nanos; 2]> {
        self.packets.get(number)?.2
    }

    pub(super) fn sent(&mut self, packet: &Packet, seen: PacketContent) {
        let PacketContent::Data(id) = seen else {
            return;
        };
        if self.packets.len() == Self::MAX_PACKETS {
            return;
        }
        if self.packets.iter().all(|(known, ..)| *known != id) {
            self.packets.push((id, packet.sent, None));
        }
    }

    pub(super) fn delivered(&mut self, now: Nanos, packet: &Packet, seen: PacketContent) {
        let PacketContent::Data(id) = seen else {
            return;
        };
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
    /// Mean and mean square of delays, in milliseconds and their squares; not finite if no packet
    /// was received.
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
