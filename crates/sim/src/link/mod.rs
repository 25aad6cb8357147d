//! Links: what they are made of, and what they tell about themselves.
//!
//! A *lane* carries packets that interfaces offer to it and shows when its next event is; the world knows nothing more
//! about it. A full-duplex point-to-point link is two lanes, one per direction. A wireless link is two lanes too, from
//! station to station, but they share a medium with all others there: the medium has the events, and the lanes keep the
//! accounts.

mod air;
mod impairment;
mod outage;
mod point_to_point;
mod stats;

use std::fmt;

use anabranch_transport::Nanos;

pub use impairment::{Impairments, Reordering};
pub use outage::Outage;
pub use stats::{Count, LinkStats};

pub(crate) use air::{AirLane, Aloft, Cell, Landing};
pub(crate) use point_to_point::PointToPoint;

use crate::agenda::Key;
use crate::loss::{Loss, Place};
use crate::packet::Parcel;
use crate::queue::{DropTail, Queue};
use crate::topology::NodeId;

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the first of the link's nodes to the second.
    Forward,
    /// From the second to the first.
    Backward,
}

impl Direction {
    /// Both.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// `forward` or `backward`, as in specs and in the names of random streams.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }
}

/// A loss model and where it stands.
pub struct PlacedLoss {
    /// Before the queue or in the air.
    pub place: Place,
    /// The model.
    pub model: Box<dyn Loss>,
    /// Name of the random stream it draws from. `None`: a stream of its own, `link <link> <direction> loss <index>`.
    /// Two worlds with one seed meet the same losses wherever the names are equal.
    pub stream: Option<String>,
}

impl PlacedLoss {
    /// `model` before the queue, with a stream of its own.
    pub fn before_queue(model: impl Loss + 'static) -> Self {
        Self {
            place: Place::BeforeQueue,
            model: Box::new(model),
            stream: None,
        }
    }

    /// `model` in the air, with a stream of its own.
    pub fn after_queue(model: impl Loss + 'static) -> Self {
        Self {
            place: Place::AfterQueue,
            ..Self::before_queue(model)
        }
    }
}

impl fmt::Debug for PlacedLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlacedLoss")
            .field("place", &self.place)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// One direction of a point-to-point link.
pub struct DirectionConfig {
    /// Rate in bits per second; `None`: packets take no time to serialise.
    pub rate: Option<u64>,
    /// Propagation delay.
    pub delay: Nanos,
    /// Who may wait for the transmitter.
    pub queue: Box<dyn Queue>,
    /// Loss models, asked in this order.
    pub losses: Vec<PlacedLoss>,
    /// Reordering, duplication and corruption; `None` of them by default.
    pub impairments: Impairments,
    /// When the link is down, in the order of time.
    pub outages: Vec<Outage>,
    /// The largest packet it carries, in bytes with the IP header; `None`: any. A larger one is dropped as
    /// [`TooBig`](crate::DropReason::TooBig), unless IP may fragment it.
    pub mtu: Option<usize>,
    /// From when on it carries another size, in the order of time.
    pub mtu_changes: Vec<(Nanos, usize)>,
}

impl DirectionConfig {
    /// A direction of the given rate (bits per second) and propagation delay that drops nothing.
    pub fn new(rate: u64, delay: Nanos) -> Self {
        Self {
            rate: Some(rate),
            ..Self::instant(delay)
        }
    }

    /// A direction that serialises in no time.
    pub fn instant(delay: Nanos) -> Self {
        Self {
            rate: None,
            delay,
            queue: Box::new(DropTail::unlimited()),
            losses: Vec::new(),
            impairments: Impairments::default(),
            outages: Vec::new(),
            mtu: None,
            mtu_changes: Vec::new(),
        }
    }

    /// With this queue.
    #[must_use]
    pub fn with_queue(mut self, queue: impl Queue + 'static) -> Self {
        self.queue = Box::new(queue);
        self
    }

    /// With one more loss model.
    #[must_use]
    pub fn with_loss(mut self, loss: PlacedLoss) -> Self {
        self.losses.push(loss);
        self
    }

    /// With these impairments.
    #[must_use]
    pub fn with_impairments(mut self, impairments: Impairments) -> Self {
        self.impairments = impairments;
        self
    }

    /// Carries packets of at most `mtu` bytes, and from the times of `changes` on of others.
    #[must_use]
    pub fn with_mtu(
        mut self,
        mtu: Option<usize>,
        changes: impl IntoIterator<Item = (Nanos, usize)>,
    ) -> Self {
        self.mtu = mtu;
        self.mtu_changes = changes.into_iter().collect();
        self
    }

    /// With these outages.
    #[must_use]
    pub fn with_outages(mut self, outages: impl IntoIterator<Item = Outage>) -> Self {
        self.outages = outages.into_iter().collect();
        self
    }
}

impl fmt::Debug for DirectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectionConfig")
            .field("rate", &self.rate)
            .field("delay", &self.delay)
            .field("losses", &self.losses)
            .field("impairments", &self.impairments)
            .field("outages", &self.outages)
            .field("mtu", &self.mtu)
            .finish_non_exhaustive()
    }
}

/// A full-duplex link between two nodes.
#[derive(Debug)]
pub struct LinkConfig {
    /// Its name, unique in the topology; it names the random streams too.
    pub name: String,
    /// The nodes at its ends.
    pub between: [NodeId; 2],
    /// From the first node to the second.
    pub forward: DirectionConfig,
    /// From the second node to the first.
    pub backward: DirectionConfig,
}

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
    /// One direction of a point-to-point link.
    PointToPoint(Box<PointToPoint>),
    /// One direction of a wireless link. Its medium is offered its packets and has its events.
    Air(Box<AirLane>),
}

impl Lane {
    /// Takes a packet from an interface. `sequence` numbers the events of the world.
    #[inline]
    pub fn offer(&mut self, now: Nanos, packet: Parcel, sequence: &mut u64) -> Offered {
        match self {
            Lane::PointToPoint(lane) => lane.offer(now, packet, sequence),
            Lane::Air(_) => Offered::REFUSED,
        }
    }

    /// The lane's next event.
    #[inline]
    pub fn next(&self) -> Key {
        match self {
            Lane::PointToPoint(lane) => lane.next(),
            Lane::Air(_) => Key::NEVER,
        }
    }

    /// Runs the next event: the interface a packet arrives at and the packet, or `None` for an event within the lane.
    #[inline]
    pub fn step(&mut self, now: Nanos) -> Option<(u32, Parcel)> {
        match self {
            Lane::PointToPoint(lane) => lane.step(now),
            Lane::Air(_) => None,
        }
    }

    /// Packets it was given, or made by duplication, that neither arrived nor were dropped.
    pub fn in_flight(&self) -> u64 {
        match self {
            Lane::PointToPoint(lane) => lane.in_flight(),
            Lane::Air(lane) => lane.in_flight(),
        }
    }

    /// What it did up to `now`.
    pub fn stats(&self, now: Nanos) -> LinkStats {
        match self {
            Lane::PointToPoint(lane) => lane.stats(now),
            Lane::Air(lane) => lane.stats(),
        }
    }

    /// Tells its probes everything up to `now`.
    pub fn settle(&mut self, now: Nanos) {
        match self {
            Lane::PointToPoint(lane) => lane.settle(now),
            Lane::Air(lane) => lane.settle(now),
        }
    }

    /// Its probes, if any are on.
    #[inline]
    pub fn probes(&mut self) -> Option<&mut crate::probe::LaneProbes> {
        match self {
            Lane::PointToPoint(lane) => lane.probes.as_deref_mut(),
            Lane::Air(lane) => lane.probes.as_deref_mut(),
        }
    }

    /// Its account, if it is one of a wireless link.
    #[inline]
    pub fn air(&mut self) -> Option<&mut AirLane> {
        match self {
            Lane::PointToPoint(_) => None,
            Lane::Air(lane) => Some(lane),
        }
    }

    /// Turns probes on.
    pub fn set_probes(&mut self, probes: crate::probe::LaneProbes) {
        match self {
            Lane::PointToPoint(lane) => lane.probes = Some(Box::new(probes)),
            Lane::Air(lane) => lane.probes = Some(Box::new(probes)),
        }
    }
}
