//! Tests of the event queue.

use anabranch_dtls::PeerIdentity;

use super::*;
use crate::event::CloseReason;
use crate::event::UndeliveredCause;
use crate::pr_sctp::{AbandonPolicy, AbandonedMessage};
use crate::reconfig::{ReconfigOutcome, StreamDirection};

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
    assert_eq!(1 + events.backlog.events.len(), MAX_WAITING);
    let all = all(&mut events);
    assert_eq!(all[0], Event::Missed { events: 46 });
    assert!(matches!(all[1], Event::Established { .. }));
    let keys: Vec<_> = (46..300).map(key).collect();
    assert_eq!(all[2..256], keys);
    assert_eq!(all[256..], [Event::Closed(CloseReason::Shutdown)]);
    assert!(events.is_empty() && events.backlog.is_empty());
}

#[test]
fn events_and_receipts_are_one_order() {
    let mut events = EventQueue::new(1_000);
    let receipt = |number| Event::Receipt {
        number,
        delivery: DeliveryStatus::Acknowledged,
    };
    events.receipt(1, DeliveryStatus::Acknowledged);
    events.push_back(key(0));
    events.push_back(key(1));
    events.receipt(2, DeliveryStatus::Acknowledged);
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

/// All undelivered messages are queued, regardless of their number: those of the first restart, and
/// those left when the association is closed.
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
    assert!(events.backlog.is_empty());
    events.undelivered([message(1)].into_iter(), false);
    assert!(matches!(
        events.pop_front(),
        Some(Event::MessageUndelivered(_))
    ));
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
    // All messages abandoned together are queued; messages abandoned later push them out.
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
    assert!(events.backlog.is_empty());
}

/// A peer may list tens of thousands of streams in each request.
#[test]
fn lists_of_streams_hold_no_more_than_the_send_buffer() {
    let mut events = EventQueue::new(1_000);
    for _ in 0..20 {
        events.push_back(Event::StreamsReset {
            direction: StreamDirection::Incoming,
            streams: vec![7; 100],
            outcome: ReconfigOutcome::Performed,
        });
    }
    events.push_back(key(0));
    let all = all(&mut events);
    assert_eq!(all[0], Event::Missed { events: 15 });
    assert_eq!((all.len(), &all[6]), (7, &key(0)));
    assert!(events.backlog.is_empty());
}

/// Names in a peer's certificates count towards the byte limit, because the peer chooses them and
/// may prove its identity repeatedly.
#[test]
fn names_of_the_peer_hold_no_more_than_the_send_buffer() {
    let mut events = EventQueue::new(1_000);
    let name = "x".repeat(100 - size_of::<String>());
    for at in 0..20 {
        let identity = PeerIdentity::new(vec![name.clone(); 2], [at; 32]);
        events.push_back(Event::PeerAuthenticated(Box::new(identity)));
    }
    events.push_back(key(0));
    assert_eq!(events.backlog.limited.bytes, 1_000);
    let all = all(&mut events);
    assert_eq!(all[0], Event::Missed { events: 15 });
    assert_eq!((all.len(), &all[6]), (7, &key(0)));
    assert_eq!(events.backlog.limited, Limited::NONE);
    assert!(events.backlog.is_empty());
}

#[test]
fn of_several_waits_for_space_the_smallest_counts() {
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

/// A peer may restart, and then cause many events.
#[test]
fn undelivered_messages_are_examined_once() {
    const MESSAGES: usize = 5_000;
    const EVENTS: u16 = 1_000;
    let mut events = EventQueue::new(1_000);
    let message = UndeliveredMessage {
        stream: Some(1),
        ppid: 0,
        unordered: false,
        payload: "x".into(),
        context: 0,
        cause: UndeliveredCause::Restarted,
        sent: false,
    };
    events.push_back(key(0));
    events.undelivered(std::iter::repeat_n(message, MESSAGES), false);
    work_counter::take();
    (0..EVENTS).for_each(|at| events.push_back(key(at)));
    let steps = work_counter::take();
    assert!(steps <= MESSAGES as u64 + u64::from(EVENTS), "{steps}");
    events.pop_front();
    let message = |it: &Event| matches!(it, Event::MessageUndelivered(_));
    assert!(events.pop_where(None, message).is_some());
    (0..EVENTS).for_each(|at| events.push_back(key(at)));
    let all = all(&mut events);
    assert_eq!(all.len(), 1 + MESSAGES - 1 + MAX_WAITING);
    assert_eq!(all.last(), Some(&key(EVENTS - 1)));
}

/// The number of peer errors is counted incrementally, without a scan of all events.
#[test]
fn errors_of_the_peer_are_counted_as_they_come_and_go() {
    let mut events = EventQueue::new(1_000);
    let error = || Event::PeerError { cause: 1 };
    (0..3).for_each(|_| events.push_back(error()));
    assert_eq!(events.peer_errors(), 3);
    assert_eq!(events.pop_front(), Some(error()));
    assert_eq!(events.peer_errors(), 2);
    (0..300).for_each(|at| events.push_back(key(at)));
    assert_eq!(events.peer_errors(), 0);
    all(&mut events);
    assert!(events.backlog.is_empty());
}
