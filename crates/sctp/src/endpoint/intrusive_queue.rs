//! Intrusive queues: the links are stored in the slots, so that queueing needs no allocation and
//! each slot can be queued only once.

/// Link of a slot that is not queued.
const OUT: u32 = u32::MAX;
/// Link of the last slot of a queue. No endpoint has this many slots.
const LAST: u32 = u32::MAX - 1;

/// Link in a slot: the number of the next slot in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLink(u32);

impl Default for QueueLink {
    fn default() -> Self {
        Self(OUT)
    }
}

/// Storage of slots by number.
pub(super) trait SlotStorage<S> {
    /// Slot with this number, if it exists.
    fn at(&mut self, slot: u32) -> Option<&mut S>;
}

/// Queue of slots, represented by the numbers of its first and last slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntrusiveQueue {
    first: u32,
    last: u32,
}

impl Default for IntrusiveQueue {
    fn default() -> Self {
        Self {
            first: OUT,
            last: OUT,
        }
    }
}

impl IntrusiveQueue {
    /// Appends the existing slot `slot`, unless it is already queued. `place` returns the link of a
    /// slot for this queue.
    #[inline(always)]
    pub(super) fn push<S>(
        &mut self,
        slots: &mut impl SlotStorage<S>,
        slot: u32,
        place: impl Fn(&mut S) -> &mut QueueLink,
    ) {
        let Some(entry) = slots.at(slot) else {
            return;
        };
        let own = place(entry);
        if own.0 != OUT {
            return;
        }
        *own = QueueLink(LAST);
        if self.first == OUT {
            self.first = slot;
        } else if let Some(last) = slots.at(self.last) {
            *place(last) = QueueLink(slot);
        }
        self.last = slot;
    }

    /// First slot of the queue.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != OUT).then_some(self.first)
    }

    /// Removes the first slot of the queue.
    #[inline]
    pub(super) fn pop<S>(
        &mut self,
        slots: &mut impl SlotStorage<S>,
        place: impl Fn(&mut S) -> &mut QueueLink,
    ) {
        let Some(first) = slots.at(self.first) else {
            return;
        };
        let QueueLink(next) = std::mem::take(place(first));
        if next == LAST {
            *self = Self::default();
        } else {
            self.first = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<S, const N: usize> SlotStorage<S> for [S; N] {
        fn at(&mut self, slot: u32) -> Option<&mut S> {
            self.get_mut(slot as usize)
        }
    }

    #[test]
    fn each_waits_once_in_the_order_in_which_they_came() {
        let mut places = [QueueLink::default(); 4];
        let mut line = IntrusiveQueue::default();
        let all = |line: &mut IntrusiveQueue, places: &mut [QueueLink; 4]| {
            let mut all = Vec::new();
            while let Some(first) = line.first() {
                all.push(first);
                line.pop(places, |it| it);
            }
            all
        };
        assert!(all(&mut line, &mut places).is_empty());
        for _ in 0..2 {
            for slot in [2, 0, 2, 3, 0, 9] {
                line.push(&mut places, slot, |it| it);
            }
            assert_eq!(all(&mut line, &mut places), [2, 0, 3]);
        }
        // A removed slot can be queued again, at the end.
        line.push(&mut places, 1, |it| it);
        line.push(&mut places, 2, |it| it);
        line.pop(&mut places, |it| it);
        line.push(&mut places, 1, |it| it);
        assert_eq!(all(&mut line, &mut places), [2, 1]);
        line.pop(&mut places, |it| it);
        assert_eq!(line.first(), None);
    }
}
