//! What the network does for wireless links: it hands their packets to the medium, and takes them from it.

use anabranch_transport::Nanos;

use super::Network;
use crate::agenda::Key;
use crate::error::BuildError;
use crate::ids::{Direction, LinkId, MediumId, NodeId};
use crate::link::{AirLane, Aloft, Cell, Landing, Lane};
use crate::packet::{HOP_LIMIT, Parcel};
use crate::rng::Seed;
use crate::topology::{Topology, opposite};
use crate::wifi::{MacAddress, Medium, StationId, StationStats};
use crate::wireless::Air;

/// The media of a topology, with their stations.
pub(super) fn cells(topology: &Topology, seed: Seed) -> Result<Vec<Cell>, BuildError> {
    let media = topology.wireless.media.iter();
    media.map(|air| cell(air, seed)).collect()
}

fn cell(air: &Air, seed: Seed) -> Result<Cell, BuildError> {
    let name = &air.config.name;
    let refused = |error| BuildError::Medium {
        medium: name.clone(),
        error,
    };
    let draws = seed.stream(&format!("medium {name}")).bits();
    let mut medium = Medium::new(air.config.parameters, draws).map_err(refused)?;
    for (number, (_, position)) in air.stations.iter().enumerate() {
        let [.., high, low] = (number as u32).to_be_bytes();
        // Locally administered, as no manufacturer gave it.
        let address = MacAddress([0x02, 0, 0, 0, high, low]);
        medium.add_station(*position, address).map_err(refused)?;
    }
    Ok(Cell::new(medium))
}

/// The lanes of a link, if it is wireless.
pub(super) fn lanes(topology: &Topology, link: LinkId) -> Option<[Lane; 2]> {
    let medium = topology.wireless.medium_of(link)?;
    let [first, second] = topology.links[link.index()].between;
    let station = |node| station(topology, medium, node);
    let (first, second) = (station(first)?, station(second)?);
    Some(Direction::BOTH.map(|direction| {
        let (from, to) = match direction {
            Direction::Forward => (first, second),
            Direction::Backward => (second, first),
        };
        Lane::Air(Box::new(AirLane::new(medium.index(), from, to)))
    }))
}

fn station(topology: &Topology, medium: MediumId, node: NodeId) -> Option<StationId> {
    let air = topology.wireless.media.get(medium.index())?;
    let number = air.stations.iter().position(|(at, _)| *at == node)?;
    u16::try_from(number).ok().map(StationId)
}

impl Network {
    pub fn station_stats(&self, medium: MediumId, node: NodeId) -> Option<StationStats> {
        let station = station(&self.topology, medium, node)?;
        Some(self.cells.get(medium.index())?.medium().stats(station))
    }

    /// Gives `packet` to the wireless interface `via`.
    pub(super) fn offer_to_air(&mut self, now: Nanos, via: u32, mut packet: Parcel) {
        packet.departed = packet.departed.min(now);
        let Some(lane) = self.lanes[via as usize].air() else {
            return;
        };
        let cell = lane.cell;
        if packet.hops_left == HOP_LIMIT {
            packet.added = self.cells[cell].routing_header();
        }
        lane.offered(packet.wire_size());
        self.cells[cell].enter(now, Aloft::new(packet, via));
        self.take_entering(now, cell);
        self.schedule(now, cell);
    }

    /// Runs everything that is due at a medium, and then, before `end`, what happens on it before anything else in the world:
    /// when the last of it did, and how many instants there were beside the first. [`Network::poll_arrived`] has what came
    /// out of the medium.
    pub fn step_cell(&mut self, now: Nanos, cell: usize, end: Nanos) -> (Nanos, u64) {
        // The event that runs is the earliest; no other comes before this.
        let others = self.agenda.rival().at();
        let end = end.min(others).min(self.next_route_change());
        let mut now = now;
        let mut instants = 0;
        loop {
            let (_, before) = self.cells[cell].reached();
            self.run_cell(now, cell, end);
            if self.arrived.is_empty() {
                self.cells[cell].advance_quietly(end);
            }
            let (reached, after) = self.cells[cell].reached();
            instants += after - before;
            if reached == now {
                break;
            }
            now = reached;
        }
        self.schedule(now, cell);
        (now, instants)
    }

    /// Runs everything that is due at a medium.
    fn run_cell(&mut self, now: Nanos, cell: usize, end: Nanos) {
        self.cells[cell].advance(now, end);
        self.take_entering(now, cell);
        while let Some(landing) = self.cells[cell].poll_landing() {
            let lane = self.account(landing);
            self.tell(lane as usize);
        }
        while let Some(Aloft { packet, lane, .. }) = self.cells[cell].poll_leaving(now) {
            if let Some(lane) = self.lanes[lane as usize].air() {
                lane.taken_in();
            }
            self.arrived.push_back((opposite(lane), packet));
        }
    }

    /// The next packet that came out of a medium, and the interface that takes it in.
    pub fn poll_arrived(&mut self) -> Option<(u32, Parcel)> {
        self.arrived.pop_front()
    }

    /// Lets the packets that are due join their interface queues.
    #[inline]
    fn take_entering(&mut self, now: Nanos, cell: usize) {
        if self.cells[cell].is_entering(now) {
            self.take_all_entering(now, cell);
        }
    }

    #[inline(never)]
    fn take_all_entering(&mut self, now: Nanos, cell: usize) {
        while let Some(aloft) = self.cells[cell].poll_entering(now) {
            let via = aloft.lane;
            let captured = self.copy_if_captured(via, &aloft.packet);
            let Some(lane) = self.lanes[via as usize].air() else {
                continue;
            };
            match self.cells[cell].enqueue(now, lane, aloft) {
                Ok(()) => {
                    lane.admitted(now);
                    if let Some(packet) = captured {
                        for capture in &mut self.captures {
                            capture.sends(now, now, via, packet.clone());
                        }
                    }
                }
                Err((refused, reason)) => {
                    lane.dropped(now, reason);
                    self.parcels.unwrap(refused.packet);
                }
            }
            self.tell(via as usize);
        }
    }

    /// Writes down what became of a packet, at its lane.
    fn account(&mut self, landing: Landing) -> u32 {
        match landing {
            Landing::Delivered {
                lane: number,
                at,
                admitted,
                size,
                air_time,
            } => {
                if let Some(lane) = self.lanes[number as usize].air() {
                    lane.delivered(at, admitted, size, air_time);
                }
                number
            }
            Landing::GivenUp {
                aloft,
                at,
                admitted,
                air_time,
                reason,
            } => {
                let number = aloft.lane;
                let size = aloft.packet.wire_size();
                if let Some(lane) = self.lanes[number as usize].air() {
                    lane.given_up(at, admitted, size, air_time, reason);
                }
                self.parcels.unwrap(aloft.packet);
                number
            }
        }
    }

    /// Sets the medium's next event.
    fn schedule(&mut self, now: Nanos, cell: usize) {
        let source = self.lanes.len() + cell;
        match self.cells[cell].next(now) {
            None => self.agenda.set(source, Key::NEVER),
            // An event that has not moved keeps its place among those of its instant.
            Some(at)
                if self.agenda.get(source) == Key::NEVER || self.agenda.get(source).at() != at =>
            {
                self.agenda.set(source, Key::new(at, self.sequence));
                self.sequence += 1;
            }
            Some(_) => {}
        }
    }
}
