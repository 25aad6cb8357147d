//! Memory of a sender for unacknowledged data, and its limits against a misbehaving peer.
//!
//! Data reported by gap ack blocks is kept, because the receiver may renege on it (RFC 9260 §6.2.1
//! D). It is not in flight, so neither cwnd nor the peer's window limits the data after it. A peer
//! that reports everything and never advances the cumulative TSN could otherwise make the sender
//! buffer all of the user's data.

use super::Sender;
use crate::config::Config;

/// Overhead of a message or a chunk in flight, bytes: its record in a queue with a quarter of
/// unused capacity, and allocation blocks of a small payload.
const BESIDE_A_MESSAGE: usize = 192;

/// Further overhead of a message with PR-SCTP options while a part of it is in flight, bytes: its
/// limits and its TSNs.
const BESIDE_TERMS: usize = 384;

/// Maximum number of bytes sent and not cumulatively acknowledged.
///
/// If messages of many streams wait for one hole, the others are read and do not use the peer's
/// window. This limit then stops the sender, like the send buffer on Linux.
pub(super) fn most_unacknowledged(config: &Config) -> u64 {
    if !config.profile.unacknowledged_bounded {
        return u64::MAX;
    }
    config.send_buffer as u64 + 2 * u64::from(config.receive_buffer)
}

impl Sender {
    /// Memory used by messages until they are cumulatively acknowledged, bytes: user data queued
    /// and sent, and the overhead of each chunk and message.
    pub fn held(&self) -> usize {
        // These are counted like windows: the user data, or more.
        let waiting = usize::try_from(self.rwnd_in_flight + self.rwnd_marked);
        let sent = waiting.unwrap_or(usize::MAX / 2) + self.outstanding.gap_acked_bytes();
        let pieces = self.queue.messages() + self.outstanding.len();
        let terms = self.abandoning.as_ref().map_or(0, |it| it.messages());
        self.queue.bytes() + sent + pieces * BESIDE_A_MESSAGE + terms * BESIDE_TERMS
    }

    /// Memory of chunks that are neither in flight nor marked and not cumulatively acknowledged:
    /// reported by gap ack blocks, or abandoned.
    fn set_aside(&self) -> usize {
        let (reported, abandoned) = (self.outstanding.gap_acked(), self.outstanding.abandoned());
        let beside = (reported + abandoned) * BESIDE_A_MESSAGE + abandoned * BESIDE_TERMS;
        self.outstanding.gap_acked_bytes() + beside
    }

    /// The peer's last advertised window, limited by the memory that this side provides.
    pub(super) fn believed_window(&self) -> u64 {
        let most = self.most_unacknowledged;
        self.a_rwnd
            .min(most.saturating_sub(self.set_aside() as u64))
    }

    /// Whether that memory allows more data.
    pub(super) fn may_keep_more(&self) -> bool {
        (self.set_aside() as u64) < self.most_unacknowledged
    }
}
