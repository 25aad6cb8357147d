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
const ADDED: u64 = (1 << SOURCE_BITS) - 1;
/// The mark of a source whose event only ever moves when it has come: see [`Agenda::begin`].
const STEADY: u64 = 1 << (SOURCE_BITS - 1);
const SOURCE: u64 = STEADY - 1;

/// When an event happens; events at one instant happen in the order in which they were decided. The lowest bits of the number are zero:
/// the agenda puts the source there. What is left for the number lasts for 8 million million events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    at: Nanos,
    number: u64,
}

impl Key {
    /// No event.
    pub const NEVER: Key = Key {
        at: Nanos::MAX,
        number: u64::MAX,
    };

    /// The event decided as number `sequence`, at `at`.
    #[inline]
    pub fn new(at: Nanos, sequence: u64) -> Self {
        let number = sequence << SOURCE_BITS;
        Self { at, number }
    }

    /// The event at `at` that comes after all others of that instant.
    #[inline]
    pub fn last(at: Nanos) -> Self {
        Self::new(at, u64::MAX >> SOURCE_BITS)
    }

    /// When it happens.
    #[inline]
    pub fn at(self) -> Nanos {
        self.at
    }

    /// The event of a mark.
    #[inline]
    pub fn event(self) -> Key {
        match self {
            Key::NEVER => Key::NEVER,
            Key { at, number } => Key {
                at,
                number: number & !ADDED,
            },
        }
    }

    /// Whether it is none: no event has all bits of its number set, its source's among them.
    #[inline(always)]
    fn is_never(self) -> bool {
        self.number == u64::MAX
    }

    /// Whether it comes first. Two events at one instant are rare.
    #[inline(always)]
    fn before(self, other: Key) -> bool {
        match self.at == other.at {
            true => decided_before(self.number, other.number),
            false => self.at < other.at,
        }
    }
}

#[cold]
#[inline(never)]
fn decided_before(number: u64, other: u64) -> bool {
    number < other
}

/// The event of a source, with the source in the lowest bits of its number; all bits are set where there is none.
type Mark = Key;

/// No mark.
const NONE: Mark = Key::NEVER;

/// The mark of the event `key` of `source`. The bits of no event are all set, its source's among them.
#[inline(always)]
fn mark(source: usize, key: Key) -> Mark {
    let number = key.number | source as u64;
    Mark { number, ..key }
}

/// What the number of the mark of a steady source has beside the event's.
pub(crate) fn steady_bits(source: usize) -> u64 {
    STEADY | source as u64
}

/// The mark of the event of a steady source that was decided as number `sequence`, at `at`. `bits` is what [`steady_bits`] says of the source.
#[inline(always)]
pub(crate) fn steady_mark(at: Nanos, sequence: u64, bits: u64) -> Key {
    let number = sequence << SOURCE_BITS | bits;
    Mark { at, number }
}

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
        debug_assert!(sources as u64 <= SOURCE);
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
        let event = mark(source, key);
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
            None if known.event.is_never() => return,
            None => NONE,
            Some(at) if known.event.at == at && at != Nanos::MAX => return,
            Some(at) => {
                let key = Key::new(at, *sequence);
                *sequence += 1;
                mark(source, key)
            }
        };
        known.event = event;
        let mark = known.mark;
        if mark == self.first && mark.before(event) {
            known.mark = event;
            self.replace(event);
            self.settle();
        } else if event.before(mark) {
            self.place(source, event);
        }
    }

    /// Sets the event of a steady source that has none, by its [`steady_mark`].
    #[inline(never)]
    pub fn begin(&mut self, mark: Key) {
        self.bring_forward(NONE, mark);
    }

    /// Sets the event after that of a steady source which has come, the earliest, by its [`steady_mark`].
    #[inline(always)] // Once, where the event of a wire is run.
    pub fn follow(&mut self, mark: Key) {
        self.replace(mark);
        self.settle();
    }

    /// A source is steady no more; `key` is its event.
    pub fn unsettle(&mut self, source: usize, key: Key) {
        let number = key.number | steady_bits(source);
        let steady = Mark { number, ..key };
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
        if self.first.number & STEADY == 0 {
            let known = &self.sources[(self.first.number & SOURCE) as usize];
            if known.event != self.first {
                self.settle_late();
            }
        }
    }

    #[inline(never)]
    fn settle_late(&mut self) {
        while self.first.number & STEADY == 0 {
            let known = &mut self.sources[(self.first.number & SOURCE) as usize];
            if known.event == self.first {
                return;
            }
            known.mark = known.event;
            let event = known.event;
            self.replace_further(event);
        }
    }

    /// The first mark moves to `event`, which is later; another may be the first then. Most pass one or two others.
    #[inline(always)]
    fn replace(&mut self, event: Mark) {
        let Some([.., third, second, next]) = self.near.get_mut(..self.len) else {
            return self.replace_further(event);
        };
        if !next.before(event) {
            self.first = event;
        } else if event.before(*second) {
            self.first = std::mem::replace(next, event);
        } else if event.before(*third) {
            self.first = std::mem::replace(next, std::mem::replace(second, event));
        } else {
            self.replace_further(event);
        }
    }

    /// The same, wherever it belongs.
    #[inline(never)]
    fn replace_further(&mut self, event: Mark) {
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
        (self.first.at, (self.first.number & SOURCE) as usize)
    }

    /// No event of any source but that of the earliest event is earlier than this.
    #[inline]
    pub fn rival(&self) -> Key {
        self.near[self.len - 1].event()
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Key {
        self.sources[source].event.event()
    }

    /// When the earliest event is, and its source; `None` when nothing is left to happen.
    #[inline]
    pub fn earliest(&self) -> Option<(Nanos, usize)> {
        match self.first {
            NONE => None,
            first => Some((first.at, (first.number & SOURCE) as usize)),
        }
    }
}

#[cfg(test)]
mod tests;
