//! Frames on the air.

use anabranch_transport::Nanos;

/// Number of a station of a medium, in order of creation.
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

/// Frame types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Data frame, with a packet.
    Data,
    /// Acknowledgement.
    Ack,
}

/// A frame without its packet, which remains with the sender until a station has received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Frame type.
    pub kind: FrameKind,
    /// Sender.
    pub from: StationId,
    /// Receiver.
    pub to: StationId,
    /// Air time.
    pub air_time: Nanos,
    /// Duration field: remaining time of the exchange after this frame (IEEE 802.11-1999 §7.1.3.2).
    pub duration: Nanos,
    /// Sequence number of a data frame, 0 to 4095; 0 in other frames.
    pub sequence: u16,
    /// A data frame that was sent before with the same sequence number.
    pub retry: bool,
}

/// A transmitted frame, for traces and captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// Time at which its first bit left the antenna.
    pub at: Nanos,
    /// Frame.
    pub frame: Frame,
}
