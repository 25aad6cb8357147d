//! Send sequence space (RFC 9293 §3.3.1) in offsets that do not wrap. The sender and its loss
//! recovery share it.

use anabranch_congestion::recovery::Prr;
use anabranch_congestion::{CongestionControl, DeliveryMeter, LossCause, Pacer};
use anabranch_transport::Nanos;

use super::ecn::EcnSender;
use super::scoreboard::Scoreboard;
use super::spurious::Spurious;
use crate::profile::HalvingBasis;

/// Variables of the sending direction that loss recovery also needs. Offsets are relative to the
/// initial sequence number: the SYN has offset 0, the first data byte offset 1.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Oldest unacknowledged offset, `SND.UNA`.
    pub una: u64,
    /// Next offset to send, `SND.NXT`; a timeout sets it back to `una`.
    pub nxt: u64,
    /// Offset after the highest byte ever sent.
    pub max: u64,
    /// Offset after the last byte that the window of the peer allows, `SND.UNA + SND.WND`.
    pub window_edge: u64,
    /// Offset after the last byte that the application has written, or after the FIN if it has
    /// closed.
    pub queued_to: u64,
    /// Data bytes in a full segment with options; at least 1.
    pub mss: u64,
    /// Data beyond `una` that the peer has reported as received.
    pub board: Scoreboard,
    /// Number of consecutive duplicate acknowledgements.
    pub duplicates: u32,
    /// Congestion controller.
    pub control: Box<dyn CongestionControl>,
    /// Pacing of outgoing segments.
    pub pacer: Pacer,
    /// Delivery rate meter.
    pub delivery: DeliveryMeter,
    /// State of ECN marks and window reductions.
    pub ecn: EcnSender,
    /// Detection of spurious window reductions.
    pub spurious: Spurious,
    /// Quantity that the response to a loss halves.
    pub halving: HalvingBasis,
    /// New data may be sent on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Number of duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
    pub duplicate_threshold: u32,
    /// Recoveries use proportional rate reduction (RFC 6937).
    pub proportional: bool,
    /// Proportional rate reduction in progress, if any.
    pub reduction: Option<Reduction>,
}

/// Proportional rate reduction during a recovery (RFC 6937).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    prr: Prr,
    /// Maximum number of bytes in flight until the next acknowledgement.
    limit: u64,
}

impl Flow {
    /// Bytes sent and not acknowledged cumulatively, `FlightSize` (RFC 5681 §2).
    pub(crate) fn flightsize(&self) -> u64 {
        self.max - self.una
    }

    /// Window of the peer, bytes.
    pub(crate) fn peer_window(&self) -> u64 {
        self.window_edge.saturating_sub(self.una)
    }

    /// Number of bytes that may be sent from `nxt` on, if `extra` bytes above the congestion window
    /// are allowed.
    pub(crate) fn room(&self, extra: u64) -> u64 {
        (self.una + self.control.cwnd() + extra).saturating_sub(self.nxt)
    }

    /// Number of bytes above the window that limited transmit allows (RFC 3042): one segment for
    /// each of the first duplicate acknowledgements.
    pub(crate) fn limited_extra(&self) -> u64 {
        if self.limited_transmit && self.duplicates < self.duplicate_threshold {
            u64::from(self.duplicates) * self.mss
        } else {
            0
        }
    }

    /// Whether unsent data is waiting and fits at least partly in the peer's window.
    pub(crate) fn can_send_new(&self) -> bool {
        self.nxt.max(self.max) < self.queued_to.min(self.window_edge)
    }

    /// Starts the reduction of a recovery that begins with `pipe` bytes in flight. Must be called
    /// before the window is reduced.
    pub(crate) fn begin_reduction(&mut self, pipe: u64) {
        self.reduction = self.proportional.then(|| Reduction {
            prr: Prr::new(self.flightsize().max(pipe)),
            limit: pipe,
        });
    }

    /// Processes an acknowledgement during recovery that newly reports `delivered` bytes and leaves
    /// `pipe` bytes in flight.
    pub(crate) fn reduce(&mut self, delivered: u64, pipe: u64) {
        let (target, segment) = (self.control.cwnd(), self.mss);
        if let Some(reduction) = &mut self.reduction {
            let due = reduction.prr.on_ack(delivered, pipe, target, segment);
            reduction.limit = pipe + due;
        }
    }

    /// Records that `bytes` bytes were sent during recovery.
    pub(crate) fn count_reduced(&mut self, bytes: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.prr.on_sent(bytes);
        }
    }

    /// Ends the reduction because recovery has ended.
    pub(crate) fn end_reduction(&mut self) {
        self.reduction = None;
    }

    /// Maximum number of bytes in flight, for algorithms that do not use [`Self::flightsize`].
    pub(crate) fn limit(&self) -> u64 {
        let cwnd = || self.control.cwnd();
        self.reduction
            .map_or_else(cwnd, |reduction| reduction.limit)
    }

    /// Reports a loss to the controller. `uncounted` bytes of the flight were sent by limited
    /// transmit and are not halved (RFC 5681 §3.2 step 2).
    pub(crate) fn cut(&mut self, now: Nanos, cause: LossCause, uncounted: u64) {
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

    /// Number of bytes that a reduction halves when `flightsize` bytes are outstanding; not more
    /// than the window.
    ///
    /// If a retransmission is lost, or one recovery follows another, much of the outstanding data
    /// (RFC 5681 §2) is after gaps and has already arrived. Half of the outstanding data may exceed
    /// the window, which would then never decrease. RFC 5681 §3.1 allows "no more than" half.
    fn halved(&self, flightsize: u64) -> u64 {
        match self.halving {
            HalvingBasis::FlightSize => flightsize.min(self.control.cwnd()),
            HalvingBasis::Window => self.peer_window(),
        }
    }

    /// Responds to an ECN mark that was reported when `flightsize` bytes were outstanding. The
    /// controller is notified once per window of data (RFC 3168 §6.1.2). A window of one segment
    /// cannot be reduced, so sending is paused for the RTO `rto` instead. Returns whether the
    /// sender had not yet responded to this congestion.
    pub(crate) fn answer_mark(&mut self, now: Nanos, flightsize: u64, rto: Nanos) -> bool {
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
