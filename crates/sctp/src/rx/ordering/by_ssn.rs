//! Index of waiting ordered messages outside the row, by stream and number.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;

use crate::lazy_box::IsEmpty;
use crate::rx::sort_keys::SsnKey;
use crate::rx::work_counter;
use crate::stream_set::StreamSet;

/// Maps stream and number to the TSN of the last fragment.
#[derive(Debug, Default)]
pub(super) struct BySsn {
    last: BTreeMap<SsnKey, Tsn>,
    /// Every stream with entries, and possibly others that had some.
    streams: StreamSet,
}

impl IsEmpty for BySsn {
    const BLANK: &'static Self = &Self {
        last: BTreeMap::new(),
        streams: StreamSet::new(),
    };

    fn is_blank(&self) -> bool {
        self.last.is_empty()
    }
}

impl BySsn {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    pub fn insert(&mut self, number: SsnKey, last: Tsn) {
        self.streams.insert(number.stream());
        self.last.insert(number, last);
    }

    pub fn remove(&mut self, number: SsnKey) -> Option<Tsn> {
        self.last.remove(&number)
    }

    pub fn contains(&self, number: SsnKey) -> bool {
        self.last.contains_key(&number)
    }

    /// Entries from `number` on, of its stream and then of higher ones.
    pub fn from(&self, number: SsnKey) -> impl Iterator<Item = (SsnKey, Tsn)> + '_ {
        self.last.range(number..).map(|(at, last)| (*at, *last))
    }

    pub fn first_stream(&self) -> Option<u16> {
        self.last.first_key_value().map(|(at, _)| at.stream())
    }

    /// Whether the stream may have entries. False means that it has none.
    pub fn may_have(&self, stream: u16) -> bool {
        work_counter::count(1);
        self.streams.contains(stream)
    }

    /// The stream has no entries now.
    pub fn none_on(&mut self, stream: u16) {
        self.streams.remove(stream);
    }
}
