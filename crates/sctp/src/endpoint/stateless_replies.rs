//! Queue of stateless replies.

use std::collections::VecDeque;

use anabranch_transport::Path;
use anabranch_wire::encode::Encode;
use anabranch_wire::packet::PacketBuilder;
use bytes::Bytes;

use crate::lazy_box::LazyBox;

/// Reply packet with its addresses and the peer's UDP port.
#[derive(Debug)]
pub(super) struct StatelessReply {
    pub(super) path: Path,
    pub(super) udp_port: u16,
    pub(super) packet: Bytes,
}

/// Chunk of any type that can be added to a packet.
pub(super) trait DynEncode {
    /// Length in bytes with padding.
    fn len(&self) -> usize;

    fn push_to(&self, packet: &mut PacketBuilder<'_>) -> Result<(), anabranch_wire::Full>;
}

impl<T: Encode> DynEncode for T {
    fn len(&self) -> usize {
        self.encoded_len()
    }

    fn push_to(&self, packet: &mut PacketBuilder<'_>) -> Result<(), anabranch_wire::Full> {
        packet.push(self)
    }
}

/// Queued replies in order. Usually there is at most one, which needs no allocation.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    /// First reply; if it is `None`, `others` is empty.
    first: Option<StatelessReply>,
    others: LazyBox<VecDeque<StatelessReply>>,
}

impl ReplyQueue {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn push(&mut self, answer: StatelessReply) {
        match &self.first {
            None => self.first = Some(answer),
            Some(_) => self.others.make().push_back(answer),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<StatelessReply> {
        // Usually there is no reply, and this check avoids the moves below.
        self.first.as_ref()?;
        let first = self.first.take()?;
        self.first = self.others.change(VecDeque::pop_front).flatten();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_came_goes_first() {
        let mut answers = ReplyQueue::default();
        let mut expected = VecDeque::new();
        let path = Path::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for turn in 0..100_u16 {
            for number in 0..turn % 4 {
                let udp_port = turn * 4 + number;
                let packet = Bytes::new();
                answers.push(StatelessReply {
                    path,
                    udp_port,
                    packet,
                });
                expected.push_back(udp_port);
            }
            assert_eq!(answers.len(), expected.len());
            for _ in 0..turn % 3 {
                assert_eq!(answers.pop().map(|it| it.udp_port), expected.pop_front());
            }
        }
        while let Some(answer) = answers.pop() {
            assert_eq!(Some(answer.udp_port), expected.pop_front());
        }
        assert!(expected.is_empty() && answers.is_empty());
    }
}
