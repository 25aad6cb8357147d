//! F-RTO: detection of spurious timeouts with selective acknowledgements (RFC 5682 §3), adapted to
//! SCTP by RFC 4138.
//!
//! After a timeout only the first packet is retransmitted until the cumulative TSN passes its first
//! chunk. Then up to two packets of new data are sent, and the next SACK decides. If it
//! acknowledges a chunk that was not retransmitted, the timeout was spurious: the data was delayed
//! and not lost. No further data is then retransmitted, and cwnd is restored (RFC 4015). If the
//! SACK acknowledges the new data instead, the remaining data was lost.
//!
//! F-RTO is not used if retransmissions go to another address, because their SACK may overtake the
//! SACKs of the original data (RFC 4138). It is not used with several paths in use, either.

use anabranch_congestion::recovery::RackTransmission;
use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::outstanding::ChunkState;
use super::{MAX_OUTSTANDING, Sender, trace_window, window};
use crate::compact_option::OptionalNanos;
use crate::path::{PathId, Paths, Sending};

/// Number of packets of new data, after which it is known whether the remaining data was lost.
const NEW_PACKETS: u32 = 2;

/// Progress of F-RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The first packet has been retransmitted (step 2 of RFC 5682 §3.1).
    Again,
    /// Step 3: the sender may still send this number of packets of new data.
    New(u32),
}

/// State of F-RTO after a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct FRtoAttempt {
    step: Step,
    path: PathId,
    /// Time at which T3-rtx expired. Chunks sent later are retransmissions or new.
    at: Nanos,
    /// TSN of the first retransmission (`first`), and highest TSN sent before the timeout
    /// (`recover`).
    first: Tsn,
    recover: Tsn,
    /// cwnd before the timeout, in bytes.
    cwnd: f64,
    ssthresh: u64,
    /// Whether the current SACK acknowledges a chunk that was sent before the timeout and not
    /// retransmitted since (`late`), or a chunk that was first sent after the timeout (`beyond`).
    late: bool,
    beyond: bool,
}

/// F-RTO state of a sender, if enabled.
#[derive(Debug, Default)]
pub(super) struct FRto {
    under_way: Option<FRtoAttempt>,
    /// Highest TSN sent at the last timeout.
    recover: Option<Tsn>,
}

impl FRto {
    /// Processes a newly acknowledged chunk, whose last transmission was at `sent_at`.
    pub fn on_acknowledged(&mut self, tsn: Tsn, sent_at: Nanos) {
        if let Some(attempt) = &mut self.under_way {
            attempt.beyond |= tsn.gt(attempt.recover);
            attempt.late |= tsn.le(attempt.recover) && sent_at < attempt.at;
        }
    }
}

impl Sender {
    fn attempt(&self) -> Option<&FRtoAttempt> {
        self.optional_recovery
            .as_ref()?
            .f_rto
            .as_ref()?
            .under_way
            .as_ref()
    }

    fn f_rto_mut(&mut self) -> Option<&mut FRto> {
        self.optional_recovery.as_mut()?.f_rto.as_mut()
    }

    fn attempt_mut(&mut self) -> Option<&mut FRtoAttempt> {
        self.f_rto_mut()?.under_way.as_mut()
    }

    /// Whether F-RTO is examining a timeout.
    pub(super) fn examines_timeout(&self) -> bool {
        self.attempt().is_some()
    }

    /// Starts F-RTO after T3-rtx of a path has expired and marked chunks; `first` is the lowest
    /// marked TSN. F-RTO does not start if data of an examined timeout is still unacknowledged
    /// (step 1).
    pub(super) fn begin_f_rto(
        &mut self,
        now: Nanos,
        id: PathId,
        first: Tsn,
        (cwnd, ssthresh): (f64, u64),
        paths: &Paths,
    ) {
        self.end_f_rto();
        let point = self.outstanding.cumulative_point();
        let recover = self.outstanding.next_tsn().prev();
        let stays = self.cmt.is_none() && paths.choose_for_retransmission(id, true) == id;
        let Some(recovery) = self.f_rto_mut() else {
            return;
        };
        let before = recovery.recover.replace(recover);
        if !stays || before.is_some_and(|before| point.lt(before)) {
            return;
        }
        recovery.under_way = Some(FRtoAttempt {
            step: Step::Again,
            path: id,
            at: now,
            first,
            recover,
            cwnd,
            ssthresh,
            late: false,
            beyond: false,
        });
        self.timed_out = true;
    }

    /// Ends F-RTO; from now on, the timeout is handled like any other.
    fn end_f_rto(&mut self) -> Option<FRtoAttempt> {
        let attempt = self.f_rto_mut()?.under_way.take()?;
        if matches!(attempt.step, Step::New(1..)) {
            self.outstanding.look_no_more();
        }
        Some(attempt)
    }

    /// Ends F-RTO because all TSNs are reset.
    pub(super) fn forget_f_rto(&mut self) {
        self.end_f_rto();
        if let Some(recovery) = self.f_rto_mut() {
            recovery.recover = None;
        }
    }

    /// Advances F-RTO after a SACK was processed.
    pub(super) fn step_f_rto(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        let Some(attempt) = self.attempt_mut() else {
            return;
        };
        let late = std::mem::take(&mut attempt.late);
        let beyond = std::mem::take(&mut attempt.beyond);
        let attempt = *attempt;
        let point = self.outstanding.cumulative_point();
        match attempt.step {
            Step::Again if point.lt(attempt.first) => self.wait_for_sack(),
            Step::Again
                if point.lt(attempt.recover) && self.may_send_for_f_rto(attempt.path, paths) =>
            {
                if let Some(attempt) = self.attempt_mut() {
                    attempt.step = Step::New(NEW_PACKETS);
                    self.outstanding.look_closer();
                }
                self.wait_for_sack();
            }
            Step::New(_) if late && !beyond => self.undo_timeout(now, paths, trace),
            Step::New(_) if !beyond => self.wait_for_sack(),
            Step::Again | Step::New(_) => {
                self.end_f_rto();
            }
        }
    }

    /// Blocks marked chunks and new data until the next SACK, except new data sent by F-RTO.
    fn wait_for_sack(&mut self) {
        self.gate_closed = true;
        self.timed_out = true;
    }

    /// Path for the new data of F-RTO, if it may be sent.
    pub(super) fn path_for_f_rto(&self, paths: &Paths) -> Option<PathId> {
        let attempt = self.attempt()?;
        let due = matches!(attempt.step, Step::New(1..));
        (due && self.may_send_for_f_rto(attempt.path, paths)).then_some(attempt.path)
    }

    /// Whether there is new data that may be sent on the path for F-RTO. It must fit into the
    /// peer's window even if all marked data arrives.
    fn may_send_for_f_rto(&self, id: PathId, paths: &Paths) -> bool {
        let marked = match self.profile.flight_counts_marked {
            true => 0, // its window is not given back
            false => self.rwnd_marked,
        };
        let next = self.queue.next_len(self.most_user_data(paths));
        !self.queue.is_empty()
            && self.outstanding.len() < MAX_OUTSTANDING
            && self.profile.rwnd_counts.bytes(next) + marked <= self.peer_rwnd
            && self.path_for_new(paths) == id
            && self.may_use(id, paths)
    }

    /// Records that a packet of new data was sent.
    pub(super) fn sent_for_f_rto(&mut self) {
        if let Some(attempt) = self.attempt_mut()
            && let Step::New(left @ 1..) = attempt.step
        {
            attempt.step = Step::New(left - 1);
            if left == 1 {
                self.outstanding.look_no_more();
            }
        }
    }

    /// Undoes a spurious timeout, because the data sent before it is still in flight. cwnd is
    /// restored, but at most to the sum of the data in flight and the newly acknowledged data. The
    /// newly acknowledged data counts only up to one initial cwnd (RFC 4015 §3.2). The RTO stays
    /// doubled until a round trip is measured, because it was too short.
    fn undo_timeout(&mut self, now: Nanos, paths: &mut Paths, trace: &mut Trace) {
        let Some(attempt) = self.end_f_rto() else {
            return;
        };
        // The next timeout may be examined even if data outstanding at this timeout is
        // unacknowledged (RFC 5682 §3.1, end).
        let point = self.outstanding.cumulative_point();
        if let Some(recovery) = self.f_rto_mut() {
            recovery.recover = Some(point);
        }
        let id = attempt.path;
        self.take_back_marked(id, paths);
        let initial = self.initial_window(id, paths);
        let acknowledged = self.acks[usize::from(id.0)].bytes.min(initial);
        let entry = paths.get_mut(id);
        let shown = window(entry);
        let cwnd = attempt.cwnd.min((entry.flightsize + acknowledged) as f64);
        entry.cc.on_undo(cwnd, attempt.ssthresh);
        (entry.prr, entry.most_in_flight, entry.reduction) = (None, OptionalNanos::NONE, None);
        if let Some(state) = &mut entry.rack {
            (state.timeout_until, state.recovering) = (None, false);
            state.rack.on_spurious_timeout();
        }
        self.statistics.rare().reductions_undone += 1;
        self.statistics.rare().spurious_timeouts += 1;
        trace_window(now, id, entry, shown, trace);
        self.trace_flight(now, id, paths.get(id), trace);
    }

    fn initial_window(&self, id: PathId, paths: &Paths) -> u64 {
        let entry = paths.get(id);
        let unit = entry.max_packet as u64;
        let initial = self.profile.initial_window;
        initial.bytes(unit, entry.path.remote.is_ipv6())
    }

    /// Puts chunks back in flight that the timeout has marked and that were not retransmitted,
    /// except chunks that were considered lost before.
    fn take_back_marked(&mut self, id: PathId, paths: &mut Paths) {
        let mut restored = Vec::new();
        let mut next = self
            .outstanding
            .next_marked_on(id, self.outstanding.cumulative_point());
        while let Some(tsn) = next {
            next = self.outstanding.next_marked_on(id, tsn.next());
            let Some(chunk) = self.outstanding.get(tsn) else {
                continue;
            };
            if chunk.fast_retransmitted || chunk.state != (ChunkState::Marked { timed_out: true }) {
                continue;
            }
            let (length, sent_at) = (chunk.fragment.user_data.len(), chunk.sent_at);
            self.outstanding.set_state(tsn, ChunkState::InFlight);
            let bytes = self.profile.cwnd_counts.bytes(length);
            let rwnd = self.profile.rwnd_counts.bytes(length);
            let entry = paths.get_mut(id);
            entry.marked_bytes -= bytes;
            entry.flightsize += bytes;
            entry.watch(tsn);
            self.rwnd_marked -= rwnd;
            self.rwnd_in_flight += rwnd;
            if !self.profile.flight_counts_marked {
                self.peer_rwnd = self.peer_rwnd.saturating_sub(rwnd);
            }
            let number = self.number_of(tsn);
            restored.push(Sending {
                tsn,
                transmission: RackTransmission { sent_at, number },
            });
        }
        // RACK had removed these transmissions when the chunks were marked.
        if let Some(state) = &mut paths.get_mut(id).rack {
            for sending in restored.into_iter().rev() {
                state.sent.push_front(sending);
            }
        }
    }
}
