//! Loss detection and recovery: missing reports, fast retransmit, T3-rtx (RFC 9260 §6.3.3, §7.2.3,
//! §7.2.4).

use anabranch_congestion::LossCause;
use anabranch_transport::{Nanos, Probe, Trace, time};
use anabranch_wire::Tsn;

use super::ack::Newly;
use super::gap_blocks::TsnRange;
use super::outstanding::{ChunkState, OutstandingChunk};
use super::{Sender, trace_window, window};
use crate::compact_option::OptionalNanos;
use crate::path::{PathId, Paths};
use crate::profile::{FastRecovery, Htna, MaxBurst, RecoveryWaits};
use crate::stream_allocation::LossEvents;

/// Outcome of [`Sender::handle_t3`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum T3Outcome {
    /// The timer had not expired, or no data was outstanding on the path.
    Nothing,
    /// Chunks were marked for retransmission. `count_error` is false for an unanswered probe of a
    /// zero window while the peer keeps sending SACKs (RFC 9260 §6.1 A); otherwise the path's and
    /// the association's error counts increase.
    Marked {
        /// Whether the timeout counts as an error of path and association (RFC 9260 §8.1, §8.2).
        count_error: bool,
    },
}

impl Sender {
    /// Path for the retransmission of a marked chunk. A tail loss probe stays on the path that it
    /// probes. If it used the usual path of retransmissions, two paths could alternate and restart
    /// T3-rtx each time, so that the timer would never expire.
    pub(super) fn retransmission_path(&self, tsn: Tsn, paths: &Paths) -> Option<PathId> {
        if let Some(path) = self
            .optional_recovery
            .as_ref()
            .and_then(|_| self.probed_by(tsn))
        {
            return Some(path);
        }
        let chunk = self.outstanding.get(tsn)?;
        let timed_out = chunk.state == ChunkState::Marked { timed_out: true };
        Some(paths.choose_for_retransmission(chunk.path, timed_out))
    }

    /// Counts one missing report for each TSN that the SACK shows to be missing, and marks TSNs
    /// that reach the threshold. Returns the number of marked chunks.
    #[expect(
        clippy::too_many_arguments,
        reason = "one step of the SACK's processing"
    )]
    pub(super) fn count_missing(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        advanced: bool,
        newly: &Newly,
        blocks: &[TsnRange],
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> u32 {
        if self.finds_by_time() {
            return self.find_lost(now, cumulative, paths, trace);
        }
        let Some(highest) = blocks.last().map(|run| cumulative.add(run.end)) else {
            self.remember_newly_acked(newly, advanced);
            return 0;
        };
        if self.splits_fast_retransmit() {
            return self.count_missing_by_path(now, cumulative, newly, blocks, paths, trace);
        }
        let known = self.remember_newly_acked(newly, advanced);
        let Some(limit) = self.report_limit(advanced, known, newly, highest) else {
            return 0;
        };
        let mut marked = 0;
        let mut hole_start = cumulative.next();
        // The limit may stem from a newer SACK that arrived earlier, over another path. It may then
        // lie beyond the blocks of this SACK.
        let beyond = TsnRange {
            start: limit.distance_from(cumulative),
            end: limit.distance_from(cumulative),
        };
        for run in blocks.iter().chain(std::iter::once(&beyond)) {
            let hole_end = cumulative.add(run.start);
            let end = if hole_end.lt(limit) { hole_end } else { limit };
            let mut next = self.outstanding.next_reportable(hole_start, end);
            while let Some(tsn) = next {
                let reports = self.reports_of(tsn, newly);
                marked += u32::from(self.report_missing(now, tsn, reports, paths, trace));
                next = self.outstanding.next_reportable(tsn.next(), end);
            }
            hole_start = cumulative.add(run.end).next();
            if hole_start.gt(limit) {
                break;
            }
        }
        marked
    }

    /// Stores the highest newly acknowledged TSN for later SACKs, if the profile requires it.
    fn remember_newly_acked(&mut self, newly: &Newly, advanced: bool) -> Option<Tsn> {
        if let Some(tsn) = newly.highest {
            // If the cumulative TSN advances, the stored value is replaced even by a lower one.
            let higher = self.highest_newly_acked.is_none_or(|known| tsn.gt(known));
            if higher || advanced {
                self.highest_newly_acked = Some(tsn);
            }
        }
        self.highest_newly_acked
    }

    /// Limit below which each missing TSN counts a report (HTNA rule of RFC 9260 §7.2.4).
    fn report_limit(
        &self,
        advanced: bool,
        known: Option<Tsn>,
        newly: &Newly,
        highest: Tsn,
    ) -> Option<Tsn> {
        let newly = match self.profile.htna {
            Htna::Off => return Some(highest),
            Htna::PerSack => newly.highest,
            Htna::Persistent => known,
        };
        let within = |until: Tsn| {
            self.profile.htna == Htna::PerSack || newly.is_none_or(|tsn| tsn.le(until))
        };
        match self.recovery_until {
            Some(until) if advanced && within(until) => Some(highest),
            _ => newly,
        }
    }

    /// Counts `times` reports for one missing TSN. Returns `true` if the chunk is now marked.
    pub(super) fn report_missing(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        reports: u32,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> bool {
        let once = self.profile.fast_retransmit_once;
        let Some(chunk) = self.outstanding.get_mut(tsn) else {
            return false;
        };
        chunk.missing_reports += reports;
        if chunk.missing_reports < self.profile.missing_reports {
            return false;
        }
        let again = self.profile.fast_recovery == FastRecovery::RecoveryPoint;
        if matches!(chunk.state, ChunkState::Marked { .. }) && !again {
            self.outstanding.set_reportable(tsn, false); // until it is retransmitted
            return false;
        }
        chunk.fast_retransmitted = true;
        let path = chunk.path;
        if once {
            self.outstanding.set_reportable(tsn, false);
        } else {
            chunk.missing_reports = 0;
        }
        self.mark(tsn, false, paths);
        self.statistics.rare().fast_retransmits += 1;
        self.acks[usize::from(path.0)].lost += 1;
        trace.record(now, Probe::FastRetransmit, path.0.into(), self.number(tsn));
        true
    }

    /// Whether missing reports can no longer cause a fast retransmit of the chunk (RFC 9260 §7.2.4
    /// (5)).
    fn is_spent(&self, chunk: &OutstandingChunk) -> bool {
        chunk.fast_retransmitted && self.profile.fast_retransmit_once
    }

    /// Lets later missing reports for a chunk count again, because the chunk was retransmitted or
    /// its count restarts at 0.
    pub(super) fn count_reports_again(&mut self, tsn: Tsn) {
        let spent = self
            .outstanding
            .get(tsn)
            .is_none_or(|chunk| self.is_spent(chunk));
        if !spent {
            self.outstanding.set_reportable(tsn, true);
        }
    }

    /// Marks a chunk for retransmission: it is no longer in flight, and its bytes are available in
    /// the peer's window again (RFC 9260 §6.2.1 C).
    pub(super) fn mark(&mut self, tsn: Tsn, timed_out: bool, paths: &mut Paths) {
        let Some(before) = self
            .outstanding
            .set_state(tsn, ChunkState::Marked { timed_out })
        else {
            return;
        };
        let Some(chunk) = self.outstanding.get(tsn) else {
            return;
        };
        let length = chunk.fragment.user_data.len();
        let (bytes, rwnd) = (
            self.profile.cwnd_counts.bytes(length),
            self.profile.rwnd_counts.bytes(length),
        );
        let path = chunk.path;
        let entry = paths.get_mut(path);
        let mut withdrawn = None;
        match before {
            ChunkState::Marked { .. } => return,
            ChunkState::InFlight => {
                entry.flightsize -= bytes;
                self.rwnd_in_flight -= rwnd;
                if !self.profile.flight_counts_marked {
                    self.peer_rwnd += rwnd;
                }
            }
            // The receiver has reneged on this chunk.
            ChunkState::GapAcked => {
                entry.watch(tsn);
                withdrawn = Some((path, length));
            }
            ChunkState::Abandoned => {
                debug_assert!(false, "no search finds what was given up");
                return;
            }
        }
        entry.marked_bytes += bytes;
        if self.optional_recovery.is_some() && before == ChunkState::InFlight {
            self.note_lost(tsn, paths);
        }
        let entry = paths.get_mut(path);
        entry.losses.count(entry.carried.chunks);
        self.rwnd_marked += rwnd;
        if let Some((path, length)) = withdrawn {
            self.forget_gap_acked(path, length);
        }
    }

    /// Enters fast retransmit after missing reports have marked chunks: reduces cwnd as the profile
    /// requires, and permits one packet.
    pub(super) fn enter_fast_retransmit(
        &mut self,
        now: Nanos,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        // With pacing, the waiting chunks are spread over the round trip and do not cause a burst.
        let computes_rate = || paths.iter().any(|(_, it)| it.cc.pacing_rate().is_some());
        let may_wait = match self.profile.fast_retransmit_in_recovery_waits {
            RecoveryWaits::Never => false,
            RecoveryWaits::Always => true,
            RecoveryWaits::Paced => self.paced || computes_rate(),
        };
        let waits = self.recovery_until.is_some() && may_wait;
        self.one_packet = self.profile.fast_retransmit_ignores_cwnd && !waits;
        self.judge_reported(now, paths, trace);
        if self.splits_fast_retransmit() {
            return self.enter_recovery_by_path(now, paths, trace);
        }
        match self.profile.fast_recovery {
            FastRecovery::None => self.cut_lost_paths(now, paths, trace),
            FastRecovery::ExitPoint if self.recovery_until.is_none() => {
                self.cut_lost_paths(now, paths, trace);
                self.recovery_until = Some(self.outstanding.next_tsn().prev());
            }
            FastRecovery::ExitPoint => {}
            FastRecovery::RecoveryPoint => self.cut_past_recovery_point(now, paths, trace),
        }
    }

    /// Notifies the stream allocation of chunks marked by missing reports.
    fn judge_reported(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        for index in 0..self.acks.len() {
            let lost = self.acks[index].lost;
            let events = match self.in_use.loss_events() {
                LossEvents::PerSack => lost.min(1),
                LossEvents::PerChunk => lost,
                LossEvents::PerCut => 0,
            };
            for _ in 0..events {
                let path = PathId(index as u8);
                self.judge_loss(now, path, LossCause::FastRetransmit, paths, trace);
            }
        }
    }

    fn cut_lost_paths(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        for index in 0..self.acks.len() {
            if self.acks[index].lost > 0 {
                self.cut(now, PathId(index as u8), paths, trace);
            }
        }
    }

    /// Reduces cwnd of each path that has a marked chunk above its recovery point, and advances the
    /// point (ns-2.35).
    fn cut_past_recovery_point(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        let mut cut = [false; Paths::MAX];
        let mut from = self.outstanding.cumulative_point().next();
        loop {
            if let Some(until) = self.recovery_until.filter(|until| until.ge(from)) {
                from = until.next();
            }
            let uncut = (0..paths.len()).filter(|&index| !cut[index]);
            let marked = uncut.filter_map(|index| {
                let path = PathId(index as u8);
                let tsn = self.outstanding.next_marked_on(path, from)?;
                Some((tsn.distance_from(from), path))
            });
            let Some((distance, path)) = marked.min() else {
                return;
            };
            cut[usize::from(path.0)] = true;
            self.cut(now, path, paths, trace);
            let highest = self.outstanding.highest_unmarked();
            self.recovery_until = match (self.recovery_until, highest) {
                (Some(until), Some(tsn)) if tsn.lt(until) => Some(until),
                (_, Some(tsn)) => Some(tsn),
                (until, None) => until,
            };
            from = from.add(distance).next();
        }
    }

    pub(super) fn cut(&mut self, now: Nanos, id: PathId, paths: &mut Paths, trace: &mut Trace) {
        self.couple(id, paths);
        if self.in_use.loss_events() == LossEvents::PerCut {
            self.judge_loss(now, id, LossCause::FastRetransmit, paths, trace);
        }
        paths.switch_if_lossy(now, id, trace);
        let answered = self.mark_has_answered(id, paths);
        let entry = paths.get_mut(id);
        let before = window(entry);
        if self.optional_recovery.is_some() {
            let flight = entry.flightsize + entry.marked_bytes;
            self.note_cut(now, id, flight, paths);
        }
        let entry = paths.get_mut(id);
        if !answered {
            let flight = entry.flightsize + entry.marked_bytes;
            entry.cc.on_loss(now, LossCause::FastRetransmit, flight);
            self.note_reduction(id, false, paths);
        }
        let entry = paths.get_mut(id);
        if self.profile.loss_cancels_rtt {
            entry.timed = None;
        }
        trace_window(now, id, entry, before, trace);
    }

    /// Treats a missing answer to a HEARTBEAT on the path that carries data as a loss.
    pub(crate) fn on_heartbeat_lost(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let entry = paths.get_mut(id);
        let before = window(entry);
        entry.cc.on_heartbeat_lost(now);
        trace_window(now, id, entry, before, trace);
    }

    /// Handles the expiration of T3-rtx of a path (RFC 9260 §6.3.3). Has no effect before the
    /// expiration time.
    pub fn handle_t3(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> T3Outcome {
        let entry = paths.get_mut(id);
        if entry.t3_deadline.is_none_or(|deadline| deadline > now) {
            return T3Outcome::Nothing;
        }
        self.restore_reneged(now, paths);
        let entry = paths.get_mut(id);
        entry.t3_deadline = None;
        entry.earliest = entry
            .earliest
            .and_then(|bound| self.outstanding.earliest_on(id, bound));
        let Some(earliest) = entry.earliest else {
            return self.repeat_forward_tsn(now, id, paths, trace);
        };
        let answered = self.probe.is_some_and(|probe| probe.answered);
        // The peer keeps its window closed. This is no loss, so cwnd does not change (RFC 9260 §6.1
        // A).
        let is_loss = !(answered && self.profile.zero_window_probe_delay);
        if is_loss {
            self.judge_loss(now, id, LossCause::Timeout, paths, trace);
            paths.switch_if_lossy(now, id, trace);
        }
        self.couple(id, paths);
        let entry = paths.get_mut(id);
        let before = window(entry);
        let windows = (entry.cc.cwnd_exact(), entry.cc.ssthresh());
        if is_loss {
            let flight = entry.flightsize + entry.marked_bytes;
            entry.cc.on_loss(now, LossCause::Timeout, flight);
            self.note_reduction(id, false, paths);
        }
        let entry = paths.get_mut(id);
        entry.rto.back_off();
        self.statistics.rare().timeouts += 1;
        entry.decay_at = OptionalNanos::NONE;
        if is_loss {
            let cwnd_alone = self.profile.retransmissions_wait_for_sack;
            entry.most_in_flight = if cwnd_alone {
                OptionalNanos::NONE
            } else {
                OptionalNanos::some(1)
            };
            entry.prr = None;
        }
        if self.profile.loss_cancels_rtt {
            entry.timed = None;
        }
        trace_window(now, id, entry, before, trace);
        trace.record(now, Probe::Timeout, id.0.into(), self.number(earliest));
        trace.record(now, Probe::Rto, id.0.into(), time::seconds(entry.rto.rto()));
        self.forget_undo();
        if self.finds_by_time() {
            self.mark_overdue(now, id, earliest, paths);
        } else {
            self.mark_path(id, earliest, paths);
        }
        // Later data is still in flight and must be covered by T3-rtx, even if no marked chunk is
        // retransmitted on this path.
        let entry = paths.get_mut(id);
        if entry.flightsize > 0 {
            entry.start_t3(now);
        }
        self.restart_after_timeout(now, id);
        if is_loss && self.optional_recovery.is_some() {
            self.begin_f_rto(now, id, earliest, windows, paths);
        }
        self.trace_flight(now, id, paths.get(id), trace);
        if let Some(probe) = &mut self.probe {
            probe.answered = false;
        }
        T3Outcome::Marked {
            count_error: !answered,
        }
    }

    /// Restarts slow start after a timeout, and ends the current fast recovery.
    fn restart_after_timeout(&mut self, now: Nanos, id: PathId) {
        self.forward_due |= self.forward_pending(); // RFC 3758 §3.5 A5
        if self.profile.fast_recovery == FastRecovery::ExitPoint {
            self.recovery_until = None; // slow start restarts; all that was lost is marked
        }
        self.forget_recovery(id);
        self.one_packet = true;
        self.gate_closed = false;
        self.timed_out = self.profile.retransmissions_wait_for_sack;
        self.burst.carried = false;
        self.burst.restart(now);
        self.burst.carried = self.profile.max_burst_applies == MaxBurst::AfterFastRetransmit;
    }

    /// Handles a path on which data in flight can no longer arrive, as if T3-rtx had expired. With
    /// RACK, recent transmissions that a timeout would not mark are marked as lost, too.
    pub fn lose_path(&mut self, now: Nanos, id: PathId, paths: &mut Paths, trace: &mut Trace) {
        let entry = paths.get_mut(id);
        if entry.t3_deadline.is_none() {
            return;
        }
        entry.t3_deadline = Some(now);
        self.handle_t3(now, id, paths, trace);
        let rest = paths.get(id).earliest;
        let rest = rest.and_then(|bound| self.outstanding.earliest_on(id, bound));
        if let Some(earliest) = rest.filter(|_| self.finds_by_time()) {
            self.mark_path(id, earliest, paths);
            self.trace_flight(now, id, paths.get(id), trace);
        }
    }

    /// Retransmits a window probe that the peer has dropped, now that the peer's window is open.
    /// Waiting for the timeout would take long, because the RTO has doubled with every probe. A
    /// probe younger than a round trip may still be answered and is not retransmitted.
    pub(super) fn repeat_probe(&mut self, now: Nanos, paths: &mut Paths) {
        let Some(probe) = self.probe.filter(|_| self.profile.zero_window_probe_delay) else {
            return;
        };
        let Some(chunk) = self.outstanding.get(probe.tsn) else {
            return;
        };
        let rwnd = self
            .profile
            .rwnd_counts
            .bytes(chunk.fragment.user_data.len());
        let srtt = paths.get(chunk.path).rto.srtt().unwrap_or(0);
        let waits = chunk.state == ChunkState::InFlight && now >= chunk.sent_at + srtt;
        if waits && self.a_rwnd >= self.rwnd_in_flight && rwnd <= self.a_rwnd {
            self.probe = None;
            self.mark(probe.tsn, false, paths);
        }
    }

    /// Number of transmissions of the earliest unacknowledged chunk on path `id`; 0 if there is
    /// none.
    pub(crate) fn times_sent(&self, id: PathId, paths: &Paths) -> u32 {
        let earliest = |bound| self.outstanding.earliest_on(id, bound);
        let tsn = paths.get(id).earliest.and_then(earliest);
        tsn.and_then(|tsn| self.outstanding.get(tsn))
            .map_or(0, |chunk| chunk.transmissions)
    }

    /// Marks chunks in flight on path `id` that are larger than the path's decreased MTU permits.
    /// They were lost because of their size. They are retransmitted without a reduction of cwnd,
    /// and fragmented by IP (RFC 9260 §6.9, §7.3).
    pub(crate) fn mark_oversize(&mut self, id: PathId, paths: &mut Paths) {
        let extra = paths.max_user_data() - self.most_user_data(paths);
        let most = paths.get(id).max_user_data() - extra;
        let bound = paths.get(id).earliest;
        let mut next = bound.and_then(|bound| self.outstanding.earliest_on(id, bound));
        while let Some(tsn) = next {
            let oversize = self.outstanding.get(tsn).is_some_and(|chunk| {
                chunk.state == ChunkState::InFlight && chunk.fragment.user_data.len() > most
            });
            if oversize {
                self.mark(tsn, false, paths);
            }
            next = self.outstanding.earliest_on(id, tsn.next());
        }
    }

    /// Marks all unacknowledged chunks of the path (RFC 9260 §6.3.3 E3).
    fn mark_path(&mut self, id: PathId, earliest: Tsn, paths: &mut Paths) {
        let mut next = Some(earliest);
        while let Some(tsn) = next {
            if let Some(chunk) = self.outstanding.get_mut(tsn) {
                chunk.missing_reports = 0;
            }
            self.count_reports_again(tsn);
            self.mark(tsn, true, paths);
            next = self.outstanding.earliest_on(id, tsn.next());
        }
    }
}
