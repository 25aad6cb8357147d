//! A single channel.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::channel_state::{MESSAGE_OVERHEAD, PendingWork, SpaceRequest, State};
use super::in_flight::{InFlight, large};
use crate::channel::{ChannelId, ChannelOptions, Payload, Reliability, ppid};
use crate::dcep::Dcep;

/// Number of bytes of a channel that should be queued in the association, so that it always has
/// data to send.
const TARGET_IN_FLIGHT: usize = 64 << 10;

/// A queued message.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) ppid: u32,
    pub(super) payload: Bytes,
    /// Number of bytes that `bufferedAmount` counts for the message.
    counted: usize,
    /// Time at which the message is abandoned.
    deadline: Option<Nanos>,
}

#[cfg(test)]
thread_local! {
    /// Number of queued messages that were examined, for tests.
    pub(super) static MESSAGES_EXAMINED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl QueuedMessage {
    pub(super) fn control(message: &Dcep) -> Self {
        Self {
            ppid: ppid::DCEP,
            payload: message.encode(),
            counted: 0,
            deadline: None,
        }
    }

    pub(super) fn data(payload: Payload, deadline: Option<Nanos>) -> Self {
        let counted = payload.len();
        let (ppid, payload) = payload.into_wire();
        Self {
            ppid,
            payload,
            counted,
            deadline,
        }
    }

    /// Time at which the message is abandoned.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        #[cfg(test)]
        MESSAGES_EXAMINED.set(MESSAGES_EXAMINED.get() + 1);
        self.deadline
    }

    /// Size of the message if it counts as large, bytes; otherwise 0.
    pub(super) fn large(&self) -> usize {
        large(self.payload.len())
    }
}

/// State of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) options: ChannelOptions,
    pub(super) state: State,
    /// Messages that were not passed to the transport yet.
    pub(super) queue: VecDeque<QueuedMessage>,
    /// Number of bytes in `queue` that `bufferedAmount` counts.
    pub(super) queued: usize,
    /// Messages that the transport has not sent completely.
    pub(super) in_flight: InFlight,
    /// True after the weight was passed to the transport.
    pub(super) weight_set: bool,
    /// Low threshold of `bufferedAmount`, bytes.
    pub(super) low: usize,
    /// Weighted fair queueing: virtual finish time of the last message, in bytes of a channel of
    /// weight 1.
    pub(super) finish: u64,
    /// Number of messages that were abandoned.
    pub(super) abandoned: u64,
    /// Total size of label and protocol if the peer chose them, bytes; otherwise 0.
    pub(super) names: usize,
    /// True if a message was refused because the queue was full.
    pub(super) was_refused: bool,
    /// Position in the queue of channels that wait for space.
    pub(super) space_request: SpaceRequest,
    /// Pending work that the index of channels contains.
    pub(super) pending: PendingWork,
    /// True if the stream could not be reset.
    pub(super) reset_refused: bool,
    pub(super) reset_requested: bool,
    pub(super) reset_out: bool,
    pub(super) reset_in: bool,
}

impl Channel {
    pub(super) fn new(id: ChannelId, options: ChannelOptions, served: u64) -> Self {
        Self {
            id,
            options,
            state: State::Opening,
            queue: VecDeque::new(),
            queued: 0,
            in_flight: InFlight::default(),
            weight_set: false,
            low: 0,
            finish: served,
            abandoned: 0,
            names: 0,
            was_refused: false,
            space_request: SpaceRequest::default(),
            pending: PendingWork::default(),
            reset_refused: false,
            reset_requested: false,
            reset_out: false,
            reset_in: false,
        }
    }

    pub(super) fn push(&mut self, queued: QueuedMessage) {
        self.queued += queued.counted;
        self.queue.push_back(queued);
    }

    /// Whether the queue is full. Empty messages count too, because each uses memory.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.queued >= most || self.queue.len() >= most / MESSAGE_OVERHEAD
    }

    /// Pending work.
    pub(super) fn pending_work(&self) -> PendingWork {
        let first = self.queue.front();
        let due = first.filter(|_| self.in_flight.unsent() < TARGET_IN_FLIGHT);
        let aging = self.queue.get(self.first_data());
        let quiet = self.queue.is_empty() && (!self.reset_refused || self.in_flight.is_empty());
        PendingWork {
            next_message: due.map(|it| (it.large() > 0, self.finish_of(it))),
            deadline: aging.and_then(QueuedMessage::deadline),
            closing: self.state == State::Closing && !self.reset_requested && quiet,
            queued_bytes: self.queued + MESSAGE_OVERHEAD * self.queue.len(),
        }
    }

    /// Index of the first message that may be abandoned. DATA_CHANNEL_OPEN and DATA_CHANNEL_ACK
    /// must not be; a channel has at most one of these, as its first message.
    fn first_data(&self) -> usize {
        usize::from(self.queue.front().is_some_and(|it| it.ppid == ppid::DCEP))
    }

    /// Removes the first message after it was passed to the transport. Returns its size if it
    /// counts as large; otherwise 0.
    pub(super) fn move_first_to_transport(&mut self) -> usize {
        let Some(first) = self.queue.pop_front() else {
            return 0;
        };
        self.queued -= first.counted;
        self.in_flight.push(first.payload.len(), first.counted > 0);
        first.large()
    }

    /// Time at which a message that is queued at `now` is abandoned.
    pub(super) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.options.reliability {
            Reliability::MaxLifetime(span) => Some(now + u64::from(span) * MILLISECOND),
            _ => None,
        }
    }

    /// Abandons expired queued messages; returns their number. Expired messages are at the front of
    /// the queue, because all messages have the same lifetime.
    pub(super) fn abandon(&mut self, now: Nanos) -> u64 {
        let over =
            |queued: &QueuedMessage| queued.deadline().is_some_and(|deadline| deadline <= now);
        let at = self.first_data();
        let before = self.abandoned;
        while self.queue.get(at).is_some_and(over)
            && let Some(queued) = self.queue.remove(at)
        {
            self.queued -= queued.counted;
            self.abandoned += 1;
        }
        self.abandoned - before
    }

    pub(super) fn drop_queue(&mut self) {
        self.queue.clear();
        self.queued = 0;
    }

    pub(super) fn buffered(&self) -> usize {
        self.queued + self.in_flight.counted_unsent()
    }

    /// Whether `bufferedAmount`, which was `before`, has fallen to the low threshold.
    pub(super) fn fell_to_low(&self, before: usize) -> bool {
        before > self.low && self.buffered() <= self.low
    }

    /// Weight relative to other channels (RFC 8831 §6.4). A priority of 0 counts as 1.
    pub(super) fn weight(&self) -> u16 {
        self.options.priority.max(1)
    }

    /// Virtual finish time of `next`.
    pub(super) fn finish_of(&self, next: &QueuedMessage) -> u64 {
        let weight = u64::from(self.weight());
        // Scaled by 65,536, so that the quotient is at least 1 for any weight, even for an empty
        // message.
        self.finish + (next.payload.len() as u64 + 1) * 65_536 / weight
    }
}
