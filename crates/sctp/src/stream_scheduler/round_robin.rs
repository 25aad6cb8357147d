//! Round robin (RFC 8260 §3.2).

use super::round_robin_list::RoundRobinList;
use super::{Discipline, QueueId, ServedData};

/// Selects one message of each stream in turn, or one fragment of each stream if messages are
/// interleaved.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin(RoundRobinList);

impl Discipline for RoundRobin {
    #[inline]
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
        if waiting == 1 {
            self.0.join(queue_id);
        }
        false
    }

    #[inline]
    fn pick(&self) -> Option<QueueId> {
        self.0.front()
    }

    #[inline]
    fn served(&mut self, served: ServedData) -> bool {
        self.0.rotate(served.queue_id, served.waiting)
    }

    #[inline]
    fn only(&self) -> Option<QueueId> {
        self.0.only()
    }

    fn queues(&self) -> Vec<QueueId> {
        self.0.iter().collect()
    }

    fn dropped(&mut self, queue_id: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.0.remove(queue_id);
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.0.forget_from(streams, &mut forgotten);
        forgotten
    }
}
