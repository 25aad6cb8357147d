//! What travels through the air.

use anabranch_transport::Nanos;

/// A station of a medium, in the order of their making.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl StationId {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A station's MAC address, for captures and reports; the medium itself knows stations by [`StationId`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// A packet.
    Data,
    /// Acknowledgement.
    Ack,
}

/// A frame, but for the packet in it, which stays with the sender until somebody has received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// Who sends it.
    pub from: StationId,
    /// Whom it is for.
    pub to: StationId,
    /// How long it lasts on the air.
    pub air_time: Nanos,
    /// The Duration field: how long the exchange goes on after this frame (IEEE 802.11-1999 §7.1.3.2).
    pub duration: Nanos,
    /// Sequence number of a data frame, 0 to 4095; 0 in others.
    pub sequence: u16,
    /// A data frame that was sent before, with the same sequence number.
    pub retry: bool,
}
