//! Detection and undo of spurious window reductions. Three methods show that nothing was lost: a
//! timestamp older than the retransmission (Eifel, RFC 3522), duplicates reported for all
//! retransmissions (D-SACK, RFC 2883, RFC 3708), and two acknowledgements after a timeout of data
//! that was not retransmitted (F-RTO, RFC 5682). The window is then restored (RFC 4015).

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Nanos, Trace};

use super::recovery::{Acknowledgement, Next};
use super::send_sequence::Flow;
use super::{Ack, Sender};
use crate::profile::Profile;
use crate::stats::Stats;

/// Maximum number of retransmitted segments in a recovery that may still be spurious.
const MAX_RETRANSMITTED: usize = 1024;

/// The window before a reduction, and the retransmissions since.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    cause: LossCause,
    cwnd: f64,
    ssthresh: u64,
    /// Time of the first retransmission and its end offset.
    first: Option<(Nanos, u64)>,
    /// Retransmitted ranges that were not yet reported as duplicates.
    doubtful: VecDeque<Range<u64>>,
    /// More segments were retransmitted than are recorded.
    overflowed: bool,
}

/// Evidence that a reduction was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// An original transmission was acknowledged (RFC 4015, `SPUR_TO`), so the data sent after it
    /// is still in flight as well.
    Original,
    /// All retransmissions arrived as duplicates, after they were acknowledged (`LATE_SPUR_TO`).
    Duplicates,
}

/// Progress of F-RTO after a timeout (RFC 5682 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    #[default]
    Off,
    /// The first segment is retransmitted; nothing else may be sent until an acknowledgement
    /// arrives.
    Asked,
    /// It was acknowledged: this many bytes of new data may be sent.
    Probing(u64),
}

/// State for detecting spurious reductions.
#[derive(Debug, Default)]
pub(crate) struct Spurious {
    by_timestamps: bool,
    by_duplicates: bool,
    forward: bool,
    undo: Option<Undo>,
    pub frto: Frto,
    /// Offset after the highest byte sent when the first acknowledgement after a timeout arrived,
    /// and at a timeout during the recovery from another (`recover`).
    recover: u64,
}

impl Spurious {
    /// State before the handshake.
    pub fn new(profile: &Profile) -> Self {
        Self {
            by_timestamps: profile.eifel,
            by_duplicates: profile.dsack,
            forward: profile.frto,
            ..Self::default()
        }
    }

    /// Applies the result of the handshake.
    pub fn settle(&mut self, sack: bool, timestamps: bool) {
        self.by_timestamps &= timestamps;
        self.by_duplicates &= sack;
    }

    /// Whether D-SACK blocks should be evaluated (RFC 2883).
    pub fn reads_duplicates(&self) -> bool {
        self.by_duplicates
    }

    /// Saves the window before it is reduced. A second reduction can be undone neither alone nor
    /// together with the first.
    pub fn remember(&mut self, cause: LossCause, cwnd: f64, ssthresh: u64) {
        let kept = self.by_timestamps || self.by_duplicates || self.forward;
        self.undo = kept.then(|| Undo {
            cause,
            cwnd,
            ssthresh,
            first: None,
            doubtful: VecDeque::new(),
            overflowed: false,
        });
    }

    /// Records that `range` is retransmitted.
    pub fn on_sent_again(&mut self, now: Nanos, range: &Range<u64>) {
        let Some(undo) = &mut self.undo else {
            return;
        };
        undo.first.get_or_insert((now, range.end));
        if undo.doubtful.len() < MAX_RETRANSMITTED {
            undo.doubtful.push_back(range.clone());
        } else {
            undo.overflowed = true;
        }
    }

    /// End offset of the first retransmission since the reduction; 0 if there was none.
    fn first_again_end(&self) -> u64 {
        let first = self.undo.as_ref().and_then(|undo| undo.first);
        first.map_or(0, |(_, end)| end)
    }

    /// Records that `bytes` of new data were sent as permitted by F-RTO.
    pub fn on_sent_new(&mut self, bytes: u64) {
        if let Frto::Probing(room) = &mut self.frto {
            *room = room.saturating_sub(bytes);
        }
    }

    /// Records that the peer received `range` twice. Returns whether it received all
    /// retransmissions twice.
    fn all_came_twice(&mut self, range: &Range<u64>) -> bool {
        let Some(undo) = self.undo.as_mut().filter(|undo| !undo.overflowed) else {
            return false;
        };
        let within = |sent: &Range<u64>| range.start <= sent.start && sent.end <= range.end;
        let before = undo.doubtful.len();
        undo.doubtful.retain(|sent| !within(sent));
        undo.doubtful.is_empty() && before > 0
    }

    /// Whether an acknowledgement up to `una`, of a segment sent at `echoed`, was caused by the
    /// original transmission of retransmitted data: its timestamp is less than that of the
    /// retransmission (RFC 3522 §3.2, step 5). Only the first acknowledgement of that data shows
    /// this.
    fn original_came(&mut self, una: u64, echoed: Option<Nanos>) -> bool {
        let undo = self.undo.as_mut();
        let Some((at, end)) = undo.as_ref().and_then(|undo| undo.first) else {
            return false;
        };
        if !self.by_timestamps || una < end {
            return false;
        }
        if let Some(undo) = undo {
            // Later acknowledgements say nothing about the first retransmission.
            undo.first = Some((0, end));
        }
        echoed.is_some_and(|echoed| echoed / MILLISECOND < at / MILLISECOND)
    }
}

/// Splits off the D-SACK block, if any (RFC 2883 §4): it is below the cumulative point or contained
/// in the block after it.
pub(crate) fn duplicate_of(to: u64, blocks: &[Range<u64>]) -> (Option<Range<u64>>, &[Range<u64>]) {
    let Some((first, rest)) = blocks.split_first() else {
        return (None, blocks);
    };
    let second = rest.first();
    let inside = second.is_some_and(|it| it.start <= first.start && first.end <= it.end);
    if first.end <= to || inside {
        (Some(first.clone()), rest)
    } else {
        (None, blocks)
    }
}

impl Sender {
    /// Starts F-RTO after a retransmission timeout (RFC 5682 §2.1, step 1), or restarts it if
    /// nothing arrived since the last timeout. It is not started during the recovery from another
    /// timeout or during fast recovery, because retransmissions of that recovery say nothing about
    /// this timeout.
    pub(super) fn begin_forward(&mut self) {
        let spurious = &mut self.flow.spurious;
        let alone = self.flow.una >= spurious.recover && !self.recovery.recovering();
        spurious.frto = match spurious.forward && alone {
            true => Frto::Asked,
            false => Frto::Off,
        };
        if !alone {
            spurious.recover = self.flow.max;
        }
    }

    /// Checks, after loss recovery has processed an acknowledgement, whether it shows a spurious
    /// reduction.
    pub(super) fn judge_reduction(
        &mut self,
        ack: &Ack<'_>,
        seen: &Acknowledgement<'_>,
        twice: Option<Range<u64>>,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let una = self.flow.una;
        let spurious = &mut self.flow.spurious;
        let twice = twice.is_some_and(|range| spurious.all_came_twice(&range));
        let original = seen.advanced > 0 && spurious.original_came(una, ack.echoed);
        let forward = self.step_forward(seen);
        let evidence = match (original || forward, twice) {
            (true, _) => Evidence::Original,
            (false, true) => Evidence::Duplicates,
            (false, false) => return,
        };
        self.undo_reduction(evidence, ack.marked, seen, stats, trace);
    }

    /// Steps 2 and 3 of F-RTO. Returns whether the timeout was spurious. An acknowledgement that is
    /// neither new nor a duplicate does not count as a step.
    fn step_forward(&mut self, seen: &Acknowledgement<'_>) -> bool {
        let flow = &mut self.flow;
        if seen.advanced == 0 && !seen.duplicate {
            return false;
        }
        match flow.spurious.frto {
            Frto::Off => false,
            Frto::Asked => {
                flow.spurious.recover = flow.max;
                flow.spurious.frto = Frto::Off;
                let all_of_first = flow.spurious.first_again_end() <= flow.una;
                let new = seen.advanced > 0 && all_of_first && flow.una < flow.max;
                if new && flow.can_send_new() {
                    // Step 2 b: it acknowledges all retransmissions, but not all outstanding data.
                    flow.nxt = flow.max;
                    flow.spurious.frto = Frto::Probing(2 * flow.mss);
                }
                false
            }
            Frto::Probing(_) => {
                flow.spurious.frto = Frto::Off;
                if seen.advanced == 0 && self.recovery.goes_back() {
                    flow.nxt = flow.una;
                }
                seen.advanced > 0
            }
        }
    }

    /// Data that F-RTO allows next; `None` if loss recovery decides.
    pub(super) fn next_forward(&self) -> Option<Next> {
        match self.flow.spurious.frto {
            Frto::Probing(room) => Some(Next::Continue {
                room,
                skip_reported: false,
            }),
            Frto::Off | Frto::Asked => None,
        }
    }

    /// Restores the window (RFC 4015 §3.1, step 9). After a timeout it is limited to the data in
    /// flight and the data just acknowledged, so that no burst follows, and it is not restored if
    /// the acknowledgement reports a mark. The timer stays backed off until a round-trip time is
    /// measured, because it was too short.
    fn undo_reduction(
        &mut self,
        evidence: Evidence,
        marked: bool,
        seen: &Acknowledgement<'_>,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let now = seen.moment.now;
        let flow: &mut Flow = &mut self.flow;
        let undo = flow.spurious.undo.take();
        let timed_out = undo
            .as_ref()
            .is_none_or(|it| it.cause == LossCause::Timeout);
        if evidence == Evidence::Original {
            flow.spurious.frto = Frto::Off;
            if timed_out {
                // Step 8. Duplicates that arrive now indicate a loss and are not caused by the
                // retransmissions. Neither the next fast retransmit nor the next F-RTO should
                // therefore wait for the data outstanding at the timeout (RFC 4015 §4, RFC 5682
                // §2.2).
                flow.nxt = flow.max;
                flow.spurious.recover = flow.una;
                self.recovery.on_spurious_timeout(now, flow.una);
            }
        }
        let Some(undo) = undo else {
            return;
        };
        stats.spurious_timeouts += u64::from(timed_out);
        if marked && flow.ecn.is_capable() {
            return;
        }
        let cwnd = match undo.cause {
            LossCause::FastRetransmit => undo.cwnd,
            LossCause::Timeout => {
                let initial = self.profile.initial_window.segments(flow.mss) * flow.mss as f64;
                let acknowledged = (seen.advanced as f64).min(initial);
                undo.cwnd.min(flow.flightsize() as f64 + acknowledged)
            }
        };
        flow.control.on_undo(cwnd, undo.ssthresh);
        flow.end_reduction();
        stats.reductions_undone += 1;
        self.trace_windows(now, trace);
    }
}
