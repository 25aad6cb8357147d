//! Packet taps: observers that receive whole packets, as in a packet trace.

use anabranch_transport::Nanos;

use crate::packet::Packet;

/// Receives every packet when an agent sends it and when it is delivered to an agent.
pub trait PacketTap {
    /// Called when an agent has sent `packet`; the time is `packet.sent`.
    fn sent(&mut self, packet: &Packet);

    /// Called when `packet` is delivered to an agent at `now`. `packet.sent` and `packet.departed`
    /// are the times at which it was sent.
    fn delivered(&mut self, now: Nanos, packet: &Packet);
}
