//! Set of streams in a request.

use anabranch_wire::tlv::U16List;

/// Listed streams, or all streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams(Option<Box<[u16]>>);

impl Streams {
    /// All streams.
    pub(crate) fn all() -> Self {
        Self(None)
    }

    /// Set of the listed streams, sorted and without duplicates; an empty list means all streams
    /// (RFC 6525 §4.1, §4.2).
    pub(crate) fn of(listed: impl Iterator<Item = u16>) -> Self {
        let mut listed: Vec<u16> = listed.collect();
        listed.sort_unstable();
        listed.dedup();
        Self((!listed.is_empty()).then(|| listed.into_boxed_slice()))
    }

    /// The listed streams; `None` means all streams.
    pub(crate) fn some(&self) -> Option<&[u16]> {
        self.0.as_deref()
    }

    /// List for events; an empty list means all streams.
    pub(crate) fn told(&self) -> Vec<u16> {
        self.0.as_deref().unwrap_or_default().to_vec()
    }

    /// List as encoded in a request; empty for all streams.
    pub(crate) fn list(&self) -> U16List {
        U16List::of(self.0.as_deref().unwrap_or_default())
    }

    /// Number of listed streams; 0 for all streams.
    pub(crate) fn listed(&self) -> usize {
        self.0.as_deref().map_or(0, <[u16]>::len)
    }

    /// Highest listed stream.
    pub(crate) fn highest(&self) -> Option<u16> {
        self.0.as_deref()?.last().copied()
    }

    pub(crate) fn contains(&self, stream: u16) -> bool {
        let listed = |list: &[u16]| list.binary_search(&stream).is_ok();
        self.0.as_deref().is_none_or(listed)
    }

    /// Whether the set contains any of `others`.
    pub(crate) fn overlaps(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (None, _) | (_, None) => true,
            (Some(_), Some(others)) => others.iter().any(|&stream| self.contains(stream)),
        }
    }

    /// Adds `others`, if both sets are lists with a total of at most `most` streams. If not,
    /// returns `others`.
    pub(crate) fn join(&mut self, others: Self, most: usize) -> Result<(), Self> {
        match (&self.0, &others.0) {
            (Some(mine), Some(theirs)) if mine.len() + theirs.len() <= most => {
                *self = Self::of(mine.iter().chain(theirs.iter()).copied());
                Ok(())
            }
            _ => Err(others),
        }
    }

    /// Splits the list into lists of at most `most` streams.
    pub(crate) fn split(self, most: usize) -> Vec<Self> {
        match &self.0 {
            Some(list) if list.len() > most => {
                let parts = list.chunks(most.max(1));
                parts.map(|part| Self(Some(part.into()))).collect()
            }
            _ => vec![self],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[u16]) -> Streams {
        Streams::of(list.iter().copied())
    }

    #[test]
    fn duplicates_count_once_and_an_empty_list_is_all() {
        let some = of(&[7, 3, 7, 3, 65_535]);
        assert_eq!(some.told(), [3, 7, 65_535]);
        assert_eq!(of(&[]), Streams::all());
        assert!(some.overlaps(&of(&[4, 7])) && !some.overlaps(&of(&[4, 8])));
        assert!(some.overlaps(&Streams::all()));
    }

    #[test]
    fn lists_are_joined_and_split_within_bounds() {
        let mut some = of(&[1, 2]);
        assert_eq!(some.join(of(&[9]), 3), Ok(()));
        assert_eq!(some.join(of(&[10]), 3), Err(of(&[10])));
        assert_eq!(some.join(Streams::all(), 30), Err(Streams::all()));
        assert_eq!(some.split(2), [of(&[1, 2]), of(&[9])]);
        assert_eq!(Streams::all().split(2), [Streams::all()]);
    }
}
