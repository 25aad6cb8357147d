//! Index of channels with pending work, so that a call only examines those.

use std::collections::BTreeSet;

use anabranch_transport::Nanos;

use super::Channels;
use super::one::State;

/// Bytes of a channel that should be queued in the association: enough that it never runs dry.
pub(super) const FEED: usize = 64 << 10;

/// Pending work of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// A message can be passed on: whether it is large, and its virtual finish time.
    pub turn: Option<(bool, u64)>,
    /// Time at which a queued message is abandoned.
    pub deadline: Option<Nanos>,
    /// Its stream should be reset.
    pub closing: bool,
    /// Size of its queue, bytes.
    pub held: usize,
}

/// Index of channels by pending work.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Channels that can pass on a message that fits a packet, and those with a large one, by
    /// virtual finish time.
    pub turns: [BTreeSet<(u64, u16)>; 2],
    pub aging: BTreeSet<(Nanos, u16)>,
    pub closing: BTreeSet<u16>,
    /// Channels of which the transport has sent data.
    pub sent: BTreeSet<u16>,
    /// Channels that the peer has not reset together with all others.
    pub unreset: BTreeSet<u16>,
    held: usize,
}

#[cfg(test)]
thread_local! {
    /// Number of channels examined.
    pub(super) static CHANNELS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Ready {
    /// Total size of all queues, bytes.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Replaces the registered work of a channel.
    fn change(&mut self, stream: u16, before: Listed, now: Listed) {
        if before.turn != now.turn {
            if let Some((large, finish)) = before.turn {
                self.turns[usize::from(large)].remove(&(finish, stream));
            }
            if let Some((large, finish)) = now.turn {
                self.turns[usize::from(large)].insert((finish, stream));
            }
        }
        if before.deadline != now.deadline {
            if let Some(deadline) = before.deadline {
                self.aging.remove(&(deadline, stream));
            }
            if let Some(deadline) = now.deadline {
                self.aging.insert((deadline, stream));
            }
        }
        match (before.closing, now.closing) {
            (true, false) => drop(self.closing.remove(&stream)),
            (false, true) => drop(self.closing.insert(stream)),
            _ => {}
        }
        self.held = self.held - before.held + now.held;
    }

    /// Removes a channel.
    pub(super) fn forget(&mut self, stream: u16, listed: Listed) {
        self.change(stream, listed, Listed::default());
        self.sent.remove(&stream);
        self.unreset.remove(&stream);
    }
}

impl Channels {
    /// Registers the pending work of the stream's channel. Must be called after each change of the
    /// channel.
    pub(super) fn list(&mut self, stream: u16) {
        #[cfg(test)]
        CHANNELS.set(CHANNELS.get() + 1);
        let Some(channel) = self.table.get_mut(&stream) else {
            return;
        };
        let closing = channel.state == State::Closing;
        if closing {
            self.line
                .leave(channel.id, std::mem::take(&mut channel.place));
        }
        let room = !channel.place.waits() && !channel.is_full(self.limits.max_buffered);
        if channel.asked && (closing || room) {
            channel.asked = false;
            if self.watched {
                self.relieved.insert(channel.id);
            }
        }
        let listed = channel.listing();
        let before = std::mem::replace(&mut channel.listed, listed);
        self.ready.change(stream, before, listed);
    }
}
