//! The scheduler: which source of events is next.
//!
//! A source is a link direction or an agent, and shows only its earliest event: a link delivers in order, and an agent
//! has one next deadline. The agenda is therefore as large as the topology, whatever is in flight. It is a winner tree
//! over the sources, so that setting, moving and cancelling a source's event are one operation of logarithmic cost
//! without allocation, and no cancelled entry is ever met later.

use anabranch_transport::Nanos;

/// Bits of a key that are left for its source: a world of a million sources has routes that no memory holds.
const SOURCE_BITS: u32 = 20;
const SOURCE: u128 = (1 << SOURCE_BITS) - 1;

/// When an event happens; events at one instant happen in the order in which they were decided. The lowest bits are zero: the agenda
/// puts the source there. What is left for the number lasts for 17 million million events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// No event.
    pub const NEVER: Key = Key(u128::MAX);

    /// The event decided as number `sequence`, at `at`.
    #[inline]
    pub fn new(at: Nanos, sequence: u64) -> Self {
        Self(u128::from(at) << 64 | u128::from(sequence << SOURCE_BITS))
    }

    /// When it happens.
    #[inline]
    pub fn at(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }
}

/// How many nodes of the tree are compared together: a group is a cache line, and a tree of fours has half the levels of one of twos.
const GROUP: usize = 4;

/// The earliest event of every source.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// How many sources there are.
    sources: usize,
    /// The first group of each level; the level of the sources comes first, that of the root last.
    levels: Vec<usize>,
    /// A node is the earliest event below it, with its source in the lowest bits; below a source there is its own. The nodes of a group
    /// have one parent.
    groups: Vec<[u128; GROUP]>,
    /// The root.
    first: u128,
}

impl Agenda {
    /// An agenda of `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        let mut agenda = Self {
            sources: 0,
            levels: Vec::new(),
            groups: Vec::new(),
            first: u128::MAX,
        };
        agenda.grow(sources);
        agenda
    }

    /// Makes room for at least `sources` sources; those present keep their events.
    pub fn grow(&mut self, sources: usize) {
        if sources.max(1) <= self.sources {
            return;
        }
        debug_assert!(sources as u128 <= SOURCE);
        let events: Vec<Key> = (0..self.sources).map(|source| self.get(source)).collect();
        self.levels.clear();
        let (mut nodes, mut groups) = (sources.max(1), 0);
        loop {
            self.levels.push(groups);
            nodes = nodes.div_ceil(GROUP);
            groups += nodes;
            if nodes == 1 {
                break;
            }
        }
        // Room for the rest of the last group of sources, so that many that come one by one cost little.
        self.sources = sources.max(1).next_multiple_of(GROUP);
        self.groups = vec![[u128::MAX; GROUP]; groups];
        self.first = u128::MAX;
        for (source, key) in events.into_iter().enumerate() {
            self.set(source, key);
        }
    }

    /// Sets the event of `source`, or cancels it with [`Key::NEVER`].
    #[inline]
    pub fn set(&mut self, source: usize, key: Key) {
        // The bits of no event are all set, its source's among them.
        let mut earliest = key.0 | source as u128;
        let mut node = source;
        for first in &self.levels {
            let group = &mut self.groups[first + node / GROUP];
            let before = std::mem::replace(&mut group[node % GROUP], earliest);
            // Nothing changes above. Events differ in their numbers, so the lower half tells.
            if before as u64 == earliest as u64 {
                return;
            }
            let [a, b, c, d] = *group;
            earliest = a.min(b).min(c.min(d));
            node /= GROUP;
        }
        self.first = earliest;
    }

    /// The earliest event of all sources but `source`.
    pub fn rival(&self, source: usize) -> Key {
        let mut earliest = u128::MAX;
        let mut node = source;
        for first in &self.levels {
            let group = self.groups[first + node / GROUP];
            for (place, other) in group.into_iter().enumerate() {
                if place != node % GROUP {
                    earliest = earliest.min(other);
                }
            }
            node /= GROUP;
        }
        Self::key(earliest)
    }

    /// The event of a node.
    fn key(node: u128) -> Key {
        match node {
            u128::MAX => Key::NEVER,
            node => Key(node & !SOURCE),
        }
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Key {
        Self::key(self.groups[source / GROUP][source % GROUP])
    }

    /// When the earliest event is, and its source; `None` when nothing is left to happen.
    #[inline]
    pub fn earliest(&self) -> Option<(Nanos, usize)> {
        match self.first {
            u128::MAX => None,
            first => Some((Key(first).at(), (first & SOURCE) as usize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn the_earliest_of_random_changes_is_the_minimum() {
        for seed in 0..50 {
            let mut rng = Seed::new(seed, 0).stream("agenda");
            let sources = 1 + rng.below(40) as usize;
            let mut agenda = Agenda::new(sources);
            let mut model = vec![Key::NEVER; sources];
            for sequence in 0..2000 {
                let source = rng.below(sources as u64) as usize;
                let key = if rng.below(4) == 0 {
                    Key::NEVER
                } else {
                    Key::new(rng.below(50), sequence)
                };
                agenda.set(source, key);
                model[source] = key;
                let events = model.iter().enumerate();
                let first = events
                    .filter(|(_, key)| **key != Key::NEVER)
                    .min_by_key(|it| it.1);
                let first = first.map(|(source, key)| (key.at(), source));
                assert_eq!(agenda.earliest(), first, "seed {seed}");
                assert_eq!(agenda.get(source), model[source], "seed {seed}");
                let others = model.iter().enumerate().filter(|(it, _)| *it != source);
                let rival = others.map(|(_, key)| *key).min();
                assert_eq!(
                    agenda.rival(source),
                    rival.unwrap_or(Key::NEVER),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn growing_keeps_events() {
        let mut agenda = Agenda::new(2);
        agenda.set(1, Key::new(5, 0));
        agenda.grow(9);
        assert_eq!(agenda.earliest(), Some((5, 1)));
        agenda.set(8, Key::new(4, 1));
        assert_eq!(agenda.earliest(), Some((4, 8)));
        assert_eq!(agenda.get(1).at(), 5);
    }

    #[test]
    fn one_instant_keeps_the_order_of_decision() {
        let mut agenda = Agenda::new(3);
        agenda.set(2, Key::new(7, 10));
        agenda.set(0, Key::new(7, 11));
        assert_eq!(agenda.earliest(), Some((7, 2)));
    }
}
