//! Queue of the events of an association that its user has not read, with their order relative to
//! the messages.
//!
//! Events are numbered as they occur. A message that becomes readable records the number of events
//! before it ([`Readable`](crate::rx)), so that both queues form one order. The queue is bounded if
//! the user reads nothing: the oldest events are dropped and counted.

use std::collections::VecDeque;

use crate::event::{Event, UndeliveredMessage};
use crate::lazy_box::{IsEmpty, LazyBox};
use crate::pr_sctp::AbandonedMessage;
use crate::tx::Delivery;

/// Maximum number of waiting events, without one-time events, undelivered messages, receipts, and
/// messages abandoned together.
const MAX_WAITING: usize = 256;

/// Event and its number.
#[derive(Debug)]
struct Entry {
    event: Event,
    number: u32,
}

/// Allocated only if several events wait.
#[derive(Debug, Default)]
struct Backlog {
    /// Events after the first.
    events: VecDeque<Entry>,
    receipts: VecDeque<(u32, u64, Delivery)>,
    /// Number of dropped events that were not reported to the user yet.
    missed: u64,
    /// Bytes of abandoned messages in the queue.
    bytes: usize,
    /// Number of undelivered messages in the queue.
    undelivered: usize,
}

impl IsEmpty for Backlog {
    const BLANK: &'static Self = &Self {
        events: VecDeque::new(),
        receipts: VecDeque::new(),
        missed: 0,
        bytes: 0,
        undelivered: 0,
    };

    fn is_blank(&self) -> bool {
        self.events.is_empty()
            && self.receipts.is_empty()
            && self.missed == 0
            && self.bytes == 0
            && self.undelivered == 0
    }
}

/// There is output of which the driver was not notified.
const NEWS: u8 = 1;
/// [`Output::Writable`](crate::Output::Writable) waits.
const WRITABLE: u8 = 2;
/// The user waits for buffer space.
const WANTS_ROOM: u8 = 4;
/// The user wants [`Output::Sent`](crate::Output::Sent).
const REPORTS_SENT: u8 = 8;

/// Events in the order in which they occurred.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// First waiting event. If it is `None`, no other event waits.
    first: Option<Entry>,
    backlog: LazyBox<Backlog>,
    /// Maximum number of bytes of abandoned messages.
    max_bytes: usize,
    /// Number of events so far, which is the number of the next one.
    next: u32,
    /// Number of the first event that the driver was not shown.
    seen: u32,
    /// Smallest size in bytes of the messages that the user waits to send.
    wanted: u32,
    flags: u8,
}

/// Whether the event `number` comes before a message with `preceding` events before it.
#[inline]
pub(crate) fn is_before(number: u32, preceding: u32) -> bool {
    (preceding.wrapping_sub(number) as i32) > 0
}

impl EventQueue {
    /// Creates a queue for events with up to `max_bytes` of user data, plus messages abandoned
    /// together beyond this limit.
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
    /// limits, because the sender buffered them all.
    pub(crate) fn abandoned(&mut self, messages: impl Iterator<Item = AbandonedMessage>) {
        let mut messages = messages.peekable();
        if messages.peek().is_some() {
            while self.is_full() && self.drop_oldest() {}
        }
        for message in messages {
            self.append(Event::MessageAbandoned(Box::new(message)));
        }
    }

    /// Adds undelivered messages. All of them are queued, even beyond the limits, because the
    /// sender buffered them all. Of a peer that restarts repeatedly, only the messages of the first
    /// restart are queued until the user has read them; the messages left at the end of the
    /// association (`last`) are always queued.
    pub(crate) fn undelivered(
        &mut self,
        messages: impl Iterator<Item = UndeliveredMessage>,
        last: bool,
    ) {
        if self.backlog.undelivered > 0 && !last {
            self.backlog.make().missed += messages.count() as u64;
            return;
        }
        // Reserve once, because there may be thousands of messages.
        self.backlog.make().events.reserve(messages.size_hint().0);
        for message in messages {
            self.append(Event::MessageUndelivered(Box::new(message)));
        }
        self.backlog.change(|_| ());
    }

    /// Adds a receipt that the user requested. Their number is bounded by the messages that the
    /// sender buffered.
    pub(crate) fn receipt(&mut self, number: u64, delivery: Delivery) {
        let place = self.count_one();
        let receipts = &mut self.backlog.make().receipts;
        receipts.push_back((place, number, delivery));
    }

    /// Whether the oldest event must be dropped when the next one is added.
    fn is_full(&self) -> bool {
        let backlog = &*self.backlog;
        let events = backlog.events.len() + usize::from(self.first.is_some());
        events - backlog.undelivered >= MAX_WAITING || backlog.bytes > self.max_bytes
    }

    /// Drops the oldest event that may be dropped. Returns `false` if there is none.
    #[cold]
    fn drop_oldest(&mut self) -> bool {
        let Some(at) = self.iter().position(may_go) else {
            return false;
        };
        let dropped = match at {
            0 => self.take_first(),
            _ => self.backlog.make().events.remove(at - 1),
        };
        if let Some(dropped) = dropped {
            self.let_go(&dropped.event);
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
        match &event {
            Event::MessageAbandoned(it) => self.backlog.make().bytes += it.payload.len(),
            Event::MessageUndelivered(_) => self.backlog.make().undelivered += 1,
            _ => {}
        }
        let entry = Entry { event, number };
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.backlog.make().events.push_back(entry),
        }
    }

    /// Whether an event (or a receipt if `receipts`) comes before a message with `preceding` events
    /// before it.
    pub(crate) fn has_before(&self, preceding: u32, receipts: bool) -> bool {
        let first = self.first_number(receipts);
        self.backlog.missed > 0 || first.is_some_and(|it| is_before(it, preceding))
    }

    /// Number of the first event (or receipt if `receipts`).
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
        let entry = self.take_first()?;
        self.let_go(&entry.event);
        Some(entry.event)
    }

    /// Removes the first receipt.
    pub(crate) fn pop_receipt(&mut self) -> Option<Event> {
        let receipt = self.backlog.change(|it| it.receipts.pop_front());
        let (_, number, delivery) = receipt.flatten()?;
        Some(Event::Receipt { number, delivery })
    }

    /// Removes the first event for which `wanted` is true, if it comes before a message with
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
            let entry = self.take_first()?;
            self.let_go(&entry.event);
            return Some(entry.event);
        }
        let entry = self
            .backlog
            .change(|it| it.events.remove(at - 1))
            .flatten()?;
        self.let_go(&entry.event);
        Some(entry.event)
    }

    fn take_first(&mut self) -> Option<Entry> {
        let next = self.backlog.change(|it| it.events.pop_front()).flatten();
        std::mem::replace(&mut self.first, next)
    }

    /// Updates the counters for a removed event.
    fn let_go(&mut self, event: &Event) {
        self.backlog.change(|it| match event {
            Event::MessageAbandoned(message) => it.bytes -= message.payload.len(),
            Event::MessageUndelivered(_) => it.undelivered -= 1,
            _ => {}
        });
    }

    /// Whether the queue is empty.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && !self.backlog.has_any()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        let entries = self.first.iter().chain(&self.backlog.events);
        entries.map(|it| &it.event)
    }

    /// Events since the last call, without receipts; they stay in the queue.
    pub(crate) fn unseen(&mut self) -> impl Iterator<Item = &Event> {
        let seen = std::mem::replace(&mut self.seen, self.next);
        let entries = self.first.iter().chain(&self.backlog.events);
        let unseen = entries.filter(move |it| !is_before(it.number, seen));
        unseen.map(|it| &it.event)
    }
}

/// Notifications for the driver and for a user who waits for buffer space.
impl EventQueue {
    /// Records that there is output.
    #[inline(always)]
    pub(crate) fn note_news(&mut self) {
        self.flags |= NEWS;
    }

    /// Whether there is output of which the driver was not notified.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.flags & NEWS != 0
    }

    /// Clears the notification of the driver; returns whether there was one.
    #[inline]
    pub(crate) fn take_news(&mut self) -> bool {
        let had = self.has_news();
        self.flags &= !NEWS;
        had
    }

    /// Records that the user waits for space for a message of `size` bytes. The smallest of several
    /// sizes counts.
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

    /// Whether sent packets may cause output.
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

    /// Records that there is space now.
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

/// Whether an event may be dropped if too many wait: all except one-time events and undelivered
/// messages, which have a separate limit.
fn may_go(event: &Event) -> bool {
    !matches!(
        event,
        Event::Established { .. } | Event::Closed(_) | Event::MessageUndelivered(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CloseReason;
    use crate::event::UndeliveredCause;
    use crate::pr_sctp::{AbandonPolicy, AbandonedMessage};

    fn key(key_id: u16) -> Event {
        Event::PeerAuthKey { key_id }
    }

    fn all(events: &mut EventQueue) -> Vec<Event> {
        std::iter::from_fn(|| events.pop_front()).collect()
    }

    #[test]
    fn the_oldest_events_go_and_are_counted() {
        let mut events = EventQueue::new(1_000);
        events.push_back(Event::Established {
            outbound_streams: 1,
            inbound_streams: 1,
        });
        (0..300).for_each(|at| events.push_back(key(at)));
        events.push_back(Event::Closed(CloseReason::Shutdown));
        assert_eq!(events.iter().count(), MAX_WAITING);
        let all = all(&mut events);
        assert_eq!(all[0], Event::Missed { events: 46 });
        assert!(matches!(all[1], Event::Established { .. }));
        let keys: Vec<_> = (46..300).map(key).collect();
        assert_eq!(all[2..256], keys);
        assert_eq!(all[256..], [Event::Closed(CloseReason::Shutdown)]);
        assert!(events.is_empty() && events.backlog.is_blank());
    }

    #[test]
    fn events_and_receipts_are_one_order() {
        let mut events = EventQueue::new(1_000);
        let receipt = |number| Event::Receipt {
            number,
            delivery: Delivery::Acknowledged,
        };
        events.receipt(1, Delivery::Acknowledged);
        events.push_back(key(0));
        events.push_back(key(1));
        events.receipt(2, Delivery::Acknowledged);
        events.push_back(key(2));
        let count = events.count();
        assert_eq!(count, 5);
        assert!(!events.has_before(0, true) && events.has_before(1, true));
        assert!(!events.has_before(1, false) && events.has_before(2, false));
        let expected = [receipt(1), key(0), key(1), receipt(2), key(2)];
        assert_eq!(all(&mut events), expected);
        assert!(!events.has_before(count, true));
    }

    #[test]
    fn some_events_are_taken_before_others() {
        let mut events = EventQueue::new(1_000);
        (0..4).for_each(|at| events.push_back(key(at)));
        let third = |it: &Event| *it == key(2);
        assert_eq!(events.pop_where(Some(2), third), None, "it comes later");
        assert_eq!(events.pop_where(Some(3), third), Some(key(2)));
        assert_eq!(events.pop_where(None, |it| *it == key(0)), Some(key(0)));
        assert_eq!(all(&mut events), [key(1), key(3)]);
    }

    #[test]
    fn the_driver_sees_each_event_once_and_takes_none() {
        let mut events = EventQueue::new(1_000);
        assert!(!events.take_news());
        (0..3).for_each(|at| events.push_back(key(at)));
        assert!(events.take_news() && !events.take_news());
        assert_eq!(events.unseen().count(), 3);
        assert_eq!(events.pop_front(), Some(key(0)));
        events.push_back(key(3));
        assert_eq!(events.unseen().collect::<Vec<_>>(), [&key(3)]);
        assert_eq!(events.unseen().count(), 0);
        assert_eq!(all(&mut events), [key(1), key(2), key(3)]);
    }

    /// All messages are queued, whatever their number: those left by one restart, and those left at
    /// the end.
    #[test]
    fn undelivered_messages_wait_beyond_the_bound() {
        let mut events = EventQueue::new(1_000);
        let message = |len: usize| UndeliveredMessage {
            stream: Some(1),
            ppid: 0,
            unordered: false,
            payload: vec![0; len].into(),
            context: 0,
            cause: UndeliveredCause::Restarted,
            sent: false,
        };
        (0..300).for_each(|at| events.push_back(key(at)));
        events.undelivered((0..400).map(|_| message(300)), false);
        events.undelivered((0..7).map(|_| message(300)), false);
        events.push_back(key(300));
        events.undelivered((0..9).map(|_| message(300)), true);
        let all = all(&mut events);
        let is_it = |it: &&Event| matches!(it, Event::MessageUndelivered(_));
        assert_eq!(all.iter().filter(is_it).count(), 400 + 9);
        assert_eq!(all[0], Event::Missed { events: 44 + 7 + 1 });
        assert!(events.backlog.is_blank());
        events.undelivered([message(1)].into_iter(), false);
        assert_eq!(events.iter().filter(is_it).count(), 1);
    }

    #[test]
    fn abandoned_messages_hold_no_more_than_the_send_buffer() {
        let mut events = EventQueue::new(1_000);
        let message = |len: usize| AbandonedMessage {
            stream: Some(1),
            ppid: 0,
            unordered: false,
            payload: vec![0; len].into(),
            context: 0,
            policy: AbandonPolicy::Lifetime,
            sent: false,
        };
        let event = |len| Event::MessageAbandoned(Box::new(message(len)));
        // All messages abandoned together are queued; later ones replace them.
        events.abandoned((0..400).map(|_| message(300)));
        events.abandoned([message(1), message(2)].into_iter());
        let mut expected = vec![Event::Missed { events: 397 }];
        expected.extend((0..3).map(|_| event(300)));
        expected.extend([event(1), event(2)]);
        assert_eq!(all(&mut events), expected);
        (0..6).for_each(|_| events.abandoned([message(300)].into_iter()));
        events.push_back(key(0));
        let mut expected = vec![Event::Missed { events: 3 }];
        expected.extend((0..3).map(|_| event(300)));
        expected.push(key(0));
        assert_eq!(all(&mut events), expected);
        assert!(events.backlog.is_blank());
    }

    #[test]
    fn of_several_wishes_for_room_the_smallest_counts() {
        let mut events = EventQueue::new(1_000);
        assert_eq!(events.wanted_room(), None);
        events.want_room(700);
        events.want_room(300);
        events.want_room(900);
        assert!(events.follows_sending() && !events.take_writable());
        assert_eq!(events.wanted_room(), Some(300));
        events.has_room();
        assert!(events.take_news() && events.take_writable());
        assert!(!events.take_writable() && !events.follows_sending());
    }
}
