//! Whoever wants to see the packets themselves: what a trace of the network would show of them.

use anabranch_transport::Nanos;

use crate::packet::Packet;

/// Is shown every packet when an agent sends it and when an agent is given it.
pub trait PacketWatch {
    /// An agent has sent `packet`, at the packet's own `sent`.
    fn sent(&mut self, packet: &Packet);

    /// An agent is given `packet` at `now`; its `sent` and `departed` say since when it was on its way.
    fn delivered(&mut self, now: Nanos, packet: &Packet);
}
