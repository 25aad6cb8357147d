//! SACK processing: acknowledged data, RTT, T3-rtx, cwnd and the peer's window (RFC 9260 §6.2.1,
//! §6.3.2, §7.2).

use anabranch_congestion::AckSample;
use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::Tsn;
use anabranch_wire::chunk::Sack;

use super::gap_blocks::{self, TsnRange};
use super::outstanding::{ChunkState, Standing};
use super::{Sender, trace_window, window};
use crate::compact_option::OptionalNanos;
use crate::path::{PathEntry, PathId, Paths};
use crate::profile::{Counts, IdleDecay, MaxBurst};

/// Maximum number of reneged chunks that one SACK puts back in flight (switch `reneged_at_once`).
const MAX_RENEGED_AT_ONCE: usize = 64;

/// Effects of a SACK, or of the cumulative TSN of a SHUTDOWN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackOutcome {
    /// Whether the SACK was older than the current state, and was ignored.
    pub stale: bool,
    /// Whether the SACK acknowledged a TSN that was never sent, and was ignored. RFC 9260 does not
    /// specify the response; an ABORT with the cause Protocol Violation is appropriate.
    pub protocol_violation: bool,
    /// Whether the cumulative TSN advanced.
    pub cumulative_advanced: bool,
    /// Number of bytes newly acknowledged by the cumulative TSN and Gap Ack Blocks, as cwnd counts
    /// them.
    pub newly_acked_bytes: u64,
    /// Number of newly acknowledged chunks.
    pub newly_acked_chunks: u32,
    /// Whether the error count of the association must be reset (§8.1): the cumulative TSN
    /// advanced, or a Gap Ack Block reported a TSN for the first time. A repeated report after
    /// reneging does not count.
    pub alive: bool,
    /// Number of chunks that were marked as lost by missing reports.
    pub fast_retransmitted: u32,
    /// Paths that were inactive and are active again (bit `n` for [`PathId`] `n`).
    pub paths_restored: u32,
}

/// Effects of one SACK on one path; scratch data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathAck {
    pub bytes: u64,
    pub chunks: u32,
    /// Number of packets whose first chunk was acknowledged.
    pub packets: u32,
    /// Whether an acknowledged chunk shows that the path is alive: it was sent only on this path,
    /// and (if the profile requires it) was not timed out.
    pub alive: bool,
    /// Whether the cumulative TSN passed a chunk, if that restarts T3-rtx.
    pub passed: bool,
    pub rtt: Option<Nanos>,
    /// Whether details of each acknowledged chunk are needed, not only its bytes.
    pub watched: bool,
    /// Transmission time of the newest acknowledged chunk that was sent only once.
    pub latest_sent: Option<Nanos>,
    pub flight_before: u64,
    pub earliest_before: Option<Tsn>,
    /// Whether the receiver has reneged on a chunk, which is in flight again.
    pub withdrawn: bool,
    /// Number of chunks marked by missing reports.
    pub lost: u32,
    /// Highest marked TSN, if `lost` is not 0.
    pub highest: Tsn,
}

impl Sender {
    /// Processes a SACK.
    pub fn handle_sack(
        &mut self,
        now: Nanos,
        sack: &Sack<impl AsRef<[u8]>>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> SackOutcome {
        self.statistics.sacks += 1;
        if self.optional_recovery.is_some() {
            self.note_duplicates(sack.duplicates());
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        gap_blocks::read_blocks(sack.gap_blocks(), &mut blocks);
        let outcome = self.acknowledge(
            now,
            sack.cumulative_tsn_ack,
            Some((&blocks, sack.a_rwnd)),
            paths,
            trace,
        );
        self.blocks = blocks;
        outcome
    }

    /// Processes the cumulative TSN of a SHUTDOWN, which reports neither gaps nor window (RFC 9260
    /// §9.2).
    pub fn handle_shutdown_ack_point(
        &mut self,
        now: Nanos,
        cumulative_tsn: Tsn,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> SackOutcome {
        self.acknowledge(now, cumulative_tsn, None, paths, trace)
    }

    /// Outcome of a SACK that must be ignored: it is outdated (RFC 9260 §6.2.1 D i), or its
    /// `highest` TSN was never sent.
    fn refuse(&mut self, now: Nanos, cumulative: Tsn, highest: Tsn) -> Option<SackOutcome> {
        let point = self.outstanding.cumulative_point();
        if !cumulative.ge(point) {
            self.statistics.rare().stale_sacks += 1;
            if self.profile.max_burst_applies == MaxBurst::AfterFastRetransmit {
                // In ns-2.35 an outdated SACK is still a send opportunity.
                let carried = self.burst.carried && self.outstanding.first_marked().is_some();
                self.burst.restart(now);
                self.burst.carried = carried;
                self.timed_out = false;
            }
            return Some(SackOutcome {
                stale: true,
                ..SackOutcome::default()
            });
        }
        let highest_sent = self.outstanding.next_tsn().prev();
        if highest.distance_from(point) > highest_sent.distance_from(point) {
            self.statistics.rare().impossible_sacks += 1;
            return Some(SackOutcome {
                stale: self.tsns_reset,
                protocol_violation: !self.tsns_reset,
                ..SackOutcome::default()
            });
        }
        None
    }

    fn acknowledge(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        report: Option<(&[TsnRange], u32)>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> SackOutcome {
        let point = self.outstanding.cumulative_point();
        let reported = report.and_then(|(blocks, _)| blocks.last());
        let highest = reported.map_or(cumulative, |run| cumulative.add(run.end));
        if let Some(refused) = self.refuse(now, cumulative, highest) {
            return refused;
        }
        let advanced = cumulative != point;
        self.begin(now, paths);
        if let Some((_, a_rwnd)) = report {
            self.a_rwnd = a_rwnd.into();
        }
        if self.cmt.is_some() {
            self.expect_in_order(paths);
        }
        let mut newly = Newly::default();
        self.take_cumulative(now, cumulative, &mut newly, paths);
        gap_blocks::advance(&mut self.gaps, cumulative.distance_from(point));
        if let Some((blocks, _)) = report {
            self.take_gaps(now, cumulative, blocks, &mut newly, paths);
        }
        self.note_reneged();
        let recovering = self.recovery_until;
        let still_recovering = recovering.is_some_and(|until| cumulative.lt(until));
        let fast_retransmitted = match report {
            Some((blocks, _)) => {
                self.count_missing(now, cumulative, advanced, &newly, blocks, paths, trace)
            }
            None => 0,
        };
        let mut outcome = SackOutcome {
            cumulative_advanced: advanced,
            newly_acked_chunks: newly.chunks,
            alive: advanced || newly.alive,
            fast_retransmitted,
            ..SackOutcome::default()
        };
        // A SACK that arrives together with an ECNE does not increase cwnd, as in recovery (RFC
        // 3168 §6.1.2).
        let no_growth = still_recovering || std::mem::take(&mut self.echoed);
        self.settle_paths(now, advanced, no_growth, &mut outcome, paths, trace);
        if !still_recovering {
            self.recovery_until = None;
        }
        self.probe = self.probe.filter(|probe| probe.tsn.gt(cumulative));
        if let (Some(probe), Some(_)) = (&mut self.probe, report) {
            probe.answered = true;
        }
        let packets = self.acks.iter().map(|ack| ack.packets).sum();
        self.let_go_on(now, packets);
        if self.cmt.is_some() {
            self.end_recoveries(paths);
        }
        if fast_retransmitted > 0 {
            self.enter_fast_retransmit(now, paths, trace);
        }
        self.note_peer_window(now, self.believed_window(), newly.chunks > 0);
        if report.is_some() {
            self.repeat_probe(now, paths);
        }
        self.follow_acknowledgement(now, cumulative, paths);
        if self.optional_recovery.is_some() {
            let gaps = !self.gaps.is_empty();
            self.follow_sack(now, newly.chunks, gaps, paths, trace);
        }
        let probe = if advanced {
            Probe::CumulativeAck
        } else {
            Probe::DuplicateAck
        };
        trace.record(now, probe, 0, self.number(cumulative.next()));
        trace.record(now, Probe::PeerRwnd, 0, self.peer_rwnd as f64);
        outcome
    }

    /// Updates the peer's free window after a SACK that advertised `window`; `news`: the SACK
    /// acknowledged new data.
    #[inline(always)]
    pub(super) fn note_peer_window(&mut self, now: Nanos, window: u64, news: bool) {
        let in_flight = self.in_flight_for_window();
        self.peer_rwnd = window.saturating_sub(in_flight);
        if news && in_flight == 0 {
            self.quiet_since = now;
        }
    }

    /// Records the state of every path before the acknowledgement is counted.
    fn begin(&mut self, now: Nanos, paths: &mut Paths) {
        self.acks.clear();
        for (id, entry) in paths.iter_mut() {
            if self.profile.idle_decay == IdleDecay::SinceLastSend {
                entry.decay(now, IdleDecay::SinceLastSend);
            }
            entry.earliest = entry
                .earliest
                .and_then(|bound| self.outstanding.earliest_on(id, bound));
            self.acks.push(PathAck {
                flight_before: self.flight_for_growth(entry),
                watched: entry.cc.wants_latest_rtt() || self.optional_recovery.is_some(),
                earliest_before: entry.earliest,
                ..PathAck::default()
            });
        }
    }

    fn take_cumulative(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        newly: &mut Newly,
        paths: &mut Paths,
    ) {
        while let Some((tsn, mut chunk)) = self.outstanding.pop_up_to(cumulative) {
            if chunk.state == ChunkState::Abandoned {
                self.passed_abandoned(newly);
                continue;
            }
            self.statistics.bytes_acknowledged += chunk.length as u64;
            self.acks[usize::from(chunk.path.0)].passed |= self.profile.cumulative_restarts_t3;
            if chunk.state != ChunkState::GapAcked {
                chunk.reported = false; // the cumulative TSN passing it is news
                self.count_acked(now, tsn, chunk, paths);
                newly.count(tsn);
            } else {
                self.forget_gap_acked(chunk.path, chunk.length);
                if self.optional_recovery.is_some() {
                    Self::note_reported(chunk.path, chunk.begins_packet, false, paths);
                }
            }
            // Limit the next burst, because the acknowledged retransmission may have released many
            // chunks (RFC 9260 §6.1 D).
            self.burst.armed |= chunk.fast_retransmitted;
        }
    }

    fn take_gaps(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        blocks: &[TsnRange],
        newly: &mut Newly,
        paths: &mut Paths,
    ) {
        for run in blocks {
            let end = cumulative.add(run.end).next();
            let mut next = self
                .outstanding
                .next_unacked(cumulative.add(run.start), end);
            while let Some(tsn) = next {
                newly.alive |= self.gap_acked(now, tsn, paths);
                newly.count_by_gap(tsn);
                next = self.outstanding.next_unacked(tsn.next(), end);
            }
        }
        self.gaps.clear();
        self.gaps.extend_from_slice(blocks);
        // ns-2.35 does not detect reneging by a SACK without Gap Ack Blocks.
        let looks = self.profile.reneged_at_once && !blocks.is_empty();
        if looks && self.any_reneged() {
            let first = self.withdrawn().take(MAX_RENEGED_AT_ONCE).collect();
            self.take_back(now, first, paths);
        }
    }

    /// Processes a TSN in a Gap Ack Block. Returns whether the report resets error counts: it is
    /// the first report of the TSN, or the switch `reneged_at_once` is on, with which repeated
    /// reports count, too.
    pub(super) fn gap_acked(&mut self, now: Nanos, tsn: Tsn, paths: &mut Paths) -> bool {
        let Some(chunk) = self.outstanding.get_mut(tsn) else {
            return false;
        };
        let standing = chunk.standing();
        chunk.reported = !self.profile.reneged_at_once;
        self.outstanding.set_state(tsn, ChunkState::GapAcked);
        self.note_gap_acked(standing.path, standing.length);
        if self.optional_recovery.is_some() {
            Self::note_reported(standing.path, standing.begins_packet, true, paths);
        }
        self.count_acked(now, tsn, standing, paths);
        !standing.reported
    }

    /// Records whether the receiver has reneged on reported chunks (RFC 9260 §6.2.1 D iii). The
    /// chunks are not examined here, because a peer could report and renege on tens of thousands of
    /// chunks with each SACK. They are marked when T3-rtx expires, or individually by missing
    /// reports.
    fn note_reneged(&mut self) {
        self.reneged_on = None;
        if self.any_reneged() {
            let lowest = self.withdrawn().next();
            let chunk = lowest.and_then(|tsn| self.outstanding.get(tsn));
            self.reneged_on = chunk.map(|chunk| chunk.path);
        }
    }

    pub(super) fn any_reneged(&self) -> bool {
        // Abandoned chunks may have arrived and be covered by Gap Ack Blocks, so count them, too.
        let reported = self.outstanding.gap_acked() + self.outstanding.abandoned();
        self.outstanding.gap_acked() > 0 && reported > gap_blocks::covered(&self.gaps)
    }

    /// TSNs that earlier Gap Ack Blocks reported, but the last SACK does not.
    fn withdrawn(&self) -> impl Iterator<Item = Tsn> + '_ {
        let ring = &self.outstanding;
        let at = |offset: u32| ring.cumulative_point().add(offset);
        let begins = std::iter::once(at(1)).chain(self.gaps.iter().map(move |run| at(run.end + 1)));
        let ends = self.gaps.iter().map(move |run| at(run.start));
        let holes = begins.zip(ends.chain(std::iter::once(ring.next_tsn())));
        holes.flat_map(move |(from, end)| {
            let next = move |tsn: &Tsn| ring.next_gap_acked(tsn.next(), end);
            std::iter::successors(ring.next_gap_acked(from, end), next)
        })
    }

    /// Puts reneged chunks back in flight, covered by T3-rtx.
    pub(super) fn restore_reneged(&mut self, now: Nanos, paths: &mut Paths) {
        if self.reneged_on.take().is_some() {
            let withdrawn = self.withdrawn().collect();
            self.take_back(now, withdrawn, paths);
        }
    }

    fn take_back(&mut self, now: Nanos, withdrawn: Vec<Tsn>, paths: &mut Paths) {
        for tsn in withdrawn {
            self.outstanding.set_state(tsn, ChunkState::InFlight);
            let Some(chunk) = self.outstanding.get(tsn) else {
                continue;
            };
            let (path, length) = (chunk.path, chunk.fragment.user_data.len());
            self.forget_gap_acked(path, length);
            let entry = paths.get_mut(path);
            entry.flightsize += self.profile.cwnd_counts.bytes(length);
            entry.watch(tsn);
            if entry.t3_deadline.is_none() {
                entry.start_t3(now);
            }
            if let Some(ack) = self.acks.get_mut(usize::from(path.0)) {
                ack.withdrawn = true;
            }
            self.rwnd_in_flight += self.profile.rwnd_counts.bytes(length);
        }
    }

    /// Counts a newly acknowledged chunk that was in flight or marked.
    #[inline(always)]
    fn count_acked(&mut self, now: Nanos, tsn: Tsn, chunk: Standing, paths: &mut Paths) {
        let length = chunk.length;
        let (bytes, rwnd) = (
            self.profile.cwnd_counts.bytes(length),
            self.profile.rwnd_counts.bytes(length),
        );
        let entry = paths.get_mut(chunk.path);
        let ack = &mut self.acks[usize::from(chunk.path.0)];
        if let ChunkState::Marked { .. } = chunk.state {
            entry.marked_bytes -= bytes;
            self.rwnd_marked -= rwnd;
        } else {
            entry.flightsize -= bytes;
            self.rwnd_in_flight -= rwnd;
        }
        let in_doubt = chunk.state == ChunkState::Marked { timed_out: true };
        ack.bytes += bytes;
        ack.chunks += 1;
        ack.highest = tsn; // they come in order
        ack.packets += u32::from(chunk.begins_packet);
        let ambiguous = chunk.moved && !self.profile.ambiguous_answer_clears_errors;
        let doubted = in_doubt && !self.profile.answer_after_timeout_clears_errors;
        ack.alive |= !doubted && !ambiguous && !chunk.reported;
        // Karn's rule: only a chunk sent once measures (RFC 9260 §6.3.1 C5).
        let timed = entry.timed == Some(tsn);
        if chunk.transmissions == 1 && !in_doubt && (timed || !self.profile.rtt_once_per_round_trip)
        {
            ack.rtt = Some(now - chunk.sent_at);
        }
        if timed {
            entry.timed = None;
        }
        if ack.watched {
            if chunk.transmissions == 1 && !in_doubt {
                ack.latest_sent = ack.latest_sent.max(Some(chunk.sent_at));
            }
            self.note_delivered(
                now,
                tsn,
                (chunk.path, chunk.sent_at, chunk.transmissions),
                paths,
            );
        }
    }

    /// Increases cwnd, measures the round-trip time, and stops or restarts T3-rtx, for each path.
    fn settle_paths(
        &mut self,
        now: Nanos,
        advanced: bool,
        in_recovery: bool,
        outcome: &mut SackOutcome,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        for index in 0..self.acks.len() {
            let (ack, id) = (self.acks[index], PathId(index as u8));
            let (mut advanced, mut in_recovery) = (advanced, in_recovery);
            if let Some(cmt) = &self.cmt {
                advanced = self.advanced_on(cmt, id, advanced);
                in_recovery |= self.recovers(cmt, id);
                self.couple(id, paths);
            }
            self.settle::<false>(
                now,
                id,
                &ack,
                (advanced, in_recovery),
                outcome,
                paths,
                trace,
            );
        }
    }

    /// Updates one path for [`Self::settle_paths`]. `PLAIN`: it is the only path, chunks were
    /// acknowledged, and tracing is disabled.
    #[expect(clippy::too_many_arguments, reason = "one step of settle_paths")]
    #[inline(always)]
    pub(super) fn settle<const PLAIN: bool>(
        &mut self,
        now: Nanos,
        id: PathId,
        ack: &PathAck,
        (advanced, in_recovery): (bool, bool),
        outcome: &mut SackOutcome,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        if let Some(rtt) = ack.rtt {
            let entry = paths.get_mut(id);
            entry.measure_rtt(now, id, rtt, trace);
            entry.rtt_min = OptionalNanos::some(entry.rtt_min.or_never().min(rtt));
        }
        if ack.alive && paths.record_answer(now, id, trace) {
            outcome.paths_restored |= 1 << id.0;
        }
        outcome.newly_acked_bytes += ack.bytes;
        let touched = || {
            let withdrawn = ack.withdrawn || self.reneged_on == Some(id);
            self.is_watched_wrongly(paths.get(id)) || ack.chunks > 0 || withdrawn || ack.passed
        };
        if PLAIN || touched() {
            self.settle_path::<PLAIN>(now, id, ack, advanced, in_recovery, paths, trace);
        }
    }

    /// Whether T3-rtx must be started or stopped in profiles whose timer also covers marked chunks.
    /// With these profiles, a SACK that finds no chunk on the path stops the timer; a move of the
    /// last chunk to another path does not.
    fn is_watched_wrongly(&self, entry: &PathEntry) -> bool {
        let is_empty = entry.flightsize + entry.marked_bytes == 0;
        self.profile.flight_counts_marked && entry.t3_deadline.is_some() == is_empty
    }

    #[expect(clippy::too_many_arguments, reason = "one step of settle_paths")]
    #[inline(always)]
    fn settle_path<const PLAIN: bool>(
        &mut self,
        now: Nanos,
        id: PathId,
        ack: &PathAck,
        advanced: bool,
        in_recovery: bool,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let entry = paths.get_mut(id);
        if PLAIN || ack.chunks > 0 {
            entry.most_in_flight = OptionalNanos::NONE;
            // If tracing is disabled, the congestion control need not be queried.
            let looks = !PLAIN && (trace.wants(Probe::Cwnd) || trace.wants(Probe::Ssthresh));
            let before = if looks { window(entry) } else { (0, 0) };
            let sample = AckSample {
                now,
                bytes_acked: ack.bytes,
                segments_acked: ack.chunks,
                cumulative_advanced: advanced,
                marked: false, // an ECNE is about one packet, and is separate from SACKs
                bytes_marked: 0,
                flightsize_before: ack.flight_before,
                flightsize_after: entry.flightsize + entry.marked_bytes,
                in_recovery,
                rtt: ack.rtt,
                latest_rtt: ack.latest_sent.map(|sent_at| now - sent_at),
                srtt: entry.rto.srtt(),
                delivery: entry.delivery.on_ack(now, ack.bytes, entry.flightsize),
                rate: entry
                    .sampler
                    .as_mut()
                    .and_then(|it| it.take_sample(ack.rtt)),
            };
            entry.cc.on_ack(&sample);
            entry.estimate(id, &sample, trace);
            if looks {
                trace_window(now, id, entry, before, trace);
            }
        }
        let earliest_acked = ack.passed
            || ack
                .earliest_before
                .is_some_and(|tsn| self.is_acknowledged(tsn));
        let all_acked = entry.flightsize + entry.marked_bytes == 0;
        if all_acked && self.reneged_on != Some(id) {
            entry.t3_deadline = None; // RFC 9260 §6.3.2 R2
            entry.earliest = None;
        } else if earliest_acked || entry.t3_deadline.is_none() {
            entry.start_t3(now); // R3, R4
        }
        if PLAIN {
            return;
        }
        self.trace_flight(now, id, entry, trace);
    }
}

/// Chunks newly acknowledged by a SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newly {
    pub chunks: u32,
    /// Whether a Gap Ack Block reported a chunk of the path for the first time.
    pub alive: bool,
    pub highest: Option<Tsn>,
    /// Lowest TSN reported by a Gap Ack Block, if the cumulative TSN acknowledged no new chunk.
    pub lowest_by_gap: Option<Tsn>,
}

impl Newly {
    /// Counts a newly acknowledged chunk; must be called in ascending order of TSNs.
    pub(super) fn count(&mut self, tsn: Tsn) {
        self.chunks += 1;
        self.highest = Some(tsn);
    }

    /// Like [`Self::count`], for a chunk reported by a Gap Ack Block.
    pub(super) fn count_by_gap(&mut self, tsn: Tsn) {
        if self.chunks == 0 {
            self.lowest_by_gap = Some(tsn);
        }
        self.count(tsn);
    }
}

const _: () = assert!(
    Counts::Chunk.bytes(1432) == 1448,
    "the segment of the GEO paper"
);
