//! Strict priorities (RFC 8260 §3.4).

use std::collections::BTreeMap;

use super::ring::Ring;
use super::{Discipline, QueueId, ServedData};
use crate::stream_table::StreamTable;

/// Selects the nonempty stream with the smallest value; among streams with equal values, round
/// robin. The initial value is 0, also for messages without a stream.
#[derive(Debug, Default)]
pub(crate) struct Priority {
    values: StreamTable<u16>,
    /// Rings by value; each ring is nonempty.
    rings: BTreeMap<u16, Ring>,
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
        let Some(ring) = self.rings.get_mut(&value) else {
            return false;
        };
        let was_there = ring.iter().any(|it| it == queue_id);
        ring.remove(queue_id);
        if ring.is_empty() {
            self.rings.remove(&value);
        }
        was_there
    }

    fn join(&mut self, queue_id: QueueId) {
        let value = self.value(queue_id);
        self.rings.entry(value).or_default().join(queue_id);
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
        self.rings.first_key_value()?.1.front()
    }

    fn served(&mut self, served: ServedData) -> bool {
        let value = self.value(served.queue_id);
        if let Some(ring) = self.rings.get_mut(&value) {
            ring.rotate(served.queue_id, served.waiting);
            if ring.is_empty() {
                self.rings.remove(&value);
            }
        }
        false
    }

    fn queues(&self) -> Vec<QueueId> {
        self.rings.values().flat_map(Ring::iter).collect()
    }

    fn dropped(&mut self, queue_id: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.leave(queue_id);
        }
    }

    fn clear(&mut self) {
        self.rings.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        for ring in self.rings.values_mut() {
            ring.forget_from(streams, &mut forgotten);
        }
        self.rings.retain(|_, ring| !ring.is_empty());
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
