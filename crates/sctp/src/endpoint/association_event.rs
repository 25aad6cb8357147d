//! Events that an endpoint sends to its detached associations.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_dtls::KeyId;
use anabranch_transport::Nanos;
use bytes::Bytes;

use super::Arrival;
use super::association_view::AssociationView;
use crate::association_id::AssociationId;
use crate::config::Config;
use crate::cookie::Cookie;
use crate::icmp::{IcmpError, QuotedPacket};
use crate::lazy_box::IsEmpty;

/// Detached associations of an endpoint by slot, and the events for them.
#[derive(Debug, Default)]
pub(super) struct Detached {
    pub(super) views: BTreeMap<u32, AssociationView>,
    pub(super) events: VecDeque<(AssociationId, AssociationEvent)>,
}

impl IsEmpty for Detached {
    const EMPTY: &'static Self = &Self {
        views: BTreeMap::new(),
        events: VecDeque::new(),
    };

    fn is_empty(&self) -> bool {
        self.views.is_empty() && self.events.is_empty()
    }
}

/// Event for a [`DetachedAssociation`](super::DetachedAssociation) from its endpoint.
#[derive(Debug)]
pub struct AssociationEvent(pub(super) Input);

#[derive(Debug)]
pub(super) enum Input {
    Packet(Box<ForwardedPacket>),
    /// Packet with a COOKIE ECHO, the decoded cookie, and the endpoint's settings.
    CookieEcho(Box<ForwardedPacket>, Box<Cookie>, Arc<Config>),
    Icmp(Nanos, QuotedPacket, IcmpError),
    /// The unanswered control chunk should be retransmitted immediately.
    RepeatControl,
    /// The peer of another association has verified this address, which this association has not
    /// verified.
    Disown(IpAddr),
    /// This address belongs to another peer, even if this association has verified the address.
    Lose(IpAddr),
    /// Close this association to make space for another peer.
    Displace,
}

#[derive(Debug)]
pub(super) struct ForwardedPacket {
    pub(super) arrival: Arrival,
    /// Whether the association was found by the source of the packet.
    pub(super) by_source: bool,
    /// Keys that opened the packet, if it is the content of a DTLS chunk.
    pub(super) opened_by: Option<KeyId>,
    pub(super) bytes: Bytes,
}
