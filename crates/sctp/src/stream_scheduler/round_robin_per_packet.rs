//! Round robin per packet (RFC 8260 §3.3), so that the loss of a packet delays only one stream.

use super::round_robin_list::RoundRobinList;
use super::{Discipline, QueueId, ServedData};

/// Fills each packet from one stream, round robin.
#[derive(Debug, Default)]
pub(crate) struct RoundRobinPerPacket {
    list: RoundRobinList,
    /// Queue from which the current packet is filled.
    of_packet: Option<QueueId>,
}

impl Discipline for RoundRobinPerPacket {
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
        if waiting == 1 {
            self.list.join(queue_id);
        }
        false
    }

    fn pick(&self) -> Option<QueueId> {
        let front = self.list.front();
        front.filter(|front| self.of_packet.is_none_or(|queue_id| queue_id == *front))
    }

    fn served(&mut self, served: ServedData) -> bool {
        self.of_packet = Some(served.queue_id);
        if served.waiting == 0 {
            self.list.remove(served.queue_id);
        }
        false
    }

    fn went_on(&mut self, queue_id: QueueId) {
        self.of_packet = Some(queue_id);
    }

    fn packet_ended(&mut self) -> bool {
        let Some(queue_id) = self.of_packet.take() else {
            return false;
        };
        if self.list.front() == Some(queue_id) {
            self.list.rotate(queue_id, 1);
        }
        true
    }

    fn queues(&self) -> Vec<QueueId> {
        self.list.iter().collect()
    }

    fn dropped(&mut self, queue_id: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.list.remove(queue_id);
        }
    }

    fn clear(&mut self) {
        self.list.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.list.forget_from(streams, &mut forgotten);
        forgotten
    }
}
