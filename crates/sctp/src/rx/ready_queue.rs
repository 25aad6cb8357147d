//! Ready queue: unread messages and parts in the order of delivery.
//!
//! If a message in partial delivery will not be completed, its unread parts must be removed from
//! any position. The cost should depend only on the number of these parts. Therefore their
//! positions are recorded, and a removal from the middle leaves an empty slot.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use super::message::{MessageBytes, ReceivedPart};
use crate::shrinking_queue::Queue;
use crate::work_counter;

/// A readable message or part.
#[derive(Debug)]
pub(super) struct Deliverable {
    pub part: ReceivedPart,
    /// Number of bytes for which the data counts in the receiver window.
    pub bytes: u64,
    /// Number of association events that precede the data.
    pub preceding: u32,
    /// Whether the slices keep little more memory alive than their own bytes.
    pub compact: bool,
}

/// Number of empty slots that are always tolerated.
const MAX_EMPTY_SLOTS: usize = 16;
/// At most one in this number of slots may be empty, because empty slots do not count against any
/// limit.
const SOME: usize = 4;

/// Queue of unread data. The last slot is never empty, so a nonempty queue always has readable
/// data.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    queue: Queue<Deliverable>,
    places: Option<Box<Places>>,
}

/// Positions of parts in partial delivery, while there are such messages or empty slots.
///
/// Slots are numbered in the order of use. The number of the next slot is the sum of two counts:
/// the delivered complete messages
/// ([`ReceiverStatistics::messages`](crate::ReceiverStatistics::messages), here `delivered`), and
/// all other slots so far (`more`).
#[derive(Debug, Default)]
struct Places {
    /// Slot numbers of parts in partial delivery, by stream; some of them may have been read.
    of: BTreeMap<u16, VecDeque<u64>>,
    more: u64,
    empty: usize,
}

impl Places {
    /// Number of the next slot.
    fn next(&self, delivered: u64) -> u64 {
        self.more.wrapping_add(delivered)
    }
}

impl Deliverable {
    /// Payload of an empty slot.
    fn nothing() -> MessageBytes {
        MessageBytes::Many(Vec::new())
    }

    #[inline(always)]
    pub fn is_nothing(&self) -> bool {
        !self.part.begins && self.part.payload.parts().is_empty()
    }
}

impl ReadyQueue {
    /// Removes and returns the first entry.
    #[inline(always)]
    pub fn take_first(&mut self) -> Option<Deliverable> {
        let first = self.queue.pop_front()?;
        if first.is_nothing() {
            return self.take_behind_nothing();
        }
        Some(first)
    }

    #[cold]
    fn take_behind_nothing(&mut self) -> Option<Deliverable> {
        let mut first = None;
        while first.as_ref().is_none_or(Deliverable::is_nothing) {
            if let Some(places) = &mut self.places {
                places.empty = places.empty.saturating_sub(1);
            }
            first = Some(self.queue.pop_front()?);
        }
        self.forget_places();
        first
    }

    /// The first entry.
    #[inline]
    pub fn first(&self) -> Option<&Deliverable> {
        self.queue.iter().find(|it| !it.is_nothing())
    }

    /// First entry of a stream.
    pub fn first_on(&self, stream: u16) -> Option<&Deliverable> {
        let of_stream = |it: &&Deliverable| it.part.stream == stream && !it.is_nothing();
        self.queue.iter().find(of_stream)
    }

    /// Removes and returns the first entry of a stream; `delivered` is the number of delivered
    /// messages.
    pub fn take_first_on(&mut self, stream: u16, delivered: u64) -> Option<Deliverable> {
        let wanted = |it: &Deliverable| it.part.stream == stream && !it.is_nothing();
        let place = self.queue.iter().position(wanted)?;
        if place == 0 {
            return self.take_first();
        }
        if self.places.is_none() {
            return self.queue.remove(place);
        }
        let taken = self.take_out(place);
        self.tidy(delivered);
        taken
    }

    /// Appends a part of a message; `delivered` is the number of delivered messages, including the
    /// one that this part completes.
    pub fn push_part(&mut self, readable: Deliverable, delivered: u64) {
        let ReceivedPart {
            stream,
            begins,
            ends,
            ..
        } = readable.part;
        if ends {
            self.ended(stream);
        } else {
            let queued = self.queue.len() as u64;
            let places = self.places.get_or_insert_default();
            let number = places.next(delivered);
            places.more = places.more.wrapping_add(1);
            let of_it = places.of.entry(stream).or_default();
            if begins {
                of_it.clear();
            }
            let was_read = |it: &u64| number.wrapping_sub(*it) > queued;
            while of_it.front().is_some_and(was_read) {
                of_it.pop_front();
            }
            of_it.push_back(number);
        }
        self.queue.push_back(readable);
    }

    /// Records that the last entry was extended by a further part of its message, the last part if
    /// `ends`.
    pub fn took_in(&mut self, stream: u16, ends: bool) {
        if ends {
            self.delivered_elsewhere();
            self.ended(stream);
        }
    }

    /// Records that a message was delivered without a separate slot.
    pub fn delivered_elsewhere(&mut self) {
        if let Some(places) = &mut self.places {
            places.more = places.more.wrapping_sub(1);
        }
    }

    /// Forgets the parts of the message in partial delivery on `stream`, because it is complete.
    fn ended(&mut self, stream: u16) {
        if let Some(places) = &mut self.places {
            places.of.remove(&stream);
        }
        self.forget_places();
    }

    /// Drops the recorded positions if there are neither parts nor empty slots.
    fn forget_places(&mut self) {
        if self
            .places
            .as_ref()
            .is_some_and(|it| it.empty == 0 && it.of.is_empty())
        {
            self.places = None;
        }
    }

    /// Removes the unread parts of the message of `stream` in partial delivery and passes them to
    /// `free`; `delivered` is the number of delivered messages. Returns whether the first part was
    /// among them. The caller must call [`Self::tidy`] afterwards.
    pub fn forget(
        &mut self,
        stream: u16,
        delivered: u64,
        mut free: impl FnMut(Deliverable),
    ) -> bool {
        let mut begins = false;
        let Some(places) = &mut self.places else {
            return begins;
        };
        let first = places.next(delivered).wrapping_sub(self.queue.len() as u64);
        for number in places.of.remove(&stream).unwrap_or_default() {
            work_counter::count(1);
            let place = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
            // The user may have read this part already.
            if let Some(readable) = self.take_out(place) {
                begins |= readable.part.begins;
                free(readable);
            }
        }
        begins
    }

    /// Adjusts slot numbers because the count of delivered messages restarts at 0; `before` is the
    /// count until now.
    pub fn restart_count(&mut self, before: u64) {
        if let Some(places) = &mut self.places {
            places.more = places.more.wrapping_add(before);
        }
    }

    /// Streams with a partial delivery that may have unread parts.
    pub fn streams_of_parts(&self) -> impl Iterator<Item = u16> + '_ {
        self.places.iter().flat_map(|it| it.of.keys().copied())
    }

    /// Removes the entry of a slot and leaves the slot empty.
    fn take_out(&mut self, place: usize) -> Option<Deliverable> {
        let readable = self.queue.get_mut(place).filter(|it| !it.is_nothing())?;
        let part = &mut readable.part;
        let left = Deliverable {
            part: ReceivedPart {
                begins: std::mem::take(&mut part.begins),
                payload: std::mem::replace(&mut part.payload, Deliverable::nothing()),
                ..*part
            },
            bytes: std::mem::take(&mut readable.bytes),
            preceding: readable.preceding,
            compact: std::mem::replace(&mut readable.compact, true),
        };
        part.ends = false;
        if let Some(places) = &mut self.places {
            places.empty += 1;
        }
        Some(left)
    }

    /// Removes empty slots at the end, and all empty slots if there are too many. `delivered` is
    /// the number of delivered messages.
    pub fn tidy(&mut self, delivered: u64) {
        let Some(places) = &mut self.places else {
            return;
        };
        while let Some(last) = self.queue.back().filter(|it| it.is_nothing()) {
            // The number of the removed slot is free again.
            places.more = places.more.wrapping_sub(1);
            let number = places.next(delivered);
            if let Some(of_it) = places.of.get_mut(&last.part.stream)
                && of_it.back() == Some(&number)
            {
                of_it.pop_back();
            }
            self.queue.pop_back();
            places.empty = places.empty.saturating_sub(1);
        }
        self.queue.end_run();
        if places.empty > MAX_EMPTY_SLOTS && places.empty > self.queue.len() / SOME {
            self.close_up(delivered);
        }
        self.forget_places();
    }

    /// Removes all empty slots and renumbers the others.
    fn close_up(&mut self, delivered: u64) {
        let Some(places) = &mut self.places else {
            return;
        };
        work_counter::count(self.queue.len());
        self.queue.retain(|it| !it.is_nothing());
        places.empty = 0;
        places.of.values_mut().for_each(VecDeque::clear);
        let first = places.next(delivered).wrapping_sub(self.queue.len() as u64);
        for (place, readable) in self.queue.iter().enumerate() {
            let part = &readable.part;
            if part.begins && part.ends {
                continue;
            }
            if let Some(of_it) = places.of.get_mut(&part.stream) {
                if part.begins || part.ends {
                    of_it.clear();
                }
                if !part.ends {
                    of_it.push_back(first.wrapping_add(place as u64));
                }
            }
        }
    }

    /// Number of empty slots.
    #[cfg(test)]
    pub fn empty(&self) -> usize {
        self.places.as_ref().map_or(0, |it| it.empty)
    }
}

impl Deref for ReadyQueue {
    type Target = Queue<Deliverable>;

    #[inline(always)]
    fn deref(&self) -> &Queue<Deliverable> {
        &self.queue
    }
}

/// Mutable access for functions that leave all entries in their slots.
impl DerefMut for ReadyQueue {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Queue<Deliverable> {
        &mut self.queue
    }
}

#[cfg(test)]
mod tests;
