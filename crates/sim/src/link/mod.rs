//! Links: configuration, transmission and statistics.
//!
//! A *lane* is one direction of a link. Interfaces offer packets to a lane, and the lane reports
//! the time of its next event; the world uses only these two functions. A full-duplex
//! point-to-point link is two lanes. A wireless link also consists of two lanes, one in each
//! direction between two stations. They share a medium with all other links of the cell: the medium
//! generates the events, and the lanes hold the counters.
//!
//! # Four parts
//!
//! A direction of a point-to-point link consists of `losses -> queue discipline -> transmitter ->
//! propagation`. Losses in the channel, impairments and outages are optional. Two implementations
//! give the same result:
//!
//! - *analytic*, if the queue is drop-tail and the rate is constant: the whole passage of a packet
//!   is known when it is offered, and its arrival is the only event. Without losses in the channel,
//!   impairments, probes and captures the direction is a *delay line*, which is the fastest type;
//! - *event-driven* in all other cases: the discipline is called whenever the transmitter is idle,
//!   which requires a further event.

mod analytic;
mod channel;
mod config;
mod counters;
mod delay_line;
mod event_driven;
mod impairment;
mod ingress;
mod outage;
mod stats;
mod transmitter;
mod wireless;

use anabranch_transport::Nanos;

pub use config::{DirectionConfig, LinkConfig, PlacedLoss};
pub use impairment::{Impairments, Reordering};
pub use outage::Outage;
pub use stats::{LinkStats, TrafficCount};

use analytic::Analytic;
use delay_line::{DelayLine, MAX_DELAY};
use event_driven::EventDriven;
pub(crate) use wireless::{Cell, PacketOnMedium, PacketOutcome, WirelessLane};

use crate::crossing::CrossingLane;
use crate::error::BuildError;
use crate::ids::{NodeId, opposite};
use crate::packet::{Packet, Parcel};
use crate::rng::Seed;
use crate::scheduler::EventKey;

/// Result of offering a packet to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Start of the packet's serialisation, nanoseconds; `None` if the packet was dropped.
    pub transmission: Option<Nanos>,
    /// Whether the time of the lane's next event may have changed.
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
    /// Analytic direction of a point-to-point link without probes, captures, or losses in the
    /// channel.
    DelayLine(Box<DelayLine>),
    /// Analytic direction of a point-to-point link.
    Analytic(Box<Analytic>),
    /// Event-driven direction of a point-to-point link.
    EventDriven(Box<EventDriven>),
    /// Direction of a wireless link. Packets are offered to its medium, which generates the events.
    Wireless(Box<WirelessLane>),
}

impl Lane {
    /// Creates the direction named `name` (`link <link> <direction>`), as a delay line if possible,
    /// towards an interface and its node.
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
        let limit = config.queue.as_drop_tail().filter(|_| !config.event_driven);
        Ok(match (rate, limit) {
            (Some(rate), Some(limit)) => {
                let lane = Analytic::new(config, (rate, limit), link, name, to, seed)?;
                match lane.plain_delay() {
                    Some(delay) if delay <= MAX_DELAY => {
                        // A lane has the number of the sending interface, which is opposite to the
                        // interface at which packets arrive.
                        let source = opposite(to) as usize;
                        Lane::DelayLine(Box::new(DelayLine::new(lane, delay, node, source)))
                    }
                    _ => Lane::Analytic(Box::new(lane)),
                }
            }
            _ => Lane::EventDriven(Box::new(EventDriven::new(config, link, name, to, seed)?)),
        })
    }

    /// Enables copies of the packets whose transmission begins, for [`Lane::poll_begun`].
    pub fn tap(&mut self) {
        if let Lane::EventDriven(lane) = self {
            lane.tap();
        }
    }

    /// Next packet whose transmission a tapped lane has begun, with the time. Only lanes that do
    /// not know this time when a packet is offered return packets here.
    #[inline]
    pub fn poll_begun(&mut self) -> Option<(Nanos, Packet)> {
        match self {
            Lane::EventDriven(lane) => lane.poll_begun(),
            Lane::DelayLine(_) | Lane::Analytic(_) | Lane::Wireless(_) => None,
        }
    }

    /// Enables copies of packets for other parts, because the world is divided at this lane. It
    /// must be neither a delay line nor wireless.
    pub fn divide(&mut self, crossing: CrossingLane) {
        match self {
            Lane::Analytic(lane) => lane.divide(crossing),
            Lane::EventDriven(lane) => lane.divide(crossing),
            Lane::DelayLine(_) | Lane::Wireless(_) => {}
        }
    }

    /// A lower bound on the delays of packets whose last bit leaves between `from` and `until`.
    pub fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        match self {
            Lane::Analytic(lane) => lane.least_delay(from, until),
            Lane::EventDriven(lane) => lane.least_delay(from, until),
            Lane::DelayLine(_) | Lane::Wireless(_) => 0,
        }
    }

    /// Maximum packet size at `now`, bytes with the IP header; [`usize::MAX`] for any.
    pub fn mtu(&self, now: Nanos) -> usize {
        match self {
            Lane::DelayLine(_) | Lane::Wireless(_) => usize::MAX,
            Lane::Analytic(lane) => lane.mtu(now),
            Lane::EventDriven(lane) => lane.mtu(now),
        }
    }

    /// Converts a delay line to the general type, so that a capture or probes can observe it.
    #[must_use]
    pub fn unfold(self, now: Nanos) -> Self {
        match self {
            Lane::DelayLine(wire) => Lane::Analytic(Box::new(wire.unfold(now))),
            other => other,
        }
    }

    /// Accepts a packet from an interface. Delay lines and wireless lanes accept packets through
    /// other functions; here they refuse every packet.
    pub fn offer(&mut self, now: Nanos, packet: Parcel) -> Offered {
        match self {
            Lane::Analytic(lane) => lane.offer(now, packet),
            Lane::EventDriven(lane) => lane.offer(now, packet),
            Lane::DelayLine(_) | Lane::Wireless(_) => Offered::REFUSED,
        }
    }

    /// Next event of the lane.
    #[inline]
    pub fn next(&self) -> EventKey {
        match self {
            Lane::DelayLine(wire) => wire.next(),
            Lane::Analytic(lane) => lane.next(),
            Lane::EventDriven(lane) => lane.next(),
            Lane::Wireless(_) => EventKey::NONE,
        }
    }

    /// Processes the next event of a lane that is not a delay line. Returns a packet that arrives
    /// and the interface at which it arrives, or `None` for an event within the lane.
    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        match self {
            Lane::Analytic(lane) => lane.step(now),
            Lane::EventDriven(lane) => lane.step(now),
            Lane::DelayLine(_) | Lane::Wireless(_) => None,
        }
    }

    /// Packets accepted, or created by duplication, that have neither arrived nor been dropped.
    pub fn in_flight(&self) -> u64 {
        match self {
            Lane::DelayLine(wire) => wire.in_flight(),
            Lane::Analytic(lane) => lane.in_flight(),
            Lane::EventDriven(lane) => lane.in_flight(),
            Lane::Wireless(lane) => lane.in_flight(),
        }
    }

    /// Statistics of the lane up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        match self {
            Lane::DelayLine(wire) => wire.stats(now),
            Lane::Analytic(lane) => lane.stats(now),
            Lane::EventDriven(lane) => lane.stats(now),
            Lane::Wireless(lane) => lane.stats(),
        }
    }

    /// Updates the probes of the lane up to `now`.
    pub fn settle(&mut self, now: Nanos) {
        match self {
            Lane::DelayLine(_) => {}
            Lane::Analytic(lane) => lane.settle(now),
            Lane::EventDriven(lane) => lane.settle(now),
            Lane::Wireless(lane) => lane.settle(now),
        }
    }

    /// Probes of this direction, if any are enabled.
    #[inline]
    pub fn probes(&mut self) -> Option<&mut crate::probe::LaneProbes> {
        match self {
            Lane::DelayLine(_) => None,
            Lane::Analytic(lane) => lane.counters.probes.as_deref_mut(),
            Lane::EventDriven(lane) => lane.counters.probes.as_deref_mut(),
            Lane::Wireless(lane) => lane.probes.as_deref_mut(),
        }
    }

    /// The wireless lane, if this is a direction of a wireless link.
    #[inline]
    pub fn air(&mut self) -> Option<&mut WirelessLane> {
        match self {
            Lane::DelayLine(_) | Lane::Analytic(_) | Lane::EventDriven(_) => None,
            Lane::Wireless(lane) => Some(lane),
        }
    }

    /// Enables probes on a lane that is not a delay line.
    pub fn set_probes(&mut self, probes: crate::probe::LaneProbes) {
        match self {
            Lane::DelayLine(_) => {}
            Lane::Analytic(lane) => lane.counters.probes = Some(Box::new(probes)),
            Lane::EventDriven(lane) => lane.counters.probes = Some(Box::new(probes)),
            Lane::Wireless(lane) => lane.probes = Some(Box::new(probes)),
        }
    }
}
