//! The scheduler: which source of events is next.
//!
//! A source is a link direction or an agent, and shows only its earliest event: a link delivers in order, and an agent
//! has one next deadline. The agenda is therefore as large as the topology, whatever is in flight. It is a winner tree
//! over the sources, so that setting, moving and cancelling a source's event are one operation of logarithmic cost
//! without allocation, and no cancelled entry is ever met later.

use anabranch_transport::Nanos;

/// When an event happens; events at one instant happen in the order in which they were decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// No event.
    pub const NEVER: Key = Key(u128::MAX);

    /// The event decided as number `sequence`, at `at`.
    #[inline]
    pub fn new(at: Nanos, sequence: u64) -> Self {
        Self(u128::from(at) << 64 | u128::from(sequence))
    }

    /// When it happens.
    #[inline]
    pub fn at(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }
}

/// A source and its event.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    source: u32,
}

/// The earliest event of every source.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The tree, its root at 1, two siblings to a pair: node `n` is half `n % 2` of pair `n / 2`. The second half of the
    /// nodes are the sources, padded with [`Key::NEVER`] to a power of two; each node before holds the earlier of its
    /// two children, which are one pair.
    pairs: Vec<[Entry; 2]>,
}

impl Agenda {
    /// An agenda of `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        let mut agenda = Self { pairs: Vec::new() };
        agenda.grow(sources);
        agenda
    }

    /// Makes room for at least `sources` sources; those present keep their events.
    pub fn grow(&mut self, sources: usize) {
        let (old, new) = (self.pairs.len(), sources.max(2).next_power_of_two());
        if new <= old {
            return;
        }
        let entry = |source: usize| Entry {
            key: if source < old {
                self.get(source)
            } else {
                Key::NEVER
            },
            source: source as u32,
        };
        let leaves: Vec<_> = (0..new / 2)
            .map(|pair| [entry(2 * pair), entry(2 * pair + 1)])
            .collect();
        // Node 0 is not part of the tree, and the inner nodes are played from the last to the first.
        self.pairs = vec![leaves[0]; new / 2];
        self.pairs.extend(leaves);
        for node in (1..new).rev() {
            self.pairs[node / 2][node % 2] = earlier(self.pairs[node]);
        }
    }

    /// Sets the event of `source`, or cancels it with [`Key::NEVER`].
    #[inline]
    pub fn set(&mut self, source: usize, key: Key) {
        let mut node = self.pairs.len() + source;
        let source = source as u32;
        let mut winner = Entry { key, source };
        loop {
            let pair = &mut self.pairs[node / 2];
            let place = &mut pair[node % 2];
            // No two events have one key, so the nodes above stay too. Who never has an event does not matter.
            if place.key == winner.key {
                return;
            }
            *place = winner;
            node /= 2;
            if node == 0 {
                return;
            }
            winner = earlier(*pair);
        }
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Key {
        let node = self.pairs.len() + source;
        self.pairs[node / 2][node % 2].key
    }

    /// The earliest event and its source; [`Key::NEVER`] when nothing is left to happen.
    #[inline]
    pub fn earliest(&self) -> (Key, usize) {
        let Entry { key, source } = self.pairs[0][1];
        (key, source as usize)
    }
}

#[inline]
fn earlier([left, right]: [Entry; 2]) -> Entry {
    if right.key < left.key { right } else { left }
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
                let (earliest, at) = agenda.earliest();
                assert_eq!(earliest, *model.iter().min().unwrap(), "seed {seed}");
                assert!(
                    earliest == Key::NEVER || model[at] == earliest,
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
        assert_eq!(agenda.earliest(), (Key::new(5, 0), 1));
        agenda.set(8, Key::new(4, 1));
        assert_eq!(agenda.earliest(), (Key::new(4, 1), 8));
        assert_eq!(agenda.get(1).at(), 5);
    }

    #[test]
    fn one_instant_keeps_the_order_of_decision() {
        let mut agenda = Agenda::new(3);
        agenda.set(2, Key::new(7, 10));
        agenda.set(0, Key::new(7, 11));
        assert_eq!(agenda.earliest().1, 2);
    }
}
