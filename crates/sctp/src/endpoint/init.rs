//! Processing of INIT: an answer that stores no state (RFC 9260 §5.1 B, §5.2.1, §5.2.2).

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::Path;
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{Abort, Chunk, Init};
use anabranch_wire::packet::{Chunks, RawChunk};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::HEADER;
use bytes::BytesMut;

use super::association_event::Input;
use super::association_view::AssociationView;
use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::association_state::AssociationState;
use crate::authentication::Authentication;
use crate::config::Config;
use crate::cookie::{Cookie, TieTags};
use crate::discard::DiscardReason;
use crate::extensions::{ASCONF, AUTH, DTLS, Extensions};
use crate::handshake::{self, BEFORE_COOKIE, LocalOffer, Offer, OfferError};

/// Answer to an INIT from the peer of an existing association.
enum Collision {
    /// Both ends sent an INIT: the INIT ACK has the same parameters as the own INIT, including the
    /// tag (§5.2.1).
    SameTag(TieTags),
    /// Like `SameTag`, but the INIT came from an address to which this end did not connect. The
    /// INIT ACK is sent to an address in the INIT to which this end did connect.
    SameTagTo(IpAddr),
    /// The peer may have lost its state: the INIT ACK has a new tag, and the cookie contains the
    /// current tags (§5.2.2).
    NewTag(TieTags),
    /// The association is shutting down: the SHUTDOWN ACK is sent again (§9.2).
    ShutdownAck,
    /// The INIT lists addresses that the association does not have.
    NewAddresses(Vec<IpAddr>),
    /// The association uses the given UDP port, but the INIT came from another one. No tag proves
    /// that the sender of the INIT is the peer, so the INIT must not move the association to that
    /// port (draft-tuexen-tsvwg-sctp-udp-encaps-cons §4).
    NewUdpPort(u16),
}

impl Endpoint {
    #[inline(never)]
    pub(super) fn on_init(&mut self, arrival: Arrival, first: RawChunk, mut rest: Chunks<'_>) {
        if arrival.header.verification_tag != 0 {
            return self.on_tagged_init(arrival, rest);
        }
        if rest.next().is_some() {
            return self.discards.count(DiscardReason::ForbiddenBundle);
        }
        let Ok(Chunk::Init(init)) = Chunk::decode(first) else {
            return self.discards.count(DiscardReason::ChunkFields);
        };
        let ours = Extensions::of(&self.config);
        let mut offer = Offer::of(&init, arrival.path.remote);
        let read = offer.read(&init, ours, &self.config);
        let port = arrival.header.source_port;
        let known = offer
            .addresses
            .iter()
            .find_map(|&address| self.live(port, address));
        if let Some(slot) = known
            && let Some(config) = self.settings_of_attempt(slot)
        {
            return self.on_colliding_init(arrival, &init, slot, config);
        }
        if let Err(error) = read {
            return self.refuse_offer(arrival, init.initiate_tag, &error);
        }
        if let Some(other) = self.shard_with(port, &offer.addresses) {
            return self.misrouted(other);
        }
        match known {
            Some(slot) => self.on_further_init(arrival, &mut offer, ours, slot),
            None => self.on_first_init(arrival, &mut offer, ours),
        }
    }

    /// Settings of the association in `slot`, if it is being set up and the endpoint's settings
    /// have changed since the attempt began.
    fn settings_of_attempt(&self, slot: u32) -> Option<Arc<Config>> {
        let association = self.table.get(slot)?;
        let config = association.shared_config();
        let changed = !Arc::ptr_eq(&config, &self.config);
        (changed && association.is_being_set_up()).then_some(config)
    }

    /// Processes an INIT from the peer of the association in `slot`, which was started with the
    /// settings `config`. The INIT ACK has the parameters of the own INIT (RFC 9260 §5.2.1), so
    /// these settings apply to the whole answer.
    #[cold]
    #[inline(never)]
    fn on_colliding_init(&mut self, arrival: Arrival, init: &Init, slot: u32, config: Arc<Config>) {
        let current = std::mem::replace(&mut self.config, config);
        let ours = Extensions::of(&self.config);
        let mut offer = Offer::of(init, arrival.path.remote);
        match offer.read(init, ours, &self.config) {
            Ok(()) => match self.shard_with(arrival.header.source_port, &offer.addresses) {
                Some(other) => self.misrouted(other),
                None => self.on_further_init(arrival, &mut offer, ours, slot),
            },
            Err(error) => self.refuse_offer(arrival, init.initiate_tag, &error),
        }
        self.config = current;
    }

    #[cold]
    #[inline(never)]
    fn refuse_offer(&mut self, arrival: Arrival, tag: u32, error: &OfferError) {
        self.discards.count(error.reason());
        if let Some(cause) = error.cause() {
            self.refuse_init(arrival, tag, &[cause]);
        }
    }

    /// Processes an INIT from the peer of the association in `slot`.
    #[cold]
    #[inline(never)]
    fn on_further_init(
        &mut self,
        arrival: Arrival,
        offer: &mut Offer,
        ours: Extensions,
        slot: u32,
    ) {
        let (collision, own) = match self.table.get(slot) {
            Some(it) => (collision(it, offer, &arrival), Some(it.own())),
            None => match self.table.view(slot) {
                Some(view) => (collision_with_detached(view, offer, &arrival), None),
                None => return,
            },
        };
        match collision {
            Collision::SameTag(tie_tags) => {
                let Some(own) = own else { return };
                self.send_init_ack(arrival, (offer, ours), own, tie_tags);
            }
            Collision::SameTagTo(remote) => {
                let (Some(own), Some(association)) = (own, self.table.get(slot)) else {
                    return;
                };
                let local = self
                    .config
                    .local_address_for(remote, Some(arrival.path.local));
                let arrival = Arrival {
                    path: Path::new(local.unwrap_or(arrival.path.local), remote),
                    udp_port: association.paths().udp_port_to(remote),
                    ..arrival
                };
                self.send_init_ack(arrival, (offer, ours), own, TieTags::NONE);
            }
            Collision::NewTag(tie_tags) => {
                // New parameters, because the peer may have restarted.
                let own = self.draw_own(offer, ours);
                self.send_init_ack(arrival, (offer, ours), own, tie_tags);
            }
            Collision::ShutdownAck => match self.table.get_mut(slot) {
                Some(association) => {
                    association.repeat_control();
                    self.table.touch(slot);
                }
                None => self.forward(slot, Input::RepeatControl),
            },
            Collision::NewAddresses(addresses) => {
                self.discards.count(DiscardReason::RestartNewAddress);
                let addresses: Vec<_> = addresses.into_iter().map(Parameter::address).collect();
                let cause = Cause::RestartWithNewAddresses {
                    addresses: Parameters::of(&addresses),
                };
                self.refuse_init(arrival, offer.initiate_tag, &[cause]);
            }
            Collision::NewUdpPort(current) => {
                self.discards.count(DiscardReason::RestartNewPort);
                let cause = Cause::RestartWithNewUdpPort {
                    current,
                    new: arrival.udp_port,
                };
                self.refuse_init(arrival, offer.initiate_tag, &[cause]);
            }
        }
    }

    fn on_first_init(&mut self, arrival: Arrival, offer: &mut Offer, ours: Extensions) {
        if self.may_begin == 0 {
            self.discards.count(DiscardReason::OutOfTheBlue);
            return self.refuse_init(arrival, offer.initiate_tag, &[]);
        }
        if self.table.len() >= self.max_associations
            && !self.may_have_room_for(arrival.now, arrival.path.remote)
        {
            self.discards.count(DiscardReason::RateLimited);
            return self.refuse_init(arrival, offer.initiate_tag, &[Cause::OutOfResource]);
        }
        let own = self.draw_own(offer, ours);
        self.send_init_ack(arrival, (offer, ours), own, TieTags::NONE);
    }

    /// Refuses an INIT by an ABORT with the INIT's tag (RFC 9260 §8.4, rule 3).
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_init(&mut self, arrival: Arrival, tag: u32, causes: &[Cause]) {
        let abort = Abort {
            tag_reflected: false,
            causes: Causes::of(causes),
        };
        self.answer(arrival, tag, &[&abort]);
    }

    /// Draws the parameters for an INIT ACK. `ours`: extensions that this endpoint offers.
    fn draw_own(&mut self, offer: &Offer, ours: Extensions) -> LocalOffer {
        let both = offer.extensions.and(ours);
        LocalOffer {
            tag: self.draw_tag(),
            initial_tsn: Tsn(self.random.next_u32()),
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.inbound_streams,
            auth_random: (both.has(&AUTH) || both.has(&DTLS)).then(|| self.random.key()),
        }
    }

    /// Sends an INIT ACK to the source of the INIT only (RFC 5062 §2.3). The contents of the cookie
    /// are moved out of `offer`.
    fn send_init_ack(
        &mut self,
        arrival: Arrival,
        (offer, ours): (&mut Offer, Extensions),
        own: LocalOffer,
        tie_tags: TieTags,
    ) {
        let valid_cookie_life = self.config.valid_cookie_life;
        // A peer can at most double the lifespan of its cookie (RFC 9260 §3.3.2.1.3 leaves the
        // limit open).
        let longer = u64::from(offer.cookie_preservative.unwrap_or(0)).saturating_mul(1_000_000);
        let outbound_streams = own.outbound_streams.min(offer.inbound_streams);
        let mut extensions = offer.extensions.and(ours);
        let own_random = own.auth_random.as_ref();
        let auth = offer.settle_auth(own_random, &mut extensions, &self.config);
        let said = own.key_management(&self.config);
        let dtls = match offer.settle_dtls(said, &mut extensions) {
            Ok(dtls) => dtls,
            Err(mismatch) => {
                let error = OfferError::Dtls(mismatch);
                return self.refuse_offer(arrival, offer.initiate_tag, &error);
            }
        };
        let mut cookie = Cookie {
            created_at: arrival.now,
            lifespan: valid_cookie_life.saturating_add(longer.min(valid_cookie_life)),
            local_port: self.port,
            remote_port: arrival.header.source_port,
            local_tag: own.tag,
            peer_tag: offer.initiate_tag,
            tie_tags,
            local_initial_tsn: own.initial_tsn,
            peer_initial_tsn: offer.initial_tsn,
            peer_a_rwnd: offer.a_rwnd,
            outbound_streams,
            inbound_streams: own.inbound_streams.min(offer.outbound_streams),
            path: arrival.path,
            peer_addresses: std::mem::take(&mut offer.addresses),
            extensions,
            auth,
            dtls,
            remarks: offer.remarks,
        };
        let mut own = LocalOffer {
            outbound_streams,
            ..own
        };
        let remote = arrival.path.remote;
        let mut sealed = self
            .jar
            .seal(arrival.now, &cookie, &mut self.random, BEFORE_COOKIE);
        if cookie.auth.is_some() && !self.fits_auth(arrival, &mut cookie, &mut own, &mut sealed) {
            return self.refuse_init(arrival, offer.initiate_tag, &[Cause::OutOfResource]);
        }
        let (config, both) = (&self.config, cookie.extensions);
        if handshake::init_ack_around(config, own, remote, offer, both, &mut sealed) {
            return self.answer_with(arrival, offer.initiate_tag, sealed);
        }
        self.answer_at_length(arrival, offer, own, both, sealed);
    }

    /// Omits AUTH if its parameters do not fit into the INIT ACK. Returns `false` if AUTH is
    /// required.
    #[cold]
    #[inline(never)]
    fn fits_auth(
        &mut self,
        arrival: Arrival,
        cookie: &mut Cookie,
        own: &mut LocalOffer,
        sealed: &mut BytesMut,
    ) -> bool {
        let (config, length) = (&self.config, sealed.len() - BEFORE_COOKIE);
        if handshake::has_room_for_auth(config, *own, arrival.path.remote, length) {
            return true;
        }
        if config.authentication == Authentication::Required {
            return false;
        }
        (cookie.auth, own.auth_random) = (None, None);
        cookie.extensions.set(&AUTH, false);
        if !config.profile.asconf_without_auth {
            cookie.extensions.set(&ASCONF, false);
        }
        *sealed = self
            .jar
            .seal(arrival.now, cookie, &mut self.random, BEFORE_COOKIE);
        true
    }

    /// Sends an INIT ACK that contains optional parameters.
    #[cold]
    #[inline(never)]
    fn answer_at_length(
        &mut self,
        arrival: Arrival,
        offer: &Offer,
        own: LocalOffer,
        both: Extensions,
        mut sealed: BytesMut,
    ) {
        let sealed = sealed.split_off(BEFORE_COOKIE - HEADER);
        let remote = arrival.path.remote;
        let ack = handshake::init_ack(&self.config, own, remote, sealed, offer, both);
        // The packet exceeds the path MTU only if the cookie does not fit.
        self.answer_within(usize::MAX, arrival, offer.initiate_tag, &[&ack]);
    }
}

fn collision(association: &Association, offer: &Offer, arrival: &Arrival) -> Collision {
    let source = arrival.path.remote;
    let known_port = association.paths().udp_port_to(source);
    let new = association.lacks_any(&offer.addresses);
    match association.state() {
        // In COOKIE-WAIT the peer's addresses are not all known, so no address counts as new
        // (§5.2.1). The local tag is disclosed only to addresses to which this end connected.
        // Otherwise an attacker who lists the peer's address could take over the attempt.
        AssociationState::CookieWait => match association.paths().find(source) {
            Some(_) => Collision::SameTag(TieTags::NONE),
            None => {
                let called = |&&address: &&IpAddr| association.paths().find(address).is_some();
                let to = offer.addresses.iter().find(called);
                to.map_or(Collision::NewTag(TieTags::NONE), |&to| {
                    Collision::SameTagTo(to)
                })
            }
        },
        AssociationState::ShutdownAckSent => Collision::ShutdownAck,
        _ if !new.is_empty() => Collision::NewAddresses(new),
        // Disclose the port only to senders at known addresses of the association.
        _ if known_port != arrival.udp_port => Collision::NewUdpPort(known_port),
        AssociationState::CookieEchoed => Collision::SameTag(association.tie_tags()),
        _ => Collision::NewTag(association.tie_tags()),
    }
}

/// Like [`collision`], for a detached association, which was established before.
fn collision_with_detached(view: &AssociationView, offer: &Offer, arrival: &Arrival) -> Collision {
    let listed = offer.addresses.iter().copied();
    let new: Vec<_> = listed.filter(|&it| view.address(it).is_none()).collect();
    let known = view.address(arrival.path.remote).map(|it| it.udp_port);
    match known {
        _ if view.shutdown_ack_sent => Collision::ShutdownAck,
        _ if !new.is_empty() => Collision::NewAddresses(new),
        Some(port) if port != arrival.udp_port => Collision::NewUdpPort(port),
        _ => Collision::NewTag(view.tie_tags),
    }
}
