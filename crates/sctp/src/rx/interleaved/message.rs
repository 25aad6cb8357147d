//! The fragments of one message.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;
use anabranch_wire::extension::{FragmentPosition, IData};
use bytes::Bytes;

use super::super::message::MessageBytes;

/// The buffered fragments of a message. A peer can make this side hold as many messages as chunks,
/// so a single fragment should cost little.
#[derive(Debug)]
pub(super) enum Fragments {
    Single(Single),
    Many(Box<Many>),
}

/// A single fragment; nothing was delivered.
#[derive(Debug)]
pub(super) struct Single {
    tsn: Tsn,
    position: FragmentPosition,
    ending: bool,
    user_data: Bytes,
}

/// Several fragments, or a message in partial delivery.
#[derive(Debug)]
pub(super) struct Many {
    /// From its first fragment, once received.
    ppid: u32,
    /// TSN of its first fragment, or else of the one received first.
    first_tsn: Tsn,
    /// Undelivered fragments that continue the contiguous prefix.
    row: Vec<Bytes>,
    /// Fragments after a hole, by their numbers.
    later: Later,
    /// Fragments of the contiguous prefix, including delivered ones, and their bytes.
    in_a_row: u32,
    bytes: usize,
    /// Number of the last fragment, once received.
    last: Option<u32>,
}

impl Fragments {
    /// From the fragment of a message that is received first; `None` if its number is not possible.
    pub fn begin(data: IData) -> Option<Self> {
        number_of(data.position)?;
        Some(Self::Single(Single {
            tsn: data.tsn,
            position: data.position,
            ending: data.ending,
            user_data: data.user_data,
        }))
    }

    /// Adds a fragment. Returns false if it contradicts the others.
    pub fn add(&mut self, data: IData) -> bool {
        self.several()
            .add(data.tsn, data.position, data.ending, data.user_data)
    }

    fn several(&mut self) -> &mut Many {
        if let Self::Single(lone) = self {
            let mut several = Many::new(lone.tsn);
            several.add(
                lone.tsn,
                lone.position,
                lone.ending,
                std::mem::take(&mut lone.user_data),
            );
            *self = Self::Many(Box::new(several));
        }
        match self {
            Self::Many(several) => several,
            Self::Single(_) => unreachable!("made several just now"),
        }
    }

    /// From its first fragment, once received.
    pub fn ppid(&self) -> u32 {
        match self {
            Self::Single(lone) => match lone.position {
                FragmentPosition::First { ppid } => ppid,
                FragmentPosition::Later { .. } => 0,
            },
            Self::Many(several) => several.ppid,
        }
    }

    /// TSN of its first fragment, or else of the one received first.
    pub fn first_tsn(&self) -> Tsn {
        match self {
            Self::Single(lone) => lone.tsn,
            Self::Many(several) => several.first_tsn,
        }
    }

    /// Bytes of the contiguous prefix, including delivered ones.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Single(lone) if self.has_more() => lone.user_data.len(),
            Self::Single(_) => 0,
            Self::Many(several) => several.bytes,
        }
    }

    /// Whether the message is complete.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Single(lone) => lone.ending && self.has_more(),
            Self::Many(several) => {
                let in_a_row = several.in_a_row;
                several
                    .last
                    .is_some_and(|last| in_a_row == last.wrapping_add(1))
            }
        }
    }

    /// Whether some of it can be delivered.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Single(lone) => matches!(lone.position, FragmentPosition::First { .. }),
            Self::Many(several) => !several.row.is_empty(),
        }
    }

    /// Takes the undelivered bytes of the contiguous prefix.
    pub fn take_ready(&mut self) -> MessageBytes {
        bytes_of(std::mem::take(&mut self.several().row))
    }

    /// Takes a complete message.
    pub fn into_message(self) -> MessageBytes {
        match self {
            Self::Single(lone) => MessageBytes::One(lone.user_data),
            Self::Many(several) => bytes_of(several.row),
        }
    }

    /// Lengths of all buffered fragments.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        let (lone, several) = match self {
            Self::Single(lone) => (Some(lone.user_data.len()), None),
            Self::Many(several) => (None, Some(several)),
        };
        let several = several.into_iter().flat_map(|it| {
            let row = it.row.iter().map(Bytes::len);
            row.chain(it.later.lengths())
        });
        lone.into_iter().chain(several)
    }
}

impl Many {
    fn new(first_tsn: Tsn) -> Self {
        Self {
            ppid: 0,
            first_tsn,
            row: Vec::with_capacity(2),
            later: Later::default(),
            in_a_row: 0,
            bytes: 0,
            last: None,
        }
    }

    fn add(
        &mut self,
        tsn: Tsn,
        position: FragmentPosition,
        ending: bool,
        user_data: Bytes,
    ) -> bool {
        let Some(fsn) = number_of(position) else {
            return false;
        };
        let beyond = self.last.is_some_and(|last| fsn > last || ending);
        let cuts =
            ending && (self.later.highest().is_some_and(|it| it > fsn) || self.in_a_row > fsn);
        if beyond || cuts || fsn < self.in_a_row || !self.place(fsn, user_data) {
            return false;
        }
        if let FragmentPosition::First { ppid } = position {
            (self.ppid, self.first_tsn) = (ppid, tsn);
        }
        if ending {
            self.last = Some(fsn);
        }
        true
    }

    /// Inserts a fragment and moves those that waited for it. Returns false for a duplicate number.
    fn place(&mut self, fsn: u32, user_data: Bytes) -> bool {
        if fsn != self.in_a_row || fsn == u32::MAX {
            return self.later.insert(fsn, user_data);
        }
        self.append(user_data);
        while let Some(part) = self.later.take_first(self.in_a_row) {
            self.append(part);
        }
        true
    }

    fn append(&mut self, part: Bytes) {
        self.bytes += part.len();
        self.in_a_row += 1;
        self.row.push(part);
    }
}

/// Fragments after a hole, by number: a sorted vector while they are few, because that is cheap.
#[derive(Debug)]
enum Later {
    Few(Vec<(u32, Bytes)>),
    Many(BTreeMap<u32, Bytes>),
}

/// Maximum length of the vector.
const MAX_VECTOR: usize = 16;

impl Default for Later {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Later {
    /// Inserts a fragment. Returns false if the number is present.
    fn insert(&mut self, fsn: u32, part: Bytes) -> bool {
        match self {
            Self::Few(few) => {
                let Err(place) = few.binary_search_by_key(&fsn, |it| it.0) else {
                    return false;
                };
                if few.len() == MAX_VECTOR {
                    let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                    many.insert(fsn, part);
                    *self = Self::Many(many);
                    return true;
                }
                if few.capacity() == few.len() {
                    few.reserve_exact(few.len().max(2));
                }
                few.insert(place, (fsn, part));
                true
            }
            Self::Many(many) => match many.entry(fsn) {
                std::collections::btree_map::Entry::Occupied(_) => false,
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(part);
                    true
                }
            },
        }
    }

    /// Takes the first fragment if it has this number.
    fn take_first(&mut self, fsn: u32) -> Option<Bytes> {
        if fsn == u32::MAX {
            return None;
        }
        match self {
            Self::Few(few) => {
                let is_first = few.first().is_some_and(|it| it.0 == fsn);
                is_first.then(|| few.remove(0).1)
            }
            Self::Many(many) => {
                let first = many.first_entry().filter(|it| *it.key() == fsn)?;
                Some(first.remove())
            }
        }
    }

    fn highest(&self) -> Option<u32> {
        match self {
            Self::Few(few) => few.last().map(|it| it.0),
            Self::Many(many) => many.last_key_value().map(|it| *it.0),
        }
    }

    fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().map(|it| it.1.len());
        few.chain(many.into_iter().flat_map(BTreeMap::values).map(Bytes::len))
    }
}

/// Number of a fragment. `None`: 0 belongs to the first one (RFC 8260 §2.1).
fn number_of(position: FragmentPosition) -> Option<u32> {
    match position {
        FragmentPosition::First { .. } => Some(0),
        FragmentPosition::Later { fsn } => (fsn.0 > 0).then_some(fsn.0),
    }
}

/// One slice or several.
fn bytes_of(mut parts: Vec<Bytes>) -> MessageBytes {
    match parts.pop() {
        Some(one) if parts.is_empty() => MessageBytes::One(one),
        Some(last) => {
            parts.push(last);
            MessageBytes::Many(parts)
        }
        None => MessageBytes::Many(parts),
    }
}
