//! Associations that their driver owns, for example on another thread.
//!
//! The endpoint keeps a view of such an association, to demultiplex packets of its peer and to
//! answer the INIT of a restarted peer. The endpoint passes packets to the association as
//! [`AssociationEvent`]s. [`EndpointEvent`]s inform the endpoint about the tags and addresses of
//! the association, and about its end.

mod dtls;

use std::ops::{ControlFlow, Deref, DerefMut};
use std::sync::Arc;

use anabranch_transport::Nanos;
use anabranch_wire::cause::Cause;
use anabranch_wire::chunk::kind;
use anabranch_wire::packet::{Checksum, Chunks, Frame, Packet};
use bytes::BytesMut;

use super::association_event::{AssociationEvent, ForwardedPacket, Input};
use super::association_view::AssociationView;
use super::authentication::{VerifiedAuth, auth_admits};
use super::cookie_echo::Action;
use super::demux::carries_data;
use super::{Arrival, Endpoint};
use crate::association::{Admission, Association, FastPath};
use crate::association_id::AssociationId;
use crate::config::Config;
use crate::cookie::Cookie;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::CloseReason;
use crate::transmit::UdpTransmit;

/// Maximum number of queued events for detached associations. The driver should poll them after
/// every packet.
const MAX_FORWARDED: usize = 1_024;

/// Change of a [`DetachedAssociation`] that its endpoint needs to know.
#[derive(Debug)]
pub struct EndpointEvent(Notice);

#[derive(Debug)]
enum Notice {
    /// The tags, addresses or phase of the association have changed.
    Changed(AssociationView),
    /// The peer has restarted, and the tags have changed.
    Restarted(AssociationView),
    /// The association opened a DTLS chunk whose content is this packet, which starts with a COOKIE
    /// ECHO.
    CookieEcho(Box<ForwardedPacket>),
    /// The cookie of a COOKIE ECHO expired this number of nanoseconds ago.
    StaleCookie(Arrival, Box<Cookie>, Nanos),
    /// The association is closed, and has sent its final packet.
    Closed(AssociationView),
}

impl EndpointEvent {
    /// Whether this is the last event of its association, which the endpoint then forgets.
    pub fn is_closed(&self) -> bool {
        matches!(self.0, Notice::Closed(_))
    }
}

/// Reasons why an association cannot be detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetachError {
    /// The association was released or detached.
    #[error("no such association")]
    Unknown,
    /// The association is closed, or its handshake is not complete. The endpoint performs the
    /// handshake.
    #[error("the association is not established")]
    NotEstablished,
}

/// Association that its driver owns, separately from the [`Endpoint`], which demultiplexes the
/// packets. A detached association is [`Send`], contains all its state, and dereferences to the
/// [`Association`] for its user.
///
/// # Order of calls
/// After each input ([`handle_event`](Self::handle_event),
/// [`handle_timeout`](Self::handle_timeout), or a method of the association), the driver polls
///
/// 1. [`poll_transmit_batch`](Self::poll_transmit_batch), and sends the packets;
/// 2. [`poll_endpoint_event`](Self::poll_endpoint_event) until there is none, and passes each to
///    [`Endpoint::handle_endpoint_event`];
/// 3. [`Association::poll_output`] for its user, after which step 1 follows again if output was
///    returned;
/// 4. [`poll_timeout`](Self::poll_timeout): the time of the next
///    [`handle_timeout`](Self::handle_timeout).
///
/// After an event for which [`EndpointEvent::is_closed`] is true, the association is independent of
/// the endpoint; its output stays readable. A driver that wants to drop the association earlier
/// must first [abort](Association::abort) it and poll, because otherwise the endpoint never
/// releases its slot.
#[derive(Debug)]
pub struct DetachedAssociation {
    association: Box<Association>,
    id: AssociationId,
    discards: DiscardCounts,
    /// View last reported to the endpoint.
    known: AssociationView,
    restarted: bool,
    /// Pending event about a COOKIE ECHO.
    notice: Option<EndpointEvent>,
    closed: bool,
    /// Latest time passed to the association.
    latest: Nanos,
}

impl Deref for DetachedAssociation {
    type Target = Association;

    fn deref(&self) -> &Association {
        &self.association
    }
}

impl DerefMut for DetachedAssociation {
    fn deref_mut(&mut self) -> &mut Association {
        &mut self.association
    }
}

impl DetachedAssociation {
    /// Identifier of the association at the endpoint.
    pub fn id(&self) -> AssociationId {
        self.id
    }

    /// Counters of packets and chunks discarded by this association, by reason.
    pub fn discards(&self) -> &DiscardCounts {
        &self.discards
    }

    fn at(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Processes an event from [`Endpoint::poll_association_event`] for this association.
    pub fn handle_event(&mut self, event: AssociationEvent) {
        match event.0 {
            Input::Packet(packet) => self.handle_packet(&packet),
            Input::CookieEcho(packet, cookie, config) => {
                if let Some(keys) = packet.opened_by {
                    self.association.resume_opened(keys);
                }
                self.on_cookie_echo(&packet, cookie, &config);
                self.association.end_dtls();
            }
            Input::Icmp(now, quote, meaning) => {
                let now = self.at(now);
                if let Some(reason) = self.association.handle_icmp(now, &quote, meaning) {
                    self.discards.count(reason);
                }
            }
            Input::RepeatControl => self.association.repeat_control(),
            Input::Disown(address) => self.association.disown(address),
            Input::Lose(address) => self.association.lose(address),
            Input::Displace => {
                let reason = CloseReason::Displaced;
                self.association.abort_with(Cause::OutOfResource, reason);
            }
        }
    }

    fn handle_packet(&mut self, forwarded: &ForwardedPacket) {
        let mut arrival = forwarded.arrival;
        arrival.now = self.at(arrival.now);
        // The endpoint has already verified the checksum.
        let Ok(packet) = Packet::parse(&forwarded.bytes, Checksum::Ignore) else {
            return self.discards.count(DiscardReason::Malformed);
        };
        let mut rest = packet.chunks();
        let Some(Ok(first)) = rest.next_frame() else {
            return self.discards.count(DiscardReason::ChunkLength);
        };
        let association = &mut *self.association;
        if arrival.without && !association.accepts_zero_checksums() && !packet.is_intact() {
            return self.discards.count(DiscardReason::ZeroChecksum);
        }
        if association.is_closed() {
            return self.discards.count(DiscardReason::OutOfTheBlue);
        }
        if first.kind == kind::DTLS && association.key_agreement_or_restart() {
            return self.handle_dtls(arrival, forwarded.by_source, first, &rest);
        }
        let may_be_fast = forwarded.by_source && !arrival.without && carries_data(first);
        self.handle_admitted(&arrival, first, rest, may_be_fast);
    }

    /// Processes a packet whose tag and first chunk were accepted.
    fn handle_admitted(
        &mut self,
        arrival: &Arrival,
        first: Frame<'_>,
        rest: Chunks<'_>,
        may_be_fast: bool,
    ) {
        let (association, discards) = (&mut *self.association, &mut self.discards);
        if matches!(first.kind, kind::INIT_ACK | kind::SHUTDOWN_COMPLETE) && !rest.is_at_end() {
            return discards.count(DiscardReason::ForbiddenBundle);
        }
        match association.admits(arrival.header, first) {
            Admission::Admitted => self.deliver(arrival, first, rest, may_be_fast, false),
            Admission::Refused(DiscardReason::Unprotected) => {
                association.count_unprotected(discards);
            }
            Admission::Refused(reason) => self.discards.count(reason),
            Admission::OutOfTheBlue => self.discards.count(DiscardReason::OutOfTheBlue),
        }
    }

    /// Passes the chunks of a packet to the association. `behind`: other chunks of the packet
    /// precede `first`.
    fn deliver(
        &mut self,
        arrival: &Arrival,
        first: Frame<'_>,
        rest: Chunks<'_>,
        may_be_fast: bool,
        behind: bool,
    ) {
        let Arrival {
            now,
            path,
            udp_port,
            ecn,
            ..
        } = *arrival;
        let (association, discards) = (&mut *self.association, &mut self.discards);
        association.follow_udp_port(path.remote, udp_port);
        association.begin_packet(ecn, rest.packet_len());
        let left = match may_be_fast {
            true => association.try_fast_path(now, path, first, rest, discards),
            false => FastPath::Until {
                frame: first,
                rest,
                behind,
            },
        };
        if let FastPath::Until {
            frame,
            rest,
            behind,
        } = left
        {
            association.handle_chunks(now, path, frame, rest, behind, discards);
        }
        if association.addresses_changed() {
            association.follow_udp_port(path.remote, udp_port);
            association.addresses_learnt();
        }
    }

    /// Processes a COOKIE ECHO of the peer (RFC 9260 §5.2.4). `config` are the endpoint's
    /// settings.
    fn on_cookie_echo(
        &mut self,
        forwarded: &ForwardedPacket,
        cookie: Box<Cookie>,
        config: &Config,
    ) {
        let mut arrival = forwarded.arrival;
        arrival.now = self.at(arrival.now);
        let Ok(packet) = Packet::parse(&forwarded.bytes, Checksum::Ignore) else {
            return self.discards.count(DiscardReason::Malformed);
        };
        let mut rest = packet.chunks();
        let mut verified_auth = None;
        while let Some(Ok(chunk)) = rest.next_frame()
            && chunk.kind == kind::AUTH
        {
            verified_auth = VerifiedAuth::of(chunk);
        }
        let association = &mut *self.association;
        if association.is_closed() {
            return self.discards.count(DiscardReason::LateCookie);
        }
        let action = Action::of(association, &cookie);
        let keys = &config.auth_keys;
        let admitted = auth_admits(Some(association), keys, &cookie, verified_auth.as_ref());
        if let Err(reason) = admitted {
            return self.discards.count(reason);
        }
        // A cookie whose tags both match never becomes stale (RFC 9260 §5.2.4, step 3).
        if let Some(staleness) = cookie.staleness(arrival.now)
            && action != Action::Own
        {
            self.discards.count(DiscardReason::StaleCookie);
            let stale = Notice::StaleCookie(arrival, cookie, staleness);
            self.notice = Some(EndpointEvent(stale));
            return;
        }
        if action.is_refused(association, &cookie, &mut self.discards) {
            return;
        }
        action.apply(association, &arrival, &cookie, config);
        self.restarted |= action == Action::Restart;
        if verified_auth.is_some()
            && let Some(auth) = association.authenticator()
        {
            auth.vouch();
        }
        match rest.next_frame() {
            Some(Ok(next)) => self.deliver(&arrival, next, rest, false, true),
            Some(Err(_)) => self.discards.count(DiscardReason::ChunkLength),
            None => {}
        }
    }

    /// Writes all packets that may be sent now. `each` is called after each packet was appended to
    /// `out`, and may remove it from there. After [`ControlFlow::Break`] the remaining packets wait
    /// for the next call.
    pub fn poll_transmit_batch(
        &mut self,
        now: Nanos,
        out: &mut BytesMut,
        mut each: impl FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) {
        let now = self.at(now);
        let _ = self
            .association
            .poll_transmit_batch(now, false, out, &mut each);
        self.association.note_sending();
    }

    /// Time of the next [`Self::handle_timeout`], if no other input precedes it.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        self.association.deadline()
    }

    /// Processes expired timers.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let now = self.at(now);
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.association.handle_timeout(now);
        }
    }

    /// Next event for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        if self.closed {
            return None;
        }
        if let Some(notice) = self.notice.take() {
            return Some(notice);
        }
        let view = AssociationView::of(self.latest, &self.association);
        if view == self.known && !self.restarted {
            return None;
        }
        self.known = view.clone();
        let restarted = std::mem::take(&mut self.restarted);
        let notice = match view.is_closed() {
            true => Notice::Closed(view),
            false if restarted => Notice::Restarted(view),
            false => Notice::Changed(view),
        };
        self.closed = matches!(notice, Notice::Closed(_));
        Some(EndpointEvent(notice))
    }
}

/// Interface for detached associations.
impl Endpoint {
    /// Detaches an established association, which the driver owns from then on. Packets of its peer
    /// are then returned by [`Endpoint::poll_association_event`] instead of being processed here.
    ///
    /// # Errors
    /// The association is not established.
    pub fn detach(&mut self, id: AssociationId) -> Result<DetachedAssociation, DetachError> {
        let slot = self.table.slot_of(id).ok_or(DetachError::Unknown)?;
        let association = self.table.get(slot).ok_or(DetachError::Unknown)?;
        if association.is_closed() || association.is_being_set_up() {
            return Err(DetachError::NotEstablished);
        }
        let known = AssociationView::of(self.latest, association);
        self.timers.set(slot, None);
        let association = self.table.take_out(slot, known.clone());
        Ok(DetachedAssociation {
            association: association.ok_or(DetachError::Unknown)?,
            id,
            discards: DiscardCounts::default(),
            known,
            restarted: false,
            notice: None,
            closed: false,
            latest: self.latest,
        })
    }

    /// Next event for a detached association, with its identifier. The driver should poll after
    /// every input until the result is `None`.
    pub fn poll_association_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        self.table.next_forwarded()
    }

    /// Processes an event of a detached association. After the last event
    /// ([`EndpointEvent::is_closed`]) the identifier is no longer valid. The driver should drain
    /// [`Endpoint::poll_association_event`] and `poll_transmit` afterwards.
    pub fn handle_endpoint_event(&mut self, id: AssociationId, event: EndpointEvent) {
        let Some(slot) = self.table.detached_slot_of(id) else {
            return;
        };
        match event.0 {
            Notice::Changed(view) => self.table.set_view(slot, view),
            Notice::Restarted(view) => {
                let former = self.table.view(slot).map(|it| it.local_tag);
                let former = former.unwrap_or(view.local_tag);
                self.replace_incarnation(self.latest, slot, former, view.local_tag);
                self.table.set_view(slot, view);
            }
            Notice::CookieEcho(opened) => return self.on_opened_cookie(slot, opened),
            Notice::StaleCookie(arrival, cookie, staleness) => {
                return self.tell_staleness(arrival, &cookie, staleness);
            }
            Notice::Closed(view) => {
                self.table.set_view(slot, view);
                self.retire(self.latest, slot);
                return self.table.remove_detached(slot);
            }
        }
        self.table.index(slot);
    }

    /// Queues a packet for the detached association in `slot`.
    #[cold]
    #[inline(never)]
    pub(super) fn forward_packet(&mut self, slot: u32, arrival: Arrival, packet: &Packet<'_>) {
        let forwarded = self.forwarded(slot, arrival, &packet.chunks());
        self.forward(slot, Input::Packet(forwarded));
    }

    /// Queues an event that was caused by a received packet. Drops it if the driver does not poll
    /// and the queue is full.
    #[cold]
    #[inline(never)]
    pub(super) fn forward(&mut self, slot: u32, input: Input) {
        if self.table.forwarded() >= MAX_FORWARDED {
            return self.discards.count(DiscardReason::RateLimited);
        }
        self.table.forward(slot, input);
    }

    /// Queues a COOKIE ECHO together with its decoded cookie.
    #[cold]
    #[inline(never)]
    pub(super) fn forward_cookie(
        &mut self,
        slot: u32,
        arrival: Arrival,
        cookie: Cookie,
        chunks: &Chunks<'_>,
    ) {
        let forwarded = self.forwarded(slot, arrival, chunks);
        let config = Arc::clone(&self.config);
        let input = Input::CookieEcho(forwarded, Box::new(cookie), config);
        self.forward(slot, input);
    }

    fn forwarded(
        &mut self,
        slot: u32,
        arrival: Arrival,
        chunks: &Chunks<'_>,
    ) -> Box<ForwardedPacket> {
        self.taken = Some(slot);
        let (port, remote) = (arrival.header.source_port, arrival.path.remote);
        Box::new(ForwardedPacket {
            arrival,
            by_source: self.table.find(port, remote) == Some(slot),
            opened_by: None,
            bytes: chunks.packet_bytes(),
        })
    }
}
