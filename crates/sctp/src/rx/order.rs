//! Ordered delivery: whole messages wait here for the ones before them in their stream (RFC 9260 §6.6), and for the end
//! of one of their stream that is delivered in parts.

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_wire::Ssn;

use super::message::ReceivedMessage;
use crate::stream_table::StreamTable;

/// A message that is whole, with what it holds of the receive buffer and when it became whole.
#[derive(Debug)]
pub(super) struct Whole {
    pub message: ReceivedMessage,
    /// Bytes as the receive window counts them.
    pub bytes: u64,
    pub since: Nanos,
}

#[derive(Debug, Default)]
struct InStream {
    next: Ssn,
    /// Ascending by distance from `next`.
    waiting: VecDeque<Whole>,
    /// A message of which a part was delivered, and not yet the end.
    open: Option<Box<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    unordered: bool,
    /// Unordered messages that came whole since.
    behind: Vec<Whole>,
}

impl InStream {
    /// Gives whole messages that are next to `deliver`.
    fn deliver_waiting(&mut self, mut deliver: impl FnMut(Whole)) {
        while self
            .waiting
            .front()
            .is_some_and(|first| first.message.ssn == self.next)
        {
            if let Some(first) = self.waiting.pop_front() {
                self.next = self.next.next();
                deliver(first);
            }
        }
    }
}

/// The streams of the peer. A stream takes memory only once it was used.
#[derive(Debug, Default)]
pub(super) struct Order {
    streams: StreamTable<InStream>,
}

impl Order {
    /// Messages of a stream that wait.
    #[cfg(test)]
    fn waiting_on(&self, stream: u16) -> usize {
        self.streams
            .get(stream)
            .map_or(0, |stream| stream.waiting.len())
    }

    /// Whether the message, or its parts, can be delivered now: it is unordered or the next of its stream, of which no
    /// other message is being delivered.
    pub fn is_next(&self, stream: u16, unordered: bool, ssn: Ssn) -> bool {
        let Some(stream) = self.streams.get(stream) else {
            return unordered || ssn == Ssn(0);
        };
        stream.open.is_none() && (unordered || ssn == stream.next)
    }

    /// The next number of a stream.
    pub fn next(&self, stream: u16) -> Ssn {
        self.streams
            .get(stream)
            .map_or(Ssn(0), |stream| stream.next)
    }

    /// A message of the stream, one that [`Order::is_next`], begins to be delivered in parts.
    pub fn open(&mut self, stream: u16, unordered: bool) {
        self.streams.entry(stream).open = Some(Box::new(Open {
            unordered,
            behind: Vec::new(),
        }));
    }

    /// The end of the message that was [opened](Order::open) is delivered; gives what waited for it to `deliver`.
    pub fn close(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        let stream = self.streams.entry(stream);
        let Some(open) = stream.open.take() else {
            return;
        };
        if !open.unordered {
            stream.next = stream.next.next();
        }
        open.behind.into_iter().for_each(&mut deliver);
        stream.deliver_waiting(deliver);
    }

    /// Takes a whole unordered message: to `deliver` at once, or after the end of one that is being delivered.
    pub fn insert_unordered(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) {
        let stream = whole.message.stream;
        if self.streams.get(stream).is_none_or(|it| it.open.is_none()) {
            return deliver(whole);
        }
        if let Some(open) = &mut self.streams.entry(stream).open {
            open.behind.push(whole);
        }
    }

    /// Takes a whole ordered message, and gives what can be delivered now to `deliver`, in order. False if its number was
    /// used already: the peer contradicts itself, and the message is dropped.
    pub fn insert(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) -> bool {
        let stream = self.streams.entry(whole.message.stream);
        let ssn = whole.message.ssn;
        if ssn == stream.next && stream.open.is_none() {
            stream.next = ssn.next();
            deliver(whole);
            stream.deliver_waiting(deliver);
            return true;
        }
        let is_open = stream.open.as_ref().is_some_and(|open| !open.unordered);
        if !ssn.ge(stream.next) || (is_open && ssn == stream.next) {
            return false;
        }
        let distance = ssn.distance_from(stream.next);
        let next = stream.next;
        let position = stream
            .waiting
            .partition_point(|other| other.message.ssn.distance_from(next) < distance);
        if stream
            .waiting
            .get(position)
            .is_some_and(|other| other.message.ssn == ssn)
        {
            return false;
        }
        stream.waiting.insert(position, whole);
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::rx::message::MessageBytes;

    fn whole(stream: u16, ssn: u16) -> Whole {
        let payload = MessageBytes::One(Bytes::from_static(b"m"));
        let message = ReceivedMessage {
            stream,
            ppid: 0,
            unordered: false,
            ssn: Ssn(ssn),
            payload,
        };
        Whole {
            message,
            bytes: 1,
            since: 0,
        }
    }

    #[test]
    fn each_stream_is_delivered_in_its_own_order() {
        let mut order = Order::default();
        let mut seen = Vec::new();
        for (stream, ssn) in [(1, 1), (2, 0), (1, 2), (2, 2), (1, 0), (2, 1)] {
            assert!(order.insert(whole(stream, ssn), |whole| {
                seen.push((whole.message.stream, whole.message.ssn.0))
            }));
        }
        assert_eq!(seen, [(2, 0), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(order.waiting_on(1) + order.waiting_on(2), 0);
    }

    #[test]
    fn a_number_used_twice_is_refused_and_numbers_wrap() {
        let mut order = Order::default();
        let mut delivered = 0u32;
        for ssn in (0..=u16::MAX).chain(0..10) {
            assert!(order.insert(whole(0, ssn), |_| delivered += 1));
        }
        assert_eq!(delivered, 65_546);
        assert!(!order.insert(whole(0, 9), |_| unreachable!("already delivered")));
        assert!(order.insert(whole(0, 12), |_| unreachable!("10 is missing")));
        assert!(!order.insert(whole(0, 12), |_| unreachable!("already waiting")));
        assert_eq!(order.waiting_on(0), 1);
    }
}
