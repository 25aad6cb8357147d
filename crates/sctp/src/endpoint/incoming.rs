//! Associations that peers begin and whose acceptance the user decides.
//!
//! Nothing is kept at INIT (RFC 9260 §5.1.3). The peer has shown that it is where it says when its COOKIE ECHO comes back: only then
//! is something kept, the packet itself, and no answer is sent before the user has decided. Meanwhile the peer repeats it by
//! T1-cookie, which changes nothing. To accept is to take the packet as if it came now; to refuse is an ABORT, after which nothing
//! is kept: a repeat of the COOKIE ECHO is asked about again, so that a lost ABORT leaves no peer without an answer.

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
use crate::discard::Discard;

/// An association that a peer begins, and that waits for the user's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// Its number, by which it is decided on.
    pub number: u64,
    /// The peer's addresses: the first is where its COOKIE ECHO came from, which is verified; of the others it says that they are its own.
    pub addresses: Vec<IpAddr>,
    /// The peer's SCTP port.
    pub port: u16,
    /// The peer's UDP port; 0 if it came without UDP.
    pub udp_port: u16,
    /// This host's address that it came to.
    pub local: IpAddr,
    /// Streams this side may send on.
    pub outbound_streams: u16,
    /// Streams the peer may send on.
    pub inbound_streams: u16,
}

/// What a peer is told that is refused, by an ABORT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing more.
    #[default]
    Plain,
    /// Out of Resource (RFC 9260 §3.3.10.4): it may come again later.
    OutOfResource,
    /// User-Initiated Abort (RFC 9260 §3.3.10.12) with what the user says, of which 512 bytes are sent.
    Reason(Bytes),
}

/// The peer that waited for a decision is gone: it began anew, or its cookie is too old by now (RFC 9260 §5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer that waited to be accepted is gone")]
pub struct Gone;

/// One that waits.
#[derive(Debug)]
struct Held {
    incoming: Incoming,
    arrival: Arrival,
    local_tag: u32,
    peer_tag: u32,
    /// Until when its cookie is good.
    until: Nanos,
    packet: Bytes,
    told: bool,
}

/// All that wait.
#[derive(Debug)]
pub(super) struct Undecided {
    held: VecDeque<Held>,
    most: usize,
    last: u64,
    /// The packet that is being taken, if it may be of one who begins.
    at_hand: Bytes,
    /// The user has accepted the association of this tag.
    approved: Option<u32>,
    /// What came of that.
    accepted: Option<AssociationId>,
}

impl Undecided {
    /// Notes a packet that may have to be kept.
    pub fn note(&mut self, packet: &Bytes) {
        self.at_hand = packet.clone();
    }

    fn take(&mut self, number: u64) -> Option<Held> {
        let place = self
            .held
            .iter()
            .position(|it| it.incoming.number == number)?;
        self.held.remove(place)
    }

    /// Whether the peer of this cookie waits, or is accepted just now.
    pub fn knows(&self, cookie: &Cookie) -> bool {
        let tag = cookie.local_tag;
        self.approved == Some(tag) || self.held.iter().any(|it| it.local_tag == tag)
    }

    /// Whether an association of this cookie is made now. If not, its packet is kept, where there is room.
    pub fn approves(&mut self, arrival: Arrival, cookie: &Cookie) -> Result<(), Option<Discard>> {
        if self.approved == Some(cookie.local_tag) {
            return Ok(());
        }
        let packet = std::mem::take(&mut self.at_hand);
        if self.held.iter().any(|it| it.local_tag == cookie.local_tag) {
            return Err(Some(Discard::Undecided));
        }
        // Whoever begins anew waits once.
        let (remote, port) = (arrival.path.remote, cookie.remote_port);
        let same = |it: &Held| it.arrival.path.remote == remote && it.incoming.port == port;
        self.held.retain(|it| !same(it));
        if self.held.len() >= self.most {
            self.held.retain(|it| it.until >= arrival.now);
        }
        if self.held.len() >= self.most {
            return Err(Some(Discard::Overload));
        }
        self.last += 1;
        let others = cookie.peer_addresses.iter().copied();
        let others = others.filter(|&address| address != remote);
        let incoming = Incoming {
            number: self.last,
            addresses: std::iter::once(remote).chain(others).collect(),
            port,
            udp_port: arrival.udp_port,
            local: arrival.path.local,
            outbound_streams: cookie.outbound_streams,
            inbound_streams: cookie.inbound_streams,
        };
        self.held.push_back(Held {
            incoming,
            arrival,
            local_tag: cookie.local_tag,
            peer_tag: cookie.peer_tag,
            until: cookie.created_at.saturating_add(cookie.lifespan),
            // Of its own, so that it keeps no larger buffer alive.
            packet: Bytes::copy_from_slice(&packet),
            told: false,
        });
        Err(None)
    }

    /// What became of the association that was approved.
    pub fn note_accepted(&mut self, id: AssociationId) {
        self.accepted = Some(id);
    }
}

/// Peers that wait to be accepted.
impl Endpoint {
    /// Lets the user decide which associations that peers begin are accepted: [`Endpoint::poll_incoming`] tells of them. `most` may wait at
    /// a time; COOKIE ECHOs beyond it go unanswered, and peers come again by T1-cookie (RFC 9260 §5.1 C). 0: all are accepted while
    /// the endpoint listens, as at first; those that wait are forgotten.
    pub fn decide_incoming(&mut self, most: usize) {
        self.undecided = (most > 0).then(|| {
            Box::new(Undecided {
                held: VecDeque::new(),
                most,
                last: 0,
                at_hand: Bytes::new(),
                approved: None,
                accepted: None,
            })
        });
    }

    /// The next peer that waits and was not told of.
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        let undecided = self.undecided.as_mut()?;
        let held = undecided.held.iter_mut().find(|it| !it.told)?;
        held.told = true;
        Some(held.incoming.clone())
    }

    /// Whether [`Endpoint::poll_incoming`] has something to tell.
    pub fn has_incoming(&self) -> bool {
        let undecided = self.undecided.as_ref();
        undecided.is_some_and(|it| it.held.iter().any(|held| !held.told))
    }

    /// Accepts a peer that waits, whether or not the endpoint still listens. Afterwards drain `poll_transmit` and `poll_event`:
    /// [`Event::Established`](crate::Event::Established) comes first.
    ///
    /// # Errors
    /// It is gone, or there is no room for it: [`Endpoint::set_max_associations`].
    pub fn accept_incoming(&mut self, now: Nanos, number: u64) -> Result<AssociationId, Gone> {
        let undecided = self.undecided.as_mut().ok_or(Gone)?;
        let held = undecided.take(number).ok_or(Gone)?;
        (undecided.approved, undecided.accepted) = (Some(held.local_tag), None);
        let Arrival {
            path,
            udp_port,
            ecn,
            ..
        } = held.arrival;
        let packet = held.packet;
        self.handle_udp_datagram(now, path, udp_port, ecn, (&packet, 0..packet.len()));
        let undecided = self.undecided.as_mut().ok_or(Gone)?;
        undecided.approved = None;
        undecided.accepted.take().ok_or(Gone)
    }

    /// Refuses a peer that waits, or all of them, by an ABORT (RFC 9260 §9.1).
    ///
    /// # Errors
    /// It is gone.
    pub fn refuse_incoming(&mut self, number: Option<u64>, refusal: &Refusal) -> Result<(), Gone> {
        let undecided = self.undecided.as_mut().ok_or(Gone)?;
        let refused = match number {
            Some(number) => VecDeque::from([undecided.take(number).ok_or(Gone)?]),
            None => std::mem::take(&mut undecided.held),
        };
        for held in &refused {
            self.refuse_held(held, refusal);
        }
        Ok(())
    }

    fn refuse_held(&mut self, held: &Held, refusal: &Refusal) {
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
