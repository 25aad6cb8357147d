//! Round-robin list of queues.

use std::collections::VecDeque;

use super::QueueId;

/// Nonempty queues, each once; the front queue is served next.
#[derive(Debug, Default)]
pub(super) struct RoundRobinList(VecDeque<QueueId>);

impl RoundRobinList {
    #[inline]
    pub fn front(&self) -> Option<QueueId> {
        self.0.front().copied()
    }

    /// The front queue, if it is the only one.
    #[inline]
    pub fn only(&self) -> Option<QueueId> {
        if self.0.len() == 1 {
            self.front()
        } else {
            None
        }
    }

    #[inline]
    pub fn join(&mut self, queue_id: QueueId) {
        self.0.push_back(queue_id);
    }

    /// Moves the served front queue to the end; `waiting` is the number of its remaining messages.
    /// Returns whether the same queue is at the front again.
    #[inline]
    pub fn rotate(&mut self, queue_id: QueueId, waiting: usize) -> bool {
        debug_assert_eq!(self.front(), Some(queue_id));
        if waiting > 0 && self.0.len() == 1 {
            return true;
        }
        self.0.pop_front();
        if waiting > 0 {
            self.0.push_back(queue_id);
        }
        false
    }

    pub fn remove(&mut self, queue_id: QueueId) {
        // The queue is usually at the front, so check that first.
        match self.front() == Some(queue_id) {
            true => drop(self.0.pop_front()),
            false => self.0.retain(|it| *it != queue_id),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.0.iter().copied()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes all streams from number `streams` on, and adds them to `forgotten`.
    pub fn forget_from(&mut self, streams: u16, forgotten: &mut Vec<u16>) {
        self.0.retain(|queue_id| match *queue_id {
            QueueId::Stream(stream) if stream >= streams => {
                forgotten.push(stream);
                false
            }
            _ => true,
        });
    }
}
