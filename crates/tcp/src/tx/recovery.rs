//! Loss detection and recovery: one file per algorithm, behind one trait.
//!
//! The sender passes each acknowledgement to the recovery after updating [`Flow::una`]. The
//! recovery returns the next segment for as long as one may be sent. The sender must check whether
//! the window of the peer and the application allow new data.

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

/// Time of an event, and the smoothed round-trip time at that time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now: Nanos,
    pub srtt: Option<Nanos>,
}

/// Action required by an expired recovery timer.
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
    /// The acknowledgement is a duplicate according to RFC 5681 §2, which does not depend on SACK.
    pub duplicate: bool,
    /// Blocks of its SACK option, as offsets.
    pub blocks: &'a [Range<u64>],
}

/// Effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The acknowledgement belongs to a recovery and must not increase the window.
    pub in_recovery: bool,
    /// The acknowledgement started a recovery: the RTT measurement in progress is discarded, and
    /// the timer restarts.
    pub entered: bool,
    /// The acknowledgement may complete the RTT measurement in progress.
    pub sample: bool,
    /// The acknowledgement restarts the retransmission timer if it advanced the cumulative point.
    pub restart_timer: bool,
    /// The acknowledgement ends the backoff, although no RTT was measured.
    pub end_backoff: bool,
    /// The acknowledgement is a duplicate by the definition of the algorithm.
    pub duplicate: bool,
    /// Number of bytes newly reported by its SACK blocks.
    pub newly_sacked: u64,
    /// Number of bytes newly acknowledged by its number or reported by its SACK blocks, without
    /// those that an earlier SACK block had reported.
    pub delivered: u64,
}

/// Data that may be sent next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextSegment {
    /// One segment from the start of this range, not beyond its end.
    Retransmit(Range<u64>),
    /// Data at [`Flow::nxt`], up to `room` bytes.
    Continue {
        /// Number of bytes that the congestion window allows.
        room: u64,
        /// After a timeout, ranges that the peer has reported should be skipped.
        skip_reported: bool,
    },
}

/// A loss detection and recovery algorithm.
pub(crate) trait Recovery: Debug + Send {
    /// An acknowledgement arrived that is not older than the last one; `flow.una` is already
    /// updated.
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome;

    /// An acknowledgement without data and SACK blocks moves the cumulative point to `to`;
    /// `flow.una` is not yet updated. Returns whether the acknowledgement needs no further
    /// processing: the acknowledgement was processed, [is a sample and restarts the
    /// timer](Outcome). Otherwise the caller must pass it to [`Recovery::on_ack`].
    fn pass(&mut self, flow: &mut Flow, to: u64) -> bool {
        let _ = (flow, to);
        false
    }

    /// The retransmission timer expired. The caller has notified the controller, and sets
    /// `flow.nxt` back to `flow.una` afterwards.
    fn on_timeout(&mut self, flow: &mut Flow, moment: &Moment);

    /// Whether all data from the cumulative point on is retransmitted after a timeout. Otherwise
    /// only the data returned by [`Recovery::next`] is.
    fn goes_back(&self) -> bool {
        true
    }

    /// The last timeout was spurious: losses from `una` on start a new recovery.
    fn on_spurious_timeout(&mut self, now: Nanos, una: u64);

    /// Time at which [`Recovery::on_timer`] should be called.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// A timer of the algorithm may have expired, or the retransmission timer did (`timeout`). A
    /// probe replaces a timeout.
    fn on_timer(&mut self, flow: &mut Flow, moment: &Moment, timeout: bool) -> Due {
        let _ = (flow, moment, timeout);
        Due::Nothing
    }

    /// Delivery rate sample of the last acknowledgement, if rates are measured; `rtt` is the
    /// round-trip time that it measured.
    fn rate_sample(&mut self, rtt: Option<Nanos>) -> Option<RateSample> {
        let _ = rtt;
        None
    }

    /// The application has no data to send, or the controller limits the flow.
    fn on_app_limited(&mut self) {}

    /// Data that may be sent next.
    fn next(&self, flow: &Flow) -> Option<NextSegment>;

    /// `sent` was sent. `retransmit`: whether [`Recovery::next`] returned it as a retransmission.
    fn on_sent(&mut self, flow: &mut Flow, moment: &Moment, sent: Range<u64>, retransmit: bool);

    /// Whether recovery is in progress.
    fn recovering(&self) -> bool;

    /// Estimated number of bytes in the network: the pipe (RFC 6675 §4, unless the algorithm
    /// defines its own).
    fn pipe(&self, flow: &Flow) -> u64 {
        flow.board.pipe(flow.max)
    }
}

/// Options of time-based loss detection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByTime {
    /// Tail loss probes are enabled; the value is the maximum acknowledgement delay of the peer.
    pub probes: Option<Nanos>,
    /// The controller requires rate samples.
    pub samples: bool,
}

/// The algorithm of a connection: time-based if enabled, NewReno if SACK was not negotiated, and
/// otherwise that of the profile.
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

/// Records the SACK blocks. Returns the number of newly reported bytes.
fn note_blocks(flow: &mut Flow, blocks: &[Range<u64>]) -> u64 {
    let limit = max_ranges(flow);
    let max = flow.max;
    blocks
        .iter()
        .map(|block| flow.board.add(block.clone(), max, limit))
        .sum()
}
