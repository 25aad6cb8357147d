//! Data packets as a network trace shows them: numbers sent and received, and delays.

use anabranch_sim::Packet;
use anabranch_transport::Nanos;

use super::inspect::PacketContent;

/// Counters of the packets that carry data of one member from its source to its sink, including
/// retransmissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccount {
    /// Packets sent by the source.
    pub sent: u64,
    /// Packets delivered to the sink.
    pub received: u64,
    /// Delays since the source sent the packets.
    pub from_host: Delays,
    /// Delays since transmission on the first link began.
    pub from_wire: Delays,
    /// Delays of the first packets, individually.
    pub first: FirstPackets,
}

/// Sums of the delays of many packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Sum of the delays, nanoseconds.
    pub sum: u128,
    /// Sum of the squares of the delays, nanoseconds squared.
    pub squares: u128,
}

impl Delays {
    pub(super) fn add(&mut self, delay: Nanos) {
        let delay = u128::from(delay);
        self.sum += delay;
        self.squares += delay * delay;
    }
}

/// The first data packets of a member, with their delays. A retransmission counts as the same
/// packet as the original.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstPackets {
    /// For each packet: sequence number of its first data, time of its first transmission, and its
    /// delays if it arrived.
    packets: Vec<(u32, Nanos, Option<[Nanos; 2]>)>,
    /// Number of packets in the list that have arrived.
    arrived: usize,
}

impl FirstPackets {
    /// Maximum number of packets kept.
    pub const MAX_PACKETS: usize = 64;

    /// Delays of the `number`-th packet sent (from 0) in nanoseconds: since the host sent it, and
    /// since its transmission began. For a retransmitted packet both start at the first
    /// transmission.
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
    /// Mean (milliseconds) and mean square (milliseconds squared) of delays; not finite if no
    /// packet was received.
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
