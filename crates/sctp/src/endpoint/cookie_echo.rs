//! Processing of COOKIE ECHO: creates an association, or compares the cookie with an existing one
//! (RFC 9260 §5.1.5, §5.2.4).

use std::sync::Arc;

use anabranch_transport::Nanos;
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{Abort, ErrorChunk};
use anabranch_wire::packet::Chunks;

use super::authentication::VerifiedAuth;
use super::retired_tags::{RetiredTags, TagHistory};
use super::shares::Room;
use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::association_state::AssociationState;
use crate::authentication::Authentication;
use crate::config::Config;
use crate::cookie::{Cookie, TieTags};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::dtls_chunk::Security;

/// Relation of a cookie to an existing association: the rows of the table of RFC 9260 §5.2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Neither tag matches, but the Tie-Tags match: the peer restarted. Or only the local tag
    /// matches and the association is already established. This also counts as a restart, because
    /// the peer has lost the data exchanged under its former tag.
    Restart,
    /// Only the local tag matches: both ends sent an INIT, and the peer's later INIT won.
    PeerBeganAnew,
    /// Only the peer's tag matches, without Tie-Tags: the cookie of an aborted attempt. Or only the
    /// local tag matches, but the association has newer peer parameters: the peer has aborted the
    /// attempt of this cookie.
    Late,
    /// Both tags match: the cookie belongs to this association.
    Own,
    /// No row applies: the cookie is discarded.
    None,
}

impl Action {
    #[cold]
    #[inline(never)]
    pub(super) fn of(association: &Association, cookie: &Cookie) -> Self {
        let local = cookie.local_tag == association.local_tag();
        let peer = Some(cookie.peer_tag) == association.peer_tag();
        match (local, peer) {
            (true, true) => Action::Own,
            (true, false) if association.knows_better(cookie) => Action::Late,
            (true, false) if association.is_being_set_up() => Action::PeerBeganAnew,
            (true, false) => Action::Restart,
            (false, true) if cookie.tie_tags == TieTags::NONE => Action::Late,
            (false, false) if cookie.tie_tags == association.tie_tags() => Action::Restart,
            _ => Action::None,
        }
    }

    /// Whether the association must stay unchanged. If so, counts the discard, or lets the
    /// association answer.
    pub(super) fn is_refused(
        self,
        association: &mut Association,
        cookie: &Cookie,
        discards: &mut DiscardCounts,
    ) -> bool {
        match self {
            Action::Restart if association.state() == AssociationState::ShutdownAckSent => {
                association.refuse_cookie_at_end(discards);
            }
            Action::Restart if association.refuses_restart(cookie) => {
                discards.count(DiscardReason::Unprotected);
            }
            Action::Late | Action::None => discards.count(DiscardReason::LateCookie),
            Action::Restart | Action::PeerBeganAnew | Action::Own => return false,
        }
        true
    }

    /// Applies the action. Afterwards the association processes the remaining chunks of the packet.
    /// `config` are the endpoint's settings.
    pub(super) fn apply(
        self,
        association: &mut Association,
        arrival: &Arrival,
        cookie: &Cookie,
        config: &Config,
    ) {
        let Arrival { now, path, .. } = *arrival;
        match self {
            Action::Restart => {
                association.take_auth_keys(cookie.auth.as_deref(), &config.auth_keys);
                association.restart(now, cookie, path.local, &config.addresses);
                association.set_udp_port(arrival.udp_port);
            }
            Action::PeerBeganAnew => association.begin_anew(now, cookie, path.local),
            Action::Own => association.establish_unless_up(now),
            Action::Late | Action::None => {}
        }
        association.follow_udp_port(path.remote, arrival.udp_port);
        association.acknowledge_cookie(path.remote);
    }
}

impl Endpoint {
    /// Decodes the cookie of a COOKIE ECHO, if this endpoint created it for the sender.
    pub(super) fn open_cookie(&self, arrival: &Arrival, sealed: &[u8]) -> Option<Cookie> {
        let fits = |cookie: &Cookie| {
            cookie.local_port == self.port
                && cookie.remote_port == arrival.header.source_port
                && cookie.local_tag == arrival.header.verification_tag
                && cookie.peer_addresses.contains(&arrival.path.remote)
        };
        self.jar.open(sealed).filter(fits)
    }

    /// Processes a COOKIE ECHO. `sealed` is its cookie, as a slice of the packet.
    pub(super) fn on_cookie_echo(
        &mut self,
        arrival: Arrival,
        sealed: &[u8],
        mut rest: Chunks<'_>,
        verified_auth: Option<VerifiedAuth<'_>>,
    ) {
        let Some(cookie) = self.open_cookie(&arrival, sealed) else {
            return self.discards.count(DiscardReason::InvalidCookie);
        };
        let (port, addresses) = (cookie.remote_port, &cookie.peer_addresses);
        let existing = match self.shard_with(port, addresses) {
            None => addresses
                .iter()
                .find_map(|&address| self.live(port, address)),
            Some(_) => None,
        };
        if let Some(slot) = existing
            && self.table.get(slot).is_none()
        {
            return self.forward_cookie(slot, arrival, cookie, &rest);
        }
        let action = existing
            .and_then(|slot| self.table.get(slot))
            .map(|it| Action::of(it, &cookie));
        if let Err(reason) = self.admits_cookie(existing, &cookie, verified_auth.as_ref()) {
            return self.discards.count(reason);
        }
        // A cookie whose tags both match never becomes stale (RFC 9260 §5.2.4, step 3).
        if let Some(staleness) = cookie.staleness(arrival.now)
            && action != Some(Action::Own)
        {
            self.discards.count(DiscardReason::StaleCookie);
            return self.tell_staleness(arrival, &cookie, staleness);
        }
        let known = existing.zip(action);
        let slot = match known {
            Some((slot, action)) => self.apply(slot, arrival, &cookie, action),
            None => self.accept(arrival, &cookie),
        };
        let Some(slot) = slot else { return };
        self.taken = Some(slot);
        if verified_auth.is_some() {
            self.vouch(slot);
        }
        // A new association was already indexed when it was inserted.
        if known.is_some() {
            self.table.index(slot);
        }
        self.table.touch_out_of_line(slot);
        match rest.next_frame() {
            Some(Ok(next)) => self.deliver(slot, arrival, next, rest, true),
            Some(Err(_)) => self.discards.count(DiscardReason::ChunkLength),
            None => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn vouch(&mut self, slot: u32) {
        if let Some(auth) = self.table.get_mut(slot).and_then(|it| it.authenticator()) {
            auth.vouch();
        }
    }

    /// Sends an ERROR with the cause Stale Cookie (RFC 9260 §5.2.6).
    #[cold]
    #[inline(never)]
    pub(super) fn tell_staleness(&mut self, arrival: Arrival, cookie: &Cookie, staleness: u64) {
        // The staleness is sent in microseconds, rounded up (RFC 9260 §3.3.10.3).
        let measure_of_staleness = u32::try_from(staleness.div_ceil(1_000)).unwrap_or(u32::MAX);
        let causes = Causes::of(&[Cause::StaleCookie {
            measure_of_staleness,
        }]);
        self.answer(arrival, cookie.peer_tag, &[&ErrorChunk { causes }]);
    }

    /// Creates an association, if the endpoint accepts one and the maximum number is not reached.
    fn accept(&mut self, arrival: Arrival, cookie: &Cookie) -> Option<u32> {
        if let Some(reason) = lacks(cookie, &self.config) {
            self.discards.count(reason);
            return None;
        }
        if self.retired.has_any() && self.comes_late(arrival, cookie) {
            return None;
        }
        if self.is_peer_of_another(cookie.remote_port, &cookie.peer_addresses) {
            self.discards.count(DiscardReason::LateCookie);
            return None;
        }
        let decided = if self.undecided.is_some() {
            self.decide(arrival, cookie)?
        } else {
            false
        };
        if self.may_begin == 0 && !decided {
            self.refuse_cookie(arrival, cookie, &[]);
            return None;
        }
        if self.table.len() >= self.max_associations {
            match self.make_room_for(arrival.now, arrival.path.remote) {
                Room::Made => {}
                // A slot becomes free soon, so the COOKIE ECHO is not answered. The peer will
                // retransmit it.
                Room::Soon => {
                    self.discards.count(DiscardReason::RateLimited);
                    return None;
                }
                Room::None => {
                    self.refuse_cookie(arrival, cookie, &[Cause::OutOfResource]);
                    return None;
                }
            }
        }
        if !self
            .table
            .reserve(cookie.remote_port, &cookie.peer_addresses)
        {
            // Another shard accepted the same peer at the same time.
            self.discards.count(DiscardReason::LateCookie);
            return None;
        }
        let seed = self.random.key();
        let mut association =
            Association::accepted(Arc::clone(&self.config), cookie, arrival.path, seed);
        if arrival.udp_port != 0 {
            association.set_udp_port(arrival.udp_port);
        }
        association.begin(arrival.now);
        association.prefer(arrival.now, cookie.remarks.primary);
        association.acknowledge_cookie(arrival.path.remote);
        let id = self.table.insert(association);
        self.may_begin -= usize::from(!decided);
        if let Some(undecided) = &mut self.undecided {
            undecided.note_accepted(id);
        }
        Some(id.slot)
    }

    /// Whether the cookie belongs to a closed association, or may belong to one whose tag is no
    /// longer remembered. In the second case the peer must start again with an INIT. A new peer
    /// therefore loses one round trip if very many other associations close at the same time.
    #[cold]
    #[inline(never)]
    fn comes_late(&mut self, arrival: Arrival, cookie: &Cookie) -> bool {
        let past = |it: &mut RetiredTags| it.past(arrival.now, cookie.local_tag, cookie.created_at);
        match self.retired.change(past).flatten() {
            None => return false,
            Some(TagHistory::Over) => self.discards.count(DiscardReason::LateCookie),
            Some(TagHistory::Unknown(lacks)) => {
                self.discards.count(DiscardReason::StaleCookie);
                self.tell_staleness(arrival, cookie, lacks);
            }
        }
        true
    }

    /// If the user decides about incoming associations: whether the user has accepted this one.
    /// `None` if the association must not be created now.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, arrival: Arrival, cookie: &Cookie) -> Option<bool> {
        let undecided = self.undecided.as_mut()?;
        if self.may_begin == 0 && !undecided.knows(cookie) {
            return Some(false);
        }
        match undecided.approves(arrival, cookie) {
            Ok(()) => Some(true),
            Err(discard) => {
                if let Some(reason) = discard {
                    self.discards.count(reason);
                }
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_cookie(&mut self, arrival: Arrival, cookie: &Cookie, causes: &[Cause]) {
        self.discards.count(DiscardReason::RateLimited);
        let abort = Abort {
            tag_reflected: false,
            causes: Causes::of(causes),
        };
        self.answer(arrival, cookie.peer_tag, &[&abort]);
    }

    /// Applies the table of RFC 9260 §5.2.4. Returns the association if it should process the
    /// remaining chunks of the packet.
    #[cold]
    #[inline(never)]
    fn apply(
        &mut self,
        slot: u32,
        arrival: Arrival,
        cookie: &Cookie,
        action: Action,
    ) -> Option<u32> {
        let association = self.table.get_mut(slot)?;
        let former_tag = association.local_tag();
        if action.is_refused(association, cookie, &mut self.discards) {
            self.table.touch(slot);
            return None;
        }
        if action == Action::Restart {
            self.replace_incarnation(arrival.now, slot, former_tag, cookie.local_tag);
        }
        let association = self.table.get_mut(slot)?;
        action.apply(association, &arrival, cookie, &self.config);
        Some(slot)
    }

    /// Prepares the restart of the association in `slot` with the new tag `tag`: removes its lookup
    /// keys, and invalidates cookies with the tag `former` if the two tags differ. The caller must
    /// index the association next.
    pub(super) fn replace_incarnation(&mut self, now: Nanos, slot: u32, former: u32, tag: u32) {
        if former != tag {
            let life = self.config.valid_cookie_life;
            self.retired.make().retire(now, former, life, 0);
        }
        self.table.remove_keys_to_index(slot);
    }
}

/// Why a new association must not be created from `cookie`: its INIT was accepted before the
/// settings changed to those that require AUTH or the DTLS chunk.
fn lacks(cookie: &Cookie, config: &Config) -> Option<DiscardReason> {
    if config.authentication == Authentication::Required && cookie.auth.is_none() {
        return Some(DiscardReason::Unauthenticated);
    }
    let unprotected = config.security == Security::DtlsChunk && cookie.dtls.is_none();
    unprotected.then_some(DiscardReason::Unprotected)
}
