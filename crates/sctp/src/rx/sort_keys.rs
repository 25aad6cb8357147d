//! Sort keys of buffered chunks.

use std::cmp::Ordering;

use anabranch_wire::Tsn;
use anabranch_wire::serial::Mid;

use super::work_counter;

/// Implements an order whose comparisons are counted.
macro_rules! counted_order {
    ($($key:ty: |$one:ident, $other:ident| $order:expr;)+) => {$(
        impl Ord for $key {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                work_counter::count(1);
                let ($one, $other) = (self, other);
                $order
            }
        }

        impl PartialOrd for $key {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    )+};
}

counted_order! {
    TsnKey: |one, other| serial(one.0, other.0);
    NumberKey: |one, other| {
        (one.stream, one.high, one.low).cmp(&(other.stream, other.high, other.low))
    };
    Place: |one, other| {
        one.message.cmp(&other.message).then_with(|| serial(one.at, other.at))
    };
}

fn serial(one: Tsn, other: Tsn) -> Ordering {
    (one.distance_from(other) as i32).cmp(&0)
}

/// A TSN, ordered by serial arithmetic among TSNs of the same time, which all lie within half of
/// the circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TsnKey(pub Tsn);

/// A stream and the number of a message in it. The halves keep the key small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberKey {
    pub stream: u16,
    high: u16,
    low: u16,
}

impl NumberKey {
    pub fn new(stream: u16, number: Mid) -> Self {
        Self {
            stream,
            high: (number.0 >> 16) as u16,
            low: number.0 as u16,
        }
    }
}

/// The place of a fragment: the fragments of a message have consecutive places. Those of DATA are
/// TSNs, whatever their message is; those of I-DATA are fragment sequence numbers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub message: MessageKey,
    /// TSN or fragment sequence number, in serial order.
    pub at: Tsn,
}

/// An interleaved message: its stream, whether it is unordered, and its number.
pub(super) type MessageKey = (u16, bool, u32);

impl Place {
    /// The place `at` in the same message.
    pub fn with(self, at: Tsn) -> Self {
        Self { at, ..self }
    }
}
