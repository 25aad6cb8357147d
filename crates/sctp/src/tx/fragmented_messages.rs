//! Fragmented messages in flight, kept as a whole until their last chunk is acknowledged.

use anabranch_wire::Tsn;
use bytes::Bytes;

use super::send_queue::Fragment;
use crate::shrinking_queue::Queue;

/// Each fragmented message whose last chunk is outstanding, by the TSN of that chunk, in order.
#[derive(Debug, Default)]
pub(super) struct FragmentedMessages(Queue<(Tsn, Bytes)>);

impl FragmentedMessages {
    /// Chunk `tsn`, the last so far, ends a message.
    pub fn keep(&mut self, tsn: Tsn, whole: Bytes) {
        self.0.push_back((tsn, whole));
    }

    /// The cumulative TSN passes a chunk.
    #[inline(always)]
    pub fn pass(&mut self, tsn: Tsn, fragment: &Fragment) {
        if fragment.ends_several() {
            self.pass_end(tsn);
        }
    }

    #[inline(never)]
    fn pass_end(&mut self, tsn: Tsn) {
        // A message that was abandoned before its last chunk was cut has an empty chunk in its
        // place.
        if self.0.front().is_some_and(|(at, _)| *at == tsn) {
            self.0.pop_front();
        }
    }

    /// The message that chunk `tsn` ends is abandoned: releases its user data.
    pub fn forget(&mut self, tsn: Tsn) {
        let place = self.0.partition_point(|(at, _)| at.lt(tsn));
        if let Some((at, whole)) = self.0.get_mut(place)
            && *at == tsn
        {
            *whole = Bytes::new();
        }
    }

    /// Takes the message that chunk `tsn` ends, and drops the preceding ones.
    pub fn take(&mut self, tsn: Tsn) -> Bytes {
        let mut last = Bytes::new();
        while self.0.front().is_some_and(|(at, _)| at.le(tsn)) {
            last = self.0.pop_front().map_or(last, |(_, whole)| whole);
        }
        last
    }

    /// Last TSNs and lengths of the messages.
    #[cfg(test)]
    pub fn kept(&self) -> Vec<(u32, usize)> {
        let all = self.0.iter();
        all.map(|(tsn, whole)| (tsn.0, whole.len())).collect()
    }
}
