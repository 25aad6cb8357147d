//! Ingress and egress of external packets in a world.

use std::net::IpAddr;

use anabranch_transport::{Nanos, Path};
use bytes::Bytes;

use super::World;
use crate::error::BuildError;
use crate::external::{EgressDatagram, RejectedDatagram};
use crate::ids::NodeId;
use crate::ip::{Complaint, Header};
use crate::packet::{DropReason, NO_RECEIVER, Packet};

impl World {
    /// Opens `node` for egress. Datagrams that [entered](World::enter) at other nodes and are
    /// addressed to `node` leave the world there, unless they match an agent.
    ///
    /// # Errors
    /// [`BuildError::UnknownNode`].
    pub fn open(&mut self, node: NodeId) -> Result<(), BuildError> {
        self.network.topology.check(node)?;
        let open = &mut self.network.external.open;
        if open.len() <= node.index() {
            open.resize(node.index() + 1, false);
        }
        open[node.index()] = true;
        Ok(())
    }

    /// Sends a whole external IP datagram from `node` at the current time. Links carry it with its
    /// real size. Routers decrement its time to live and send ICMP errors as RFC 1812 and RFC 4443
    /// specify. If the datagram matches an agent, the agent receives its payload.
    ///
    /// # Errors
    /// [`RejectedDatagram`]: the datagram is not accepted and was not sent.
    pub fn enter(&mut self, node: NodeId, mut datagram: Bytes) -> Result<(), RejectedDatagram> {
        let header = Header::read(&datagram).map_err(|_| RejectedDatagram::Malformed)?;
        let Header {
            source,
            destination,
            ..
        } = header;
        if is_local(destination) || source.is_unspecified() || source.is_multicast() {
            return Err(RejectedDatagram::Local);
        }
        datagram.truncate(header.total);
        let now = self.now;
        self.follow_routes(now);
        let network = &mut self.network;
        let departure = network.departure(node, Path::new(source, destination));
        let id = network.sent;
        network.sent += 1;
        let packet = Packet {
            bytes: datagram,
            id,
            source,
            destination,
            target: departure.map_or(0, |it| it.target),
            receiver: departure.map_or(NO_RECEIVER, |it| it.receiver),
            sent: now,
            departed: Nanos::MAX,
            added: 0,
            ecn: header.ecn,
            may_fragment: header.may_fragment,
            fragment: 0,
            header: header.len as u16,
            protocol: header.protocol,
            hops_left: header.hops_left,
        };
        match departure {
            Some(departure) => {
                let parcel = network.parcels.wrap(packet);
                network.offer(now, departure.via, parcel);
            }
            None => {
                network.drop(DropReason::NoRoute);
                network.complain(now, node, &packet, Complaint::NoRoute);
            }
        }
        Ok(())
    }

    /// Largest MTU of the links of `node` at the current time, in bytes including the IP header;
    /// `None`: unlimited.
    pub fn largest_packet(&self, node: NodeId) -> Option<usize> {
        let network = &self.network;
        let interfaces = network.topology.interfaces_of(node).iter();
        let mtus = interfaces.map(|&it| network.simplex_links[it as usize].mtu(self.now));
        mtus.max().filter(|&mtu| mtu != usize::MAX)
    }

    /// Next datagram that left the world, in the order of time.
    pub fn poll_egress(&mut self) -> Option<EgressDatagram> {
        self.network.external.egress.pop_front()
    }
}

/// Whether packets to `address` must not be forwarded beyond the first link.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            it.is_multicast()
                || it.is_broadcast()
                || it.is_link_local()
                || it.is_loopback()
                || it.is_unspecified()
        }
        IpAddr::V6(it) => {
            it.is_multicast()
                || it.is_unicast_link_local()
                || it.is_loopback()
                || it.is_unspecified()
        }
    }
}
