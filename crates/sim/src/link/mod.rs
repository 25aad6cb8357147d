//! Links: configuration, transmission and statistics.
//!
//! A *lane* is one direction of a link. It carries packets that interfaces offer to it and shows
//! the time of its next event; the world knows nothing else about it. A full-duplex point-to-point
//! link is two lanes. A wireless link is two lanes as well, from station to station, but they share
//! a medium with all other links there: the medium has the events, and the lanes have the counters.
//!
//! # Four parts
//!
//! A direction of a point-to-point link is `losses -> queue discipline -> transmitter ->
//! propagation`, with losses in the channel, impairments and outages. It is computed in one of two
//! ways with the same result:
//!
//! - *analytically*, if the queue is drop-tail and the rate is constant: the whole passage of a
//!   packet is known when it is offered, and its arrival is the only event. Without losses,
//!   impairments, probes and captures it is a *wire*, which costs least;
//! - *step by step* otherwise: the discipline is called whenever the transmitter is idle, which is
//!   an event too.

mod account;
mod air;
mod config;
mod entrance;
mod flight;
mod impairment;
mod outage;
mod point_to_point;
mod stats;
mod stepwise;
mod transmitter;
mod wire;

use anabranch_transport::Nanos;

pub use config::{DirectionConfig, LinkConfig, PlacedLoss};
pub use impairment::{Impairments, Reordering};
pub use outage::Outage;
pub use stats::{Count, LinkStats};

pub(crate) use air::{AirLane, Aloft, Cell, Landing};
use point_to_point::PointToPoint;
use stepwise::Stepwise;
use wire::{LONGEST_DELAY, Wire};

use crate::agenda::Key;
use crate::error::BuildError;
use crate::ids::{NodeId, opposite};
use crate::packet::{Packet, Parcel};
use crate::rng::Seed;

/// Result of offering a packet to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Start of its serialisation; `None` if it was refused.
    pub transmission: Option<Nanos>,
    /// Whether the next event of the lane may have changed.
    pub next_changed: bool,
}

impl Offered {
    pub const REFUSED: Offered = Offered {
        transmission: None,
        next_changed: false,
    };
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) enum Lane {
    /// Direction of a point-to-point link, computed analytically, without probes, captures or
    /// losses.
    Wire(Box<Wire>),
    /// Direction of a point-to-point link, computed analytically.
    PointToPoint(Box<PointToPoint>),
    /// Direction of a point-to-point link, computed step by step.
    Stepwise(Box<Stepwise>),
    /// Direction of a wireless link. Packets are offered to its medium, which has the events.
    Air(Box<AirLane>),
}

impl Lane {
    /// The direction named `name` (`link <link> <direction>`) as a wire, towards an interface and
    /// its node.
    pub fn wire(
        config: DirectionConfig,
        link: &str,
        name: &str,
        (to, node): (u32, NodeId),
        seed: Seed,
    ) -> Result<Self, BuildError> {
        if let Some(rate) = &config.rate
            && rate.values().all(|rate| rate == 0)
        {
            return Err(BuildError::ZeroRate(link.to_owned()));
        }
        let rate = match &config.rate {
            None => Some(None),
            Some(rate) => rate.as_constant().map(Some),
        };
        let limit = config.queue.as_drop_tail().filter(|_| !config.stepwise);
        Ok(match (rate, limit) {
            (Some(rate), Some(limit)) => {
                let lane = PointToPoint::new(config, (rate, limit), link, name, to, seed)?;
                match lane.plain_delay() {
                    Some(delay) if delay <= LONGEST_DELAY => {
                        // It is the lane of the interface opposite to the one at which its packets
                        // arrive.
                        let source = opposite(to) as usize;
                        Lane::Wire(Box::new(Wire::new(lane, delay, node, source)))
                    }
                    _ => Lane::PointToPoint(Box::new(lane)),
                }
            }
            _ => Lane::Stepwise(Box::new(Stepwise::new(config, link, name, to, seed)?)),
        })
    }

    /// Keeps copies of the packets that it begins to send, for [`Lane::poll_begun`].
    pub fn tap(&mut self) {
        if let Lane::Stepwise(lane) = self {
            lane.tap();
        }
    }

    /// Next packet that a tapped lane began to send, with its time, if the time was not known when
    /// it was offered.
    #[inline]
    pub fn poll_begun(&mut self) -> Option<(Nanos, Packet)> {
        match self {
            Lane::Stepwise(lane) => lane.poll_begun(),
            Lane::Wire(_) | Lane::PointToPoint(_) | Lane::Air(_) => None,
        }
    }

    /// Maximum packet size at `now`, bytes with the IP header; [`usize::MAX`] for any.
    pub fn mtu(&self, now: Nanos) -> usize {
        match self {
            Lane::Wire(_) | Lane::Air(_) => usize::MAX,
            Lane::PointToPoint(lane) => lane.mtu(now),
            Lane::Stepwise(lane) => lane.mtu(now),
        }
    }

    /// The same lane for an observer: a capture, or probes.
    #[must_use]
    pub fn unfold(self, now: Nanos) -> Self {
        match self {
            Lane::Wire(wire) => Lane::PointToPoint(Box::new(wire.unfold(now))),
            other => other,
        }
    }

    /// Accepts a packet from an interface. `sequence` numbers the events of the world. Wires and
    /// wireless lanes have functions of their kind.
    pub fn offer(&mut self, now: Nanos, packet: Parcel, sequence: &mut u64) -> Offered {
        match self {
            Lane::PointToPoint(lane) => lane.offer(now, packet, sequence),
            Lane::Stepwise(lane) => lane.offer(now, packet, sequence),
            Lane::Wire(_) | Lane::Air(_) => Offered::REFUSED,
        }
    }

    /// Next event of the lane.
    #[inline]
    pub fn next(&self) -> Key {
        match self {
            Lane::Wire(wire) => wire.next(),
            Lane::PointToPoint(lane) => lane.next(),
            Lane::Stepwise(lane) => lane.next(),
            Lane::Air(_) => Key::NEVER,
        }
    }

    /// Processes the next event of a lane that is not a wire. Returns the interface at which a
    /// packet arrives and the packet, or `None` for an event within the lane.
    #[inline]
    pub fn step(&mut self, now: Nanos, sequence: &mut u64) -> Option<(u32, Parcel)> {
        match self {
            Lane::PointToPoint(lane) => lane.step(now),
            Lane::Stepwise(lane) => lane.step(now, sequence),
            Lane::Wire(_) | Lane::Air(_) => None,
        }
    }

    /// Packets accepted, or created by duplication, that have neither arrived nor been dropped.
    pub fn in_flight(&self) -> u64 {
        match self {
            Lane::Wire(wire) => wire.in_flight(),
            Lane::PointToPoint(lane) => lane.in_flight(),
            Lane::Stepwise(lane) => lane.in_flight(),
            Lane::Air(lane) => lane.in_flight(),
        }
    }

    /// Statistics up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        match self {
            Lane::Wire(wire) => wire.stats(now),
            Lane::PointToPoint(lane) => lane.stats(now),
            Lane::Stepwise(lane) => lane.stats(now),
            Lane::Air(lane) => lane.stats(),
        }
    }

    /// Updates its probes up to `now`.
    pub fn settle(&mut self, now: Nanos) {
        match self {
            Lane::Wire(_) => {}
            Lane::PointToPoint(lane) => lane.settle(now),
            Lane::Stepwise(lane) => lane.settle(now),
            Lane::Air(lane) => lane.settle(now),
        }
    }

    /// Its probes, if any are enabled.
    #[inline]
    pub fn probes(&mut self) -> Option<&mut crate::probe::LaneProbes> {
        match self {
            Lane::Wire(_) => None,
            Lane::PointToPoint(lane) => lane.account.probes.as_deref_mut(),
            Lane::Stepwise(lane) => lane.account.probes.as_deref_mut(),
            Lane::Air(lane) => lane.probes.as_deref_mut(),
        }
    }

    /// Its counters, if it belongs to a wireless link.
    #[inline]
    pub fn air(&mut self) -> Option<&mut AirLane> {
        match self {
            Lane::Wire(_) | Lane::PointToPoint(_) | Lane::Stepwise(_) => None,
            Lane::Air(lane) => Some(lane),
        }
    }

    /// Enables probes on a lane that is not a wire.
    pub fn set_probes(&mut self, probes: crate::probe::LaneProbes) {
        match self {
            Lane::Wire(_) => {}
            Lane::PointToPoint(lane) => lane.account.probes = Some(Box::new(probes)),
            Lane::Stepwise(lane) => lane.account.probes = Some(Box::new(probes)),
            Lane::Air(lane) => lane.probes = Some(Box::new(probes)),
        }
    }
}
