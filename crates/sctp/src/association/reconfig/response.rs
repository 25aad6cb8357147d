//! Responses to this side's requests (RFC 6525 §5.2.7).

use anabranch_transport::{Nanos, Path};
use anabranch_wire::Tsn;
use anabranch_wire::extension::ReConfigResult;

use super::super::{Association, ControlTask};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::Event;
use crate::path::PathId;
use crate::reconfig::{ReconfigOutcome, Request, RequestKind, ResponseSent, StreamDirection};

/// Outcome of a request according to the response's result; `None` if it is still in progress.
fn outcome_of(result: ReConfigResult) -> Option<ReconfigOutcome> {
    match result {
        ReConfigResult::Performed | ReConfigResult::NothingToDo => Some(ReconfigOutcome::Performed),
        ReConfigResult::Denied => Some(ReconfigOutcome::Denied),
        ReConfigResult::InProgress | ReConfigResult::AlreadyInProgress => None,
        ReConfigResult::WrongSsn
        | ReConfigResult::BadSequenceNumber
        | ReConfigResult::Unknown(_) => Some(ReconfigOutcome::Failed),
    }
}

impl Association {
    /// Processes a Re-configuration Response.
    pub(super) fn on_response(
        &mut self,
        now: Nanos,
        path: Path,
        answered: ResponseSent,
        discards: &mut DiscardCounts,
    ) {
        let most = self.config.association_max_retrans;
        let Some(outstanding) = self
            .reconfiguration_mut()
            .and_then(|it| it.outstanding.as_mut())
        else {
            return discards.count(DiscardReason::BadReConfig);
        };
        // A request that was not sent yet cannot have a response.
        let sent = outstanding.deadline.is_some();
        let mut open = outstanding
            .requests
            .iter_mut()
            .filter(|it| sent && !it.settled);
        let Some(request) = open.find(|it| it.number == answered.number) else {
            return discards.count(DiscardReason::BadReConfig);
        };
        let sent_over = outstanding.path;
        let mut outcome = outcome_of(answered.result);
        if answered.result == ReConfigResult::AlreadyInProgress && outstanding.renumbered >= most {
            outcome = Some(ReconfigOutcome::Failed);
        }
        request.settled = outcome.is_some();
        let request = request.clone();
        self.heard_answer(now, sent_over);
        match outcome {
            None => self.wait_longer(now, answered.result),
            Some(outcome) => self.settle(now, path, request, outcome, answered, discards),
        }
        if self.is_closed() {
            return;
        }
        self.release_held(now, path, discards);
        self.end_flight();
    }

    /// Clears errors, because the peer has answered.
    fn heard_answer(&mut self, now: Nanos, path: PathId) {
        self.error_count = 0;
        self.paths.record_answer(now, path, &mut self.trace);
    }

    /// Ends the outstanding request if it is completed, and sends the next one.
    fn end_flight(&mut self) {
        if let Some(reconfig) = self.reconfiguration_mut()
            && let Some(outstanding) = &reconfig.outstanding
            && outstanding.requests.iter().all(|it| it.settled)
        {
            reconfig.outstanding = None;
            self.pending_control.clear(ControlTask::ReConfig);
        }
        self.advance_reconfiguration();
    }

    /// Schedules a retransmission, because the peer is still processing this request or another
    /// request.
    fn wait_longer(&mut self, now: Nanos, result: ReConfigResult) {
        let ours_is_later = self.state.peer_tag() > Some(self.local_tag);
        let Some(path) = self
            .reconfiguration()
            .and_then(|it| it.outstanding.as_ref())
            .map(|it| it.path)
        else {
            return;
        };
        let rto = self.paths.get(path).rto.rto();
        let Some(outstanding) = self
            .reconfiguration_mut()
            .and_then(|it| it.outstanding.as_mut())
        else {
            return;
        };
        outstanding.in_progress = true;
        outstanding.due = false;
        let mut wait = rto;
        if result == ReConfigResult::AlreadyInProgress {
            outstanding.renumber = true;
            // If the requests of both ends crossed, a repetition at the same time would cross
            // again.
            let crossed = outstanding.crossed || !outstanding.is_of_association();
            wait = if ours_is_later && crossed { 3 } else { 1 } * rto;
            // An association reset may take longer, because the peer must first deliver its data in
            // flight.
            if outstanding.is_of_association() {
                wait = wait.saturating_mul(1 << outstanding.renumbered.min(3));
            }
        } else if outstanding.all_was_there {
            // Some implementations never evaluate a request again that is retransmitted with the
            // same number, so use a new number.
            outstanding.senseless += 1;
            outstanding.renumber |= outstanding.senseless > 1;
        }
        outstanding.deadline = Some(now.saturating_add(wait));
        self.pending_control.clear(ControlTask::ReConfig);
    }

    /// Completes a request with its outcome.
    fn settle(
        &mut self,
        now: Nanos,
        path: Path,
        request: Request,
        outcome: ReconfigOutcome,
        answered: ResponseSent,
        discards: &mut DiscardCounts,
    ) {
        let performed = outcome == ReconfigOutcome::Performed;
        match request.asked {
            RequestKind::Outgoing {
                streams, answers, ..
            } => {
                if let Some(reconfig) = self.reconfiguration_mut() {
                    reconfig.settled(&streams);
                }
                self.sender().resume(streams.some(), performed);
                self.tell_streams_reset(StreamDirection::Outgoing, &streams, outcome);
                if let Some(number) = answers
                    && let Some(reconfig) = self.reconfiguration_mut()
                {
                    let result = answered.result;
                    reconfig.responses.note(ResponseSent {
                        number,
                        result,
                        next_tsns: None,
                    });
                }
            }
            // The peer's own Outgoing SSN Reset or Add Outgoing Streams request performs the
            // change.
            RequestKind::Incoming(_) | RequestKind::AddIncoming(_) if performed => {}
            RequestKind::Incoming(streams) => {
                self.tell_streams_reset(StreamDirection::Incoming, &streams, outcome);
            }
            RequestKind::AddIncoming(_) => self.tell_streams_added(outcome),
            RequestKind::AddOutgoing(count) => {
                if answered.result == ReConfigResult::Performed {
                    self.outbound_streams = self.outbound_streams.saturating_add(count);
                    let outbound = self.outbound_streams;
                    self.sender().set_streams(outbound);
                }
                self.tell_streams_added(outcome);
            }
            RequestKind::Association => match (answered.result, answered.next_tsns) {
                (ReConfigResult::Performed, Some((peers, ours))) => {
                    self.begin_all_anew(now, path, peers, ours, discards);
                }
                (ReConfigResult::Performed, None) => {
                    self.refuse_protocol("an SSN/TSN reset without TSNs");
                }
                _ => {
                    self.sender().resume(None, false);
                    let denied = if performed {
                        ReconfigOutcome::Denied
                    } else {
                        outcome
                    };
                    self.tell_association_reset(denied);
                }
            },
        }
    }

    /// Performs an association reset: the next TSN of the peer is `peers`, and that of this side is
    /// `ours` (RFC 6525 §5.2.7). Deferred data with earlier TSNs is processed first, because it was
    /// sent before the reset.
    fn begin_all_anew(
        &mut self,
        now: Nanos,
        path: Path,
        peers: Tsn,
        ours: Tsn,
        discards: &mut DiscardCounts,
    ) {
        let Some(reconfig) = self.reconfiguration_mut() else {
            return;
        };
        let before = reconfig.held.take_before(peers);
        self.take_data_again(now, path, before, discards);
        self.restart_numbers(now, peers, ours);
        // This reset also completes an association reset requested by the peer.
        self.no_longer_quiet();
    }

    /// Sets the next TSNs of the peer (`peers`) and of this side (`ours`), and resets the sequence
    /// numbers of all streams to 0.
    pub(super) fn restart_numbers(&mut self, now: Nanos, peers: Tsn, ours: Tsn) {
        let Some(rx) = &mut self.rx else {
            return;
        };
        rx.note_events(self.events.count());
        let aborted = rx.restart_tsns(now, peers, &mut self.trace);
        self.events.extend(aborted.into_iter().map(|it| it.told()));
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        tx.restart_tsns(ours, &mut self.paths);
        tx.resume(None, true);
        if let Some(marks) = &mut self.marks {
            **marks = Default::default();
        }
        let remote_tsn = peers;
        self.events.push_back(Event::AssociationReset {
            local_tsn: ours,
            remote_tsn,
            outcome: ReconfigOutcome::Performed,
        });
    }

    /// Handles an outgoing reset request of the peer that is the response to request `number` of
    /// this side (RFC 6525 §5.2.2 E1).
    pub(super) fn on_implicit_response(&mut self, now: Nanos, number: u32) {
        let Some(outstanding) = self
            .reconfiguration_mut()
            .and_then(|it| it.outstanding.as_mut())
        else {
            return;
        };
        let sent = outstanding.deadline.is_some();
        let sent_over = outstanding.path;
        let asked =
            |it: &&mut Request| it.number == number && matches!(it.asked, RequestKind::Incoming(_));
        let mut open = outstanding
            .requests
            .iter_mut()
            .filter(|it| sent && !it.settled);
        if let Some(request) = open.find(asked) {
            request.settled = true;
            self.heard_answer(now, sent_over);
            self.end_flight();
        }
    }
}
