//! Backpressure: queue limits of each channel and of all channels together. Channels that wait for
//! space get it in order.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use super::channel::Channel;
use super::channel_state::{MESSAGE_OVERHEAD, SpaceRequest, State};
use super::{Channels, Limits};
use crate::channel::ChannelId;

/// Duration of a reservation of space: long enough for a task that was woken, and short if the task
/// no longer sends.
const RESERVATION_TIME: Nanos = 100 * MILLISECOND;

/// Channels that wait for space, because the queues of all channels together are full.
#[derive(Debug, Default)]
pub(super) struct SpaceQueue {
    /// Waiting channels, first in first out.
    waiting: BTreeMap<u64, ChannelId>,
    /// Channels for which space is reserved, with the end of the reservation.
    reservations: BTreeSet<(Nanos, ChannelId)>,
    /// Total size of the reservations, bytes.
    reserved: usize,
    next_ticket: u64,
}

impl SpaceQueue {
    /// Removes a channel from the queue, or cancels its reservation.
    pub(super) fn remove(&mut self, id: ChannelId, space_request: SpaceRequest) {
        if let Some(until) = space_request.reserved_until {
            self.reservations.remove(&(until, id));
            self.reserved -= space_request.size + MESSAGE_OVERHEAD;
        } else if let Some(ticket) = space_request.ticket {
            self.waiting.remove(&ticket);
        }
    }

    /// Whether a message of the channel is accepted when the queues hold `held` bytes. A channel
    /// without a reservation can only use space that is not reserved.
    pub(super) fn admits(&self, channel: &Channel, held: usize, limits: &Limits) -> bool {
        let most = limits.max_buffered_total;
        let alone = self.waiting.is_empty() && held + self.reserved < most;
        alone || channel.space_request.reserved_until.is_some() && held < most
    }
}

impl Channels {
    /// Queues the channel until there is space for a message of `size` bytes, or returns it to its
    /// previous position.
    pub(super) fn wait_for_space(&mut self, id: ChannelId, size: usize) {
        let Some(channel) = self.table.get_mut(&id.stream) else {
            return;
        };
        self.space_queue.remove(id, channel.space_request);
        let ticket = channel.space_request.ticket.unwrap_or_else(|| {
            self.space_queue.next_ticket += 1;
            self.space_queue.next_ticket
        });
        channel.was_refused = true;
        channel.space_request = SpaceRequest {
            size,
            ticket: Some(ticket),
            reserved_until: None,
        };
        self.space_queue.waiting.insert(ticket, id);
    }

    /// Reserves space for the first waiting channels while there is enough. Unused reservations
    /// expire.
    pub(super) fn grant_reservations(&mut self, now: Nanos) {
        while let Some(&(until, id)) = self.space_queue.reservations.first()
            && until <= now
            && let Some(channel) = self.table.get_mut(&id.stream)
        {
            self.space_queue
                .remove(id, std::mem::take(&mut channel.space_request));
        }
        let most = self.limits.max_buffered_total;
        while self.ready.queued_bytes() + self.space_queue.reserved < most
            && let Some((_, id)) = self.space_queue.waiting.pop_first()
            && let Some(channel) = self.table.get_mut(&id.stream)
        {
            let until = now.saturating_add(RESERVATION_TIME);
            channel.space_request.reserved_until = Some(until);
            self.space_queue.reservations.insert((until, id));
            self.space_queue.reserved += channel.space_request.size + MESSAGE_OVERHEAD;
            self.update_ready(id.stream);
        }
    }

    /// End of the earliest reservation. If channels are waiting, [`Channels::pump`] should be
    /// called at that time.
    pub fn deadline(&self) -> Option<Nanos> {
        let waits = !self.space_queue.waiting.is_empty();
        let first = self.space_queue.reservations.first().filter(|_| waits);
        first.map(|&(until, _)| until)
    }

    /// Whether the channel accepts a message now, or is closed.
    pub(crate) fn is_writable_or_closed(&self, id: ChannelId) -> bool {
        self.get(id).is_none_or(|channel| {
            let room = self
                .space_queue
                .admits(channel, self.ready.queued_bytes(), &self.limits);
            let takes = room && !channel.is_full(self.limits.max_buffered);
            takes || channel.state == State::Closing
        })
    }

    /// Enables [`Channels::poll_writable`], which must then be called after every call of another
    /// method.
    pub(crate) fn report_writable(&mut self) {
        self.reports_writable = true;
    }

    /// The next channel that became writable after a message was refused, or that was closed.
    pub(crate) fn poll_writable(&mut self) -> Option<ChannelId> {
        self.writable.pop_first()
    }
}
