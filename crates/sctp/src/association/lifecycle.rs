//! Beginnings, restarts, errors and ends.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::{Nanos, Path, Probe, Trace, time};
use anabranch_wire::cause::Causes;
use anabranch_wire::packet::COMMON_HEADER;
use anabranch_wire::serial::Tsn;

use super::heartbeat::Verifying;
use super::{
    Association, Errand, Errands, LastChunk, MAX_PEER_ERRORS, MAX_REPLIES, Marks, Parting, Reply,
};
use crate::address_changes::AddressChanges;
use crate::authentication::{AuthTerms, Authenticator};
use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::cookie::{Cookie, TieTags};
use crate::discard::{Discard, Discards};
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
use crate::state::{Closed, CookieWait, Known, Peer, Stage, State};
use crate::stats::ControlCounters;
use crate::tx::LazySender;
use crate::zero_checksum::Sums;

/// What the handshake settled about the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) peer: Peer,
    pub(crate) peer_a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) addresses: &'a [IpAddr],
    /// What both ends offered beyond the RFC.
    pub(crate) extensions: Extensions,
    /// What they said of AUTH, where it is among that.
    pub(crate) auth: Option<&'a AuthTerms>,
    /// Their DTLS Key Management Parameters, if the DTLS chunk is used.
    pub(crate) dtls: Option<&'a DtlsTerms>,
}

impl<'a> Terms<'a> {
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

impl Known {
    /// What the handshake has settled; it is up.
    #[inline(always)] // it is made where it stays: nothing here can fail
    fn new(terms: &Terms<'_>) -> Self {
        Self {
            peer: terms.peer,
            extensions: terms.extensions,
            reconfig: None,
            addresses: None,
            stage: Stage::Established,
        }
    }
}

/// The ports of an association.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) remote: u16,
}

impl Association {
    /// One that begins here, with an INIT to the `first` of its paths (RFC 9260 §5.1 A). The user gave those addresses, so
    /// they are confirmed (§5.4, rule 1).
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

    /// One that a peer began and whose cookie came back (RFC 9260 §5.1 D). The caller calls [`Association::establish`] next.
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
        association.adopt(path.local, &Terms::of_cookie(cookie));
        association
    }

    /// One of which nothing is known but where it begins; `seed`: of its generator; `initial_tsn`: what a cookie says, where the peer began.
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
        // What can fail is over, so that all else is made in its block and not moved there.
        let block = Box::new_uninit();
        Box::write(
            block,
            Self {
                auth,
                dtls,
                sums: Sums::new(&config, begins),
                local_port: ports.local,
                remote_port: ports.remote,
                local_tag,
                tie_tags,
                local_initial_tsn,
                outbound_streams: config.outbound_streams,
                inbound_streams: config.inbound_streams,
                state: State::CookieWait(CookieWait::first()),
                // The one address a handshake has proved, or that the user vouches for (RFC 9260 §5.4).
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
                close_by: OptionalNanos::NONE,
                data_path: PathId(0),
                known_primary: PathId(0),
                rsctp: None,
                verifying: Verifying::default(),
                probes_at: 0,
                control: ControlCounters::default(),
                addresses_changed: true,
                marks: None,
                errands: Errands::default(),
                readable_told: false,
                send_defaults: None,
                has_send_policy: SendOptions::of(&config).has_policy(),
                stream_values: LazyBox::default(),
                events: EventQueue::new(config.send_buffer),
                random,
                trace: Trace::default(),
                config,
            },
        )
    }

    /// Takes over what the handshake settled, and is up: the caller sets another stage where it is not. Addresses that were not known yet
    /// are unconfirmed (RFC 9260 §5.4). What was received under the peer's former tag stays readable.
    pub(crate) fn adopt(&mut self, local: IpAddr, terms: &Terms<'_>) {
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
        self.state = State::Known(Known::new(terms));
        if cfg!(test) || self.rx.is_some() || terms.extensions != Extensions::default() {
            self.receive_anew();
        }
        if terms.extensions != Extensions::default() {
            self.extend(terms);
        }
        self.errands = Errands::default();
        if !self.paths.are_to(terms.addresses) {
            self.add_paths(local, terms.addresses);
        }
        // One address that is verified is known.
        let known = self.paths.len() == 1 && self.paths.get(PathId(0)).verified;
        self.addresses_changed |= !known;
        self.marks = terms.extensions.has(&ECN).then(Box::<Marks>::default);
        self.sums.settle(terms.extensions.has(&ZERO_CHECKSUM));
        self.settle_auth(terms.auth);
        self.settle_dtls(terms.dtls);
        self.settle_rsctp(terms.extensions.has(&RSCTP));
    }

    /// The peer takes less than was queued for it.
    #[cold]
    #[inline(never)]
    fn tell_unsent(&mut self, messages: usize) {
        let lost = self.tx.take_not_granted();
        let lost = lost.map(|it| UndeliveredMessage::of(it, UndeliveredCause::NoSuchStream));
        self.events.undelivered(lost, false);
        self.events.push_back(Event::SendFailed { messages });
        self.tell_receipts();
    }

    /// A path to each of the peer's `addresses` that is not known.
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

    /// Both ends speak of more than the RFC does.
    #[cold]
    #[inline(never)]
    fn extend(&mut self, terms: &Terms<'_>) {
        let State::Known(known) = &mut self.state else {
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
            .then(|| Box::new(AddressChanges::new(ours, peers)));
    }

    /// The peer's later INIT won over ours (RFC 9260 §5.2.4, action B).
    pub(crate) fn begin_anew(&mut self, now: Nanos, cookie: &Cookie, local: IpAddr) {
        let shutdown = self.state.shutdown_when_open().copied();
        self.adopt(local, &Terms::of_cookie(cookie));
        self.open(now, shutdown);
        self.prefer(now, cookie.remarks.primary);
    }

    /// Goes on to `stage`, if the peer is known.
    pub(crate) fn set_stage(&mut self, stage: Stage) {
        if let Some(former) = self.state.stage_mut() {
            *former = stage;
        }
    }

    /// Tells the user which messages will not be delivered to their end.
    fn tell_abandoned(&mut self) {
        let opened = self.rx.iter().flat_map(|it| it.opened());
        self.events.extend(opened.map(Abandoned::told));
    }

    /// The handshake is done: enters ESTABLISHED, or SHUTDOWN-PENDING if the user asked to close meanwhile.
    pub(crate) fn establish(&mut self, now: Nanos) {
        let shutdown = self.state.shutdown_when_open().copied();
        self.open(now, shutdown);
    }

    /// As [`Self::establish`], of one that a peer began and that has just come to be.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.open(now, None);
    }

    /// `shutdown`: whether the user asked to close, where this side began.
    fn open(&mut self, now: Nanos, shutdown: Option<bool>) {
        self.set_stage(Stage::Established);
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
            self.finish_data(now, Stage::ShutdownPending);
            self.advance_shutdown(now);
        }
    }

    /// The peer lost the association and set it up anew (RFC 9260 §5.2.4.1, action A): all begins again but the user's
    /// hold on it, and the wish to close it.
    ///
    /// `own` are the addresses that the peer was told of, if there are several.
    pub(crate) fn restart(&mut self, now: Nanos, cookie: &Cookie, local: IpAddr, own: &[IpAddr]) {
        self.give_up_address_changes();
        self.take_addresses(own);
        let data_lost = !self.tx.is_drained();
        let closing = matches!(
            self.state.stage(),
            Some(Stage::ShutdownPending | Stage::ShutdownSent(_))
        );
        self.local_tag = cookie.local_tag;
        self.local_initial_tsn = cookie.local_initial_tsn;
        self.tie_tags = self.random.draw(TieTags::draw);
        let source = self.paths.find(cookie.path.remote);
        let first = self.paths.get(source.unwrap_or(self.paths.primary())).path;
        // Who has shown that it has an address that nobody had verified need not be the one who spoke before.
        let terms = Terms::of_cookie(cookie);
        if !source.is_some_and(|source| self.paths.get(source).verified) {
            self.tell_abandoned();
            self.rx = None;
        }
        // Congestion state and MTU of every path begin again, and so do its errors.
        let former = Paths::new(&self.config, first, PathState::Active);
        let former = std::mem::replace(&mut self.paths, former);
        self.data_path = PathId(0);
        self.known_primary = PathId(0);
        if data_lost {
            self.tell_undelivered(UndeliveredCause::Restarted);
        }
        self.tx = self.new_sender();
        if self.events.reports_sent() {
            self.sender().report_sent();
        }
        self.sums = Sums::new(&self.config, false);
        self.adopt(local, &terms);
        self.paths.set_as(&former);
        self.sack_path = PathId(0);
        self.replies = LazyBox::default();
        self.readable_told = false;
        self.error_count = 0;
        self.events.push_back(Event::Restarted { data_lost });
        if self.dtls.is_some() {
            self.start_keys(now);
        }
        self.tell_adaptation();
        self.prefer(now, cookie.remarks.primary);
        self.start_heartbeats(now);
        if closing {
            self.finish_data(now, Stage::ShutdownPending);
            self.advance_shutdown(now);
        }
    }

    /// Ends it. Messages received stay readable; all else is let go.
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
        self.errands = Errands::default();
        self.state = State::Closed(Box::new(Closed {
            reason,
            peers_reason: None,
            peer_tag: self.state.peer_tag(),
            sent: self.tx.statistics(),
        }));
        self.tx = LazySender::default();
    }

    /// Puts an answer in the queue, if there is room and the tag to answer with is known. One packet draws answers for one
    /// packet at most (RFC 5062 §8.3, §10.3).
    pub(crate) fn reply(&mut self, reply: Reply, discards: &mut Discards) {
        if self.state.peer_tag().is_none() {
            return discards.count(Discard::Unexpected);
        }
        // Nothing but an answer to an ASCONF goes meanwhile: what else waited would be of another time.
        if self.is_mute() && !matches!(reply, Reply::AsconfAck { .. }) {
            return discards.count(Discard::Overload);
        }
        let whole = self.paths.get(reply.to()).max_packet - COMMON_HEADER;
        let room = self.reply_room.map_or(whole, usize::from);
        match room.checked_sub(reply.len()) {
            Some(left) if self.replies.len() < MAX_REPLIES => {
                self.reply_room = Some(u16::try_from(left).unwrap_or(u16::MAX));
                self.replies.make().push_back(reply);
            }
            _ => discards.count(Discard::Overload),
        }
    }

    /// Whether there is room for a further answer, if it is short: what needs one need not be looked at else.
    pub(crate) fn may_reply(&self) -> bool {
        self.replies.len() < MAX_REPLIES
    }

    /// Tells the user of an error that the peer reported, unless many wait already.
    pub(crate) fn report_peer_error(&mut self, cause: u16) {
        let waiting = self
            .events
            .iter()
            .filter(|event| matches!(event, Event::PeerError { .. }))
            .count();
        if waiting < MAX_PEER_ERRORS {
            self.events.push_back(Event::PeerError { cause });
        }
    }

    /// An error on `path` (RFC 9260 §8.2).
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

    /// The path became potentially failed or inactive: the first is probed at once (RFC 7829 §3), the other where the
    /// profile says so.
    fn on_path_worse(&mut self, path: PathId) {
        if self.state.probes_paths() {
            self.probe_again(path);
        }
    }

    /// A retransmission that was not answered (RFC 9260 §8.1). May close the association, with an ABORT (§9.1): a peer that
    /// lives and merely cannot be heard learns of it at once.
    pub(crate) fn count_association_error(&mut self) {
        self.error_count += 1;
        if self.error_count > self.config.association_max_retrans {
            self.fail(CloseReason::PeerUnreachable);
        }
    }

    /// The peer does not answer: closes, with an ABORT if its tag is known.
    pub(crate) fn fail(&mut self, reason: CloseReason) {
        let tag = self.state.peer_tag();
        self.parting =
            tag.map(|peer_tag| Parting::new(peer_tag, LastChunk::Abort(Causes::empty())));
        self.close(reason);
    }

    /// The path answered: no errors any more, and active (RFC 9260 §8.2, §8.3).
    pub(crate) fn revive_path(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get_mut(path);
        let confirmed = entry.state == PathState::Unconfirmed;
        // The endpoint learns that the address has an owner.
        self.addresses_changed |= !entry.verified;
        entry.verified = true;
        self.errands.clear(Errand::Stranded);
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

    /// Whether `path` is active, or no path is: where errors of active paths alone count for the association, those of
    /// the last resort do, too, lest it outlive its peer.
    pub(crate) fn is_active_or_none_is(&self, path: PathId) -> bool {
        let active = |state| state == PathState::Active;
        active(self.paths.get(path).state) || !self.paths.iter().any(|(_, it)| active(it.state))
    }

    /// Another association's peer has shown that `address` is its own: the path there is given up. A path that is verified
    /// stays.
    pub(crate) fn disown(&mut self, address: IpAddr) {
        if let Some(path) = self.paths.disown(address) {
            self.leave_path(path);
        }
    }

    /// As [`Self::disown`], where the peer has shown it here as well, but later.
    #[cold]
    pub(crate) fn lose(&mut self, address: IpAddr) {
        if let Some(path) = self.paths.lose(address) {
            self.leave_path(path);
        }
    }

    /// A path is out of use.
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

    /// The peer has these addresses and no other. Whoever called it at others learns that from the addresses, once it is up.
    pub(crate) fn keep_only(&mut self, addresses: &[IpAddr]) {
        if !self.paths.are_to(addresses) && !self.paths.keep_only(addresses).is_empty() {
            self.known_primary = self.paths.primary();
            self.addresses_changed = true;
        }
    }

    /// The timeout of `path` doubles (RFC 9260 §6.3.3 E2).
    pub(crate) fn back_off(&mut self, now: Nanos, path: PathId) {
        let rto = &mut self.paths.get_mut(path).rto;
        rto.back_off();
        self.trace
            .record(now, Probe::Rto, path.0.into(), time::seconds(rto.rto()));
    }

    /// Every path's number.
    pub(crate) fn path_ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.paths.len() as u8).map(PathId)
    }

    /// Tells of the addresses that the user gave beside the primary, which are confirmed by that (RFC 9260 §5.4, rule 1), where the peer has named
    /// them, too. The other end knows one address by the handshake, its primary.
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

    /// Tells the user the state of `path`.
    pub(crate) fn tell_path(&mut self, path: PathId) {
        let entry = self.paths.get(path);
        self.events.push_back(Event::PathChanged {
            path,
            address: entry.path.remote,
            state: entry.state,
        });
    }
}
