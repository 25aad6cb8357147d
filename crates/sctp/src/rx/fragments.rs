//! List of the fragments in a contiguous run. Fragments are added at both ends, and lists are
//! joined.

use std::collections::VecDeque;

use bytes::Bytes;

use super::message::MessageBytes;
use crate::work_counter;

/// A list of one fragment needs no allocation.
#[expect(
    clippy::box_collection,
    reason = "so that a lone fragment costs little"
)]
#[derive(Debug)]
pub(super) enum FragmentList {
    One(Bytes),
    Many(Box<VecDeque<Bytes>>),
}

impl FragmentList {
    fn none() -> Self {
        Self::Many(Box::default())
    }

    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(parts) => parts.len(),
        }
    }

    #[inline]
    fn many(&mut self) -> &mut VecDeque<Bytes> {
        if let Self::One(part) = self {
            let mut parts = VecDeque::with_capacity(4);
            parts.push_back(std::mem::take(part));
            *self = Self::Many(Box::new(parts));
        }
        match self {
            Self::Many(parts) => parts,
            Self::One(_) => unreachable!("made many just now"),
        }
    }

    #[inline]
    pub fn push_back(&mut self, part: Bytes) {
        self.many().push_back(part);
    }

    pub fn push_front(&mut self, part: Bytes) {
        self.many().push_front(part);
    }

    pub fn pop_back(&mut self) -> Option<Bytes> {
        match self {
            Self::One(part) => {
                let part = std::mem::take(part);
                *self = Self::none();
                Some(part)
            }
            Self::Many(parts) => parts.pop_back(),
        }
    }

    /// Appends the list `after`. The shorter list is moved, so that each fragment is moved only a
    /// logarithmic number of times, for any order of joins.
    pub fn join(&mut self, mut after: Self) {
        work_counter::count(self.len().min(after.len()));
        if self.len() < after.len() {
            while let Some(part) = self.pop_back() {
                after.push_front(part);
            }
            *self = after;
            return;
        }
        match after {
            Self::One(part) => self.push_back(part),
            Self::Many(parts) => self.many().extend(*parts),
        }
    }

    /// Removes and returns all fragments.
    pub fn take(&mut self) -> MessageBytes {
        std::mem::replace(self, Self::none()).into_message()
    }

    pub fn into_message(self) -> MessageBytes {
        match self {
            Self::One(part) => MessageBytes::One(part),
            Self::Many(mut parts) if parts.len() == 1 => {
                MessageBytes::One(parts.pop_back().unwrap_or_default())
            }
            Self::Many(parts) => MessageBytes::Many((*parts).into()),
        }
    }
}
