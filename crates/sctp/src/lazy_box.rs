//! Box that is allocated on first use, for collections that are almost always empty.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;

use crate::shrinking_queue::Queue;

/// Collection types that have an empty value as a constant.
pub(crate) trait IsEmpty: Default + 'static {
    /// The empty collection.
    const EMPTY: &'static Self;

    /// Whether the collection is empty.
    fn is_empty(&self) -> bool;
}

/// Collection in a separate allocation that exists only while it is not empty. The box dereferences
/// to the collection; [`Self::make`] and [`Self::change`] modify it.
#[derive(Debug)]
pub(crate) struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: IsEmpty> LazyBox<T> {
    /// Whether the collection is not empty. An empty collection is usually not allocated, so this
    /// check usually reads no other memory.
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        match &self.0 {
            Some(block) => !block.is_empty(),
            None => false,
        }
    }

    /// The collection for insertions; allocated if necessary.
    pub(crate) fn make(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// Mutable access to the collection, if it is allocated. The caller must not remove elements,
    /// because an empty collection would stay allocated.
    pub(crate) fn existing(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Changes an existing collection, and frees it if it becomes empty.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let block = self.0.as_mut()?;
        let result = change(block);
        if block.is_empty() {
            self.0 = None;
        }
        Some(result)
    }

    /// Removes and returns the collection.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().map(|block| *block).unwrap_or_default()
    }
}

impl<T: IsEmpty> Deref for LazyBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(block) => block,
            None => T::EMPTY,
        }
    }
}

/// Implements [`IsEmpty`] for collections of the standard library.
macro_rules! impl_is_empty {
    ($($type:ident<$($of:ident),+>;)+) => {$(
        impl<$($of: 'static),+> IsEmpty for $type<$($of),+> {
            const EMPTY: &'static Self = &$type::new();

            fn is_empty(&self) -> bool {
                self.is_empty()
            }
        }
    )+};
}

impl_is_empty! {
    BTreeMap<K, V>;
    BTreeSet<K>;
    Vec<T>;
    VecDeque<T>;
}

impl<T: 'static> IsEmpty for Queue<T> {
    const EMPTY: &'static Self = &Queue::new();

    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_block_while_there_is_something_in_it() {
        let mut queue: LazyBox<VecDeque<u8>> = LazyBox::default();
        assert_eq!(size_of_val(&queue), size_of::<usize>());
        assert_eq!(queue.change(VecDeque::pop_front), None);
        assert!(queue.0.is_none() && queue.is_empty());
        queue.make().extend([1, 2]);
        assert_eq!(queue.front(), Some(&1));
        assert_eq!(queue.change(VecDeque::pop_front), Some(Some(1)));
        assert!(queue.0.is_some() && queue.len() == 1);
        assert_eq!(queue.change(VecDeque::pop_front), Some(Some(2)));
        assert!(queue.0.is_none());
        queue.make().push_back(3);
        assert_eq!((queue.take(), queue.0.is_none()), ([3].into(), true));
    }
}
