//! The pieces of one message.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;
use anabranch_wire::extension::{IData, Piece};
use bytes::Bytes;

/// What is held of a message, and what was delivered of it.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Of its first piece, once that came.
    pub ppid: u32,
    /// The TSN of its first piece, or else of the one that came first.
    pub first_tsn: Tsn,
    /// Those not delivered, by their numbers.
    parts: BTreeMap<u32, Bytes>,
    /// Pieces without a hole from the first on, delivered ones included, and their bytes.
    in_a_row: u32,
    pub bytes: usize,
    delivered: u32,
    /// The number of the last piece, once that came.
    last: Option<u32>,
}

impl Pieces {
    /// Of the piece of a message that comes first; `None` if it cannot be one.
    pub fn begin(data: IData) -> Option<Self> {
        let mut pieces = Self {
            ppid: 0,
            first_tsn: data.tsn,
            parts: BTreeMap::new(),
            in_a_row: 0,
            bytes: 0,
            delivered: 0,
            last: None,
        };
        pieces.add(data).then_some(pieces)
    }

    /// Takes a further one; false if it contradicts the others.
    pub fn add(&mut self, data: IData) -> bool {
        let fsn = match data.piece {
            Piece::First { .. } => 0,
            // 0 is the first's (RFC 8260 §2.1).
            Piece::Later { fsn } if fsn.0 == 0 => return false,
            Piece::Later { fsn } => fsn.0,
        };
        let beyond = self.last.is_some_and(|last| fsn > last || data.ending);
        let highest = self.parts.last_key_value().map(|(fsn, _)| *fsn);
        let cuts = data.ending && (highest.is_some_and(|it| it > fsn) || self.in_a_row > fsn);
        if beyond || cuts || fsn < self.in_a_row || self.parts.contains_key(&fsn) {
            return false;
        }
        if let Piece::First { ppid } = data.piece {
            (self.ppid, self.first_tsn) = (ppid, data.tsn);
        }
        if data.ending {
            self.last = Some(fsn);
        }
        self.parts.insert(fsn, data.user_data);
        while let Some(part) = self.parts.get(&self.in_a_row) {
            self.bytes += part.len();
            match self.in_a_row.checked_add(1) {
                Some(next) => self.in_a_row = next,
                None => break,
            }
        }
        true
    }

    /// Whether all of it came.
    pub fn is_whole(&self) -> bool {
        self.last
            .is_some_and(|last| self.in_a_row == last.wrapping_add(1))
    }

    /// Whether something can be delivered of it.
    pub fn has_more(&self) -> bool {
        self.in_a_row > self.delivered
    }

    /// What is without a hole from the beginning on and not delivered.
    pub fn take_ready(&mut self) -> Vec<Bytes> {
        let rest = self.parts.split_off(&self.in_a_row);
        let ready = std::mem::replace(&mut self.parts, rest);
        self.delivered = self.in_a_row;
        ready.into_values().collect()
    }

    /// All that is held.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts.into_values().collect()
    }
}
