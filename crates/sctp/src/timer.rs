//! Which association wants to be woken when, for any number of associations.
//!
//! A deadline moves at almost every packet, nearly always to a later time. So an association is *armed* once, and a
//! deadline that moved away is noticed when the old one fires. Arming earlier adds an entry and outdates the older one.
//! The heap thus costs nothing per packet, and its top may be early but is never late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_transport::Nanos;
use smallvec::SmallVec;

/// The timers of one endpoint, one per slot of its associations.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The time each slot is armed for; entries of the heap that differ are outdated.
    armed: SmallVec<[Option<Nanos>; 1]>,
    outdated: usize,
}

impl Timers {
    /// The earliest time anything could be due; never later than the earliest deadline.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }

    /// Tells the deadline of `slot`: `None` stops its timer.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, deadline: Option<Nanos>) {
        let armed = self.armed.get(slot as usize).copied().flatten();
        // Nearly always: it was armed for no later time.
        if let (Some(armed), Some(at)) = (armed, deadline)
            && armed <= at
        {
            return;
        }
        self.arm(slot, deadline);
    }

    fn arm(&mut self, slot: u32, deadline: Option<Nanos>) {
        let index = slot as usize;
        if index >= self.armed.len() {
            // An endpoint that calls has one association mostly; a heap that grows by itself makes room for four.
            if index == 0 {
                self.heap.reserve_exact(1);
            }
            self.armed.resize(index + 1, None);
        }
        match (self.armed[index], deadline) {
            (None, None) => return,
            (Some(_), _) => self.outdated += 1,
            (None, Some(_)) => {}
        }
        self.armed[index] = deadline;
        if let Some(at) = deadline {
            self.heap.push(Reverse((at, slot)));
        }
        self.tidy();
    }

    /// Takes a slot armed for `now` or earlier. The caller runs its timers and tells its next deadline.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<u32> {
        self.drop_outdated_top();
        let &Reverse((at, slot)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        self.armed[slot as usize] = None;
        self.drop_outdated_top();
        Some(slot)
    }

    fn is_outdated(&self, (at, slot): (Nanos, u32)) -> bool {
        self.armed[slot as usize] != Some(at)
    }

    fn drop_outdated_top(&mut self) {
        while let Some(&Reverse(entry)) = self.heap.peek() {
            if !self.is_outdated(entry) {
                break;
            }
            self.heap.pop();
            self.outdated = self.outdated.saturating_sub(1);
        }
    }

    /// Rebuilds the heap once outdated entries outnumber the live ones, so that it stays as small as what is armed.
    fn tidy(&mut self) {
        self.drop_outdated_top();
        if self.outdated > 64 && self.outdated > self.heap.len() / 2 {
            let armed = &self.armed;
            self.heap
                .retain(|&Reverse((at, slot))| armed[slot as usize] == Some(at));
            self.outdated = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_deadline_keeps_the_old_alarm_and_an_earlier_one_replaces_it() {
        let mut timers = Timers::default();
        timers.set(3, Some(100));
        timers.set(3, Some(200));
        assert_eq!(timers.next(), Some(100), "early, never late");
        timers.set(3, Some(50));
        assert_eq!(timers.next(), Some(50));
        assert_eq!(timers.pop_due(49), None);
        assert_eq!(timers.pop_due(50), Some(3));
        assert_eq!(timers.pop_due(1_000), None, "the entry for 100 is outdated");
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_stopped_timer_does_not_fire() {
        let mut timers = Timers::default();
        timers.set(0, Some(10));
        timers.set(1, Some(20));
        timers.set(0, None);
        assert_eq!(timers.next(), Some(20));
        assert_eq!(timers.pop_due(30), Some(1));
        assert_eq!(timers.pop_due(30), None);
    }

    #[test]
    fn outdated_entries_do_not_pile_up() {
        let mut timers = Timers::default();
        for slot in 0..10 {
            timers.set(slot, Some(1));
        }
        for round in 0..10_000 {
            timers.set(10 + round % 7, Some(1_000_000 - u64::from(round)));
        }
        assert!(
            timers.heap.len() < 200,
            "{} entries for 17 slots",
            timers.heap.len()
        );
    }

    #[test]
    fn every_slot_fires_once_in_order_of_time() {
        let mut timers = Timers::default();
        for slot in 0..10_000_u32 {
            timers.set(
                slot,
                Some(u64::from(slot.wrapping_mul(2_654_435_761) % 1_000_003)),
            );
        }
        let mut seen = vec![false; 10_000];
        let mut last = 0;
        while let Some(at) = timers.next() {
            assert!(at >= last);
            last = at;
            let slot = timers.pop_due(at).expect("the top is due");
            assert!(!std::mem::replace(&mut seen[slot as usize], true));
        }
        assert!(seen.into_iter().all(|fired| fired));
    }
}
