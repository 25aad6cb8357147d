//! List of an association's paths. The first path is stored inline, because most associations have
//! only one path.

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

    /// Number of paths, at least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The first path, if it is the only one.
    #[inline]
    pub(super) fn only(&self) -> Option<&PathEntry> {
        self.others.is_empty().then_some(&self.first)
    }

    /// Returns the first path and drops the others.
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

    /// Index of the first path that matches. The first path is checked before the loop, because it
    /// usually matches.
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
