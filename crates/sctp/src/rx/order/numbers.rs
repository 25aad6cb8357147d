//! The ordered messages that wait apart, by stream and number.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;

use crate::rx::keys::ByNumber;
use crate::rx::steps;
use crate::seldom::Blank;
use crate::stream_set::StreamSet;

/// What is found by stream and number: the TSN of the last fragment.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    last: BTreeMap<ByNumber, Tsn>,
    /// Every stream that there is a number of, and maybe others that there was one of.
    streams: StreamSet,
}

impl Blank for Numbers {
    const BLANK: &'static Self = &Self {
        last: BTreeMap::new(),
        streams: StreamSet::new(),
    };

    fn is_blank(&self) -> bool {
        self.last.is_empty()
    }
}

impl Numbers {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    pub fn insert(&mut self, number: ByNumber, last: Tsn) {
        self.streams.insert(number.stream());
        self.last.insert(number, last);
    }

    pub fn remove(&mut self, number: ByNumber) -> Option<Tsn> {
        self.last.remove(&number)
    }

    pub fn contains(&self, number: ByNumber) -> bool {
        self.last.contains_key(&number)
    }

    /// Those from `number` on, of its stream and then of others.
    pub fn from(&self, number: ByNumber) -> impl Iterator<Item = (ByNumber, Tsn)> + '_ {
        self.last.range(number..).map(|(at, last)| (*at, *last))
    }

    pub fn first_stream(&self) -> Option<u16> {
        self.last.first_key_value().map(|(at, _)| at.stream())
    }

    /// Whether there may be some of the stream; if not, there are none.
    pub fn may_have(&self, stream: u16) -> bool {
        steps::count(1);
        self.streams.contains(stream)
    }

    /// There are none of the stream now.
    pub fn none_on(&mut self, stream: u16) {
        self.streams.remove(stream);
    }
}
