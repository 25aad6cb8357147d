//! Backpressure: queue space of a channel, and of all channels together, which waiting channels get
//! in order.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use super::one::{Channel, QUEUED, State};
use super::{Channels, Limits};
use crate::channel::ChannelId;

/// Time for which space is reserved for a channel: long for a task that was woken, short for one
/// that no longer wants to send.
const TURN: Nanos = 100 * MILLISECOND;

/// Channels that wait for space in the queues of all channels together.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Waiting channels, first in first out.
    waiting: BTreeMap<u64, ChannelId>,
    /// Channels with reserved space, and the end of the reservation.
    turns: BTreeSet<(Nanos, ChannelId)>,
    /// Total size of the reservations, bytes.
    reserved: usize,
    next: u64,
}

/// Position of a channel in the queue for space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Size of the refused message, bytes.
    refused: usize,
    /// Its queue number, until it gets space.
    ticket: Option<u64>,
    /// End of its reservation.
    turn: Option<Nanos>,
}

impl Place {
    /// Whether it is waiting without a reservation.
    pub(super) fn waits(&self) -> bool {
        self.ticket.is_some() && self.turn.is_none()
    }
}

impl Line {
    /// Removes the channel from its position.
    pub(super) fn leave(&mut self, id: ChannelId, place: Place) {
        if let Some(until) = place.turn {
            self.turns.remove(&(until, id));
            self.reserved -= place.refused + QUEUED;
        } else if let Some(ticket) = place.ticket {
            self.waiting.remove(&ticket);
        }
    }

    /// Whether a message of the channel is accepted when the queues hold `held` bytes. A channel
    /// without a reservation can only use space that is not reserved.
    pub(super) fn lets_in(&self, channel: &Channel, held: usize, limits: &Limits) -> bool {
        let most = limits.max_buffered_total;
        let alone = self.waiting.is_empty() && held + self.reserved < most;
        alone || channel.place.turn.is_some() && held < most
    }
}

impl Channels {
    /// Queues the channel for space of `refused` bytes, or returns it to its previous position.
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

    /// Grants reservations to the first waiting channels, as far as space is available. Unused
    /// reservations expire.
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

    /// End of the earliest reservation: [`Channels::pump`] should be called then if channels are
    /// waiting.
    pub fn deadline(&self) -> Option<Nanos> {
        let waits = !self.line.waiting.is_empty();
        let first = self.line.turns.first().filter(|_| waits);
        first.map(|&(until, _)| until)
    }

    /// Whether the channel would accept a message now, or never will.
    pub(crate) fn answers(&self, id: ChannelId) -> bool {
        self.get(id).is_none_or(|channel| {
            let room = self.line.lets_in(channel, self.ready.held(), &self.limits);
            let takes = room && !channel.is_full(self.limits.max_buffered);
            takes || channel.state == State::Closing
        })
    }

    /// Enables [`Channels::poll_relieved`], which must then be called after each call.
    pub(crate) fn watch(&mut self) {
        self.watched = true;
    }

    /// The next channel that became writable, or was closed, after a message was refused.
    pub(crate) fn poll_relieved(&mut self) -> Option<ChannelId> {
        self.relieved.pop_first()
    }
}
