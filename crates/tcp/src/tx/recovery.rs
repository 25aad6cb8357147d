//! Loss detection and recovery: a common trait, and one file per algorithm.
//!
//! The sender passes each acknowledgement to the recovery after updating [`Flow::una`]. The
//! recovery returns the next segment as long as one may be sent. The sender must check whether the
//! peer's window and the application allow new data.

mod newreno;
mod rack;
mod rfc6675;
mod sack1;

use std::fmt::Debug;
use std::ops::Range;

use anabranch_congestion::RateSample;
use anabranch_transport::Nanos;

use super::send_sequence::Flow;
use crate::profile::RecoveryKind;

/// Time of an event, and the smoothed round-trip time at that time, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now: Nanos,
    pub srtt: Option<Nanos>,
}

/// Action that the sender must take after a timer of loss recovery has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// A loss was detected, and recovery starts.
    Lost,
    /// A probe must be sent.
    Probe,
}

/// An acknowledgement, as passed to loss recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub moment: Moment,
    /// Number of bytes newly acknowledged cumulatively.
    pub advanced: u64,
    /// The acknowledgement is a duplicate according to RFC 5681 §2, which ignores SACK.
    pub duplicate: bool,
    /// Blocks of the SACK option, as offsets.
    pub blocks: &'a [Range<u64>],
}

/// Effect of an acknowledgement on loss recovery, and on the timers of the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The acknowledgement belongs to a recovery and must not increase the window.
    pub in_recovery: bool,
    /// The acknowledgement started a recovery: the sender must discard the RTT measurement in
    /// progress and restart the timer.
    pub entered: bool,
    /// The acknowledgement may complete the RTT measurement in progress.
    pub sample: bool,
    /// The acknowledgement restarts the retransmission timer if it advanced the cumulative point.
    pub restart_timer: bool,
    /// The acknowledgement ends the backoff of the RTO, although no RTT was measured.
    pub end_backoff: bool,
    /// The acknowledgement is a duplicate according to the algorithm.
    pub duplicate: bool,
    /// Number of bytes that the SACK blocks report for the first time.
    pub newly_sacked: u64,
    /// Number of bytes newly known to have arrived: acknowledged cumulatively or by SACK blocks,
    /// without those that an earlier SACK block had reported.
    pub delivered: u64,
}

/// Data that loss recovery permits to be sent next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextSegment {
    /// A retransmission: one segment from the start of this range, not beyond its end.
    Retransmit(Range<u64>),
    /// Data from [`Flow::nxt`] on, up to `room` bytes.
    Continue {
        /// Free space in the congestion window, bytes.
        room: u64,
        /// Skip ranges that the peer has reported; used after a timeout.
        skip_reported: bool,
    },
}

/// A loss detection and recovery algorithm.
pub(crate) trait Recovery: Debug + Send {
    /// Processes an acknowledgement that is not older than the last one; `flow.una` is already
    /// updated.
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome;

    /// Fast path for an acknowledgement without data and SACK blocks that moves the cumulative
    /// point to `to`; `flow.una` is not yet updated. Returns `true` if the acknowledgement was
    /// fully processed: it [is a sample and restarts the timer](Outcome). After `false` the caller
    /// must pass it to [`Recovery::on_ack`].
    fn pass(&mut self, flow: &mut Flow, to: u64) -> bool {
        let _ = (flow, to);
        false
    }

    /// Handles an expired retransmission timer. The caller has already notified the controller, and
    /// sets `flow.nxt` back to `flow.una` afterwards.
    fn on_timeout(&mut self, flow: &mut Flow, moment: &Moment);

    /// Whether all data from the cumulative point on is retransmitted after a timeout. If not, only
    /// the data returned by [`Recovery::next`] is retransmitted.
    fn goes_back(&self) -> bool {
        true
    }

    /// Records that the last timeout was spurious, so losses from `una` on start a new recovery.
    fn on_spurious_timeout(&mut self, now: Nanos, una: u64);

    /// Time at which [`Recovery::on_timer`] must be called, if any.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// Handles timers of the algorithm that may have expired; `timeout` says that the
    /// retransmission timer has expired. A probe replaces a timeout.
    fn on_timer(&mut self, flow: &mut Flow, moment: &Moment, timeout: bool) -> Due {
        let _ = (flow, moment, timeout);
        Due::Nothing
    }

    /// Delivery rate sample of the last acknowledgement, if rates are measured; `rtt` is the
    /// round-trip time that this acknowledgement measured.
    fn rate_sample(&mut self, rtt: Option<Nanos>) -> Option<RateSample> {
        let _ = rtt;
        None
    }

    /// Records that the application has no data to send, or that the controller limits the flow.
    fn on_app_limited(&mut self) {}

    /// Data that may be sent next, if any.
    fn next(&self, flow: &Flow) -> Option<NextSegment>;

    /// Records that the range `sent` was sent. `retransmit` says whether [`Recovery::next`]
    /// returned the range as a retransmission.
    fn on_sent(&mut self, flow: &mut Flow, moment: &Moment, sent: Range<u64>, retransmit: bool);

    /// Whether recovery is in progress.
    fn recovering(&self) -> bool;

    /// Estimated number of bytes in the network, which RFC 6675 calls the pipe (§4, unless the
    /// algorithm defines its own estimate).
    fn pipe(&self, flow: &Flow) -> u64 {
        flow.board.pipe(flow.max)
    }
}

/// Options of time-based loss detection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByTime {
    /// Maximum acknowledgement delay of the peer; `None` disables tail loss probes.
    pub probes: Option<Nanos>,
    /// The controller requires rate samples.
    pub samples: bool,
}

/// Creates the recovery algorithm of a connection: RACK if it is enabled, NewReno if SACK was not
/// negotiated, and otherwise that of the profile.
pub(crate) fn choose(kind: RecoveryKind, sack: bool, time: Option<ByTime>) -> Box<dyn Recovery> {
    if let Some(time) = time.filter(|_| sack) {
        return Box::new(rack::Rack::new(time));
    }
    match kind {
        RecoveryKind::Rfc6675 if sack => Box::new(rfc6675::Rfc6675::default()),
        RecoveryKind::Sack1 if sack => Box::new(sack1::Sack1::default()),
        _ => Box::new(newreno::NewReno::default()),
    }
}

/// Maximum number of ranges in the scoreboard: one per outstanding segment, plus a constant.
fn max_ranges(flow: &Flow) -> usize {
    (flow.flightsize() / flow.mss) as usize + 8
}

/// Records the SACK blocks in the scoreboard. Returns the number of newly reported bytes.
fn note_blocks(flow: &mut Flow, blocks: &[Range<u64>]) -> u64 {
    let limit = max_ranges(flow);
    let max = flow.max;
    blocks
        .iter()
        .map(|block| flow.board.add(block.clone(), max, limit))
        .sum()
}
