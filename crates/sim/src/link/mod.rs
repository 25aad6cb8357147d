//! Links: configuration, transmission and statistics.
//!
//! A *simplex link* is one direction of a link. Interfaces offer packets to a simplex link, and the
//! simplex link reports the time of its next event; the world uses only these two functions. A
//! full-duplex point-to-point link is two simplex links. A wireless link also consists of two
//! simplex links, one in each direction between two stations. They share a medium with all other
//! links of the cell: the medium generates the events, and the simplex links hold the counters.
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
pub(crate) use wireless::{Cell, PacketOnMedium, PacketOutcome, WirelessLink};

use crate::crossing::CrossingLink;
use crate::error::BuildError;
use crate::ids::{NodeId, opposite};
use crate::packet::{Packet, Parcel};
use crate::rng::Seed;
use crate::scheduler::EventKey;

/// Result of offering a packet to a simplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Start of the packet's serialisation, nanoseconds; `None` if the packet was dropped.
    pub transmission: Option<Nanos>,
    /// Whether the time of the simplex link's next event may have changed.
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
pub(crate) enum SimplexLink {
    /// Analytic direction of a point-to-point link without probes, captures, or losses in the
    /// channel.
    DelayLine(Box<DelayLine>),
    /// Analytic direction of a point-to-point link.
    Analytic(Box<Analytic>),
    /// Event-driven direction of a point-to-point link.
    EventDriven(Box<EventDriven>),
    /// Direction of a wireless link. Packets are offered to its medium, which generates the events.
    Wireless(Box<WirelessLink>),
}

impl SimplexLink {
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
                let simplex_link = Analytic::new(config, (rate, limit), link, name, to, seed)?;
                match simplex_link.plain_delay() {
                    Some(delay) if delay <= MAX_DELAY => {
                        // A simplex link has the number of the sending interface, which is opposite
                        // to the interface at which packets arrive.
                        let source = opposite(to) as usize;
                        SimplexLink::DelayLine(Box::new(DelayLine::new(
                            simplex_link,
                            delay,
                            node,
                            source,
                        )))
                    }
                    _ => SimplexLink::Analytic(Box::new(simplex_link)),
                }
            }
            _ => {
                SimplexLink::EventDriven(Box::new(EventDriven::new(config, link, name, to, seed)?))
            }
        })
    }

    /// Enables copies of the packets whose transmission begins, for [`SimplexLink::poll_begun`].
    pub fn tap(&mut self) {
        if let SimplexLink::EventDriven(simplex_link) = self {
            simplex_link.tap();
        }
    }

    /// Next packet whose transmission a tapped simplex link has begun, with the time. Only simplex
    /// links that do not know this time when a packet is offered return packets here.
    #[inline]
    pub fn poll_begun(&mut self) -> Option<(Nanos, Packet)> {
        match self {
            SimplexLink::EventDriven(simplex_link) => simplex_link.poll_begun(),
            SimplexLink::DelayLine(_) | SimplexLink::Analytic(_) | SimplexLink::Wireless(_) => None,
        }
    }

    /// Enables copies of packets for other parts, because the world is divided at this simplex
    /// link. It must be neither a delay line nor wireless.
    pub fn divide(&mut self, crossing: CrossingLink) {
        match self {
            SimplexLink::Analytic(simplex_link) => simplex_link.divide(crossing),
            SimplexLink::EventDriven(simplex_link) => simplex_link.divide(crossing),
            SimplexLink::DelayLine(_) | SimplexLink::Wireless(_) => {}
        }
    }

    /// A lower bound on the delays of packets whose last bit leaves between `from` and `until`.
    pub fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        match self {
            SimplexLink::Analytic(simplex_link) => simplex_link.least_delay(from, until),
            SimplexLink::EventDriven(simplex_link) => simplex_link.least_delay(from, until),
            SimplexLink::DelayLine(_) | SimplexLink::Wireless(_) => 0,
        }
    }

    /// Maximum packet size at `now`, bytes with the IP header; [`usize::MAX`] for any.
    pub fn mtu(&self, now: Nanos) -> usize {
        match self {
            SimplexLink::DelayLine(_) | SimplexLink::Wireless(_) => usize::MAX,
            SimplexLink::Analytic(simplex_link) => simplex_link.mtu(now),
            SimplexLink::EventDriven(simplex_link) => simplex_link.mtu(now),
        }
    }

    /// Converts a delay line to the general type, so that a capture or probes can observe it.
    #[must_use]
    pub fn unfold(self, now: Nanos) -> Self {
        match self {
            SimplexLink::DelayLine(wire) => SimplexLink::Analytic(Box::new(wire.unfold(now))),
            other => other,
        }
    }

    /// Accepts a packet from an interface. Delay lines and wireless simplex links accept packets
    /// through other functions; here they refuse every packet.
    pub fn offer(&mut self, now: Nanos, packet: Parcel) -> Offered {
        match self {
            SimplexLink::Analytic(simplex_link) => simplex_link.offer(now, packet),
            SimplexLink::EventDriven(simplex_link) => simplex_link.offer(now, packet),
            SimplexLink::DelayLine(_) | SimplexLink::Wireless(_) => Offered::REFUSED,
        }
    }

    /// Next event of the simplex link.
    #[inline]
    pub fn next(&self) -> EventKey {
        match self {
            SimplexLink::DelayLine(wire) => wire.next(),
            SimplexLink::Analytic(simplex_link) => simplex_link.next(),
            SimplexLink::EventDriven(simplex_link) => simplex_link.next(),
            SimplexLink::Wireless(_) => EventKey::NONE,
        }
    }

    /// Processes the next event of a simplex link that is not a delay line. Returns a packet that
    /// arrives and the interface at which it arrives, or `None` for an event within the simplex
    /// link.
    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        match self {
            SimplexLink::Analytic(simplex_link) => simplex_link.step(now),
            SimplexLink::EventDriven(simplex_link) => simplex_link.step(now),
            SimplexLink::DelayLine(_) | SimplexLink::Wireless(_) => None,
        }
    }

    /// Packets accepted, or created by duplication, that have neither arrived nor been dropped.
    pub fn in_flight(&self) -> u64 {
        match self {
            SimplexLink::DelayLine(wire) => wire.in_flight(),
            SimplexLink::Analytic(simplex_link) => simplex_link.in_flight(),
            SimplexLink::EventDriven(simplex_link) => simplex_link.in_flight(),
            SimplexLink::Wireless(simplex_link) => simplex_link.in_flight(),
        }
    }

    /// Statistics of the simplex link up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        match self {
            SimplexLink::DelayLine(wire) => wire.stats(now),
            SimplexLink::Analytic(simplex_link) => simplex_link.stats(now),
            SimplexLink::EventDriven(simplex_link) => simplex_link.stats(now),
            SimplexLink::Wireless(simplex_link) => simplex_link.stats(),
        }
    }

    /// Updates the probes of the simplex link up to `now`.
    pub fn settle(&mut self, now: Nanos) {
        match self {
            SimplexLink::DelayLine(_) => {}
            SimplexLink::Analytic(simplex_link) => simplex_link.settle(now),
            SimplexLink::EventDriven(simplex_link) => simplex_link.settle(now),
            SimplexLink::Wireless(simplex_link) => simplex_link.settle(now),
        }
    }

    /// Probes of this direction, if any are enabled.
    #[inline]
    pub fn probes(&mut self) -> Option<&mut crate::probe::SimplexLinkProbes> {
        match self {
            SimplexLink::DelayLine(_) => None,
            SimplexLink::Analytic(simplex_link) => simplex_link.counters.probes.as_deref_mut(),
            SimplexLink::EventDriven(simplex_link) => simplex_link.counters.probes.as_deref_mut(),
            SimplexLink::Wireless(simplex_link) => simplex_link.probes.as_deref_mut(),
        }
    }

    /// The wireless simplex link, if this is a direction of a wireless link.
    #[inline]
    pub fn air(&mut self) -> Option<&mut WirelessLink> {
        match self {
            SimplexLink::DelayLine(_) | SimplexLink::Analytic(_) | SimplexLink::EventDriven(_) => {
                None
            }
            SimplexLink::Wireless(simplex_link) => Some(simplex_link),
        }
    }

    /// Enables probes on a simplex link that is not a delay line.
    pub fn set_probes(&mut self, probes: crate::probe::SimplexLinkProbes) {
        match self {
            SimplexLink::DelayLine(_) => {}
            SimplexLink::Analytic(simplex_link) => {
                simplex_link.counters.probes = Some(Box::new(probes))
            }
            SimplexLink::EventDriven(simplex_link) => {
                simplex_link.counters.probes = Some(Box::new(probes))
            }
            SimplexLink::Wireless(simplex_link) => simplex_link.probes = Some(Box::new(probes)),
        }
    }
}
