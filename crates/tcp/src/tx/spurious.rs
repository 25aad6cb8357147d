//! State for the detection of spurious window reductions, that is, reductions although no segment
//! was lost. Three methods detect them: a timestamp older than the retransmission (Eifel, RFC
//! 3522), duplicates reported for all retransmissions (D-SACK, RFC 2883, RFC 3708), and
//! acknowledgements of data that was not retransmitted after a timeout (F-RTO, RFC 5682).

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_congestion::LossCause;
use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use crate::profile::Profile;

/// Maximum number of retransmitted ranges that are stored for D-SACK.
const MAX_RETRANSMITTED: usize = 1024;

/// Window before a reduction, and the retransmissions since then.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    pub cause: LossCause,
    pub cwnd: f64,
    pub ssthresh: u64,
    /// Send time and end offset of the first retransmission.
    first: Option<(Nanos, u64)>,
    /// Retransmitted ranges that were not yet reported as duplicates.
    doubtful: VecDeque<Range<u64>>,
    /// More ranges were retransmitted than are stored.
    overflowed: bool,
}

/// Progress of F-RTO after a timeout (RFC 5682 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    #[default]
    Off,
    /// The first segment was retransmitted; no other segment may be sent until an acknowledgement
    /// arrives.
    Asked,
    /// The first segment was acknowledged; this number of bytes of new data may be sent.
    Probing(u64),
}

/// State for the detection of spurious reductions.
#[derive(Debug, Default)]
pub(crate) struct Spurious {
    by_timestamps: bool,
    by_duplicates: bool,
    /// F-RTO is enabled.
    pub forward: bool,
    /// The last reduction, until it can no longer be undone.
    pub undo: Option<Undo>,
    pub frto: Frto,
    /// `recover` of RFC 5682: offset after the highest byte sent when the first acknowledgement
    /// after a timeout arrived, or at a timeout during the recovery from another timeout.
    pub recover: u64,
}

impl Spurious {
    /// Creates the state before the handshake.
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            by_timestamps: profile.eifel,
            by_duplicates: profile.dsack,
            forward: profile.frto,
            ..Self::default()
        }
    }

    /// Disables detection by timestamps and by duplicates if the handshake did not negotiate
    /// timestamps or SACK.
    pub(crate) fn settle(&mut self, sack: bool, timestamps: bool) {
        self.by_timestamps &= timestamps;
        self.by_duplicates &= sack;
    }

    /// Whether D-SACK blocks should be evaluated (RFC 2883).
    pub(crate) fn reads_duplicates(&self) -> bool {
        self.by_duplicates
    }

    /// Saves the window before it is reduced. After a second reduction, neither the first nor the
    /// second can be undone.
    pub(crate) fn remember(&mut self, cause: LossCause, cwnd: f64, ssthresh: u64) {
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
    pub(crate) fn on_sent_again(&mut self, now: Nanos, range: &Range<u64>) {
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

    /// End offset of the first retransmission since the reduction; 0 if nothing was retransmitted.
    pub(crate) fn first_again_end(&self) -> u64 {
        let first = self.undo.as_ref().and_then(|undo| undo.first);
        first.map_or(0, |(_, end)| end)
    }

    /// Records that `bytes` bytes of new data were sent, which F-RTO allows.
    pub(crate) fn on_sent_new(&mut self, bytes: u64) {
        if let Frto::Probing(room) = &mut self.frto {
            *room = room.saturating_sub(bytes);
        }
    }

    /// Records that the peer has received `range` twice. Returns whether it has now received all
    /// retransmissions twice.
    pub(crate) fn all_came_twice(&mut self, range: &Range<u64>) -> bool {
        let Some(undo) = self.undo.as_mut().filter(|undo| !undo.overflowed) else {
            return false;
        };
        let within = |sent: &Range<u64>| range.start <= sent.start && sent.end <= range.end;
        let before = undo.doubtful.len();
        undo.doubtful.retain(|sent| !within(sent));
        undo.doubtful.is_empty() && before > 0
    }

    /// Whether an acknowledgement of `una` that echoes the send time `echoed` was caused by the
    /// original transmission of retransmitted data. Its timestamp is then less than that of the
    /// retransmission (RFC 3522 §3.2, step 5). Only the first acknowledgement of that data shows
    /// this.
    pub(crate) fn original_came(&mut self, una: u64, echoed: Option<Nanos>) -> bool {
        let undo = self.undo.as_mut();
        let Some((at, end)) = undo.as_ref().and_then(|undo| undo.first) else {
            return false;
        };
        if !self.by_timestamps || una < end {
            return false;
        }
        if let Some(undo) = undo {
            // Later acknowledgements show nothing about the first retransmission.
            undo.first = Some((0, end));
        }
        echoed.is_some_and(|echoed| echoed / MILLISECOND < at / MILLISECOND)
    }
}

/// Separates the D-SACK block from the others, if there is one (RFC 2883 §4): the first block, if
/// it is below the cumulative point or contained in the second block.
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
