//! List of an association's paths. Most associations have one, which is stored inline: it needs no
//! allocation and no indirection.

use super::path_entry::PathEntry;
use crate::lazy_box::LazyBox;

/// The first path, and further paths.
#[derive(Debug)]
pub(super) struct PathList {
    first: PathEntry,
    others: LazyBox<Vec<PathEntry>>,
}

impl PathList {
    #[inline(always)] // for each association a copy less
    pub(super) fn new(first: PathEntry) -> Self {
        Self {
            first,
            others: LazyBox::default(),
        }
    }

    pub(super) fn push(&mut self, entry: PathEntry) {
        self.others.make().push(entry);
    }

    /// At least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The first path, if there is no other.
    #[inline]
    pub(super) fn only(&self) -> Option<&PathEntry> {
        self.others.is_empty().then_some(&self.first)
    }

    /// The first path alone.
    pub(super) fn into_first(self) -> PathEntry {
        self.first
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> &PathEntry {
        match index {
            0 => &self.first,
            _ => &self.others[index - 1],
        }
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> &mut PathEntry {
        match index {
            0 => &mut self.first,
            _ => &mut self.others.make()[index - 1],
        }
    }

    /// The first path that matches. Usually this is the first of all, which is checked without a
    /// loop.
    #[inline(always)]
    pub(super) fn position(&self, wanted: impl Fn(&PathEntry) -> bool) -> Option<usize> {
        if wanted(&self.first) {
            return Some(0);
        }
        if self.others.is_empty() {
            return None;
        }
        self.others.iter().position(wanted).map(|index| index + 1)
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &PathEntry> + Clone {
        std::iter::once(&self.first).chain(self.others.iter())
    }

    #[inline]
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PathEntry> {
        std::iter::once(&mut self.first).chain(self.others.existing().into_iter().flatten())
    }
}
