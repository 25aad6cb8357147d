//! Partial delivery: readable messages, and readable parts of incomplete messages (RFC 9260 §6.9).

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::{Nanos, Probe, Trace, time};
use anabranch_wire::extension::PPID_DTLS_KEY_MANAGEMENT;
use anabranch_wire::{Ssn, Tsn};

use super::interleaved::receive::told_of;
use super::message::{MessageBytes, ReceivedPart};
use super::ordering::{Order, Whole};
use super::ready_queue::{Deliverable, ReadyQueue};
use super::reassembly::{Head, Reassembly};
use super::stream_usage::PerStreamUsage;
use super::window::ReceiveWindow;
use super::{Abandoned, Receiver};
use crate::lazy_box::LazyBox;
use crate::profile::Counts;
use crate::stats::ReceiverCounters;

/// Maximum number of simultaneous partial deliveries. Only a peer that leaves gaps on purpose
/// reaches it.
const MAX_OPEN: usize = 64;

/// The byte count of the receive window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowBytes(pub Counts);

impl WindowBytes {
    #[inline]
    pub fn of_all(self, payload: &MessageBytes) -> u64 {
        match payload {
            MessageBytes::One(bytes) => self.0.bytes(bytes.len()),
            MessageBytes::Many(parts) => parts.iter().map(|part| self.0.bytes(part.len())).sum(),
        }
    }
}

/// Borrowed parts of a receiver that delivery changes.
pub(super) struct Delivery<'a> {
    pub now: Nanos,
    /// Readable data counts as read.
    pub as_read: bool,
    pub counts: WindowBytes,
    /// Number of association events so far.
    pub preceding: u32,
    pub ready: &'a mut ReadyQueue,
    pub key_messages: Option<&'a mut VecDeque<Deliverable>>,
    pub window: &'a mut ReceiveWindow,
    pub held: &'a mut PerStreamUsage,
    pub statistics: &'a mut ReceiverCounters,
    pub trace: &'a mut Trace,
}

impl Delivery<'_> {
    /// Makes a complete message readable.
    #[inline]
    pub fn whole(&mut self, whole: Whole) {
        let part = ReceivedPart::whole(whole.message);
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
            self.statistics.seldom().partial_messages += 1;
        }
        let mut bytes = self.counts.of_all(&part.payload);
        if self.as_read {
            self.window.uncount(bytes);
            self.held.free(part.stream, bytes);
            bytes = 0;
        }
        let is_whole = part.begins && part.ends;
        let readable = Deliverable {
            part,
            bytes,
            preceding: self.preceding,
            compact,
        };
        if is_whole {
            match &mut self.key_messages {
                Some(keys) if readable.part.ppid == PPID_DTLS_KEY_MANAGEMENT => {
                    keys.push_back(readable);
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
        // Merges the part with an unread one of the same message, if no event is between them.
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

/// Messages that have reached the partial delivery point and wait for others of their stream.
#[derive(Debug, Default)]
pub(super) struct PartialDelivery(LazyBox<BTreeMap<(u16, Rank), Tsn>>);

/// A message within its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// With this stream sequence number.
    Ordered(u16),
    /// With this first TSN.
    Unordered(u32),
}

impl PartialDelivery {
    fn key(head: &Head) -> (u16, Rank) {
        let rank = if head.unordered {
            Rank::Unordered(head.first.0)
        } else {
            Rank::Ordered(head.ssn.0)
        };
        (head.stream, rank)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn note(&mut self, head: &Head) {
        self.0.make().insert(Self::key(head), head.first);
    }

    /// Removes a message that is delivered or in partial delivery.
    pub fn forget(&mut self, head: &Head) {
        self.0.change(|it| it.remove(&Self::key(head)));
    }

    /// The first fragment of a message that is deliverable if `next` is the next number of the
    /// stream.
    fn next_of(&self, stream: u16, next: Ssn) -> Option<Tsn> {
        let unordered = (stream, Rank::Unordered(0))..=(stream, Rank::Unordered(u32::MAX));
        let ordered = self.0.get(&(stream, Rank::Ordered(next.0)));
        ordered
            .or_else(|| self.0.range(unordered).next().map(|(_, first)| first))
            .copied()
    }
}

impl Receiver {
    pub(super) fn delivery<'a>(
        &'a mut self,
        now: Nanos,
        trace: &'a mut Trace,
    ) -> (Delivery<'a>, &'a mut Order, &'a mut Reassembly) {
        let delivery = Delivery {
            now,
            as_read: !self.profile.window_counts_deliverable,
            counts: WindowBytes(self.profile.rwnd_counts),
            preceding: self.preceding,
            ready: &mut self.ready,
            key_messages: self.key_messages.as_deref_mut(),
            window: &mut self.window,
            held: &mut self.held,
            statistics: &mut self.statistics,
            trace,
        };
        (delivery, &mut self.order, &mut self.reassembly)
    }

    /// The fragment `tsn` was buffered: its message may have reached the partial delivery point.
    pub(super) fn grew(&mut self, now: Nanos, tsn: Tsn, trace: &mut Trace) {
        let Some(point) = self.partial_delivery_point.get() else {
            return;
        };
        let Some(head) = self.reassembly.head_of(tsn) else {
            return;
        };
        if head.bytes as u64 >= point && !self.open(now, head, trace) {
            self.long.note(&head);
        }
    }

    /// Starts partial delivery of a message if it is next.
    fn open(&mut self, now: Nanos, head: Head, trace: &mut Trace) -> bool {
        if !self.order.is_next(head.stream, head.unordered, head.ssn)
            || self.reassembly.opened_count() >= MAX_OPEN
        {
            return false;
        }
        self.long.forget(&head);
        let (mut delivery, order, reassembly) = self.delivery(now, trace);
        let Some(part) = reassembly.open(head.first) else {
            return false;
        };
        order.open(head.stream, head.unordered);
        delivery.part(part);
        true
    }

    /// The next part of a message in partial delivery.
    pub(super) fn part(&mut self, now: Nanos, part: ReceivedPart, trace: &mut Trace) {
        let (stream, ends) = (part.stream, part.ends);
        let (mut delivery, order, _) = self.delivery(now, trace);
        delivery.part(part);
        if ends {
            order.close(stream, |whole| delivery.whole(whole));
            self.went_on(now, stream, trace);
        }
    }

    /// The next message of a stream changed, and enough of it may be buffered.
    #[inline]
    pub(super) fn went_on(&mut self, now: Nanos, stream: u16, trace: &mut Trace) {
        if !self.long.0.is_empty() {
            self.open_next(now, stream, trace);
        }
    }

    fn open_next(&mut self, now: Nanos, stream: u16, trace: &mut Trace) {
        while let Some(first) = self.long.next_of(stream, self.order.next(stream)) {
            let head = self.reassembly.head_of(first);
            match head.filter(|head| head.first == first) {
                Some(head) if self.open(now, head, trace) => {}
                Some(_) => return,
                // It was removed without a notification.
                None => {
                    self.long.0.change(|all| all.retain(|_, it| *it != first));
                }
            }
        }
    }

    /// Removes the message with this name: it became complete.
    pub(super) fn no_longer_long(&mut self, stream: u16, unordered: bool, ssn: Ssn, first: Tsn) {
        self.long.forget(&Head {
            first,
            stream,
            unordered,
            ssn,
            ppid: 0,
            bytes: 0,
            open: false,
        });
    }

    /// Nothing is readable and the buffer is full although nothing is missing: only the incomplete
    /// message can be delivered, as far as it has arrived (RFC 9260 §6.9). Returns whether that
    /// helped.
    pub(super) fn relieve(&mut self, now: Nanos, trace: &mut Trace) -> bool {
        if self.interleaved.is_some() {
            return self.relieve_interleaved(now, trace);
        }
        if !self.ready.is_empty() || self.tracker.has_gaps() {
            return false;
        }
        match self.reassembly.at_cumulative(self.tracker.cumulative()) {
            Some(head) if !head.open => self.open(now, head, trace),
            _ => false,
        }
    }

    /// Like [`Receiver::relieve`], after the user has read everything else.
    pub(super) fn relieve_reader(&mut self) {
        if self.relieve(0, &mut Trace::default())
            && let Some(readable) = self.ready.back()
        {
            let (stream, length) = (readable.part.stream, readable.part.payload.len());
            self.unrecorded.make().push((stream, length));
        }
    }

    /// Records messages that became readable while no time was known.
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

    /// Messages that were delivered or are readable in part, and whose end has not arrived.
    pub(crate) fn opened(&self) -> impl Iterator<Item = Abandoned> + '_ {
        let interleaved = self.interleaved.iter().flat_map(|it| it.opened());
        let interleaved =
            interleaved.map(|(stream, name, first, ppid)| told_of(stream, name, first, ppid));
        let opened = self.reassembly.opened();
        opened.map(|head| Abandoned::of(&head)).chain(interleaved)
    }
}
