//! Queue of an association's events that the user has not read, ordered relative to the messages.
//! Events are numbered as they occur. A message that becomes readable records the number of events
//! before it ([`Readable`](crate::rx)), which defines one order of events and messages. The queue
//! is bounded even if the user reads no events: the oldest events are dropped and counted.

use std::collections::VecDeque;

use crate::event::{Event, UndeliveredMessage};
use crate::lazy_box::{IsEmpty, LazyBox};
use crate::pr_sctp::AbandonedMessage;
use crate::tx::DeliveryStatus;
use crate::work_counter;

/// Maximum number of queued events. One-time events, undelivered messages, receipts and messages
/// that were abandoned together do not count.
const MAX_WAITING: usize = 256;

/// Event and its number.
#[derive(Debug)]
struct Entry {
    event: Event,
    number: u32,
}

/// Quantities with a separate limit, of one event or summed over the queue.
#[derive(Debug, Default, PartialEq, Eq)]
struct Limited {
    /// Bytes of abandoned messages, of lists of streams, and of names in the peer's certificates.
    bytes: usize,
    /// Number of undelivered messages.
    undelivered: usize,
    /// Number of [`Event::PeerError`] events.
    peer_errors: usize,
}

impl Limited {
    const NONE: Self = Self {
        bytes: 0,
        undelivered: 0,
        peer_errors: 0,
    };

    #[inline]
    fn of(event: &Event) -> Self {
        let mut of_it = Self::NONE;
        match event {
            Event::MessageAbandoned(message) => of_it.bytes = message.payload.len(),
            Event::StreamsReset { streams, .. } => of_it.bytes = size_of_val(&streams[..]),
            Event::PeerAuthenticated(peer) => of_it.bytes = size_of_names(&peer.names),
            Event::MessageUndelivered(_) => of_it.undelivered = 1,
            Event::PeerError { .. } => of_it.peer_errors = 1,
            _ => {}
        }
        of_it
    }

    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.undelivered += other.undelivered;
        self.peer_errors += other.peer_errors;
    }

    /// Subtracts the counts of an event that leaves the queue. Undelivered messages take a short
    /// branch, because the user may read thousands of them in a row.
    #[inline]
    fn subtract(&mut self, event: &Event) {
        if let Event::MessageUndelivered(_) = event {
            self.undelivered -= 1;
            return;
        }
        let other = Self::of(event);
        self.bytes -= other.bytes;
        self.undelivered -= other.undelivered;
        self.peer_errors -= other.peer_errors;
    }
}

/// Size in bytes of a peer's names. Not inlined, because few events contain names.
#[cold]
fn size_of_names(names: &[String]) -> usize {
    let sizes = names.iter().map(|it| size_of::<String>() + it.len());
    sizes.sum()
}

/// Events after the first, receipts, and sums over all events. Allocated only if several events are
/// queued, or an event with a separate limit.
#[derive(Debug, Default)]
struct Backlog {
    /// Events after the first.
    events: VecDeque<Entry>,
    /// Number of events at the front of `events` that must not be dropped.
    kept: usize,
    receipts: VecDeque<(u32, u64, DeliveryStatus)>,
    /// Number of dropped events that [`Event::Missed`] has not reported yet.
    missed: u64,
    /// Sums over all queued events.
    limited: Limited,
}

impl Backlog {
    fn pop_front(&mut self) -> Option<Entry> {
        self.kept = self.kept.saturating_sub(1);
        self.events.pop_front()
    }

    fn remove(&mut self, place: usize) -> Option<Entry> {
        self.kept -= usize::from(place < self.kept);
        let entry = self.events.remove(place)?;
        self.limited.subtract(&entry.event);
        Some(entry)
    }

    /// Removes the oldest event that may be dropped. Thousands of events that must be kept may
    /// precede it. Their number is stored, so that later calls skip them.
    fn remove_oldest(&mut self) -> Option<Entry> {
        let behind = self.events.range(self.kept..);
        let kept = behind.take_while(|it| !may_go(&it.event)).count();
        work_counter::count(kept + 1);
        self.kept += kept;
        self.remove(self.kept)
    }
}

impl IsEmpty for Backlog {
    const EMPTY: &'static Self = &Self {
        events: VecDeque::new(),
        kept: 0,
        receipts: VecDeque::new(),
        missed: 0,
        limited: Limited::NONE,
    };

    fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.receipts.is_empty()
            && self.missed == 0
            && self.limited == Limited::NONE
    }
}

/// Flag: there is output about which the driver was not notified.
const NEWS: u8 = 1;
/// Flag: [`Output::Writable`](crate::Output::Writable) must be returned.
const WRITABLE: u8 = 2;
/// Flag: the user waits for space in the send buffer.
const WANTS_ROOM: u8 = 4;
/// Flag: the user has requested [`Output::Sent`](crate::Output::Sent).
const REPORTS_SENT: u8 = 8;

/// Queue of events in the order in which they occurred.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// First queued event. If it is `None`, the queue is empty except for receipts and a pending
    /// [`Event::Missed`].
    first: Option<Entry>,
    backlog: LazyBox<Backlog>,
    /// Maximum number of bytes of abandoned messages, lists of streams and peer names.
    max_bytes: usize,
    /// Number of events so far, which is the number of the next event.
    next: u32,
    /// Number of the first event that [`Self::unseen`] has not returned.
    seen: u32,
    /// Size in bytes of the smallest message for which the user waits for space.
    wanted: u32,
    flags: u8,
}

/// Whether event number `number` precedes a message that has `preceding` events before it.
#[inline]
pub(crate) fn is_before(number: u32, preceding: u32) -> bool {
    (preceding.wrapping_sub(number) as i32) > 0
}

impl EventQueue {
    /// Creates a queue with space for `max_bytes` bytes of user data, lists of streams and names.
    /// Messages that were abandoned together may exceed this limit.
    #[inline(always)]
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            first: None,
            backlog: LazyBox::default(),
            max_bytes,
            next: 0,
            seen: 0,
            wanted: 0,
            flags: 0,
        }
    }

    /// Number of events so far.
    #[inline(always)]
    pub(crate) fn count(&self) -> u32 {
        self.next
    }

    pub(crate) fn push_back(&mut self, event: Event) {
        while self.is_full() && self.drop_oldest() {}
        self.append(event);
    }

    pub(crate) fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.push_back(event));
    }

    /// Adds messages that were abandoned at the same time. All of them are queued, even beyond the
    /// limits, because the send buffer, which held them until now, bounds their size.
    pub(crate) fn abandoned(&mut self, messages: impl Iterator<Item = AbandonedMessage>) {
        let mut messages = messages.peekable();
        if messages.peek().is_some() {
            while self.is_full() && self.drop_oldest() {}
        }
        for message in messages {
            self.append(Event::MessageAbandoned(Box::new(message)));
        }
    }

    /// Adds undelivered messages. All of them are queued, even beyond the limits, because the send
    /// buffer, which held them until now, bounds their size. If the peer restarts repeatedly, only
    /// the messages of the first restart are queued until the user has read them. The messages left
    /// when the association is closed (`last`) are always queued.
    pub(crate) fn undelivered(
        &mut self,
        messages: impl Iterator<Item = UndeliveredMessage>,
        last: bool,
    ) {
        if self.backlog.limited.undelivered > 0 && !last {
            self.backlog.make().missed += messages.count() as u64;
            return;
        }
        // The messages are added by one `extend` call, because there may be thousands of them.
        let mut number = self.next;
        let mut entries = messages.map(|message| {
            let event = Event::MessageUndelivered(Box::new(message));
            let entry = Entry { event, number };
            number = number.wrapping_add(1);
            entry
        });
        if self.first.is_none() {
            self.first = entries.next();
        }
        let backlog = self.backlog.make();
        backlog.events.extend(entries);
        let added = number.wrapping_sub(self.next);
        backlog.limited.undelivered += added as usize;
        if added > 0 {
            self.next = number;
            self.flags |= NEWS;
        }
        self.backlog.change(|_| ());
    }

    /// Adds a receipt that the user requested. Receipts are never dropped. Each belongs to a
    /// message of the user, so the peer cannot cause additional receipts.
    pub(crate) fn receipt(&mut self, number: u64, delivery: DeliveryStatus) {
        let place = self.count_one();
        let receipts = &mut self.backlog.make().receipts;
        receipts.push_back((place, number, delivery));
    }

    /// Whether the oldest event must be dropped when the next event is added.
    fn is_full(&self) -> bool {
        let backlog = &*self.backlog;
        let events = backlog.events.len() + usize::from(self.first.is_some());
        let Limited {
            bytes, undelivered, ..
        } = backlog.limited;
        events - undelivered >= MAX_WAITING || bytes > self.max_bytes
    }

    /// Drops the oldest event that may be dropped. Returns `false` if there is none.
    #[cold]
    fn drop_oldest(&mut self) -> bool {
        let first = self.first.as_ref();
        let dropped = match first.is_some_and(|it| may_go(&it.event)) {
            true => self.take_first(),
            false => self.backlog.change(Backlog::remove_oldest).flatten(),
        };
        if dropped.is_none() {
            return false;
        }
        self.backlog.make().missed += 1;
        true
    }

    #[inline]
    fn count_one(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.flags |= NEWS;
        number
    }

    #[inline]
    fn append(&mut self, event: Event) {
        let number = self.count_one();
        let limited = Limited::of(&event);
        if limited != Limited::NONE {
            self.backlog.make().limited.add(&limited);
        }
        let entry = Entry { event, number };
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.backlog.make().events.push_back(entry),
        }
    }

    /// Whether an event (including receipts if `receipts`) precedes a message that has `preceding`
    /// events before it.
    pub(crate) fn has_before(&self, preceding: u32, receipts: bool) -> bool {
        let first = self.first_number(receipts);
        self.backlog.missed > 0 || first.is_some_and(|it| is_before(it, preceding))
    }

    /// Number of the first event (including receipts if `receipts`).
    pub(crate) fn first_number(&self, receipts: bool) -> Option<u32> {
        let receipt = self.backlog.receipts.front().filter(|_| receipts);
        match (&self.first, receipt) {
            (Some(event), Some(receipt)) if is_before(receipt.0, event.number) => Some(receipt.0),
            (None, receipt) => receipt.map(|it| it.0),
            (Some(event), _) => Some(event.number),
        }
    }

    /// Removes the first event.
    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        if self.backlog.has_any() {
            return self.pop_of_several();
        }
        self.first.take().map(|it| it.event)
    }

    #[cold]
    #[inline(never)]
    fn pop_of_several(&mut self) -> Option<Event> {
        let receipt = self.backlog.receipts.front().map(|it| it.0);
        let event = self.first.as_ref().map(|it| it.number);
        if let Some(receipt) = receipt
            && event.is_none_or(|event| is_before(receipt, event))
            && self.backlog.missed == 0
        {
            return self.pop_receipt();
        }
        self.pop_event()
    }

    /// Removes the first event that is not a receipt.
    pub(crate) fn pop_event(&mut self) -> Option<Event> {
        if let missed @ 1.. = self.backlog.missed {
            self.backlog.change(|it| it.missed = 0);
            return Some(Event::Missed { events: missed });
        }
        self.take_first().map(|it| it.event)
    }

    /// Removes the first receipt.
    pub(crate) fn pop_receipt(&mut self) -> Option<Event> {
        let receipt = self.backlog.change(|it| it.receipts.pop_front());
        let (_, number, delivery) = receipt.flatten()?;
        Some(Event::Receipt { number, delivery })
    }

    /// Removes the first event for which `wanted` is true, if it precedes a message that has
    /// `preceding` events before it.
    #[cold]
    pub(crate) fn pop_where(
        &mut self,
        preceding: Option<u32>,
        wanted: impl Fn(&Event) -> bool,
    ) -> Option<Event> {
        let comes = |it: &&Entry| preceding.is_none_or(|count| is_before(it.number, count));
        let mut entries = self.first.iter().chain(&self.backlog.events);
        let at = entries
            .by_ref()
            .take_while(comes)
            .position(|it| wanted(&it.event))?;
        if at == 0 {
            return self.take_first().map(|it| it.event);
        }
        let entry = self.backlog.change(|it| it.remove(at - 1)).flatten();
        entry.map(|it| it.event)
    }

    /// Removes the first entry.
    fn take_first(&mut self) -> Option<Entry> {
        let entry = self.first.take()?;
        let first = &mut self.first;
        self.backlog.change(|it| {
            it.limited.subtract(&entry.event);
            *first = it.pop_front();
        });
        Some(entry)
    }

    /// Number of queued [`Event::PeerError`] events.
    pub(crate) fn peer_errors(&self) -> usize {
        self.backlog.limited.peer_errors
    }

    /// Whether the queue is empty.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && !self.backlog.has_any()
    }

    /// Events since the last call, except [`Event::Receipt`]. The events stay in the queue.
    pub(crate) fn unseen(&mut self) -> impl Iterator<Item = &Event> {
        let seen = std::mem::replace(&mut self.seen, self.next);
        let was_seen = move |it: &Entry| is_before(it.number, seen);
        let first = self.first.iter().filter(move |it| !was_seen(it));
        let events = &self.backlog.events;
        let others = events.range(events.partition_point(was_seen)..);
        first.chain(others).map(|it| &it.event)
    }
}

/// Notifications of the driver, and of a user who waits for buffer space.
impl EventQueue {
    /// Records that there is new output.
    #[inline(always)]
    pub(crate) fn note_news(&mut self) {
        self.flags |= NEWS;
    }

    /// Whether there is new output about which the driver was not notified.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.flags & NEWS != 0
    }

    /// Clears the pending notification of the driver; returns whether there was one.
    #[inline]
    pub(crate) fn take_news(&mut self) -> bool {
        let had = self.has_news();
        self.flags &= !NEWS;
        had
    }

    /// Records that the user waits for space for a message of `size` bytes. If several sizes were
    /// requested, the smallest counts.
    pub(crate) fn want_room(&mut self, size: usize) {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.wanted = match self.flags & WANTS_ROOM {
            0 => size,
            _ => size.min(self.wanted),
        };
        self.flags |= WANTS_ROOM;
    }

    /// Requests [`Output::Sent`](crate::Output::Sent) for the user.
    pub(crate) fn report_sent(&mut self) {
        self.flags |= REPORTS_SENT;
    }

    /// Whether sending packets may cause [`Output::Writable`] or [`Output::Sent`].
    #[inline(always)]
    pub(crate) fn follows_sending(&self) -> bool {
        self.flags & (WANTS_ROOM | REPORTS_SENT) != 0
    }

    pub(crate) fn reports_sent(&self) -> bool {
        self.flags & REPORTS_SENT != 0
    }

    /// Size in bytes of the message that the user waits to send.
    pub(crate) fn wanted_room(&self) -> Option<usize> {
        (self.flags & WANTS_ROOM != 0).then_some(self.wanted as usize)
    }

    /// Records that the space for which the user waits is available.
    pub(crate) fn has_room(&mut self) {
        self.flags = self.flags & !WANTS_ROOM | WRITABLE | NEWS;
    }

    /// Clears the writable notification; returns whether there was one.
    #[inline]
    pub(crate) fn take_writable(&mut self) -> bool {
        let had = self.flags & WRITABLE != 0;
        self.flags &= !WRITABLE;
        had
    }
}

/// Whether an event may be dropped if the queue is full: all events except one-time events and
/// undelivered messages, which have a separate limit.
fn may_go(event: &Event) -> bool {
    !matches!(
        event,
        Event::Established { .. } | Event::Closed(_) | Event::MessageUndelivered(_)
    )
}

#[cfg(test)]
mod tests;
