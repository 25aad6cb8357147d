//! Packets with data as a trace of the network shows them: sent, received, and how long they were on their way.

use std::rc::Rc;

use anabranch_sim::{Packet, PacketWatch};
use anabranch_transport::Nanos;

use super::tally::SharedTally;

/// IP protocol numbers, and the type of a DATA chunk.
const TCP: u8 = 6;
const SCTP: u8 = 132;
const DATA: u8 = 0;

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
#[derive(Debug)]
pub struct PacketCounter {
    /// The first of the sources' ports and of the sinks'; member `n` has the `n`-th after each.
    ports: [u16; 2],
    /// Of all members of all flows, in order.
    tallies: Vec<SharedTally>,
}

impl PacketCounter {
    /// A counter for members whose ports count up from `ports`.
    pub fn new(ports: [u16; 2], tallies: impl IntoIterator<Item = SharedTally>) -> Self {
        Self {
            ports,
            tallies: tallies.into_iter().collect(),
        }
    }

    /// The tally of the member whose data are in `packet`.
    fn tally(&self, packet: &Packet) -> Option<SharedTally> {
        let &[a, b, c, d] = packet.bytes.first_chunk::<4>()?;
        let number = u16::from_be_bytes([a, b]).checked_sub(self.ports[0])?;
        let other = u16::from_be_bytes([c, d]).checked_sub(self.ports[1])?;
        if number != other || !has_data(packet) {
            return None;
        }
        self.tallies.get(usize::from(number)).map(Rc::clone)
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

/// Whether a packet carries data of its transport's user.
fn has_data(packet: &Packet) -> bool {
    match packet.protocol {
        TCP => {
            let header = packet
                .bytes
                .get(12)
                .map_or(usize::MAX, |byte| usize::from(byte >> 4) * 4);
            packet.bytes.len() > header
        }
        SCTP => has_data_chunk(packet.bytes.get(12..).unwrap_or_default()),
        _ => packet.bytes.len() > 8,
    }
}

fn has_data_chunk(mut chunks: &[u8]) -> bool {
    while let Some(&[kind, _, high, low]) = chunks.first_chunk::<4>() {
        if kind == DATA {
            return true;
        }
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        chunks = chunks.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_found_behind_other_chunks() {
        // SACK (type 3) of 16 bytes, then DATA.
        let sack = [3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 255, 255, 0, 0, 0, 0];
        let data = [0, 3, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        assert!(!has_data_chunk(&sack));
        assert!(has_data_chunk(&[&sack[..], &data[..]].concat()));
        // A length of 0 or beyond the end does not run away.
        assert!(!has_data_chunk(&[3, 0, 0, 0]));
        assert!(!has_data_chunk(&[3, 0, 255, 255, 0, 0]));
    }

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
