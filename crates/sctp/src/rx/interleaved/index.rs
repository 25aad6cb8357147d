//! Index of incomplete messages for rare queries: which began first, and which allow partial
//! delivery.
//!
//! A peer can make this side hold thousands of them and repeat the query, so no query should walk
//! them. Queries occur only after losses. The index is therefore built at the first query from the
//! data held at that time, and kept until nothing is left.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anabranch_wire::Tsn;

use super::message::Fragments;
use super::{Interleaved, Key};
use crate::work;

/// Index of all incomplete messages.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Their first TSNs, overall and by stream. The order is numeric, not the serial order of TSNs.
    begun: BTreeSet<u32>,
    begun_on: BTreeSet<(u16, u32)>,
    /// Messages that allow partial delivery if none of their stream is under way: the next ordered
    /// one, and any unordered ones.
    ripe: BTreeSet<Key>,
    /// Streams that have such a message and no partial delivery under way.
    ready: BTreeSet<u16>,
}

/// All TSNs not later than `to`: half of the circle, in two ranges if it wraps at 0.
fn no_later(to: Tsn) -> impl Iterator<Item = RangeInclusive<u32>> {
    let from = to.0.wrapping_sub(u32::MAX / 2);
    let spans = if from <= to.0 {
        [Some(from..=to.0), None]
    } else {
        [Some(from..=u32::MAX), Some(0..=to.0)]
    };
    spans.into_iter().flatten()
}

/// Inserts or removes `item`.
fn keep<T: Ord>(set: &mut BTreeSet<T>, item: T, kept: bool) {
    if kept {
        set.insert(item);
    } else {
        set.remove(&item);
    }
}

impl Index {
    /// Adds an incomplete message of `stream` with this first TSN.
    pub fn begins(&mut self, stream: u16, first: Tsn) {
        self.begun.insert(first.0);
        self.begun_on.insert((stream, first.0));
    }

    /// Removes a message: it is no longer incomplete, or has another first TSN.
    pub fn ends(&mut self, stream: u16, first: Tsn) {
        self.begun.remove(&first.0);
        self.begun_on.remove(&(stream, first.0));
    }

    /// Whether a message began no later than `to`.
    pub fn has_begun(&self, to: Tsn) -> bool {
        work::count(1);
        no_later(to).any(|span| self.begun.range(span).next().is_some())
    }

    /// Whether a message of `stream` began no later than `to`.
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
    /// The index, built on first use.
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

    /// Updates the index for a message that changed, became next, or entered or left partial
    /// delivery.
    pub(super) fn judge(&mut self, key: Key) {
        let is_ripe = self.is_ripe(key);
        let is_open = self.open.contains_key(&key.0);
        if let Some(index) = &mut self.index {
            keep(&mut index.ripe, key, is_ripe);
            let ready = !is_open && index.first_ripe(key.0).is_some();
            keep(&mut index.ready, key.0, ready);
        }
    }

    /// At most `most` messages whose partial delivery can start, the first of each stream.
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
