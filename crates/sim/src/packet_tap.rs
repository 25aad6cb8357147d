//! Packet taps: access to whole packets, as in a packet trace.

use anabranch_transport::Nanos;

use crate::packet::Packet;

/// Receives every packet when an agent sends it and when it is delivered to an agent.
pub trait PacketTap {
    /// An agent has sent `packet`, at the packet's own `sent`.
    fn sent(&mut self, packet: &Packet);

    /// `packet` is delivered to an agent at `now`; its `sent` and `departed` are the times at which
    /// it was sent.
    fn delivered(&mut self, now: Nanos, packet: &Packet);
}
