//! What became of every packet, and what every station did.

use super::frame::{Frame, FrameKind};
use super::phy::Arrival;

/// Why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropReason {
    /// The station's interface queue held its limit.
    QueueFull,
    /// The packet is longer than a frame may carry.
    TooLong,
    /// The RTS, or the data frame sent without one, was not answered `short_retry_limit` times.
    ShortRetryLimit,
    /// The data frame was not acknowledged `long_retry_limit` times, each time after a CTS.
    LongRetryLimit,
}

impl DropReason {
    /// All of them, in the order of [`Ledger::dropped`].
    pub const ALL: [DropReason; 4] = [
        DropReason::QueueFull,
        DropReason::TooLong,
        DropReason::ShortRetryLimit,
        DropReason::LongRetryLimit,
    ];
}

/// Packets of a whole medium. They are conserved: `offered = delivered + dropped + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that were handed to the medium.
    pub offered: u64,
    /// Packets that their receiver has, each counted once.
    pub delivered: u64,
    /// Packets dropped, by reason, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets in a queue or on the air.
    pub waiting: u64,
    /// Packets that the sender gave up though they had been delivered, every ACK being lost; among `delivered`.
    pub delivered_unconfirmed: u64,
}

impl Ledger {
    /// Packets dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Whether no packet has been lost or made up.
    pub fn is_balanced(&self) -> bool {
        self.offered == self.delivered + self.dropped.iter().sum::<u64>() + self.waiting
    }
}

/// What one station has sent and heard, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// RTS sent.
    pub rts_sent: u64,
    /// CTS sent.
    pub cts_sent: u64,
    /// Data frames sent, retries included.
    pub data_sent: u64,
    /// Data frames sent again.
    pub retries: u64,
    /// ACKs sent.
    pub acks_sent: u64,
    /// Packets whose ACK came.
    pub confirmed: u64,
    /// RTS that no CTS answered.
    pub cts_missing: u64,
    /// Data frames that no ACK answered.
    pub ack_missing: u64,
    /// Data frames received again, acknowledged and dropped.
    pub duplicates: u64,
    /// Frames heard and not decoded.
    pub spoiled: u64,
    /// Signals that fell upon another frame and destroyed it, or could not be told from it.
    pub collisions: u64,
    /// Signals that a frame survived, being so much stronger.
    pub captures: u64,
    /// Signals too weak to decode.
    pub weak: u64,
    /// Signals that came while this station transmitted.
    pub while_transmitting: u64,
}

impl StationStats {
    pub(super) fn transmitted(&mut self, frame: &Frame) {
        match frame.kind {
            FrameKind::Rts => self.rts_sent += 1,
            FrameKind::Cts => self.cts_sent += 1,
            FrameKind::Ack => self.acks_sent += 1,
            FrameKind::Data => {
                self.data_sent += 1;
                self.retries += u64::from(frame.retry);
            }
        }
    }

    pub(super) fn heard(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Followed => {}
            Arrival::Weak => self.weak += 1,
            Arrival::WhileTransmitting => self.while_transmitting += 1,
            Arrival::Captured => self.captures += 1,
            Arrival::Collided => self.collisions += 1,
        }
    }
}
