//! Configuration of point-to-point links.

use std::fmt;

use anabranch_transport::Nanos;

use super::{Impairments, Outage};
use crate::ids::NodeId;
use crate::loss::{Loss, LossPosition};
use crate::propagation::{ConstantDelay, Propagation};
use crate::queue::{DropTail, QueueDiscipline};
use crate::step_function::StepFunction;

/// A loss model and its position.
pub struct PlacedLoss {
    /// Before the queue or in the channel.
    pub place: LossPosition,
    /// The loss model.
    pub model: Box<dyn Loss>,
    /// Name of the model's random stream. `None`: the stream is named after the position of the
    /// model, `link <link> <direction> loss <index>`. Two worlds with one seed have the same losses
    /// on streams with the same name.
    pub stream: Option<String>,
}

impl PlacedLoss {
    /// Places `model` before the queue, with its default random stream.
    pub fn before_queue(model: impl Loss + 'static) -> Self {
        Self {
            place: LossPosition::BeforeQueue,
            model: Box::new(model),
            stream: None,
        }
    }

    /// Places `model` in the channel, with its default random stream.
    pub fn after_queue(model: impl Loss + 'static) -> Self {
        Self {
            place: LossPosition::AfterQueue,
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
    /// Rate in bits per second, which may be 0 for some time; `None`: packets have no transmission
    /// time.
    pub rate: Option<StepFunction<u64>>,
    /// Propagation model: the delay of each packet in the channel.
    pub propagation: Box<dyn Propagation>,
    /// Whether a packet with a shorter propagation delay may overtake earlier packets. If `false`,
    /// a packet arrives no earlier than the packet before it. Packets that an
    /// [impairment](Impairments) delays are overtaken in both cases.
    pub allow_reordering: bool,
    /// Queue discipline.
    pub queue: Box<dyn QueueDiscipline>,
    /// Loss models, applied in this order.
    pub losses: Vec<PlacedLoss>,
    /// Reordering, duplication and corruption; none by default.
    pub impairments: Impairments,
    /// Outages, in the order of time.
    pub outages: Vec<Outage>,
    /// Maximum packet size in bytes, IP header included; `None`: unlimited. A larger packet is
    /// dropped with the reason [`TooBig`](crate::DropReason::TooBig), unless IP may fragment it.
    pub mtu: Option<usize>,
    /// Changes of the MTU: times in nanoseconds in ascending order, each with the maximum packet
    /// size in bytes from that time on.
    pub mtu_changes: Vec<(Nanos, usize)>,
    /// Whether every packet is simulated event by event, even if its passage could be computed when
    /// it is offered (drop-tail queue and constant rate). Arrivals are the same in both cases. If
    /// packets are simulated event by event, drops are counted when they occur, and otherwise when
    /// they are computed.
    pub event_driven: bool,
}

impl DirectionConfig {
    /// A direction with this rate (bits per second) and propagation delay (nanoseconds) that drops
    /// no packets.
    pub fn new(rate: u64, delay: Nanos) -> Self {
        Self {
            rate: Some(rate.into()),
            ..Self::instant(delay)
        }
    }

    /// A direction without transmission time, with a propagation delay of `delay` nanoseconds.
    pub fn instant(delay: Nanos) -> Self {
        Self {
            rate: None,
            propagation: Box::new(ConstantDelay(delay)),
            allow_reordering: false,
            queue: Box::new(DropTail::unlimited()),
            losses: Vec::new(),
            impairments: Impairments::default(),
            outages: Vec::new(),
            mtu: None,
            mtu_changes: Vec::new(),
            event_driven: false,
        }
    }

    /// Sets the rate, bits per second.
    #[must_use]
    pub fn with_rate(mut self, rate: impl Into<StepFunction<u64>>) -> Self {
        self.rate = Some(rate.into());
        self
    }

    /// Sets the propagation delay, and whether packets may overtake each other.
    #[must_use]
    pub fn with_propagation(
        mut self,
        propagation: impl Propagation + 'static,
        allow_reordering: bool,
    ) -> Self {
        self.propagation = Box::new(propagation);
        self.allow_reordering = allow_reordering;
        self
    }

    /// Selects event-driven processing.
    #[must_use]
    pub fn event_driven(mut self) -> Self {
        self.event_driven = true;
        self
    }

    /// Sets the queue discipline.
    #[must_use]
    pub fn with_queue(mut self, queue: impl QueueDiscipline + 'static) -> Self {
        self.queue = Box::new(queue);
        self
    }

    /// Adds a loss model.
    #[must_use]
    pub fn with_loss(mut self, loss: PlacedLoss) -> Self {
        self.losses.push(loss);
        self
    }

    /// Sets the impairments.
    #[must_use]
    pub fn with_impairments(mut self, impairments: Impairments) -> Self {
        self.impairments = impairments;
        self
    }

    /// Sets the maximum packet size in bytes, and its changes.
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

    /// Sets the outages.
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
    /// Name, unique in the topology; random streams are named after it.
    pub name: String,
    /// Nodes at the two ends of the link.
    pub between: [NodeId; 2],
    /// Direction from the first node to the second.
    pub forward: DirectionConfig,
    /// Direction from the second node to the first.
    pub backward: DirectionConfig,
}
