//! Input and output of agents: delivery of arriving packets, sending, and alarms.

use anabranch_transport::{Nanos, Path, Transmit};
use bytes::{Buf, Bytes};

use super::agent_slot::AgentSlot;
use crate::arena::Arena;
use crate::demux::Demux;
use crate::ids::NodeId;
use crate::ip::HOP_LIMIT;
use crate::network::Network;
use crate::packet::{DropReason, Packet, Parcel};

/// Maximum number of packets that an agent may send at one wake-up; beyond it the world reports the
/// agent as stalled.
const MAX_PACKETS: u32 = 1 << 20;

/// Delivers a packet that has arrived at a node to its agent, which must then be driven.
#[inline(always)] // Called in the event loop, and once for media.
pub(super) fn deliver<'a>(
    network: &mut Network,
    now: Nanos,
    demux: &Demux,
    slots: &'a mut [AgentSlot],
    (node, packet): (NodeId, Parcel),
) -> Option<&'a mut AgentSlot> {
    let agent = match demux.likely(&packet) {
        Some(agent) if network.transits.is_empty() => agent,
        _ => match network.transit_of(node, &packet) {
            None => demux.find(&packet),
            transit => transit,
        }
        .unwrap_or(u32::MAX),
    };
    let Some(slot) = slots.get_mut(agent as usize) else {
        return leave(network, now, node, packet);
    };
    if slot.start.is_some() {
        return leave(network, now, node, packet);
    }
    network.delivered += 1;
    if let Some(tap) = &mut network.tap
        && !slot.transit
    {
        tap.delivered(now, &packet);
    }
    let path = Path::new(packet.destination, packet.source);
    let ecn = packet.ecn;
    let header = usize::from(packet.header);
    let mut datagram = network.parcels.unwrap(packet);
    if header != 0 {
        datagram.advance(header);
    }
    slot.agent.handle_datagram(now, path, ecn, datagram);
    Some(slot)
}

/// Handles a packet that matches no agent: it leaves the world or is dropped.
#[cold]
#[inline(never)]
fn leave<'a>(
    network: &mut Network,
    now: Nanos,
    node: NodeId,
    packet: Parcel,
) -> Option<&'a mut AgentSlot> {
    network.leave(now, node, packet);
    None
}

/// Sends the packets of an agent and sets its alarm, as the contract of transports specifies.
/// Returns false if the agent sends endlessly.
#[inline(always)] // Called in the event loop, and once for the others.
pub(super) fn drive(
    network: &mut Network,
    now: Nanos,
    arena: &mut Arena,
    slot: &mut AgentSlot,
) -> bool {
    let mut left = MAX_PACKETS;
    // The agent writes into the arena, so the packet is not copied.
    while let Some(transmit) = &slot.agent.poll_transmit(now, arena.buffer()) {
        let bytes = arena.take();
        debug_assert_eq!(bytes.len(), transmit.len);
        send(network, now, slot, transmit, bytes);
        left -= 1;
        if left == 0 {
            set_alarm(network, now, slot);
            return false;
        }
    }
    // The agent has started, because agents are driven only after their start, so only its timeout
    // and its stop remain.
    let at = slot.deadline_once_started();
    let at = at.map(|deadline| deadline.max(now));
    network.scheduler.alarm(slot.source, at, now);
    true
}

/// Sets the alarm of an agent.
#[cold]
#[inline(never)]
pub(super) fn set_alarm(network: &mut Network, now: Nanos, slot: &AgentSlot) {
    let at = slot.deadline().map(|deadline| deadline.max(now));
    network.scheduler.alarm(slot.source, at, now);
}

/// Sends one packet.
#[inline(always)] // Called once, where agents are driven.
fn send(
    network: &mut Network,
    now: Nanos,
    slot: &mut AgentSlot,
    transmit: &Transmit,
    bytes: Bytes,
) {
    let known = slot.way(network, &transmit.path);
    let id = network.sent;
    network.sent += 1;
    let Some((_, Some(departure))) = slot.paths.get(known) else {
        return network.drop(DropReason::NoRoute);
    };
    let (via, size) = (departure.via, bytes.len() + departure.header as usize);
    let parcel = network.parcels.wrap(Packet {
        bytes,
        id,
        source: departure.source,
        destination: transmit.path.remote,
        target: departure.target,
        receiver: departure.receiver,
        sent: now,
        departed: Nanos::MAX,
        added: 0,
        ecn: transmit.ecn,
        may_fragment: transmit.may_fragment,
        fragment: 0,
        header: 0,
        protocol: slot.protocol,
        hops_left: HOP_LIMIT,
    });
    if let Some(tap) = &mut network.tap
        && !slot.transit
    {
        tap.sent(&parcel);
    }
    network.offer_sized(now, via, parcel, size);
}
