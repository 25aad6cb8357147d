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

/// The earliest event of every source.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The event of each source, padded with [`Key::NEVER`] to a power of two of at least 2.
    keys: Vec<Key>,
    /// The source whose event is the earliest below each inner node: the root at 1, the children of `n` at `2 n` and
    /// `2 n + 1`. Below the last row stand the sources in order.
    winners: Vec<u32>,
}

impl Agenda {
    /// An agenda of `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        let mut agenda = Self {
            keys: Vec::new(),
            winners: Vec::new(),
        };
        agenda.grow(sources);
        agenda
    }

    /// Makes room for at least `sources` sources; those present keep their events.
    pub fn grow(&mut self, sources: usize) {
        let new = sources.max(2).next_power_of_two();
        if new <= self.keys.len() {
            return;
        }
        self.keys.resize(new, Key::NEVER);
        self.winners = vec![0; new];
        for node in (1..new).rev() {
            let (left, right) = (self.winner(2 * node), self.winner(2 * node + 1));
            let right_wins = self.keys[right as usize] < self.keys[left as usize];
            self.winners[node] = if right_wins { right } else { left };
        }
    }

    /// The source that wins below a node, which may be a source itself.
    fn winner(&self, node: usize) -> u32 {
        match node.checked_sub(self.keys.len()) {
            Some(source) => source as u32,
            None => self.winners[node],
        }
    }

    /// Sets the event of `source`, or cancels it with [`Key::NEVER`].
    #[inline]
    pub fn set(&mut self, source: usize, key: Key) {
        if self.keys[source] == key {
            return;
        }
        self.keys[source] = key;
        let mut node = (self.keys.len() + source) / 2;
        let mut rival = source as u32 ^ 1;
        let (mut winner, mut earliest) = (source as u32, key);
        loop {
            let rivals = self.keys[rival as usize];
            if rivals < earliest {
                (winner, earliest) = (rival, rivals);
            }
            let before = std::mem::replace(&mut self.winners[node], winner);
            // Another source won here before, and wins again: nothing changes above.
            if node == 1 || (before == winner && winner != source as u32) {
                return;
            }
            rival = self.winners[node ^ 1];
            node /= 2;
        }
    }

    /// The earliest event of all sources but `source`.
    pub fn rival(&self, source: usize) -> Key {
        let mut earliest = self.keys[source ^ 1];
        let mut node = (self.keys.len() + source) / 2;
        while node > 1 {
            earliest = earliest.min(self.keys[self.winners[node ^ 1] as usize]);
            node /= 2;
        }
        earliest
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Key {
        self.keys[source]
    }

    /// The earliest event and its source; [`Key::NEVER`] when nothing is left to happen.
    #[inline]
    pub fn earliest(&self) -> (Key, usize) {
        let source = self.winners[1] as usize;
        (self.keys[source], source)
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
                let (earliest, at) = agenda.earliest();
                assert_eq!(earliest, *model.iter().min().unwrap(), "seed {seed}");
                assert!(
                    earliest == Key::NEVER || model[at] == earliest,
                    "seed {seed}"
                );
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
