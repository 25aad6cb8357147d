//! Event scheduler: finds the source of the next event.
//!
//! A source is a link direction, a medium or an agent. The scheduler stores only the earliest event
//! of each source. This is sufficient, because a link delivers in order and an agent has one next
//! deadline. The size of the scheduler therefore depends on the topology and not on the number of
//! packets in flight.
//!
//! Most events are scheduled shortly ahead of the present by the source whose event has just been
//! processed. Most others are deadlines that are postponed many times before they expire. Each
//! source therefore has a *mark*, which is never later than the event of the source; the marks of
//! all sources are ordered. The earliest marks are in a short sorted list, in which a new mark
//! passes the few earlier ones; all later marks are in a set. If an event is postponed or
//! cancelled, its mark stays unchanged, and moves only when it has become the first. Arrivals of
//! packets on a delay line are fixed when the packets are sent, so its marks always equal its
//! events, and the scheduler stores no other data for it.

use std::collections::BTreeSet;

use anabranch_transport::Nanos;

/// Number of bits of a key that are reserved for its source and [`STEADY`]. This limits the number
/// of sources to a million; the routes of a larger world would not fit in memory.
const SOURCE_BITS: u32 = 21;
/// Mask of the bits that the scheduler adds to a key.
const ADDED: u64 = (1 << SOURCE_BITS) - 1;
/// Flag in the mark of a *steady* source, whose event changes only after it has been processed: see
/// [`Scheduler::begin`].
const STEADY: u64 = 1;
/// The greatest source.
const MAX_SOURCE: u64 = ADDED >> 1;

/// The time of an event, and a number that orders the events of one instant. The event that was
/// decided earlier happens first; of events decided at the same time, the one with the lower source
/// number happens first. The number does not depend on other events, so that each part of a world
/// that is divided among threads gives the events of its sources the same numbers as the undivided
/// world.
///
/// The highest bits of the number are the complement of the time from the decision to the event. It
/// wraps after 2.4 hours; for longer times the order of the events is still deterministic, but
/// differs from that of the decisions. The lowest bits are zero, because the scheduler stores the
/// source in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventKey {
    at: Nanos,
    number: u64,
}

impl EventKey {
    /// Key for the absence of an event.
    pub const NONE: EventKey = EventKey {
        at: Nanos::MAX,
        number: u64::MAX,
    };

    /// The event at `at` that is decided at `since`.
    #[inline]
    pub fn new(at: Nanos, since: Nanos) -> Self {
        let number = order(at, since);
        Self { at, number }
    }

    /// Key of an event at `at` that follows all other events of that instant.
    #[inline]
    pub fn last(at: Nanos) -> Self {
        let number = !ADDED;
        Self { at, number }
    }

    /// Time of the event, nanoseconds.
    #[inline]
    pub fn at(self) -> Nanos {
        self.at
    }

    /// Key of the event to which a mark belongs.
    #[inline]
    pub fn event(self) -> EventKey {
        match self {
            EventKey::NONE => EventKey::NONE,
            EventKey { at, number } => EventKey {
                at,
                number: number & !ADDED,
            },
        }
    }

    /// Whether the mark is that of a source without an event: all bits of its number are set, and
    /// no real event has such a number.
    #[inline(always)]
    fn is_never(self) -> bool {
        self.number == u64::MAX
    }

    /// Whether this event precedes `other`. Times are compared first, because two events at one
    /// instant are rare.
    #[inline(always)]
    fn before(self, other: EventKey) -> bool {
        match self.at == other.at {
            true => decided_before(self.number, other.number),
            false => self.at < other.at,
        }
    }
}

/// The highest bits of the number of an event at `at` that is decided at `since`. Even if both
/// times are equal, at least one of these bits is 0, so [`EventKey::last`] orders after such an
/// event.
#[inline(always)]
fn order(at: Nanos, since: Nanos) -> u64 {
    since.wrapping_sub(at).wrapping_sub(2) << SOURCE_BITS
}

#[cold]
#[inline(never)]
fn decided_before(number: u64, other: u64) -> bool {
    number < other
}

/// Key of an event with its source in the lowest bits of the number; all bits are set if there is
/// no event.
type Mark = EventKey;

/// Mark of a source without an event.
const NONE: Mark = EventKey::NONE;

/// Mark of the event `key` of `source`. If there is no event, all bits stay set.
#[inline(always)]
fn mark(source: usize, key: EventKey) -> Mark {
    let number = key.number | (source as u64) << 1;
    Mark { number, ..key }
}

/// The source of a mark.
#[inline(always)]
fn source_of(mark: Mark) -> usize {
    ((mark.number & ADDED) >> 1) as usize
}

/// The bits that the mark of a steady source has in addition to those of the event.
pub(crate) fn steady_bits(source: usize) -> u64 {
    (source as u64) << 1 | STEADY
}

/// The mark of the event of a steady source at `at` that is decided at `since`. `bits` is the
/// result of [`steady_bits`] for the source.
#[inline(always)]
pub(crate) fn steady_mark(at: Nanos, since: Nanos, bits: u64) -> EventKey {
    let number = order(at, since) | bits;
    Mark { at, number }
}

/// Capacity of the sorted list. It is small, because an insertion compares the new mark with each
/// earlier mark in the list.
const NEAR: usize = 32;

/// Next event of a source, and the source's mark, which is not later than the event.
#[derive(Clone, Copy, Debug)]
struct Source {
    event: Mark,
    mark: Mark,
}

/// Event scheduler with the next event of every source.
#[derive(Debug)]
pub(crate) struct Scheduler {
    sources: Vec<Source>,
    /// Earliest mark, which equals the event of its source.
    first: Mark,
    /// Next marks in descending order. Index 0 holds the earliest mark of `far`, as an upper bound
    /// of the list.
    near: [Mark; NEAR],
    /// Number of used entries of `near`; at least 1.
    len: usize,
    /// All later marks.
    far: BTreeSet<Mark>,
}

impl Scheduler {
    /// Creates a scheduler for `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        let mut scheduler = Self {
            sources: Vec::new(),
            first: NONE,
            near: [NONE; NEAR],
            len: 1,
            far: BTreeSet::new(),
        };
        scheduler.grow(sources);
        scheduler
    }

    /// Adds sources until there are at least `sources`; existing sources keep their events.
    pub fn grow(&mut self, sources: usize) {
        debug_assert!(sources as u64 <= MAX_SOURCE);
        if sources > self.sources.len() {
            let without = Source {
                event: NONE,
                mark: NONE,
            };
            self.sources.resize(sources, without);
        }
    }

    /// Sets the event of `source`, or cancels it with [`EventKey::NONE`].
    #[inline]
    pub fn set(&mut self, source: usize, key: EventKey) {
        let event = mark(source, key);
        let known = &mut self.sources[source];
        known.event = event;
        let mark = known.mark;
        if event < mark || mark == self.first {
            self.place(source, event);
        }
    }

    /// Sets the deadline of an agent, decided at `since`. A deadline that does not change keeps its
    /// position among the events of its instant.
    #[inline(always)] // Called once, by the code that drives agents.
    pub fn alarm(&mut self, source: usize, at: Option<Nanos>, since: Nanos) {
        let known = &mut self.sources[source];
        let event = match at {
            None if known.event.is_never() => return,
            None => NONE,
            Some(at) if known.event.at == at && at != Nanos::MAX => return,
            Some(at) => mark(source, EventKey::new(at, since)),
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

    /// Sets the event of a steady source that has no event; `mark` is the [`steady_mark`] of the
    /// new event.
    #[inline(never)]
    pub fn begin(&mut self, mark: EventKey) {
        self.bring_forward(NONE, mark);
    }

    /// Sets the next event of the steady source whose event was the earliest and has been
    /// processed, by its [`steady_mark`].
    #[inline(always)] // Called once, by the code that runs the events of a wire.
    pub fn follow(&mut self, mark: EventKey) {
        self.replace(mark);
        self.settle();
    }

    /// Makes a steady source an ordinary one; `key` is its event.
    pub fn unsettle(&mut self, source: usize, key: EventKey) {
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

    /// Moves the mark of a source to the source's event. Either the event must be earlier than the
    /// mark, or the mark must be the first.
    #[inline(never)]
    fn place(&mut self, source: usize, event: Mark) {
        let mark = std::mem::replace(&mut self.sources[source].mark, event);
        if event < mark {
            return self.bring_forward(mark, event);
        }
        self.replace(event);
        self.settle();
    }

    /// Moves a mark to an earlier event.
    #[inline(always)]
    fn bring_forward(&mut self, mark: Mark, event: Mark) {
        if mark == self.first {
            // The mark remains the first, or becomes the first because there was none.
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

    /// While the first mark is earlier than the event of its source, moves that mark to the event;
    /// another mark may then be the first.
    #[inline(always)]
    fn settle(&mut self) {
        // If there is no mark, all bits are set, including `STEADY`.
        if self.first.number & STEADY == 0 {
            let known = &self.sources[source_of(self.first)];
            if known.event != self.first {
                self.settle_late();
            }
        }
    }

    #[inline(never)]
    fn settle_late(&mut self) {
        while self.first.number & STEADY == 0 {
            let known = &mut self.sources[source_of(self.first)];
            if known.event == self.first {
                return;
            }
            known.mark = known.event;
            let event = known.event;
            self.replace_further(event);
        }
    }

    /// Moves the first mark to the later time of `event`; another mark may become the first. Most
    /// such moves pass only one or two other marks, which this function handles.
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

    /// Like [`Self::replace`], for a move past any number of marks.
    #[inline(never)]
    fn replace_further(&mut self, event: Mark) {
        let next = self.near[(self.len - 1) % NEAR];
        if event <= next {
            self.first = event;
            return;
        }
        // `NONE` is later than every event, so it also takes this branch.
        if event >= self.near[0] {
            return self.replace_far(event);
        }
        self.first = next;
        // The slot of the moved mark is free; `later` is shifted into it until the place of `event`
        // is found. The loop ends because the mark at index 0 is later.
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

    /// Like [`Self::replace`], if `event` is too late for the list.
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

    /// Inserts a mark that is not the first.
    #[inline(always)]
    fn insert(&mut self, mark: Mark) {
        if mark > self.near[0] || self.len == NEAR {
            return self.insert_far(mark);
        }
        let mut place = self.len;
        self.len += 1;
        // The loop ends because the mark at index 0 is not earlier.
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

    /// Inserts a mark that is later than the list, or that a full list cannot hold.
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
        // The mark may be earlier than the marks that remain in the list.
        if self.near[0] == mark {
            self.far.remove(&mark);
            self.near[0] = self.far.first().copied().unwrap_or(NONE);
            self.insert(mark);
        }
    }

    /// Makes the next mark the first, because the first was removed.
    fn fetch_first(&mut self) {
        self.replace_far(NONE);
        self.settle();
    }

    /// Removes a mark other than the first.
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

    /// Refills the empty list from the set, when the first mark moves to `event`.
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

    /// Whether no event is left.
    #[cold] // Called only at the end of a run.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Time and source of the earliest event, which must exist.
    #[inline(always)]
    pub fn first(&self) -> (Nanos, usize) {
        (self.first.at, source_of(self.first))
    }

    /// Lower bound of the events of all sources except that of the earliest event.
    #[inline]
    pub fn rival(&self) -> EventKey {
        self.near[self.len - 1].event()
    }

    /// The event of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> EventKey {
        self.sources[source].event.event()
    }

    /// Time and source of the earliest event; `None` if no event is left.
    #[inline]
    pub fn earliest(&self) -> Option<(Nanos, usize)> {
        match self.first {
            NONE => None,
            first => Some((first.at, source_of(first))),
        }
    }
}

#[cfg(test)]
mod tests;
