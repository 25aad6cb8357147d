//! One channel.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::handed::{Handed, large};
use super::line::Place;
use super::ready::{FEED, Listed};
use crate::channel::{ChannelId, ChannelOptions, Payload, Reliability, ppid};
use crate::dcep::Dcep;

/// What a message that waits holds beside its payload, about, bytes.
pub(super) const QUEUED: usize = 64;

/// A message that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) ppid: u32,
    pub(super) payload: Bytes,
    /// Bytes of it that `bufferedAmount` counts.
    counted: usize,
    /// When it is given up.
    deadline: Option<Nanos>,
}

#[cfg(test)]
thread_local! {
    /// How many waiting messages were looked at.
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

    /// When it is given up.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.deadline
    }

    /// What it counts as a large message.
    pub(super) fn large(&self) -> usize {
        large(self.payload.len())
    }
}

/// What is known of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The peer has not said that it knows it.
    Opening,
    /// Both ends know it.
    Open,
    /// It is to be closed.
    Closing,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) options: ChannelOptions,
    pub(super) state: State,
    /// What the carrier has not got.
    pub(super) queue: VecDeque<Queued>,
    /// Bytes of it that count.
    pub(super) queued: usize,
    /// What the carrier has.
    pub(super) handed: Handed,
    /// The carrier knows its weight.
    pub(super) weighed: bool,
    /// The low mark.
    pub(super) low: usize,
    /// Weighted fair queueing: when the last message was finished, in bytes of a channel of weight 1.
    pub(super) finish: u64,
    /// Messages that were given up.
    pub(super) abandoned: u64,
    /// Bytes of label and protocol, where the peer named them.
    pub(super) names: usize,
    /// A message was refused for want of room.
    pub(super) asked: bool,
    /// Where it stands in the line for room in all queues together.
    pub(super) place: Place,
    /// What it has to do, as it is listed.
    pub(super) listed: Listed,
    /// The carrier would not reset the stream.
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

    /// Whether no more messages are taken. Empty ones count by what they hold.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.queued >= most || self.queue.len() >= most / QUEUED
    }

    /// What there is to do.
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

    /// Where the first message is that may be given up. A DATA_CHANNEL_OPEN or its answer stays, in front of them. A channel has one of
    /// these, which is its first message.
    fn first_data(&self) -> usize {
        usize::from(self.queue.front().is_some_and(|it| it.ppid == ppid::DCEP))
    }

    /// The first message was handed over; gives what it counts as a large one.
    pub(super) fn hand_first(&mut self) -> usize {
        let Some(first) = self.queue.pop_front() else {
            return 0;
        };
        self.queued -= first.counted;
        self.handed.push(first.payload.len(), first.counted > 0);
        first.large()
    }

    /// When a message that is given at `now` is given up.
    pub(super) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.options.reliability {
            Reliability::MaxLifetime(span) => Some(now + u64::from(span) * MILLISECOND),
            _ => None,
        }
    }

    /// Gives up the messages whose time is over and that were not handed over. Those are the first: all live equally long.
    /// Returns how many.
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

    /// Whether `bufferedAmount`, which was `before`, fell to the low mark.
    pub(super) fn fell_to_low(&self, before: usize) -> bool {
        before > self.low && self.buffered() <= self.low
    }

    /// Its share beside others (RFC 8831 §6.4). A priority of 0 is served as 1.
    pub(super) fn weight(&self) -> u16 {
        self.options.priority.max(1)
    }

    /// When `next` would be finished.
    pub(super) fn finish_of(&self, next: &Queued) -> u64 {
        let weight = u64::from(self.weight());
        // 65,536: whole numbers for any weight, and a message costs something however short it is.
        self.finish + (next.payload.len() as u64 + 1) * 65_536 / weight
    }
}
