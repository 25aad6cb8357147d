//! Receiver of an association: TSNs, reassembly, order, the receive window, and SACK timing.
//!
//! The caller's loop: [`Receiver::handle_data`] for each DATA chunk of a packet,
//! [`Receiver::on_packet_end`] after the last chunk, then [`Receiver::poll_message`] or
//! [`Receiver::poll_part`] until the result is `None`, and [`Receiver::push_sack`] while
//! [`Receiver::sack_due`] is true.

mod buffer_admission;
mod chunk;
mod fast_path;
mod forward_tsn;
mod fragments;
mod interleaved;
mod message;
mod message_assembler;
mod ordering;
mod outcome;
mod partial_delivery;
mod read_parts;
mod ready_queue;
mod reassembly;
mod restart;
mod sack_builder;
mod sack_policy;
mod sort_keys;
mod stream_reset;
mod stream_usage;
mod tsn_bitmap;
mod tsn_tracker;
mod window;

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::Tsn;
use anabranch_wire::chunk::{Data, DecodeError};
use anabranch_wire::packet::Frame;
use bytes::Bytes;

pub(crate) use fast_path::ReceiveOutcome;
pub(crate) use forward_tsn::ForwardTsnOutcome;
pub use message::{MessageBytes, ReceivedMessage, ReceivedPart};
pub use message_assembler::TooLong;
pub use outcome::DataOutcome;
/// Partially delivered message that will not be completed.
pub(crate) use reassembly::Head as Abandoned;

use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::lazy_box::LazyBox;
use crate::profile::{ReceiverProfile, WhenFull};
use crate::stats::{ReceiverCounters, ReceiverStatistics};
use chunk::ChunkView;
use interleaved::{AbandonedMessages, Misfit};
use message_assembler::MessageAssembler;
use ordering::{Order, Whole};
use partial_delivery::PartialDelivery;
use read_parts::KeyMessages;
use ready_queue::{Deliverable, ReadyQueue};
use reassembly::{Fragmented, Reassembly};
use sack_policy::SackPolicy;
use stream_usage::PerStreamUsage;
use tsn_tracker::{Arrival, Neighbours, TsnTracker};
use window::ReceiveWindow;

/// Receiver of an association.
#[derive(Debug)]
pub struct Receiver {
    profile: ReceiverProfile,
    /// Whether the settings allow the fast path.
    common: bool,
    streams: u16,
    initial_tsn: Tsn,
    tracker: TsnTracker,
    reassembly: Reassembly,
    order: Order,
    long: PartialDelivery,
    ready: ReadyQueue,
    /// Queue of complete key management messages, if the DTLS chunk is used.
    key_messages: Option<KeyMessages>,
    assembly: MessageAssembler,
    /// Streams and bytes of data that became readable at an unknown time, for the trace.
    unrecorded: LazyBox<Vec<(u16, usize)>>,
    /// Setting [`Config::partial_delivery_point`], in bytes.
    partial_delivery_point: OptionalNanos,
    window: ReceiveWindow,
    /// Length in bytes of the current packet, if known (`packet`), and of its buffered slices
    /// (`sliced`).
    packet: usize,
    sliced: usize,
    /// Next expected TSN, if it was dropped for lack of space; used by profiles that drop silently.
    refused: Option<Tsn>,
    held: PerStreamUsage,
    /// Number of association events so far, which precede data that becomes readable now.
    preceding: u32,
    /// Partially delivered messages that the user was not notified of.
    aborted: LazyBox<Vec<Abandoned>>,
    /// Unordered messages that the peer has abandoned; only with interleaving.
    abandoned: Option<Box<AbandonedMessages>>,
    sack: SackPolicy,
    statistics: ReceiverCounters,
}

impl Receiver {
    /// Receiver for TSNs from `peer_initial_tsn` on, and for `inbound_streams` streams.
    #[inline(always)] // for each association a call and copies less
    pub fn new(config: &Config, peer_initial_tsn: Tsn, inbound_streams: u16) -> Self {
        Self {
            profile: ReceiverProfile::of(&config.profile),
            common: fast_path::may_come(config),
            streams: inbound_streams,
            initial_tsn: peer_initial_tsn,
            tracker: TsnTracker::new(peer_initial_tsn),
            reassembly: Reassembly::default(),
            order: Order::default(),
            long: PartialDelivery::default(),
            ready: ReadyQueue::default(),
            key_messages: None,
            assembly: MessageAssembler::new(config.max_message, config.receive_buffer as usize),
            unrecorded: LazyBox::default(),
            partial_delivery_point: config.partial_delivery_point.map(|it| it as u64).into(),
            window: ReceiveWindow::new(config),
            packet: 0,
            sliced: 0,
            refused: None,
            held: PerStreamUsage::default(),
            preceding: 0,
            aborted: LazyBox::default(),
            abandoned: None,
            sack: SackPolicy::new(config),
            statistics: ReceiverCounters::default(),
        }
    }

    /// Sets the number of association events, which precede data that becomes readable from now on.
    #[inline(always)]
    pub(crate) fn note_events(&mut self, count: u32) {
        self.preceding = count;
    }

    /// Prepares for a packet of `bytes` bytes. A buffered slice of a packet keeps the whole packet
    /// in memory.
    #[inline]
    pub fn on_packet_begin(&mut self, bytes: usize) {
        (self.packet, self.sliced) = (bytes, 0);
        if self.window.is_empty() {
            self.window.wastes_nothing();
        }
    }

    /// Processes one DATA chunk.
    pub fn handle_data(&mut self, now: Nanos, data: Data, trace: &mut Trace) -> DataOutcome {
        let view = data.with(&data.user_data[..]);
        self.take_data(
            now,
            &ChunkView::of_data(&view),
            || data.user_data.clone(),
            trace,
        )
    }

    /// Like [`Self::handle_data`], for a chunk that is not decoded yet.
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    #[inline(always)]
    pub(crate) fn handle_frame(
        &mut self,
        now: Nanos,
        frame: &Frame<'_>,
        trace: &mut Trace,
    ) -> Result<DataOutcome, DecodeError> {
        let data = Data::view(frame)?;
        Ok(self.take_data(
            now,
            &ChunkView::of_data(&data),
            || Data::slice(frame),
            trace,
        ))
    }

    /// Processes a chunk; `user_data` creates a slice of the packet. The function is inlined into
    /// each caller, together with the functions that it calls for every chunk.
    #[inline(always)]
    fn take_data(
        &mut self,
        now: Nanos,
        chunk: &ChunkView<'_>,
        user_data: impl FnOnce() -> Bytes,
        trace: &mut Trace,
    ) -> DataOutcome {
        let length = chunk.user_data.len() as u64;
        self.held.follow(trace);
        self.record_late(now, trace);
        let outcome = self.sort_data(now, chunk, user_data, trace);
        self.count_outcome(outcome, length);
        outcome
    }

    #[inline(always)]
    fn count_outcome(&mut self, outcome: DataOutcome, length: u64) {
        match outcome {
            DataOutcome::NewData | DataOutcome::Aborting => {
                self.statistics.chunks += 1;
                self.statistics.bytes += length;
            }
            DataOutcome::Duplicate => self.statistics.rare().duplicates += 1,
            DataOutcome::DroppedFull | DataOutcome::Exhausted => {
                self.statistics.rare().dropped_full += 1;
                self.window
                    .refuse(self.profile.rwnd_counts.bytes(length as usize));
            }
            DataOutcome::BeyondWindow => self.statistics.rare().out_of_reach += 1,
            DataOutcome::InvalidStream
            | DataOutcome::NoUserData
            | DataOutcome::ProtocolViolation => {
                self.statistics.rare().refused += 1;
            }
        }
    }

    /// Processes a chunk on the slow path: checks, reassembly and delivery.
    #[inline(always)]
    fn sort_data(
        &mut self,
        now: Nanos,
        chunk: &ChunkView<'_>,
        user_data: impl FnOnce() -> Bytes,
        trace: &mut Trace,
    ) -> DataOutcome {
        if chunk.user_data.is_empty() {
            return DataOutcome::NoUserData;
        }
        let bytes = self.profile.rwnd_counts.bytes(chunk.user_data.len());
        if self.profile.receive_buffer_full == WhenFull::Silent
            && !chunk.is_interleaved
            && let Err(outcome) = self.admit_silently(now, chunk, bytes, trace)
        {
            return outcome;
        }
        match self.tracker.classify(chunk.tsn) {
            Arrival::Duplicate => {
                self.tracker.note_duplicate(chunk.tsn);
                self.sack.saw_duplicate(chunk.tsn == self.initial_tsn);
                return DataOutcome::Duplicate;
            }
            Arrival::OutOfReach => {
                self.sack.at_once();
                return DataOutcome::BeyondWindow;
            }
            Arrival::New => {}
        }
        if chunk.stream >= self.streams {
            self.arrived_beside(now, chunk.tsn, chunk.immediate, trace);
            return DataOutcome::InvalidStream;
        }
        if !self.has_room_for(chunk, bytes)
            && let Err(outcome) = self.admit(now, chunk, bytes, trace)
        {
            return outcome;
        }
        let beside = self.arrived(now, chunk.tsn, chunk.immediate, trace);
        self.window.take(bytes, chunk.user_data.len());
        self.held.take(chunk.stream, bytes);
        let mut outcome = if self.take(now, chunk, user_data, beside, trace) {
            DataOutcome::NewData
        } else {
            DataOutcome::ProtocolViolation
        };
        if outcome == DataOutcome::NewData && self.reassembly.is_broken(self.tracker.cumulative()) {
            outcome = self.judge_broken(now, trace);
        }
        let taken = outcome != DataOutcome::ProtocolViolation;
        // Free space by partial delivery only if the user has nothing to read.
        if taken && self.ready.is_empty() && self.window.to_advertise() == 0 {
            self.relieve(now, trace);
        }
        self.held.record(now, self.window.used(), trace);
        outcome
    }

    /// Records a received TSN, and decides when to send the SACK. Returns which adjacent TSNs have
    /// arrived.
    #[inline(always)]
    fn arrived(&mut self, now: Nanos, tsn: Tsn, immediate: bool, trace: &mut Trace) -> Neighbours {
        let had_gaps = self.tracker.has_gaps();
        let beside = self.tracker.insert(tsn);
        let filled = had_gaps && !self.tracker.has_gaps();
        if tsn == self.initial_tsn {
            self.sack.saw_first();
        } else if immediate || (filled && self.sack.answers_filled_gaps()) {
            self.sack.at_once();
        } else {
            self.sack.saw_data();
        }
        if self.tracker.has_gaps() {
            self.sack.saw_gap();
        }
        trace.record(
            now,
            Probe::Received,
            0,
            f64::from(tsn.distance_from(self.initial_tsn)),
        );
        beside
    }

    /// Like [`Self::arrived`], but not inlined, for callers outside of the fast path.
    #[inline(never)]
    fn arrived_beside(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        immediate: bool,
        trace: &mut Trace,
    ) -> Neighbours {
        self.arrived(now, tsn, immediate, trace)
    }

    /// Stores a new chunk. Returns `false` if it contradicts other fragments.
    #[inline(always)]
    fn take(
        &mut self,
        now: Nanos,
        chunk: &ChunkView<'_>,
        user_data: impl FnOnce() -> Bytes,
        mut beside: Neighbours,
        trace: &mut Trace,
    ) -> bool {
        let (stream, length) = (chunk.stream, chunk.user_data.len());
        if chunk.is_interleaved {
            match self.judge_interleaved(chunk) {
                Ok(found) => beside = found,
                Err(misfit) => {
                    self.let_go(stream, length);
                    return misfit == Misfit::Late;
                }
            }
        }
        let is_whole = chunk.beginning && chunk.ending;
        let waits = !is_whole || !self.order.is_next(stream, chunk.unordered, chunk.number);
        let (payload, compact) = self.hold(chunk.user_data, waits, user_data);
        if is_whole {
            let message = ReceivedMessage {
                stream,
                ppid: chunk.ppid,
                unordered: chunk.unordered,
                ssn: chunk.ssn,
                tsn: chunk.tsn,
                payload: MessageBytes::One(payload),
            };
            let whole = Whole {
                message,
                since: now,
                number: chunk.number,
                compact,
            };
            if waits {
                return self.whole(now, whole, trace);
            }
            if !chunk.unordered {
                self.order.pass(stream, chunk.number);
            }
            let (mut delivery, order) = self.delivery(now, trace);
            delivery.whole(whole);
            if !chunk.unordered {
                order.go_on(stream, |whole| delivery.whole(whole));
                self.went_on(now, stream, trace);
            }
            return true;
        }
        match self.reassembly.insert(chunk, payload, beside) {
            Fragmented::Held => {
                self.grew(now, chunk, trace);
                true
            }
            Fragmented::Part(part) => {
                self.part(now, part, trace);
                true
            }
            Fragmented::Complete(head, message) => {
                self.long.forget(&head);
                let whole = Whole {
                    message,
                    since: now,
                    number: chunk.number,
                    compact: true,
                };
                self.whole(now, whole, trace)
            }
            Fragmented::Contradiction => {
                self.let_go(stream, length);
                false
            }
        }
    }

    /// Delivers a complete message, or buffers it until its turn. Returns `false` if its sequence
    /// number was already used.
    fn whole(&mut self, now: Nanos, whole: Whole, trace: &mut Trace) -> bool {
        let (stream, unordered) = (whole.message.stream, whole.message.unordered);
        let payload = &whole.message.payload;
        let (bytes, length) = (payload.counted(self.profile.rwnd_counts), payload.len());
        let chunks = payload.chunks();
        let (mut delivery, order) = self.delivery(now, trace);
        if unordered {
            order.insert_unordered(whole, |whole| delivery.whole(whole));
            return true;
        }
        let in_order = order.insert(whole, |whole| delivery.whole(whole));
        if in_order {
            self.went_on(now, stream, trace);
        } else {
            self.window.uncount(bytes);
            self.window.forget(length, chunks);
            self.held.free(stream, bytes);
        }
        in_order
    }

    /// Called after the last chunk of a packet: decides whether the SACK is sent now or delayed.
    #[inline]
    pub fn on_packet_end(&mut self, now: Nanos) {
        self.weigh();
        if self.window.is_narrow() {
            self.widen();
        }
        self.sack.packet_end(now, self.tracker.has_gaps());
    }

    /// Sends a SACK with a wider window if the window was reduced because of tiny messages and
    /// recent messages are larger; the peer may be waiting for it.
    #[cold]
    fn widen(&mut self) {
        if self.window.is_too_narrow(&self.statistics) {
            self.sack.at_once();
        }
    }

    /// Applies the SACK settings of `config`.
    pub(crate) fn set_sack_policy(&mut self, config: &Config) {
        self.sack.set(config);
    }

    /// Whether a SACK must be sent now.
    pub fn sack_due(&self) -> bool {
        self.sack.due()
    }

    /// Whether received data is unacknowledged, so that a SACK may be bundled with another packet.
    pub fn sack_useful(&self) -> bool {
        self.sack.waiting()
    }

    /// Time at which a delayed SACK must be sent.
    pub fn sack_deadline(&self) -> Option<Nanos> {
        self.sack.deadline()
    }

    /// Handles the end of the SACK delay.
    pub fn handle_sack_timer(&mut self, now: Nanos) {
        self.sack.handle_timer(now);
    }

    /// Removes the next readable message or part from the buffer.
    #[inline(always)]
    fn take_first(&mut self) -> Option<ReceivedPart> {
        if self.ready.is_empty() && !self.has_nothing() {
            self.relieve_reader();
        }
        let Deliverable { part, bytes, .. } = self.ready.take_first()?;
        self.is_taken(&part, bytes);
        Some(part)
    }

    /// Like [`Receiver::poll_part`], for complete messages only: parts are assembled as they
    /// arrive, up to [`Config::max_message`].
    ///
    /// # Errors
    /// A message is longer than [`Config::max_message`]. Its assembled data was dropped.
    pub fn poll_message(&mut self) -> Result<Option<ReceivedMessage>, TooLong> {
        match self.poll_whole() {
            None => self.poll_assembled(|_| false),
            whole => Ok(whole),
        }
    }

    /// Like [`Receiver::poll_message`], if the first entry is a complete message, which is the
    /// usual case. The message is moved only once.
    #[inline(always)]
    pub(crate) fn poll_whole(&mut self) -> Option<ReceivedMessage> {
        let Deliverable { part, bytes, .. } = self.ready.front()?;
        if !part.begins || !part.ends {
            return None;
        }
        let (stream, bytes) = (part.stream, *bytes);
        let (length, chunks) = (part.payload.len(), part.payload.chunks());
        self.is_read(stream, bytes, length, chunks);
        Some(self.ready.pop_front()?.part.into_message())
    }

    /// Like [`Receiver::poll_message`], after [`Self::poll_whole`] returned `None`. `stops`:
    /// whether data that follows this number of events must stay queued.
    #[inline(always)]
    pub(crate) fn poll_assembled(
        &mut self,
        stops: impl Fn(u32) -> bool,
    ) -> Result<Option<ReceivedMessage>, TooLong> {
        while !self.preceding_events().is_some_and(&stops)
            && let Some(part) = self.take_first()
        {
            if let Some(message) = self.whole_or_assembled(part)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Returns `part` if it is a complete message, or the message that it completes.
    #[inline(always)]
    fn whole_or_assembled(
        &mut self,
        part: ReceivedPart,
    ) -> Result<Option<ReceivedMessage>, TooLong> {
        match part.begins && part.ends {
            true => Ok(Some(part.into_message())),
            false => self.assemble(part),
        }
    }

    /// Whether there is nothing to read. If the window is closed, part of a message may become
    /// readable on demand.
    #[inline(always)]
    pub(crate) fn has_nothing(&self) -> bool {
        self.ready.is_empty() && self.window.to_advertise() > 0
    }

    #[inline(never)]
    fn assemble(&mut self, part: ReceivedPart) -> Result<Option<ReceivedMessage>, TooLong> {
        self.assembly.add(part)
    }

    /// Payload protocol identifier of the next readable message or part.
    pub(crate) fn next_ppid(&self) -> Option<u32> {
        self.ready.front().map(|it| it.part.ppid)
    }

    /// Whether a message or part can be read.
    pub fn has_message(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Counters so far.
    pub fn statistics(&self) -> ReceiverStatistics {
        self.statistics.told()
    }

    /// Window in bytes that a SACK would advertise now.
    pub fn a_rwnd(&self) -> u32 {
        self.window.to_advertise()
    }

    /// Cumulative TSN: the last TSN before the first missing one.
    pub fn cumulative_tsn(&self) -> Tsn {
        self.tracker.cumulative()
    }

    /// Highest received TSN.
    pub(crate) fn highest_tsn(&self) -> Tsn {
        self.tracker.highest()
    }

    /// Whether the receive buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.window.used() == 0 && self.ready.is_empty() && !self.has_key_messages()
    }

    /// Whether the receive buffer is empty, and no TSN after the cumulative TSN was received.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.is_empty() && !self.tracker.has_gaps()
    }
}

#[cfg(test)]
mod complexity_tests;
#[cfg(test)]
mod tests;
