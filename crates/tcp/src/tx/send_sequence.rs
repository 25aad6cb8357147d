//! Send sequence space (RFC 9293 §3.3.1) in offsets that do not wrap, shared by the sender and its
//! loss recovery.

use anabranch_congestion::recovery::Prr;
use anabranch_congestion::{CongestionControl, DeliveryMeter, LossCause, Pacer};
use anabranch_transport::Nanos;

use super::ecn::EcnSender;
use super::scoreboard::Scoreboard;
use super::spurious::Spurious;
use crate::profile::HalvingBasis;

/// Variables of the send direction. Offsets are relative to the initial sequence number: the SYN is
/// 0, the first byte 1.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Oldest unacknowledged offset, `SND.UNA`.
    pub una: u64,
    /// Next offset to send, `SND.NXT`; set back to `una` by a timeout.
    pub nxt: u64,
    /// Offset after the highest byte ever sent.
    pub max: u64,
    /// Offset after the last byte that the window of the peer allows, `SND.UNA + SND.WND`.
    pub window_edge: u64,
    /// Offset after the last byte written by the application, and after the FIN if it has closed.
    pub queued_to: u64,
    /// Data bytes in a full segment with options; at least 1.
    pub mss: u64,
    /// Data that the peer has received after `una`.
    pub board: Scoreboard,
    /// Number of consecutive duplicate acknowledgements.
    pub duplicates: u32,
    /// Congestion controller.
    pub control: Box<dyn CongestionControl>,
    /// Pacing of segments.
    pub pacer: Pacer,
    /// Delivery rate meter.
    pub delivery: DeliveryMeter,
    /// ECN marks and window reductions.
    pub ecn: EcnSender,
    /// Detection of spurious window reductions.
    pub spurious: Spurious,
    /// Quantity that a loss halves.
    pub halving: HalvingBasis,
    /// New data may be sent on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Number of duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
    pub duplicate_threshold: u32,
    /// Recoveries use proportional rate reduction (RFC 6937).
    pub proportional: bool,
    /// The reduction in progress.
    pub reduction: Option<Reduction>,
}

/// A proportional rate reduction in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    prr: Prr,
    /// Maximum number of bytes in flight until the next acknowledgement.
    limit: u64,
}

impl Flow {
    /// Bytes outstanding, `FlightSize` (RFC 5681 §2).
    pub fn flightsize(&self) -> u64 {
        self.max - self.una
    }

    /// Window of the peer, bytes.
    pub fn peer_window(&self) -> u64 {
        self.window_edge.saturating_sub(self.una)
    }

    /// Bytes that may be sent from `nxt` on, with `extra` bytes above the congestion window.
    pub fn room(&self, extra: u64) -> u64 {
        (self.una + self.control.cwnd() + extra).saturating_sub(self.nxt)
    }

    /// Bytes that limited transmit adds to the window (RFC 3042): one segment for each of the first
    /// duplicate acknowledgements.
    pub fn limited_extra(&self) -> u64 {
        if self.limited_transmit && self.duplicates < self.duplicate_threshold {
            u64::from(self.duplicates) * self.mss
        } else {
            0
        }
    }

    /// Whether unsent data is waiting and the window of the peer has space for some of it.
    pub fn can_send_new(&self) -> bool {
        self.nxt.max(self.max) < self.queued_to.min(self.window_edge)
    }

    /// Starts a recovery with `pipe` bytes in flight, before the window is reduced.
    pub fn begin_reduction(&mut self, pipe: u64) {
        self.reduction = self.proportional.then(|| Reduction {
            prr: Prr::new(self.flightsize().max(pipe)),
            limit: pipe,
        });
    }

    /// Processes an acknowledgement during recovery that reports `delivered` more bytes, with
    /// `pipe` bytes in flight.
    pub fn reduce(&mut self, delivered: u64, pipe: u64) {
        let (target, segment) = (self.control.cwnd(), self.mss);
        if let Some(reduction) = &mut self.reduction {
            let due = reduction.prr.on_ack(delivered, pipe, target, segment);
            reduction.limit = pipe + due;
        }
    }

    /// Records that `bytes` were sent.
    pub fn count_reduced(&mut self, bytes: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.prr.on_sent(bytes);
        }
    }

    /// Ends the reduction because recovery has ended.
    pub fn end_reduction(&mut self) {
        self.reduction = None;
    }

    /// Maximum number of bytes in flight, for algorithms that do not use [`Self::flightsize`].
    pub fn limit(&self) -> u64 {
        let cwnd = || self.control.cwnd();
        self.reduction
            .map_or_else(cwnd, |reduction| reduction.limit)
    }

    /// Reports a loss to the controller; `uncounted` bytes of the flight were sent by limited
    /// transmit (RFC 5681 §3.2 step 2).
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

    /// Number of bytes to halve for a reduction when `flightsize` is outstanding; not more than the
    /// window.
    ///
    /// If a retransmission is lost, or one recovery follows another, much of the outstanding data
    /// (RFC 5681 §2) has already arrived after the gaps. Half of it may exceed the window, which
    /// would then not decrease regardless of the losses. RFC 5681 §3.1 allows "no more than" half.
    fn halved(&self, flightsize: u64) -> u64 {
        match self.halving {
            HalvingBasis::FlightSize => flightsize.min(self.control.cwnd()),
            HalvingBasis::Window => self.peer_window(),
        }
    }

    /// Processes an acknowledgement with ECN-Echo that arrived when `flightsize` was outstanding.
    /// The controller is notified once per window of data (RFC 3168 §6.1.2). A window of one
    /// segment cannot be reduced, so sending is paused for `rto` instead. Returns whether the
    /// congestion was new.
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
