//! What waits to be told to the user. A user who does not ask holds no more than a peer could make it: the oldest wait, later ones are
//! counted.

use std::collections::VecDeque;

use crate::event::Event;

/// Events that wait, beside those that are told once.
const MOST_WAITING: usize = 256;

/// Events in the order in which they came.
#[derive(Debug)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    /// Events that found no room since the last that did.
    missed: u64,
    /// Bytes of abandoned messages that wait, and that may.
    bytes: usize,
    most_bytes: usize,
    /// [`Event::Readable`] waits.
    readable: bool,
}

impl Events {
    /// For events that hold so many bytes of user data, or one that holds more.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            missed: 0,
            bytes: 0,
            most_bytes,
            readable: false,
        }
    }

    pub(crate) fn push_back(&mut self, event: Event) {
        if matches!(event, Event::Readable) && std::mem::replace(&mut self.readable, true) {
            return;
        }
        let bytes = user_data(&event);
        let once = matches!(
            event,
            Event::Established { .. } | Event::Readable | Event::Closed(_)
        );
        let full = self.waiting.len() >= MOST_WAITING
            || (bytes > 0 && self.bytes > 0 && self.bytes + bytes > self.most_bytes);
        if full && !once {
            self.missed += 1;
            return;
        }
        self.tell_missed();
        self.bytes += bytes;
        self.waiting.push_back(event);
    }

    pub(crate) fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.push_back(event));
    }

    fn tell_missed(&mut self) {
        let events = std::mem::take(&mut self.missed);
        if events > 0 {
            self.waiting.push_back(Event::Missed { events });
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        if self.waiting.is_empty() {
            self.tell_missed();
        }
        self.bytes -= user_data(&event);
        if matches!(event, Event::Readable) {
            self.readable = false;
        }
        Some(event)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.waiting.iter()
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
        assert!(events.waiting.len() <= MOST_WAITING + 4);
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

    #[test]
    fn abandoned_messages_hold_no_more_than_the_send_buffer() {
        let mut events = Events::new(1_000);
        let message = |len: usize| {
            Event::MessageAbandoned(Box::new(AbandonedMessage {
                stream: Some(1),
                ppid: 0,
                unordered: false,
                payload: vec![0; len].into(),
                policy: AbandonPolicy::Lifetime,
                sent: false,
            }))
        };
        events.push_back(message(5_000));
        events.push_back(message(1));
        assert_eq!(events.pop_front(), Some(message(5_000)));
        assert_eq!(events.pop_front(), Some(Event::Missed { events: 1 }));
        (0..4).for_each(|_| events.push_back(message(300)));
        events.push_back(key(1));
        let told = told(&mut events);
        let missed = Event::Missed { events: 1 };
        assert_eq!(
            told,
            [message(300), message(300), message(300), missed, key(1)]
        );
        assert_eq!(events.bytes, 0);
    }
}
