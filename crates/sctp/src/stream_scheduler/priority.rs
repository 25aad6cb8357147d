//! Strict priorities (RFC 8260 §3.4).

use std::collections::BTreeMap;

use super::round_robin_list::RoundRobinList;
use super::{Discipline, QueueId, ServedData};
use crate::stream_table::StreamTable;

/// Selects the nonempty stream with the smallest value; among streams with equal values, round
/// robin. The initial value is 0, also for messages without a stream.
#[derive(Debug, Default)]
pub(crate) struct Priority {
    values: StreamTable<u16>,
    /// Lists by value; each list is nonempty.
    lists: BTreeMap<u16, RoundRobinList>,
}

impl Priority {
    fn value(&self, queue_id: QueueId) -> u16 {
        match queue_id {
            QueueId::Stream(stream) => self.values.get(stream).copied().unwrap_or_default(),
            QueueId::Unassigned => 0,
        }
    }

    fn leave(&mut self, queue_id: QueueId) -> bool {
        let value = self.value(queue_id);
        let Some(list) = self.lists.get_mut(&value) else {
            return false;
        };
        let was_there = list.iter().any(|it| it == queue_id);
        list.remove(queue_id);
        if list.is_empty() {
            self.lists.remove(&value);
        }
        was_there
    }

    fn join(&mut self, queue_id: QueueId) {
        let value = self.value(queue_id);
        self.lists.entry(value).or_default().join(queue_id);
    }
}

impl Discipline for Priority {
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
        if waiting == 1 {
            self.join(queue_id);
        }
        waiting == 1
    }

    fn pick(&self) -> Option<QueueId> {
        self.lists.first_key_value()?.1.front()
    }

    fn served(&mut self, served: ServedData) -> bool {
        let value = self.value(served.queue_id);
        if let Some(list) = self.lists.get_mut(&value) {
            list.rotate(served.queue_id, served.waiting);
            if list.is_empty() {
                self.lists.remove(&value);
            }
        }
        false
    }

    fn queues(&self) -> Vec<QueueId> {
        self.lists.values().flat_map(RoundRobinList::iter).collect()
    }

    fn dropped(&mut self, queue_id: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.leave(queue_id);
        }
    }

    fn clear(&mut self) {
        self.lists.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        for list in self.lists.values_mut() {
            list.forget_from(streams, &mut forgotten);
        }
        self.lists.retain(|_, list| !list.is_empty());
        forgotten
    }

    fn set_value(&mut self, stream: u16, value: u16) {
        let queue_id = QueueId::Stream(stream);
        let waits = self.leave(queue_id);
        *self.values.entry(stream) = value;
        if waits {
            self.join(queue_id);
        }
    }
}
