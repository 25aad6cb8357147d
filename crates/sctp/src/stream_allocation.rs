//! Stream allocation: the number of negotiated streams in use, for senders that leave the selection
//! of a stream to the stack.
//!
//! A message queued without a stream is assigned one when its first byte is sent, round robin over
//! the streams in use. A change takes effect with the next sent message, regardless of the number
//! of queued messages. Messages queued for a stream, or partly sent, keep it.

mod adaptive;
mod adaptive_step;
mod fixed;
mod loss_classifier;
mod setting;

use std::ops::{Deref, DerefMut};

use anabranch_congestion::LossCause;
use anabranch_transport::{Nanos, Probe, Trace};

pub use adaptive::Adaptive;
pub use adaptive_step::AdaptiveStep;
pub use fixed::{Fixed, Negotiated};
pub use loss_classifier::{LossClassifier, LossEvents, RoundTrip};
pub use setting::VARIANTS;

/// A loss, with the state of the path before its window is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Time of detection.
    pub now: Nanos,
    /// Detection by missing reports or by T3-rtx.
    pub cause: LossCause,
    /// Congestion window before the reduction, bytes.
    pub cwnd: u64,
    /// Rate estimate, bytes per second as cwnd counts them, once available.
    pub rate: Option<f64>,
    /// Minimum round-trip time of DATA on this path, once measured.
    pub rtt_min: Option<Nanos>,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Nanos>,
}

/// Algorithm for the number of streams in use.
pub trait StreamAllocation: std::fmt::Debug + Send {
    /// Streams requested now, at least 1. More than negotiated are not possible; see
    /// [`StreamAllocation::cap`].
    fn wanted(&self) -> u16;

    /// The handshake has negotiated `streams`.
    fn negotiated(&mut self, streams: u16) {
        let _ = streams;
    }

    /// At most `most` are possible: the request should be reduced to that.
    fn cap(&mut self, most: u16);

    /// Definition of one loss for [`StreamAllocation::on_loss`].
    fn loss_events(&self) -> LossEvents {
        LossEvents::PerSack
    }

    /// A loss was detected.
    fn on_loss(&mut self, loss: &Loss) {
        let _ = loss;
    }

    /// A chunk is retransmitted.
    fn on_retransmission(&mut self, now: Nanos) {
        let _ = now;
    }

    /// When [`StreamAllocation::handle_timeout`] must be called.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// The deadline may have passed.
    fn handle_timeout(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}

/// Selects an allocation and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum AllocationKind {
    /// All negotiated streams are used.
    #[default]
    Negotiated,
    /// A fixed number of streams.
    Fixed(u16),
    /// One stream or several, depending on the cause of losses (Tsunoda et al. 2007, Fig. 3).
    Adaptive {
        /// Number of streams while multistreaming is enabled: 4 in the paper.
        streams: u16,
        /// Classification of a loss.
        judgement: LossClassifier,
    },
    /// One stream more or one stream fewer with each loss (Tsunoda et al. 2007, Fig. 11).
    AdaptiveStep {
        /// Classification of a loss.
        judgement: LossClassifier,
    },
}

impl AllocationKind {
    /// Streams of `adaptive` while it is enabled, as published.
    pub const ADAPTIVE_STREAMS: u16 = 4;

    /// Whether the allocation classifies losses by a rate estimate, which each path must then
    /// compute.
    pub fn needs_rate(&self) -> bool {
        matches!(self, Self::Adaptive { .. } | Self::AdaptiveStep { .. })
    }

    fn build(&self) -> Allocation {
        match *self {
            Self::Negotiated => Allocation::Negotiated(Negotiated::default()),
            Self::Fixed(streams) => Allocation::Other(Box::new(Fixed::new(streams))),
            Self::Adaptive { streams, judgement } => {
                Allocation::Other(Box::new(Adaptive::new(streams, judgement)))
            }
            Self::AdaptiveStep { judgement } => {
                Allocation::Other(Box::new(AdaptiveStep::new(judgement)))
            }
        }
    }
}

/// The algorithm; the default one needs no allocation.
#[derive(Debug)]
enum Allocation {
    Negotiated(Negotiated),
    Other(Box<dyn StreamAllocation>),
}

impl Deref for Allocation {
    type Target = dyn StreamAllocation;

    fn deref(&self) -> &Self::Target {
        match self {
            Allocation::Negotiated(it) => it,
            Allocation::Other(it) => &**it,
        }
    }
}

impl DerefMut for Allocation {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Allocation::Negotiated(it) => it,
            Allocation::Other(it) => &mut **it,
        }
    }
}

/// The number of streams in use, and the next of these streams.
#[derive(Debug)]
pub(crate) struct StreamsInUse {
    allocation: Allocation,
    /// 0 before the handshake.
    negotiated: u16,
    in_use: u16,
    next: u16,
    /// The number last recorded; 0 before the first.
    recorded: u16,
    /// The reached limit was not reported to the user yet.
    limit_is_news: bool,
    limit_told: bool,
    /// Requests beyond the negotiated number.
    pub refused: u64,
    /// Changes of the number in use.
    pub changes: u64,
}

impl StreamsInUse {
    pub fn new(kind: &AllocationKind) -> Self {
        Self {
            allocation: kind.build(),
            negotiated: 0,
            in_use: 1,
            next: 0,
            recorded: 0,
            limit_is_news: false,
            limit_told: false,
            refused: 0,
            changes: 0,
        }
    }

    /// The handshake has negotiated the number of streams.
    pub fn negotiated(&mut self, streams: u16) {
        self.negotiated = streams.max(1);
        self.allocation.negotiated(self.negotiated);
        self.settle();
        self.changes = 0;
    }

    /// Sets the number of streams after some were added.
    pub fn added(&mut self, streams: u16) {
        let changes = self.changes;
        self.negotiated(streams);
        self.changes = changes;
    }

    pub fn in_use(&self) -> u16 {
        self.in_use
    }

    /// The stream for the next message.
    pub fn take_turn(&mut self) -> u16 {
        let stream = if self.next < self.in_use {
            self.next
        } else {
            0
        };
        self.next = stream + 1;
        stream
    }

    pub fn loss_events(&self) -> LossEvents {
        self.allocation.loss_events()
    }

    pub fn on_loss(&mut self, loss: &Loss, trace: &mut Trace) {
        self.allocation.on_loss(loss);
        self.settle();
        self.record(loss.now, trace);
    }

    pub fn on_retransmission(&mut self, now: Nanos) {
        self.allocation.on_retransmission(now);
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.allocation.deadline()
    }

    pub fn handle_timeout(&mut self, now: Nanos, trace: &mut Trace) {
        self.allocation.handle_timeout(now);
        self.settle();
        self.record(now, trace);
    }

    /// Applies the algorithm's request as far as possible.
    fn settle(&mut self) {
        if self.negotiated == 0 {
            return;
        }
        let wanted = self.allocation.wanted().max(1);
        let in_use = wanted.min(self.negotiated);
        if wanted > self.negotiated {
            self.refused += 1;
            self.limit_is_news |= !std::mem::replace(&mut self.limit_told, true);
            self.allocation.cap(self.negotiated);
        } else if wanted < self.negotiated {
            self.limit_told = false;
        }
        self.changes += u64::from(in_use != self.in_use);
        self.in_use = in_use;
    }

    /// The negotiated number, if a request for more has reached it for the first time since the
    /// last call.
    pub fn take_limit_met(&mut self) -> Option<u16> {
        std::mem::take(&mut self.limit_is_news).then_some(self.negotiated)
    }

    /// Whether [`Self::take_limit_met`] has an event to report.
    #[inline(always)]
    pub fn has_met_limit(&self) -> bool {
        self.limit_is_news
    }

    /// Records the number in use if it changed.
    #[inline]
    pub fn record(&mut self, now: Nanos, trace: &mut Trace) {
        if self.recorded != self.in_use {
            self.recorded = self.in_use;
            trace.record(now, Probe::StreamsInUse, 0, self.in_use.into());
        }
    }
}

#[cfg(test)]
mod tests;
