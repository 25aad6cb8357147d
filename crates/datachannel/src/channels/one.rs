//! A single channel.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::handed::{Handed, large};
use super::line::Place;
use super::ready::{FEED, Listed};
use crate::channel::{ChannelId, ChannelOptions, Payload, Reliability, ppid};
use crate::dcep::Dcep;

/// Approximate memory of a queued message besides its payload, bytes.
pub(super) const QUEUED: usize = 64;

/// A queued message.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) ppid: u32,
    pub(super) payload: Bytes,
    /// Its bytes counted by `bufferedAmount`.
    counted: usize,
    /// Time at which it is abandoned.
    deadline: Option<Nanos>,
}

#[cfg(test)]
thread_local! {
    /// Number of queued messages examined.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Queued {
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

    /// Time at which it is abandoned.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.deadline
    }

    /// Size with which it counts as a large message.
    pub(super) fn large(&self) -> usize {
        large(self.payload.len())
    }
}

/// State of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The peer has not acknowledged it.
    Opening,
    /// Both ends know it.
    Open,
    /// It is being closed.
    Closing,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) options: ChannelOptions,
    pub(super) state: State,
    /// Messages not yet passed to the transport.
    pub(super) queue: VecDeque<Queued>,
    /// Bytes of these that `bufferedAmount` counts.
    pub(super) queued: usize,
    /// Messages in the transport.
    pub(super) handed: Handed,
    /// The transport knows its weight.
    pub(super) weighed: bool,
    /// The low threshold.
    pub(super) low: usize,
    /// Weighted fair queueing: virtual finish time of the last message, in bytes of a channel of
    /// weight 1.
    pub(super) finish: u64,
    /// Number of abandoned messages.
    pub(super) abandoned: u64,
    /// Bytes of label and protocol, if the peer chose them.
    pub(super) names: usize,
    /// A message was refused because the queue was full.
    pub(super) asked: bool,
    /// Position in the queue for space of all channels.
    pub(super) place: Place,
    /// Pending work as registered in the index.
    pub(super) listed: Listed,
    /// The transport did not reset the stream.
    pub(super) reset_refused: bool,
    pub(super) reset_asked: bool,
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
            handed: Handed::default(),
            weighed: false,
            low: 0,
            finish: served,
            abandoned: 0,
            names: 0,
            asked: false,
            place: Place::default(),
            listed: Listed::default(),
            reset_refused: false,
            reset_asked: false,
            reset_out: false,
            reset_in: false,
        }
    }

    pub(super) fn push(&mut self, queued: Queued) {
        self.queued += queued.counted;
        self.queue.push_back(queued);
    }

    /// Whether the queue is full. Empty messages count with their memory.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.queued >= most || self.queue.len() >= most / QUEUED
    }

    /// Its pending work.
    pub(super) fn listing(&self) -> Listed {
        let first = self.queue.front();
        let due = first.filter(|_| self.handed.left() < FEED);
        let aging = self.queue.get(self.first_data());
        let quiet = self.queue.is_empty() && (!self.reset_refused || self.handed.is_empty());
        Listed {
            turn: due.map(|it| (it.large() > 0, self.finish_of(it))),
            deadline: aging.and_then(Queued::deadline),
            closing: self.state == State::Closing && !self.reset_asked && quiet,
            held: self.queued + QUEUED * self.queue.len(),
        }
    }

    /// Index of the first message that may be abandoned. A DATA_CHANNEL_OPEN or DATA_CHANNEL_ACK
    /// stays; a channel has at most one of these, as its first message.
    fn first_data(&self) -> usize {
        usize::from(self.queue.front().is_some_and(|it| it.ppid == ppid::DCEP))
    }

    /// Removes the first message, which was passed on; returns its size as a large one.
    pub(super) fn hand_first(&mut self) -> usize {
        let Some(first) = self.queue.pop_front() else {
            return 0;
        };
        self.queued -= first.counted;
        self.handed.push(first.payload.len(), first.counted > 0);
        first.large()
    }

    /// Time at which a message that is queued at `now` is abandoned.
    pub(super) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.options.reliability {
            Reliability::MaxLifetime(span) => Some(now + u64::from(span) * MILLISECOND),
            _ => None,
        }
    }

    /// Abandons expired queued messages; returns their number. These are the first ones, because
    /// all messages have the same lifetime.
    pub(super) fn abandon(&mut self, now: Nanos) -> u64 {
        let over = |queued: &Queued| queued.deadline().is_some_and(|deadline| deadline <= now);
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
        self.queued + self.handed.counted()
    }

    /// Whether `bufferedAmount`, which was `before`, fell to the low threshold.
    pub(super) fn fell_to_low(&self, before: usize) -> bool {
        before > self.low && self.buffered() <= self.low
    }

    /// Weight relative to other channels (RFC 8831 §6.4). A priority of 0 counts as 1.
    pub(super) fn weight(&self) -> u16 {
        self.options.priority.max(1)
    }

    /// Virtual finish time of `next`.
    pub(super) fn finish_of(&self, next: &Queued) -> u64 {
        let weight = u64::from(self.weight());
        // 65,536: integers for any weight, and each message costs something even if it is empty.
        self.finish + (next.payload.len() as u64 + 1) * 65_536 / weight
    }
}
