//! Deferred messages on streams that are being reset; they wait until the reset is complete (RFC
//! 6525 §5.1.2 A1).

use std::collections::{BTreeMap, VecDeque};

use anabranch_wire::Ssn;

use super::{QueueId, Queued, SendQueue, Unsent};
use crate::stream_set::StreamSet;
use crate::stream_table::StreamTable;
use crate::work_counter;

/// Deferred message with its position in the order of queuing.
type Behind = (u64, Queued);

/// Deferred messages of one stream, in the order of queuing.
#[derive(Debug, Default)]
struct OfStream {
    messages: VecDeque<Behind>,
    /// Number of bytes of user data in `messages`. The sum is stored, because it is requested often
    /// for each stream.
    bytes: usize,
}

/// The streams that are being reset, and the messages queued for them since.
///
/// A user may have much data waiting on thousands of streams, and the peer may complete the resets
/// one by one. Therefore the messages of each stream are stored separately. Messages that wait only
/// for a reset of all streams are stored separately as well.
#[derive(Debug, Default)]
pub(super) struct DeferredMessages {
    /// Number of pending resets that include all streams.
    all: u32,
    streams: StreamSet,
    /// Messages of the streams in `streams`.
    apart: BTreeMap<u16, OfStream>,
    /// Messages of other streams, while all streams are being reset.
    others: BTreeMap<u16, OfStream>,
    /// Messages without a stream, which could be assigned to a stream that is being reset.
    unassigned: VecDeque<Behind>,
    /// Number of messages deferred so far.
    given: u64,
}

impl DeferredMessages {
    /// Whether messages of this queue are deferred. During any reset, messages without a stream are
    /// deferred as well, because they could be assigned to any stream.
    fn holds(&self, queue_id: QueueId) -> bool {
        match queue_id {
            QueueId::Stream(stream) => self.all > 0 || self.streams.contains(stream),
            QueueId::Unassigned => self.holds_any(),
        }
    }

    fn holds_any(&self) -> bool {
        self.all > 0 || !self.streams.is_empty()
    }

    fn push(&mut self, queue_id: QueueId, queued: Queued) {
        let number = self.given;
        self.given += 1;
        let QueueId::Stream(stream) = queue_id else {
            return self.unassigned.push_back((number, queued));
        };
        let of_it = if self.streams.contains(stream) {
            self.apart.entry(stream).or_default()
        } else {
            self.others.entry(stream).or_default()
        };
        of_it.bytes += queued.message.payload.len();
        of_it.messages.push_back((number, queued));
    }

    fn bytes_of(&self, stream: u16) -> usize {
        let of_it = self.apart.get(&stream).or_else(|| self.others.get(&stream));
        of_it.map_or(0, |it| it.bytes)
    }

    /// Starts deferring messages for a reset of these streams; `None` means all streams.
    fn begin(&mut self, streams: Option<&[u16]>) {
        let Some(streams) = streams else {
            self.all += 1;
            return;
        };
        for &stream in streams {
            self.streams.insert(stream);
            if let Some(of_it) = self.others.remove(&stream) {
                self.apart.insert(stream, of_it);
            }
        }
    }

    /// Ends the deferral for a reset of these streams; `None` means one reset of all streams.
    /// Returns messages that no longer wait for any reset, in the order of queuing.
    fn end(&mut self, streams: Option<&[u16]>) -> Vec<(QueueId, Queued)> {
        let mut free = Vec::new();
        match streams {
            Some(streams) => {
                for &stream in streams {
                    self.streams.remove(stream);
                    let Some(of_it) = self.apart.remove(&stream) else {
                        continue;
                    };
                    if self.all > 0 {
                        self.others.insert(stream, of_it);
                    } else {
                        free.push((QueueId::Stream(stream), of_it.messages));
                    }
                }
            }
            None => self.all = self.all.saturating_sub(1),
        }
        if self.all == 0 {
            let others = std::mem::take(&mut self.others).into_iter();
            free.extend(others.map(|(stream, of_it)| (QueueId::Stream(stream), of_it.messages)));
        }
        if !self.holds_any() {
            free.push((QueueId::Unassigned, std::mem::take(&mut self.unassigned)));
        }
        in_order(free)
    }

    /// Removes and returns all messages, in the order of queuing.
    fn take(&mut self) -> Vec<(QueueId, Queued)> {
        let apart = std::mem::take(&mut self.apart).into_iter();
        let streams = apart.chain(std::mem::take(&mut self.others));
        let of_streams = streams.map(|(stream, of_it)| (QueueId::Stream(stream), of_it.messages));
        let unassigned = (QueueId::Unassigned, std::mem::take(&mut self.unassigned));
        in_order(of_streams.chain([unassigned]).collect())
    }
}

/// Merges several queues into the order of queuing.
fn in_order(queues: Vec<(QueueId, VecDeque<Behind>)>) -> Vec<(QueueId, Queued)> {
    let queues = queues.into_iter();
    let mut all: Vec<(u64, QueueId, Queued)> = queues
        .flat_map(|(queue_id, queue)| queue.into_iter().map(move |(at, it)| (at, queue_id, it)))
        .collect();
    work_counter::count(all.len());
    all.sort_by_key(|it| it.0);
    all.into_iter()
        .map(|(_, queue_id, it)| (queue_id, it))
        .collect()
}

impl SendQueue {
    /// Defers the message if its stream is being reset; otherwise returns it.
    #[cold]
    pub(super) fn hold_back(&mut self, queue_id: QueueId, queued: Queued) -> Option<Queued> {
        let Some(deferred) = self.deferred.as_mut().filter(|it| it.holds(queue_id)) else {
            return Some(queued);
        };
        self.behind += queued.message.payload.len();
        self.messages += 1;
        deferred.push(queue_id, queued);
        None
    }

    /// Number of bytes of deferred user data for `stream`.
    pub(super) fn bytes_behind(&self, stream: u16) -> usize {
        self.deferred.as_ref().map_or(0, |it| it.bytes_of(stream))
    }

    /// Defers messages that are queued for `streams` from now on; `None` means all streams. The
    /// streams of several calls must be disjoint, except for `None`.
    pub fn hold(&mut self, streams: Option<&[u16]>) {
        self.deferred.get_or_insert_default().begin(streams);
    }

    /// Whether all messages queued for `streams` before they were deferred were sent at least once.
    /// `are` is the number of these streams, from the first on, that are known to be finished. They
    /// stay finished, because no more messages are queued for them.
    pub fn is_through(&self, streams: Option<&[u16]>, are: &mut usize) -> bool {
        let Some(streams) = streams.filter(|_| !self.is_empty()) else {
            return self.is_empty();
        };
        if !self.unassigned.is_empty() {
            return false;
        }
        let is_through = |stream: &u16| {
            let queued = self.streams.get(*stream);
            queued.is_none_or(|it| it.messages.is_empty())
                && self.started.as_ref().is_none_or(|it| it.stream != *stream)
                && self.paused_at(QueueId::Stream(*stream)) == 0
        };
        let left = streams.get(*are..).unwrap_or_default();
        *are += left.iter().take_while(|it| is_through(it)).count();
        *are >= streams.len()
    }

    /// Releases the messages deferred by one call of [`Self::hold`]. `reset`: these streams, which
    /// have no queued messages, restart with stream sequence number 0.
    pub fn release(&mut self, streams: Option<&[u16]>, reset: bool) {
        match streams {
            Some(streams) if reset => {
                let used = streams.iter().filter(|it| self.streams.get(**it).is_some());
                for stream in used.copied().collect::<Vec<_>>() {
                    let tsns_reset = self.streams.entry(stream);
                    tsns_reset.next_ssn = Ssn::default();
                    tsns_reset.next_mid = Default::default();
                }
            }
            None if reset => self.streams = StreamTable::default(),
            _ => {}
        }
        let Some(mut deferred) = self.deferred.take() else {
            return;
        };
        for (queue_id, queued) in deferred.end(streams) {
            self.behind -= queued.message.payload.len();
            self.messages -= 1;
            self.enqueue(queue_id, queued);
        }
        if deferred.holds_any() {
            self.deferred = Some(deferred);
        }
    }

    /// Removes and returns the deferred messages.
    pub(super) fn withdraw_held(&mut self) -> Vec<Unsent> {
        let Some(deferred) = &mut self.deferred else {
            return Vec::new();
        };
        let behind = deferred.take();
        self.messages -= behind.len();
        self.behind = 0;
        let unsent = |(queue_id, queued): (QueueId, Queued)| match queue_id {
            QueueId::Stream(stream) => queued.unsent(Some(stream)),
            QueueId::Unassigned => queued.unsent(None),
        };
        behind.into_iter().map(unsent).collect()
    }
}
