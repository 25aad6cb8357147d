//! External packets at routers: ICMP errors, and egress from the world.

use std::net::IpAddr;

use anabranch_transport::{Nanos, Path};

use super::Network;
use crate::external::EgressDatagram;
use crate::ids::{AddressFamily, NodeId, opposite};
use crate::ip::{self, Complaint, Header};
use crate::packet::{DropReason, NO_RECEIVER, Packet, Parcel};

impl Network {
    /// Sends an ICMP error about a packet that exceeds the MTU of the link of the interface `via`.
    /// The link itself drops the packet.
    #[cold]
    pub(super) fn check_size(&mut self, now: Nanos, via: u32, packet: &Packet) {
        let mtu = self.simplex_links[via as usize].mtu(now);
        if mtu == usize::MAX || packet.clone().fits(mtu) {
            return;
        }
        let node = self.topology.interfaces()[via as usize].node;
        self.complain(now, node, packet, Complaint::TooBig(mtu));
    }

    /// Drops a packet at `node`.
    #[cold]
    pub(super) fn give_up(
        &mut self,
        now: Nanos,
        node: NodeId,
        packet: &Packet,
        reason: DropReason,
    ) {
        self.drop(reason);
        let complaint = match reason {
            DropReason::NoRoute => Complaint::NoRoute,
            DropReason::HopLimit => Complaint::HopLimit,
            _ => return,
        };
        self.complain(now, node, packet, complaint);
    }

    /// Sends an ICMP error about an external packet to its source, with `node` as the router that
    /// reports it. Simulated agents receive no ICMP errors.
    #[cold]
    pub fn complain(&mut self, now: Nanos, node: NodeId, packet: &Packet, complaint: Complaint) {
        if packet.header == 0 {
            return;
        }
        // The error quotes an expired packet with the time to live that it had on arrival.
        let datagram = packet.written(packet.hops_left.max(1));
        let source = packet.source;
        let family = match source {
            IpAddr::V4(_) => AddressFamily::V4,
            IpAddr::V6(_) => AddressFamily::V6,
        };
        let at_home = self.owns(node, source);
        let Some(&first) = self.topology.interfaces_of(node).first() else {
            return;
        };
        // If the packet's source is this node itself, the neighbour sends the error, because a host
        // does not accept an ICMP error from its own address.
        let target = self.topology.owner(source);
        let way = target.and_then(|target| {
            let any = self.topology.interfaces()[first as usize].address(family);
            let table = self.router.table(&self.topology, target);
            let hop = self.router.first_hop(&self.topology, node, any, table)?;
            Some(self.router.sender(hop).interface)
        });
        let interface = match (at_home, way) {
            (true, _) => opposite(first),
            (false, Some(via)) => via,
            (false, None) => return,
        };
        let from = self.topology.interfaces()[interface as usize].address(family);
        let Some(error) = ip::complain(complaint, &datagram, from) else {
            return;
        };
        let Ok(header) = Header::read(&error) else {
            return;
        };
        let id = self.sent;
        self.sent += 1;
        let mut packet = Packet {
            bytes: error,
            id,
            source: from,
            destination: source,
            target: 0,
            receiver: NO_RECEIVER,
            sent: now,
            departed: Nanos::MAX,
            added: 0,
            ecn: header.ecn,
            may_fragment: header.may_fragment,
            fragment: 0,
            header: header.len as u16,
            protocol: header.protocol,
            // The hop limit is that of an error that arrives from the neighbour.
            hops_left: header.hops_left - u8::from(at_home),
        };
        if at_home {
            let parcel = self.parcels.wrap(packet);
            return self.leave(now, node, parcel);
        }
        match self.departure(node, Path::new(from, source)) {
            Some(departure) => {
                packet.target = departure.target;
                packet.receiver = departure.receiver;
                let parcel = self.parcels.wrap(packet);
                self.offer(now, departure.via, parcel);
            }
            None => self.drop(DropReason::NoRoute),
        }
    }

    fn owns(&self, node: NodeId, address: IpAddr) -> bool {
        let mut interfaces = self.topology.interfaces_of(node).iter();
        interfaces.any(|&it| self.topology.interfaces()[it as usize].has(address))
    }

    /// Removes a packet that matches no agent of `node` from the world, if the packet is external
    /// and the node is open for egress.
    #[cold]
    pub fn leave(&mut self, now: Nanos, node: NodeId, packet: Parcel) {
        let open = self.external.open.get(node.index()).copied();
        if packet.header == 0 || open != Some(true) {
            return self.drop(DropReason::NoAgent);
        }
        self.delivered += 1;
        // Undoes the decrement of the time to live, because the node is the last hop and does not
        // forward the packet.
        let datagram = packet.written(packet.hops_left.saturating_add(1));
        self.external.egress.push_back(EgressDatagram {
            at: now,
            node,
            datagram,
        });
        drop(self.parcels.unwrap(packet));
    }
}
