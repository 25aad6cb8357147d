//! Delivery to the ready queue: complete messages, and parts of incomplete messages (partial
//! delivery, RFC 9260 §6.9).

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::{Nanos, Probe, Trace, time};
use anabranch_wire::extension::PPID_DTLS_KEY_MANAGEMENT;
use anabranch_wire::serial::Mid;

use super::chunk::ChunkView;
use super::message::ReceivedPart;
use super::ordering::{Order, Whole};
use super::read_parts::KeyMessages;
use super::ready_queue::{Deliverable, ReadyQueue};
use super::reassembly::Head;
use super::sort_keys::{MessageKey, Place};
use super::stream_usage::PerStreamUsage;
use super::window::{FREE_OPEN, ReceiveWindow};
use super::{Abandoned, Receiver};
use crate::lazy_box::LazyBox;
use crate::profile::Counts;
use crate::stats::ReceiverCounters;
use crate::work_counter;

/// Borrowed parts of a receiver that a delivery changes.
pub(super) struct Delivery<'a> {
    pub now: Nanos,
    /// Whether data counts as read as soon as it is readable.
    pub as_read: bool,
    pub counts: Counts,
    /// Number of association events so far.
    pub preceding: u32,
    pub ready: &'a mut ReadyQueue,
    pub key_messages: Option<&'a mut KeyMessages>,
    pub window: &'a mut ReceiveWindow,
    pub held: &'a mut PerStreamUsage,
    pub statistics: &'a mut ReceiverCounters,
    pub trace: &'a mut Trace,
}

impl Delivery<'_> {
    /// Makes a complete message readable.
    #[inline]
    pub fn whole(&mut self, whole: Whole) {
        let part = ReceivedPart::from(whole.message);
        self.deliver(part, whole.since, whole.compact);
    }

    /// Makes a part of a message readable.
    pub fn part(&mut self, part: ReceivedPart) {
        self.deliver(part, self.now, true);
    }

    #[inline]
    fn deliver(&mut self, part: ReceivedPart, since: Nanos, compact: bool) {
        let length = part.payload.len() as f64;
        self.trace
            .record(self.now, Probe::Delivered, part.stream, length);
        if part.begins {
            self.trace.record(
                self.now,
                Probe::HolBlockingDelay,
                part.stream,
                time::seconds(self.now - since),
            );
        }
        if part.ends {
            self.statistics.messages += 1;
        } else if part.begins {
            self.statistics.rare().partial_messages += 1;
        }
        let mut bytes = part.payload.counted(self.counts);
        if self.as_read {
            self.window.uncount(bytes);
            self.held.free(part.stream, bytes);
            bytes = 0;
        }
        let is_whole = part.begins && part.ends;
        let mut readable = Deliverable {
            part,
            bytes,
            preceding: self.preceding,
            compact,
        };
        if is_whole {
            match &mut self.key_messages {
                Some(keys) if readable.part.ppid == PPID_DTLS_KEY_MANAGEMENT => {
                    // The message is copied out of its packet now, because [`Receiver::compact`]
                    // does not examine key management messages.
                    if !readable.compact {
                        readable.part.payload.compact();
                    }
                    keys.make().push_back((readable.part, readable.bytes));
                    self.ready.delivered_elsewhere();
                }
                _ => self.ready.push_back(readable),
            }
        } else {
            self.add_part(readable);
        }
    }

    #[inline(never)]
    fn add_part(&mut self, readable: Deliverable) {
        let Deliverable { part, .. } = &readable;
        // Merge the part with an unread part of the same message, if no event is between them.
        if !part.begins
            && let Some(last) = self.ready.back_mut()
            && last.part.stream == part.stream
            && last.preceding == readable.preceding
            && !last.part.ends
        {
            let (stream, ends) = (part.stream, part.ends);
            last.part.ends = ends;
            last.part.payload.append(readable.part.payload);
            last.bytes += readable.bytes;
            last.compact &= readable.compact;
            return self.ready.took_in(stream, ends);
        }
        self.ready.push_part(readable, self.statistics.messages);
    }
}

/// Incomplete messages whose partial delivery may start later.
#[derive(Debug, Default)]
pub(super) struct PartialDelivery {
    /// First fragments of messages that have reached the partial delivery point and wait for
    /// earlier messages of their stream.
    long: LazyBox<BTreeMap<MessageKey, Place>>,
    /// Interleaved messages whose first fragment was received, and which are unordered or the next
    /// of their stream.
    begun: LazyBox<BTreeSet<MessageKey>>,
    /// Whether the last search of `begun` started no partial delivery, and nothing that the search
    /// depends on has changed since.
    stuck: bool,
}

impl PartialDelivery {
    /// Key of a message. Unordered DATA has no message number, so its first TSN is used. The
    /// unordered flag of a position is set only for I-DATA.
    fn key(head: &Head) -> MessageKey {
        let is_unordered_data = head.unordered && !head.first.message.1;
        let number = match is_unordered_data {
            true => head.first.at.0,
            false => head.number.0,
        };
        (head.stream, head.unordered, number)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.long.is_empty()
    }

    /// Removes a message that is complete, in partial delivery or dropped.
    pub fn forget(&mut self, head: &Head) {
        self.long.change(|it| it.remove(&Self::key(head)));
        self.begun.change(|it| it.remove(&Self::key(head)));
    }

    /// First fragment of a message of the stream whose delivery may start, if `next` is the next
    /// number of the stream.
    fn next_of(&self, stream: u16, next: Mid) -> Option<Place> {
        let unordered = (stream, true, 0)..=(stream, true, u32::MAX);
        let ordered = self.long.get(&(stream, false, next.0));
        ordered
            .or_else(|| self.long.range(unordered).next().map(|(_, first)| first))
            .copied()
    }
}

impl Receiver {
    pub(super) fn delivery<'a>(
        &'a mut self,
        now: Nanos,
        trace: &'a mut Trace,
    ) -> (Delivery<'a>, &'a mut Order) {
        let delivery = Delivery {
            now,
            as_read: !self.profile.window_counts_deliverable,
            counts: self.profile.rwnd_counts,
            preceding: self.preceding,
            ready: &mut self.ready,
            key_messages: self.key_messages.as_mut(),
            window: &mut self.window,
            held: &mut self.held,
            statistics: &mut self.statistics,
            trace,
        };
        (delivery, &mut self.order)
    }

    /// Called after a fragment was buffered, because its message may have reached the partial
    /// delivery point.
    pub(super) fn grew(&mut self, now: Nanos, chunk: &ChunkView<'_>, trace: &mut Trace) {
        let point = self.partial_delivery_point.get();
        let head = point.and_then(|_| self.reassembly.head_of(chunk.place));
        let is_long = |it: &Head| point.is_some_and(|point| it.bytes as u64 >= point);
        if let Some(head) = head.filter(is_long) {
            if self.open(now, head, trace) {
                return;
            }
            let long = self.long.long.make();
            long.insert(PartialDelivery::key(&head), head.first);
        }
        let is_first = chunk.is_interleaved && chunk.beginning;
        if is_first && (chunk.unordered || chunk.number == self.order.next(chunk.stream)) {
            self.note_begun(chunk.place.message);
        }
    }

    /// Records an interleaved message whose partial delivery may start if no other message of its
    /// stream is in partial delivery.
    fn note_begun(&mut self, message: MessageKey) {
        self.long.begun.make().insert(message);
        self.long.stuck &= self.order.is_open(message.0);
    }

    /// Starts partial delivery of a message if it is the next of its stream. Returns whether it
    /// started.
    fn open(&mut self, now: Nanos, head: Head, trace: &mut Trace) -> bool {
        if !self.order.is_next(head.stream, head.unordered, head.number) || !self.may_open() {
            return false;
        }
        self.long.forget(&head);
        let Some(part) = self.reassembly.open(head.first) else {
            return false;
        };
        self.order.open(head.stream, head.unordered);
        self.window.count_open(self.reassembly.opened_count());
        self.delivery(now, trace).0.part(part);
        true
    }

    /// Applies `change` to the delivery order of a stream, and delivers the messages that can
    /// follow. Returns the result of `change`.
    pub(super) fn advance(
        &mut self,
        now: Nanos,
        stream: u16,
        trace: &mut Trace,
        change: impl FnOnce(&mut Order, &mut dyn FnMut(Whole)) -> bool,
    ) -> bool {
        let (mut delivery, order) = self.delivery(now, trace);
        let changed = change(order, &mut |whole| delivery.whole(whole));
        if changed {
            self.went_on(now, stream, trace);
        }
        changed
    }

    /// Ends the partial delivery on the stream.
    pub(super) fn close(&mut self, now: Nanos, stream: u16, trace: &mut Trace) {
        self.long.stuck = false;
        self.window.count_open(self.reassembly.opened_count());
        self.advance(now, stream, trace, |order, deliver| {
            order.close(stream, deliver);
            true
        });
    }

    /// Delivers the next part of a message in partial delivery.
    pub(super) fn part(&mut self, now: Nanos, part: ReceivedPart, trace: &mut Trace) {
        let (stream, ends) = (part.stream, part.ends);
        self.delivery(now, trace).0.part(part);
        if ends {
            self.close(now, stream, trace);
        }
    }

    /// Called when the next message of a stream has changed, because its partial delivery may now
    /// start.
    #[inline]
    pub(super) fn went_on(&mut self, now: Nanos, stream: u16, trace: &mut Trace) {
        if self.reassembly.is_interleaved() && !self.reassembly.is_empty() {
            let message = (stream, false, self.order.next(stream).0);
            let head = self.reassembly.head_of_message(message);
            if head.is_some_and(|it| !it.open) {
                self.note_begun(message);
            }
        }
        if !self.long.is_empty() {
            self.open_next(now, stream, trace);
        }
    }

    fn open_next(&mut self, now: Nanos, stream: u16, trace: &mut Trace) {
        while let Some(first) = self.long.next_of(stream, self.order.next(stream)) {
            let head = self.reassembly.head_of(first);
            match head.filter(|head| head.first == first) {
                Some(head) if self.open(now, head, trace) => {}
                Some(_) => return,
                // The message was already removed from the reassembly.
                None => {
                    self.long
                        .long
                        .change(|all| all.retain(|_, it| *it != first));
                }
            }
        }
    }

    /// Starts a partial delivery to free space. If no data is readable and the buffer is full
    /// although no TSN is missing, only the received part of the incomplete message can be
    /// delivered (RFC 9260 §6.9). Returns whether any data was delivered.
    pub(super) fn relieve(&mut self, now: Nanos, trace: &mut Trace) -> bool {
        if !self.ready.is_empty() {
            return false;
        }
        if self.reassembly.is_interleaved() {
            return self.open_begun(now, trace);
        }
        if self.tracker.has_gaps() {
            return false;
        }
        match self.reassembly.at_cumulative(self.tracker.cumulative()) {
            Some(head) if !head.open => self.open(now, head, trace),
            _ => false,
        }
    }

    /// Interleaved messages whose partial delivery may start, unless another is in progress on
    /// their stream.
    #[cfg(test)]
    pub(super) fn begun(&self) -> Vec<MessageKey> {
        self.long.begun.iter().copied().collect()
    }

    /// Whether there is memory for another partial delivery.
    fn may_open(&self) -> bool {
        self.reassembly.opened_count() < FREE_OPEN
            || (self.reassembly.is_interleaved() && self.window.has_memory_to_open())
    }

    /// Starts partial delivery of an interleaved message on every stream that has one. Returns
    /// whether any data was delivered.
    fn open_begun(&mut self, now: Nanos, trace: &mut Trace) -> bool {
        if self.long.stuck {
            return false;
        }
        let mut helped = false;
        let mut from = Some(0);
        while let Some(stream) = from
            && self.may_open()
            && let Some(&message) = self.long.begun.range((stream, false, 0)..).next()
        {
            work_counter::count(1);
            let is_open = self.order.is_open(message.0);
            let head = self.reassembly.head_of_message(message);
            if !is_open && !head.is_some_and(|it| self.open(now, it, trace)) {
                // This message is no longer the next of its stream.
                self.long.begun.change(|it| it.remove(&message));
                continue;
            }
            helped |= !is_open;
            from = message.0.checked_add(1);
        }
        self.long.stuck = !helped && self.may_open();
        helped
    }

    /// Like [`Receiver::relieve`], called when the user has read all readable data.
    pub(super) fn relieve_reader(&mut self) {
        if self.relieve(0, &mut Trace::default())
            && let Some(readable) = self.ready.back()
        {
            let (stream, length) = (readable.part.stream, readable.part.payload.len());
            self.unrecorded.make().push((stream, length));
        }
    }

    /// Records in the trace which messages became readable while no time was known.
    #[inline]
    pub(super) fn record_late(&mut self, now: Nanos, trace: &mut Trace) {
        if !self.unrecorded.is_empty() {
            self.record_unrecorded(now, trace);
        }
    }

    #[cold]
    fn record_unrecorded(&mut self, now: Nanos, trace: &mut Trace) {
        for (stream, length) in self.unrecorded.take() {
            trace.record(now, Probe::Delivered, stream, length as f64);
            trace.record(now, Probe::HolBlockingDelay, stream, 0.0);
        }
    }

    /// Incomplete messages of which a part was delivered or is readable.
    pub(crate) fn opened(&self) -> impl Iterator<Item = Abandoned> + '_ {
        self.reassembly.opened()
    }
}
