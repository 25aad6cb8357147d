//! Wireless links of the network: transfer of packets between the network and the medium.

use anabranch_transport::Nanos;

use super::Network;
use crate::error::BuildError;
use crate::ids::{LinkDirection, LinkId, MediumId, NodeId, opposite};
use crate::ip::HOP_LIMIT;
use crate::link::{Cell, PacketOnMedium, PacketOutcome, SimplexLink, WirelessLink};
use crate::packet::Parcel;
use crate::rng::Seed;
use crate::scheduler::EventKey;
use crate::topology::Topology;
use crate::topology::WirelessMedium;
use crate::wifi::{MacAddress, Medium, StationId, StationStats};

/// The media of a topology, with their stations.
pub(super) fn cells(topology: &Topology, seed: Seed) -> Result<Vec<Cell>, BuildError> {
    let media = topology.wireless.media.iter();
    media.map(|air| cell(air, seed)).collect()
}

fn cell(air: &WirelessMedium, seed: Seed) -> Result<Cell, BuildError> {
    let name = &air.config.name;
    let refused = |error| BuildError::Medium {
        medium: name.clone(),
        error,
    };
    let draws = seed.stream(&format!("medium {name}")).bits();
    let mut medium = Medium::new(air.config.parameters, draws).map_err(refused)?;
    for (number, (_, position)) in air.stations.iter().enumerate() {
        let [.., high, low] = (number as u32).to_be_bytes();
        // The address is locally administered, because no manufacturer assigned it.
        let address = MacAddress([0x02, 0, 0, 0, high, low]);
        medium.add_station(*position, address).map_err(refused)?;
    }
    Ok(Cell::new(medium))
}

/// The simplex links of a link, if it is wireless.
pub(super) fn simplex_links(topology: &Topology, link: LinkId) -> Option<[SimplexLink; 2]> {
    let medium = topology.wireless.medium_of(link)?;
    let [first, second] = topology.links[link.index()].between;
    let station = |node| station(topology, medium, node);
    let (first, second) = (station(first)?, station(second)?);
    Some(LinkDirection::BOTH.map(|direction| {
        let (from, to) = match direction {
            LinkDirection::Forward => (first, second),
            LinkDirection::Backward => (second, first),
        };
        SimplexLink::Wireless(Box::new(WirelessLink::new(medium.index(), from, to)))
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

    /// Passes `packet` to the wireless interface `via`.
    pub(super) fn offer_to_medium(&mut self, now: Nanos, via: u32, mut packet: Parcel) {
        packet.departed = packet.departed.min(now);
        let Some(simplex_link) = self.simplex_links[via as usize].air() else {
            return;
        };
        let cell = simplex_link.cell;
        if packet.hops_left == HOP_LIMIT {
            packet.added = self.cells[cell].routing_header();
        }
        simplex_link.offered(packet.wire_size());
        let joins = self.cells[cell].enter(now, PacketOnMedium::new(packet, via));
        if self.cells[cell].is_entering(now) {
            if self.sees_ahead(cell) {
                self.catch_up(now, cell);
            }
            self.take_all_entering(now, cell);
            self.schedule(now, cell);
        } else if joins < self.scheduler.get(self.simplex_links.len() + cell).at() {
            // Only this packet was added, so the medium's event can only become earlier.
            self.schedule_at(now, joins, cell);
        }
    }

    /// Whether the medium may be left unprocessed until an outcome may be due. This is not allowed
    /// with probes, because their samples must be recorded when they are due.
    #[inline]
    fn sees_ahead(&self, cell: usize) -> bool {
        self.at_length && !self.probing && self.cells[cell].sees_ahead()
    }

    /// Runs all events of a medium that are due, and then those before `end` that precede every
    /// other event of the world. Returns the time of the last event. [`Network::poll_arrived`]
    /// returns the packets that left the medium.
    pub fn step_cell(&mut self, now: Nanos, cell: usize, end: Nanos) -> Nanos {
        // The current event is the earliest of the world, and no event of another source precedes
        // the time of the second earliest.
        let others = self.scheduler.rival().at();
        let end = end.min(others).min(self.next_route_change());
        if self.sees_ahead(cell) {
            return self.step_ahead(now, cell, end);
        }
        let now = self.step_on(now, cell, end);
        self.schedule(now, cell);
        now
    }

    /// Implements [`Self::step_cell`] without lookahead: instant by instant.
    fn step_on(&mut self, mut now: Nanos, cell: usize, end: Nanos) -> Nanos {
        self.instants += 1;
        loop {
            let (_, before) = self.cells[cell].reached();
            self.run_cell(now, cell, end);
            if self.arrived.is_empty() {
                self.cells[cell].advance_quietly(end);
            }
            let (reached, after) = self.cells[cell].reached();
            self.instants += after - before;
            if reached == now {
                return now;
            }
            now = reached;
        }
    }

    /// Implements [`Self::step_cell`] with lookahead: processes only the times at which an outcome
    /// may be due. All events at such a time count as one.
    fn step_ahead(&mut self, mut now: Nanos, cell: usize, end: Nanos) -> Nanos {
        let mut counted = false;
        loop {
            // The medium may already have an outcome, if a packet joined a queue at the instant at
            // which another was offered.
            let told = self.cells[cell].has_landing();
            self.catch_up(now, cell);
            let moves = self.cells[cell].moves(now);
            let due = told || moves || self.cells[cell].next_packet() <= now;
            self.instants += u64::from(due && !counted);
            let mut reached = now;
            if moves {
                reached = self.run_through(now, cell, end);
            } else {
                self.pass_packets(now, cell);
            }
            let next = self.cells[cell].next_outcome();
            if !self.arrived.is_empty() {
                // Events that are due at this instant after a packet has joined form a separate
                // event.
                let moves = self.cells[cell].moves(reached);
                self.schedule_at(reached, if moves { reached } else { next }, cell);
                return reached;
            }
            if next >= end && next > reached {
                self.schedule_at(reached, next, cell);
                return reached;
            }
            counted = next == reached;
            now = next;
        }
    }

    /// Runs the events before `now` of a medium that was left unprocessed.
    fn catch_up(&mut self, now: Nanos, cell: usize) {
        let (_, before) = self.cells[cell].reached();
        self.cells[cell].catch_up(now);
        let (_, after) = self.cells[cell].reached();
        self.instants += after - before;
        self.take_landings(cell);
    }

    /// Runs the events up to `last` of all media that were left unprocessed. It is called at the
    /// end of a long run.
    pub fn settle_media(&mut self, now: Nanos, last: Nanos) {
        self.at_length = false;
        for cell in 0..self.cells.len() {
            let (_, before) = self.cells[cell].reached();
            self.cells[cell].settle(last);
            let (_, after) = self.cells[cell].reached();
            self.instants += after - before;
            self.take_landings(cell);
            self.schedule(now, cell);
        }
    }

    /// Runs all due events of a medium, including those of frames that are processed as a whole.
    fn run_through(&mut self, mut now: Nanos, cell: usize, end: Nanos) -> Nanos {
        loop {
            let (_, before) = self.cells[cell].reached();
            self.run_cell(now, cell, end);
            let (reached, after) = self.cells[cell].reached();
            self.instants += after - before;
            if reached == now {
                return now;
            }
            now = reached;
        }
    }

    /// Runs all due events of a medium, and passes packets to and from the layers above.
    #[inline(always)] // Called twice: instant by instant, and with lookahead.
    fn run_cell(&mut self, now: Nanos, cell: usize, end: Nanos) {
        self.cells[cell].advance(now, end);
        self.pass_packets(now, cell);
    }

    /// Passes the packets that are due between the medium and the layers above.
    #[inline(always)]
    fn pass_packets(&mut self, now: Nanos, cell: usize) {
        self.take_entering(now, cell);
        self.take_landings(cell);
        while let Some(PacketOnMedium {
            packet,
            simplex_link,
            ..
        }) = self.cells[cell].poll_leaving(now)
        {
            if let Some(simplex_link) = self.simplex_links[simplex_link as usize].air() {
                simplex_link.taken_in();
            }
            self.arrived.push_back((opposite(simplex_link), packet));
        }
    }

    /// Counts the packets whose outcome on the medium is known.
    #[inline]
    fn take_landings(&mut self, cell: usize) {
        if self.cells[cell].has_landing() {
            self.take_all_landings(cell);
        }
    }

    #[inline(never)]
    fn take_all_landings(&mut self, cell: usize) {
        while let Some(landing) = self.cells[cell].poll_landing() {
            let simplex_link = self.account(landing);
            self.tell(simplex_link as usize);
        }
    }

    /// The next packet that left a medium, and the receiving interface.
    pub fn poll_arrived(&mut self) -> Option<(u32, Parcel)> {
        self.arrived.pop_front()
    }

    /// Adds packets that are due to their interface queues.
    #[inline]
    fn take_entering(&mut self, now: Nanos, cell: usize) {
        if self.cells[cell].is_entering(now) {
            self.take_all_entering(now, cell);
        }
    }

    #[inline(never)]
    fn take_all_entering(&mut self, now: Nanos, cell: usize) {
        while let Some(on_medium) = self.cells[cell].poll_entering(now) {
            let via = on_medium.simplex_link;
            let captured = self.copy_if_captured(via, &on_medium.packet);
            let Some(simplex_link) = self.simplex_links[via as usize].air() else {
                continue;
            };
            match self.cells[cell].enqueue(now, simplex_link, on_medium) {
                Ok(()) => {
                    simplex_link.admitted(now);
                    if let Some(packet) = captured {
                        for capture in &mut self.captures {
                            capture.sends(now, now, via, packet.clone());
                        }
                    }
                }
                Err((refused, reason)) => {
                    simplex_link.dropped(now, reason);
                    self.parcels.unwrap(refused.packet);
                }
            }
            self.tell(via as usize);
        }
    }

    /// Counts the outcome of a packet at its simplex link. Returns the index of the simplex link.
    fn account(&mut self, landing: PacketOutcome) -> u32 {
        match landing {
            PacketOutcome::Delivered {
                simplex_link: number,
                at,
                admitted,
                size,
                air_time,
            } => {
                if let Some(simplex_link) = self.simplex_links[number as usize].air() {
                    simplex_link.delivered(at, admitted, size, air_time);
                }
                number
            }
            PacketOutcome::GivenUp {
                on_medium,
                at,
                admitted,
                air_time,
                reason,
            } => {
                let number = on_medium.simplex_link;
                let size = on_medium.packet.wire_size();
                if let Some(simplex_link) = self.simplex_links[number as usize].air() {
                    simplex_link.given_up(at, admitted, size, air_time, reason);
                }
                self.parcels.unwrap(on_medium.packet);
                number
            }
        }
    }

    /// Schedules the medium's next event.
    fn schedule(&mut self, now: Nanos, cell: usize) {
        let at = match self.sees_ahead(cell) {
            true if self.cells[cell].has_landing() || self.cells[cell].moves(now) => now,
            true => self.cells[cell].next_outcome(),
            false => self.cells[cell].next(now),
        };
        self.schedule_at(now, at, cell);
    }

    /// Schedules the medium's next event at `at`. If the upper layers have a processing time, the
    /// event is the last of its instant. Its key then does not depend on the time up to which the
    /// medium has been run.
    #[inline]
    fn schedule_at(&mut self, now: Nanos, at: Nanos, cell: usize) {
        let source = self.simplex_links.len() + cell;
        let before = self.scheduler.get(source);
        if at == Nanos::MAX {
            self.scheduler.set(source, EventKey::NONE);
        } else if before == EventKey::NONE || before.at() != at {
            // An event whose time has not changed keeps its position among the events of the same
            // time.
            let layered = self.cells[cell].has_layers();
            let key = match layered {
                true => EventKey::last(at),
                false => EventKey::new(at, now),
            };
            self.scheduler.set(source, key);
        }
    }
}
