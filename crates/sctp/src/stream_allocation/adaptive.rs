//! Adaptive allocation: one or several streams, depending on the cause of losses (Tsunoda et al.
//! 2007, Fig. 3; first at ICSSC 2007).

use anabranch_transport::Nanos;

use super::loss_classifier::QuietTimer;
use super::{LossClassifier, LossEvent, LossEvents, StreamAllocation};

/// Uses several streams while losses are classified as wireless, and one stream while they are
/// classified as congestion or do not occur.
#[derive(Clone, Debug)]
pub struct Adaptive {
    judgement: LossClassifier,
    /// Number of streams while several are used.
    streams: u16,
    enabled: bool,
    watch: QuietTimer,
}

impl Adaptive {
    /// Starts with one stream, and uses `streams` streams after wireless losses.
    pub fn new(streams: u16, judgement: LossClassifier) -> Self {
        Self {
            judgement,
            streams: streams.max(1),
            enabled: false,
            watch: QuietTimer::default(),
        }
    }
}

impl StreamAllocation for Adaptive {
    fn wanted(&self) -> u16 {
        if self.enabled { self.streams } else { 1 }
    }

    fn cap(&mut self, most: u16) {
        self.streams = most.max(1);
    }

    fn loss_events(&self) -> LossEvents {
        self.judgement.loss_events
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.enabled = !self.judgement.is_congestion(loss, self.enabled);
        self.watch
            .watch(loss.now, self.enabled, self.judgement.quiet);
    }

    fn on_retransmission(&mut self, now: Nanos) {
        self.watch.on_retransmission(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.watch.deadline()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.watch.is_quiet(now, self.judgement.quiet) {
            self.enabled = false;
            self.watch.watch(now, false, None);
        }
    }

    fn name(&self) -> &'static str {
        "adaptive"
    }
}
