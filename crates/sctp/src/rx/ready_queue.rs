//! What the user has not read: messages and parts of messages, in the order in which they can be read.
//!
//! Of a message that is being delivered and will not end, what was not read goes from wherever it is. So it is known where the parts of
//! such messages are, and what is taken out from between others leaves an empty place: what it costs to forget a message is what was kept of it,
//! however much else waits.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use super::message::{MessageBytes, ReceivedPart};
use crate::queue::Queue;
use crate::work;

/// A readable message or part.
#[derive(Debug)]
pub(super) struct Deliverable {
    pub part: ReceivedPart,
    /// Bytes that it occupies in the receive window, as the profile counts them.
    pub bytes: u64,
    /// Number of association events before it.
    pub preceding: u32,
    /// Its slices keep little memory alive beyond their own bytes.
    pub compact: bool,
}

/// So many empty places are left alone.
const FEW: usize = 16;
/// One of so many places may be empty: what they take counts nowhere.
const SOME: usize = 4;

/// The queue of what was not read. The last place is never empty: where there is a place there is something to read.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    queue: Queue<Deliverable>,
    places: Option<Box<Places>>,
}

/// Where the parts are of messages that are being delivered, while there are such messages, or empty places.
///
/// Places are numbered as they are taken, for ever. Those of whole messages nobody counts, since that is done already: each is one of the
/// messages that were delivered ([`ReceiverStatistics::messages`](crate::ReceiverStatistics::messages)). So numbers are told by that count, `delivered`, and by
/// how many more places there were than it counts.
#[derive(Debug, Default)]
struct Places {
    /// By stream, those of the message that is being delivered; also some that were read.
    of: BTreeMap<u16, VecDeque<u64>>,
    more: u64,
    empty: usize,
}

impl Places {
    /// The number of the next place that is taken.
    fn next(&self, delivered: u64) -> u64 {
        self.more.wrapping_add(delivered)
    }
}

impl Deliverable {
    /// What is left where something was taken out.
    fn nothing() -> MessageBytes {
        MessageBytes::Many(Vec::new())
    }

    #[inline(always)]
    pub fn is_nothing(&self) -> bool {
        !self.part.begins && self.part.payload.parts().is_empty()
    }
}

impl ReadyQueue {
    /// Takes the first.
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

    /// The first.
    #[inline]
    pub fn first(&self) -> Option<&Deliverable> {
        self.queue.iter().find(|it| !it.is_nothing())
    }

    /// The first of a stream.
    pub fn first_on(&self, stream: u16) -> Option<&Deliverable> {
        let of_stream = |it: &&Deliverable| it.part.stream == stream && !it.is_nothing();
        self.queue.iter().find(of_stream)
    }

    /// Takes the first of a stream; `delivered` messages were.
    pub fn take_first_on(&mut self, stream: u16, delivered: u64) -> Option<Deliverable> {
        self.take_first_of(|it| it.stream == stream, delivered)
    }

    /// Takes the first that `is_wanted`; `delivered` messages were.
    pub fn take_first_of(
        &mut self,
        is_wanted: impl Fn(&ReceivedPart) -> bool,
        delivered: u64,
    ) -> Option<Deliverable> {
        let wanted = |it: &Deliverable| is_wanted(&it.part) && !it.is_nothing();
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

    /// A part goes behind, which is no whole message; `delivered` messages were, with the one that it ends.
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

    /// What is last took in a further part of its message, its end if `ends`.
    pub fn took_in(&mut self, stream: u16, ends: bool) {
        if ends {
            // One more was delivered, and takes no place more.
            if let Some(places) = &mut self.places {
                places.more = places.more.wrapping_sub(1);
            }
            self.ended(stream);
        }
    }

    /// The message of a stream that was being delivered has its end.
    fn ended(&mut self, stream: u16) {
        if let Some(places) = &mut self.places {
            places.of.remove(&stream);
        }
        self.forget_places();
    }

    /// Nothing has to be known of places where all are alike.
    fn forget_places(&mut self) {
        if self
            .places
            .as_ref()
            .is_some_and(|it| it.empty == 0 && it.of.is_empty())
        {
            self.places = None;
        }
    }

    /// Takes out what was not read of the message of `stream` that is being delivered; `delivered` messages were. Gives it to `free`; whether the beginning was
    /// among it. [`Self::tidy`] must follow.
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
            work::count(1);
            let place = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
            // It may have been read.
            if let Some(readable) = self.take_out(place) {
                begins |= readable.part.begins;
                free(readable);
            }
        }
        begins
    }

    /// From now on the messages that were delivered are counted anew: `before` are, and none then.
    pub fn count_anew(&mut self, before: u64) {
        if let Some(places) = &mut self.places {
            places.more = places.more.wrapping_add(before);
        }
    }

    /// Streams of messages that are being delivered, of which something may be here.
    pub fn streams_of_parts(&self) -> impl Iterator<Item = u16> + '_ {
        self.places.iter().flat_map(|it| it.of.keys().copied())
    }

    /// Leaves nothing in that place.
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

    /// Gives up empty places: those at the end, and all if they are many. `delivered` messages were.
    pub fn tidy(&mut self, delivered: u64) {
        let Some(places) = &mut self.places else {
            return;
        };
        while let Some(last) = self.queue.back().filter(|it| it.is_nothing()) {
            // Its number is the next one's again.
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
        if places.empty > FEW && places.empty > self.queue.len() / SOME {
            self.close_up(delivered);
        }
        self.forget_places();
    }

    /// Leaves no empty place. All others have new numbers.
    fn close_up(&mut self, delivered: u64) {
        let Some(places) = &mut self.places else {
            return;
        };
        work::count(self.queue.len());
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

    /// Empty places.
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

/// For what leaves all that is there in its place.
impl DerefMut for ReadyQueue {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Queue<Deliverable> {
        &mut self.queue
    }
}

#[cfg(test)]
mod tests;
