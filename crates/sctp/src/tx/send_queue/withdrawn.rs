//! Removal of messages from the queue: unsent messages, and the remaining data of partly sent
//! messages.

use std::collections::VecDeque;

use crate::stream_scheduler::{Discipline, QueueId};

use super::{Fragment, Message, Queued, SendQueue, Started, Unsent};

impl Queued {
    /// Converts a message that was removed from the queue of `stream`.
    pub(super) fn unsent(self, stream: Option<u16>) -> Unsent {
        Unsent {
            stream,
            receipt: self.terms.and_then(|it| it.receipt),
            context: self.context,
            message: self.message,
        }
    }
}

impl Started {
    /// Fragment with the user data of the whole message, including the bytes already sent, and with
    /// the number of the next fragment.
    fn whole(self) -> Fragment {
        Fragment {
            stream: self.stream,
            ssn: self.ssn,
            mid: self.mid,
            fsn: self.fsn,
            ppid: self.message.ppid,
            unordered: self.message.unordered,
            beginning: self.untouched,
            ending: true,
            immediate: self.immediate,
            context: self.context,
            user_data: self.whole,
        }
    }
}

impl Unsent {
    /// Converts a complete message.
    pub fn of(whole: Fragment) -> Self {
        Self {
            stream: Some(whole.stream),
            message: Message {
                ppid: whole.ppid,
                unordered: whole.unordered,
                payload: whole.user_data,
            },
            context: whole.context,
            receipt: None,
        }
    }
}

/// Iterator over all unsent messages: first the messages of streams in scheduler order, then
/// deferred messages.
#[derive(Default)]
pub(in crate::tx) struct Unsents<'a> {
    queue: Option<&'a mut SendQueue>,
    /// Stream of the messages in `run`.
    stream: Option<u16>,
    /// Messages that were removed from the queue of one stream.
    run: VecDeque<Queued>,
    behind: std::vec::IntoIter<Unsent>,
    left: usize,
}

impl Iterator for Unsents<'_> {
    type Item = Unsent;

    #[inline]
    fn next(&mut self) -> Option<Unsent> {
        self.left = self.left.saturating_sub(1);
        loop {
            if let Some(queued) = self.run.pop_front() {
                return Some(queued.unsent(self.stream));
            }
            let queue = self.queue.as_mut();
            let Some((queue, queue_id)) =
                queue.and_then(|it| it.scheduler.pick().map(|queue_id| (it, queue_id)))
            else {
                return self.behind.next();
            };
            self.stream = match queue_id {
                QueueId::Stream(stream) => Some(stream),
                QueueId::Unassigned => None,
            };
            queue.take_run(queue_id, &mut self.run);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, None)
    }
}

impl SendQueue {
    /// Removes messages on streams from number `streams` on, which the peer did not accept.
    pub fn forget_streams_from(&mut self, streams: u16) -> Vec<Unsent> {
        let mut forgotten = Vec::new();
        for stream in self.scheduler.forget_from(streams) {
            let entry = self.streams.entry(stream);
            for queued in entry.messages.take_all() {
                let length = queued.message.payload.len();
                entry.bytes -= length;
                self.bytes -= length;
                forgotten.push(queued.unsent(Some(stream)));
            }
        }
        self.messages -= forgotten.len();
        self.requeue_paused();
        self.next = self.find_next();
        forgotten
    }

    /// Removes and returns all unsent messages.
    pub fn withdraw(&mut self) -> Vec<Unsent> {
        let mut withdrawn = self.forget_streams_from(0);
        for queued in self.unassigned.take().take_all() {
            self.bytes -= queued.message.payload.len();
            self.messages -= 1;
            withdrawn.push(queued.unsent(None));
        }
        withdrawn.extend(self.withdraw_held());
        self.scheduler.clear();
        self.requeue_paused();
        self.next = self.find_next();
        withdrawn
    }

    /// Removes all unsent messages, after the [partly sent messages](Self::take_started) were
    /// removed. The iterator must be exhausted.
    pub fn take_unsent(&mut self) -> Unsents<'_> {
        let behind = self.withdraw_held().into_iter();
        (self.bytes, self.next) = (0, 0);
        Unsents {
            left: std::mem::take(&mut self.messages) + behind.len(),
            queue: Some(self),
            stream: None,
            run: VecDeque::new(),
            behind,
        }
    }

    /// Takes one message of the queue `queue_id` if messages are sent in the order of queuing, else
    /// all messages of the queue.
    fn take_run(&mut self, queue_id: QueueId, run: &mut VecDeque<Queued>) {
        let (queue, bytes) = match queue_id {
            QueueId::Stream(stream) => {
                let entry = self.streams.entry(stream);
                (&mut entry.messages, &mut entry.bytes)
            }
            QueueId::Unassigned => (self.unassigned.make(), &mut 0),
        };
        if self.scheduler.goes_by_age() {
            let next = queue.pop_front();
            *bytes = bytes.saturating_sub(next.as_ref().map_or(0, |it| it.message.payload.len()));
            run.extend(next);
        } else {
            *run = queue.take_all();
            *bytes = 0;
        }
        let waiting = queue.len();
        self.scheduler.dropped(queue_id, 0, waiting);
    }

    /// Removes and returns all partly sent messages, each as a whole.
    pub fn take_started(&mut self) -> Vec<Fragment> {
        let mut all = Vec::new();
        if let Some(started) = self.started.take() {
            self.forget_rest(&started);
            all.push(started.whole());
            self.next = self.find_next();
        }
        for started in self.take_all_paused() {
            self.forget_rest(&started);
            all.push(started.whole());
        }
        all
    }

    fn forget_rest(&mut self, started: &Started) {
        let length = started.message.payload.len();
        self.bytes -= length;
        self.streams.entry(started.stream).bytes -= length;
        self.messages -= 1;
    }
}
