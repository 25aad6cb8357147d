//! MAC frames of an 802.11 medium.

use anabranch_transport::Nanos;

/// Number of a station of a medium, in order of creation, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl StationId {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// MAC address of a station, for captures and reports; the medium itself identifies stations by
/// [`StationId`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// Types of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Data frame, which carries a packet.
    Data,
    /// Acknowledgement.
    Ack,
}

/// A frame, without the packet that it carries; the packet stays with the sender until it is
/// delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Frame type.
    pub kind: FrameKind,
    /// Sending station.
    pub from: StationId,
    /// Receiving station.
    pub to: StationId,
    /// Air time, nanoseconds.
    pub air_time: Nanos,
    /// Duration field, nanoseconds: the remaining time of the exchange after this frame (IEEE
    /// 802.11-1999 §7.1.3.2).
    pub duration: Nanos,
    /// Sequence number of a data frame, 0 to 4095; 0 in other frames.
    pub sequence: u16,
    /// Whether the data frame was sent before with the same sequence number.
    pub retry: bool,
}

/// A transmitted frame, for traces and captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// Time at which the frame's first bit left the antenna, nanoseconds.
    pub at: Nanos,
    /// Frame.
    pub frame: Frame,
}
