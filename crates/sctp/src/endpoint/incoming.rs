//! Incoming associations that wait for the user's decision.
//!
//! No state is stored at INIT (RFC 9260 §5.1.3). The packet with the COOKIE ECHO is stored, because
//! it shows that the peer is reachable at its address. The COOKIE ECHO is not answered before the
//! user has decided; meanwhile the peer retransmits it by T1-cookie, without effect. If the user
//! accepts, the packet is processed as if it had just arrived. If the user refuses, an ABORT is
//! sent and the packet is deleted. The ABORT may be lost, so a later copy of the COOKIE ECHO is
//! presented to the user again.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_transport::Nanos;
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::Abort;
use bytes::Bytes;

use super::{Arrival, Endpoint};
use crate::association::MAX_REASON;
use crate::association_id::AssociationId;
use crate::cookie::Cookie;
use crate::discard::DiscardReason;

/// Incoming association that waits for the user's decision: see [`Endpoint::poll_incoming`]. The
/// peer waits until it is [accepted](Self::accept) or [refused](Self::refuse), restarts, or its
/// cookie expires; dropping this value has no effect. If a refused peer sends its COOKIE ECHO
/// again, the peer waits again under the same tag, and an earlier `Incoming` of this peer is valid
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// Local tag in the peer's cookie, which identifies the peer at its endpoint.
    tag: u32,
    /// Peer's addresses: the first is the source of its COOKIE ECHO, which is verified; the others
    /// are claimed by the peer.
    pub addresses: Vec<IpAddr>,
    /// The peer's SCTP port.
    pub port: u16,
    /// The peer's UDP port; 0 without UDP encapsulation.
    pub udp_port: u16,
    /// Local address at which the COOKIE ECHO arrived.
    pub local: IpAddr,
    /// Number of outbound streams.
    pub outbound_streams: u16,
    /// Number of inbound streams.
    pub inbound_streams: u16,
}

/// Error cause in the ABORT that refuses a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// ABORT without an error cause.
    #[default]
    Plain,
    /// Out of Resource (RFC 9260 §3.3.10.4): the peer may retry later.
    OutOfResource,
    /// User-Initiated Abort (RFC 9260 §3.3.10.12) with the user's reason; at most 512 bytes are
    /// sent.
    Reason(Bytes),
}

/// Error: the peer no longer waits, because it restarted or its cookie has expired (RFC 9260
/// §5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer that waited to be accepted is gone")]
pub struct IncomingGone;

/// Stored COOKIE ECHO of one waiting peer.
#[derive(Debug)]
struct HeldCookieEcho {
    incoming: Incoming,
    arrival: Arrival,
    peer_tag: u32,
    /// Expiration time of the peer's cookie.
    until: Nanos,
    packet: Bytes,
    told: bool,
}

/// COOKIE ECHOs of all waiting peers.
#[derive(Debug)]
pub(super) struct PendingIncoming {
    held: VecDeque<HeldCookieEcho>,
    most: usize,
    /// Packet that is being processed, if it may start an association.
    at_hand: Bytes,
    /// Local tag of the association that the user has just accepted.
    approved: Option<u32>,
    /// Association that was created for the approved tag.
    accepted: Option<AssociationId>,
}

impl PendingIncoming {
    /// Empty queue for at most `most` waiting peers.
    fn new(most: usize) -> Self {
        Self {
            held: VecDeque::new(),
            most,
            at_hand: Bytes::new(),
            approved: None,
            accepted: None,
        }
    }

    /// Remembers a packet, because its COOKIE ECHO may have to be stored.
    pub fn note(&mut self, packet: &Bytes) {
        self.at_hand = packet.clone();
    }

    fn take(&mut self, tag: u32) -> Option<HeldCookieEcho> {
        let place = self.held.iter().position(|it| it.incoming.tag == tag)?;
        self.held.remove(place)
    }

    fn holds(&self, tag: u32) -> bool {
        self.held.iter().any(|it| it.incoming.tag == tag)
    }

    /// Whether the peer of this cookie waits, or is being accepted.
    pub fn knows(&self, cookie: &Cookie) -> bool {
        let tag = cookie.local_tag;
        self.approved == Some(tag) || self.holds(tag)
    }

    /// Whether the user has accepted the association of this cookie. If the user has not decided,
    /// the packet with the cookie is stored, if there is space.
    pub fn approves(
        &mut self,
        arrival: Arrival,
        cookie: &Cookie,
    ) -> Result<(), Option<DiscardReason>> {
        if self.approved == Some(cookie.local_tag) {
            return Ok(());
        }
        let packet = std::mem::take(&mut self.at_hand);
        if self.holds(cookie.local_tag) {
            return Err(Some(DiscardReason::Undecided));
        }
        // The new COOKIE ECHO of a restarted peer replaces its earlier one.
        let (remote, port) = (arrival.path.remote, cookie.remote_port);
        let same =
            |it: &HeldCookieEcho| it.arrival.path.remote == remote && it.incoming.port == port;
        self.held.retain(|it| !same(it));
        if self.held.len() >= self.most {
            self.held.retain(|it| it.until >= arrival.now);
        }
        if self.held.len() >= self.most {
            return Err(Some(DiscardReason::RateLimited));
        }
        let others = cookie.peer_addresses.iter().copied();
        let others = others.filter(|&address| address != remote);
        let incoming = Incoming {
            tag: cookie.local_tag,
            addresses: std::iter::once(remote).chain(others).collect(),
            port,
            udp_port: arrival.udp_port,
            local: arrival.path.local,
            outbound_streams: cookie.outbound_streams,
            inbound_streams: cookie.inbound_streams,
        };
        self.held.push_back(HeldCookieEcho {
            incoming,
            arrival,
            peer_tag: cookie.peer_tag,
            until: cookie.created_at.saturating_add(cookie.lifespan),
            // The packet is copied, so that it does not keep a larger receive buffer in memory.
            packet: Bytes::copy_from_slice(&packet),
            told: false,
        });
        Err(None)
    }

    /// Records the association that was created.
    pub fn note_accepted(&mut self, id: AssociationId) {
        self.accepted = Some(id);
    }
}

impl Incoming {
    /// Accepts the peer, even if the endpoint no longer listens. `endpoint` is the endpoint that
    /// returned this value. The caller should drain `poll_transmit` and `poll_event` afterwards;
    /// the first event is [`Event::Established`](crate::Event::Established).
    ///
    /// # Errors
    /// The peer no longer waits, a decision was already made, or the limit of
    /// [`Endpoint::set_max_associations`] is reached.
    pub fn accept(
        &self,
        now: Nanos,
        endpoint: &mut Endpoint,
    ) -> Result<AssociationId, IncomingGone> {
        let undecided = endpoint.undecided.as_mut().ok_or(IncomingGone)?;
        let held = undecided.take(self.tag).ok_or(IncomingGone)?;
        (undecided.approved, undecided.accepted) = (Some(self.tag), None);
        let Arrival {
            path,
            udp_port,
            ecn,
            ..
        } = held.arrival;
        let packet = held.packet;
        endpoint.handle_udp_datagram(now, path, udp_port, ecn, (&packet, 0..packet.len()));
        let undecided = endpoint.undecided.as_mut().ok_or(IncomingGone)?;
        undecided.approved = None;
        undecided.accepted.take().ok_or(IncomingGone)
    }

    /// Refuses the peer by an ABORT (RFC 9260 §9.1). `endpoint` is the endpoint that returned this
    /// value. The caller should drain `poll_transmit` afterwards.
    ///
    /// # Errors
    /// The peer no longer waits, or a decision was already made.
    pub fn refuse(&self, endpoint: &mut Endpoint, refusal: &Refusal) -> Result<(), IncomingGone> {
        let undecided = endpoint.undecided.as_mut().ok_or(IncomingGone)?;
        let held = undecided.take(self.tag).ok_or(IncomingGone)?;
        endpoint.refuse_held(&held, refusal);
        Ok(())
    }
}

/// Interface for the user's decisions about incoming associations.
impl Endpoint {
    /// Lets the user decide about each incoming association, which [`Endpoint::poll_incoming`]
    /// returns. At most `most` may wait at a time; further COOKIE ECHOs are not answered, and peers
    /// retransmit them by T1-cookie (RFC 9260 §5.1 C). 0, the default: all are accepted while the
    /// endpoint listens. The caller should drain `poll_transmit` afterwards.
    ///
    /// Peers that are already waiting are refused: the first 64 by an ABORT immediately. The others
    /// are not answered now; when they retransmit their COOKIE ECHO, the new setting applies to
    /// them as to new peers.
    pub fn decide_incoming(&mut self, most: usize) {
        let former = self.undecided.take();
        for held in former.into_iter().flat_map(|it| it.held) {
            self.refuse_held(&held, &Refusal::Plain);
        }
        self.undecided = (most > 0).then(|| Box::new(PendingIncoming::new(most)));
    }

    /// Next waiting peer that was not returned before.
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        let undecided = self.undecided.as_mut()?;
        let held = undecided.held.iter_mut().find(|it| !it.told)?;
        held.told = true;
        Some(held.incoming.clone())
    }

    /// Whether [`Endpoint::poll_incoming`] would return a peer.
    pub fn has_incoming(&self) -> bool {
        let undecided = self.undecided.as_ref();
        undecided.is_some_and(|it| it.held.iter().any(|held| !held.told))
    }

    fn refuse_held(&mut self, held: &HeldCookieEcho, refusal: &Refusal) {
        let reason;
        let causes: &[Cause] = match refusal {
            Refusal::Plain => &[],
            Refusal::OutOfResource => &[Cause::OutOfResource],
            Refusal::Reason(said) => {
                let said = said.slice(..said.len().min(MAX_REASON));
                reason = [Cause::UserInitiatedAbort { reason: said }];
                &reason
            }
        };
        let abort = Abort {
            tag_reflected: false,
            causes: Causes::of(causes),
        };
        self.answer(held.arrival, held.peer_tag, &[&abort]);
    }
}
