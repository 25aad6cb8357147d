//! What counts as lost, and what goes next: one file per algorithm behind one trait.
//!
//! A recovery is told of each acknowledgement after [`Flow::una`] moved, and says what the next segment is as long as
//! there may be one. Whether the peer's window and the application allow new data is the sender's to check.

mod newreno;
mod rack;
mod rfc6675;
mod sack1;

use std::fmt::Debug;
use std::ops::Range;

use anabranch_congestion::RateSample;
use anabranch_transport::Nanos;

use super::flow::Flow;
use crate::profile::RecoveryKind;

/// When something happens, and the smoothed round-trip time then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now: Nanos,
    pub srtt: Option<Nanos>,
}

/// What a timer of a recovery found due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Something is lost: a recovery begins.
    Lost,
    /// A probe is to go.
    Probe,
}

/// An acknowledgement, as a recovery sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub moment: Moment,
    /// Bytes by which the cumulative point moved.
    pub advanced: u64,
    /// It is a duplicate by RFC 5681 §2, which needs no SACK to tell.
    pub duplicate: bool,
    /// Blocks of its SACK option, as offsets.
    pub blocks: &'a [Range<u64>],
}

/// What an acknowledgement meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// It belongs to a recovery and does not grow the window.
    pub in_recovery: bool,
    /// It began a recovery: the measurement in progress is void, the timer restarts.
    pub entered: bool,
    /// It may complete the round-trip measurement in progress.
    pub sample: bool,
    /// It restarts the retransmission timer if it advanced.
    pub restart_timer: bool,
    /// It ends the back-off although nothing was measured.
    pub end_backoff: bool,
    /// It repeats an acknowledgement, as the algorithm counts duplicates.
    pub duplicate: bool,
    /// Bytes that its SACK blocks newly reported.
    pub newly_sacked: u64,
}

/// What may go next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// One segment from the start of this range, and none of it beyond the range.
    Retransmit(Range<u64>),
    /// What follows at [`Flow::nxt`], so many bytes at most.
    Continue {
        /// Bytes that the congestion window allows.
        room: u64,
        /// After a timeout, leave out what the peer reported to hold.
        skip_reported: bool,
    },
}

/// An algorithm of loss detection and recovery.
pub(crate) trait Recovery: Debug + Send {
    /// An acknowledgement that is not older than the last one arrived; `flow.una` counts it already.
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome;

    /// A bare acknowledgement without blocks moves the cumulative point to `to`, which `flow.una` does not count yet. Whether that is all
    /// there is to it: it [is a sample and restarts the timer](Outcome), and was taken; else it is told by [`Recovery::on_ack`].
    fn pass(&mut self, flow: &mut Flow, to: u64) -> bool {
        let _ = (flow, to);
        false
    }

    /// The retransmission timer expired. The caller has told the controller and sets `flow.nxt` back to `flow.una`.
    fn on_timeout(&mut self, flow: &mut Flow, moment: &Moment);

    /// After a timeout all goes again from the cumulative point on; otherwise what [`Recovery::next`] names.
    fn goes_back(&self) -> bool {
        true
    }

    /// What the last timeout took for lost was not: losses from `una` on begin a recovery again.
    fn on_spurious_timeout(&mut self, now: Nanos, una: u64);

    /// When it wants [`Recovery::on_timer`] to be called.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// Its timers, or `timeout`: the retransmission timer, may have expired. A probe takes the place of a timeout.
    fn on_timer(&mut self, flow: &mut Flow, moment: &Moment, timeout: bool) -> Due {
        let _ = (flow, moment, timeout);
        Due::Nothing
    }

    /// What the last acknowledgement tells of the rate, where it is measured; `rtt`: the round trip that it measured.
    fn rate_sample(&mut self, rtt: Option<Nanos>) -> Option<RateSample> {
        let _ = rtt;
        None
    }

    /// The application has nothing to send, or the controller holds the flow back.
    fn on_app_limited(&mut self) {}

    /// What may go next.
    fn next(&self, flow: &Flow) -> Option<Next>;

    /// `sent` went out, which [`Recovery::next`] had named as a retransmission or not.
    fn on_sent(&mut self, flow: &mut Flow, moment: &Moment, sent: Range<u64>, retransmit: bool);

    /// A recovery is under way.
    fn recovering(&self) -> bool;

    /// Bytes that it takes to be in the network: the pipe (RFC 6675 §4, unless the algorithm has its own).
    fn pipe(&self, flow: &Flow) -> u64 {
        flow.board.pipe(flow.max)
    }
}

/// How losses are found by time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByTime {
    /// Silent tails are probed, where the peer may delay an acknowledgement by so much.
    pub probes: Option<Nanos>,
    /// The controller asks for rate samples.
    pub samples: bool,
}

/// The algorithm that a connection uses: losses by time if asked for, that of the profile, or NewReno where SACK was not negotiated.
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

/// The most ranges that a scoreboard keeps apart: no more than segments outstanding, and a few.
fn most_ranges(flow: &Flow) -> usize {
    (flow.flightsize() / flow.mss) as usize + 8
}

/// Notes the blocks; returns the bytes that were news.
fn note_blocks(flow: &mut Flow, blocks: &[Range<u64>]) -> u64 {
    let limit = most_ranges(flow);
    let max = flow.max;
    blocks
        .iter()
        .map(|block| flow.board.add(block.clone(), max, limit))
        .sum()
}
