//! Sender of an association: send queue, fragmentation, outstanding chunks, loss recovery, and the
//! rules of transmission.
//!
//! The caller's loop: [`Sender::handle_sack`] or [`Sender::handle_t3`] on input; then, while
//! [`Sender::wants_to_send`] returns a path, start a packet for it, add control chunks, and let
//! [`Sender::fill`] add DATA.

mod abandon;
mod ack;
mod bundling;
mod burst;
mod cmt;
mod compared;
mod deadlines;
mod delivery_receipts;
mod ecn;
mod f_rto;
mod fast_path_data;
mod fast_path_gap_sack;
mod fast_path_sack;
mod fragmented_messages;
mod gap_blocks;
mod interleaving;
mod lazy_sender;
mod memory_limits;
mod new_sender;
mod optional_recovery;
mod outstanding;
mod per_message_options;
mod prr;
mod rack;
mod recovery;
mod send_queue;
mod sent_streams;
mod spurious_retransmission;
mod stream_reset;
mod tsn_set;
mod undelivered;

use anabranch_congestion::LossCause;
use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::Tsn;
use bytes::Bytes;
use thiserror::Error;

pub use ack::SackOutcome;
pub(crate) use cmt::sack_flags;
pub use delivery_receipts::DeliveryStatus;
pub(crate) use ecn::Heard;
#[cfg(test)]
pub(crate) use lazy_sender::EARLY;
pub(crate) use lazy_sender::LazySender;
pub use recovery::T3Outcome;
pub(crate) use send_queue::Message;
pub(crate) use undelivered::Returned;

use crate::lazy_box::LazyBox;
use crate::path::{PathEntry, PathId, Paths};
use crate::pr_sctp::{MessageRoute, PrSctpSender, SendOptions};
use crate::profile::SenderProfile;
use crate::stats::{SenderCounters, SenderStatistics};
use crate::stream_allocation::{LossEvent, StreamsInUse};
use crate::stream_scheduler::QueueId;
use ack::PathAck;
use burst::Burst;
use cmt::Cmt;
use delivery_receipts::Receipts;
use gap_blocks::TsnRange;
use new_sender::SenderComponents;
use optional_recovery::OptionalRecovery;
use outstanding::Outstanding;
use per_message_options::ChunkAuthKeys;
use send_queue::{SendQueue, Unsent};

/// Maximum number of chunks that are sent and not cumulatively acknowledged. The receiver can
/// distinguish 16-bit stream sequence numbers only within half of their range (RFC 9260 §6.6), and
/// Gap Ack Blocks reach 65,535 TSNs (§3.3.4).
const MAX_OUTSTANDING: usize = 32_767;

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The stream number is not less than the number of negotiated streams.
    #[error("stream {stream} is outside the {streams} streams negotiated")]
    NoSuchStream {
        /// Requested stream.
        stream: u16,
        /// Number of negotiated streams.
        streams: u16,
    },
    /// The association is closing or closed (RFC 9260 §9.2).
    #[error("the association is closing or closed")]
    Closing,
    /// The message is empty, which DATA does not allow (RFC 9260 §3.3.1).
    #[error("a message must not be empty")]
    Empty,
    /// The send buffer is full. Retry when `unsent_bytes` has decreased.
    #[error("the send buffer is full")]
    BufferFull,
    /// The setting [`security`](crate::Config::security) requires protection, which is not
    /// established yet. Wait for [`Event::Established`](crate::Event::Established).
    #[error("the association is not protected yet")]
    NotProtected,
}

/// Sender of an association.
#[derive(Debug)]
pub struct Sender {
    profile: SenderProfile,
    bundling: bool,
    /// Whether pacing is enabled.
    paced: bool,
    pack_messages: bool,
    /// Length of the chunk header of DATA or I-DATA, in bytes.
    header: usize,
    /// Whether user data is sent in I-DATA.
    interleaving: bool,
    send_buffer: usize,
    /// Bound of unacknowledged data in bytes; see `believed_window`.
    most_unacknowledged: u64,
    initial_tsn: Tsn,
    streams: u16,
    queue: SendQueue,
    in_use: StreamsInUse,
    outstanding: Outstanding,
    /// Gap Ack Blocks of the last SACK.
    gaps: Vec<TsnRange>,
    /// Path of the lowest chunk on which the receiver has reneged.
    reneged_on: Option<PathId>,
    /// Peer's last advertised window (`a_rwnd`), and estimated free space in it (`peer_rwnd`), in
    /// bytes.
    a_rwnd: u64,
    peer_rwnd: u64,
    /// Bytes as the receiver window counts them: in flight without marked chunks
    /// (`rwnd_in_flight`), and in marked chunks (`rwnd_marked`).
    rwnd_in_flight: u64,
    rwnd_marked: u64,
    /// Exit point of fast recovery, which ends when the cumulative TSN reaches it; `None` outside
    /// of fast recovery.
    recovery_until: Option<Tsn>,
    highest_newly_acked: Option<Tsn>,
    /// Whether the next packet of retransmissions ignores cwnd (RFC 9260 §6.3.3 E3, §7.2.4).
    one_packet: bool,
    /// Whether retransmissions wait for the next SACK.
    gate_closed: bool,
    /// Whether new data waits for the next SACK after a timeout, because a timeout permits only
    /// retransmissions.
    timed_out: bool,
    probe: Option<Probing>,
    /// Time of the last SACK after which no data was in flight. A closed window is probed one RTO
    /// later.
    quiet_since: Nanos,
    /// Whether no further messages will be queued, because the user has requested a shutdown.
    finishing: bool,
    /// Whether the peer has reported an ECN mark since the last SACK.
    echoed: bool,
    /// PR-SCTP state, if messages may be abandoned.
    pr_sctp: Option<Box<PrSctpSender>>,
    /// Receipts; allocated when the first receipt is requested.
    receipts: Option<Box<Receipts>>,
    sent_streams: sent_streams::SentStreams,
    /// Whether a FORWARD TSN must be sent.
    forward_due: bool,
    /// Whether all TSNs were reset, so that an older SACK may still be in flight.
    tsns_reset: bool,
    statistics: SenderCounters,
    burst: Burst,
    /// State of concurrent multipath transfer, if enabled.
    cmt: Option<Box<Cmt>>,
    /// State of optional recovery algorithms (in addition to missing reports and T3-rtx), if
    /// enabled.
    optional_recovery: Option<Box<OptionalRecovery>>,
    /// Scratch buffers of `handle_sack`, kept to avoid allocations.
    blocks: Vec<TsnRange>,
    acks: Vec<PathAck>,
    /// Offset of the last DATA chunk in the packet that `fill` is writing.
    last_data_at: usize,
    /// Authentication keys of chunks, if the user has selected keys.
    keys: ChunkAuthKeys,
    /// Messages on streams that the peer did not grant, not reported to the user yet.
    not_granted: LazyBox<Vec<Unsent>>,
}

/// Window probe: a chunk that was sent although the peer's window was too small for it (RFC 9260
/// §6.1 A).
#[derive(Clone, Copy, Debug)]
struct Probing {
    tsn: Tsn,
    /// Whether a SACK has arrived since the probe was last sent, so that the peer is alive and
    /// keeps its window closed.
    answered: bool,
}

impl Sender {
    /// Applies the results of the handshake: the peer's window in bytes, and the number of
    /// negotiated outbound streams. Drops messages that were queued on other streams, and returns
    /// their number.
    pub fn set_peer(&mut self, a_rwnd: u32, outbound_streams: u16) -> usize {
        self.a_rwnd = a_rwnd.into();
        self.peer_rwnd = self.believed_window().saturating_sub(self.rwnd_in_flight);
        self.streams = outbound_streams;
        self.in_use.negotiated(outbound_streams);
        if self.queue.has_none() {
            return 0;
        }
        self.forget_streams_from(outbound_streams)
    }

    /// Queues a message with its options. Its lifetime starts at `now`.
    ///
    /// # Errors
    /// See [`SendError`]. After an error the message was not queued. Before [`Sender::set_peer`]
    /// every stream is accepted.
    pub fn send(
        &mut self,
        now: Nanos,
        payload: Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        let message = Message {
            ppid: options.ppid,
            unordered: options.unordered,
            payload,
        };
        match options.stream {
            Some(stream) if options.is_plain() => self.send_plain(stream, message),
            _ => self.send_on_terms(now, message, options),
        }
    }

    /// Like [`Sender::send`], for a message without options except stream, PPID and order.
    #[inline(always)]
    pub(crate) fn send_plain(&mut self, stream: u16, message: Message) -> Result<(), SendError> {
        self.check_stream(stream)?;
        self.queue_here(QueueId::Stream(stream), message, false, None)
    }

    fn check_stream(&self, stream: u16) -> Result<(), SendError> {
        let streams = self.streams;
        if streams > 0 && stream >= streams {
            return Err(SendError::NoSuchStream { stream, streams });
        }
        Ok(())
    }

    /// Queues a message in a case that the inlined [`Sender::send_plain`] does not handle.
    #[inline(never)]
    fn queue_message(
        &mut self,
        queue_id: QueueId,
        message: Message,
        immediate: bool,
        route: Option<Box<MessageRoute>>,
    ) -> Result<(), SendError> {
        self.queue_here(queue_id, message, immediate, route)
    }

    #[inline(always)]
    fn queue_here(
        &mut self,
        queue_id: QueueId,
        message: Message,
        immediate: bool,
        route: Option<Box<MessageRoute>>,
    ) -> Result<(), SendError> {
        if message.payload.is_empty() {
            return Err(SendError::Empty);
        }
        if !self.has_room_for(message.payload.len()) {
            return Err(SendError::BufferFull);
        }
        let immediate = immediate && self.profile.sack_immediately;
        self.queue.push(queue_id, message, immediate, None, route);
        self.burst.message_given = true;
        Ok(())
    }

    /// Whether a message of `size` bytes is certainly accepted, whatever its options are.
    #[inline]
    pub fn can_send(&self, stream: Option<u16>, size: usize) -> bool {
        size > 0
            && stream.is_none_or(|stream| self.check_stream(stream).is_ok())
            && self.has_room_for(size)
    }

    #[inline]
    fn has_room_for(&self, size: usize) -> bool {
        self.queue.bytes() == 0 || self.queue.bytes() + size <= self.send_buffer
    }

    /// Number of bytes of unsent user data, for back pressure.
    pub fn unsent_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Number of bytes of unsent user data on `stream`.
    pub fn unsent_bytes_on(&self, stream: u16) -> usize {
        self.queue.bytes_of(stream)
    }

    /// Cancels messages of which no chunk was sent. Returns their number.
    pub fn cancel_unsent(&mut self) -> usize {
        let withdrawn = self.queue.withdraw();
        self.answer_all(
            withdrawn.iter().filter_map(|it| it.receipt),
            DeliveryStatus::Withdrawn,
        );
        withdrawn.len()
    }

    /// Whether any message, or part of a message, waits for its first transmission.
    pub fn has_pending(&self) -> bool {
        self.queue.bytes() > 0
    }

    /// Whether chunks were sent that are not cumulatively acknowledged.
    pub fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Whether all queued data was cumulatively acknowledged.
    pub fn is_drained(&self) -> bool {
        !self.has_pending() && !self.has_outstanding()
    }

    /// Cumulative TSN that the peer has acknowledged.
    pub fn cumulative_tsn_ack_point(&self) -> Tsn {
        self.outstanding.cumulative_point()
    }

    /// TSN of the next new chunk.
    pub fn next_tsn(&self) -> Tsn {
        self.outstanding.next_tsn()
    }

    /// Estimated free space in the peer's receiver window, in bytes as the profile counts them.
    pub fn peer_rwnd(&self) -> u64 {
        self.peer_rwnd
    }

    /// Peer's last advertised receiver window, in bytes as the profile counts them.
    pub fn advertised_rwnd(&self) -> u64 {
        self.a_rwnd
    }

    /// Changes Max.Burst.
    pub(crate) fn set_max_burst(&mut self, packets: u32) {
        self.profile.max_burst = packets;
    }

    /// Counters so far.
    pub fn statistics(&self) -> SenderStatistics {
        self.statistics.told()
    }

    /// Number of streams in use for messages without a stream: 1 to the number of negotiated
    /// streams.
    pub fn streams_in_use(&self) -> u16 {
        self.in_use.in_use()
    }

    /// Number of negotiated streams, if the stream allocation has requested more since the last
    /// call.
    pub fn take_stream_limit_met(&mut self) -> Option<u16> {
        self.in_use.take_limit_met()
    }

    /// Whether there may be events about streams or receipts for the user. Checked after every
    /// SACK.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.in_use.has_met_limit() || self.receipts.is_some()
    }

    /// Time at which [`Sender::judge_streams`] must be called.
    pub fn streams_deadline(&self) -> Option<Nanos> {
        self.in_use.deadline()
    }

    /// Handles a timeout of the stream allocation.
    pub fn judge_streams(&mut self, now: Nanos, trace: &mut Trace) {
        self.in_use.handle_timeout(now, trace);
        self.note_streams();
    }

    /// Notifies the stream allocation of a loss on path `id`, before cwnd is reduced.
    fn judge_loss(
        &mut self,
        now: Nanos,
        id: PathId,
        cause: LossCause,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let entry = paths.get_mut(id);
        if let Some(estimator) = &mut entry.estimator {
            estimator.advance(now);
        }
        let loss = LossEvent {
            now,
            cause,
            cwnd: entry.cc.cwnd(),
            rate: entry
                .estimator
                .as_ref()
                .and_then(|estimator| estimator.rate()),
            rtt_min: entry.rtt_min.get(),
            srtt: entry.rto.srtt(),
        };
        self.in_use.on_loss(&loss, trace);
        self.note_streams();
    }

    fn note_streams(&mut self) {
        let (changes, refused) = (self.in_use.changes, self.in_use.refused);
        if changes > 0 || refused > 0 {
            let counters = self.statistics.rare();
            (counters.stream_changes, counters.streams_refused) = (changes, refused);
        }
    }

    /// Number of chunks that are not cumulatively acknowledged.
    pub fn outstanding_chunks(&self) -> usize {
        self.outstanding.len()
    }

    /// Sets whether the user has requested a shutdown, so that no data follows the queued data.
    pub(crate) fn set_finishing(&mut self, finishing: bool) {
        self.finishing = finishing;
    }

    /// Whether the packet just filled should request an immediate SACK (RFC 9260 §6.1). This is the
    /// case if no data follows before the shutdown, or if no data can follow before the SACK,
    /// because the packet fills cwnd or the receiver window. In the second case no other data may
    /// be in flight (`was_quiet`), because it would cause a SACK.
    fn wants_sack_at_once(&self, now: Nanos, was_quiet: bool, paths: &Paths) -> bool {
        let more = !self.queue.is_empty() || self.outstanding.first_marked().is_some();
        if !more {
            return self.finishing;
        }
        was_quiet && self.wants_to_send(now, paths).is_none()
    }

    /// Path of the next packet with DATA, if one may be sent now. Retransmissions precede new data
    /// (RFC 9260 §6.1 C).
    #[inline(always)]
    pub fn wants_to_send(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        if self.outstanding.takes_a_look() {
            return self.wants_to_send_some(now, paths);
        }
        // This is checked first, because the method is called after every packet, and a pure
        // receiver never has queued data.
        if self.queue.is_empty() {
            return None;
        }
        self.wants_to_send_new(now, paths)
    }

    /// Like [`Self::wants_to_send`], if only new data can be sent.
    #[inline(never)]
    fn wants_to_send_new(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        let path = self.path_for_new(paths);
        self.may_send_new(now, path, paths).then_some(path)
    }

    /// Like [`Self::wants_to_send`], if chunks wait for retransmission or several paths are in use.
    #[cold]
    fn wants_to_send_some(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        if let Some(path) = self.path_for_f_rto(paths) {
            return Some(path);
        }
        let marked = self.outstanding.first_marked();
        if self.cmt.is_some() && (marked.is_some() || self.probe_due().is_none()) {
            return match marked {
                Some(_) => self.wants_concurrently(now, paths),
                None => self.new_concurrently(now, paths),
            };
        }
        if marked.is_none() {
            return self.probe_due();
        }
        let path = self.retransmission_path(marked?, paths)?;
        let entry = paths.get(path);
        let allowed = self.one_packet || (!self.gate_closed && entry.may_go(now));
        allowed.then_some(path)
    }

    /// Whether a new chunk may be sent. If the peer's window is too small, one chunk may be in
    /// flight as a zero window probe, from the time [`Self::probe_from`] on and independent of the
    /// burst limit (RFC 9260 §6.1 A).
    #[inline(always)]
    fn may_send_new(&self, now: Nanos, path: PathId, paths: &Paths) -> bool {
        if !self.path_allows_new(path, paths) || !paths.get(path).is_paced_for(now) {
            return false;
        }
        if self.fits_peer_window(paths) {
            !self.burst_spent(now)
        } else {
            // Send no probe if the limit is this side's memory for unacknowledged data and not the
            // peer's window.
            self.in_flight_for_window() == 0
                && now >= self.probe_from(path, paths)
                && self.may_keep_more()
        }
    }

    /// Whether a new chunk is queued, and the state and the cwnd of the path permit sending it.
    #[inline(always)]
    fn path_allows_new(&self, path: PathId, paths: &Paths) -> bool {
        !self.queue.is_empty()
            && !self.timed_out
            && self.outstanding.len() < MAX_OUTSTANDING
            && paths.get(path).has_room()
            && self.may_use(path, paths)
    }

    fn fits_peer_window(&self, paths: &Paths) -> bool {
        let fits = |next| self.profile.rwnd_counts.bytes(next) <= self.peer_rwnd;
        // If the whole message fits, any fragment of it fits as well.
        fits(self.queue.next_len(usize::MAX))
            || fits(self.queue.next_len(self.most_user_data(paths)))
    }

    /// Whether data may be sent on the path; RFC 9260 §5.4 permits confirmed paths only.
    #[inline(always)]
    fn may_use(&self, path: PathId, paths: &Paths) -> bool {
        if self.profile.confirm_paths_before_data {
            return paths.are_confirmed();
        }
        paths.get(path).is_verified()
    }

    /// Bytes in flight that count against the peer's receiver window.
    fn in_flight_for_window(&self) -> u64 {
        self.rwnd_in_flight
            + if self.profile.flight_counts_marked {
                self.rwnd_marked
            } else {
                0
            }
    }

    /// Bytes in flight on a path that are compared with cwnd when a SACK arrives, to decide whether
    /// cwnd may grow.
    fn flight_for_growth(&self, entry: &PathEntry) -> u64 {
        entry.flightsize
            + if self.profile.flight_counts_marked {
                entry.marked_bytes
            } else {
                0
            }
    }

    /// Number of a TSN in traces and figures: 0 for the first TSN of the association.
    fn number(&self, tsn: Tsn) -> f64 {
        f64::from(tsn.distance_from(self.initial_tsn))
    }

    fn trace_flight(&self, now: Nanos, id: PathId, entry: &PathEntry, trace: &mut Trace) {
        trace.record(
            now,
            Probe::FlightSize,
            id.0.into(),
            self.flight_for_growth(entry) as f64,
        );
        trace.record(now, Probe::PeerRwnd, 0, self.peer_rwnd as f64);
    }
}

/// Records cwnd and ssthresh in the trace if they have changed.
fn trace_window(now: Nanos, id: PathId, entry: &PathEntry, before: (u64, u64), trace: &mut Trace) {
    let after = (entry.cc.cwnd(), entry.cc.ssthresh());
    if after.0 != before.0 {
        trace.record(now, Probe::Cwnd, id.0.into(), after.0 as f64);
    }
    if after.1 != before.1 {
        trace.record(now, Probe::Ssthresh, id.0.into(), after.1 as f64);
    }
}

/// Current cwnd and ssthresh, to detect later changes.
fn window(entry: &PathEntry) -> (u64, u64) {
    (entry.cc.cwnd(), entry.cc.ssthresh())
}

#[cfg(test)]
mod tests;
