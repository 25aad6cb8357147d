//! Memory of a sender for unacknowledged data, and its limits against a misbehaving peer.
//!
//! Data reported by Gap Ack Blocks must be stored, because the receiver may renege on it (RFC 9260
//! §6.2.1 D). Such data is not in flight, so it counts against neither cwnd nor the peer's window.
//! Without a limit, a peer that reports all TSNs but the first could make the sender store all data
//! of the user.

use super::Sender;
use crate::config::Config;

/// Overhead in bytes of a message or of a chunk in flight: its record in a queue with a quarter of
/// unused capacity, and the allocation of a small payload.
const BESIDE_A_MESSAGE: usize = 192;

/// Additional overhead in bytes of a message with PR-SCTP options while a part of it is in flight:
/// records of its policy and of its TSNs.
const BESIDE_TERMS: usize = 384;

/// Maximum number of bytes that are sent and not cumulatively acknowledged. The peer's user can
/// read messages received after a gap on other streams, so these messages do not occupy the peer's
/// window. Only this limit then stops the sender, like the send buffer on Linux.
pub(super) fn most_unacknowledged(config: &Config) -> u64 {
    if !config.profile.unacknowledged_bounded {
        return u64::MAX;
    }
    config.send_buffer as u64 + 2 * u64::from(config.receive_buffer)
}

impl Sender {
    /// Memory in bytes that messages use until they are cumulatively acknowledged: queued and sent
    /// user data, and the overhead of each chunk and message.
    pub fn held(&self) -> usize {
        // These counters include at least the user data. Depending on the profile they also include
        // headers.
        let waiting = usize::try_from(self.rwnd_in_flight + self.rwnd_marked);
        let sent = waiting.unwrap_or(usize::MAX / 2) + self.outstanding.gap_acked_bytes();
        let pieces = self.queue.messages() + self.outstanding.len();
        let terms = self.pr_sctp.as_ref().map_or(0, |it| it.messages());
        self.queue.bytes() + sent + pieces * BESIDE_A_MESSAGE + terms * BESIDE_TERMS
    }

    /// Memory in bytes of chunks that are neither in flight nor marked, but not cumulatively
    /// acknowledged: chunks reported by Gap Ack Blocks, and abandoned chunks.
    fn set_aside(&self) -> usize {
        let (reported, abandoned) = (self.outstanding.gap_acked(), self.outstanding.abandoned());
        let beside = (reported + abandoned) * BESIDE_A_MESSAGE + abandoned * BESIDE_TERMS;
        self.outstanding.gap_acked_bytes() + beside
    }

    /// Peer's last advertised window in bytes, limited by the memory that this side provides.
    pub(super) fn believed_window(&self) -> u64 {
        let most = self.most_unacknowledged;
        self.a_rwnd
            .min(most.saturating_sub(self.set_aside() as u64))
    }

    /// Whether the memory limit permits more unacknowledged data.
    pub(super) fn may_keep_more(&self) -> bool {
        (self.set_aside() as u64) < self.most_unacknowledged
    }
}
