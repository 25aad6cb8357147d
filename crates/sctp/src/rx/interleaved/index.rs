//! What is asked for seldom of messages that are not whole: which began first, and which can be delivered in part.
//!
//! A peer can bring this side to hold thousands of them and ask again and again, so no question walks them. Nobody asks while
//! nothing goes wrong, so all this is made at the first question, from what is held then, and kept until nothing is.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anabranch_wire::Tsn;

use super::message::Fragments;
use super::{Interleaved, Key};
use crate::work;

/// Of all messages that are unfinished.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Their first TSNs, and the same by stream: numbers as they are, whatever the order of TSNs is.
    begun: BTreeSet<u32>,
    begun_on: BTreeSet<(u16, u32)>,
    /// Those of which something could be delivered if nothing of their stream were being delivered: ordered ones whose turn it is, and any
    /// unordered ones.
    ripe: BTreeSet<Key>,
    /// Streams that have such a message, and of which none is being delivered.
    ready: BTreeSet<u16>,
}

/// All TSNs that are no later than `to`: half of the circle, in two spans where it passes 0.
fn no_later(to: Tsn) -> impl Iterator<Item = RangeInclusive<u32>> {
    let from = to.0.wrapping_sub(u32::MAX / 2);
    let spans = if from <= to.0 {
        [Some(from..=to.0), None]
    } else {
        [Some(from..=u32::MAX), Some(0..=to.0)]
    };
    spans.into_iter().flatten()
}

/// Puts `item` in, or takes it out.
fn keep<T: Ord>(set: &mut BTreeSet<T>, item: T, kept: bool) {
    if kept {
        set.insert(item);
    } else {
        set.remove(&item);
    }
}

impl Index {
    /// A message of `stream` is unfinished, and its first TSN is this.
    pub fn begins(&mut self, stream: u16, first: Tsn) {
        self.begun.insert(first.0);
        self.begun_on.insert((stream, first.0));
    }

    /// It no longer is, or has another first TSN.
    pub fn ends(&mut self, stream: u16, first: Tsn) {
        self.begun.remove(&first.0);
        self.begun_on.remove(&(stream, first.0));
    }

    /// Whether one began no later than `to`.
    pub fn has_begun(&self, to: Tsn) -> bool {
        work::count(1);
        no_later(to).any(|span| self.begun.range(span).next().is_some())
    }

    /// The same of those of `stream`.
    pub fn has_begun_on(&self, stream: u16, to: Tsn) -> bool {
        work::count(1);
        no_later(to).any(|span| {
            let (from, to) = span.into_inner();
            let on_it = (stream, from)..=(stream, to);
            self.begun_on.range(on_it).next().is_some()
        })
    }

    fn first_ripe(&self, stream: u16) -> Option<Key> {
        let all = (stream, false, 0)..=(stream, true, u32::MAX);
        self.ripe.range(all).next().copied()
    }
}

impl Interleaved {
    /// The index, made if there is none.
    pub(super) fn indexed(&mut self) -> &mut Index {
        if self.index.is_none() {
            work::count(self.unfinished.len());
            let mut index = Index::default();
            for (key, pieces) in &self.unfinished {
                index.begins(key.0, pieces.first_tsn());
                if self.is_ripe(*key) {
                    index.ripe.insert(*key);
                    keep(&mut index.ready, key.0, !self.open.contains_key(&key.0));
                }
            }
            self.index = Some(Box::new(index));
        }
        self.index.get_or_insert_default()
    }

    fn is_ripe(&self, key: Key) -> bool {
        let (stream, unordered, mid) = key;
        let is_open = || self.open.get(&stream) == Some(&(unordered, mid));
        let pieces = self.unfinished.get(&key);
        (unordered || mid == self.next(stream))
            && pieces.is_some_and(Fragments::has_more)
            && !is_open()
    }

    /// This message has changed, or whether it is next, or whether it is being delivered.
    pub(super) fn judge(&mut self, key: Key) {
        let is_ripe = self.is_ripe(key);
        let is_open = self.open.contains_key(&key.0);
        if let Some(index) = &mut self.index {
            keep(&mut index.ripe, key, is_ripe);
            let ready = !is_open && index.first_ripe(key.0).is_some();
            keep(&mut index.ready, key.0, ready);
        }
    }

    /// At most `most` messages that can begin to be delivered, the first of each stream.
    pub(super) fn first_ready(&mut self, most: usize) -> Vec<Key> {
        if self.unfinished.is_empty() || most == 0 {
            return Vec::new();
        }
        let index = self.indexed();
        let ready = index.ready.iter().take(most);
        let first: Vec<_> = ready.filter_map(|it| index.first_ripe(*it)).collect();
        work::count(first.len());
        first
    }
}
