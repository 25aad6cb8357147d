//! Requests of the peer (RFC 6525 §5.2.1 to §5.2.6).

use anabranch_transport::{Nanos, Path};
use anabranch_wire::Tsn;
use anabranch_wire::extension::{ReConfig, ReConfigParameter, ReConfigResult};
use anabranch_wire::tlv::TlvList;

use super::super::{Association, ControlTask, Reply};
use super::OUTGOING_HEADER;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::reconfig::{
    DeferredReset, QuietPeriod, ReconfigOutcome, RequestClass, ResponseSent, StreamDirection,
    Streams, UserChunk,
};
use crate::state::{EstablishedState, State, Tcb};

/// Distance from the last TSN at which the receiver of an SSN/TSN reset selects the peer's next TSN
/// (RFC 6525 §5.2.4 G1).
const FAR: u32 = 1 << 31;

/// Maximum number of listed streams that wait for a reset, including those of a new request of the
/// peer, unless one request can list more. This limit bounds the memory that a peer can occupy.
const MAX_WAITING: usize = 2_048;

impl Association {
    /// Processes a RE-CONFIG.
    pub(in super::super) fn on_re_config(
        &mut self,
        now: Nanos,
        path: Path,
        chunk: &ReConfig,
        discards: &mut DiscardCounts,
    ) {
        if matches!(
            self.state.stage(),
            None | Some(EstablishedState::CookieEchoed(_))
        ) {
            return discards.count(DiscardReason::WrongState);
        }
        let Ok((first, second)) = chunk.combination() else {
            return discards.count(DiscardReason::BadReConfig);
        };
        let mut responses = Vec::new();
        for parameter in [Some(first), second].into_iter().flatten() {
            if let ReConfigParameter::Response {
                response,
                result,
                next_tsns,
            } = parameter
            {
                let answered = ResponseSent {
                    number: response,
                    result,
                    next_tsns,
                };
                self.on_response(now, path, answered, discards);
            } else if matches!(parameter, ReConfigParameter::Unknown(_)) {
                discards.count(DiscardReason::BadReConfig);
            } else if let Some(answered) = self.on_request(now, path, parameter, discards) {
                responses.push(answered.parameter());
            }
            if self.is_closed() {
                return;
            }
        }
        self.respond(path, &responses, discards);
        self.release_held(now, path, discards);
    }

    fn respond(
        &mut self,
        path: Path,
        responses: &[ReConfigParameter],
        discards: &mut DiscardCounts,
    ) {
        if !responses.is_empty() {
            let to = self.path_to(path.remote);
            let parameters = TlvList::of(responses);
            self.reply(Reply::ReConfig { to, parameters }, discards);
        }
    }

    /// Processes a request; returns the response that must be sent now.
    fn on_request(
        &mut self,
        now: Nanos,
        path: Path,
        parameter: ReConfigParameter,
        discards: &mut DiscardCounts,
    ) -> Option<ResponseSent> {
        let number = match &parameter {
            ReConfigParameter::OutgoingSsnReset { request, .. }
            | ReConfigParameter::IncomingSsnReset { request, .. }
            | ReConfigParameter::SsnTsnReset { request }
            | ReConfigParameter::AddOutgoingStreams { request, .. }
            | ReConfigParameter::AddIncomingStreams { request, .. } => *request,
            _ => return None,
        };
        // If no response can be sent, the request is not performed; the peer will retransmit it.
        if !self.may_reply() {
            discards.count(DiscardReason::RateLimited);
            return None;
        }
        let mut answered = ResponseSent {
            number,
            result: ReConfigResult::BadSequenceNumber,
            next_tsns: None,
        };
        let is_new = match self.reconfiguration()?.responses.judge(number) {
            RequestClass::BadNumber => {
                discards.count(DiscardReason::BadReConfig);
                return Some(answered);
            }
            RequestClass::Again(before) if before.result != ReConfigResult::InProgress => {
                return Some(before);
            }
            RequestClass::Again(_) => false,
            RequestClass::New => true,
        };
        if is_new && !matches!(parameter, ReConfigParameter::SsnTsnReset { .. }) {
            self.no_longer_quiet();
        }
        answered.result = match parameter {
            ReConfigParameter::OutgoingSsnReset {
                response,
                last_tsn,
                streams,
                ..
            } => {
                self.on_implicit_response(now, response);
                let streams = Streams::of(streams.iter());
                self.on_outgoing_reset(now, number, last_tsn, streams, is_new)
            }
            ReConfigParameter::IncomingSsnReset { streams, .. } => {
                let result = self.on_incoming_reset(number, Streams::of(streams.iter()));
                self.note_answer(answered, result.unwrap_or(ReConfigResult::Performed));
                result?
            }
            ReConfigParameter::SsnTsnReset { .. } => {
                let (result, next_tsns) = self.on_ssn_tsn_reset(now, path, discards);
                answered.next_tsns = next_tsns;
                result
            }
            ReConfigParameter::AddOutgoingStreams { count, .. } => self.on_add_outgoing(count),
            ReConfigParameter::AddIncomingStreams { count, .. } => {
                let result = self.on_add_incoming(count);
                self.note_answer(answered, result);
                self.advance_reconfiguration();
                result
            }
            _ => return None,
        };
        self.note_answer(answered, answered.result);
        Some(answered)
    }

    fn note_answer(&mut self, answered: ResponseSent, result: ReConfigResult) {
        if let Some(reconfig) = self.reconfiguration_mut() {
            reconfig.responses.note(ResponseSent { result, ..answered });
        }
    }

    /// Processes an Outgoing SSN Reset (RFC 6525 §5.2.2).
    fn on_outgoing_reset(
        &mut self,
        now: Nanos,
        number: u32,
        last_tsn: Tsn,
        streams: Streams,
        is_new: bool,
    ) -> ReConfigResult {
        if !self.config.accept_stream_resets {
            return ReConfigResult::Denied;
        }
        let (State::Active(Tcb { reconfig, .. }), Some(rx)) = (&mut self.state, &mut self.rx)
        else {
            return ReConfigResult::Denied;
        };
        if streams.highest().is_some_and(|it| it >= rx.streams()) {
            return ReConfigResult::WrongSsn;
        }
        let Some(reconfig) = reconfig.as_deref_mut() else {
            return ReConfigResult::Denied;
        };
        if let Some(deferred) = &reconfig.responses.deferred {
            let another = deferred.streams != streams;
            if is_new && another {
                return ReConfigResult::AlreadyInProgress;
            }
        }
        let deferred = DeferredReset {
            number,
            last_tsn,
            streams,
        };
        if !last_tsn.le(rx.cumulative_tsn()) {
            reconfig.responses.deferred = Some(deferred);
            return ReConfigResult::InProgress;
        }
        reconfig.responses.deferred = None;
        self.perform_incoming(now, &deferred)
    }

    /// Performs the peer's reset of streams, after all data that the peer sent before the reset has
    /// arrived.
    fn perform_incoming(&mut self, now: Nanos, reset: &DeferredReset) -> ReConfigResult {
        let Some(rx) = &mut self.rx else {
            return ReConfigResult::Denied;
        };
        let DeferredReset {
            last_tsn, streams, ..
        } = reset;
        // A message that continues after the reset would mix old and new stream sequence numbers.
        if rx.has_unfinished(*last_tsn, streams.some()) {
            return ReConfigResult::Denied;
        }
        rx.note_events(self.events.count());
        rx.reset_streams(now, streams.some(), &mut self.trace);
        self.tell_streams_reset(
            StreamDirection::Incoming,
            streams,
            ReconfigOutcome::Performed,
        );
        ReConfigResult::Performed
    }

    /// Processes an Incoming SSN Reset (RFC 6525 §5.2.3). Returns `None` if this side's Outgoing
    /// SSN Reset Request is the response. This is possible only if that request can be sent
    /// immediately: with a delay, two sides that send Incoming SSN Reset Requests at the same time
    /// would wait for each other.
    fn on_incoming_reset(&mut self, number: u32, streams: Streams) -> Option<ReConfigResult> {
        let most = self.most_listed(OUTGOING_HEADER);
        if !self.config.accept_stream_resets || !self.is_established() || streams.listed() > most {
            return Some(ReConfigResult::Denied);
        }
        if streams
            .highest()
            .is_some_and(|it| it >= self.outbound_streams)
        {
            return Some(ReConfigResult::WrongSsn);
        }
        let there_are = self.outbound_streams;
        let reconfig = self.reconfiguration()?;
        if reconfig.resets_each(&streams, there_are) {
            return Some(ReConfigResult::NothingToDo);
        }
        let room = MAX_WAITING
            .max(most)
            .checked_sub(reconfig.listed_outgoing());
        let Some(room) = room.filter(|&room| streams.listed() <= room) else {
            return Some(ReConfigResult::AlreadyInProgress);
        };
        if reconfig.resets_any(&streams) {
            let Some(others) = reconfig.others(&streams, there_are, room) else {
                return Some(ReConfigResult::AlreadyInProgress);
            };
            for streams in others.into_iter().flat_map(|it| it.split(most)) {
                self.hold_for(streams, None);
            }
            self.advance_reconfiguration();
            return Some(ReConfigResult::Performed);
        }
        self.hold_for(streams, Some(number));
        self.advance_reconfiguration();
        let reconfig = self.reconfiguration_mut()?;
        if reconfig
            .outstanding
            .as_ref()
            .is_some_and(|it| it.is_answering(number))
        {
            return None;
        }
        reconfig.pending.answer_no_more(number);
        Some(ReConfigResult::Performed)
    }

    /// Processes an SSN/TSN Reset (RFC 6525 §5.2.4). The reset loses no sent data: while data is in
    /// flight the request is refused, and no new data is sent, so that the request can be performed
    /// when the peer repeats it.
    ///
    /// The response to a request number is final. TSNs continue (G2), so the peer cannot
    /// distinguish data sent before the reset from data sent after it. The peer therefore accepts
    /// data until it sends the request, and then no data until the response arrives. If a number
    /// had two responses, first "In progress" and then "Performed", a late "In progress" could make
    /// the peer accept data sent after the reset as data sent before it.
    fn on_ssn_tsn_reset(
        &mut self,
        now: Nanos,
        path: Path,
        discards: &mut DiscardCounts,
    ) -> (ReConfigResult, Option<(Tsn, Tsn)>) {
        if !self.config.accept_association_reset || !self.is_established() {
            return (ReConfigResult::Denied, None);
        }
        let Some(reconfig) = self.reconfiguration_mut() else {
            return (ReConfigResult::Denied, None);
        };
        let asking = match &mut reconfig.outstanding {
            Some(outstanding) if outstanding.is_of_association() => {
                outstanding.crossed = true;
                outstanding.is_unanswered()
            }
            outstanding => outstanding.is_some(),
        };
        if asking || !reconfig.pending.outgoing.is_empty() {
            self.no_longer_quiet();
            return (ReConfigResult::AlreadyInProgress, None);
        }
        let before = reconfig.responses.quieting.take();
        if before.is_none() {
            self.sender().hold(None);
        }
        if !self.sender().is_quiet() {
            let rto = self.paths.get(self.path_to(path.remote)).rto.rto();
            if let Some(reconfig) = self.reconfiguration_mut() {
                reconfig.responses.quieting = Some(QuietPeriod::new(now, rto, before));
            }
            return (ReConfigResult::AlreadyInProgress, None);
        }
        // The reset also completes this side's pending stream resets.
        let Some(reconfig) = self.reconfiguration_mut() else {
            return (ReConfigResult::Denied, None);
        };
        reconfig.responses.deferred = None;
        let ours = reconfig.resets_all();
        if ours {
            reconfig.pending.association = false;
            reconfig.cancel();
            self.pending_control.clear(ControlTask::ReConfig);
        }
        self.release_held(now, path, discards);
        let Some(rx) = self.live_rx() else {
            return (ReConfigResult::Denied, None);
        };
        let peers = rx.cumulative_tsn().next().add(FAR);
        let next = self.sender().next_tsn();
        self.restart_numbers(now, peers, next);
        if ours {
            self.sender().resume(None, false);
        }
        (ReConfigResult::Performed, Some((next, peers)))
    }

    /// Stops deferring data for an association reset that the peer requested.
    pub(super) fn no_longer_quiet(&mut self) {
        if let Some(reconfig) = self.reconfiguration_mut()
            && reconfig.responses.quieting.take().is_some()
        {
            self.sender().resume(None, false);
        }
    }

    /// Processes Add Outgoing Streams (RFC 6525 §5.2.5): the peer wants to send on more streams.
    fn on_add_outgoing(&mut self, count: u16) -> ReConfigResult {
        let (State::Active(Tcb { reconfig, .. }), Some(rx)) = (&mut self.state, &mut self.rx)
        else {
            return ReConfigResult::Denied;
        };
        let most = reconfig.as_deref().map_or(0, |it| it.most_inbound);
        let streams = rx.streams().checked_add(count);
        match streams.filter(|&it| self.config.accept_added_streams && it <= most) {
            None => ReConfigResult::Denied,
            Some(_) if count == 0 => ReConfigResult::NothingToDo,
            Some(streams) => {
                rx.set_streams(streams);
                self.inbound_streams = streams;
                self.tell_streams_added(ReconfigOutcome::Performed);
                ReConfigResult::Performed
            }
        }
    }

    /// Processes Add Incoming Streams (RFC 6525 §5.2.6): the peer wants this side to send on more
    /// streams, so this side requests them.
    fn on_add_incoming(&mut self, count: u16) -> ReConfigResult {
        let there_are = self.outbound_streams;
        let accepted = self.config.accept_added_streams && self.is_established();
        let Some(reconfig) = self.reconfiguration_mut().filter(|_| accepted) else {
            return ReConfigResult::Denied;
        };
        let (flying, _) = reconfig.adding();
        let wished = reconfig.pending.add_outgoing;
        let sum = [wished, flying, count];
        let sum = sum
            .iter()
            .try_fold(there_are, |sum, it| sum.checked_add(*it));
        match sum {
            None => ReConfigResult::Denied,
            Some(_) if count == 0 => ReConfigResult::NothingToDo,
            Some(_) => {
                reconfig.pending.add_outgoing = wished + count;
                ReConfigResult::Performed
            }
        }
    }

    /// After each packet, continues a reset that waited for data, and a request that waited for
    /// acknowledgments.
    #[inline(always)]
    pub(in super::super) fn follow_reconfiguration(
        &mut self,
        now: Nanos,
        path: Path,
        discards: &mut DiscardCounts,
    ) {
        if self.reconfiguration().is_some() {
            self.follow(now, path, discards);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow(&mut self, now: Nanos, path: Path, discards: &mut DiscardCounts) {
        let (State::Active(Tcb { reconfig, .. }), Some(rx)) = (&mut self.state, &mut self.rx)
        else {
            return;
        };
        let Some(reconfig) = reconfig.as_deref_mut() else {
            return;
        };
        let cumulative = rx.cumulative_tsn();
        let deferred = &mut reconfig.responses.deferred;
        if let Some(reset) = deferred.take_if(|it| it.last_tsn.le(cumulative)) {
            let answered = ResponseSent {
                number: reset.number,
                result: self.perform_incoming(now, &reset),
                next_tsns: None,
            };
            self.note_answer(answered, answered.result);
            self.respond(path, &[answered.parameter()], discards);
            self.release_held(now, path, discards);
        }
        self.advance_reconfiguration();
    }

    /// Defers DATA whose numbers are ambiguous until a reset is completed: on streams whose reset
    /// waits for earlier data, and on all streams while it is unknown whether the peer has reset
    /// its TSNs.
    pub(in super::super) fn holds_data(
        &mut self,
        (tsn, stream): (Tsn, u16),
        chunk: impl FnOnce() -> UserChunk,
    ) -> bool {
        match self.reconfiguration_mut() {
            None => false,
            Some(reconfig) => {
                let deferred = reconfig.responses.deferred.as_ref();
                let late = |it: &DeferredReset| tsn.gt(it.last_tsn) && it.streams.contains(stream);
                let holds = reconfig.is_unsure() || deferred.is_some_and(late);
                if holds {
                    reconfig.held.keep(chunk());
                }
                holds
            }
        }
    }

    /// Whether it is unknown if the peer has reset its TSNs. As long as it is unknown, a FORWARD
    /// TSN is ambiguous and therefore discarded; the peer will retransmit it.
    pub(in super::super) fn is_unsure_of_numbers(&self) -> bool {
        self.reconfiguration().is_some_and(|it| it.is_unsure())
    }

    /// Processes deferred DATA that no longer has to wait for a reset.
    pub(super) fn release_held(&mut self, now: Nanos, path: Path, discards: &mut DiscardCounts) {
        if let Some(reconfig) = self.reconfiguration_mut()
            && !reconfig.is_unsure()
            && reconfig.responses.deferred.is_none()
        {
            let held = reconfig.held.take();
            self.take_data_again(now, path, held, discards);
        }
    }

    pub(super) fn take_data_again(
        &mut self,
        now: Nanos,
        path: Path,
        chunks: Vec<UserChunk>,
        discards: &mut DiscardCounts,
    ) {
        let from = self.path_to(path.remote);
        for chunk in chunks {
            if self.is_closed() || !self.state.receives_data() {
                return;
            }
            self.data_taken = true;
            match chunk {
                UserChunk::Data(data) => self.take_data(now, path, &data, discards),
                UserChunk::IData(data) => self.on_i_data(now, path, from, data, discards),
            }
        }
    }
}
