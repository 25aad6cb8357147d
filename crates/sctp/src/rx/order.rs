//! Ordered delivery: whole messages wait here for the ones before them in their stream (RFC 9260 §6.6).

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
    /// It still occupies the receive window.
    pub counted: bool,
    pub since: Nanos,
}

#[derive(Debug, Default)]
struct InStream {
    next: Ssn,
    /// Ascending by distance from `next`.
    waiting: VecDeque<Whole>,
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

    /// Whether the message is not the next of its stream.
    pub fn must_wait(&self, message: &ReceivedMessage) -> bool {
        let next = self
            .streams
            .get(message.stream)
            .map_or(Ssn(0), |stream| stream.next);
        message.ssn != next
    }

    /// Takes a whole ordered message, and gives what can be delivered now to `deliver`, in order. False if its number was
    /// used already: the peer contradicts itself, and the message is dropped.
    pub fn insert(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) -> bool {
        let stream = self.streams.entry(whole.message.stream);
        let ssn = whole.message.ssn;
        if ssn == stream.next {
            stream.next = ssn.next();
            deliver(whole);
            while stream
                .waiting
                .front()
                .is_some_and(|first| first.message.ssn == stream.next)
            {
                if let Some(first) = stream.waiting.pop_front() {
                    stream.next = stream.next.next();
                    deliver(first);
                }
            }
            return true;
        }
        if !ssn.gt(stream.next) {
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
            counted: true,
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
