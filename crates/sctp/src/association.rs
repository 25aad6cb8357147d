//! SCTP association: its state, and the methods for its user.
//!
//! The procedures are in separate files that extend [`Association`]: handshake, shutdown and
//! heartbeat. Received packets are processed in `association/receive.rs`, sent packets assembled in
//! `association/transmit.rs`, and timers handled in `association/timers.rs`.

mod asconf;
mod authentication;
mod cookie_echo;
mod dtls;
mod dynamic_settings;
mod ecn;
mod endpoint_interface;
mod extension_chunks;
mod fast_path_rx;
mod fast_path_tx;
mod heartbeat;
mod icmp;
mod interleaving;
mod lazy_receiver;
mod lifecycle;
mod negotiated;
mod output;
mod pending_control;
mod pmtu;
mod pr_sctp;
mod protection;
mod receive;
mod receive_data;
mod reconfig;
mod rsctp;
mod send_buffer;
mod shutdown;
mod status;
mod timers;
mod transmit;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_congestion::careful_resume::SavedParameters;
use anabranch_transport::{Nanos, Trace};
use anabranch_wire::cause::Causes;
use anabranch_wire::chunk::HeartbeatCopy;
use anabranch_wire::encode::{Encode, padded};
use anabranch_wire::extension::{AsconfAck, ReConfigParameter};
use anabranch_wire::packet::CHUNK_HEADER;
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::TlvList;
use bytes::Bytes;

use ecn::Marks;
pub(crate) use fast_path_rx::FastPath;
use heartbeat::Verifying;
pub(crate) use lifecycle::{NegotiatedParameters, Ports};
pub use negotiated::Negotiated;
use pending_control::{ControlTask, PendingControl};
pub use protection::{Protection, ProtectionMut};
pub(crate) use receive::Admission;
pub use send_buffer::SendBuffer;
pub(crate) use shutdown::MAX_REASON;
pub use status::AssociationStatus;

use crate::association_state::AssociationState;
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
use crate::stats::{AssociationStatistics, ControlCounters};
use crate::tx::{LazySender, Message, SendError, Sender};
use crate::zero_checksum::ChecksumMode;

/// Maximum number of waiting replies; further requests of a peer are not answered.
const MAX_REPLIES: usize = 32;
/// Maximum number of queued events that report errors from the peer.
const MAX_PEER_ERRORS: usize = 16;

/// SCTP association (RFC 9260 §1.2). An association belongs to an [`Endpoint`](crate::Endpoint),
/// which transfers its packets.
///
/// After any method that takes the current time, the caller should drain the endpoint's
/// `poll_transmit` and `poll_event`.
#[derive(Debug)]
pub struct Association {
    config: Arc<Config>,
    local_port: u16,
    remote_port: u16,
    /// Verification tag of packets to this side.
    local_tag: u32,
    tie_tags: TieTags,
    local_initial_tsn: Tsn,
    outbound_streams: u16,
    inbound_streams: u16,
    state: State,
    paths: Paths,
    /// Sender, created on first use, usually for the first message.
    tx: LazySender,
    /// Receiver, created for the first DATA; kept after the association has closed, so that
    /// received messages can still be read.
    rx: Option<Box<Receiver>>,
    /// Source path of the last DATA, and thus destination of SACKs (RFC 9260 §6.4).
    sack_path: PathId,
    cookie_ack: Option<PathId>,
    replies: LazyBox<VecDeque<Reply>>,
    /// Number of bytes left for further replies to the current packet, because all replies to it
    /// must fit into one packet; `None` before the first reply.
    reply_room: Option<u16>,
    parting: Option<Box<Parting>>,
    /// Number of consecutive retransmissions without an answer, on all paths (RFC 9260 §8.1).
    error_count: u32,
    /// Whether the current packet contained a SACK.
    sack_taken: bool,
    /// Whether the current packet contained I-DATA, a FORWARD TSN, or DATA that the slow path did
    /// not process. Such a packet is acknowledged like a packet with DATA.
    data_taken: bool,
    /// Time of the latest of these events: the peer acknowledged new data, a side requested the
    /// shutdown, [`Self::expect_drain`] was called, or all data was acknowledged. See
    /// [`Config::drain_timeout`].
    drained_at: Nanos,
    /// Whether the application waits for acknowledgments before it requests the shutdown.
    drains: bool,
    /// Deadline of the user's shutdown timeout.
    close_by: OptionalNanos,
    /// Path last used for new data (`active_path`), and primary path last reported to the user
    /// (`known_primary`).
    active_path: PathId,
    known_primary: PathId,
    /// RSCTP state; present if both ends use RSCTP.
    rsctp: Option<Box<Rsctp>>,
    verifying: Verifying,
    /// Time before which no path needs a HEARTBEAT or an MTU probe; 0: unknown.
    /// [`Self::forget_probes`] invalidates this cached value.
    probes_at: Nanos,
    control: ControlCounters,
    /// Whether the peer's addresses have changed, so that the endpoint must update its table.
    addresses_changed: bool,
    /// ECN state; present if both ends use ECN.
    marks: Option<Box<Marks>>,
    checksum_mode: ChecksumMode,
    /// AUTH state; present if this side offers AUTH.
    auth: Option<Box<Authenticator>>,
    /// State of the DTLS chunk; present if this side offers or uses the DTLS chunk.
    dtls: Option<Box<DtlsChunk>>,
    pending_control: PendingControl,
    readable_notified: bool,
    /// Default options of messages, once the user has set them.
    send_defaults: Option<Box<SendOptions>>,
    /// Whether messages take the slow path, because of a default abandonment policy or the DTLS
    /// chunk.
    slow_send: bool,
    /// Scheduler values of streams (priorities or weights) that the user has set.
    stream_values: LazyBox<BTreeMap<u16, u16>>,
    events: EventQueue,
    random: CompactRandom,
    trace: Trace,
}

/// Queued reply, which may be bundled with other chunks.
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
    /// Destination path.
    pub(crate) fn to(&self) -> PathId {
        match *self {
            Reply::HeartbeatAck { to, .. }
            | Reply::Error { to, .. }
            | Reply::AsconfAck { to, .. }
            | Reply::ReConfig { to, .. } => to,
        }
    }

    /// Length of the reply's chunk in bytes.
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

/// Final packet of a closed association.
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

/// Chunk in the final packet.
#[derive(Clone, Debug)]
pub(crate) enum LastChunk {
    Abort(Causes),
    /// SHUTDOWN COMPLETE to the source of the SHUTDOWN ACK (RFC 9260 §6.4).
    ShutdownComplete(PathId),
}

impl Association {
    /// State of the association (RFC 9260 §4).
    pub fn state(&self) -> AssociationState {
        self.state.name()
    }

    /// Why the association was closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match &self.state {
            State::Closed(closed) => Some(&closed.reason),
            _ => None,
        }
    }

    /// Whether the association is closed.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Whether messages can be exchanged in both directions.
    pub(crate) fn is_established(&self) -> bool {
        self.state.is_established()
    }

    /// Port of the peer.
    pub(crate) fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// Supplies parameters that were saved for the peer's address `remote` (RFC 9959), before data
    /// is sent to this address. Returns `false`, without effect, if the configuration does not
    /// enable Careful Resume, if there is no such path, or if data was already sent on it.
    pub fn resume(&mut self, remote: IpAddr, saved: SavedParameters) -> bool {
        let Some(id) = self.paths.find(remote) else {
            return false;
        };
        let control = self.paths.get_mut(id).cc.careful_resume_mut();
        control.is_some_and(|it| it.resume(saved))
    }

    /// State of each path.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Makes the peer's address `address` the primary, to which new data is sent while it is active
    /// (RFC 9260 §6.4, §11.1.5; RFC 6458 §8.1.9). Returns `false`, without effect, if the peer has
    /// no such address.
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

    /// Whether packets without a checksum are accepted.
    pub(crate) fn accepts_zero_checksums(&self) -> bool {
        self.checksum_mode.accepts_zero()
    }

    /// Whether a SACK must be sent now. Reading messages can make a SACK due, because it can reopen
    /// a closed receive window.
    pub fn sack_due(&self) -> bool {
        self.live_rx().is_some_and(Receiver::sack_due)
    }

    /// Sender, created if necessary.
    #[inline(always)]
    pub(crate) fn sender(&mut self) -> &mut Sender {
        self.tx.make(&self.config, self.local_initial_tsn)
    }

    /// Whether no message was queued so far.
    #[cfg(test)]
    pub(crate) fn sends_nothing_yet(&self) -> bool {
        self.tx.get().is_none()
    }

    /// Whether no DATA was received so far.
    #[cfg(test)]
    pub(crate) fn received_nothing_yet(&self) -> bool {
        self.rx.is_none()
    }

    /// Checks that the user may send a message with this payload protocol identifier (`None`: with
    /// any): the association is not closing, and keys are installed if the DTLS chunk is used.
    #[inline]
    pub(crate) fn takes_messages(&self, ppid: Option<u32>) -> Result<(), SendError> {
        if !self.state.takes_messages() {
            return Err(SendError::Closing);
        }
        if self.dtls.is_some() && self.waits_for_keys(ppid) {
            return Err(SendError::NotProtected);
        }
        Ok(())
    }

    /// Queues a message (RFC 9260 §11.1.5) with `options`; its lifetime begins `now`. Messages can
    /// be queued before the association is established; messages on streams that the peer does not
    /// grant then fail. Policies that `options` does not set are taken from the
    /// [defaults](crate::AssociationSettings::send_defaults).
    ///
    /// # Errors
    /// The association is closing or closed, the stream does not exist, the message is empty, or
    /// the send buffer is full: try again after the peer has acknowledged data.
    pub fn send(
        &mut self,
        now: Nanos,
        payload: Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        if let Some(stream) = options.stream
            && self.sends_plainly(options)
        {
            if !self.state.takes_messages() {
                return Err(SendError::Closing);
            }
            let message = Message {
                ppid: options.ppid,
                unordered: options.unordered,
                payload,
            };
            return self.sender().send_plain(stream, message);
        }
        self.send_with(now, payload, options)
    }

    /// Whether a message on a given stream takes the fast path: it has no options other than
    /// stream, PPID and order.
    #[inline(always)]
    pub(crate) fn sends_plainly(&self, options: &SendOptions) -> bool {
        options.is_plain() && !self.slow_send
    }

    /// Cancels queued messages of which no chunk was sent; returns their number. A partially sent
    /// message is completed.
    pub fn cancel_unsent(&mut self) -> usize {
        let withdrawn = self.tx.get_mut().map_or(0, Sender::cancel_unsent);
        self.tell_receipts();
        self.advance_reconfiguration();
        withdrawn
    }

    /// Whether nothing received since the handshake proves that the peer exists: neither DATA, nor
    /// a HEARTBEAT ACK, nor a SACK that acknowledges data.
    pub(crate) fn is_silent(&self) -> bool {
        let mut paths = (0..self.paths.len()).filter_map(|it| u8::try_from(it).ok());
        self.rx.is_none() && paths.all(|it| self.paths.get(PathId(it)).rto.srtt().is_none())
    }

    /// Primary address of the peer.
    pub(crate) fn primary_remote(&self) -> IpAddr {
        self.paths.get(self.paths.primary()).path.remote
    }

    /// Cumulative TSN of received data; 0 before the handshake.
    pub fn cumulative_tsn(&self) -> u32 {
        match &self.state {
            State::Active(known) => self.cumulative(known).0,
            _ => 0,
        }
    }

    /// Counters of the data transfer; also available after the association was closed.
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

    /// Trace samples recorded since the trace was last drained.
    #[inline]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Mutable access to [`Self::trace`], to drain it or to replace it by a trace that records
    /// other probes. Initially no probe is recorded.
    #[inline]
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::Association;
    use crate::Endpoint;
    use crate::path::PathEntry;

    /// A server has thousands of idle associations. An increase of one of these limits should be
    /// justified; data that few associations need should be allocated on first use.
    #[test]
    fn the_memory_of_an_idle_association_is_bounded() {
        // Sizes of an association without sender and receiver, of a path, and of an endpoint with
        // its first association slot, in bytes.
        assert!(size_of::<Association>() <= 920);
        assert!(size_of::<PathEntry>() <= 416);
        // Includes one pointer (`shares`) to the data that limits how many associations one address
        // may have.
        assert!(size_of::<Endpoint>() <= 640);
    }
}
