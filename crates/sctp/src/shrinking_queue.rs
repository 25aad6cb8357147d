//! FIFO queue that releases its memory when it becomes empty.
//!
//! Otherwise an idle association would retain the memory of its largest queue, which would no
//! longer be in the processor's caches at its next activity. Another association reuses the
//! released memory while the memory is still in the caches.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// Maximum number of bytes that an empty queue retains, so that occasional packets cause no
/// allocation.
const KEPT: usize = 1024;
/// Capacity in elements above which the queue grows more slowly.
const MUCH: usize = 256;

/// FIFO queue. Elements are read and modified through [`VecDeque`], but added and removed only by
/// the methods below.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: VecDeque<T>,
    /// Maximum number of elements since the queue was last empty (`most`), and in the busy period
    /// before that (`before`).
    most: u32,
    before: u32,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Queue<T> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            most: 0,
            before: 0,
        }
    }

    /// Appends an element. A queue that has released its memory allocates its previous size in one
    /// step.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        // The reallocation is in a separate function, so that the element is constructed in place
        // if no reallocation is needed.
        if self.is_full() {
            return self.push_full(item);
        }
        self.items.push_back(item);
        // The write is conditional, because usually the maximum does not increase.
        if self.items.len() > self.most as usize {
            self.most = self.items.len() as u32;
        }
    }

    #[cold]
    #[inline(never)]
    fn push_full(&mut self, item: T) {
        self.make_room();
        self.items.push_back(item);
        self.most = self.most.max(self.items.len() as u32);
    }

    /// Whether another element needs an allocation.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.items.len() == self.items.capacity()
    }

    /// Reserves space for at least one more element.
    pub fn make_room(&mut self) {
        match self.items.capacity() {
            0 => self.items.reserve(self.before as usize),
            // Grow by a quarter, so that the capacity never exceeds the need by much.
            much if much > MUCH => self.items.reserve_exact(much / 4),
            _ => {}
        }
        self.items.reserve(1);
    }

    /// All elements, in order.
    pub fn into_iter(self) -> impl Iterator<Item = T> {
        self.items.into_iter()
    }

    /// Removes the first element. If the queue becomes empty, it releases a large allocation.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.end_run();
        Some(item)
    }

    /// Like [`Self::pop_front`], for queues in which a few of many elements may remain for a long
    /// time. Also shrinks an allocation that is mostly unused.
    #[inline]
    pub fn pop_sparing(&mut self) -> Option<T> {
        let item = self.pop_front()?;
        let room = self.items.capacity();
        if room > MUCH && self.items.len() < room / 4 {
            self.items.shrink_to(room / 2);
        }
        Some(item)
    }

    /// Unused capacity in bytes.
    #[inline]
    pub fn spare(&self) -> usize {
        (self.items.capacity() - self.items.len()) * size_of::<T>()
    }

    /// Like [`Self::pop_front`], within a series of calls that [`Self::end_run`] must follow.
    #[inline(always)]
    pub fn pop_of_run(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// Ends a series of [`Self::pop_of_run`]: releases a large allocation if the queue is empty.
    #[inline(always)]
    pub fn end_run(&mut self) {
        if self.items.is_empty() {
            self.ran_empty();
        }
    }

    /// Updates the maxima and releases a large allocation when the queue has become empty.
    #[inline(never)]
    fn ran_empty(&mut self) {
        let most = std::mem::take(&mut self.most);
        // If the maximum is 0, the queue was already empty before.
        if most > 0 {
            self.before = most;
        }
        if self.items.capacity() * size_of::<T>() > KEPT {
            self.items = VecDeque::new();
        }
    }

    /// Removes all elements.
    pub fn take_all(&mut self) -> VecDeque<T> {
        (self.most, self.before) = (0, self.most);
        std::mem::take(&mut self.items)
    }
}

impl<T> Deref for Queue<T> {
    type Target = VecDeque<T>;

    #[inline]
    fn deref(&self) -> &VecDeque<T> {
        &self.items
    }
}

impl<T> DerefMut for Queue<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut VecDeque<T> {
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill_and_drain(queue: &mut Queue<u64>, count: u64) -> usize {
        (0..count).for_each(|number| queue.push_back(number));
        let held = queue.capacity();
        for number in 0..count {
            assert_eq!(queue.pop_front(), Some(number));
        }
        assert_eq!(queue.pop_front(), None);
        held
    }

    #[test]
    fn much_memory_goes_and_little_stays() {
        let mut queue = Queue::default();
        fill_and_drain(&mut queue, 4);
        let little = queue.capacity();
        assert!(little >= 4, "kept for the next packet");
        fill_and_drain(&mut queue, 10_000);
        assert_eq!(queue.capacity(), 0);
    }

    #[test]
    fn a_run_that_empties_the_queue_gives_the_memory_back() {
        let mut queue = Queue::default();
        (0..1_000_u64).for_each(|number| queue.push_back(number));
        (0..999).for_each(|number| assert_eq!(queue.pop_of_run(), Some(number)));
        queue.end_run();
        assert!(queue.capacity() >= 1_000, "one is left");
        assert_eq!((queue.pop_of_run(), queue.pop_of_run()), (Some(999), None));
        queue.end_run();
        queue.end_run();
        assert_eq!(queue.capacity(), 0);
        queue.push_back(0);
        assert!(queue.capacity() >= 1_000, "as much as before");
    }

    #[test]
    fn a_few_that_stay_keep_little_space() {
        let mut queue = Queue::default();
        (0..10_000_u64).for_each(|number| queue.push_back(number));
        for number in 0..9_990 {
            assert_eq!(queue.pop_sparing(), Some(number));
            assert!(queue.spare() <= 8 * (3 * queue.len() + MUCH), "{number}");
        }
        assert_eq!((queue.pop_sparing(), queue.len()), (Some(9_990), 9));
    }

    #[test]
    fn a_queue_reserves_its_recent_size_at_once_and_shrinks_later() {
        let mut queue = Queue::default();
        fill_and_drain(&mut queue, 1_000);
        queue.push_back(0);
        let again = queue.capacity();
        assert!((1_000..2_048).contains(&again), "{again}");
        queue.pop_front();
        assert!(
            fill_and_drain(&mut queue, 1) < 10,
            "one was enough the last time"
        );
    }
}
