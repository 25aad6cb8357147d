//! Wake-up times of any number of associations.
//!
//! A deadline changes with almost every packet, nearly always to a later time. An association is
//! therefore *armed* for one time, and a later deadline is taken into account only when that time
//! is reached. Arming for an earlier time adds an entry to the heap and makes the old entry stale.
//! The heap thus has no cost per packet. The time of its first entry may be earlier than the
//! earliest deadline, but is never later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_transport::Nanos;

/// Timers of one endpoint, one per association slot.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Armed time of the first slot. Stored inline, because a client endpoint usually has one
    /// association and then needs no heap.
    first: Option<Nanos>,
    others: Option<Box<Others>>,
}

/// Timers of all slots except the first.
#[derive(Debug, Default)]
struct Others {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Armed time of each slot from the second on; heap entries with a different time are stale.
    armed: Vec<Option<Nanos>>,
    outdated: usize,
}

impl Timers {
    /// Earliest time at which a timer may expire. It is never later than the earliest deadline, but
    /// may be earlier.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let others = self.others.as_ref().and_then(|it| it.heap.peek());
        let others = others.map(|&Reverse((at, _))| at);
        self.first.into_iter().chain(others).min()
    }

    /// Sets the deadline of `slot`; `None` stops its timer.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, deadline: Option<Nanos>) {
        let armed = match (slot, &self.others) {
            (0, _) => self.first,
            (_, Some(others)) => others.armed_for(slot),
            (_, None) => None,
        };
        // Usually the slot is already armed for the same or an earlier time.
        if let (Some(armed), Some(at)) = (armed, deadline)
            && armed <= at
        {
            return;
        }
        if slot == 0 {
            self.first = deadline;
            return;
        }
        self.arm(slot, deadline);
    }

    #[inline(never)]
    fn arm(&mut self, slot: u32, deadline: Option<Nanos>) {
        self.others.get_or_insert_default().arm(slot, deadline);
    }

    /// Removes and returns a slot that was armed for `now` or earlier. The caller should run the
    /// timers of the slot, and set its next deadline.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<u32> {
        let others = self.others.as_mut();
        let other = others.and_then(|it| it.top().map(|top| (it, top)));
        match (self.first, other) {
            // If slot 0 and the first entry of the heap are due at the same time, slot 0 is first.
            (Some(at), other) if other.as_ref().is_none_or(|(_, (then, _))| at <= *then) => {
                (at <= now).then(|| {
                    self.first = None;
                    0
                })
            }
            (_, Some((others, (at, slot)))) => (at <= now).then(|| {
                others.take_top();
                slot
            }),
            (_, None) => None,
        }
    }
}

impl Others {
    #[inline(always)]
    fn armed_for(&self, slot: u32) -> Option<Nanos> {
        self.armed.get(slot as usize - 1).copied().flatten()
    }

    fn arm(&mut self, slot: u32, deadline: Option<Nanos>) {
        let index = slot as usize - 1;
        if index >= self.armed.len() {
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

    /// Earliest entry that is not stale.
    fn top(&mut self) -> Option<(Nanos, u32)> {
        self.drop_outdated_top();
        self.heap.peek().map(|&Reverse(top)| top)
    }

    /// Removes the entry returned by [`Self::top`].
    fn take_top(&mut self) {
        if let Some(Reverse((_, slot))) = self.heap.pop() {
            self.armed[slot as usize - 1] = None;
        }
        self.drop_outdated_top();
    }

    fn is_outdated(&self, (at, slot): (Nanos, u32)) -> bool {
        self.armed_for(slot) != Some(at)
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

    /// Rebuilds the heap if stale entries outnumber current ones, so that its size stays
    /// proportional to the number of armed slots.
    fn tidy(&mut self) {
        self.drop_outdated_top();
        if self.outdated > 64 && self.outdated > self.heap.len() / 2 {
            let armed = &self.armed;
            self.heap
                .retain(|&Reverse((at, slot))| armed[slot as usize - 1] == Some(at));
            self.outdated = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(timers: &Timers) -> usize {
        timers.others.as_ref().map_or(0, |it| it.heap.len())
    }

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
            entries(&timers) < 200,
            "{} entries for 17 slots",
            entries(&timers)
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

    /// Compares with a list of all deadlines, in random steps: each due slot is returned, lower
    /// slots first, and none before its time.
    #[test]
    fn whatever_is_due_comes_in_order_of_time_and_slot() {
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for slots in [1, 2, 5] {
            let mut timers = Timers::default();
            // Armed time of each slot, which is never later than its deadline.
            let mut armed = vec![None; slots];
            let mut now = 0;
            for _ in 0..10_000 {
                let slot = draw(slots as u64) as usize;
                let deadline = (draw(4) > 0).then(|| now + draw(20));
                timers.set(slot as u32, deadline);
                let stays = armed[slot]
                    .zip(deadline)
                    .is_some_and(|(armed, at)| armed <= at);
                if !stays {
                    armed[slot] = deadline;
                }
                assert_eq!(timers.next(), armed.iter().flatten().min().copied());
                now += draw(5);
                let due = |armed: &[Option<Nanos>]| {
                    let all = armed.iter().enumerate();
                    let all = all.filter_map(|(slot, at)| at.map(|at| (at, slot)));
                    all.min().filter(|&(at, _)| at <= now).map(|(_, slot)| slot)
                };
                while let Some(slot) = due(&armed) {
                    assert_eq!(timers.pop_due(now), Some(slot as u32));
                    armed[slot] = None;
                }
                assert_eq!(timers.pop_due(now), None);
            }
        }
    }
}
