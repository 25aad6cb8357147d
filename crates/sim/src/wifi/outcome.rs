//! Outcomes of packets on a wireless medium: delivered, or dropped for a reason.

use anabranch_transport::Nanos;

use super::frame::StationId;
use super::medium_counts::WifiDropReason;

/// A packet that has arrived at its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredPacket<P> {
    /// Arrival time of the packet's last bit, nanoseconds.
    pub at: Nanos,
    /// Sending station.
    pub from: StationId,
    /// Receiving station.
    pub to: StationId,
    /// Length in bytes, without frame headers.
    pub bytes: u32,
    /// The packet.
    pub payload: P,
}

/// A packet that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedPacket<P> {
    /// Time of the drop, nanoseconds.
    pub at: Nanos,
    /// Sending station, which dropped the packet.
    pub from: StationId,
    /// Intended receiver.
    pub to: StationId,
    /// Length in bytes, without frame headers.
    pub bytes: u32,
    /// Reason of the drop.
    pub reason: WifiDropReason,
    /// The packet.
    pub payload: P,
}

/// Outcome of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransmissionOutcome<P> {
    /// The packet arrived.
    Delivered(DeliveredPacket<P>),
    /// The packet was dropped after it had been queued. Packets that
    /// [`Medium::enqueue`](super::Medium::enqueue) refuses are returned by that function and have
    /// no outcome.
    Dropped(DroppedPacket<P>),
}
