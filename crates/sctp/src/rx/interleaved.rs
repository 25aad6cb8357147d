//! Interleaved messages: reassembly by stream, message and fragment number, and order within each
//! stream (RFC 8260 §2.2.3).
//!
//! No TSN order is assumed. Fragments are stored in trees, so that one costs a lookup; the receive
//! buffer limits peers that never complete their messages, as always. Complete and incomplete
//! messages are stored separately, so that abandoning messages should walk only those that go.

mod abandoned;
mod index;
mod message;
pub(super) mod receive;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeInclusive;

use anabranch_wire::Tsn;
use anabranch_wire::extension::IData;

use crate::stream_set::StreamSet;
use crate::stream_table::StreamTable;
use crate::work;
use abandoned::AbandonedMessages;
use index::Index;
use message::Fragments;

/// A message within its stream: whether it is unordered, and its number.
pub(super) type Name = (bool, u32);

/// A message: its stream, whether it is unordered, and its number.
type Key = (u16, bool, u32);

/// Outcome for a received fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Held,
    /// Its message was abandoned or its number is past: it is discarded.
    Late,
    /// It contradicts other fragments.
    Contradiction,
}

/// Buffered data of an abandoned message.
#[derive(Debug)]
struct AbandonedMessage {
    key: Key,
    pieces: Fragments,
    was_open: bool,
}

/// Receive streams of a peer that interleaves.
#[derive(Debug, Default)]
pub(super) struct Interleaved {
    /// Numbers of the next ordered messages.
    next: StreamTable<u32>,
    /// Messages that are incomplete or in partial delivery.
    unfinished: BTreeMap<Key, Fragments>,
    /// Complete messages that wait: ordered ones for their predecessors, unordered ones for the end
    /// of the partial delivery.
    whole: BTreeMap<Key, Fragments>,
    /// Every stream with waiting complete messages, and possibly others that had some.
    whole_on: StreamSet,
    /// Messages in partial delivery, by stream.
    open: BTreeMap<u16, Name>,
    /// Index of the incomplete messages for rare queries, built on first use.
    index: Option<Box<Index>>,
    /// The peer may abandon messages.
    gives_up: bool,
    /// Unordered messages that the peer has abandoned.
    gone: AbandonedMessages,
    /// Nothing changed since the last attempt found no further delivery.
    stuck: bool,
}

/// Messages of a kind with numbers from `from` to `to`, in order; the range may wrap at 0.
fn span((stream, unordered): (u16, bool), from: u32, to: u32) -> [Option<RangeInclusive<Key>>; 2] {
    let range = |from: u32, to: u32| (stream, unordered, from)..=(stream, unordered, to);
    if from <= to {
        [Some(range(from, to)), None]
    } else {
        [Some(range(from, u32::MAX)), Some(range(0, to))]
    }
}

/// The keys of a range.
fn keys(of: &BTreeMap<Key, Fragments>, kind: (u16, bool), from: u32, to: u32) -> Vec<Key> {
    if of.is_empty() {
        return Vec::new();
    }
    let ranges = span(kind, from, to).into_iter().flatten();
    let keys: Vec<Key> = ranges
        .flat_map(|range| of.range(range).map(|(key, _)| *key))
        .collect();
    work::count(keys.len());
    keys
}

impl Interleaved {
    fn next(&self, stream: u16) -> u32 {
        self.next.get(stream).copied().unwrap_or_default()
    }

    /// Makes `to` the next ordered message of its stream.
    fn go_to(&mut self, stream: u16, to: u32) {
        let next = self.next.entry(stream);
        if self.index.is_none() {
            *next = to;
            return;
        }
        let before = std::mem::replace(next, to);
        self.judge((stream, false, before));
        self.judge((stream, false, to));
    }

    fn insert(&mut self, data: IData) -> Taken {
        self.stuck = false;
        let key = (data.stream_id, data.unordered, data.mid.0);
        let ahead = data.mid.0.wrapping_sub(self.next(data.stream_id));
        if !data.unordered && ahead > u32::MAX / 2 {
            // A fragment that was in flight when its message was abandoned.
            let late = self.gives_up;
            return if late {
                Taken::Late
            } else {
                Taken::Contradiction
            };
        }
        if data.unordered && self.gone.has(data.stream_id, data.mid.0) {
            return Taken::Late;
        }
        let data = match self.add(key, data) {
            Ok(taken) => return taken,
            Err(data) => data,
        };
        // A complete message takes no further fragment.
        if self.whole.contains_key(&key) {
            return Taken::Contradiction;
        }
        let Some(pieces) = Fragments::begin(data) else {
            return Taken::Contradiction;
        };
        if pieces.is_whole() {
            self.wait(key, pieces);
        } else {
            self.begin(key, pieces);
        }
        Taken::Held
    }

    /// Adds a fragment to its incomplete message. Gives it back if there is none.
    fn add(&mut self, key: Key, data: IData) -> Result<Taken, IData> {
        let Entry::Occupied(mut place) = self.unfinished.entry(key) else {
            return Err(data);
        };
        let pieces = place.get_mut();
        let before = pieces.first_tsn();
        if !pieces.add(data) {
            return Ok(Taken::Contradiction);
        }
        let since = pieces.first_tsn();
        if pieces.is_whole() && self.open.get(&key.0) != Some(&(key.1, key.2)) {
            let pieces = place.remove();
            self.ended(key, before);
            self.wait(key, pieces);
        } else if let Some(index) = &mut self.index {
            index.ends(key.0, before);
            index.begins(key.0, since);
            self.judge(key);
        }
        Ok(Taken::Held)
    }

    /// Queues a complete message.
    fn wait(&mut self, key: Key, pieces: Fragments) {
        self.whole_on.insert(key.0);
        self.whole.insert(key, pieces);
    }

    /// Whether a reset of the stream changes nothing: its first message is next and no complete one
    /// waits.
    fn is_as_at_first(&self, stream: u16) -> bool {
        work::count(1);
        self.next(stream) == 0 && !self.whole_on.contains(stream)
    }

    /// The stream was reset.
    fn note_reset(&mut self, stream: u16) {
        let all = (stream, false, 0)..=(stream, true, u32::MAX);
        if self.whole.range(all).next().is_none() {
            self.whole_on.remove(stream);
        }
    }

    /// Adds an incomplete message.
    fn begin(&mut self, key: Key, pieces: Fragments) {
        let first = pieces.first_tsn();
        self.unfinished.insert(key, pieces);
        if let Some(index) = &mut self.index {
            index.begins(key.0, first);
            self.judge(key);
        }
    }

    /// Updates the index for a removed message that began with TSN `first`.
    fn ended(&mut self, key: Key, first: Tsn) {
        if self.unfinished.is_empty() {
            self.index = None;
        }
        if let Some(index) = &mut self.index {
            index.ends(key.0, first);
            self.judge(key);
        }
    }

    /// Removes an incomplete message and ends its partial delivery.
    fn take(&mut self, key: Key) -> Option<AbandonedMessage> {
        let pieces = self.unfinished.remove(&key)?;
        let was_open = self.open.get(&key.0) == Some(&(key.1, key.2));
        if was_open {
            self.open.remove(&key.0);
        }
        self.ended(key, pieces.first_tsn());
        Some(AbandonedMessage {
            key,
            pieces,
            was_open,
        })
    }

    /// Removes the incomplete messages of a stream up to number `mid`. Complete ordered ones among
    /// them become deliverable. `None` if the number is past.
    fn give_up(&mut self, stream: u16, unordered: bool, mid: u32) -> Option<Vec<AbandonedMessage>> {
        self.stuck = false;
        let from = if unordered {
            self.gone.note(stream, mid);
            mid.wrapping_sub(u32::MAX / 2)
        } else {
            let next = self.next(stream);
            if mid.wrapping_sub(next) > u32::MAX / 2 {
                return None;
            }
            next
        };
        let keys = keys(&self.unfinished, (stream, unordered), from, mid);
        Some(keys.into_iter().filter_map(|key| self.take(key)).collect())
    }

    /// Takes all complete messages that wait: stream and fragments.
    fn take_all_whole(&mut self) -> impl Iterator<Item = (u16, Fragments)> + use<> {
        self.whole_on = StreamSet::new();
        let all = std::mem::take(&mut self.whole).into_iter();
        all.map(|(key, pieces)| (key.0, pieces))
    }

    /// Takes all incomplete messages.
    fn take_all_incomplete(&mut self) -> Vec<AbandonedMessage> {
        self.stuck = false;
        self.index = None;
        let all = std::mem::take(&mut self.unfinished).into_iter();
        let given_up = all.map(|(key, pieces)| AbandonedMessage {
            key,
            pieces,
            was_open: self.open.get(&key.0) == Some(&(key.1, key.2)),
        });
        let given_up = given_up.collect();
        self.open = BTreeMap::new();
        given_up
    }

    /// The complete ordered messages of `stream` up to `mid`, in order; the following one is next.
    fn take_stranded(&mut self, stream: u16, mid: u32) -> Vec<(Key, Fragments)> {
        let from = self.next(stream);
        self.go_to(stream, mid.wrapping_add(1));
        let keys = keys(&self.whole, (stream, false), from, mid);
        let taken = keys.into_iter();
        taken
            .filter_map(|key| Some((key, self.whole.remove(&key)?)))
            .collect()
    }

    /// Messages in partial delivery: stream, name, first TSN and Payload Protocol Identifier.
    pub fn opened(&self) -> impl Iterator<Item = (u16, Name, Tsn, u32)> + '_ {
        self.open.iter().filter_map(|(&stream, &name)| {
            let pieces = self.unfinished.get(&(stream, name.0, name.1))?;
            Some((stream, name, pieces.first_tsn(), pieces.ppid()))
        })
    }

    /// Whether an incomplete message of these streams (`None`: of any) has a fragment not later
    /// than `to`.
    pub fn has_unfinished(&mut self, to: Tsn, streams: Option<&[u16]>) -> bool {
        if self.unfinished.is_empty() {
            return false;
        }
        let index = self.indexed();
        match streams {
            None => index.has_begun(to),
            Some(streams) => {
                index.has_begun(to) && streams.iter().any(|it| index.has_begun_on(*it, to))
            }
        }
    }

    /// Streams that a reset of all streams changes: those past their first message, and those with
    /// waiting complete messages.
    fn reset_by_all(&self) -> Vec<u16> {
        let mut streams: Vec<u16> = self.next.used().map(|it| it.0).collect();
        let mut from = Some(0);
        while let Some(least) = from
            && let Some((&(stream, ..), _)) = self.whole.range((least, false, 0)..).next()
        {
            streams.push(stream);
            from = stream.checked_add(1);
        }
        streams.sort_unstable();
        streams.dedup();
        work::count(streams.len());
        streams
    }
}

#[cfg(test)]
mod tests;
