//! Sans-I/O connection with one peer: datagrams and time are passed in; datagrams and events are
//! polled.

mod poll;
mod rng;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{AssociationId, Endpoint, ZeroChecksum};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::channel::{ChannelId, ChannelOptions, Payload};
use crate::channels::{ChannelEvent, Channels, DtlsRole, Limits, OpenError, SendError};
use crate::close::Closed;
use crate::config::Config;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::dtls::{Dtls, MAX_DATAGRAM, OVERHEAD};
use crate::ice::Lite;
use crate::identity::{Identity, IdentityError};
use crate::sdp::{Local, Offer, SCTP_PORT, SdpError};

pub use rng::RandomSeed;

/// Placeholder addresses of the two ends, because SCTP inside DTLS sees no IP addresses (RFC 8261
/// §6.1).
const LOCAL_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const REMOTE_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
/// Size of an IPv4 header, bytes. The association includes it in its MTU, although packets inside
/// DTLS have no IP header.
const IP_HEADER: usize = 20;
/// Limit on the memory of unpolled channel events with their messages, bytes. While it is exceeded,
/// no more messages are read from the association.
const MAX_UNREAD: usize = 1 << 20;

/// Events of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established, and channels can transfer messages.
    Connected,
    /// Event of a channel.
    Channel(ChannelEvent),
    /// The connection ended; the last event.
    Closed(Closed),
}

/// Reasons for which an offer is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The offer contains no valid data channel section.
    #[error("the offer: {0}")]
    Offer(#[from] SdpError),
    /// The certificate could not be created.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A setting is out of range.
    #[error("{name}: found {found}; allowed: at least {least}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Value of the setting.
        found: usize,
        /// Minimum value.
        least: usize,
    },
    /// DTLS or SCTP could not be set up.
    #[error("cannot set up the connection: {0}")]
    Setup(String),
}

/// A connection with one peer.
///
/// After each call, drain [`Connection::poll_transmit`] and [`Connection::poll_event`]. Then call
/// [`Connection::handle_timeout`] at the time that [`Connection::poll_timeout`] returns.
#[derive(Debug)]
pub struct Connection {
    role: DtlsRole,
    ice: Lite,
    dtls: Dtls,
    sctp: Endpoint,
    association: Option<AssociationId>,
    sctp_port: u16,
    channels: Channels,
    events: VecDeque<Event>,
    /// Memory of unpolled channel events, bytes.
    unread: usize,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    closed: bool,
    discards: DiscardCounts,
    packet: BytesMut,
}

impl Connection {
    /// Accepts an offer: returns the connection, and the answer for the peer. `address` is the
    /// address at which its datagrams are received; `origin` is the instant of time 0 for DTLS.
    ///
    /// # Errors
    /// Describes the fault in the offer.
    pub fn accept(
        offer: &str,
        config: &Config,
        identity: &Identity,
        secret: &RandomSeed,
        address: SocketAddr,
        (origin, now): (Instant, Nanos),
    ) -> Result<(Self, String), AcceptError> {
        if let Some((name, found, least)) = config.wrong() {
            return Err(AcceptError::Setting { name, found, least });
        }
        let offer = Offer::parse(offer)?;
        let ice = secret.credentials();
        let local = Local {
            address,
            ice: ice.clone(),
            fingerprint: identity.fingerprint(),
            max_message: config.max_message,
        };
        let answer = offer.answer(&local, secret.session());
        let setup = |error: &dyn std::fmt::Display| AcceptError::Setup(error.to_string());
        let at = (origin, now);
        let dtls = Dtls::new(at, identity, offer.role, offer.fingerprint, secret.dtls())
            .map_err(|error| setup(&error))?;
        let sctp = sctp_endpoint(config, secret).map_err(|error| setup(&error))?;
        let mut limits = Limits::of(config);
        limits.max_message = offer.max_message;
        let connection = Self {
            role: offer.role,
            ice: Lite::new(now, &ice, &offer.ice),
            dtls,
            sctp,
            association: None,
            sctp_port: offer.sctp_port,
            channels: Channels::new(offer.role, limits),
            events: VecDeque::new(),
            unread: 0,
            transmits: VecDeque::new(),
            closed: false,
            discards: DiscardCounts::default(),
            packet: BytesMut::new(),
        };
        Ok((connection, answer))
    }

    /// Processes a datagram from `from`, demultiplexed as in RFC 7983 §7. A discarded datagram must
    /// not change any state, because any host can send it.
    pub fn handle_datagram(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        if self.closed {
            return self.discards.count(DiscardReason::Late);
        }
        match datagram.first() {
            Some(0..=3) => match self.ice.handle(now, from, datagram) {
                Ok(answer) => self.transmits.push_back((from, answer.into())),
                Err(reason) => return self.discards.count(reason),
            },
            Some(20..=63) if self.ice.knows(from) => {
                let discards = &mut self.discards;
                match self.dtls.handle_datagram(now, datagram, discards) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(reason) => return self.end(reason),
                }
            }
            Some(20..=63) => return self.discards.count(DiscardReason::UncheckedAddress),
            _ => return self.discards.count(DiscardReason::NotOurs),
        }
        self.drive(now);
    }

    /// Runs the expired timers.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.closed {
            return;
        }
        if now >= self.ice.deadline() {
            return self.end(Closed::Consent);
        }
        // A DTLS client starts the handshake as soon as an address of the peer is known.
        if (self.role == DtlsRole::Server || self.ice.remote().is_some())
            && let Err(reason) = self.dtls.handle_timeout(now)
        {
            return self.end(reason);
        }
        self.sctp.handle_timeout(now);
        self.drive(now);
    }

    /// Latest time at which [`Connection::handle_timeout`] should be called.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.closed {
            return None;
        }
        let sctp = self.sctp.poll_timeout();
        let (dtls, turns) = (self.dtls.deadline(), self.channels.deadline());
        [Some(self.ice.deadline()), dtls, sctp, turns]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next datagram, and its destination.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.transmits.pop_front()
    }

    /// The next event. While 1 MiB of messages and other channel events is unpolled, no more
    /// messages are read from the association, so that its receive window slows down the peer.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Channel(event) = &event {
            self.unread -= event.held();
            self.channels.forget_polled(event);
        }
        Some(event)
    }

    /// Whether messages stay in the association until events are polled. If so,
    /// [`Connection::resume`] should be called after polling.
    pub fn is_held_back(&self) -> bool {
        self.unread >= MAX_UNREAD
    }

    /// Continues to read from the association after events were polled.
    pub fn resume(&mut self, now: Nanos) {
        self.drive(now);
    }

    /// Opens a channel, possibly before the connection is established.
    ///
    /// # Errors
    /// The channel cannot be opened.
    pub fn open(&mut self, now: Nanos, options: ChannelOptions) -> Result<ChannelId, OpenError> {
        let opened = self.channels.open(options);
        self.drive(now);
        opened
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Describes why the message was not accepted.
    pub fn send(&mut self, now: Nanos, id: ChannelId, payload: Payload) -> Result<(), SendError> {
        let sent = self.channels.send(now, id, payload);
        self.drive(now);
        sent
    }

    /// Closes a channel after its queued messages are sent.
    pub fn close_channel(&mut self, now: Nanos, id: ChannelId) {
        self.channels.close(id);
        self.drive(now);
    }

    /// The channels. The options of a channel are available until its last event is polled.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    pub(crate) fn channels_mut(&mut self) -> &mut Channels {
        &mut self.channels
    }

    /// Sets the low threshold of a channel's `bufferedAmount`, bytes.
    pub fn set_buffered_amount_low(&mut self, id: ChannelId, bytes: usize) {
        self.channels.set_buffered_amount_low(id, bytes);
    }

    /// Ends the connection: aborts the association and closes DTLS. Queued messages are lost.
    pub fn close(&mut self, now: Nanos) {
        if self.closed {
            return;
        }
        if let Some(association) = self
            .association
            .and_then(|id| self.sctp.association_mut(id))
        {
            // Fails if the association is already closed.
            let _ = association.abort(now, Bytes::new());
        }
        self.drive(now);
        self.end(Closed::Here);
    }

    /// Whether the connection ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Counters of discarded input, except the messages counted by [`Channels::discards`].
    pub fn discards(&self) -> &DiscardCounts {
        &self.discards
    }

    /// Whether SCTP packets are sent without a checksum, because the peer relies on DTLS to detect
    /// damaged packets (RFC 9653 §6).
    pub fn sends_zero_checksums(&self) -> bool {
        let association = self.association.and_then(|id| self.sctp.association(id));
        association.is_some_and(|it| it.negotiated().zero_checksum)
    }

    /// Whether both ends support I-DATA (RFC 8260), so that a large message does not delay messages
    /// of other channels.
    pub fn is_interleaving(&self) -> bool {
        let association = self.association.and_then(|id| self.sctp.association(id));
        association.is_some_and(|it| it.negotiated().interleaving)
    }

    /// SCTP statistics of this connection, once it is established.
    pub fn statistics(&self) -> Option<anabranch_sctp::stats::AssociationStatistics> {
        let association = self.sctp.association(self.association?)?;
        Some(association.stats())
    }
}

/// The endpoint inside DTLS (RFC 8831 §6.2), with the maximum number of streams and a suitable
/// packet size.
fn sctp_endpoint(
    config: &Config,
    secret: &RandomSeed,
) -> Result<Endpoint, anabranch_sctp::ConfigError> {
    let sctp = anabranch_sctp::Config::default().with(|it| {
        it.mtu = MAX_DATAGRAM - OVERHEAD + IP_HEADER;
        it.partial_reliability = true;
        // Closing channels requires RE-CONFIG (RFC 8831 §6.7). Resets of the whole association are
        // refused, because browsers do not request them.
        it.reconfiguration = true;
        it.accept_association_reset = false;
        it.zero_checksum = ZeroChecksum::Dtls;
        it.over_dtls = true;
        it.outbound_streams = u16::MAX;
        it.inbound_streams = u16::MAX;
        // Priorities are passed as weights (RFC 8831 §6.4): for fragments if the peer supports
        // I-DATA, and for messages if it does not.
        it.interleaving = config.interleaving;
        it.scheduler = SchedulerKind::WeightedFair;
        it.receive_buffer = 2 << 20;
        it.max_message = config.max_message;
        // A small send buffer suffices, because channels queue unsent messages themselves. It also
        // limits the data that the peer leaves unacknowledged.
        it.send_buffer = 4 << 20;
    });
    let mut endpoint = Endpoint::new(sctp, SCTP_PORT, secret.sctp())?;
    endpoint.listen(true);
    endpoint.set_max_associations(1);
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8261 §6.1: INIT has neither address parameters nor Supported Address Types.
    #[test]
    fn an_init_inside_dtls_says_nothing_of_addresses() {
        let secret = RandomSeed::new([1; 32]);
        let mut endpoint = sctp_endpoint(&Config::default(), &secret).unwrap();
        endpoint.connect(0, &[REMOTE_ADDRESS], SCTP_PORT).unwrap();
        let mut packet = BytesMut::new();
        Transport::poll_transmit(&mut endpoint, 0, &mut packet).unwrap();
        assert_eq!(packet[12], 1, "INIT");
        let mut kinds = Vec::new();
        let mut rest = &packet[32..];
        while let &[high, low, long, short, ..] = rest {
            kinds.push(u16::from_be_bytes([high, low]));
            let length = usize::from(u16::from_be_bytes([long, short]));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        let of_addresses = |kind: &u16| [5, 6, 11, 12].contains(kind);
        assert!(
            !kinds.is_empty() && !kinds.iter().any(of_addresses),
            "{kinds:?}"
        );
    }
}
