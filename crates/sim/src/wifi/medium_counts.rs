//! Counters of packets, and of the frames of each station.

use super::frame::{Frame, FrameKind};
use super::phy::SignalStart;

/// Reason for which a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WifiDropReason {
    /// The interface queue of the station was full.
    QueueFull,
    /// The packet exceeds the maximum length of a frame.
    TooLong,
    /// `short_retry_limit` transmissions of an RTS, or of a data frame without RTS, received no
    /// response.
    ShortRetryLimit,
    /// `long_retry_limit` transmissions of the data frame, each after a CTS, received no ACK.
    LongRetryLimit,
}

impl WifiDropReason {
    /// All reasons, in the order of [`MediumCounts::dropped`].
    pub const ALL: [WifiDropReason; 4] = [
        WifiDropReason::QueueFull,
        WifiDropReason::TooLong,
        WifiDropReason::ShortRetryLimit,
        WifiDropReason::LongRetryLimit,
    ];
}

/// Packet counts of a medium. Packets are conserved: `offered = delivered + dropped + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumCounts {
    /// Packets passed to the medium.
    pub offered: u64,
    /// Packets that arrived at their receiver; each counts once.
    pub delivered: u64,
    /// Packets dropped, by reason, in the order of [`WifiDropReason::ALL`].
    pub dropped: [u64; WifiDropReason::ALL.len()],
    /// Packets in a queue or on the air.
    pub waiting: u64,
    /// Packets that the sender dropped although they had arrived, because every ACK was lost;
    /// included in `delivered`.
    pub delivered_unconfirmed: u64,
}

impl MediumCounts {
    /// Packets dropped for `reason`.
    pub fn dropped_for(&self, reason: WifiDropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Whether the counts satisfy the conservation of packets.
    pub fn is_balanced(&self) -> bool {
        self.offered == self.delivered + self.dropped.iter().sum::<u64>() + self.waiting
    }
}

/// Frames sent and received by one station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// RTS frames sent.
    pub rts_sent: u64,
    /// CTS frames sent.
    pub cts_sent: u64,
    /// Data frames sent, including retries.
    pub data_sent: u64,
    /// Data frames sent with the retry flag.
    pub retries: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// Packets whose ACK arrived.
    pub confirmed: u64,
    /// RTS frames to which no CTS was received.
    pub cts_missing: u64,
    /// Data frames to which no ACK was received.
    pub ack_missing: u64,
    /// Data frames that were received again; they are acknowledged and discarded.
    pub duplicates: u64,
    /// Frames that were detected but not decoded.
    pub spoiled: u64,
    /// Signals that were lost because they overlapped other signals. If the station was receiving a
    /// frame at that time, this frame was lost, too.
    pub collisions: u64,
    /// Signals during which a much stronger frame was still decoded (capture).
    pub captures: u64,
    /// Signals that were too weak to decode.
    pub weak: u64,
    /// Signals that arrived while this station transmitted.
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

    pub(super) fn heard(&mut self, arrival: SignalStart) {
        match arrival {
            SignalStart::Followed => {}
            SignalStart::Weak => self.weak += 1,
            SignalStart::WhileTransmitting => self.while_transmitting += 1,
            SignalStart::Captured => self.captures += 1,
            SignalStart::Collided => self.collisions += 1,
        }
    }
}
