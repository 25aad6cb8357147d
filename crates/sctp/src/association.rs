//! One association: the facade its user holds, and the state behind it.
//!
//! The procedures are files of their own and extend [`Association`]: handshake, shutdown and heartbeat. What a packet
//! does is in `association/receive.rs`, what goes out in `association/transmit.rs`, what time does in
//! `association/timers.rs`.

mod address_changes;
mod authentication;
mod common_out;
mod cookie_echo;
mod dtls;
mod ecn;
mod errands;
mod fast_path_rx;
mod heartbeat;
mod icmp;
mod interleaving;
mod lazy_receiver;
mod lifecycle;
mod negotiated;
mod other;
mod output;
mod pmtu;
mod pr_sctp;
mod receive;
mod receive_data;
mod reconfig;
mod rsctp;
mod runtime;
mod seen_by_endpoint;
mod shutdown;
mod status;
mod timers;
mod transmit;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_congestion::careful_resume::SavedParameters;
use anabranch_transport::{Nanos, ProbeSet, Sample, Trace};
use anabranch_wire::cause::Causes;
use anabranch_wire::chunk::HeartbeatCopy;
use anabranch_wire::encode::{Encode, padded};
use anabranch_wire::extension::{AsconfAck, ReConfigParameter};
use anabranch_wire::packet::CHUNK_HEADER;
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::TlvList;
use bytes::Bytes;

use ecn::Marks;
use errands::{Errand, Errands};
pub(crate) use fast_path_rx::FastPath;
use heartbeat::Verifying;
pub(crate) use lifecycle::{Ports, Terms};
pub use negotiated::Negotiated;
pub(crate) use receive::Admission;
pub(crate) use shutdown::MAX_REASON;
pub use status::AssociationStatus;

use crate::authentication::Authenticator;
use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::cookie::TieTags;
use crate::dtls_chunk::DtlsChunk;
use crate::event::{CloseReason, Event};
use crate::event_queue::EventQueue;
use crate::lazy_box::LazyBox;
use crate::path::{PathId, Paths};
use crate::pr_sctp::SendOptions;
use crate::random::CompactRandom;
use crate::rsctp::Rsctp;
use crate::rx::Receiver;
use crate::state::State;
use crate::state_name::StateName;
use crate::stats::{AssociationStatistics, ControlCounters};
use crate::tx::{LazySender, Message, SendError, Sender};
use crate::zero_checksum::Sums;

/// Answers that wait to be sent; a peer that asks for more than this at a time is not answered.
const MAX_REPLIES: usize = 32;
/// Errors reported by the peer that wait to be read by the user.
const MAX_PEER_ERRORS: usize = 16;

/// An SCTP association (RFC 9260 §1.2). It belongs to an [`Endpoint`](crate::Endpoint), which carries its packets.
///
/// After any method that takes the time, drain the endpoint's `poll_transmit` and `poll_event`.
#[derive(Debug)]
pub struct Association {
    config: Arc<Config>,
    local_port: u16,
    remote_port: u16,
    /// The tag in packets to us.
    local_tag: u32,
    tie_tags: TieTags,
    local_initial_tsn: Tsn,
    outbound_streams: u16,
    inbound_streams: u16,
    state: State,
    paths: Paths,
    /// Is made when it is first needed, mostly with the first message.
    tx: LazySender,
    /// What receives, or received: is made with the first DATA. It is there only if the peer is known, or was until the end.
    rx: Option<Box<Receiver>>,
    /// Where DATA last came from, and so where SACKs go (RFC 9260 §6.4).
    sack_path: PathId,
    cookie_ack: Option<PathId>,
    replies: LazyBox<VecDeque<Reply>>,
    /// Bytes of answers that the packet being taken may still draw, once it drew one: all fit one packet.
    reply_room: Option<u16>,
    parting: Option<Box<Parting>>,
    /// Retransmissions in a row without an answer, on all paths (RFC 9260 §8.1).
    error_count: u32,
    /// The packet at hand had a SACK.
    sack_taken: bool,
    /// The packet at hand had a chunk that is acknowledged as DATA is, and was none.
    data_taken: bool,
    /// When the peer last acknowledged something, a side asked to close, or all was acknowledged then: see [`Config::drain_timeout`].
    drained_at: Nanos,
    /// When the user's patience with the shutdown ends.
    close_by: OptionalNanos,
    /// Where new data went when last looked at, and the primary that the user knows of.
    data_path: PathId,
    known_primary: PathId,
    /// Present while both ends speak RSCTP.
    rsctp: Option<Box<Rsctp>>,
    verifying: Verifying,
    /// No path wants a HEARTBEAT or a probe of its MTU before this time; 0: to be found out. Known only where nothing but what
    /// [`Self::forget_probes`] is called for changes it.
    probes_at: Nanos,
    control: ControlCounters,
    /// The peer's addresses changed: the endpoint must learn them.
    addresses_changed: bool,
    /// Present while both ends use ECN.
    marks: Option<Box<Marks>>,
    sums: Sums,
    /// Present while this side offers AUTH.
    auth: Option<Box<Authenticator>>,
    /// Present while this side offers or uses the DTLS chunk.
    dtls: Option<Box<DtlsChunk>>,
    errands: Errands,
    readable_told: bool,
    /// How messages are sent of which nothing else is said, once the user has said it.
    send_defaults: Option<Box<SendOptions>>,
    /// They, or the settings, say when messages are abandoned.
    has_send_policy: bool,
    /// Values of streams that the user has set.
    stream_values: LazyBox<BTreeMap<u16, u16>>,
    events: EventQueue,
    random: CompactRandom,
    trace: Trace,
}

/// An answer that can wait and share a packet.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    HeartbeatAck {
        to: PathId,
        copy: HeartbeatCopy,
    },
    Error {
        to: PathId,
        causes: Causes,
    },
    AsconfAck {
        to: PathId,
        ack: AsconfAck,
    },
    ReConfig {
        to: PathId,
        parameters: TlvList<ReConfigParameter>,
    },
}

impl Reply {
    /// Where it goes.
    pub(crate) fn to(&self) -> PathId {
        match *self {
            Reply::HeartbeatAck { to, .. }
            | Reply::Error { to, .. }
            | Reply::AsconfAck { to, .. }
            | Reply::ReConfig { to, .. } => to,
        }
    }

    /// Bytes of its chunk.
    pub(crate) fn len(&self) -> usize {
        match self {
            Reply::HeartbeatAck { copy, .. } => copy.encoded_len(),
            Reply::Error { causes, .. } => padded(CHUNK_HEADER + causes.as_bytes().len()),
            Reply::AsconfAck { ack, .. } => ack.encoded_len(),
            Reply::ReConfig { parameters, .. } => {
                padded(CHUNK_HEADER + parameters.as_bytes().len())
            }
        }
    }
}

/// The last packet of an association.
#[derive(Clone, Debug)]
pub(crate) struct Parting {
    peer_tag: u32,
    chunk: LastChunk,
}

impl Parting {
    fn new(peer_tag: u32, chunk: LastChunk) -> Box<Self> {
        Box::new(Self { peer_tag, chunk })
    }
}

/// Its chunk.
#[derive(Clone, Debug)]
pub(crate) enum LastChunk {
    Abort(Causes),
    /// To where the SHUTDOWN ACK came from (RFC 9260 §6.4).
    ShutdownComplete(PathId),
}

impl Association {
    /// The state (RFC 9260 §4).
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// Why it ended, if it did.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match &self.state {
            State::Closed(closed) => Some(&closed.reason),
            _ => None,
        }
    }

    /// Whether it ended.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Whether messages can be exchanged in both directions.
    pub fn is_established(&self) -> bool {
        self.state.is_established()
    }

    /// The peer's port.
    pub(crate) fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// The peer's addresses, by path.
    pub fn remote_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.paths.addresses()
    }

    /// Supplies parameters that were saved for the peer's address `remote` (RFC 9959), before data is sent
    /// there. `false`, without effect, if the configuration does not ask for it, if there is no such path,
    /// or if data was sent on it.
    pub fn resume(&mut self, remote: IpAddr, saved: SavedParameters) -> bool {
        let Some(id) = self.paths.find(remote) else {
            return false;
        };
        let control = self.paths.get_mut(id).cc.careful_resume_mut();
        control.is_some_and(|it| it.resume(saved))
    }

    /// What is known of each path.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Makes the peer's address `address` the one that new data goes to while it is active (RFC 9260 §6.4, §11.1.5;
    /// RFC 6458 §8.1.9). `false` if the peer has no such address; then nothing changes.
    pub fn set_primary(&mut self, now: Nanos, address: IpAddr) -> bool {
        let Some(path) = self.paths.find(address) else {
            return false;
        };
        if path != self.paths.primary() {
            self.paths.set_primary(path);
            self.known_primary = path;
            self.events
                .push_back(Event::PrimaryChanged { path, address });
            self.note_data_path(now);
        }
        true
    }

    /// Whether packets without a checksum are taken.
    pub(crate) fn accepts_zero_checksums(&self) -> bool {
        self.sums.accepts_zero()
    }

    /// Whether a SACK must go now. Reading messages may bring this about: the window had been closed and is open again.
    pub fn sack_due(&self) -> bool {
        self.live_rx().is_some_and(Receiver::sack_due)
    }

    /// What sends, made if need be.
    #[inline(always)]
    pub(crate) fn sender(&mut self) -> &mut Sender {
        self.tx.make(&self.config, self.local_initial_tsn)
    }

    /// Whether there was nothing to send so far.
    #[cfg(test)]
    pub(crate) fn sends_nothing_yet(&self) -> bool {
        self.tx.get().is_none()
    }

    /// Whether there was no DATA so far.
    #[cfg(test)]
    pub(crate) fn received_nothing_yet(&self) -> bool {
        self.rx.is_none()
    }

    /// Whether the user may send now.
    #[inline]
    pub(crate) fn takes_messages(&self) -> Result<(), SendError> {
        if !self.state.takes_messages() {
            return Err(SendError::Closing);
        }
        if self.dtls.is_some() && self.waits_for_keys() {
            return Err(SendError::NotProtected);
        }
        Ok(())
    }

    /// Queues a message (RFC 9260 §11.1.5), sent and perhaps abandoned as `options` say; its lifetime begins `now`. It may be called before the
    /// association is established; streams beyond those the peer then grants fail. Policies that the options leave open are those of the
    /// [defaults](crate::AssociationSettings::send_defaults).
    ///
    /// # Errors
    /// The association is closing or closed, the stream does not exist, the message is empty, or the send buffer is
    /// full: try again after the peer has acknowledged something.
    #[inline]
    pub fn send(
        &mut self,
        now: Nanos,
        payload: Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        match self.plain_stream(options) {
            Some(stream) => {
                let message = Message {
                    ppid: options.ppid,
                    unordered: options.unordered,
                    payload,
                };
                self.send_plain(stream, message)
            }
            None => self.send_with(now, payload, options),
        }
    }

    /// The stream of a message of which nothing is said but that, its PPID and its order, neither by its options nor by the defaults.
    #[inline(always)]
    pub(crate) fn plain_stream(&self, options: &SendOptions) -> Option<u16> {
        let plain = options.reliable || !self.has_send_policy;
        options.plain_stream().filter(|_| plain)
    }

    /// As [`Association::send`], where nothing is said of the message but its stream, its PPID and its order.
    fn send_plain(&mut self, stream: u16, message: Message) -> Result<(), SendError> {
        self.takes_messages()?;
        self.sender().send_plain(stream, message)
    }

    /// Takes back the messages of which nothing was sent yet; returns how many. One that was begun is finished.
    pub fn withdraw_unsent(&mut self) -> usize {
        let withdrawn = self.tx.get_mut().map_or(0, Sender::withdraw_unsent);
        self.tell_receipts();
        self.advance_reconfiguration();
        withdrawn
    }

    /// Bytes of user data accepted and not yet sent.
    pub fn buffered(&self) -> usize {
        self.tx.get().map_or(0, Sender::buffered)
    }

    /// Bytes of user data accepted for `stream` and not yet sent; without those of messages that have no stream yet.
    pub fn buffered_on(&self, stream: u16) -> usize {
        self.tx.get().map_or(0, |it| it.buffered_on(stream))
    }

    /// Memory, bytes, that messages hold until the peer acknowledges them cumulatively: user data queued and sent, whatever Gap Ack
    /// Blocks report, and what is kept beside each message and chunk. A million messages of one byte hold 193 times their user
    /// data.
    pub fn held_to_send(&self) -> usize {
        self.tx.held()
    }

    /// Whether nothing came over it since the handshake that shows a peer: no DATA, no answer to a HEARTBEAT, no SACK of data.
    pub(crate) fn is_silent(&self) -> bool {
        let mut paths = (0..self.paths.len()).filter_map(|it| u8::try_from(it).ok());
        self.rx.is_none() && paths.all(|it| self.paths.get(PathId(it)).rto.srtt().is_none())
    }

    /// The peer's primary address.
    pub(crate) fn primary_remote(&self) -> IpAddr {
        self.paths.get(self.paths.primary()).path.remote
    }

    /// The last TSN of the peer's before which none is missing; 0 before the handshake has told one.
    pub fn cumulative_tsn(&self) -> u32 {
        match &self.state {
            State::Known(known) => self.cumulative(known).0,
            _ => 0,
        }
    }

    /// Counters of the data transfer, also after the end.
    pub fn stats(&self) -> AssociationStatistics {
        AssociationStatistics {
            sender: match &self.state {
                State::Closed(closed) => closed.sent,
                _ => self.tx.statistics(),
            },
            receiver: self
                .rx
                .as_deref()
                .map(Receiver::statistics)
                .unwrap_or_default(),
            control: self.control.told(),
        }
    }

    /// Chooses what is recorded from now on; nothing at first.
    pub fn set_probes(&mut self, wanted: ProbeSet) {
        self.trace = Trace::new(wanted);
    }

    /// Whether [`Self::drain_trace`] has something to give.
    pub fn has_samples(&self) -> bool {
        !self.trace.is_empty()
    }

    /// Takes what was recorded since the last call, oldest first.
    pub fn drain_trace(&mut self) -> impl Iterator<Item = Sample> + '_ {
        self.trace.drain()
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::Association;
    use crate::Endpoint;
    use crate::path::PathEntry;

    /// A server has thousands that are idle. Who makes one larger says why; what few of them need takes memory with its first use.
    #[test]
    fn what_every_association_takes_is_bounded() {
        // With its first path and without what sends or receives, and an endpoint with the place of its first association.
        assert!(size_of::<Association>() <= 920);
        assert!(size_of::<PathEntry>() <= 416);
        // One word more for the shares of a full endpoint, which are a property of the endpoint and not of an association.
        assert!(size_of::<Endpoint>() <= 640);
    }
}
