//! Index of channels with pending work, so that a call examines only channels that have work.

use std::collections::BTreeSet;

use anabranch_transport::Nanos;

use super::Channels;
use super::channel_state::{PendingWork, State};

/// Index of channels by pending work.
#[derive(Debug, Default)]
pub(super) struct ReadySet {
    /// Streams by the virtual finish time of the first message: small first messages, and large
    /// ones.
    pub by_finish_time: [BTreeSet<(u64, u16)>; 2],
    pub by_deadline: BTreeSet<(Nanos, u16)>,
    pub closing: BTreeSet<u16>,
    /// Streams of which the transport has sent data.
    pub sent: BTreeSet<u16>,
    /// Streams that the peer has not reset by a request for all streams.
    pub unreset: BTreeSet<u16>,
    queued_bytes: usize,
}

#[cfg(test)]
thread_local! {
    /// Number of channels that were examined, for tests.
    pub(super) static CHANNELS_EXAMINED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl ReadySet {
    /// Total size of all queues, bytes.
    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Replaces the entries of a channel.
    fn change(&mut self, stream: u16, before: PendingWork, now: PendingWork) {
        if before.next_message != now.next_message {
            if let Some((large, finish)) = before.next_message {
                self.by_finish_time[usize::from(large)].remove(&(finish, stream));
            }
            if let Some((large, finish)) = now.next_message {
                self.by_finish_time[usize::from(large)].insert((finish, stream));
            }
        }
        if before.deadline != now.deadline {
            if let Some(deadline) = before.deadline {
                self.by_deadline.remove(&(deadline, stream));
            }
            if let Some(deadline) = now.deadline {
                self.by_deadline.insert((deadline, stream));
            }
        }
        match (before.closing, now.closing) {
            (true, false) => drop(self.closing.remove(&stream)),
            (false, true) => drop(self.closing.insert(stream)),
            _ => {}
        }
        self.queued_bytes = self.queued_bytes - before.queued_bytes + now.queued_bytes;
    }

    /// Removes the entries of a channel.
    pub(super) fn forget(&mut self, stream: u16, pending: PendingWork) {
        self.change(stream, pending, PendingWork::default());
        self.sent.remove(&stream);
        self.unreset.remove(&stream);
    }
}

impl Channels {
    /// Updates the entries of the stream's channel. Must be called after each change of the
    /// channel.
    pub(super) fn update_ready(&mut self, stream: u16) {
        #[cfg(test)]
        CHANNELS_EXAMINED.set(CHANNELS_EXAMINED.get() + 1);
        let Some(channel) = self.table.get_mut(&stream) else {
            return;
        };
        let closing = channel.state == State::Closing;
        if closing {
            self.space_queue
                .remove(channel.id, std::mem::take(&mut channel.space_request));
        }
        let room =
            !channel.space_request.is_waiting() && !channel.is_full(self.limits.max_buffered);
        if channel.was_refused && (closing || room) {
            channel.was_refused = false;
            if self.reports_writable {
                self.writable.insert(channel.id);
            }
        }
        let pending = channel.pending_work();
        let before = std::mem::replace(&mut channel.pending, pending);
        self.ready.change(stream, before, pending);
    }
}
