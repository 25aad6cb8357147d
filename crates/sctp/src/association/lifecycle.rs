//! Start, restart, errors and end of an association.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::{Nanos, Path, Probe, Trace, time};
use anabranch_wire::cause::Causes;
use anabranch_wire::packet::COMMON_HEADER;
use anabranch_wire::serial::Tsn;

use super::heartbeat::Verifying;
use super::{
    Association, ControlTask, LastChunk, MAX_PEER_ERRORS, MAX_REPLIES, Marks, Parting,
    PendingControl, Reply,
};
use crate::asconf::AsconfState;
use crate::authentication::{Authenticator, NegotiatedAuth};
use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::cookie::{Cookie, TieTags};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::dtls_chunk::DtlsTerms;
use crate::event::{CloseReason, Event, UndeliveredCause, UndeliveredMessage};
use crate::event_queue::EventQueue;
use crate::extensions::{
    ASCONF, AUTH, DTLS, ECN, Extensions, INTERLEAVING, RE_CONFIG, RSCTP, ZERO_CHECKSUM,
};
use crate::lazy_box::LazyBox;
use crate::path::{PathComponents, PathId, PathState, Paths};
use crate::pr_sctp::SendOptions;
use crate::random::{CompactRandom, Random};
use crate::reconfig::ReconfigState;
use crate::rx::Abandoned;
use crate::state::{Closed, CookieWait, EstablishedState, Peer, State, Tcb};
use crate::stats::ControlCounters;
use crate::tx::LazySender;
use crate::zero_checksum::ChecksumMode;

/// Parameters of the association that were negotiated in the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NegotiatedParameters<'a> {
    pub(crate) peer: Peer,
    pub(crate) peer_a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) addresses: &'a [IpAddr],
    /// Extensions that both ends offered.
    pub(crate) extensions: Extensions,
    /// AUTH parameters of both ends, if AUTH was negotiated.
    pub(crate) auth: Option<&'a NegotiatedAuth>,
    /// DTLS Key Management Parameters, if the DTLS chunk is used.
    pub(crate) dtls: Option<&'a DtlsTerms>,
}

impl<'a> NegotiatedParameters<'a> {
    pub(crate) fn of_cookie(cookie: &'a Cookie) -> Self {
        Self {
            peer: Peer {
                tag: cookie.peer_tag,
                initial_tsn: cookie.peer_initial_tsn,
                since: cookie.created_at,
                adaptation: cookie.remarks.adaptation,
            },
            peer_a_rwnd: cookie.peer_a_rwnd,
            outbound_streams: cookie.outbound_streams,
            inbound_streams: cookie.inbound_streams,
            addresses: &cookie.peer_addresses,
            extensions: cookie.extensions,
            auth: cookie.auth.as_deref(),
            dtls: cookie.dtls.as_deref(),
        }
    }
}

impl Tcb {
    /// State of an association after the handshake, in ESTABLISHED.
    #[inline(always)] // constructed in place, because nothing here can fail
    fn new(terms: &NegotiatedParameters<'_>) -> Self {
        Self {
            peer: terms.peer,
            extensions: terms.extensions,
            reconfig: None,
            addresses: None,
            stage: EstablishedState::Established,
        }
    }
}

/// Ports of an association.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) remote: u16,
}

impl Association {
    /// Outgoing association; INIT goes to `first` of its confirmed paths (RFC 9260 §5.1 A, §5.4).
    pub(crate) fn connecting(
        config: Arc<Config>,
        ports: Ports,
        local_tag: u32,
        first: Path,
        others: &[Path],
        seed: [u8; 32],
    ) -> Box<Self> {
        let mut association = Self::new(config, ports, local_tag, None, first, seed);
        for &path in others {
            let association = &mut *association;
            (association.paths).add(&association.config, path, PathState::Active);
        }
        association
    }

    /// Creates an incoming association (RFC 9260 §5.1 D). [`Association::establish`] must follow.
    pub(crate) fn accepted(
        config: Arc<Config>,
        cookie: &Cookie,
        path: Path,
        seed: [u8; 32],
    ) -> Box<Self> {
        let ports = Ports {
            local: cookie.local_port,
            remote: cookie.remote_port,
        };
        let tsn = Some(cookie.local_initial_tsn);
        let first = Path::new(path.local, cookie.path.remote);
        let mut association = Self::new(config, ports, cookie.local_tag, tsn, first, seed);
        association.adopt(path.local, &NegotiatedParameters::of_cookie(cookie));
        association
    }

    /// Association without peer state. `seed` initializes its random numbers; `initial_tsn` is the
    /// local TSN from a cookie.
    fn new(
        config: Arc<Config>,
        ports: Ports,
        local_tag: u32,
        initial_tsn: Option<Tsn>,
        first: Path,
        seed: [u8; 32],
    ) -> Box<Self> {
        let mut random = Random::new(seed);
        let begins = initial_tsn.is_none();
        let local_initial_tsn = initial_tsn.unwrap_or_else(|| Tsn(random.next_u32()));
        let offers_auth = begins && (AUTH.wanted)(&config);
        let auth = offers_auth.then(|| {
            let keys = config.auth_keys.clone();
            let own = config.auth_offer(random.key());
            Box::new(Authenticator::new(own, keys))
        });
        let offers_dtls = begins && (DTLS.wanted)(&config);
        let dtls = offers_dtls.then(|| Box::new(config.dtls_chunk(random.key(), random.key())));
        let tie_tags = TieTags::draw(&mut random);
        let random = CompactRandom::of(&mut random);
        let equipment = PathComponents::of(&config, first.remote);
        let tx = LazySender::new(&config, local_initial_tsn);
        // Everything that can fail is done, so the association is built in place, not moved.
        let block = Box::new_uninit();
        Box::write(
            block,
            Self {
                auth,
                dtls,
                checksum_mode: ChecksumMode::new(&config, begins),
                local_port: ports.local,
                remote_port: ports.remote,
                local_tag,
                tie_tags,
                local_initial_tsn,
                outbound_streams: config.outbound_streams,
                inbound_streams: config.inbound_streams,
                state: State::CookieWait(CookieWait::first()),
                // The handshake verified the address, or the user gave it (RFC 9260 §5.4).
                paths: Paths::with(&config, first, PathState::Active, equipment),
                tx,
                rx: None,
                sack_path: PathId(0),
                cookie_ack: None,
                replies: LazyBox::default(),
                reply_room: None,
                parting: None,
                error_count: 0,
                sack_taken: false,
                data_taken: false,
                drained_at: 0,
                drains: false,
                close_by: OptionalNanos::NONE,
                active_path: PathId(0),
                known_primary: PathId(0),
                rsctp: None,
                verifying: Verifying::default(),
                probes_at: 0,
                control: ControlCounters::default(),
                addresses_changed: true,
                marks: None,
                pending_control: PendingControl::default(),
                readable_notified: false,
                send_defaults: None,
                slow_send: offers_dtls || SendOptions::of(&config).has_policy(),
                stream_values: LazyBox::default(),
                events: EventQueue::new(config.send_buffer),
                random,
                trace: Trace::default(),
                config,
            },
        )
    }

    /// Applies the parameters of the handshake and enters ESTABLISHED. New addresses are
    /// unconfirmed (RFC 9260 §5.4), and data received earlier stays readable.
    pub(crate) fn adopt(&mut self, local: IpAddr, terms: &NegotiatedParameters<'_>) {
        self.outbound_streams = terms.outbound_streams;
        self.inbound_streams = terms.inbound_streams;
        let messages = self.tx.set_peer(terms.peer_a_rwnd, terms.outbound_streams);
        if messages > 0 {
            self.tell_unsent(messages);
        }
        let interleaving = terms.extensions.has(&INTERLEAVING);
        let gives_up = terms.extensions.give_up();
        let tsn = self.local_initial_tsn;
        self.tx.speak(&self.config, tsn, interleaving, gives_up);
        if self.rx.is_some() {
            self.tell_abandoned();
        }
        self.state = State::Active(Tcb::new(terms));
        if cfg!(test) || self.rx.is_some() || terms.extensions != Extensions::default() {
            self.receive_anew();
        }
        if terms.extensions != Extensions::default() {
            self.extend(terms);
        }
        self.pending_control = PendingControl::default();
        if !self.paths.are_to(terms.addresses) {
            self.add_paths(local, terms.addresses);
        }
        // The endpoint's table is already up to date if the peer's only address is verified.
        let known = self.paths.len() == 1 && self.paths.get(PathId(0)).verified;
        self.addresses_changed |= !known;
        self.marks = terms.extensions.has(&ECN).then(Box::<Marks>::default);
        self.checksum_mode
            .settle(terms.extensions.has(&ZERO_CHECKSUM));
        self.settle_auth(terms.auth);
        self.settle_dtls(terms.dtls);
        self.settle_rsctp(terms.extensions.has(&RSCTP));
    }

    /// Reports queued messages that failed because the peer does not grant their streams.
    #[cold]
    #[inline(never)]
    fn tell_unsent(&mut self, messages: usize) {
        let lost = self.tx.take_not_granted();
        let lost = lost.map(|it| UndeliveredMessage::of(it, UndeliveredCause::NoSuchStream));
        self.events.undelivered(lost, false);
        self.events.push_back(Event::SendFailed { messages });
        self.tell_receipts();
    }

    /// Adds a path for each new address in `addresses`, which the peer listed.
    #[cold]
    #[inline(never)]
    fn add_paths(&mut self, local: IpAddr, addresses: &[IpAddr]) {
        for &remote in addresses {
            if let Some(local) = self.config.local_address_for(remote, Some(local)) {
                let path = Path::new(local, remote);
                self.paths.add(&self.config, path, PathState::Unconfirmed);
            }
        }
    }

    /// Sets up the negotiated extensions.
    #[cold]
    #[inline(never)]
    fn extend(&mut self, terms: &NegotiatedParameters<'_>) {
        let State::Active(known) = &mut self.state else {
            return;
        };
        let [ours, peers] = [self.local_initial_tsn, terms.peer.initial_tsn].map(|it| it.0);
        known.reconfig = terms.extensions.has(&RE_CONFIG).then(|| {
            let most_inbound = self.config.inbound_streams;
            let held = self.config.receive_buffer as usize;
            Box::new(ReconfigState::new(ours, peers, most_inbound, held))
        });
        known.addresses = terms
            .extensions
            .has(&ASCONF)
            .then(|| Box::new(AsconfState::new(ours, peers)));
    }

    /// Establishes the association with new peer parameters from `cookie`, because the INITs of
    /// both ends crossed and the peer's INIT was the later one (RFC 9260 §5.2.4, action B).
    pub(crate) fn begin_anew(&mut self, now: Nanos, cookie: &Cookie, local: IpAddr) {
        let shutdown = self.state.shutdown_when_open().copied();
        self.adopt(local, &NegotiatedParameters::of_cookie(cookie));
        self.open(now, shutdown);
        self.prefer(now, cookie.remarks.primary);
    }

    /// Enters `stage`, if the peer's parameters are known.
    pub(crate) fn set_stage(&mut self, stage: EstablishedState) {
        if let Some(former) = self.state.stage_mut() {
            *former = stage;
        }
    }

    /// Reports partially received messages that will not be completed.
    fn tell_abandoned(&mut self) {
        let opened = self.rx.iter().flat_map(|it| it.opened());
        self.events.extend(opened.map(Abandoned::told));
    }

    /// Enters ESTABLISHED, or SHUTDOWN-PENDING if the user requested a shutdown meanwhile.
    pub(crate) fn establish(&mut self, now: Nanos) {
        let shutdown = self.state.shutdown_when_open().copied();
        self.open(now, shutdown);
    }

    /// Like [`Self::establish`], for a new incoming association.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.open(now, None);
    }

    /// Enters ESTABLISHED. `shutdown`: present if the user has already requested a shutdown.
    fn open(&mut self, now: Nanos, shutdown: Option<bool>) {
        self.set_stage(EstablishedState::Established);
        self.error_count = 0;
        if self.dtls.is_none() || self.start_keys(now) {
            self.events.push_back(Event::Established {
                outbound_streams: self.outbound_streams,
                inbound_streams: self.inbound_streams,
            });
        }
        self.tell_adaptation();
        self.tell_stream_limit();
        if shutdown.is_some() && self.config.profile.confirm_paths_before_data {
            for (_, entry) in self.paths.iter_mut().filter(|(_, entry)| !entry.disowned) {
                entry.state = PathState::Unconfirmed;
            }
        }
        self.tell_confirmed();
        self.start_heartbeats(now);
        if shutdown == Some(true) {
            self.finish_data(now, EstablishedState::ShutdownPending);
            self.advance_shutdown(now);
        }
    }

    /// Restarts the association (RFC 9260 §5.2.4.1, action A): resets everything except the
    /// settings and a requested shutdown. `own`: announced local addresses.
    pub(crate) fn restart(&mut self, now: Nanos, cookie: &Cookie, local: IpAddr, own: &[IpAddr]) {
        self.give_up_address_changes();
        self.take_addresses(own);
        let data_lost = !self.tx.is_drained();
        let closing = matches!(
            self.state.stage(),
            Some(EstablishedState::ShutdownPending | EstablishedState::ShutdownSent(_))
        );
        self.local_tag = cookie.local_tag;
        self.local_initial_tsn = cookie.local_initial_tsn;
        self.tie_tags = self.random.draw(TieTags::draw);
        let source = self.paths.find(cookie.path.remote);
        let first = self.paths.get(source.unwrap_or(self.paths.primary())).path;
        // An unverified address may be another host's, which must not complete old messages.
        let terms = NegotiatedParameters::of_cookie(cookie);
        if !source.is_some_and(|source| self.paths.get(source).verified) {
            self.tell_abandoned();
            self.rx = None;
        }
        // Congestion state, MTU and error counters of all paths are reset.
        let former = Paths::new(&self.config, first, PathState::Active);
        let former = std::mem::replace(&mut self.paths, former);
        self.active_path = PathId(0);
        self.known_primary = PathId(0);
        if data_lost {
            self.tell_undelivered(UndeliveredCause::Restarted);
        }
        self.tx = self.new_sender();
        if self.events.reports_sent() {
            self.sender().report_sent();
        }
        self.checksum_mode = ChecksumMode::new(&self.config, false);
        self.adopt(local, &terms);
        self.paths.set_as(&former);
        self.sack_path = PathId(0);
        self.replies = LazyBox::default();
        self.readable_notified = false;
        self.error_count = 0;
        self.events.push_back(Event::Restarted { data_lost });
        if self.dtls.is_some() {
            self.start_keys(now);
        }
        self.tell_adaptation();
        self.prefer(now, cookie.remarks.primary);
        self.start_heartbeats(now);
        if closing {
            self.finish_data(now, EstablishedState::ShutdownPending);
            self.advance_shutdown(now);
        }
    }

    /// Closes the association. Only received messages and queued events stay readable.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.give_up_address_changes();
        self.tell_given_up();
        if !self.tx.is_drained() {
            self.tell_undelivered(UndeliveredCause::Closed(reason.clone()));
        }
        self.tell_abandoned();
        self.events.push_back(Event::Closed(reason.clone()));
        self.replies = LazyBox::default();
        self.cookie_ack = None;
        self.pending_control = PendingControl::default();
        self.state = State::Closed(Box::new(Closed {
            reason,
            peers_reason: None,
            peer_tag: self.state.peer_tag(),
            sent: self.tx.statistics(),
        }));
        self.tx = LazySender::default();
    }

    /// Queues a reply, if all replies to the current packet fit into one packet (RFC 5062 §8.3).
    pub(crate) fn reply(&mut self, reply: Reply, discards: &mut DiscardCounts) {
        if self.state.peer_tag().is_none() {
            return discards.count(DiscardReason::WrongState);
        }
        // Other replies would be outdated once a source address is available again.
        if self.is_mute() && !matches!(reply, Reply::AsconfAck { .. }) {
            return discards.count(DiscardReason::RateLimited);
        }
        let whole = self.paths.get(reply.to()).max_packet - COMMON_HEADER;
        let room = self.reply_room.map_or(whole, usize::from);
        match room.checked_sub(reply.len()) {
            Some(left) if self.replies.len() < MAX_REPLIES => {
                self.reply_room = Some(u16::try_from(left).unwrap_or(u16::MAX));
                self.replies.make().push_back(reply);
            }
            _ => discards.count(DiscardReason::RateLimited),
        }
    }

    /// Whether another short reply can be queued. If not, a chunk that requires a reply is ignored.
    pub(crate) fn may_reply(&self) -> bool {
        self.replies.len() < MAX_REPLIES
    }

    /// Reports an error that the peer sent, unless `MAX_PEER_ERRORS` such events are queued.
    pub(crate) fn report_peer_error(&mut self, cause: u16) {
        if self.events.peer_errors() < MAX_PEER_ERRORS {
            self.events.push_back(Event::PeerError { cause });
        }
    }

    /// Counts an error on `path` (RFC 9260 §8.2).
    pub(crate) fn count_path_error(&mut self, now: Nanos, path: PathId) {
        self.forget_probes();
        if self
            .paths
            .record_error(now, path, &self.config, &mut self.trace)
        {
            self.tell_path(path);
            self.on_path_worse(path);
        }
    }

    /// Probes a potentially failed path (RFC 7829 §3), or an inactive one if the profile says so.
    fn on_path_worse(&mut self, path: PathId) {
        if self.state.probes_paths() {
            self.probe_again(path);
        }
    }

    /// Counts an unanswered retransmission (RFC 9260 §8.1). Aborts the association if the limit is
    /// exceeded.
    pub(crate) fn count_association_error(&mut self) {
        self.error_count += 1;
        if self.error_count > self.config.association_max_retrans {
            self.fail(CloseReason::PeerUnreachable);
        }
    }

    /// Closes an association whose peer does not answer. Sends an ABORT if the peer's tag is known.
    pub(crate) fn fail(&mut self, reason: CloseReason) {
        let tag = self.state.peer_tag();
        self.parting =
            tag.map(|peer_tag| Parting::new(peer_tag, LastChunk::Abort(Causes::empty())));
        self.close(reason);
    }

    /// Handles an answer on `path`: clears its errors and makes it active (RFC 9260 §8.2, §8.3).
    pub(crate) fn revive_path(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get_mut(path);
        let confirmed = entry.state == PathState::Unconfirmed;
        // The endpoint must update its address table, because the address is now verified.
        self.addresses_changed |= !entry.verified;
        entry.verified = true;
        self.pending_control.clear(ControlTask::NoVerifiedPath);
        let entry = self.paths.get_mut(path);
        if confirmed {
            entry.state = PathState::Active;
            self.trace.record(
                now,
                Probe::PathState,
                path.0.into(),
                PathState::Active.code(),
            );
            self.start_discovery(now, path);
        }
        if self.paths.record_answer(now, path, &mut self.trace) || confirmed {
            self.tell_path(path);
        }
    }

    /// Whether errors of `path` count for the association: it is active, or no path is active.
    pub(crate) fn is_active_or_none_is(&self, path: PathId) -> bool {
        let active = |state| state == PathState::Active;
        active(self.paths.get(path).state) || !self.paths.iter().any(|(_, it)| active(it.state))
    }

    /// Removes the unverified path to `address`, which another association's peer has verified.
    pub(crate) fn disown(&mut self, address: IpAddr) {
        if let Some(path) = self.paths.remove_unverified(address) {
            self.leave_path(path);
        }
    }

    /// Like [`Self::disown`], also for a verified path: another association verified it earlier.
    #[cold]
    pub(crate) fn lose(&mut self, address: IpAddr) {
        if let Some(path) = self.paths.remove(address) {
            self.leave_path(path);
        }
    }

    /// Cleans up after the removal of `path`.
    fn leave_path(&mut self, path: PathId) {
        if self.cookie_ack == Some(path) {
            self.cookie_ack = Some(self.paths.choose_for_new_data());
        }
        (self.replies).change(|it| it.retain(|reply| reply.to() != path));
        self.tell_path(path);
        let primary = self.paths.primary();
        if primary != self.known_primary {
            self.known_primary = primary;
            let address = self.paths.get(primary).path.remote;
            self.events.push_back(Event::PrimaryChanged {
                path: primary,
                address,
            });
        }
    }

    /// Removes paths to all addresses except `addresses`, for example to addresses that the user
    /// passed to `connect` and the peer did not list.
    pub(crate) fn keep_only(&mut self, addresses: &[IpAddr]) {
        if !self.paths.are_to(addresses) && !self.paths.keep_only(addresses).is_empty() {
            self.known_primary = self.paths.primary();
            self.addresses_changed = true;
        }
    }

    /// Doubles the RTO of `path` (RFC 9260 §6.3.3 E2).
    pub(crate) fn back_off(&mut self, now: Nanos, path: PathId) {
        let rto = &mut self.paths.get_mut(path).rto;
        rto.back_off();
        self.trace
            .record(now, Probe::Rto, path.0.into(), time::seconds(rto.rto()));
    }

    /// Numbers of all paths.
    pub(crate) fn path_ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.paths.len() as u8).map(PathId)
    }

    /// Reports as confirmed the secondary addresses both sides listed (RFC 9260 §5.4, rule 1).
    fn tell_confirmed(&mut self) {
        if self.paths.len() == 1 {
            return;
        }
        let primary = self.paths.primary();
        for path in self.path_ids() {
            let entry = self.paths.get(path);
            if path != primary && entry.state == PathState::Active && !entry.disowned {
                self.tell_path(path);
            }
        }
    }

    /// Reports the state of `path` to the user.
    pub(crate) fn tell_path(&mut self, path: PathId) {
        let entry = self.paths.get(path);
        self.events.push_back(Event::PathChanged {
            path,
            address: entry.path.remote,
            state: entry.state,
        });
    }
}
