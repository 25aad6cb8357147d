//! What is nearly always empty, and takes the room of a pointer then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;

use crate::queue::Queue;

/// What can be empty.
pub(crate) trait Blank: Default + 'static {
    /// An empty one.
    const BLANK: &'static Self;

    /// Whether it is empty.
    fn is_blank(&self) -> bool;
}

/// A list, queue or map with a block of its own while there is something in it. It is read as that is; [`Self::make`] and
/// [`Self::change`] change it.
#[derive(Debug)]
pub(crate) struct Seldom<T>(Option<Box<T>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Blank> Seldom<T> {
    /// Whether there is something in it, which for most takes no look at what that is.
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        match &self.0 {
            Some(block) => !block.is_blank(),
            None => false,
        }
    }

    /// To put something in.
    pub(crate) fn make(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// To change what is in it, where there is something; none of that may be taken out.
    pub(crate) fn existing(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Changes it, where there is something in it; the block goes with the last of that.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let block = self.0.as_mut()?;
        let result = change(block);
        if block.is_blank() {
            self.0 = None;
        }
        Some(result)
    }

    /// Takes all of it.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().map(|block| *block).unwrap_or_default()
    }
}

impl<T: Blank> Deref for Seldom<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(block) => block,
            None => T::BLANK,
        }
    }
}

/// Implements it for what the standard library knows to be empty.
macro_rules! blank {
    ($($type:ident<$($of:ident),+>;)+) => {$(
        impl<$($of: 'static),+> Blank for $type<$($of),+> {
            const BLANK: &'static Self = &$type::new();

            fn is_blank(&self) -> bool {
                self.is_empty()
            }
        }
    )+};
}

blank! {
    BTreeMap<K, V>;
    BTreeSet<K>;
    Queue<T>;
    Vec<T>;
    VecDeque<T>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_block_while_there_is_something_in_it() {
        let mut queue: Seldom<VecDeque<u8>> = Seldom::default();
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
