//! Round robin per packet (RFC 8260 §3.3): the loss of a packet should delay one stream only.

use super::ring::Ring;
use super::{Discipline, QueueId, ServedData};

/// One stream in each packet, in turn.
#[derive(Debug, Default)]
pub(crate) struct RoundRobinPerPacket {
    ring: Ring,
    /// The queue of the current packet.
    of_packet: Option<QueueId>,
}

impl Discipline for RoundRobinPerPacket {
    fn queued(&mut self, turn: QueueId, waiting: usize) -> bool {
        if waiting == 1 {
            self.ring.join(turn);
        }
        false
    }

    fn pick(&self) -> Option<QueueId> {
        let front = self.ring.front();
        front.filter(|front| self.of_packet.is_none_or(|turn| turn == *front))
    }

    fn served(&mut self, served: ServedData) -> bool {
        self.of_packet = Some(served.turn);
        if served.waiting == 0 {
            self.ring.remove(served.turn);
        }
        false
    }

    fn went_on(&mut self, turn: QueueId) {
        self.of_packet = Some(turn);
    }

    fn packet_ended(&mut self) -> bool {
        let Some(turn) = self.of_packet.take() else {
            return false;
        };
        if self.ring.front() == Some(turn) {
            self.ring.rotate(turn, 1);
        }
        true
    }

    fn queues(&self) -> Vec<QueueId> {
        self.ring.iter().collect()
    }

    fn dropped(&mut self, turn: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.ring.remove(turn);
        }
    }

    fn clear(&mut self) {
        self.ring.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.ring.forget_from(streams, &mut forgotten);
        forgotten
    }
}
