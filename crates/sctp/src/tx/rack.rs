//! RACK-TLP over TSNs (RFC 8985): losses are detected by transmission time, per path, and the loss
//! of the last packets of a path by a tail loss probe.
//!
//! Enabled by the setting `rack`; the functions are called by
//! [`OptionalRecovery`](super::optional_recovery). Missing reports are not counted. A chunk is lost
//! if a later transmission on the same path has arrived and a reordering window has passed. This
//! also detects lost retransmissions.

use anabranch_congestion::recovery::{RackDecision, tail_probe};
use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::Tsn;

use super::Sender;
use super::ack::PathAck;
use super::optional_recovery::ProbeDue;
use super::outstanding::ChunkState;
use crate::path::{PathEntry, PathId, PathRack, Paths, Sending};

impl Sender {
    /// Updates the number of packets reported by Gap Ack Blocks. `first`: the chunk is the first of
    /// its packet. `is`: true if the chunk was reported now, false if the cumulative TSN has passed
    /// it.
    #[cold]
    pub(super) fn note_reported(id: PathId, first: bool, is: bool, paths: &mut Paths) {
        if let Some(state) = &mut paths.get_mut(id).rack
            && first
        {
            state.reported = if is {
                state.reported.saturating_add(1)
            } else {
                state.reported.saturating_sub(1)
            };
        }
    }

    /// Marks chunks on all paths that are lost according to their transmission times. Returns the
    /// new losses.
    #[cold]
    pub(super) fn find_lost(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> u32 {
        let mut found = 0;
        for index in 0..paths.len() {
            found += self.find_lost_on(now, PathId(index as u8), cumulative, paths, trace);
        }
        found
    }

    fn find_lost_on(
        &mut self,
        now: Nanos,
        id: PathId,
        cumulative: Tsn,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> u32 {
        let recovering = self.recovers_on(id, cumulative, paths);
        let entry = paths.get_mut(id);
        if self.examines_timeout() {
            // While F-RTO examines a timeout, no loss is detected, because an acknowledged
            // retransmission does not show whether other data was lost or is late.
            if let Some(state) = &mut entry.rack {
                state.deadline = None;
            }
            return 0;
        }
        let (srtt, Some(mut state)) = (entry.rto.srtt(), entry.rack.take()) else {
            return 0;
        };
        let window = state.rack.window(recovering, state.reported, srtt);
        let mut found = 0;
        state.deadline = None;
        while let Some(&sending) = state.sent.front() {
            let verdict = if self.flies(&sending, id) {
                state.rack.judge(now, sending.transmission, window)
            } else {
                state.sent.pop_front();
                continue;
            };
            match verdict {
                RackDecision::Lost => {
                    state.sent.pop_front();
                    found += u32::from(self.lose(now, &sending, &state, paths, trace));
                }
                RackDecision::LostAt(at) => {
                    state.start_timer(now, window, at, |it| self.flies(it, id));
                    break;
                }
                RackDecision::Unknown => break,
            }
        }
        paths.get_mut(id).rack = Some(state);
        found
    }

    /// Whether this transmission is still in flight.
    fn flies(&self, sending: &Sending, id: PathId) -> bool {
        self.outstanding.get(sending.tsn).is_some_and(|chunk| {
            chunk.state == ChunkState::InFlight
                && chunk.path == id
                && chunk.sent_at == sending.transmission.sent_at
        })
    }

    /// Marks a chunk as lost. Returns whether the loss is a new congestion event. The loss of a
    /// retransmission is a new event (RFC 5681 §4.3), but the loss of data sent before a timeout is
    /// not.
    fn lose(
        &mut self,
        now: Nanos,
        sending: &Sending,
        state: &PathRack,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> bool {
        let Some(chunk) = self.outstanding.get_mut(sending.tsn) else {
            return false;
        };
        chunk.fast_retransmitted = true;
        let (id, since_cut) = (chunk.path, chunk.sent_at >= state.cut_at);
        if chunk.transmissions > 1 && since_cut {
            self.recovery_until = None;
            self.forget_recovery(id);
        }
        self.mark(sending.tsn, false, paths);
        self.statistics.rare().fast_retransmits += 1;
        let number = self.number(sending.tsn);
        trace.record(now, Probe::FastRetransmit, id.0.into(), number);
        let news = state.timeout_until.is_none() || since_cut;
        self.acks[usize::from(id.0)].lost += u32::from(news);
        news
    }

    /// Whether a path is in fast or timeout recovery, if `cumulative` is the cumulative TSN.
    pub(super) fn recovers_on(&self, id: PathId, cumulative: Tsn, paths: &Paths) -> bool {
        let split = self.cmt.as_ref().is_some_and(|cmt| self.recovers(cmt, id));
        let fast = self
            .recovery_until
            .is_some_and(|until| cumulative.lt(until));
        let acknowledged = self.number_of(cumulative.next());
        let timed_out = paths.get(id).rack.as_ref().is_some_and(|state| {
            let until = state.timeout_until;
            until.is_some_and(|until| acknowledged < until)
        });
        fast || split || timed_out
    }

    /// Updates the timers of all paths after a SACK that newly acknowledged `chunks` chunks.
    /// `gaps`: the SACK reports gaps.
    pub(super) fn follow_by_time(
        &mut self,
        now: Nanos,
        chunks: u32,
        gaps: bool,
        duplicates: &[Tsn],
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        self.forget_probe();
        let cumulative = self.outstanding.cumulative_point();
        let acknowledged = self.number_of(cumulative.next());
        let next = self.statistics.chunks_sent;
        for index in 0..paths.len() {
            let id = PathId(index as u8);
            let recovers = self.recovers_on(id, cumulative, paths);
            let ack = self.acks.get(index).copied().unwrap_or_default();
            let Some(state) = &mut paths.get_mut(id).rack else {
                continue;
            };
            if !duplicates.is_empty() {
                state.rack.on_duplicate(acknowledged, next);
            }
            if state.recovering && !recovers {
                state.rack.on_recovery_end();
                state.timeout_until = None;
            }
            state.recovering = recovers;
            if ack.rtt.is_some() {
                state.tail.on_measured();
            }
            let repeated = |tsn: &Tsn| state.tail.is_probe(self.number_of(*tsn));
            let repeated = duplicates.iter().any(repeated);
            let bare = chunks == 0 && !gaps;
            let repaired = state.tail.on_ack(acknowledged, repeated, bare);
            if repaired && !recovers {
                self.cut(now, id, paths, trace);
            }
            if ack.chunks > 0 || !self.may_probe(paths.get(id)) {
                self.arm_probe(now, id, paths);
            }
        }
    }

    /// Whether a tail loss probe is useful on the path (RFC 8985 §7.2): data is in flight, no gap
    /// is reported, and no recovery is in progress.
    fn may_probe(&self, entry: &PathEntry) -> bool {
        let state = entry.rack.as_ref();
        self.optional_recovery.as_ref().is_some_and(|it| it.probes)
            && entry.flightsize > 0
            && self.outstanding.gap_acked() == 0
            && self.outstanding.first_marked().is_none()
            && state.is_some_and(|state| !state.recovering)
    }

    /// Restarts or stops the probe timer of a path.
    fn arm_probe(&mut self, now: Nanos, id: PathId, paths: &mut Paths) {
        let may = self.may_probe(paths.get(id));
        let entry = paths.get_mut(id);
        let alone = entry.flightsize <= entry.max_packet as u64;
        let (srtt, expiry) = (entry.rto.srtt(), entry.t3_deadline);
        let (Some(state), Some(recovery)) = (&mut entry.rack, &self.optional_recovery) else {
            return;
        };
        match expiry {
            Some(expiry) if may => {
                let after = tail_probe::timeout(srtt, alone, recovery.most_delay);
                state.tail.arm(now, after, expiry);
            }
            _ => state.tail.disarm(),
        }
    }

    /// Called after a packet was sent on path `id`. `again`: it contains retransmissions.
    pub(super) fn follow_filled(&mut self, now: Nanos, id: PathId, again: bool, paths: &mut Paths) {
        if self.forget_probe() != Some(id) {
            return self.arm_probe(now, id, paths);
        }
        self.statistics.rare().tail_probes += 1;
        let entry = paths.get_mut(id);
        if let Some(state) = &mut entry.rack {
            state.tail.on_sent(self.statistics.chunks_sent, again);
        }
        entry.start_t3(now); // RFC 8985 §7.3
    }

    fn set_no_loss(&mut self, is: bool) {
        if let Some(recovery) = &mut self.optional_recovery {
            recovery.no_loss = is;
        }
    }

    /// Cancels a due probe for which there is no data. Returns whether a probe was due. The probe
    /// would otherwise stay due and delay HEARTBEATs.
    #[cold]
    pub(crate) fn drops_probe(&mut self) -> bool {
        self.forget_probe().is_some()
    }

    /// Cancels a due probe, and returns its path.
    pub(super) fn forget_probe(&mut self) -> Option<PathId> {
        let due = self.optional_recovery.as_mut()?.due.take();
        if due.is_some() {
            self.outstanding.look_no_more();
        }
        due.map(|it| it.path)
    }

    /// Path on which a probe is due.
    #[cold]
    pub(super) fn probe_due(&self) -> Option<PathId> {
        Some(self.optional_recovery.as_ref()?.due?.path)
    }

    /// Path on which a retransmission of chunk `tsn` is due as a probe.
    #[cold]
    pub(super) fn probed_by(&self, tsn: Tsn) -> Option<PathId> {
        let due = self.optional_recovery.as_ref()?.due?;
        (due.repeats == Some(tsn)).then_some(due.path)
    }

    /// Earliest RACK-TLP timer of all paths; T3-rtx is not included.
    #[cold]
    pub(super) fn timed_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let timers = paths
            .iter()
            .filter_map(|(_, entry)| entry.rack.as_ref()?.next_deadline());
        timers.chain(self.untimed_deadline(paths)).min()
    }

    /// Handles reordering timers and probe timers that have expired.
    pub(crate) fn handle_timed(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        if !self.finds_by_time() {
            return;
        }
        for index in 0..paths.len() {
            let id = PathId(index as u8);
            let Some(state) = &mut paths.get_mut(id).rack else {
                continue;
            };
            let probes = state.tail.take_due(now);
            if state.deadline.is_some_and(|at| at <= now) {
                self.acks.clear();
                self.acks.resize(paths.len(), PathAck::default());
                let cumulative = self.outstanding.cumulative_point();
                if self.find_lost_on(now, id, cumulative, paths, trace) > 0 {
                    self.burst.restart(now);
                    self.enter_fast_retransmit(now, paths, trace);
                }
            } else if probes {
                self.probe_tail(now, id, paths);
            }
        }
    }

    /// Sends a tail loss probe, because the probe timer has expired: one packet of new data, or if
    /// there is none, the last chunk again (TLP_send_probe).
    fn probe_tail(&mut self, now: Nanos, id: PathId, paths: &mut Paths) {
        let may = paths
            .get(id)
            .rack
            .as_ref()
            .is_some_and(|it| it.tail.may_go());
        if !may || !self.may_probe(paths.get(id)) {
            return;
        }
        let takes_new = !self.queue.is_empty()
            && self.takes_new(id, paths)
            && self.fits_peer_window(paths)
            && paths.get(id).is_verified();
        let mut repeats = None;
        if !takes_new {
            let Some(last) = self.last_in_flight_on(id) else {
                return;
            };
            repeats = Some(last);
            self.set_no_loss(true);
            self.mark(last, false, paths);
            self.set_no_loss(false);
            self.one_packet = true;
        }
        self.burst.restart(now);
        // Cancel a due probe on another path, because T3-rtx covers its data.
        self.forget_probe();
        if let Some(recovery) = &mut self.optional_recovery {
            recovery.due = Some(ProbeDue { path: id, repeats });
            self.outstanding.look_closer();
        }
    }

    fn last_in_flight_on(&self, id: PathId) -> Option<Tsn> {
        let ring = &self.outstanding;
        let mut tsn = ring.next_tsn();
        while tsn != ring.cumulative_point().next() {
            tsn = tsn.prev();
            let chunk = ring.get(tsn)?;
            if chunk.state == ChunkState::InFlight && chunk.path == id {
                return Some(tsn);
            }
        }
        None
    }

    /// Marks the lowest chunk and overdue chunks of a path after T3-rtx expired (RFC 8985 §6.3).
    /// The other chunks may still be in flight; later arrivals show which of them are lost.
    #[cold]
    pub(super) fn mark_overdue(
        &mut self,
        now: Nanos,
        id: PathId,
        earliest: Tsn,
        paths: &mut Paths,
    ) {
        self.forget_probe();
        let Some(mut state) = paths.get_mut(id).rack.take() else {
            return;
        };
        let window = state.rack.window(true, 0, paths.get(id).rto.srtt());
        let mut next = Some(earliest);
        while let Some(tsn) = next {
            let sent_at = self.outstanding.get(tsn).map_or(0, |chunk| chunk.sent_at);
            if tsn == earliest || state.rack.overdue_at(sent_at, window) <= now {
                self.mark(tsn, true, paths);
            }
            next = self.outstanding.earliest_on(id, tsn.next());
        }
        state.tail.on_timeout();
        state.deadline = None;
        state.cut_at = now;
        state.timeout_until = Some(self.statistics.chunks_sent);
        state.recovering = true;
        paths.get_mut(id).rack = Some(state);
    }
}
