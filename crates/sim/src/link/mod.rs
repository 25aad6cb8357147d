//! Links: what they are made of, and what they tell about themselves.
//!
//! A *lane* carries packets that interfaces offer to it and shows when its next event is; the world knows nothing more
//! about it. A full-duplex point-to-point link is two lanes, one per direction. A wireless link is two lanes too, from
//! station to station, but they share a medium with all others there: the medium has the events, and the lanes keep the
//! accounts.
//!
//! # Four parts
//!
//! A direction of a point-to-point link is `losses -> queue discipline -> transmitter -> propagation`, with losses in
//! the air, impairments and outages on the way. It is decided in one of two ways that come to the same:
//!
//! - *at once*, where the queue is drop-tail and the rate constant: all of a packet's passage is known when it comes, and
//!   its arrival is the only event. Where nothing else is on the way and nobody looks, that is a *wire*, with little to do;
//! - *step by step* else: the discipline is asked whenever the transmitter is free, which is an event too.

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

/// What a lane did with a packet that was offered to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// When its serialisation begins; `None` if it was refused.
    pub transmission: Option<Nanos>,
    /// Whether the lane's next event may have changed.
    pub next_changed: bool,
}

impl Offered {
    pub const REFUSED: Offered = Offered {
        transmission: None,
        next_changed: false,
    };
}

/// Whatever carries packets.
#[derive(Debug)]
pub(crate) enum Lane {
    /// One direction of a point-to-point link, decided at once, that is plain and nobody looks at.
    Wire(Box<Wire>),
    /// One direction of a point-to-point link, decided at once.
    PointToPoint(Box<PointToPoint>),
    /// One direction of a point-to-point link, decided step by step.
    Stepwise(Box<Stepwise>),
    /// One direction of a wireless link. Its medium is offered its packets and has its events.
    Air(Box<AirLane>),
}

impl Lane {
    /// The direction named `name` (`link <link> <direction>`) of a wire, towards an interface and its node.
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
                        // It is the lane of the interface that its packets do not arrive at.
                        let source = opposite(to) as usize;
                        Lane::Wire(Box::new(Wire::new(lane, delay, node, source)))
                    }
                    _ => Lane::PointToPoint(Box::new(lane)),
                }
            }
            _ => Lane::Stepwise(Box::new(Stepwise::new(config, link, name, to, seed)?)),
        })
    }

    /// Keeps copies of what it begins to send, for [`Lane::poll_begun`].
    pub fn tap(&mut self) {
        if let Lane::Stepwise(lane) = self {
            lane.tap();
        }
    }

    /// The next packet that a tapped lane began to send, and when: one that could not say so when it was offered.
    #[inline]
    pub fn poll_begun(&mut self) -> Option<(Nanos, Packet)> {
        match self {
            Lane::Stepwise(lane) => lane.poll_begun(),
            Lane::Wire(_) | Lane::PointToPoint(_) | Lane::Air(_) => None,
        }
    }

    /// The largest packet that it carries at `now`, bytes with the IP header; [`usize::MAX`] for any.
    pub fn mtu(&self, now: Nanos) -> usize {
        match self {
            Lane::Wire(_) | Lane::Air(_) => usize::MAX,
            Lane::PointToPoint(lane) => lane.mtu(now),
            Lane::Stepwise(lane) => lane.mtu(now),
        }
    }

    /// The same for somebody who looks at it: a capture, or probes.
    #[must_use]
    pub fn unfold(self, now: Nanos) -> Self {
        match self {
            Lane::Wire(wire) => Lane::PointToPoint(Box::new(wire.unfold(now))),
            other => other,
        }
    }

    /// Takes a packet from an interface. `sequence` numbers the events of the world. Wires and the air have their own ways.
    pub fn offer(&mut self, now: Nanos, packet: Parcel, sequence: &mut u64) -> Offered {
        match self {
            Lane::PointToPoint(lane) => lane.offer(now, packet, sequence),
            Lane::Stepwise(lane) => lane.offer(now, packet, sequence),
            Lane::Wire(_) | Lane::Air(_) => Offered::REFUSED,
        }
    }

    /// The lane's next event.
    #[inline]
    pub fn next(&self) -> Key {
        match self {
            Lane::Wire(wire) => wire.next(),
            Lane::PointToPoint(lane) => lane.next(),
            Lane::Stepwise(lane) => lane.next(),
            Lane::Air(_) => Key::NEVER,
        }
    }

    /// Runs the next event, but not of a wire: the interface a packet arrives at and the packet, or `None` for an event within the lane.
    #[inline]
    pub fn step(&mut self, now: Nanos, sequence: &mut u64) -> Option<(u32, Parcel)> {
        match self {
            Lane::PointToPoint(lane) => lane.step(now),
            Lane::Stepwise(lane) => lane.step(now, sequence),
            Lane::Wire(_) | Lane::Air(_) => None,
        }
    }

    /// Packets it was given, or made by duplication, that neither arrived nor were dropped.
    pub fn in_flight(&self) -> u64 {
        match self {
            Lane::Wire(wire) => wire.in_flight(),
            Lane::PointToPoint(lane) => lane.in_flight(),
            Lane::Stepwise(lane) => lane.in_flight(),
            Lane::Air(lane) => lane.in_flight(),
        }
    }

    /// What it did up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        match self {
            Lane::Wire(wire) => wire.stats(now),
            Lane::PointToPoint(lane) => lane.stats(now),
            Lane::Stepwise(lane) => lane.stats(now),
            Lane::Air(lane) => lane.stats(),
        }
    }

    /// Tells its probes everything up to `now`.
    pub fn settle(&mut self, now: Nanos) {
        match self {
            Lane::Wire(_) => {}
            Lane::PointToPoint(lane) => lane.settle(now),
            Lane::Stepwise(lane) => lane.settle(now),
            Lane::Air(lane) => lane.settle(now),
        }
    }

    /// Its probes, if any are on.
    #[inline]
    pub fn probes(&mut self) -> Option<&mut crate::probe::LaneProbes> {
        match self {
            Lane::Wire(_) => None,
            Lane::PointToPoint(lane) => lane.account.probes.as_deref_mut(),
            Lane::Stepwise(lane) => lane.account.probes.as_deref_mut(),
            Lane::Air(lane) => lane.probes.as_deref_mut(),
        }
    }

    /// Its account, if it is one of a wireless link.
    #[inline]
    pub fn air(&mut self) -> Option<&mut AirLane> {
        match self {
            Lane::Wire(_) | Lane::PointToPoint(_) | Lane::Stepwise(_) => None,
            Lane::Air(lane) => Some(lane),
        }
    }

    /// Turns probes on, of a lane that is unfolded.
    pub fn set_probes(&mut self, probes: crate::probe::LaneProbes) {
        match self {
            Lane::Wire(_) => {}
            Lane::PointToPoint(lane) => lane.account.probes = Some(Box::new(probes)),
            Lane::Stepwise(lane) => lane.account.probes = Some(Box::new(probes)),
            Lane::Air(lane) => lane.probes = Some(Box::new(probes)),
        }
    }
}
