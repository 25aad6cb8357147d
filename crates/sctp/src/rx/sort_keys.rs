//! Sort keys of buffered chunks.

use std::cmp::Ordering;

use anabranch_wire::{Ssn, Tsn};

use super::work_counter;

/// A TSN, ordered by serial arithmetic among TSNs of the same time, which all lie within half of
/// the circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TsnKey(pub Tsn);

impl Ord for TsnKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        work_counter::count(1);
        (self.0.distance_from(other.0) as i32).cmp(&0)
    }
}

impl PartialOrd for TsnKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A stream and a sequence number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SsnKey(u32);

impl SsnKey {
    pub fn new(stream: u16, ssn: Ssn) -> Self {
        Self(u32::from(stream) << 16 | u32::from(ssn.0))
    }

    /// Stream identifier.
    pub fn stream(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Sequence number.
    pub fn number(self) -> Ssn {
        Ssn(self.0 as u16)
    }
}

impl Ord for SsnKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        work_counter::count(1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for SsnKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
