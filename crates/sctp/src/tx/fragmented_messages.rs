//! Fragmented messages in flight, stored as a whole until their last chunk is acknowledged.

use anabranch_wire::Tsn;
use bytes::Bytes;

use super::send_queue::Fragment;
use crate::shrinking_queue::Queue;

/// Fragmented messages whose last chunk is outstanding, by the TSN of that chunk, in ascending
/// order.
#[derive(Debug, Default)]
pub(super) struct FragmentedMessages(Queue<(Tsn, Bytes)>);

impl FragmentedMessages {
    /// Stores a message whose last chunk is `tsn`, the highest TSN so far.
    pub fn keep(&mut self, tsn: Tsn, whole: Bytes) {
        self.0.push_back((tsn, whole));
    }

    /// Drops the message that ends with chunk `tsn`, if any, because the cumulative TSN passes this
    /// chunk.
    #[inline(always)]
    pub fn pass(&mut self, tsn: Tsn, fragment: &Fragment) {
        if fragment.ends_several() {
            self.pass_end(tsn);
        }
    }

    #[inline(never)]
    fn pass_end(&mut self, tsn: Tsn) {
        // If a message was abandoned before its last chunk was sent, an empty chunk takes the place
        // of that chunk, and no message is stored.
        if self.0.front().is_some_and(|(at, _)| *at == tsn) {
            self.0.pop_front();
        }
    }

    /// Releases the user data of the abandoned message whose last chunk is `tsn`.
    pub fn forget(&mut self, tsn: Tsn) {
        let place = self.0.partition_point(|(at, _)| at.lt(tsn));
        if let Some((at, whole)) = self.0.get_mut(place)
            && *at == tsn
        {
            *whole = Bytes::new();
        }
    }

    /// Removes and returns the message whose last chunk is `tsn`, and drops earlier messages.
    pub fn take(&mut self, tsn: Tsn) -> Bytes {
        let mut last = Bytes::new();
        while self.0.front().is_some_and(|(at, _)| at.le(tsn)) {
            last = self.0.pop_front().map_or(last, |(_, whole)| whole);
        }
        last
    }

    /// Last TSNs and lengths of the stored messages.
    #[cfg(test)]
    pub fn kept(&self) -> Vec<(u32, usize)> {
        let all = self.0.iter();
        all.map(|(tsn, whole)| (tsn.0, whole.len())).collect()
    }
}
