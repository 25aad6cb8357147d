//! Start-time fair queueing (Goyal, Vin and Cheng 1996): the queue that received the least service
//! relative to its weight is next.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

use super::{Discipline, QueueId, ServedData};
use crate::stream_table::StreamTable;

/// Virtual time of one byte of a stream with weight 1.
const UNIT: u64 = 1 << 16;

/// Mapping from stream values to weights.
pub(crate) trait Weights: Debug + Default {
    /// Weight of a stream with this value.
    fn weight(value: u16) -> u16;
}

/// All streams have the same weight.
#[derive(Debug, Default)]
pub(crate) struct Equal;

impl Weights for Equal {
    fn weight(_value: u16) -> u16 {
        1
    }
}

/// The value is the weight; 0 or no value counts as 1.
#[derive(Debug, Default)]
pub(crate) struct ByValue;

impl Weights for ByValue {
    fn weight(value: u16) -> u16 {
        value.max(1)
    }
}

/// Scheduling state of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Virtual start time of the next message in the queue.
    time: u64,
    /// Sequence number under which the queue is in `waiting`; `None` if it has no messages.
    place: Option<u64>,
    value: u16,
}

/// Queues by virtual time, which advances with the bytes sent, divided by the weight. A queue that
/// becomes active starts at the virtual time of the queue served last, so idle time gives no
/// credit.
#[derive(Debug, Default)]
pub(crate) struct VirtualTime<W> {
    streams: StreamTable<Account>,
    spread: Account,
    /// Nonempty queues, by virtual time and then by order of activation.
    waiting: BTreeMap<(u64, u64), QueueId>,
    clock: u64,
    arrivals: u64,
    weights: PhantomData<W>,
}

impl<W: Weights> VirtualTime<W> {
    fn account(&mut self, queue_id: QueueId) -> &mut Account {
        match queue_id {
            QueueId::Stream(stream) => self.streams.entry(stream),
            QueueId::Unassigned => &mut self.spread,
        }
    }

    fn join(&mut self, queue_id: QueueId) {
        let (clock, place) = (self.clock, self.arrivals);
        self.arrivals += 1;
        let account = self.account(queue_id);
        account.time = account.time.max(clock);
        account.place = Some(place);
        let at = (account.time, place);
        self.waiting.insert(at, queue_id);
    }

    fn leave(&mut self, queue_id: QueueId) -> bool {
        let account = self.account(queue_id);
        let Some(place) = account.place.take() else {
            return false;
        };
        let at = (account.time, place);
        self.waiting.remove(&at).is_some()
    }
}

impl<W: Weights> Discipline for VirtualTime<W> {
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
        if waiting == 1 {
            self.join(queue_id);
        }
        waiting == 1
    }

    fn pick(&self) -> Option<QueueId> {
        self.waiting
            .first_key_value()
            .map(|(_, queue_id)| *queue_id)
    }

    fn served(&mut self, served: ServedData) -> bool {
        self.leave(served.queue_id);
        let account = self.account(served.queue_id);
        let began = account.time;
        let weight = u64::from(W::weight(account.value));
        account.time += served.bytes as u64 * UNIT / weight;
        self.clock = self.clock.max(began);
        if served.waiting > 0 {
            self.join(served.queue_id);
        }
        false
    }

    fn queues(&self) -> Vec<QueueId> {
        self.waiting.values().copied().collect()
    }

    fn dropped(&mut self, queue_id: QueueId, _at: usize, waiting: usize) {
        if waiting == 0 {
            self.leave(queue_id);
        }
    }

    fn clear(&mut self) {
        for queue_id in self.queues() {
            self.leave(queue_id);
        }
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let gone = |queue_id| match queue_id {
            QueueId::Stream(stream) => Some(stream).filter(|it| *it >= streams),
            QueueId::Unassigned => None,
        };
        let forgotten: Vec<u16> = self.queues().into_iter().filter_map(gone).collect();
        for &stream in &forgotten {
            self.leave(QueueId::Stream(stream));
        }
        forgotten
    }

    fn set_value(&mut self, stream: u16, value: u16) {
        self.streams.entry(stream).value = value;
    }
}
