//! Interleaved messages: pieces by stream, message and place, and each stream in its order (RFC 8260 §2.2.3).
//!
//! Nothing is assumed of TSNs. What is held is in trees, so that a piece costs what it takes to find its place; a peer that never
//! ends what it begins is stopped by the receive buffer, as every other is.

pub(super) mod delivery;
mod message;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::Tsn;
use anabranch_wire::extension::IData;

use super::message::MessageBytes;
use crate::stream_table::StreamTable;
use message::Pieces;

/// Which of the messages of a stream: whether it is unordered, and its number.
pub(super) type Name = (bool, u32);

/// A stream that something is held of, or of which a message is being delivered.
#[derive(Debug, Default)]
struct InStream {
    /// Ordered messages, and unordered ones.
    messages: [BTreeMap<u32, Pieces>; 2],
    /// The unordered ones that are whole.
    whole: BTreeSet<u32>,
    /// The one that is being delivered in parts.
    open: Option<Name>,
}

impl InStream {
    fn of(&self, unordered: bool) -> &BTreeMap<u32, Pieces> {
        &self.messages[usize::from(unordered)]
    }

    fn of_mut(&mut self, unordered: bool) -> &mut BTreeMap<u32, Pieces> {
        &mut self.messages[usize::from(unordered)]
    }

    fn is_idle(&self) -> bool {
        self.open.is_none() && self.messages.iter().all(BTreeMap::is_empty)
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Held,
    /// Its message was given up, or its number is past: nothing of it is kept.
    Late,
    /// It contradicts others.
    Contradiction,
}

/// What is held of a message that was given up.
#[derive(Debug)]
struct GivenUp {
    name: Name,
    pieces: Pieces,
    was_open: bool,
}

/// The streams of a peer that interleaves.
#[derive(Debug, Default)]
pub(super) struct Interleaved {
    /// The numbers of the next ordered messages.
    next: StreamTable<u32>,
    streams: BTreeMap<u16, InStream>,
    /// How many messages are being delivered in parts.
    open: usize,
    /// The peer may give messages up.
    gives_up: bool,
    /// Nothing came or went since it was found that no more can be delivered.
    stuck: bool,
}

impl Interleaved {
    fn next(&self, stream: u16) -> u32 {
        self.next.get(stream).copied().unwrap_or_default()
    }

    fn insert(&mut self, data: IData) -> Taken {
        self.stuck = false;
        let (stream, unordered, mid) = (data.stream_id, data.unordered, data.mid.0);
        let ahead = mid.wrapping_sub(self.next(stream));
        if !unordered && ahead > u32::MAX / 2 {
            // A piece that was still on its way when its message was given up.
            let late = self.gives_up;
            return if late {
                Taken::Late
            } else {
                Taken::Contradiction
            };
        }
        let in_stream = self.streams.entry(stream).or_default();
        let pieces = in_stream.of_mut(unordered).entry(mid);
        let taken = match pieces {
            std::collections::btree_map::Entry::Vacant(place) => match Pieces::begin(data) {
                Some(pieces) => {
                    let whole = pieces.is_whole();
                    place.insert(pieces);
                    Some(whole)
                }
                None => None,
            },
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let pieces = place.get_mut();
                pieces.add(data).then(|| pieces.is_whole())
            }
        };
        let outcome = match taken {
            Some(whole) => {
                if whole && unordered && in_stream.open != Some((true, mid)) {
                    in_stream.whole.insert(mid);
                }
                Taken::Held
            }
            None => Taken::Contradiction,
        };
        self.tidy(stream);
        outcome
    }

    /// Forgets a stream that nothing is held of.
    fn tidy(&mut self, stream: u16) {
        if self.streams.get(&stream).is_some_and(InStream::is_idle) {
            self.streams.remove(&stream);
        }
    }

    /// Takes out what is not whole of the messages of a stream up to number `mid`. The whole ones stay; the ordered ones among them
    /// are next. `None` if the number is behind.
    fn give_up(&mut self, stream: u16, unordered: bool, mid: u32) -> Option<Vec<GivenUp>> {
        self.stuck = false;
        let from = if unordered {
            mid.wrapping_sub(u32::MAX / 2)
        } else {
            let next = self.next(stream);
            if mid.wrapping_sub(next) > u32::MAX / 2 {
                return None;
            }
            next
        };
        let Some(in_stream) = self.streams.get_mut(&stream) else {
            if !unordered {
                *self.next.entry(stream) = mid.wrapping_add(1);
            }
            return Some(Vec::new());
        };
        let numbers: Vec<u32> = if from <= mid {
            let within = in_stream.of(unordered).range(from..=mid);
            within.map(|(mid, _)| *mid).collect()
        } else {
            let before = in_stream.of(unordered).range(from..);
            let after = in_stream.of(unordered).range(..=mid);
            before.chain(after).map(|(mid, _)| *mid).collect()
        };
        let mut given_up = Vec::new();
        for number in numbers {
            let of_kind = in_stream.of_mut(unordered);
            if of_kind.get(&number).is_some_and(Pieces::is_whole) {
                continue;
            }
            if let Some(pieces) = of_kind.remove(&number) {
                let name = (unordered, number);
                let was_open = in_stream.open == Some(name);
                if was_open {
                    in_stream.open = None;
                    self.open -= 1;
                }
                given_up.push(GivenUp {
                    name,
                    pieces,
                    was_open,
                });
            }
        }
        Some(given_up)
    }

    /// The whole ordered messages of `stream` up to number `mid`, in order; what comes then is next.
    fn take_stranded(&mut self, stream: u16, mid: u32) -> Vec<(u32, Pieces)> {
        let from = std::mem::replace(self.next.entry(stream), mid.wrapping_add(1));
        let Some(in_stream) = self.streams.get_mut(&stream) else {
            return Vec::new();
        };
        let ordered = in_stream.of_mut(false);
        let mut numbers: Vec<u32> = if from <= mid {
            ordered.range(from..=mid).map(|(mid, _)| *mid).collect()
        } else {
            let chained = ordered.range(from..).chain(ordered.range(..=mid));
            chained.map(|(mid, _)| *mid).collect()
        };
        let taken = numbers.drain(..);
        taken
            .filter_map(|mid| Some((mid, ordered.remove(&mid)?)))
            .collect()
    }

    /// Messages that are being delivered in parts: stream, name, first TSN and Payload Protocol Identifier.
    pub fn opened(&self) -> impl Iterator<Item = (u16, Name, Tsn, u32)> + '_ {
        self.streams.iter().filter_map(|(stream, in_stream)| {
            let (unordered, mid) = in_stream.open?;
            let pieces = in_stream.of(unordered).get(&mid)?;
            Some((*stream, (unordered, mid), pieces.first_tsn, pieces.ppid))
        })
    }

    /// The streams of messages that are not whole and of which something came no later than `to`.
    pub fn unfinished(&self, to: Tsn) -> impl Iterator<Item = u16> + '_ {
        let unfinished = move |it: &InStream| {
            let mut all = it.messages.iter().flat_map(BTreeMap::values);
            all.any(|pieces| !pieces.is_whole() && pieces.first_tsn.le(to))
        };
        let streams = self.streams.iter();
        streams.filter_map(move |(stream, it)| unfinished(it).then_some(*stream))
    }

    /// The streams of which something is held.
    fn held_of(&self) -> Vec<u16> {
        self.streams.keys().copied().collect()
    }
}

/// One slice, or several.
fn bytes_of(mut parts: Vec<bytes::Bytes>) -> MessageBytes {
    match parts.pop() {
        Some(one) if parts.is_empty() => MessageBytes::One(one),
        Some(last) => {
            parts.push(last);
            MessageBytes::Many(parts)
        }
        None => MessageBytes::Many(parts),
    }
}
