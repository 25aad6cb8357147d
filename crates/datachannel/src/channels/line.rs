//! Room for messages: in the queue of a channel, and in all queues together, where those who find none have it in turn.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use super::one::{Channel, QUEUED, State};
use super::{Channels, Limits};
use crate::channel::ChannelId;

/// So long room is kept for a channel whose turn it is: for a task that was woken much, for one that no longer wants to send little.
const TURN: Nanos = 100 * MILLISECOND;

/// Channels that wait for room in all queues together.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The first first.
    waiting: BTreeMap<u64, ChannelId>,
    /// Those whose turn it is, and until when.
    turns: BTreeSet<(Nanos, ChannelId)>,
    /// Bytes that are kept for these.
    reserved: usize,
    next: u64,
}

/// Where a channel stands in the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The bytes that were refused.
    refused: usize,
    /// Its number, until it got room.
    ticket: Option<u64>,
    /// It is its turn until then.
    turn: Option<Nanos>,
}

impl Place {
    /// Whether it stands in the line, and it is not its turn.
    pub(super) fn waits(&self) -> bool {
        self.ticket.is_some() && self.turn.is_none()
    }
}

impl Line {
    /// The channel stands in the line no longer, or not where it stood.
    pub(super) fn leave(&mut self, id: ChannelId, place: Place) {
        if let Some(until) = place.turn {
            self.turns.remove(&(until, id));
            self.reserved -= place.refused + QUEUED;
        } else if let Some(ticket) = place.ticket {
            self.waiting.remove(&ticket);
        }
    }

    /// Whether a message of the channel is taken, where the queues hold `held` bytes. Whose turn it is not has no more room than what
    /// is kept for nobody.
    pub(super) fn lets_in(&self, channel: &Channel, held: usize, limits: &Limits) -> bool {
        let most = limits.max_buffered_total;
        let alone = self.waiting.is_empty() && held + self.reserved < most;
        alone || channel.place.turn.is_some() && held < most
    }
}

impl Channels {
    /// The channel waits for room for so many bytes from now on, or goes back to where it stood.
    pub(super) fn queue_up(&mut self, id: ChannelId, refused: usize) {
        let Some(channel) = self.table.get_mut(&id.stream) else {
            return;
        };
        self.line.leave(id, channel.place);
        let ticket = channel.place.ticket.unwrap_or_else(|| {
            self.line.next += 1;
            self.line.next
        });
        channel.asked = true;
        channel.place = Place {
            refused,
            ticket: Some(ticket),
            turn: None,
        };
        self.line.waiting.insert(ticket, id);
    }

    /// It is the turn of the first who wait, as many as there is room for. One that has not used it in time loses it.
    pub(super) fn take_turns(&mut self, now: Nanos) {
        while let Some(&(until, id)) = self.line.turns.first()
            && until <= now
            && let Some(channel) = self.table.get_mut(&id.stream)
        {
            self.line.leave(id, std::mem::take(&mut channel.place));
        }
        let most = self.limits.max_buffered_total;
        while self.ready.held() + self.line.reserved < most
            && let Some((_, id)) = self.line.waiting.pop_first()
            && let Some(channel) = self.table.get_mut(&id.stream)
        {
            let until = now.saturating_add(TURN);
            channel.place.turn = Some(until);
            self.line.turns.insert((until, id));
            self.line.reserved += channel.place.refused + QUEUED;
            self.list(id.stream);
        }
    }

    /// When somebody's turn is over: [`Channels::pump`] is to be called then, if anybody waits.
    pub fn deadline(&self) -> Option<Nanos> {
        let waits = !self.line.waiting.is_empty();
        let first = self.line.turns.first().filter(|_| waits);
        first.map(|&(until, _)| until)
    }

    /// Whether a message of the channel would be taken now, or never.
    pub(crate) fn answers(&self, id: ChannelId) -> bool {
        self.get(id).is_none_or(|channel| {
            let room = self.line.lets_in(channel, self.ready.held(), &self.limits);
            let takes = room && !channel.is_full(self.limits.max_buffered);
            takes || channel.state == State::Closing
        })
    }

    /// From now on [`Channels::poll_relieved`] is called after each call.
    pub(crate) fn watch(&mut self) {
        self.watched = true;
    }

    /// The next channel of which a message was refused, and which may take it now or takes no more.
    pub(crate) fn poll_relieved(&mut self) -> Option<ChannelId> {
        self.relieved.pop_first()
    }
}
