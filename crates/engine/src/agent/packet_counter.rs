//! Packet tap that counts the data packets of each flow.

use std::rc::Rc;

use anabranch_sim::{Packet, PacketTap};
use anabranch_transport::Nanos;

use super::flow_stats::SharedFlowStats;
use super::inspect::{PacketContent, PacketReader};

/// Counts data packets for the member of a flow to which their ports belong.
pub struct PacketCounter {
    /// First source port and first sink port; member `n` has the `n`-th port after each.
    ports: [u16; 2],
    /// Statistics of the members of all flows in order, each with the reader of its packets.
    members: Vec<(SharedFlowStats, PacketReader)>,
}

impl PacketCounter {
    /// Creates a counter for members with consecutive ports from `ports` on.
    pub fn new(
        ports: [u16; 2],
        members: impl IntoIterator<Item = (SharedFlowStats, PacketReader)>,
    ) -> Self {
        Self {
            ports,
            members: members.into_iter().collect(),
        }
    }

    /// Statistics of the member to which a data packet belongs, and the content of the packet.
    fn flow_stats(&self, packet: &Packet) -> Option<(SharedFlowStats, PacketContent)> {
        let &[a, b, c, d] = packet.bytes.first_chunk::<4>()?;
        let number = u16::from_be_bytes([a, b]).checked_sub(self.ports[0])?;
        let other = u16::from_be_bytes([c, d]).checked_sub(self.ports[1])?;
        if number != other {
            return None;
        }
        let (flow_stats, read) = self.members.get(usize::from(number))?;
        let seen = read(&packet.bytes);
        seen.is_data().then(|| (Rc::clone(flow_stats), seen))
    }
}

impl PacketTap for PacketCounter {
    fn sent(&mut self, packet: &Packet) {
        if let Some((flow_stats, seen)) = self.flow_stats(packet) {
            let packets = &mut flow_stats.borrow_mut().packets;
            packets.sent += 1;
            packets.first.sent(packet, seen);
        }
    }

    fn delivered(&mut self, now: Nanos, packet: &Packet) {
        if let Some((flow_stats, seen)) = self.flow_stats(packet) {
            let packets = &mut flow_stats.borrow_mut().packets;
            packets.received += 1;
            packets.from_host.add(now.saturating_sub(packet.sent));
            packets.from_wire.add(now.saturating_sub(packet.departed));
            packets.first.delivered(now, packet, seen);
        }
    }
}
