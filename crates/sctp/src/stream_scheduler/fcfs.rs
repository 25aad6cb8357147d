//! First come, first served (RFC 8260 §3.1).

use std::collections::VecDeque;

use super::{Discipline, QueueId, ServedData};

/// One entry per waiting message, oldest message first: the queue that contains the message.
#[derive(Debug, Default)]
pub(crate) struct Fcfs(VecDeque<QueueId>);

impl Discipline for Fcfs {
    #[inline]
    fn queued(&mut self, queue_id: QueueId, _waiting: usize) -> bool {
        self.0.push_back(queue_id);
        false
    }

    #[inline]
    fn pick(&self) -> Option<QueueId> {
        self.0.front().copied()
    }

    #[inline]
    fn served(&mut self, served: ServedData) -> bool {
        debug_assert_eq!(self.pick(), Some(served.queue_id));
        if served.ended {
            self.0.pop_front();
        }
        false
    }

    fn queues(&self) -> Vec<QueueId> {
        let mut queues = Vec::from(self.0.clone());
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    fn dropped(&mut self, queue_id: QueueId, at: usize, _waiting: usize) {
        let mut places = self.0.iter().enumerate().filter(|(_, it)| **it == queue_id);
        if let Some((place, _)) = places.nth(at) {
            self.0.remove(place);
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.0.retain(|queue_id| match *queue_id {
            QueueId::Stream(stream) if stream >= streams => {
                forgotten.push(stream);
                false
            }
            _ => true,
        });
        forgotten
    }
}
