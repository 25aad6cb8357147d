//! Stream reconfiguration of an association: the user's requests, and the outstanding request (RFC
//! 6525 §5.1, [`crate::reconfig`]).

mod incoming_request;
mod response;

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;
use anabranch_wire::Encode;
use anabranch_wire::extension::ReConfig;
use anabranch_wire::packet::{CHUNK_HEADER, COMMON_HEADER, PacketBuilder};
use anabranch_wire::tlv::TlvList;

use super::{Association, ControlTask};
use crate::event::Event;
use crate::path::PathId;
use crate::reconfig::{
    OutstandingRequests, ReconfigError, ReconfigOutcome, ReconfigState, Reconfiguration, Request,
    RequestKind, ResetBatch, StreamDirection, Streams,
};
use crate::state::{State, Tcb};

/// Minimum time between two association resets requested by one side (RFC 6525 §5.1.4).
const BETWEEN_RESETS: Nanos = 30 * SECOND;
/// Length in bytes of an Outgoing SSN Reset Request without streams, the longest of all requests.
const OUTGOING_HEADER: usize = 16;
/// Length in bytes of an Incoming SSN Reset Request without streams.
const INCOMING_HEADER: usize = 8;

impl Association {
    /// Whether streams can be reset and added: both ends offered RE-CONFIG (RFC 6525), this side
    /// because of the setting [`Config::reconfiguration`](crate::Config::reconfiguration).
    pub(crate) fn is_reconfigurable(&self) -> bool {
        self.reconfiguration().is_some()
    }

    /// Requests a change of the streams. [`Event`] reports its outcome.
    ///
    /// # Errors
    /// See [`ReconfigError`]. After an error no request was made.
    pub fn reconfigure(
        &mut self,
        now: Nanos,
        change: &Reconfiguration,
    ) -> Result<(), ReconfigError> {
        match change {
            Reconfiguration::ResetStreams { direction, streams } => match direction {
                StreamDirection::Outgoing => self.request_outgoing_reset(streams),
                StreamDirection::Incoming => self.request_incoming_reset(streams),
            },
            Reconfiguration::ResetAssociation => self.reset_association(now),
            Reconfiguration::AddStreams { outbound, inbound } => {
                self.add_streams(*outbound, *inbound)
            }
        }
    }

    /// Requests an outgoing reset of `streams`; an empty list means all.
    fn request_outgoing_reset(&mut self, streams: &[u16]) -> Result<(), ReconfigError> {
        let there_are = self.outbound_streams;
        let streams = self.requested_streams(streams, there_are)?;
        if self.reconfiguring()?.resets_any(&streams) {
            return Err(ReconfigError::AlreadyInProgress);
        }
        let most = self.most_listed(OUTGOING_HEADER);
        for streams in streams.split(most) {
            self.hold_for(streams, None);
        }
        self.advance_reconfiguration();
        Ok(())
    }

    /// Requests that the peer resets `streams`; an empty list means all streams.
    fn request_incoming_reset(&mut self, streams: &[u16]) -> Result<(), ReconfigError> {
        let streams = self.requested_streams(streams, self.inbound_streams)?;
        let most = self.most_listed(INCOMING_HEADER);
        let reconfig = self.reconfiguring()?;
        if reconfig.resets_all() || reconfig.asks_any(&streams) {
            return Err(ReconfigError::AlreadyInProgress);
        }
        reconfig.pending.incoming.extend(streams.split(most));
        self.advance_reconfiguration();
        Ok(())
    }

    /// Requests a reset of all TSNs and stream sequence numbers of both sides.
    fn reset_association(&mut self, now: Nanos) -> Result<(), ReconfigError> {
        let reconfig = self.reconfiguring()?;
        if reconfig.resets_any(&Streams::all()) {
            return Err(ReconfigError::AlreadyInProgress);
        }
        let at = reconfig.reset_at;
        if at.is_some_and(|at| now < at.saturating_add(BETWEEN_RESETS)) {
            return Err(ReconfigError::TooSoon);
        }
        reconfig.pending.association = true;
        self.sender().hold(None);
        self.advance_reconfiguration();
        Ok(())
    }

    /// Requests additional streams.
    fn add_streams(&mut self, outbound: u16, inbound: u16) -> Result<(), ReconfigError> {
        let there_are = [self.outbound_streams, self.inbound_streams];
        let reconfig = self.reconfiguring()?;
        let (flying_out, flying_in) = reconfig.adding();
        let pending = &mut reconfig.pending;
        let sum = |there_are: u16, wished: u16, flying: u16, asked: u16| {
            let streams = there_are.saturating_add(wished).saturating_add(flying);
            let sum = streams.checked_add(asked).map(|_| wished + asked);
            sum.ok_or(ReconfigError::TooManyStreams { asked, streams })
        };
        let outgoing = sum(there_are[0], pending.add_outgoing, flying_out, outbound)?;
        let incoming = sum(there_are[1], pending.add_incoming, flying_in, inbound)?;
        (pending.add_outgoing, pending.add_incoming) = (outgoing, incoming);
        // Accept these additional inbound streams when the peer adds them.
        let wanted = there_are[1]
            .saturating_add(incoming)
            .saturating_add(flying_in);
        reconfig.most_inbound = reconfig.most_inbound.max(wanted);
        self.advance_reconfiguration();
        Ok(())
    }

    /// Streams of a request; `there_are` is the number of existing streams.
    fn requested_streams(&self, streams: &[u16], there_are: u16) -> Result<Streams, ReconfigError> {
        let wished = Streams::of(streams.iter().copied());
        if let Some(stream) = wished.highest().filter(|&it| it >= there_are) {
            let streams = there_are;
            return Err(ReconfigError::NoSuchStream { stream, streams });
        }
        // If all streams are listed, the request is sent without a list (RFC 6525 §5.1.2 A4).
        let all = wished.listed() == usize::from(there_are);
        Ok(if all { Streams::all() } else { wished })
    }

    /// Reconfiguration state, if requests can be made now.
    fn reconfiguring(&mut self) -> Result<&mut ReconfigState, ReconfigError> {
        if !self.is_established() {
            return Err(ReconfigError::NotEstablished);
        }
        let reconfig = self.reconfiguration_mut();
        reconfig.ok_or(ReconfigError::NotNegotiated)
    }

    #[inline]
    pub(super) fn reconfiguration(&self) -> Option<&ReconfigState> {
        match &self.state {
            State::Active(Tcb { reconfig, .. }) => reconfig.as_deref(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn reconfiguration_mut(&mut self) -> Option<&mut ReconfigState> {
        match &mut self.state {
            State::Active(Tcb { reconfig, .. }) => reconfig.as_deref_mut(),
            _ => None,
        }
    }

    /// Number of streams that a request with a header of `header` bytes can list so that it fits
    /// into a packet on every path.
    fn most_listed(&self, header: usize) -> usize {
        let packets = self.paths.iter().map(|(_, entry)| entry.max_packet);
        let packet = packets.min().unwrap_or_default();
        packet.saturating_sub(COMMON_HEADER + CHUNK_HEADER + header) / 4 * 2
    }

    /// Defers new messages on `streams` until the reset of these streams is performed.
    fn hold_for(&mut self, streams: Streams, answers: Option<u32>) {
        self.sender().hold(streams.some());
        if let Some(reconfig) = self.reconfiguration_mut() {
            reconfig.request_reset(streams, answers);
        }
    }

    /// Sends the next queued request, if none is outstanding and all earlier data was acknowledged.
    pub(super) fn advance_reconfiguration(&mut self) {
        if !self.is_established() {
            return;
        }
        let (outgoing, incoming) = (
            self.most_listed(OUTGOING_HEADER),
            self.most_listed(INCOMING_HEADER),
        );
        let State::Active(known) = &mut self.state else {
            return;
        };
        let Some(reconfig) = known.reconfig.as_deref_mut() else {
            return;
        };
        if reconfig.outstanding.is_some() || reconfig.pending.are_none() {
            return;
        }
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        let is_ready = |batch: &mut ResetBatch| {
            if batch.barrier.is_none() {
                batch.barrier = tx.through(batch.streams.some(), &mut batch.through);
            }
            batch.barrier.is_some_and(|last| tx.has_acknowledged(last))
        };
        let most = [outgoing, incoming];
        let asked = reconfig.next_asked(most, tx.is_quiet(), tx.send_progress(), is_ready);
        if asked.is_empty() {
            return;
        }
        if matches!(asked[..], [RequestKind::Association]) {
            tx.expect_strange_sacks();
        }
        let requests = asked
            .into_iter()
            .map(|asked| Request::new(reconfig.number(), asked));
        let requests = requests.collect();
        reconfig.outstanding = Some(OutstandingRequests::new(
            requests,
            self.paths.choose_for_new_data(),
        ));
        self.pending_control.set(ControlTask::ReConfig);
    }

    /// Destination of a RE-CONFIG with requests that is due.
    pub(super) fn request_destination(&self) -> Option<PathId> {
        if !self.pending_control.has(ControlTask::ReConfig)
            || !self.state.sends_data()
            || self.is_held()
        {
            return None;
        }
        let outstanding = self.reconfiguration()?.outstanding.as_ref()?;
        Some(self.paths.verified(outstanding.path))
    }

    /// Adds the RE-CONFIG that is due to a packet for `path`, before any DATA.
    #[inline(never)]
    pub(super) fn push_request(
        &mut self,
        now: Nanos,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) {
        if self.request_destination() != Some(path) {
            return;
        }
        let rto = self.paths.get(path).rto.rto();
        let State::Active(known) = &mut self.state else {
            return;
        };
        let Some(reconfig) = known.reconfig.as_deref_mut() else {
            return;
        };
        let expected = reconfig.responses.expected();
        let Some(outstanding) = &mut reconfig.outstanding else {
            return;
        };
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        let last = outstanding.last_tsn(tx.next_tsn().prev());
        let chunk = ReConfig {
            parameters: TlvList::of(&outstanding.parameters(expected)),
        };
        if packet.is_empty() && chunk.encoded_len() > packet.room() {
            packet.make_room(chunk.encoded_len()); // IP fragments it, because the path MTU has decreased
        }
        if packet.push(&chunk).is_ok() {
            outstanding.sent(now, rto);
            if outstanding.is_of_association() {
                reconfig.reset_at = Some(now);
            }
            outstanding.all_was_there = last.is_some_and(|last| tx.has_acknowledged(last));
            self.control.rare().re_configs += 1;
            self.pending_control.clear(ControlTask::ReConfig);
        }
    }

    /// Expiration time of the Re-configuration Timer (RFC 6525 §5.1.1), or end of the time for
    /// which data is deferred for an association reset of the peer, whichever is earlier.
    #[inline]
    pub(super) fn request_deadline(&self) -> Option<Nanos> {
        let reconfig = self.reconfiguration()?;
        let quiet = reconfig.responses.quieting.map(|it| it.until);
        let timer = self.timer_of(reconfig.outstanding.as_ref());
        timer.into_iter().chain(quiet).min()
    }

    fn timer_of(&self, outstanding: Option<&OutstandingRequests>) -> Option<Nanos> {
        let outstanding = outstanding.filter(|it| !it.due && self.state.sends_data())?;
        outstanding.deadline
    }

    /// Handles the expiration of [`Self::request_deadline`]: stops deferring data, or retransmits
    /// requests. A retransmission counts as an error unless the peer has responded "In progress"
    /// (RFC 6525 §5.1.1, §5.2.7).
    pub(super) fn handle_request_timeout(&mut self, now: Nanos) {
        let Some(reconfig) = self.reconfiguration() else {
            return;
        };
        let is_due = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        let waited = is_due(reconfig.responses.quieting.map(|it| it.until));
        let asks_again = is_due(self.timer_of(reconfig.outstanding.as_ref()));
        if waited {
            self.no_longer_quiet();
        }
        if asks_again {
            self.ask_again(now);
        }
    }

    fn ask_again(&mut self, now: Nanos) {
        let Some(outstanding) = self
            .reconfiguration()
            .and_then(|it| it.outstanding.as_ref())
        else {
            return;
        };
        let (path, in_progress) = (outstanding.path, outstanding.in_progress);
        if !in_progress {
            self.count_path_error(now, path);
            self.count_association_error();
            if self.is_closed() {
                return;
            }
            self.back_off(now, path);
        }
        let next = if in_progress {
            path
        } else {
            self.paths.alternate_to(path)
        };
        let Some(reconfig) = self.reconfiguration_mut() else {
            return;
        };
        reconfig.ask_again(next);
        self.pending_control.set(ControlTask::ReConfig);
    }

    /// Cancels queued requests, because the association is closing.
    pub(super) fn drop_pending_requests(&mut self) {
        let Some(reconfig) = self.reconfiguration_mut() else {
            return;
        };
        let pending = std::mem::take(&mut reconfig.pending);
        self.no_longer_quiet();
        let outcome = ReconfigOutcome::Failed;
        if pending.association {
            self.sender().resume(None, false);
            self.tell_association_reset(outcome);
        }
        for batch in pending.outgoing {
            if let Some(reconfig) = self.reconfiguration_mut() {
                reconfig.settled(&batch.streams);
            }
            self.sender().resume(batch.streams.some(), false);
            self.tell_streams_reset(StreamDirection::Outgoing, &batch.streams, outcome);
        }
        for streams in pending.incoming {
            self.tell_streams_reset(StreamDirection::Incoming, &streams, outcome);
        }
        if pending.add_outgoing > 0 || pending.add_incoming > 0 {
            self.tell_streams_added(outcome);
        }
    }

    fn tell_streams_reset(
        &mut self,
        direction: StreamDirection,
        streams: &Streams,
        outcome: ReconfigOutcome,
    ) {
        let streams = streams.told();
        self.events.push_back(Event::StreamsReset {
            direction,
            streams,
            outcome,
        });
    }

    fn tell_association_reset(&mut self, outcome: ReconfigOutcome) {
        let rx = self.live_rx();
        let remote_tsn = rx.map_or_else(Default::default, |rx| rx.cumulative_tsn().next());
        let local_tsn = self.sender().next_tsn();
        self.events.push_back(Event::AssociationReset {
            local_tsn,
            remote_tsn,
            outcome,
        });
    }

    fn tell_streams_added(&mut self, outcome: ReconfigOutcome) {
        self.events.push_back(Event::StreamsAdded {
            outbound_streams: self.outbound_streams,
            inbound_streams: self.inbound_streams,
            outcome,
        });
    }
}
