//! Run of buffered messages of one stream, with increasing numbers and TSNs.
//! After a loss, messages nearly always arrive in this form, and are delivered from the front
//! without a search.

use anabranch_wire::Tsn;
use anabranch_wire::serial::Mid;

use super::Whole;
use crate::lazy_box::LazyBox;
use crate::shrinking_queue::Queue;
use crate::work_counter;

/// The run. Its numbers and its TSNs lie within half of their number spaces, like those of all
/// buffered messages of a stream, so that they can be compared in serial number order.
#[derive(Debug, Default)]
pub(super) struct Contiguous(LazyBox<Queue<Whole>>);

impl Contiguous {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a message that is not in the run. Returns the message if it does not continue the
    /// run.
    #[inline]
    pub fn append(&mut self, whole: Whole) -> Option<Whole> {
        if let Some(last) = self.0.back() {
            let (message, before) = (&whole.message, &last.message);
            let goes_on = message.stream == before.stream
                && whole.number.gt(last.number)
                && message.tsn.gt(before.tsn);
            if !goes_on {
                return Some(whole);
            }
        }
        // `compact` is set, because a buffered message retains little more memory than its own
        // bytes.
        self.0.make().push_back(Whole {
            compact: true,
            ..whole
        });
        None
    }

    /// Whether the run contains a message with this number.
    #[inline]
    pub fn contains(&self, stream: u16, number: Mid) -> bool {
        let Some(last) = self.0.back() else {
            return false;
        };
        if last.message.stream != stream || number.gt(last.number) {
            return false;
        }
        let at = self.0.partition_point(|whole| {
            work_counter::count(1);
            number.gt(whole.number)
        });
        self.0.get(at).is_some_and(|it| it.number == number)
    }

    /// Removes the first message if it has this number.
    #[inline]
    pub fn take(&mut self, stream: u16, number: Mid) -> Option<Whole> {
        let first = self.0.front()?;
        if first.message.stream != stream || first.number != number {
            return None;
        }
        self.take_first()
    }

    /// Number of the first message if it belongs to this stream.
    #[inline]
    pub fn front_on(&self, stream: u16) -> Option<Mid> {
        let first = self.0.front()?;
        (first.message.stream == stream).then_some(first.number)
    }

    /// Removes the first message.
    #[inline]
    pub fn take_first(&mut self) -> Option<Whole> {
        work_counter::count(1);
        self.0.change(Queue::pop_sparing).flatten()
    }

    /// Unused capacity in bytes.
    #[inline(always)]
    pub fn spare(&self) -> usize {
        if self.0.has_any() { self.0.spare() } else { 0 }
    }

    /// Releases most of the unused capacity.
    pub fn compact(&mut self) {
        let most = self.0.len() + self.0.len() / 4;
        self.0.change(|row| row.shrink_to(most));
    }

    /// Highest TSN in the run.
    pub fn highest(&self) -> Option<Tsn> {
        self.0.back().map(Whole::last)
    }

    /// Removes the message with the highest TSN.
    pub fn take_last(&mut self) -> Option<Whole> {
        self.0.change(|row| row.pop_back()).flatten()
    }

    /// Number of messages of a stream in the run.
    #[cfg(test)]
    pub fn count(&self, stream: u16) -> usize {
        let of_it = |whole: &&Whole| whole.message.stream == stream;
        self.0.iter().filter(of_it).count()
    }
}
