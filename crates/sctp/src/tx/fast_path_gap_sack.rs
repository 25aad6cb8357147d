//! SACK fast path with gaps: the SACK repeats the last one's gap ack blocks and adds one run of
//! TSNs behind them.
//!
//! Most SACKs after a loss have this form, and the chunks in the old blocks need no second check.
//! The result must equal that of [`Sender::handle_sack`], which handles every other case.

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::chunk::Sack;

use super::Sender;
use super::ack::{Newly, PathAck, SackOutcome};
use super::gap_blocks::TsnRange;
use super::tsn_set::step;
use crate::path::{PathId, Paths};
use crate::profile::IdleDecay;

impl Sender {
    /// Like [`Sender::handle_sack`], if the SACK repeats the last gap ack blocks and adds one run
    /// behind them, and there is only one path. Returns `None` if the slow path must process it.
    #[inline(never)]
    pub(crate) fn handle_fast_path_gap_sack<B: AsRef<[u8]>>(
        &mut self,
        now: Nanos,
        sack: &Sack<B>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> Option<SackOutcome> {
        let point = self.outstanding.cumulative_point();
        if sack.cumulative_tsn_ack != point
            || self.gaps.is_empty()
            || paths.len() > 1
            || self.reneged_on.is_some()
            || self.probe.is_some()
            || !self.is_plain(trace)
        {
            return None;
        }
        let (news, goes_on) = self.news_of(sack)?;
        if news.end as usize > self.outstanding.len() {
            return None;
        }
        self.statistics.sacks += 1;
        self.a_rwnd = sack.a_rwnd.into();
        self.begin_alone(now, paths);
        let mut newly = Newly::default();
        for tsn in (news.start..=news.end).map(|offset| point.add(offset)) {
            newly.alive |= self.gap_acked(now, tsn, paths);
            newly.count_by_gap(tsn);
        }
        match self.gaps.last_mut() {
            Some(last) if goes_on => last.end = news.end,
            _ => self.gaps.push(news),
        }
        debug_assert!(!self.any_reneged(), "nothing was, and nothing is");
        let gaps = std::mem::take(&mut self.gaps);
        let lost = self.count_missing(now, point, false, &newly, &gaps, paths, trace);
        self.gaps = gaps;
        let mut outcome = SackOutcome {
            newly_acked_chunks: newly.chunks,
            alive: newly.alive,
            fast_retransmitted: lost,
            ..SackOutcome::default()
        };
        let recovers = self.recovery_until.is_some_and(|until| point.lt(until));
        let no_growth = recovers || std::mem::take(&mut self.echoed);
        let ack = self.acks[0];
        let how = (false, no_growth);
        self.settle::<true>(now, PathId(0), &ack, how, &mut outcome, paths, trace);
        if !recovers {
            self.recovery_until = None;
        }
        self.let_go_on(now, ack.packets);
        if lost > 0 {
            self.enter_fast_retransmit(now, paths, trace);
        }
        self.note_peer_window(now, self.believed_window(), true);
        trace.record(now, Probe::DuplicateAck, 0, self.number(point.next()));
        Some(outcome)
    }

    /// TSNs that the SACK reports in addition to the last SACK, if the other blocks are unchanged.
    /// The flag is `true` if the last block is extended, and `false` if one block is added.
    #[inline(always)]
    fn news_of<B: AsRef<[u8]>>(&self, sack: &Sack<B>) -> Option<(TsnRange, bool)> {
        let mut blocks = sack.gap_blocks().map(|block| TsnRange {
            start: block.start.into(),
            end: block.end.into(),
        });
        let (last, before) = self.gaps.split_last()?;
        for run in before {
            step();
            if blocks.next()? != *run {
                return None;
            }
        }
        let block = blocks.next().filter(|it| it.start == last.start)?;
        match blocks.next() {
            None if block.end > last.end => {
                let start = last.end + 1;
                Some((TsnRange { start, ..block }, true))
            }
            Some(more) => {
                let follows = block.end == last.end && more.start > last.end + 1;
                let alone = more.end >= more.start && blocks.next().is_none();
                (follows && alone).then_some((more, false))
            }
            None => None,
        }
    }

    /// Records the state of the only path before the SACK is processed.
    #[inline(always)]
    fn begin_alone(&mut self, now: Nanos, paths: &mut Paths) {
        let entry = paths.get_mut(PathId(0));
        if self.profile.idle_decay == IdleDecay::SinceLastSend {
            entry.decay(now, IdleDecay::SinceLastSend);
        }
        entry.earliest = entry
            .earliest
            .and_then(|bound| self.outstanding.earliest_on(PathId(0), bound));
        let ack = PathAck {
            flight_before: self.flight_for_growth(entry),
            watched: entry.cc.wants_latest_rtt(),
            earliest_before: entry.earliest,
            ..PathAck::default()
        };
        self.acks.clear();
        self.acks.push(ack);
    }
}
