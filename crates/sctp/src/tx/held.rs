//! What a sender keeps for its peer: memory, and how far the peer's word may make it grow.
//!
//! What a Gap Ack Block reports is kept, since the receiver may drop it and want it again (RFC 9260 §6.2.1 D). It is in flight no longer, so
//! neither cwnd nor the peer's window holds back what follows it: a peer that reports all and never moves the cumulative point would be
//! sent, and have kept for it, whatever the user has.

use super::Sender;
use crate::config::Config;

/// Bytes that a message or a chunk in flight holds beside its user data: its record in a queue that has room for a quarter more, and
/// the blocks that a small payload was allocated as.
const BESIDE_A_MESSAGE: usize = 192;

/// Bytes that a message with terms holds beside that while a part of it is in flight: when it is given up, and which its TSNs are.
const BESIDE_TERMS: usize = 384;

/// Bytes that are sent and not cumulatively acknowledged at most.
///
/// Where messages of many streams wait for one hole, the others are read and take nothing of the peer's window: then this is what a sender
/// stops at, as Linux does at its send buffer.
pub(super) fn most_unacknowledged(config: &Config) -> u64 {
    if !config.profile.unacknowledged_bounded {
        return u64::MAX;
    }
    config.send_buffer as u64 + 2 * u64::from(config.receive_buffer)
}

impl Sender {
    /// Memory that messages hold until they are cumulatively acknowledged, bytes: user data queued and sent, and what is kept beside each
    /// chunk and message.
    pub fn held(&self) -> usize {
        // Those are counted as windows count them: the user data, or more.
        let waiting = usize::try_from(self.rwnd_in_flight + self.rwnd_marked);
        let sent = waiting.unwrap_or(usize::MAX / 2) + self.outstanding.gap_acked_bytes();
        let pieces = self.queue.messages() + self.outstanding.len();
        let terms = self.abandoning.as_ref().map_or(0, |it| it.messages());
        self.queue.bytes() + sent + pieces * BESIDE_A_MESSAGE + terms * BESIDE_TERMS
    }

    /// Memory of what is neither in flight nor waits to be, and is not cumulatively acknowledged: reported by Gap Ack Blocks, or given up.
    fn set_aside(&self) -> usize {
        let (reported, abandoned) = (self.outstanding.gap_acked(), self.outstanding.abandoned());
        let beside = (reported + abandoned) * BESIDE_A_MESSAGE + abandoned * BESIDE_TERMS;
        self.outstanding.gap_acked_bytes() + beside
    }

    /// The window that the peer advertised last, as far as this side keeps data for it.
    pub(super) fn believed_window(&self) -> u64 {
        let most = self.most_unacknowledged;
        self.a_rwnd
            .min(most.saturating_sub(self.set_aside() as u64))
    }

    /// Whether what is set aside leaves room for more.
    pub(super) fn may_keep_more(&self) -> bool {
        (self.set_aside() as u64) < self.most_unacknowledged
    }
}
