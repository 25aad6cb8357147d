//! SCTP endpoint: one port, its addresses, and all associations of that port (RFC 9260 §1.2).

mod asconf;
mod association_event;
mod association_table;
mod association_view;
mod authentication;
mod connect;
mod cookie_echo;
mod demux;
mod detached;
mod dtls;
mod happy_eyeballs;
mod icmp;
mod incoming;
mod init;
mod init_ack;
mod intrusive_queue;
mod out_of_the_blue;
mod shard;
mod sharding;
mod shares;
mod siphash_map;
mod stateless_replies;

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use anabranch_wire::checksum;
use anabranch_wire::chunk::kind;
use anabranch_wire::packet::{
    COMMON_HEADER, Checksum, CommonHeader, Packet, PacketBuilder, PacketError,
};
use bytes::{Bytes, BytesMut};

use crate::address::is_unicast;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::config::{CheckedConfig, Config, ConfigError, ZeroChecksum};
use crate::cookie::CookieJar;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::Event;
use crate::extensions::AUTH;
use crate::lazy_box::LazyBox;
use crate::random::Random;
use crate::timer::Timers;
pub use association_event::AssociationEvent;
use association_table::{AssociationTable, FlowKey};
pub use connect::ConnectOptions;
pub use detached::{DetachError, DetachedAssociation, EndpointEvent};
use happy_eyeballs::ConnectAttempts;
use incoming::PendingIncoming;
pub use incoming::{Incoming, IncomingGone, Refusal};
use retired_tags::RetiredTags;
pub use shard::ShardPeers;
use shares::Shares;
use stateless_replies::{DynEncode, ReplyQueue, StatelessReply};

mod retired_tags;
mod slab;
mod transmit;

/// Maximum number of queued stateless replies. If the queue is full, packets without an association
/// are not answered. A driver that drains `poll_transmit` after each packet never fills it.
const MAX_REPLIES: usize = 64;
/// Default maximum number of associations.
const DEFAULT_MAX_ASSOCIATIONS: usize = 65_536;

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now: Nanos,
    path: Path,
    /// Peer's UDP port; 0 without UDP encapsulation.
    udp_port: u16,
    ecn: Ecn,
    /// Whether the checksum of the packet is zero and was not verified.
    without: bool,
    /// Whether the packet was inside a DTLS chunk.
    protected: bool,
    header: CommonHeader,
}

/// Which association or shard received a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// This association processed it.
    Association(AssociationId),
    /// The packet belongs to the shard with this number ([`ShardPeers`]), and was not processed by
    /// this endpoint. If that shard returns a third shard, the peer has since restarted on the
    /// third shard.
    Shard(u32),
    /// No association processed the packet. It may have been answered statelessly.
    None,
}

/// An SCTP port and its associations, without I/O.
///
/// # Order of calls
/// A driver repeats, with a time that does not decrease:
///
/// 1. one input: [`handle_datagram`](Transport::handle_datagram),
///    [`handle_timeout`](Transport::handle_timeout), or any method of the endpoint or of an
///    [`Association`] that changes state;
/// 2. [`poll_transmit`](Transport::poll_transmit), or [`Endpoint::poll_transmit_batch`], until
///    there is no packet;
/// 3. [`Endpoint::poll_ready`] until no association is ready, and for each of them
///    [`Association::poll_output`] until it returns `None`, or, for a user without messages,
///    [`Endpoint::poll_event`]. If the user reacts by a call that changes state, such as sending or
///    closing, the driver continues with step 2. Taking a message is such a call, because it opens
///    the receive window;
/// 4. [`poll_timeout`](Transport::poll_timeout): the time of the next `handle_timeout`, if no other
///    input comes first. Each call may change this time.
///
/// The example in the [crate documentation](crate) shows this loop. If a time is less than the
/// previous one, because the clock was set back, the previous time is used.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    port: u16,
    random: Random,
    jar: CookieJar,
    /// Number of further associations that peers may start.
    may_begin: usize,
    answers_for_other_ports: bool,
    max_associations: usize,
    /// Number of associations of each peer address; present while the maximum number of
    /// associations is reached.
    shares: Option<Box<Shares>>,
    /// Incoming associations that wait for the user's decision; `None` if all are accepted.
    undecided: Option<Box<PendingIncoming>>,
    connect_attempts: ConnectAttempts,
    table: AssociationTable,
    timers: Timers,
    replies: ReplyQueue,
    retired: LazyBox<RetiredTags>,
    discards: DiscardCounts,
    /// Slot of the association that processed the last packet.
    taken: Option<u32>,
    /// Latest time passed to the endpoint.
    latest: Nanos,
}

impl Endpoint {
    /// Creates an endpoint at `port` with the addresses of `config`. All its random numbers are
    /// derived from `seed`: it must be 32 secret random bytes if untrusted hosts can send packets,
    /// and the same bytes repeat a run.
    ///
    /// # Errors
    /// An invalid setting; see [`Config::check`].
    pub fn new(config: Config, port: u16, seed: [u8; 32]) -> Result<Self, ConfigError> {
        Ok(Self::with_shared_config(config.checked()?, port, seed))
    }

    /// Like [`Endpoint::new`], with settings that are shared with other endpoints. The settings are
    /// validated and stored only once, which saves time and memory if there are many endpoints.
    pub fn with_shared_config(config: CheckedConfig, port: u16, seed: [u8; 32]) -> Self {
        let mut random = Random::new(seed);
        let [cookies, peers] = random.keys();
        Self {
            config: config.0,
            port,
            random,
            jar: CookieJar::new(cookies),
            may_begin: 0,
            answers_for_other_ports: false,
            max_associations: DEFAULT_MAX_ASSOCIATIONS,
            shares: None,
            undecided: None,
            connect_attempts: ConnectAttempts::default(),
            table: AssociationTable::new(peers),
            timers: Timers::default(),
            replies: ReplyQueue::default(),
            retired: LazyBox::default(),
            discards: DiscardCounts::default(),
            taken: None,
            latest: 0,
        }
    }

    /// Monotonic version of the driver's time `now`: the latest time is used if `now` is less.
    fn at(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Settings of the endpoint.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the settings of future associations. Existing associations keep theirs. The AUTH
    /// parameters of an INIT ACK that was sent before the change stay valid for its COOKIE ECHO,
    /// but if AUTH or the DTLS chunk is required now, the INIT ACK must have offered it.
    ///
    /// # Errors
    /// An invalid setting; see [`Config::check`]. After an error the settings are unchanged.
    pub fn change_config(&mut self, change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let config = (*self.config).clone().with(change);
        self.config = config.checked()?.0;
        Ok(())
    }

    /// Changes the local addresses ([`Config::addresses`]) of future associations. Existing
    /// associations keep their addresses: see [`Association::change_addresses`].
    ///
    /// # Errors
    /// An address is not unicast, or is duplicated. After an error the addresses are unchanged.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) -> Result<(), ConfigError> {
        self.change_config(|it| {
            it.preferred_address = it.preferred_address.filter(|it| addresses.contains(it));
            it.addresses = addresses;
        })
    }

    /// Port of the endpoint.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts or stops accepting incoming associations.
    pub fn listen(&mut self, accept: bool) {
        self.set_backlog(if accept { usize::MAX } else { 0 });
    }

    /// Accepts this number of further incoming associations, and then stops. A server can thereby
    /// enforce its backlog even if many peers connect at the same time. Associations that the user
    /// decides about ([`Endpoint::decide_incoming`]) do not count.
    pub fn set_backlog(&mut self, most: usize) {
        self.may_begin = most;
    }

    /// Sets whether packets for other ports are answered as out of the blue (RFC 9260 §8.4). Enable
    /// this for an endpoint that is the only SCTP stack of its host. By default INITs for other
    /// ports are ignored.
    pub fn answer_unknown_ports(&mut self, answer: bool) {
        self.answers_for_other_ports = answer;
    }

    /// Sets the number of associations above which no incoming association is accepted; 65,536 by
    /// default. If this number is reached, and one peer address (for IPv6, its first 64 bits) has
    /// more than an eighth of the associations, one of its associations is closed to make space for
    /// another peer ([`CloseReason::Displaced`](crate::CloseReason::Displaced)). Associations that
    /// have received no packet since the handshake are closed first.
    pub fn set_max_associations(&mut self, most: usize) {
        self.max_associations = most;
    }

    /// Association with this identifier, until it is released or detached.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(self.table.slot_of(id)?)
    }

    /// Mutable access to an association: see [`Self::association`]. The caller should drain
    /// `poll_transmit` and `poll_event` afterwards.
    #[inline]
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let slot = self.table.slot_of(id)?;
        self.table.touch(slot);
        self.table.get_mut(slot)
    }

    /// All associations that were neither released nor detached, by ascending slot.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.table.ids()
    }

    /// Releases a closed association and discards its unread messages. Returns `false` if the
    /// association is not closed, or is unknown.
    pub fn release(&mut self, id: AssociationId) -> bool {
        let Some(slot) = self.table.slot_of(id) else {
            return false;
        };
        match self.table.get(slot) {
            Some(association) if association.is_closed() && !association.has_last_words() => {
                self.timers.set(slot, None);
                // Record the tag here, because a closed association may not be polled for packets
                // again.
                if self.table.is_findable(slot) {
                    self.retire(self.latest, slot);
                }
                self.table.remove(slot);
                true
            }
            _ => false,
        }
    }

    /// Next association that has new output since this method last returned it. The caller should
    /// drain `poll_transmit` after it has taken messages, because this opens the receive window.
    #[inline]
    pub fn poll_ready(&mut self) -> Option<(AssociationId, &mut Association)> {
        self.table.next_ready()?;
        self.next_ready()
    }

    #[inline(never)]
    fn next_ready(&mut self) -> Option<(AssociationId, &mut Association)> {
        while let Some(slot) = self.table.next_ready() {
            self.table.pop_ready();
            let association = self.table.get_mut(slot);
            // Every access that may cause output queues its association, so most queued
            // associations have no new output.
            if association.is_some_and(Association::take_news) {
                self.table.sends(slot);
                let id = self.table.id_of(slot);
                return self.table.get_mut(slot).map(|it| (id, it));
            }
        }
        None
    }

    /// Next event of any association, with the identifier of the association; messages stay queued.
    /// [`Association::poll_output`] returns events in order with the messages.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        self.table.next_ready()?;
        match self.find_event() {
            true => self.next_event(),
            false => None,
        }
    }

    /// Finds an association with an event, and makes it the first in the queue; returns `false` if
    /// there is none. This function is separate from [`Self::next_event`], because most queued
    /// associations have only messages.
    #[inline(never)]
    fn find_event(&mut self) -> bool {
        while let Some(slot) = self.table.next_ready() {
            if let Some(association) = self.table.get_mut(slot) {
                if association.has_event() {
                    return true;
                }
                association.take_news();
            }
            self.table.pop_ready();
        }
        false
    }

    #[inline(never)]
    fn next_event(&mut self) -> Option<(AssociationId, Event)> {
        let slot = self.table.next_ready()?;
        let event = self.table.get_mut(slot)?.poll_event()?;
        Some((self.table.id_of(slot), event))
    }

    /// Counters of discarded packets and chunks, by reason.
    pub fn discards(&self) -> &DiscardCounts {
        &self.discards
    }

    /// Open association whose peer has verified this address (RFC 9260 §5.4).
    #[inline(never)] // one copy for all callers
    fn live(&mut self, port: u16, address: IpAddr) -> Option<u32> {
        let slot = self.table.find(port, address)?;
        self.table.lives(slot).then_some(slot)
    }

    /// Queues a stateless reply with these chunks to the source of `arrival`.
    fn answer(&mut self, arrival: Arrival, verification_tag: u32, chunks: &[&dyn DynEncode]) {
        let limit = self.config.max_packet(arrival.path.remote);
        self.answer_within(limit, arrival, verification_tag, chunks);
    }

    /// Sends an answer like [`Self::answer`], in a packet of at most `limit` bytes.
    fn answer_within(
        &mut self,
        limit: usize,
        arrival: Arrival,
        verification_tag: u32,
        chunks: &[&dyn DynEncode],
    ) {
        if self.replies.len() >= MAX_REPLIES {
            return self.discards.count(DiscardReason::RateLimited);
        }
        let header = arrival.header_of_answer(verification_tag);
        let all: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        // Allocate only the needed size, because the packet may be queued for some time.
        let limit = limit.min(COMMON_HEADER + all);
        let mut out = BytesMut::with_capacity(limit);
        let mut packet = PacketBuilder::new(&mut out, header, limit);
        for chunk in chunks {
            if chunk.push_to(&mut packet).is_err() {
                return self.discards.count(DiscardReason::RateLimited);
            }
        }
        packet.finish(self.config.checksum);
        self.queue_answer(arrival, out);
    }

    /// Sends an answer like [`Self::answer`]; `packet` contains the chunks, after space for the
    /// common header.
    fn answer_with(&mut self, arrival: Arrival, verification_tag: u32, mut packet: BytesMut) {
        let header = arrival.header_of_answer(verification_tag);
        let has_room = self.replies.len() < MAX_REPLIES;
        let whole = PacketBuilder::around(&mut packet, header).ok();
        let Some(whole) = whole.filter(|_| has_room) else {
            return self.discards.count(DiscardReason::RateLimited);
        };
        whole.finish(self.config.checksum);
        self.queue_answer(arrival, packet);
    }

    fn queue_answer(&mut self, arrival: Arrival, packet: BytesMut) {
        self.replies.push(StatelessReply {
            path: arrival.path,
            udp_port: arrival.udp_port,
            packet: packet.freeze(),
        });
    }
}

impl Arrival {
    fn header_of_answer(&self, verification_tag: u32) -> CommonHeader {
        CommonHeader {
            // Reply from the port to which the packet was sent, even if it is unused.
            source_port: self.header.destination_port,
            destination_port: self.header.source_port,
            verification_tag,
        }
    }
}

/// UDP encapsulation (RFC 6951). A driver without it only needs [`Transport`].
impl Endpoint {
    /// Like [`Transport::handle_datagram`], for a packet in UDP from the peer's port `udp_port`, or
    /// directly over IP (0). The packet is at `range` within a block received by one system call.
    /// Received user data refers to the whole block without a copy. The port is updated only if the
    /// packet's verification tag matches the association (RFC 6951 §5.4); packets without an
    /// association are answered to their source.
    ///
    /// Returns the association that processed the packet: the packet has the association's
    /// verification tag, or has created the association. A driver under load can use the result to
    /// distinguish packets of peers from packets of unknown sources.
    ///
    /// # Panics
    /// `range` is not within the block.
    pub fn handle_udp_datagram(
        &mut self,
        now: Nanos,
        path: Path,
        udp_port: u16,
        ecn: Ecn,
        (block, range): (&Bytes, Range<usize>),
    ) -> Recipient {
        self.taken = None;
        self.table.shard().take_misrouted();
        self.handle_packet(now, path, udp_port, ecn, (block, &block[range]));
        match self.taken {
            Some(slot) => Recipient::Association(self.table.id_of(slot)),
            None => (self.table.shard().take_misrouted()).map_or(Recipient::None, Recipient::Shard),
        }
    }

    fn handle_packet(
        &mut self,
        now: Nanos,
        path: Path,
        udp_port: u16,
        ecn: Ecn,
        (block, datagram): (&Bytes, &[u8]),
    ) {
        let now = self.at(now);
        // The association determines whether the checksum may be missing (RFC 9653 §5.3).
        let without = self.config.checksum
            && self.config.zero_checksum != ZeroChecksum::Off
            && checksum::is_zero(datagram);
        let checksum = if self.config.checksum && !without {
            Checksum::Verify
        } else {
            Checksum::Ignore
        };
        let packet = match Packet::within(block, datagram, checksum) {
            Ok(packet) => packet,
            Err(error) => return self.discards.count(reason_of(error)),
        };
        let way = FlowKey {
            header: packet.header,
            udp_port,
            path,
        };
        if !without && self.deliver_to_last_flow(now, ecn, &way, &packet) {
            return;
        }
        let elsewhere = packet.header.destination_port != self.port;
        if elsewhere && !self.answers_for_other_ports {
            return self.discards.count(DiscardReason::Port);
        }
        if !is_unicast(path.remote) || path.local.is_multicast() {
            return self.discards.count(DiscardReason::NotUnicast);
        }
        let mut chunks = packet.chunks();
        let first = match chunks.next_frame() {
            Some(Ok(first)) => first,
            _ => return self.discards.count(DiscardReason::ChunkLength),
        };
        // The tag is checked even if no association matches (RFC 9260 §8.5.1 A).
        if packet.header.verification_tag == 0 && first.kind != kind::INIT {
            return self.discards.count(DiscardReason::ZeroTag);
        }
        let arrival = Arrival {
            now,
            path,
            udp_port,
            ecn,
            without,
            protected: false,
            header: packet.header,
        };
        if without
            && (elsewhere || matches!(first.kind, kind::INIT | kind::COOKIE_ECHO))
            && !packet.is_intact()
        {
            return self.discards.count(DiscardReason::ZeroChecksum);
        }
        if matches!(first.kind, kind::COOKIE_ECHO | kind::AUTH)
            && let Some(undecided) = &mut self.undecided
        {
            undecided.note(&block.slice_ref(datagram));
        }
        match first.kind {
            _ if elsewhere => self.for_another_port(arrival, first.to_raw(), &packet),
            kind::INIT => self.on_init(arrival, first.to_raw(), chunks),
            kind::COOKIE_ECHO => self.on_cookie_echo(arrival, first.value(), chunks, None),
            kind::AUTH if (AUTH.wanted)(&self.config) => {
                self.on_auth(arrival, first, chunks, &packet);
            }
            kind::DTLS => self.on_dtls(arrival, first, chunks, &packet),
            _ => self.dispatch(arrival, first, chunks, &packet),
        }
    }
}

impl Transport for Endpoint {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.handle_packet(now, path, 0, ecn, (&datagram, &datagram));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        let now = self.at(now);
        while let Some(slot) = self.timers.pop_due(now) {
            if let Some(association) = self.table.get_mut(slot) {
                association.handle_timeout(now);
                // Queue the association for output. Its next deadline is computed after its packets
                // were sent.
                self.table.touch(slot);
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // Returns early, because a caller that polls one packet at a time makes this call once per
        // packet.
        if self.has_nothing_to_send() {
            self.at(now);
            return None;
        }
        self.poll_one(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.timers.next()
    }
}

fn reason_of(error: PacketError) -> DiscardReason {
    match error {
        PacketError::TooShort { .. } | PacketError::NoChunk => DiscardReason::Malformed,
        PacketError::BadChecksum => DiscardReason::Checksum,
        PacketError::PortZero => DiscardReason::Port,
    }
}
