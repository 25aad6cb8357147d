//! Adaptive allocation with one stream more or less after each loss (Tsunoda et al. 2007, Fig. 11).

use anabranch_transport::Nanos;

use super::loss_classifier::QuietTimer;
use super::{LossClassifier, LossEvent, LossEvents, StreamAllocation};

/// Adds a stream after each wireless loss, removes one after each congestion loss, and returns to
/// one stream after a period without retransmissions.
#[derive(Clone, Debug)]
pub struct AdaptiveStep {
    judgement: LossClassifier,
    streams: u16,
    watch: QuietTimer,
}

impl AdaptiveStep {
    /// Starts with one stream.
    pub fn new(judgement: LossClassifier) -> Self {
        Self {
            judgement,
            streams: 1,
            watch: QuietTimer::default(),
        }
    }
}

impl StreamAllocation for AdaptiveStep {
    fn wanted(&self) -> u16 {
        self.streams
    }

    fn cap(&mut self, most: u16) {
        self.streams = self.streams.min(most.max(1));
    }

    fn loss_events(&self) -> LossEvents {
        self.judgement.loss_events
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.streams = if self.judgement.is_congestion(loss, self.streams > 1) {
            (self.streams - 1).max(1)
        } else {
            self.streams.saturating_add(1)
        };
        self.watch
            .watch(loss.now, self.streams > 1, self.judgement.quiet);
    }

    fn on_retransmission(&mut self, now: Nanos) {
        self.watch.on_retransmission(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.watch.deadline()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.watch.is_quiet(now, self.judgement.quiet) {
            self.streams = 1;
            self.watch.watch(now, false, None);
        }
    }

    fn name(&self) -> &'static str {
        "adaptive-step"
    }
}
