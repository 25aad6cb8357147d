//! Interleaving in the send queue: messages in progress on several streams at the same time, one on
//! each stream (RFC 8260 §2.2.2).

use std::collections::BTreeMap;

use anabranch_wire::serial::Fsn;

use super::{Fragment, Queued, SendQueue, Started};
use crate::shrinking_queue::Queue;
use crate::stream_scheduler::{Discipline, QueueId, ServedData};

/// Paused messages that are partly sent, by stream.
#[derive(Debug, Default)]
pub(super) struct Paused(BTreeMap<u16, Started>);

/// Maximum number of attempts to find a stream without a message in progress, for a message that
/// was queued without a stream.
const MAX_TRIES: usize = 8;

impl SendQueue {
    /// Sets whether messages are interleaved. Has no effect while a message is in progress.
    pub fn set_interleaving(&mut self, on: bool) {
        let idle = self.started.is_none() && self.paused.as_ref().is_none_or(|it| it.0.is_empty());
        if idle {
            self.paused = on.then(Box::default);
            self.next = self.find_next();
        }
    }

    /// Paused message of the queue `queue_id`.
    #[inline]
    pub(super) fn paused_of(&self, queue_id: QueueId) -> Option<&Started> {
        let paused = self.paused.as_ref()?;
        match queue_id {
            QueueId::Stream(stream) => paused.0.get(&stream),
            QueueId::Unassigned => None,
        }
    }

    /// Number of paused messages of a queue: 0 or 1.
    #[inline]
    pub(super) fn paused_at(&self, queue_id: QueueId) -> usize {
        usize::from(self.paused_of(queue_id).is_some())
    }

    /// Adds paused messages to the scheduler again, after all queues were removed from it.
    pub(super) fn requeue_paused(&mut self) {
        let Some(paused) = &self.paused else {
            return;
        };
        let known = self.scheduler.queues();
        for &stream in paused.0.keys() {
            if !known.contains(&QueueId::Stream(stream)) {
                self.scheduler.queued(QueueId::Stream(stream), 1);
            }
        }
    }

    /// Like [`SendQueue::pop`], for the stream selected by the scheduler.
    #[cold]
    pub(super) fn pop_interleaved(
        &mut self,
        most: usize,
        mut any: impl FnMut() -> u16,
    ) -> Option<Fragment> {
        let (queue_id, mut started) = loop {
            let queue_id = self.scheduler.pick()?;
            if let Some(started) = self.take_paused(queue_id) {
                break (queue_id, started);
            }
            let stream = match queue_id {
                QueueId::Stream(stream) => Some(stream),
                QueueId::Unassigned => (0..MAX_TRIES).map(|_| any()).find(|it| !self.is_busy(*it)),
            };
            match stream {
                Some(stream) => break (queue_id, self.begin(queue_id, stream)?),
                None => self.queue_behind(any()),
            }
        };
        let stream = started.stream;
        let left = &mut started.message.payload;
        let user_data = left.split_to(left.len().min(most));
        let ending = left.is_empty();
        if started.untouched && started.terms.is_some() {
            self.begun.clone_from(&started.terms);
        }
        let fragment = Fragment {
            stream,
            ssn: started.ssn,
            mid: started.mid,
            fsn: started.fsn,
            ppid: started.message.ppid,
            unordered: started.message.unordered,
            beginning: std::mem::take(&mut started.untouched),
            ending,
            immediate: ending && started.immediate,
            context: started.context,
            user_data,
        };
        started.fsn = Fsn(started.fsn.0.wrapping_add(1));
        self.bytes -= fragment.user_data.len();
        self.streams.entry(stream).bytes -= fragment.user_data.len();
        if ending {
            self.ended = started.receipt();
            self.whole = started.whole;
            self.messages -= 1;
        } else if let Some(paused) = &mut self.paused {
            paused.0.insert(stream, started);
        }
        self.serve(queue_id, stream, fragment.user_data.len(), ending);
        self.next = self.find_next();
        Some(fragment)
    }

    /// Removes and returns all paused messages when the association ends; their streams stay in the
    /// scheduler.
    pub(super) fn take_all_paused(&mut self) -> Vec<Started> {
        let paused = self.paused.as_mut().map(|it| std::mem::take(&mut it.0));
        let all = paused.into_iter().flatten().map(|(_, started)| started);
        all.collect()
    }

    fn take_paused(&mut self, queue_id: QueueId) -> Option<Started> {
        match (queue_id, &mut self.paused) {
            (QueueId::Stream(stream), Some(paused)) => paused.0.remove(&stream),
            _ => None,
        }
    }

    /// Starts the next message of the queue `queue_id`.
    fn begin(&mut self, queue_id: QueueId, stream: u16) -> Option<Started> {
        let queue = match queue_id {
            QueueId::Stream(stream) => &mut self.streams.entry(stream).messages,
            QueueId::Unassigned => self.unassigned.make(),
        };
        let Queued {
            message,
            immediate,
            context,
            terms,
            route,
        } = queue.pop_front()?;
        let terms = terms.map(|terms| Box::new((*terms, message.payload.clone())));
        let entry = self.streams.entry(stream);
        if queue_id == QueueId::Unassigned {
            entry.bytes += message.payload.len();
        }
        let (ssn, mid) = entry.number(message.unordered);
        Some(Started {
            stream,
            ssn,
            mid,
            fsn: Fsn(0),
            whole: message.payload.clone(),
            message,
            immediate,
            context,
            untouched: true,
            terms,
            route,
        })
    }

    /// Reports to the scheduler that `bytes` bytes of a message of `stream` were taken, after the
    /// scheduler has selected the message's queue `queue_id`.
    fn serve(&mut self, queue_id: QueueId, stream: u16, bytes: usize, ended: bool) {
        let of_stream = |queue: &Self| {
            let waiting = queue.streams.get(stream).map_or(0, |it| it.messages.len());
            waiting + queue.paused_at(QueueId::Stream(stream))
        };
        let unassigned = queue_id == QueueId::Unassigned;
        let waiting = if unassigned {
            self.unassigned.len()
        } else {
            of_stream(self)
        };
        self.scheduler.served(ServedData {
            queue_id,
            bytes,
            // A message queued without a stream leaves its queue now, because its remaining
            // fragments are queued under the assigned stream.
            ended: ended || unassigned,
            waiting,
        });
        if unassigned && !ended {
            self.scheduler
                .queued(QueueId::Stream(stream), of_stream(self));
        }
    }

    /// Whether a message of this stream is partly sent.
    fn is_busy(&self, stream: u16) -> bool {
        self.paused_at(QueueId::Stream(stream)) > 0
    }

    /// Moves the next message without a stream to the queue of this stream, after the message in
    /// progress there.
    fn queue_behind(&mut self, stream: u16) {
        let Some(queued) = self.unassigned.change(Queue::pop_front).flatten() else {
            return;
        };
        self.scheduler.served(ServedData {
            queue_id: QueueId::Unassigned,
            bytes: 0,
            ended: true,
            waiting: self.unassigned.len(),
        });
        let entry = self.streams.entry(stream);
        entry.bytes += queued.message.payload.len();
        let queue = &mut entry.messages;
        queue.push_back(queued);
        let waiting = queue.len();
        let waiting = waiting + self.paused_at(QueueId::Stream(stream));
        self.scheduler.queued(QueueId::Stream(stream), waiting);
    }

    /// Drops the remaining data of the partly sent message of `stream`.
    pub(super) fn drop_paused(&mut self, stream: u16) {
        let queue_id = QueueId::Stream(stream);
        let Some(started) = self.take_paused(queue_id) else {
            return;
        };
        self.bytes -= started.message.payload.len();
        self.streams.entry(stream).bytes -= started.message.payload.len();
        self.messages -= 1;
        let waiting = self.streams.get(stream).map_or(0, |it| it.messages.len());
        self.scheduler.dropped(queue_id, 0, waiting);
        self.next = self.find_next();
    }
}
