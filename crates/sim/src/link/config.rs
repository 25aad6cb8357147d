//! What a link is made of.

use std::fmt;

use anabranch_transport::Nanos;

use super::{Impairments, Outage};
use crate::ids::NodeId;
use crate::loss::{Loss, Place};
use crate::over_time::OverTime;
use crate::propagation::{Fixed, Propagation};
use crate::queue::{DropTail, QueueDiscipline};

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
    /// Rate in bits per second, 0 for a while included; `None`: packets take no time to serialise.
    pub rate: Option<OverTime<u64>>,
    /// How long a packet is in the air.
    pub propagation: Box<dyn Propagation>,
    /// A packet whose propagation is shorter may arrive before one that was sent earlier. `false`: it arrives with it.
    /// Those that an [impairment](Impairments) holds back are overtaken in any case.
    pub overtaking: bool,
    /// Who may wait for the transmitter, and who goes next.
    pub queue: Box<dyn QueueDiscipline>,
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
    /// Decides the passage of every packet step by step, also where it is known when the packet comes: behind a drop-tail
    /// queue at a constant rate. What arrives is the same; drops are counted when they happen, not when they are known.
    pub stepwise: bool,
}

impl DirectionConfig {
    /// A direction of the given rate (bits per second) and propagation delay that drops nothing.
    pub fn new(rate: u64, delay: Nanos) -> Self {
        Self {
            rate: Some(rate.into()),
            ..Self::instant(delay)
        }
    }

    /// A direction that serialises in no time.
    pub fn instant(delay: Nanos) -> Self {
        Self {
            rate: None,
            propagation: Box::new(Fixed(delay)),
            overtaking: false,
            queue: Box::new(DropTail::unlimited()),
            losses: Vec::new(),
            impairments: Impairments::default(),
            outages: Vec::new(),
            mtu: None,
            mtu_changes: Vec::new(),
            stepwise: false,
        }
    }

    /// With this rate, bits per second.
    #[must_use]
    pub fn with_rate(mut self, rate: impl Into<OverTime<u64>>) -> Self {
        self.rate = Some(rate.into());
        self
    }

    /// With this propagation, in which packets overtake each other or not.
    #[must_use]
    pub fn with_propagation(
        mut self,
        propagation: impl Propagation + 'static,
        overtaking: bool,
    ) -> Self {
        self.propagation = Box::new(propagation);
        self.overtaking = overtaking;
        self
    }

    /// Decided step by step.
    #[must_use]
    pub fn stepwise(mut self) -> Self {
        self.stepwise = true;
        self
    }

    /// With this queue.
    #[must_use]
    pub fn with_queue(mut self, queue: impl QueueDiscipline + 'static) -> Self {
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
