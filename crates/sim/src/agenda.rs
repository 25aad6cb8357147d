//! The scheduler: which source of events is next.
//!
//! A source is a link direction, a medium or an agent, and shows only its earliest event: a link delivers in order, and an agent
//! has one next deadline. The agenda is therefore as large as the topology, whatever is in flight.
//!
//! Most events are set a little ahead of the present, by the source whose event has just come; most others are deadlines that are put off
//! again and again before they come. So each source has a *mark*, which stands in order among the others and is never later than the
//! source's event. What is next to happen is in a short sorted list, where a new mark passes the few that are earlier; all later marks wait
//! in a set. An event that is put off or cancelled leaves its mark where it is; the mark moves when it has become the first. What a wire
//! carries arrives when it was decided: its marks are its events, and nothing else is kept of them.

use std::collections::BTreeSet;

use anabranch_transport::Nanos;

/// Bits of a key that are left for its source and [`STEADY`]: a world of a million sources has routes that no memory holds.
const SOURCE_BITS: u32 = 21;
/// What the agenda adds to the key.
const ADDED: u128 = (1 << SOURCE_BITS) - 1;
/// The mark of a source whose event only ever moves when it has come: see [`Agenda::begin`].
const STEADY: u128 = 1 << (SOURCE_BITS - 1);
const SOURCE: u128 = STEADY - 1;

/// When an event happens; events at one instant happen in the order in which they were decided. The lowest bits are zero: the agenda
/// puts the source there. What is left for the number lasts for 8 million million events.
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

    /// The event at `at` that comes after all others of that instant.
    #[inline]
    pub fn last(at: Nanos) -> Self {
        Self(u128::from(at) << 64 | u128::from(u64::MAX >> SOURCE_BITS << SOURCE_BITS))
    }

    /// When it happens.
    #[inline]
    pub fn at(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }
}

/// The event of a source, with its number in the lowest bits; all bits are set where there is none.
type Mark = u128;

/// No mark.
const NONE: Mark = Mark::MAX;

/// Room of the sorted list. A new mark passes those that are earlier, so it is short.
const NEAR: usize = 32;

/// A source's next event, and its mark, which is not later.
#[derive(Clone, Copy, Debug)]
struct Source {
    event: Mark,
    mark: Mark,
}

/// What is next to happen, of every source.
#[derive(Debug)]
pub(crate) struct Agenda {
    sources: Vec<Source>,
    /// The earliest mark, which is its source's event.
    first: Mark,
    /// The next marks, the earliest last. Below them, at 0, stands the earliest of `far`.
    near: [Mark; NEAR],
    /// How many are in use of `near`; at least 1.
    len: usize,
    /// All later marks.
    far: BTreeSet<Mark>,
}

impl Agenda {
    /// An agenda of `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        let mut agenda = Self {
            sources: Vec::new(),
            first: NONE,
            near: [NONE; NEAR],
            len: 1,
            far: BTreeSet::new(),
        };
        agenda.grow(sources);
        agenda
    }

    /// Makes room for at least `sources` sources; those present keep their events.
    pub fn grow(&mut self, sources: usize) {
        debug_assert!(sources as u128 <= SOURCE);
        if sources > self.sources.len() {
            let without = Source {
                event: NONE,
                mark: NONE,
            };
            self.sources.resize(sources, without);
        }
    }

    /// Sets the event of `source`, or cancels it with [`Key::NEVER`].
    #[inline]
    pub fn set(&mut self, source: usize, key: Key) {
        // The bits of no event are all set, its source's among them.
        let event = key.0 | source as Mark;
        let known = &mut self.sources[source];
        known.event = event;
        let mark = known.mark;
        if event < mark || mark == self.first {
            self.place(source, event);
        }
    }

    /// Sets when the event of an agent is; one that does not change keeps its place among those of its instant.
    #[inline(always)] // Once, where agents are driven.
    pub fn alarm(&mut self, source: usize, at: Option<Nanos>, sequence: &mut u64) {
        let known = &mut self.sources[source];
        let event = match at {
            None if known.event == NONE => return,
            None => NONE,
            Some(at) if Key(known.event).at() == at && at != Nanos::MAX => return,
            Some(at) => {
                let key = Key::new(at, *sequence);
                *sequence += 1;
                key.0 | source as Mark
            }
        };
        known.event = event;
        let mark = known.mark;
        if mark == self.first && event > mark {
            known.mark = event;
            self.replace(event);
            self.settle();
        } else if event < mark {
            self.place(source, event);
        }
    }

    /// Sets the event of a steady source that has none.
    #[inline(never)]
    pub fn begin(&mut self, source: usize, key: Key) {
        self.bring_forward(NONE, key.0 | STEADY | source as Mark);
    }

    /// Sets the event after that of a steady source which has come: the earliest.
    #[inline(always)] // Once, where the event of a wire is run.
    pub fn follow(&mut self, source: usize, key: Key) {
        self.replace(key.0 | STEADY | source as Mark);
        self.settle();
    }

    /// A source is steady no more; `key` is its event.
    pub fn unsettle(&mut self, source: usize, key: Key) {
        let steady = key.0 | STEADY | source as Mark;
        if steady == self.first {
            self.first = NONE;
            self.fetch_first();
        } else if steady != NONE {
            self.remove(steady);
        }
        self.set(source, key);
    }

    /// A mark moves to the event of its source, which is earlier, or the mark is the first.
    #[inline(never)]
    fn place(&mut self, source: usize, event: Mark) {
        let mark = std::mem::replace(&mut self.sources[source].mark, event);
        if event < mark {
            return self.bring_forward(mark, event);
        }
        self.replace(event);
        self.settle();
    }

    /// An event is earlier than the mark of its source.
    #[inline(always)]
    fn bring_forward(&mut self, mark: Mark, event: Mark) {
        if mark == self.first {
            // It stays the first; or there was none.
            self.first = event;
            return;
        }
        if mark != NONE {
            self.remove(mark);
        }
        if event < self.first {
            let second = std::mem::replace(&mut self.first, event);
            self.insert(second);
        } else {
            self.insert(event);
        }
    }

    /// Moves the first mark until it is its source's event.
    #[inline(always)]
    fn settle(&mut self) {
        // All bits are set where there is none.
        if self.first & STEADY == 0 {
            self.settle_late();
        }
    }

    #[inline(never)]
    fn settle_late(&mut self) {
        while self.first & STEADY == 0 {
            let known = &mut self.sources[(self.first & SOURCE) as usize];
            if known.event == self.first {
                return;
            }
            known.mark = known.event;
            let event = known.event;
            self.replace(event);
        }
    }

    /// The first mark moves to `event`, which is later; another may be the first then.
    #[inline(always)]
    fn replace(&mut self, event: Mark) {
        let next = self.near[(self.len - 1) % NEAR];
        if event <= next {
            self.first = event;
            return;
        }
        // No event is the latest of all.
        if event >= self.near[0] {
            return self.replace_far(event);
        }
        self.first = next;
        // Its place is free, and others are, since what stands at 0 is later.
        let mut list = &mut self.near[..self.len];
        while let [.., later, free] = list {
            if *later >= event {
                *free = event;
                return;
            }
            *free = *later;
            let shorter = list.len() - 1;
            list = &mut list[..shorter];
        }
    }

    /// The same where `event` is not among those of the list.
    #[inline(never)]
    fn replace_far(&mut self, event: Mark) {
        if self.len == 1 {
            return self.fetch(event);
        }
        self.first = self.near[(self.len - 1) % NEAR];
        self.len -= 1;
        if event != NONE {
            self.insert_far(event);
        }
    }

    /// Puts a mark that is not the first where it belongs.
    #[inline(always)]
    fn insert(&mut self, mark: Mark) {
        if mark > self.near[0] || self.len == NEAR {
            return self.insert_far(mark);
        }
        let mut place = self.len;
        self.len += 1;
        // What stands at 0 is not earlier.
        loop {
            let later = self.near[(place - 1) % NEAR];
            if later >= mark {
                break;
            }
            self.near[place % NEAR] = later;
            place -= 1;
        }
        self.near[place % NEAR] = mark;
    }

    /// A mark is late, or there are many.
    #[inline(never)]
    fn insert_far(&mut self, mark: Mark) {
        if mark < self.near[0] {
            let later = 1..NEAR / 2;
            self.far.extend(&self.near[later.clone()]);
            self.near.copy_within(later.end.., 1);
            self.len -= later.len();
        }
        self.far.insert(mark);
        self.near[0] = self.far.first().copied().unwrap_or(NONE);
        // It may be earlier than those that stayed.
        if self.near[0] == mark {
            self.far.remove(&mark);
            self.near[0] = self.far.first().copied().unwrap_or(NONE);
            self.insert(mark);
        }
    }

    /// The first mark is gone.
    fn fetch_first(&mut self) {
        self.replace_far(NONE);
        self.settle();
    }

    /// Takes out a mark that is not the first.
    #[inline(never)]
    fn remove(&mut self, mark: Mark) {
        let near = &self.near[1..self.len];
        if let Some(place) = near.iter().rposition(|it| *it == mark) {
            self.near.copy_within(place + 2..self.len, place + 1);
            self.len -= 1;
        } else {
            self.far.remove(&mark);
            self.near[0] = self.far.first().copied().unwrap_or(NONE);
        }
    }

    /// The list is empty, and the first mark moves to `event`, beyond others: what comes next is in the set.
    #[cold]
    fn fetch(&mut self, event: Mark) {
        if event != NONE {
            self.far.insert(event);
        }
        self.first = self.far.pop_first().unwrap_or(NONE);
        let next = std::iter::from_fn(|| self.far.pop_first());
        let next: Vec<Mark> = next.take(NEAR / 2).collect();
        self.len = 1 + next.len();
        for (place, mark) in self.near[1..].iter_mut().zip(next.into_iter().rev()) {
            *place = mark;
        }
        self.near[0] = self.far.first().copied().unwrap_or(NONE);
    }

    /// Whether nothing is left to happen.
    #[cold] // Asked at the end of time only.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// When the earliest event is, and its source, if there is one.
    #[inline(always)]
    pub fn first(&self) -> (Nanos, usize) {
        (Key(self.first).at(), (self.first & SOURCE) as usize)
    }

    /// No event of any source but that of the earliest event is earlier than this.
    #[inline]
    pub fn rival(&self) -> Key {
        Self::key(self.near[self.len - 1])
    }

    /// The event of a mark.
    #[inline]
    fn key(mark: Mark) -> Key {
        match mark {
            NONE => Key::NEVER,
            mark => Key(mark & !ADDED),
        }
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Key {
        Self::key(self.sources[source].event)
    }

    /// When the earliest event is, and its source; `None` when nothing is left to happen.
    #[inline]
    pub fn earliest(&self) -> Option<(Nanos, usize)> {
        match self.first {
            NONE => None,
            first => Some((Key(first).at(), (first & SOURCE) as usize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    impl Agenda {
        /// How many marks there are.
        fn len(&self) -> usize {
            usize::from(self.first != NONE) + (self.len - 1) + self.far.len()
        }
    }

    #[test]
    fn the_earliest_of_random_changes_is_the_minimum() {
        for seed in 0..60 {
            let mut rng = Seed::new(seed, 0).stream("agenda");
            // Some fit the list, some do not.
            let sources = 1 + rng.below(100) as usize;
            // Some spread over long, some happen at the same instants.
            let span = [50, 1_000_000][seed as usize % 2];
            let mut agenda = Agenda::new(sources);
            let mut model = vec![Key::NEVER; sources];
            let mut now = 0;
            for sequence in 0..3000 {
                // Half the changes are of the source whose event comes, as in a world.
                let source = match agenda.earliest() {
                    Some((at, source)) if rng.below(2) == 0 => {
                        now = at;
                        source
                    }
                    _ => rng.below(sources as u64) as usize,
                };
                let key = if rng.below(4) == 0 {
                    Key::NEVER
                } else {
                    Key::new(now + rng.below(span), sequence)
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
                if let Some((_, first)) = first {
                    let others = model.iter().enumerate().filter(|(it, _)| *it != first);
                    let rival = others.map(|(_, key)| *key).min();
                    assert!(
                        Some(agenda.rival()) <= rival.or(Some(Key::NEVER)),
                        "seed {seed}"
                    );
                }
                assert!(agenda.len() <= sources, "seed {seed}");
            }
        }
    }

    #[test]
    fn steady_sources_stand_in_order_among_the_others() {
        for seed in 0..60 {
            let mut rng = Seed::new(seed, 0).stream("agenda");
            let sources = 2 + rng.below(100) as usize;
            // The first of them are steady.
            let mut steady = rng.below(sources as u64) as usize;
            let span = [50, 1_000_000][seed as usize % 2];
            let mut agenda = Agenda::new(sources);
            let mut model = vec![Key::NEVER; sources];
            for sequence in 0..3000 {
                let events = model.iter().enumerate();
                let first = events
                    .filter(|(_, key)| **key != Key::NEVER)
                    .min_by_key(|it| it.1);
                let now = first.map_or(0, |(_, key)| key.at());
                let first = first.map(|(source, _)| source);
                let mut source = rng.below(sources as u64) as usize;
                let mut key = Key::new(now + rng.below(span), sequence);
                if rng.below(4) == 0 {
                    key = Key::NEVER;
                }
                if rng.below(2) == 0 {
                    source = first.unwrap_or(source);
                }
                if source >= steady {
                    agenda.set(source, key);
                } else if first == Some(source) {
                    agenda.follow(source, key);
                } else if model[source] == Key::NEVER && key != Key::NEVER {
                    agenda.begin(source, key);
                } else {
                    key = model[source];
                }
                model[source] = key;
                if rng.below(500) == 0 && steady > 0 {
                    steady -= 1;
                    agenda.unsettle(steady, model[steady]);
                }
                let events = model.iter().enumerate();
                let first = events.min_by_key(|it| it.1);
                let first = first.filter(|(_, key)| **key != Key::NEVER);
                let first = first.map(|(source, key)| (key.at(), source));
                assert_eq!(agenda.earliest(), first, "seed {seed}");
                assert_eq!(agenda.is_empty(), first.is_none(), "seed {seed}");
                assert!(agenda.len() <= sources, "seed {seed}");
            }
        }
    }

    #[test]
    fn an_alarm_that_does_not_change_keeps_its_place() {
        let mut agenda = Agenda::new(3);
        let mut sequence = 0;
        agenda.alarm(2, Some(7), &mut sequence);
        agenda.alarm(1, Some(7), &mut sequence);
        agenda.alarm(2, Some(7), &mut sequence);
        assert_eq!(agenda.earliest(), Some((7, 2)));
        assert_eq!(sequence, 2);
        agenda.alarm(2, Some(8), &mut sequence);
        assert_eq!(agenda.earliest(), Some((7, 1)));
        agenda.alarm(1, None, &mut sequence);
        assert_eq!(agenda.earliest(), Some((8, 2)));
        agenda.alarm(1, None, &mut sequence);
        agenda.alarm(0, Some(3), &mut sequence);
        assert_eq!(agenda.earliest(), Some((3, 0)));
    }

    #[test]
    fn a_deadline_put_off_leaves_one_mark() {
        let mut agenda = Agenda::new(2);
        agenda.set(0, Key::new(10, 0));
        agenda.set(1, Key::new(1_000, 1));
        for put_off in 2..1_000 {
            agenda.set(1, Key::new(1_000 + put_off, put_off));
            // A deadline that is nearer for a while leaves nothing behind.
            agenda.set(1, Key::new(500, put_off));
            agenda.set(1, Key::new(1_000 + put_off, put_off));
        }
        assert_eq!(agenda.len(), 2);
        assert_eq!(agenda.earliest(), Some((10, 0)));
        assert_eq!(agenda.rival().at(), 500);
        agenda.set(0, Key::NEVER);
        assert_eq!(agenda.earliest(), Some((1_999, 1)));
        assert_eq!(agenda.rival(), Key::NEVER);
        agenda.set(1, Key::NEVER);
        assert_eq!(agenda.earliest(), None);
        assert_eq!(agenda.len(), 0);
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
    fn the_last_event_of_an_instant_comes_after_all_others() {
        let mut agenda = Agenda::new(4);
        agenda.set(0, Key::last(7));
        agenda.set(1, Key::new(7, 8_000_000_000_000));
        agenda.set(2, Key::new(8, 0));
        agenda.set(3, Key::last(7));
        let mut order = Vec::new();
        while let Some((at, source)) = agenda.earliest() {
            order.push((at, source));
            agenda.set(source, Key::NEVER);
        }
        assert_eq!(order, [(7, 1), (7, 0), (7, 3), (8, 2)]);
    }

    #[test]
    fn one_instant_keeps_the_order_of_decision() {
        let mut agenda = Agenda::new(3);
        agenda.set(2, Key::new(7, 10));
        agenda.set(0, Key::new(7, 11));
        assert_eq!(agenda.earliest(), Some((7, 2)));
    }
}
