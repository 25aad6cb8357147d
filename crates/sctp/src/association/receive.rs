//! Processing of received packets: verification of the tag, then processing of each chunk.

use anabranch_transport::{Nanos, Path};
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{Abort, Chunk, HeartbeatCopy, InitAck, Sack, kind};
use anabranch_wire::packet::{Chunks, CommonHeader, Frame};
use anabranch_wire::parameter;
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::U16List;
use bytes::Bytes;

use super::{Association, NegotiatedParameters, Reply};
use crate::address::MAX_PEER_ADDRESSES;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::dtls_chunk::Mismatch;
use crate::event::{CloseReason, Event, Violation};
use crate::extensions::Extensions;
use crate::handshake::{Offer, OfferError};
use crate::lazy_box::LazyBox;
use crate::rx::Receiver;
use crate::state::{
    ControlRetransmission, CookieEchoed, CookieWait, EstablishedState, Peer, State,
};
use crate::tx::SackOutcome;

/// The T bit of ABORT and SHUTDOWN COMPLETE (RFC 9260 §8.5.1).
const TAG_REFLECTED: u8 = 0x01;
/// Time in milliseconds by which the requested increase of the cookie lifespan may exceed the
/// measured RTT: the maximum that RFC 9260 §5.2.6 recommends.
const LONGER_LIFE_MS: u64 = 1_000;

/// Maximum number of chunks other than user data that are processed per packet. Legitimate packets
/// contain only a few such chunks, and each costs at least a thousand instructions.
const MAX_CONTROL_CHUNKS: usize = 16;

/// Result of the checks of a packet's verification tag and first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    Refused(DiscardReason),
    /// Handled as if there were no association (RFC 9260 §8.5.1 E).
    OutOfTheBlue,
}

impl Admission {
    /// Whether the packet contains the association's verification tag.
    pub(crate) fn is_its_own(self) -> bool {
        matches!(
            self,
            Admission::Admitted | Admission::Refused(DiscardReason::Unprotected)
        )
    }
}

impl Association {
    /// Checks the tag and first chunk of a packet (RFC 9260 §8.5, exceptions B, C and E).
    pub(crate) fn admits(&self, header: CommonHeader, first: Frame<'_>) -> Admission {
        match self.admits_tag(header.verification_tag, first) {
            Admission::Admitted if self.dtls.is_some() && self.refuses_unprotected(first.kind) => {
                Admission::Refused(DiscardReason::Unprotected)
            }
            admission => admission,
        }
    }

    #[inline(always)]
    fn admits_tag(&self, tag: u32, first: Frame<'_>) -> Admission {
        match first.kind {
            kind::ABORT | kind::SHUTDOWN_COMPLETE => {
                let ours = tag == self.local_tag && first.flags & TAG_REFLECTED == 0;
                let reflected =
                    self.state.peer_tag() == Some(tag) && first.flags & TAG_REFLECTED != 0;
                if ours || reflected {
                    Admission::Admitted
                } else {
                    Admission::Refused(DiscardReason::BadTagAbort)
                }
            }
            kind::SHUTDOWN_ACK if self.state.is_being_set_up() => Admission::OutOfTheBlue,
            _ if tag == self.local_tag => Admission::Admitted,
            _ if tag == 0 => Admission::Refused(DiscardReason::ZeroTag),
            _ => Admission::Refused(DiscardReason::VerificationTag),
        }
    }

    /// Processes the chunks `first` and `rest` of a packet of `path`, after [`Self::admits`].
    /// `behind`: other chunks of the packet were processed before `first`.
    pub(crate) fn handle_chunks(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'_>,
        rest: Chunks<'_>,
        behind: bool,
        discards: &mut DiscardCounts,
    ) {
        if self.dtls.is_some() {
            return self.take_protected(now, path, first, rest, behind, discards);
        }
        if self.auth.is_some() {
            return self.take_admitted(now, path, first, rest, behind, discards);
        }
        self.take_chunks(now, path, first, rest, behind, discards);
    }

    /// Like [`Self::handle_chunks`], for associations that may require authentication of chunks.
    #[cold]
    #[inline(never)]
    fn take_admitted(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'_>,
        rest: Chunks<'_>,
        behind: bool,
        discards: &mut DiscardCounts,
    ) {
        let mut kept = None;
        if let Some((first, rest)) = self.admitted(path, first, rest, &mut kept, discards) {
            self.take_chunks(now, path, first, rest, behind, discards);
        }
    }

    #[inline(always)]
    pub(super) fn take_chunks(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'_>,
        mut rest: Chunks<'_>,
        mut behind: bool,
        discards: &mut DiscardCounts,
    ) {
        let mut data = false;
        let mut control = 0;
        // Destination of SACKs: set by the first DATA of the packet, and cleared after each chunk
        // that may change the paths.
        let mut from = None;
        let mut frame = first;
        loop {
            if frame.kind == kind::DATA {
                data = true;
                if self.rx.is_none() {
                    self.begin_to_receive(rest.packet_len());
                }
                self.handle_data_chunk(now, path, &mut from, &frame, discards);
            } else {
                if behind && let Some(reason) = misplaced(frame) {
                    discards.count(reason);
                    break;
                }
                from = None;
                control += usize::from(frame.kind != kind::I_DATA);
                if control > MAX_CONTROL_CHUNKS {
                    discards.count(DiscardReason::RateLimited);
                } else if !self.handle_chunk(now, path, frame, discards) {
                    if self.is_closed() {
                        return;
                    }
                    break;
                }
            }
            if self.is_closed() {
                return;
            }
            behind = true;
            match rest.next_frame() {
                None => break,
                Some(Ok(next)) => frame = next,
                Some(Err(_)) => {
                    discards.count(DiscardReason::ChunkLength);
                    break;
                }
            }
        }
        if !self.is_established() {
            self.hear_of_peer(now);
        }
        if (data || self.data_taken) && self.state.receives_data() {
            if let Some(rx) = &mut self.rx {
                rx.on_packet_end(now);
            }
            if !self.is_established() {
                self.repeat_shutdown();
            }
        }
        self.follow_reconfiguration(now, path, discards);
        self.note_data_path(now);
        self.tell_readable();
        self.advance_shutdown(now);
    }

    /// Processes one chunk other than DATA. Returns `false` if the rest of the packet must be
    /// ignored.
    fn handle_chunk(
        &mut self,
        now: Nanos,
        path: Path,
        frame: Frame<'_>,
        discards: &mut DiscardCounts,
    ) -> bool {
        if frame.kind == kind::SACK {
            match Sack::read(&frame) {
                Ok(sack) => {
                    if frame.flags != 0 {
                        self.sender().note_sack_flags(frame.flags);
                    }
                    self.on_sack(now, &sack, discards);
                }
                Err(_) => discards.count(DiscardReason::ChunkFields),
            }
            return true;
        }
        self.forget_probes();
        // COOKIE ACK has no value to parse.
        if frame.kind == kind::COOKIE_ACK {
            self.on_cookie_ack(now, discards);
            return true;
        }
        let chunk = match Chunk::decode(frame.to_raw()) {
            Ok(chunk) => chunk,
            Err(_) => {
                discards.count(DiscardReason::ChunkFields);
                return true;
            }
        };
        match chunk {
            // DATA and SACKs were processed by the caller.
            Chunk::Data(_) | Chunk::Sack(_) => discards.count(DiscardReason::WrongState),
            Chunk::Unknown(raw) => return self.on_extension_chunk(now, path, raw, discards),
            // INIT must be alone in its packet, and is answered by the endpoint (RFC 9260 §6.10,
            // §8.5.1 A).
            Chunk::Init(_) => discards.count(DiscardReason::ForbiddenBundle),
            Chunk::InitAck(ack) => self.on_init_ack(now, path, &ack, discards),
            Chunk::CookieEcho(_) | Chunk::CookieAck => discards.count(DiscardReason::WrongState),
            Chunk::Heartbeat(heartbeat) => {
                self.on_heartbeat(now, path, heartbeat.info, frame.value(), discards);
            }
            Chunk::HeartbeatAck(ack) => self.on_heartbeat_ack(now, ack.info, discards),
            // The ABORT answers an earlier packet from an address that is being removed (RFC 5061
            // §5.3.1).
            Chunk::Abort(_) if self.is_of_the_past(path.local) => {
                discards.count(DiscardReason::BadTagAbort);
            }
            // The ABORT answers an ASCONF from an address unknown to the peer, which did not look
            // up the association by the address parameter of the ASCONF.
            Chunk::Abort(abort) if abort.tag_reflected && self.is_unknown_yet(path.local) => {
                discards.count(DiscardReason::BadTagAbort);
            }
            Chunk::Abort(abort) => self.on_abort(&abort, discards),
            Chunk::Error(error) => self.on_error(now, &error.causes, discards),
            Chunk::Shutdown(shutdown) => {
                let from = self.path_to(path.remote);
                self.on_shutdown(now, from, shutdown.cumulative_tsn_ack, discards)
            }
            Chunk::ShutdownAck => self.on_shutdown_ack(self.path_to(path.remote), discards),
            Chunk::ShutdownComplete(_) => self.on_shutdown_complete(discards),
            Chunk::Ecne(ecne) => self.on_ecne(now, ecne, discards),
            Chunk::Cwr(cwr) => self.on_cwr(cwr, discards),
            Chunk::Pad(_) => {}
        }
        true
    }

    /// Aborts the association because of the protocol violation `what` by the peer (RFC 9260
    /// §3.3.10.13).
    pub(super) fn refuse_protocol(&mut self, what: &'static str) {
        let information = what.as_bytes().into();
        let cause = Cause::ProtocolViolation { information };
        self.refuse(cause, Violation::Protocol(what));
    }

    /// Processes a SACK (RFC 9260 §6.2.1). In COOKIE-ECHOED it can only acknowledge DATA bundled
    /// with the COOKIE ECHO.
    fn on_sack(&mut self, now: Nanos, sack: &Sack<&[u8]>, discards: &mut DiscardCounts) {
        if !self.state.sends_data() {
            return discards.count(DiscardReason::WrongState);
        }
        if std::mem::replace(&mut self.sack_taken, true) {
            return discards.count(DiscardReason::SecondSack);
        }
        let outcome = self
            .tx
            .make(&self.config, self.local_initial_tsn)
            .handle_sack(now, sack, &mut self.paths, &mut self.trace);
        if outcome.protocol_violation {
            discards.count(DiscardReason::BadSack);
            return self.refuse_protocol("acknowledgement of data never sent");
        }
        if outcome.fast_retransmitted > 0 {
            self.look_for_what_is_in_vain(now);
        }
        self.note_acknowledged(now, &outcome);
    }

    /// Processes the cumulative TSN of a SHUTDOWN. A TSN beyond the sent data is ignored, because
    /// some stacks report their own last TSN here.
    pub(crate) fn on_cumulative_ack(
        &mut self,
        now: Nanos,
        cumulative_tsn_ack: Tsn,
        discards: &mut DiscardCounts,
    ) {
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        let outcome =
            tx.handle_shutdown_ack_point(now, cumulative_tsn_ack, &mut self.paths, &mut self.trace);
        if outcome.protocol_violation {
            return discards.count(DiscardReason::BadSack);
        }
        self.note_acknowledged(now, &outcome);
    }

    #[inline(always)]
    pub(super) fn note_acknowledged(&mut self, now: Nanos, outcome: &SackOutcome) {
        if self.tx.has_news() {
            self.tell_stream_limit();
            self.tell_receipts();
        }
        if outcome.cumulative_advanced && (self.drains || !self.is_established()) {
            self.drained_at = now;
        }
        if outcome.alive {
            self.error_count = 0;
        }
        if outcome.paths_restored > 0 {
            self.path_ids()
                .filter(|path| outcome.paths_restored >> path.0 & 1 == 1)
                .for_each(|path| self.tell_path(path));
        }
    }

    /// Reports once that more outbound streams were requested than negotiated.
    pub(crate) fn tell_stream_limit(&mut self) {
        if let Some(outbound_streams) = self.tx.take_stream_limit_met() {
            self.events
                .push_back(Event::StreamLimitMet { outbound_streams });
        }
    }

    /// Processes an INIT ACK (RFC 9260 §5.1 B, §5.2.3).
    fn on_init_ack(&mut self, now: Nanos, path: Path, ack: &InitAck, discards: &mut DiscardCounts) {
        let State::CookieWait(wait) = &self.state else {
            return discards.count(DiscardReason::WrongState);
        };
        let wait = wait.clone();
        let ours = Extensions::of(&self.config);
        let mut offer = Offer::of(ack, path.remote);
        if let Err(error) = offer.read(ack, ours, &self.config) {
            discards.count(DiscardReason::BadInit);
            return self.refuse_offer(ack.initiate_tag, &error);
        }
        let Some(cookie) = offer.cookie.take() else {
            discards.count(DiscardReason::BadInit);
            return self.miss_cookie(offer.initiate_tag);
        };
        self.accept_offer(now, path, &wait, &mut offer, cookie);
    }

    /// Aborts the setup because of an invalid INIT ACK of a peer with tag `tag`.
    #[cold]
    #[inline(never)]
    fn refuse_offer(&mut self, tag: u32, error: &OfferError) {
        let reason = CloseReason::PeerViolation(error.violation());
        match error.cause() {
            Some(cause) => self.abort_under(Some(tag).filter(|&tag| tag != 0), cause, reason),
            None => self.close(reason),
        }
    }

    /// Aborts the setup because the INIT ACK of a peer with tag `tag` has no cookie.
    #[cold]
    #[inline(never)]
    fn miss_cookie(&mut self, tag: u32) {
        let kinds = U16List::of(&[parameter::kind::STATE_COOKIE]);
        self.abort_under(
            Some(tag),
            Cause::MissingMandatoryParameter { kinds },
            CloseReason::PeerViolation(Violation::MissingCookie),
        );
    }

    fn accept_offer(
        &mut self,
        now: Nanos,
        path: Path,
        wait: &CookieWait,
        offer: &mut Offer,
        cookie: Bytes,
    ) {
        let mut extensions = offer.extensions.and(Extensions::in_init(&self.config));
        let random = self.auth.as_ref().filter(|_| !self.config.minimal_init);
        let random = random.map(|auth| auth.random());
        let auth = offer.settle_auth(random.as_ref(), &mut extensions, &self.config);
        let own = self.dtls.as_ref().map(|it| it.own().clone());
        let dtls = match offer.settle_dtls(own, &mut extensions) {
            // A restart with keys requires the DTLS chunk even in loose mode, because the old
            // association is protected.
            Ok(None) if self.restarts_with_keys() => Err(Mismatch::Missing),
            settled => settled,
        };
        let dtls = match dtls {
            Ok(dtls) => dtls,
            Err(mismatch) => {
                return self.refuse_offer(offer.initiate_tag, &OfferError::Dtls(mismatch));
            }
        };
        let terms = NegotiatedParameters {
            peer: Peer {
                tag: offer.initiate_tag,
                initial_tsn: offer.initial_tsn,
                since: now,
                adaptation: offer.remarks.adaptation,
            },
            peer_a_rwnd: offer.a_rwnd,
            outbound_streams: self.config.outbound_streams.min(offer.inbound_streams),
            inbound_streams: self.config.inbound_streams.min(offer.outbound_streams),
            addresses: &offer.addresses,
            extensions,
            auth: auth.as_deref(),
            dtls: dtls.as_deref(),
        };
        let preferred = offer.remarks.primary;
        self.adopt(path.local, &terms);
        // Removes addresses that the user passed to `connect` and the peer does not list, unless
        // the peer's list was truncated (RFC 9260 §5.1.2 A and C).
        if terms.addresses.len() < MAX_PEER_ADDRESSES {
            self.keep_only(terms.addresses);
        }
        self.error_count = 0;
        // Send the COOKIE ECHO to the source of the INIT ACK if that address is verified, because a
        // packet to an unverified address would need a HEARTBEAT (RFC 9260 §5.4).
        let to = self
            .paths
            .find(path.remote)
            .filter(|&from| self.paths.get(from).is_verified())
            .unwrap_or_else(|| self.paths.verified(wait.init.path));
        self.paths.record_answer(now, to, &mut self.trace);
        self.set_stage(EstablishedState::CookieEchoed(Box::new(CookieEchoed {
            echo: ControlRetransmission::new(to),
            cookie,
            unrecognized: std::mem::take(&mut offer.unrecognized),
            stale_cookies: wait.stale_cookies,
            shutdown_when_open: wait.shutdown_when_open,
        })));
        self.prefer(now, preferred);
    }

    /// Processes a COOKIE ACK (RFC 9260 §5.1 E, §5.2.5).
    fn on_cookie_ack(&mut self, now: Nanos, discards: &mut DiscardCounts) {
        match self.state.stage() {
            Some(EstablishedState::CookieEchoed(echoed)) => {
                let path = echoed.echo.path;
                self.paths.record_answer(now, path, &mut self.trace);
                self.establish(now);
            }
            _ => discards.count(DiscardReason::WrongState),
        }
    }

    /// Processes a HEARTBEAT: sends all `parameters` back to their source (RFC 9260 §8.3).
    fn on_heartbeat(
        &mut self,
        now: Nanos,
        path: Path,
        info: Bytes,
        parameters: &[u8],
        discards: &mut DiscardCounts,
    ) {
        match self.paths.find(path.remote) {
            Some(_) if !self.may_reply() => discards.count(DiscardReason::RateLimited),
            Some(to) if matches!(self.state, State::Active(_)) => {
                // Copied so that a queued answer does not keep the received datagram in memory.
                let parameters = match self.answer_info(now, path, info) {
                    Some(answer) => answer,
                    None => Bytes::copy_from_slice(parameters),
                };
                let copy = HeartbeatCopy { parameters };
                self.reply(Reply::HeartbeatAck { to, copy }, discards);
            }
            _ => discards.count(DiscardReason::WrongState),
        }
    }

    /// Processes an ABORT. An ABORT whose causes cannot be parsed is malformed and discarded (RFC
    /// 9260 §3.3.7). The reason given by the peer's user or stack is stored for the local user
    /// (§9.1).
    ///
    /// In SHUTDOWN-ACK-SENT all data of both sides is acknowledged. In this state an ABORT with the
    /// T bit means that the peer has already closed the association and its SHUTDOWN COMPLETE was
    /// lost: a later packet of this side was then out of the blue for the peer (§8.4).
    fn on_abort(&mut self, abort: &Abort, discards: &mut DiscardCounts) {
        let mut first = None;
        let mut said = None;
        for cause in &abort.causes {
            match cause {
                Err(_) => return discards.count(DiscardReason::ChunkFields),
                Ok(cause) => {
                    first = first.or(Some(cause.code()));
                    if let Cause::UserInitiatedAbort { reason: text }
                    | Cause::ProtocolViolation { information: text } = cause
                    {
                        said = said.or(Some(Box::from(&text[..])));
                    }
                }
            }
        }
        let is_complete = matches!(
            self.state.stage(),
            Some(EstablishedState::ShutdownAckSent(_))
        );
        self.close(if abort.tag_reflected && is_complete {
            CloseReason::Shutdown
        } else {
            CloseReason::AbortedByPeer { cause: first }
        });
        if let State::Closed(closed) = &mut self.state {
            closed.peers_reason = said;
        }
    }

    /// Processes an ERROR (RFC 9260 §3.3.10): reports its causes to the user. Only a stale cookie
    /// has a further effect.
    fn on_error(&mut self, now: Nanos, causes: &Causes, discards: &mut DiscardCounts) {
        for cause in causes {
            match cause {
                Ok(Cause::StaleCookie {
                    measure_of_staleness,
                }) => {
                    self.on_stale_cookie(now, measure_of_staleness, discards);
                }
                Ok(cause) => {
                    if let Cause::UnrecognizedChunkType { chunk } = &cause {
                        self.on_unrecognized_chunk(now, chunk);
                    }
                    self.report_peer_error(cause.code());
                }
                Err(_) => return discards.count(DiscardReason::ChunkFields),
            }
        }
    }

    /// Handles a COOKIE ECHO that was too late: restarts the setup and requests a longer cookie
    /// lifespan (RFC 9260 §5.2.6). The RFC sets no limit; here each restart counts as a
    /// retransmission of the INIT.
    fn on_stale_cookie(&mut self, now: Nanos, staleness_us: u32, discards: &mut DiscardCounts) {
        let Some(EstablishedState::CookieEchoed(echoed)) = self.state.stage() else {
            return discards.count(DiscardReason::WrongState);
        };
        let stale_cookies = echoed.stale_cookies + 1;
        if stale_cookies > self.config.max_init_retransmits {
            return self.close(CloseReason::StaleCookie);
        }
        let round_trip_ms = echoed
            .echo
            .sent_once_at
            .map_or(0, |sent| now.saturating_sub(sent))
            / 1_000_000;
        let longer = (u64::from(staleness_us) / 1_000).min(round_trip_ms) + LONGER_LIFE_MS;
        self.state = State::CookieWait(CookieWait {
            init: ControlRetransmission::new(echoed.echo.path),
            cookie_preservative: Some(u32::try_from(longer).unwrap_or(u32::MAX)),
            stale_cookies,
            shutdown_when_open: echoed.shutdown_when_open,
        });
        // The endpoint then assigns a new tag.
        self.addresses_changed = true;
        self.rx = None;
        self.replies = LazyBox::default();
    }

    /// Notifies the user that messages can be read, unless already notified.
    #[inline(always)]
    pub(crate) fn tell_readable(&mut self) {
        let waits = || self.rx.as_deref().is_some_and(Receiver::has_message);
        if !self.readable_notified && waits() {
            self.tell_of_messages();
        }
    }

    /// Like [`Self::tell_readable`], if messages are known to be readable.
    #[inline(always)]
    pub(super) fn tell_of_messages(&mut self) {
        if !(self.readable_notified || self.withholds_events()) {
            self.readable_notified = true;
            self.events.note_news();
        }
    }
}

/// Reason to discard a chunk that is not the first of its packet: a chunk that must not be bundled
/// (RFC 9260 §6.10), or an ABORT with the T bit in a packet with the normal tag (§8.5.1 B).
fn misplaced(frame: Frame<'_>) -> Option<DiscardReason> {
    match frame.kind {
        kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE => {
            Some(DiscardReason::ForbiddenBundle)
        }
        kind::ABORT if frame.flags & TAG_REFLECTED != 0 => Some(DiscardReason::BadTagAbort),
        _ => None,
    }
}
