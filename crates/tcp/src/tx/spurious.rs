//! Reductions of the window that answered no loss, and what undoes them: a timestamp that is older than the retransmission (Eifel,
//! RFC 3522), duplicates reported for all that was sent again (D-SACK, RFC 2883, RFC 3708), and two acknowledgements after a timeout
//! that what was not sent again brought about (F-RTO, RFC 5682). The window is then restored (RFC 4015).

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Nanos, Trace};

use super::flow::Flow;
use super::recovery::{Acknowledgement, Next};
use super::{Ack, Sender};
use crate::profile::Profile;
use crate::stats::Stats;

/// Segments sent again in a recovery, beyond which it is not thought to be spurious.
const MOST_SENT_AGAIN: usize = 1024;

/// The window before a reduction, and what was sent again since.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    cause: LossCause,
    cwnd: f64,
    ssthresh: u64,
    /// When the first segment was sent again, and behind which offset it ended.
    first: Option<(Nanos, u64)>,
    /// Sent again, and not reported as a duplicate yet.
    doubtful: VecDeque<Range<u64>>,
    /// More was sent again than is kept.
    overflowed: bool,
}

/// What showed that a reduction answered no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// An original transmission was acknowledged (RFC 4015, `SPUR_TO`): what else was sent before is on its way, too.
    Original,
    /// All that went again came twice, after it was acknowledged (`LATE_SPUR_TO`).
    Duplicates,
}

/// How far F-RTO has come after a timeout (RFC 5682 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    #[default]
    Off,
    /// The first segment goes again, and nothing else until something is acknowledged.
    Asked,
    /// Its acknowledgement came: new text goes, so many bytes more.
    Probing(u64),
}

/// What a sender keeps to find spurious reductions.
#[derive(Debug, Default)]
pub(crate) struct Spurious {
    by_timestamps: bool,
    by_duplicates: bool,
    forward: bool,
    undo: Option<Undo>,
    pub frto: Frto,
    /// Behind the highest sent when the first acknowledgement after a timeout came, and at a timeout within the recovery of another
    /// (`recover`).
    recover: u64,
}

impl Spurious {
    /// Before the handshake.
    pub fn new(profile: &Profile) -> Self {
        Self {
            by_timestamps: profile.eifel,
            by_duplicates: profile.dsack,
            forward: profile.frto,
            ..Self::default()
        }
    }

    /// What the handshake settled.
    pub fn settle(&mut self, sack: bool, timestamps: bool) {
        self.by_timestamps &= timestamps;
        self.by_duplicates &= sack;
    }

    /// Blocks that repeat what came twice are looked for (RFC 2883).
    pub fn reads_duplicates(&self) -> bool {
        self.by_duplicates
    }

    /// The window is about to be reduced. A second reduction cannot be undone alone, nor with the first.
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

    /// `range` goes again.
    pub fn on_sent_again(&mut self, now: Nanos, range: &Range<u64>) {
        let Some(undo) = &mut self.undo else {
            return;
        };
        undo.first.get_or_insert((now, range.end));
        if undo.doubtful.len() < MOST_SENT_AGAIN {
            undo.doubtful.push_back(range.clone());
        } else {
            undo.overflowed = true;
        }
    }

    /// Behind the first segment that went again since the reduction; 0 where none did.
    fn first_again_end(&self) -> u64 {
        let first = self.undo.as_ref().and_then(|undo| undo.first);
        first.map_or(0, |(_, end)| end)
    }

    /// So many bytes of text went, of what F-RTO lets go.
    pub fn on_sent_new(&mut self, bytes: u64) {
        if let Frto::Probing(room) = &mut self.frto {
            *room = room.saturating_sub(bytes);
        }
    }

    /// The peer reports that `range` came twice. Whether all that was sent again did.
    fn all_came_twice(&mut self, range: &Range<u64>) -> bool {
        let Some(undo) = self.undo.as_mut().filter(|undo| !undo.overflowed) else {
            return false;
        };
        let within = |sent: &Range<u64>| range.start <= sent.start && sent.end <= range.end;
        let before = undo.doubtful.len();
        undo.doubtful.retain(|sent| !within(sent));
        undo.doubtful.is_empty() && before > 0
    }

    /// An acknowledgement up to `una`, of a segment sent at `echoed`, came of an original transmission of what was sent again: its
    /// timestamp is less than that of the retransmission (RFC 3522 §3.2, step 5). Only the first that acknowledges it can tell.
    fn original_came(&mut self, una: u64, echoed: Option<Nanos>) -> bool {
        let undo = self.undo.as_mut();
        let Some((at, end)) = undo.as_ref().and_then(|undo| undo.first) else {
            return false;
        };
        if !self.by_timestamps || una < end {
            return false;
        }
        if let Some(undo) = undo {
            // What comes later tells nothing of the first.
            undo.first = Some((0, end));
        }
        echoed.is_some_and(|echoed| echoed / MILLISECOND < at / MILLISECOND)
    }
}

/// A block that reports what came twice (RFC 2883 §4): it lies below the cumulative point, or within the block behind it.
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
    /// A retransmission timer expired: F-RTO begins (RFC 5682 §2.1, step 1), anew if nothing came since the last timeout. It does not while
    /// the recovery of another timeout, or a fast recovery, is under way: what was sent again there tells nothing of this timeout.
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

    /// After a recovery was told of an acknowledgement: what it says of a reduction that answered no loss.
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

    /// The second and third step of F-RTO. Whether the timeout was spurious. An acknowledgement that is neither new nor a duplicate is no step.
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
                    // Step 2 b: it acknowledges all that went again, and not all that was outstanding.
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

    /// What F-RTO lets go next; `None`: the recovery decides.
    pub(super) fn next_forward(&self) -> Option<Next> {
        match self.flow.spurious.frto {
            Frto::Probing(room) => Some(Next::Continue {
                room,
                skip_reported: false,
            }),
            Frto::Off | Frto::Asked => None,
        }
    }

    /// Restores the window (RFC 4015 §3.1, step 9): after a timeout no more than what is in flight and what was just acknowledged, so that no
    /// burst follows, and nothing where the acknowledgement tells of a mark. The timer stays backed off until a round trip is measured: it was
    /// too short.
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
                // Step 8. Duplicates that come now tell of a loss, not of what went again: neither the next fast retransmit waits for what was
                // outstanding at the timeout (RFC 4015 §4, RFC 5682 §2.2) nor the next F-RTO.
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
