//! The send sequence space (RFC 9293 §3.3.1) in offsets that do not wrap, shared by the sender and its loss recovery.

use anabranch_congestion::recovery::Prr;
use anabranch_congestion::{CongestionControl, DeliveryMeter, LossCause, Pacer};
use anabranch_transport::Nanos;

use super::ecn::EcnSender;
use super::scoreboard::Scoreboard;
use super::spurious::Spurious;
use crate::profile::HalvingBasis;

/// Variables of the send direction. Offsets count from the initial sequence number: the SYN is 0, the first byte 1.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Oldest unacknowledged, `SND.UNA`.
    pub una: u64,
    /// Next to send, `SND.NXT`; falls back to `una` at a timeout.
    pub nxt: u64,
    /// Behind the highest ever sent.
    pub max: u64,
    /// Behind the last byte that the peer's window allows, `SND.UNA + SND.WND`.
    pub window_edge: u64,
    /// Behind the last byte written by the application, and the FIN where it closed.
    pub queued_to: u64,
    /// Bytes of text in a full segment, options allowed for; at least 1.
    pub mss: u64,
    /// What the peer holds beyond `una`.
    pub board: Scoreboard,
    /// Duplicate acknowledgements in a row.
    pub duplicates: u32,
    /// How much may fly.
    pub control: Box<dyn CongestionControl>,
    /// When the next segment may go.
    pub pacer: Pacer,
    /// How fast the path delivers.
    pub delivery: DeliveryMeter,
    /// What marks and reductions of the window left.
    pub ecn: EcnSender,
    /// What may show that a reduction answered no loss.
    pub spurious: Spurious,
    /// What a loss halves.
    pub halving: HalvingBasis,
    /// New data may go on the first duplicates (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicates that are a loss (RFC 5681 §3.2).
    pub duplicate_threshold: u32,
    /// Recoveries reduce the window in proportion to what arrives (RFC 6937).
    pub proportional: bool,
    /// While they do.
    pub reduction: Option<Reduction>,
}

/// A proportional rate reduction under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    prr: Prr,
    /// What may be in flight until the next acknowledgement.
    limit: u64,
}

impl Flow {
    /// Bytes outstanding, `FlightSize` (RFC 5681 §2).
    pub fn flightsize(&self) -> u64 {
        self.max - self.una
    }

    /// The peer's window, bytes.
    pub fn peer_window(&self) -> u64 {
        self.window_edge.saturating_sub(self.una)
    }

    /// What the congestion window still allows from `nxt` on, with `extra` bytes above it.
    pub fn room(&self, extra: u64) -> u64 {
        (self.una + self.control.cwnd() + extra).saturating_sub(self.nxt)
    }

    /// What limited transmit adds to the window (RFC 3042): a segment for each of the first duplicates.
    pub fn limited_extra(&self) -> u64 {
        if self.limited_transmit && self.duplicates < self.duplicate_threshold {
            u64::from(self.duplicates) * self.mss
        } else {
            0
        }
    }

    /// Unsent data waits, and the peer's window takes some of it.
    pub fn can_send_new(&self) -> bool {
        self.nxt.max(self.max) < self.queued_to.min(self.window_edge)
    }

    /// A recovery begins with `pipe` in flight, before the window is cut.
    pub fn begin_reduction(&mut self, pipe: u64) {
        self.reduction = self.proportional.then(|| Reduction {
            prr: Prr::new(self.flightsize().max(pipe)),
            limit: pipe,
        });
    }

    /// An acknowledgement in a recovery tells that `delivered` bytes more arrived; `pipe` is in flight.
    pub fn reduce(&mut self, delivered: u64, pipe: u64) {
        let (target, segment) = (self.control.cwnd(), self.mss);
        if let Some(reduction) = &mut self.reduction {
            let due = reduction.prr.on_ack(delivered, pipe, target, segment);
            reduction.limit = pipe + due;
        }
    }

    /// So much went.
    pub fn count_reduced(&mut self, bytes: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.prr.on_sent(bytes);
        }
    }

    /// No recovery runs any more.
    pub fn end_reduction(&mut self) {
        self.reduction = None;
    }

    /// What may be in flight where [`Self::flightsize`] is not what counts.
    pub fn limit(&self) -> u64 {
        let cwnd = || self.control.cwnd();
        self.reduction
            .map_or_else(cwnd, |reduction| reduction.limit)
    }

    /// Tells the controller of a loss; `uncounted` bytes of the flight were sent by limited transmit (RFC 5681 §3.2
    /// step 2).
    pub fn cut(&mut self, now: Nanos, cause: LossCause, uncounted: u64) {
        if cause == LossCause::FastRetransmit && self.ecn.has_answered(self.una) {
            return;
        }
        let outstanding = self.flightsize().saturating_sub(uncounted);
        let basis = self.halved(outstanding);
        let (cwnd, ssthresh) = (self.control.cwnd_exact(), self.control.ssthresh());
        self.spurious.remember(cause, cwnd, ssthresh);
        self.control.on_loss(now, cause, basis);
        self.ecn.reduced(self.max, false);
    }

    /// What a reduction halves, where `flightsize` was outstanding: no more than the window.
    ///
    /// Where a retransmission is lost, or one recovery follows the other, much that is outstanding (RFC 5681 §2) has arrived behind the
    /// holes. Half of it may be more than the window, which would then not fall however much is lost. "No more than" half is asked (§3.1).
    fn halved(&self, flightsize: u64) -> u64 {
        match self.halving {
            HalvingBasis::FlightSize => flightsize.min(self.control.cwnd()),
            HalvingBasis::Window => self.peer_window(),
        }
    }

    /// An acknowledgement with ECN-Echo came when `flightsize` was outstanding: tells the controller, once for a window of
    /// data (RFC 3168 §6.1.2). A window of one segment gets no smaller; then nothing goes for `rto`. Returns whether it
    /// was news.
    pub fn answer_mark(&mut self, now: Nanos, flightsize: u64, rto: Nanos) -> bool {
        if !self.ecn.is_news(self.una) {
            return false;
        }
        if self.control.cwnd() < 2 * self.mss {
            self.ecn.hold(self.max, now.saturating_add(rto));
        } else {
            let basis = self.halved(flightsize);
            self.control.on_ecn(now, basis);
            self.ecn.reduced(self.max, true);
        }
        true
    }
}
