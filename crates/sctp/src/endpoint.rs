//! An SCTP endpoint: one port, its addresses, and all associations of that port (RFC 9260 §1.2).

mod address_changes;
mod answers;
mod authentication;
mod connect;
mod cookie_echo;
mod deliver;
mod dtls;
mod icmp;
mod incoming;
mod init;
mod init_ack;
mod keyed;
mod line;
mod out_of_the_blue;
mod racing;
mod shard;
mod shares;
mod sharing;
mod table;

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
use crate::discard::{Discard, Discards};
use crate::event::Event;
use crate::extensions::AUTH;
use crate::lazy_box::LazyBox;
use crate::random::Random;
use crate::timer::Timers;
use answers::{Answer, Answers, DynEncode};
pub use connect::ConnectOptions;
use incoming::Undecided;
pub use incoming::{Gone, Incoming, Refusal};
use racing::Racers;
use retired::RetiredTags;
pub use shard::ShardPeers;
use shares::Shares;
use table::{Table, Way};

mod outgoing;
mod retired;
mod slots;

/// Answers without an association that wait to be sent. A driver that drains `poll_transmit` leaves room for each packet's
/// answer; beyond this, packets go unanswered.
const MAX_ANSWERS: usize = 64;
/// Associations that an endpoint accepts by default.
const DEFAULT_MAX_ASSOCIATIONS: usize = 65_536;

/// A packet's surroundings.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now: Nanos,
    path: Path,
    /// The peer's UDP port; 0 if it came without UDP.
    udp_port: u16,
    ecn: Ecn,
    /// Its checksum is zero, and was not looked at.
    without: bool,
    /// It was in a DTLS chunk.
    protected: bool,
    header: CommonHeader,
}

/// Who a packet was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// This association took it.
    Association(AssociationId),
    /// It is for the shard of this number ([`ShardPeers`]); nothing was done with it here. If that one finds it to be for a third, the peer
    /// has begun again there meanwhile.
    Shard(u32),
    /// No association took it. It may have been answered.
    None,
}

/// One SCTP port and its associations, without I/O.
///
/// # The order of calls
/// A driver repeats, with a time that does not go back:
///
/// 1. one call in: [`handle_datagram`](Transport::handle_datagram), [`handle_timeout`](Transport::handle_timeout), or any method of the
///    endpoint or of an [`Association`] that changes something;
/// 2. [`poll_transmit`](Transport::poll_transmit), or [`Endpoint::poll_transmit_batch`], until there is no packet;
/// 3. [`Endpoint::poll_ready`] until no association is ready, and of each [`Association::poll_output`] until there is none, or, of a user
///    without messages, [`Endpoint::poll_event`]. What the user does then (to send an answer, to close) is a call of step 1, after which step 2
///    comes again; so is to take a message, since that opens the receive window;
/// 4. [`poll_timeout`](Transport::poll_timeout): when to call `handle_timeout` next, if nothing comes before. Each call may change it.
///
/// The example at the [front](crate) does so. A time before one that it was given already is taken as that one: a clock that is set back
/// stands still.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    port: u16,
    random: Random,
    jar: CookieJar,
    /// Associations that peers may begin yet.
    may_begin: usize,
    answers_for_other_ports: bool,
    max_associations: usize,
    /// While there are as many.
    shares: Option<Box<Shares>>,
    /// Present where the user decides who is accepted.
    undecided: Option<Box<Undecided>>,
    racers: Racers,
    table: Table,
    timers: Timers,
    answers: Answers,
    retired: LazyBox<RetiredTags>,
    discards: Discards,
    /// The slot of the association that took the last packet.
    taken: Option<u32>,
    /// The latest time that was told.
    latest: Nanos,
}

impl Endpoint {
    /// An endpoint at `port` with the addresses of `config`. All it ever draws comes from `seed`: give it 32 secret random
    /// bytes where strangers can send packets, and the same bytes again to repeat a run.
    ///
    /// # Errors
    /// A setting that no association could work with; see [`Config::check`].
    pub fn new(config: Config, port: u16, seed: [u8; 32]) -> Result<Self, ConfigError> {
        Ok(Self::sharing(config.checked()?, port, seed))
    }

    /// As [`Endpoint::new`], with settings that may be other endpoints', too: for who makes many endpoints, each of which else checks
    /// settings of its own and keeps them.
    pub fn sharing(config: CheckedConfig, port: u16, seed: [u8; 32]) -> Self {
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
            racers: Racers::default(),
            table: Table::new(peers),
            timers: Timers::default(),
            answers: Answers::default(),
            retired: LazyBox::default(),
            discards: Discards::default(),
            taken: None,
            latest: 0,
        }
    }

    /// The time, which never goes back here: where the driver's clock does, it stands still until that has caught up.
    fn at(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes this host's addresses ([`Config::addresses`]) for associations that begin from now on. Those that are up keep theirs:
    /// see [`Association::change_addresses`].
    ///
    /// # Errors
    /// An address that is not unicast, or stands twice; nothing changes then.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) -> Result<(), ConfigError> {
        let config = (*self.config).clone().with(|it| {
            it.preferred_address = it.preferred_address.filter(|it| addresses.contains(it));
            it.addresses = addresses;
        });
        self.config = config.checked()?.0;
        Ok(())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Accepts associations that peers begin, or stops accepting them.
    pub fn listen(&mut self, accept: bool) {
        self.listen_for(if accept { usize::MAX } else { 0 });
    }

    /// Accepts so many associations more that peers begin, and then stops accepting them: for a backlog, which peers would pass who come at
    /// the same time. Those that the user decides on ([`Endpoint::accept_incoming`]) do not count.
    pub fn listen_for(&mut self, most: usize) {
        self.may_begin = most;
    }

    /// Answers packets for other ports as belonging to no association (RFC 9260 §8.4): nobody else hears them. At first they
    /// are left to others.
    pub fn answer_for_other_ports(&mut self, answer: bool) {
        self.answers_for_other_ports = answer;
    }

    /// The most associations there may be at a time for peers to begin one more; 65,536 at first. Where there are as many, and an address (of IPv6, its
    /// first 64 bits) has more than an eighth of them, one of these ends for another peer ([`CloseReason::Displaced`](crate::CloseReason::Displaced)): first such over which
    /// nothing came since the handshake.
    pub fn set_max_associations(&mut self, most: usize) {
        self.max_associations = most;
    }

    /// The association of that name, until it is released.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(self.table.slot_of(id)?)
    }

    /// As [`Self::association`], to use it. Afterwards drain `poll_transmit` and `poll_event`.
    #[inline]
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let slot = self.table.slot_of(id)?;
        self.table.touch(slot);
        self.table.get_mut(slot)
    }

    /// Every association that was not released, oldest slot first.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.table.ids()
    }

    /// Forgets an association that is closed, and what of it was not read. `false` if it is not closed, or not known.
    pub fn release(&mut self, id: AssociationId) -> bool {
        let Some(slot) = self.table.slot_of(id) else {
            return false;
        };
        match self.table.get(slot) {
            Some(association) if association.is_closed() && !association.has_last_words() => {
                self.timers.set(slot, None);
                // Its tag is remembered when it is next asked what it has to send, which it is no more.
                if self.table.is_findable(slot) {
                    self.retire(self.latest, slot);
                }
                self.table.remove(slot);
                true
            }
            _ => false,
        }
    }

    /// The next association that has output which it did not have when it was last given here. To take output, and no other use: see
    /// [`Endpoint::association_mut`].
    #[inline]
    pub fn poll_ready(&mut self) -> Option<(AssociationId, &mut Association)> {
        self.table.next_to_tell()?;
        self.next_ready()
    }

    #[inline(never)]
    fn next_ready(&mut self) -> Option<(AssociationId, &mut Association)> {
        while let Some(slot) = self.table.next_to_tell() {
            self.table.told();
            let association = self.table.get_mut(slot);
            // Most are here because they were used, and have nothing new.
            if association.is_some_and(Association::take_news) {
                let id = self.table.id_of(slot);
                return self.table.get_mut(slot).map(|it| (id, it));
            }
        }
        None
    }

    /// The next event of any association, and whose it is; messages are left. In order with them are events that are read by
    /// [`Association::poll_output`].
    #[inline]
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        self.table.next_to_tell()?;
        self.next_event()
    }

    #[inline(never)]
    fn next_event(&mut self) -> Option<(AssociationId, Event)> {
        while let Some(slot) = self.table.next_to_tell() {
            if let Some(association) = self.table.get_mut(slot) {
                if let Some(event) = association.poll_event() {
                    return Some((self.table.id_of(slot), event));
                }
                association.take_news();
            }
            self.table.told();
        }
        None
    }

    /// What was thrown away so far, by reason.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// The association whose peer was shown to be there (RFC 9260 §5.4), unless it is closed already.
    #[inline(never)] // one for all who ask
    fn live(&mut self, port: u16, address: IpAddr) -> Option<u32> {
        let slot = self.table.find(port, address)?;
        if self
            .table
            .get(slot)
            .is_some_and(|association| !association.is_closed())
        {
            return Some(slot);
        }
        self.table.detach(slot);
        None
    }

    /// Queues a packet of one chunk that belongs to no association, back to where `arrival` came from.
    fn answer(&mut self, arrival: Arrival, verification_tag: u32, chunks: &[&dyn DynEncode]) {
        let limit = self.config.max_packet(arrival.path.remote);
        self.answer_within(limit, arrival, verification_tag, chunks);
    }

    /// The same, in a packet of at most so many bytes.
    fn answer_within(
        &mut self,
        limit: usize,
        arrival: Arrival,
        verification_tag: u32,
        chunks: &[&dyn DynEncode],
    ) {
        if self.answers.len() >= MAX_ANSWERS {
            return self.discards.count(Discard::Overload);
        }
        let header = arrival.header_of_answer(verification_tag);
        let all: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        // No more memory than it takes: it may wait.
        let limit = limit.min(COMMON_HEADER + all);
        let mut out = BytesMut::with_capacity(limit);
        let mut packet = PacketBuilder::new(&mut out, header, limit);
        for chunk in chunks {
            if chunk.push_to(&mut packet).is_err() {
                return self.discards.count(Discard::Overload);
            }
        }
        packet.finish(self.config.checksum);
        self.queue_answer(arrival, out);
    }

    /// The same, of chunks that stand in `packet` behind place for the common header.
    fn answer_with(&mut self, arrival: Arrival, verification_tag: u32, mut packet: BytesMut) {
        let header = arrival.header_of_answer(verification_tag);
        let has_room = self.answers.len() < MAX_ANSWERS;
        let whole = PacketBuilder::around(&mut packet, header).ok();
        let Some(whole) = whole.filter(|_| has_room) else {
            return self.discards.count(Discard::Overload);
        };
        whole.finish(self.config.checksum);
        self.queue_answer(arrival, packet);
    }

    fn queue_answer(&mut self, arrival: Arrival, packet: BytesMut) {
        self.answers.push(Answer {
            path: arrival.path,
            udp_port: arrival.udp_port,
            packet: packet.freeze(),
        });
    }
}

impl Arrival {
    fn header_of_answer(&self, verification_tag: u32) -> CommonHeader {
        CommonHeader {
            // Ours, or another that nobody has.
            source_port: self.header.destination_port,
            destination_port: self.header.source_port,
            verification_tag,
        }
    }
}

/// Packets inside UDP (RFC 6951). A driver that knows of no UDP uses [`Transport`] alone.
impl Endpoint {
    /// As [`Transport::handle_datagram`], for a packet that came inside UDP from the peer's port `udp_port`, or right
    /// above IP (0), and lies at `range` within what was received by one call. User data that is kept becomes slices of the whole block. The
    /// port is followed only where the packet's verification tag fits the association (RFC 6951 §5.4); what belongs to none is answered to
    /// where it came from.
    ///
    /// Gives the association that took the packet: it has that association's verification tag, or made it. A driver under load distinguishes
    /// by it the packets of peers from those of strangers.
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
        // Whose packet it is tells whether it may go without (RFC 9653 §5.3).
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
        let way = Way {
            header: packet.header,
            udp_port,
            path,
        };
        if !without && self.take_again(now, ecn, &way, &packet) {
            return;
        }
        let elsewhere = packet.header.destination_port != self.port;
        if elsewhere && !self.answers_for_other_ports {
            return self.discards.count(Discard::Port);
        }
        if !is_unicast(path.remote) || path.local.is_multicast() {
            return self.discards.count(Discard::NotUnicast);
        }
        let mut chunks = packet.chunks();
        let first = match chunks.next_frame() {
            Some(Ok(first)) => first,
            _ => return self.discards.count(Discard::ChunkLength),
        };
        // Also where no association is known whose tag it should have (RFC 9260 §8.5.1 A).
        if packet.header.verification_tag == 0 && first.kind != kind::INIT {
            return self.discards.count(Discard::ZeroTag);
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
            return self.discards.count(Discard::ZeroChecksum);
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
                // What it then needs is known after it has sent.
                self.table.touch(slot);
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // Whoever takes one packet at a time comes here once more for each.
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

fn reason_of(error: PacketError) -> Discard {
    match error {
        PacketError::TooShort { .. } | PacketError::NoChunk => Discard::Malformed,
        PacketError::BadChecksum => Discard::Checksum,
        PacketError::PortZero => Discard::Port,
    }
}
