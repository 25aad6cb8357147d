//! Which channels have something to do, so that a call looks at no other.

use std::collections::BTreeSet;

use anabranch_transport::Nanos;

use super::Channels;
use super::one::State;

/// Bytes of a channel that wait in the association: enough that it never starves.
pub(super) const FEED: usize = 64 << 10;

/// What a channel has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// It may hand over a message: whether that is a large one, and when it would be finished.
    pub turn: Option<(bool, u64)>,
    /// When a message that waits is given up.
    pub deadline: Option<Nanos>,
    /// Its stream is to be reset.
    pub closing: bool,
    /// What its queue holds, bytes.
    pub held: usize,
}

/// The channels, by what they have to do.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Those that may hand over a message that fits a packet, and a large one: by when it would be finished.
    pub turns: [BTreeSet<(u64, u16)>; 2],
    pub aging: BTreeSet<(Nanos, u16)>,
    pub closing: BTreeSet<u16>,
    /// Of these the carrier has sent something.
    pub sent: BTreeSet<u16>,
    /// These the peer has not reset together with all others.
    pub unreset: BTreeSet<u16>,
    held: usize,
}

#[cfg(test)]
thread_local! {
    /// How many channels were looked at.
    pub(super) static CHANNELS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Ready {
    /// What the queues of all channels hold, bytes.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// What the channel has to do is something else now.
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

    /// The channel is gone.
    pub(super) fn forget(&mut self, stream: u16, listed: Listed) {
        self.change(stream, listed, Listed::default());
        self.sent.remove(&stream);
        self.unreset.remove(&stream);
    }
}

impl Channels {
    /// Lists what the channel of the stream has to do. To be called after each change of it.
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
