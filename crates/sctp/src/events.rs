//! What waits to be told to the user. A user who does not ask holds no more than a peer could make it: the oldest wait, later ones are
//! counted.

use std::collections::VecDeque;

use crate::event::{Event, UndeliveredMessage};
use crate::partial::AbandonedMessage;
use crate::seldom::Seldom;
use crate::tx::Delivery;

/// Events that wait, beside those that are told once, and messages that were given up together.
const MOST_WAITING: usize = 256;

/// Events in the order in which they came.
#[derive(Debug)]
pub(crate) struct Events {
    /// The first that waits: mostly there is no other. None waits behind none.
    first: Option<Event>,
    others: Seldom<VecDeque<Event>>,
    /// Events that found no room since the last that did.
    missed: u64,
    /// Bytes of abandoned messages that wait, and that may.
    bytes: usize,
    most_bytes: usize,
    /// Messages that wait which are not delivered.
    undelivered: u32,
    /// [`Event::Readable`] waits.
    readable: bool,
    /// The user needs none.
    reads_unasked: bool,
}

impl Events {
    /// For events that hold so many bytes of user data, and messages given up together beyond it.
    #[inline(always)]
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            first: None,
            others: Seldom::default(),
            missed: 0,
            bytes: 0,
            most_bytes,
            undelivered: 0,
            readable: false,
            reads_unasked: false,
        }
    }

    pub(crate) fn push_back(&mut self, event: Event) {
        if matches!(event, Event::Readable) {
            return self.readable();
        }
        let once = matches!(event, Event::Established { .. } | Event::Closed(_));
        if self.is_full() && !once {
            self.missed += 1;
            return;
        }
        self.put(event);
    }

    /// Messages that were given up at one time are told of together, beyond the limit of events if need be: the sender held them all.
    /// A user who asks after each call misses some in one case: the call gives messages up twice, and the first ones filled the queue.
    pub(crate) fn given_up(&mut self, messages: impl Iterator<Item = AbandonedMessage>) {
        let full = self.is_full();
        for message in messages {
            if full {
                self.missed += 1;
            } else {
                self.put(Event::MessageAbandoned(Box::new(message)));
            }
        }
    }

    /// Messages that are not delivered are told of together, beyond the limit of events if need be: the sender held them all. What a peer that begins
    /// the association again and again leaves undelivered is told once, until the user has asked; what the end leaves, which is the `last`, always.
    pub(crate) fn undelivered(
        &mut self,
        messages: impl Iterator<Item = UndeliveredMessage>,
        last: bool,
    ) {
        let mut messages = messages;
        if self.undelivered > 0 && !last {
            self.missed += messages.count() as u64;
            return;
        }
        let Some(first) = messages.next() else {
            return;
        };
        let event = |message| Event::MessageUndelivered(Box::new(message));
        self.put(event(first));
        let others = self.others.make();
        let before = others.len();
        // There may be thousands, which are moved by the shortest way.
        others.reserve(messages.size_hint().0);
        messages.for_each(|message| others.push_back(event(message)));
        self.undelivered += 1 + (others.len() - before) as u32;
        if others.is_empty() {
            self.others.take();
        }
    }

    /// A receipt, which the user has asked for: told beyond the limit of events if need be. There are no more than messages that the sender
    /// held.
    pub(crate) fn receipt(&mut self, number: u64, delivery: Delivery) {
        self.put(Event::Receipt { number, delivery });
    }

    /// [`Event::Readable`] is told no more.
    pub(crate) fn read_unasked(&mut self) {
        self.reads_unasked = true;
    }

    /// [`Event::Readable`], unless it waits: told for most packets with data, and by this shorter way.
    #[inline]
    pub(crate) fn readable(&mut self) {
        if !self.reads_unasked && !std::mem::replace(&mut self.readable, true) {
            if self.missed > 0 {
                self.tell_missed();
            }
            self.append(Event::Readable);
        }
    }

    fn is_full(&self) -> bool {
        // What is not delivered is bounded apart, and takes no other event's place.
        let others = self.others.len().saturating_sub(self.undelivered as usize);
        others >= MOST_WAITING - 1 || self.bytes > self.most_bytes
    }

    fn put(&mut self, event: Event) {
        if self.missed > 0 {
            self.tell_missed();
        }
        self.bytes += user_data(&event);
        self.append(event);
    }

    #[inline]
    fn append(&mut self, event: Event) {
        match self.first {
            None => self.first = Some(event),
            Some(_) => self.others.make().push_back(event),
        }
    }

    pub(crate) fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.push_back(event));
    }

    #[cold]
    fn tell_missed(&mut self) {
        let events = std::mem::take(&mut self.missed);
        if events > 0 {
            self.append(Event::Missed { events });
        }
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        let event = self.first.take()?;
        if !self.others.is_empty() {
            self.first = self.others.change(VecDeque::pop_front).flatten();
        }
        if self.bytes > 0 || self.missed > 0 || self.undelivered > 0 {
            self.let_go(&event);
        }
        if matches!(event, Event::Readable) {
            self.readable = false;
        }
        Some(event)
    }

    #[cold]
    fn let_go(&mut self, event: &Event) {
        self.bytes -= user_data(event);
        self.undelivered -= u32::from(matches!(event, Event::MessageUndelivered(_)));
        if self.is_empty() {
            self.tell_missed();
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.first.iter().chain(self.others.iter())
    }
}

/// Bytes of user data that it holds.
#[inline]
fn user_data(event: &Event) -> usize {
    match event {
        Event::MessageAbandoned(message) => message.payload.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CloseReason;
    use crate::event::UndeliveredCause;
    use crate::partial::{AbandonPolicy, AbandonedMessage};

    fn key(key_id: u16) -> Event {
        Event::PeerAuthKey { key_id }
    }

    fn told(events: &mut Events) -> Vec<Event> {
        std::iter::from_fn(|| events.pop_front()).collect()
    }

    #[test]
    fn later_events_are_counted_and_what_comes_once_is_told() {
        let mut events = Events::new(1_000);
        (0..300).for_each(|at| events.push_back(key(at)));
        for _ in 0..100 {
            events.push_back(Event::Readable);
        }
        events.push_back(key(300));
        events.push_back(Event::Closed(CloseReason::Shutdown));
        assert!(events.iter().count() <= MOST_WAITING + 4);
        let told = told(&mut events);
        let expected: Vec<Event> = (0..256)
            .map(key)
            .chain([
                Event::Missed { events: 44 },
                Event::Readable,
                Event::Missed { events: 1 },
                Event::Closed(CloseReason::Shutdown),
            ])
            .collect();
        assert_eq!(told, expected);
        events.push_back(Event::Readable);
        assert_eq!(events.pop_front(), Some(Event::Readable));
        events.read_unasked();
        events.push_back(Event::Readable);
        assert_eq!(events.pop_front(), None);
    }

    #[test]
    fn what_was_missed_last_is_told_last() {
        let mut events = Events::new(1_000);
        (0..257).for_each(|at| events.push_back(key(at)));
        let told = told(&mut events);
        assert_eq!(told.len(), 257);
        assert_eq!(told.last(), Some(&Event::Missed { events: 1 }));
        assert!(events.is_empty() && events.pop_front().is_none());
    }

    /// However full it is: all that one restart leaves, and all that the end leaves.
    #[test]
    fn what_is_not_delivered_is_told() {
        let mut events = Events::new(1_000);
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
        events.undelivered((0..9).map(|_| message(300)), true);
        let told = told(&mut events);
        let is_it = |it: &&Event| matches!(it, Event::MessageUndelivered(_));
        assert_eq!(told.iter().filter(is_it).count(), 400 + 9);
        let missed = told.iter().filter_map(|it| match it {
            Event::Missed { events } => Some(*events),
            _ => None,
        });
        assert_eq!(missed.collect::<Vec<_>>(), [44, 7]);
        assert_eq!((events.bytes, events.undelivered), (0, 0));
        events.undelivered([message(1)].into_iter(), false);
        assert_eq!(events.iter().filter(is_it).count(), 1);
    }

    #[test]
    fn abandoned_messages_hold_no_more_than_the_send_buffer() {
        let mut events = Events::new(1_000);
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
        // However many come at a time are told; of those behind them none is.
        events.given_up((0..400).map(|_| message(300)));
        events.given_up([message(1), message(2)].into_iter());
        let mut expected = vec![event(300); 400];
        expected.push(Event::Missed { events: 2 });
        assert_eq!(told(&mut events), expected);
        (0..5).for_each(|_| events.given_up([message(300)].into_iter()));
        events.push_back(Event::Readable);
        let missed = Event::Missed { events: 1 };
        let four = (0..4).map(|_| event(300));
        let expected: Vec<_> = four.chain([missed, Event::Readable]).collect();
        assert_eq!(told(&mut events), expected);
        assert_eq!(events.bytes, 0);
    }
}
