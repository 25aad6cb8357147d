//! Streams whose DATA_CHANNEL_OPEN was refused or invalid: the stream is reset to notify the peer
//! (RFC 8832 §6).
//!
//! A refused stream stays in this table until both ends have reset it, and no channel is opened on
//! the stream until then. Each stream has at most one entry of a few bytes and one pending reset,
//! regardless of the number of messages that the peer sends.

use std::collections::{BTreeMap, BTreeSet};

use super::Channels;
use super::channel_state::State;
use crate::discard::DiscardReason;
use crate::sctp_transport::SctpTransport;

/// Reset state of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Resets {
    requested: bool,
    out: bool,
    r#in: bool,
}

/// Streams whose DATA_CHANNEL_OPEN was refused, until both ends have reset them.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    streams: BTreeMap<u16, Resets>,
    /// Streams whose reset still has to be requested from the transport.
    due: BTreeSet<u16>,
}

impl Refusals {
    pub(super) fn contains(&self, stream: u16) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Streams that the peer has not reset yet.
    pub(super) fn unreset(&self) -> impl Iterator<Item = u16> + '_ {
        let unreset = self.streams.iter().filter(|(_, resets)| !resets.r#in);
        unreset.map(|(&stream, _)| stream)
    }

    fn add(&mut self, stream: u16) {
        if !self.contains(stream) {
            self.streams.insert(stream, Resets::default());
            self.due.insert(stream);
        }
    }

    pub(super) fn forget(&mut self, stream: u16) {
        self.streams.remove(&stream);
        self.due.remove(&stream);
    }

    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.due.clear();
    }

    /// Called when the peer has reset the stream.
    pub(super) fn handle_reset(&mut self, stream: u16) {
        self.change(stream, |resets| resets.r#in = true);
    }

    /// Called when the peer has performed this end's reset.
    pub(super) fn handle_reset_done(&mut self, stream: u16) {
        self.change(stream, |resets| resets.out = resets.requested);
    }

    /// Called when the peer uses the stream again. If it has reset the stream before, it has also
    /// performed this end's reset, even if its response was lost.
    pub(super) fn reopen(&mut self, stream: u16) {
        if self.streams.get(&stream).is_some_and(|it| it.r#in) {
            self.handle_reset_done(stream);
        }
    }

    fn change(&mut self, stream: u16, change: impl FnOnce(&mut Resets)) {
        if let Some(resets) = self.streams.get_mut(&stream) {
            change(resets);
            if resets.out && resets.r#in {
                self.forget(stream);
            }
        }
    }
}

impl Channels {
    /// Refuses a DATA_CHANNEL_OPEN: closes the channel of the stream, or resets a stream without
    /// one. No DATA_CHANNEL_ACK is sent.
    pub(super) fn refuse(&mut self, stream: u16, reason: DiscardReason) {
        self.discards.count(reason);
        match self.table.get_mut(&stream) {
            Some(channel) => {
                channel.state = State::Closing;
                self.update_ready(stream);
            }
            // No reset is requested, because the peer has denied one before.
            None if self.unusable.contains(&stream) => {}
            None => self.refused.add(stream),
        }
    }

    /// Requests the resets of refused streams from the transport. A stream that cannot be reset is
    /// removed, because the peer cannot be notified.
    pub(super) fn reset_refused(&mut self, transport: &mut impl SctpTransport) {
        if self.streams.is_none() {
            return;
        }
        while let Some(stream) = self.refused.due.pop_first() {
            match transport.reset(stream) {
                Ok(()) => self
                    .refused
                    .change(stream, |resets| resets.requested = true),
                Err(_) => self.refused.forget(stream),
            }
        }
    }
}
