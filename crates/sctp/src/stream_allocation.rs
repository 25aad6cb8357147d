//! Stream allocation: the number of negotiated streams in use, for senders that leave the selection
//! of a stream to the stack.
//!
//! A message queued without a stream is assigned to a stream when its first byte is sent, round
//! robin over the streams in use. A change of their number takes effect with the next message that
//! is sent. Messages that were queued for a stream, or are partly sent, keep their stream.

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
pub use fixed::{FixedStreams, Negotiated};
pub use loss_classifier::{LossClassifier, LossEvents, RoundTrip};
pub use setting::VARIANTS;

/// Detected loss, with the state of its path before cwnd is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossEvent {
    /// Time of the detection.
    pub now: Nanos,
    /// How the loss was detected: by missing reports or by T3-rtx.
    pub cause: LossCause,
    /// cwnd in bytes before the reduction.
    pub cwnd: u64,
    /// Rate estimate in bytes per second, counted like cwnd; `None` before the first estimate.
    pub rate: Option<f64>,
    /// Minimum round-trip time of DATA on this path in nanoseconds, once measured.
    pub rtt_min: Option<Nanos>,
    /// Smoothed round-trip time in nanoseconds, once measured.
    pub srtt: Option<Nanos>,
}

/// Algorithm that determines the number of streams in use.
pub trait StreamAllocation: std::fmt::Debug + Send {
    /// Number of streams that the algorithm requests now, at least 1. If more than negotiated, the
    /// caller calls [`StreamAllocation::cap`].
    fn wanted(&self) -> u16;

    /// Called after the handshake with the number of negotiated streams.
    fn negotiated(&mut self, streams: u16) {
        let _ = streams;
    }

    /// Reduces the requested number to at most `most`, the number of negotiated streams.
    fn cap(&mut self, most: u16);

    /// Which events count as one loss for [`StreamAllocation::on_loss`].
    fn loss_events(&self) -> LossEvents {
        LossEvents::PerSack
    }

    /// Called for each detected loss.
    fn on_loss(&mut self, loss: &LossEvent) {
        let _ = loss;
    }

    /// Called for each retransmitted chunk.
    fn on_retransmission(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Time at which [`StreamAllocation::handle_timeout`] must be called.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// Called when the deadline may have passed.
    fn handle_timeout(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Name of the algorithm in specs and reports.
    fn name(&self) -> &'static str;
}

/// Stream allocation algorithm and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum AllocationKind {
    /// All negotiated streams are used.
    #[default]
    Negotiated,
    /// A fixed number of streams.
    Fixed(u16),
    /// One or several streams, depending on the cause of losses (Tsunoda et al. 2007, Fig. 3).
    Adaptive {
        /// Number of streams while multistreaming is enabled: 4 in the paper.
        streams: u16,
        /// How losses are classified.
        judgement: LossClassifier,
    },
    /// One stream more or one stream less after each loss (Tsunoda et al. 2007, Fig. 11).
    AdaptiveStep {
        /// How losses are classified.
        judgement: LossClassifier,
    },
}

impl AllocationKind {
    /// Number of streams that the published version of `adaptive` uses when it uses more than one.
    pub const ADAPTIVE_STREAMS: u16 = 4;

    /// Whether the allocation needs a rate estimate for each path, to classify losses.
    pub fn needs_rate(&self) -> bool {
        matches!(self, Self::Adaptive { .. } | Self::AdaptiveStep { .. })
    }

    fn build(&self) -> Allocation {
        match *self {
            Self::Negotiated => Allocation::Negotiated(Negotiated::default()),
            Self::Fixed(streams) => Allocation::Other(Box::new(FixedStreams::new(streams))),
            Self::Adaptive { streams, judgement } => {
                Allocation::Other(Box::new(Adaptive::new(streams, judgement)))
            }
            Self::AdaptiveStep { judgement } => {
                Allocation::Other(Box::new(AdaptiveStep::new(judgement)))
            }
        }
    }
}

/// Allocation algorithm; the default is stored without a heap allocation.
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

/// Number of streams in use, and round-robin assignment of messages to them.
#[derive(Debug)]
pub(crate) struct StreamsInUse {
    allocation: Allocation,
    /// Number of negotiated streams; 0 before the handshake.
    negotiated: u16,
    in_use: u16,
    next: u16,
    /// Number of streams last recorded in the trace; 0 before the first record.
    recorded: u16,
    /// Whether the user must be notified that the limit was reached.
    limit_is_news: bool,
    limit_told: bool,
    /// Number of requests for more streams than negotiated.
    pub refused: u64,
    /// Number of changes of the number of streams in use.
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

    /// Sets the number of negotiated streams after the handshake.
    pub fn negotiated(&mut self, streams: u16) {
        self.negotiated = streams.max(1);
        self.allocation.negotiated(self.negotiated);
        self.settle();
        self.changes = 0;
    }

    /// Sets the number of negotiated streams after streams were added.
    pub fn added(&mut self, streams: u16) {
        let changes = self.changes;
        self.negotiated(streams);
        self.changes = changes;
    }

    pub fn in_use(&self) -> u16 {
        self.in_use
    }

    /// Returns the stream for the next message.
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

    pub fn on_loss(&mut self, loss: &LossEvent, trace: &mut Trace) {
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

    /// Applies the request of the algorithm, limited to the number of negotiated streams.
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

    /// Number of negotiated streams, if a request has exceeded it and the user was not notified
    /// yet.
    pub fn take_limit_met(&mut self) -> Option<u16> {
        std::mem::take(&mut self.limit_is_news).then_some(self.negotiated)
    }

    /// Whether [`Self::take_limit_met`] would return a number.
    #[inline(always)]
    pub fn has_met_limit(&self) -> bool {
        self.limit_is_news
    }

    /// Records the number of streams in use in the trace, if it has changed.
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
