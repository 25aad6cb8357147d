//! Sort keys of buffered chunks.

use std::cmp::Ordering;

use anabranch_wire::Tsn;
use anabranch_wire::serial::Mid;

use crate::work_counter;

/// Implements comparison operators that count comparisons in tests.
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

/// TSN, ordered by serial number arithmetic. All TSNs that are compared lie within half of the TSN
/// space. The only exception is a complete and acknowledged message that is still buffered after
/// the peer has sent 2^31 further TSNs: it may not be found again, and is then not delivered. Only
/// a peer that leaves a message incomplete for so long, and continues with later messages of its
/// stream or with I-DATA of other streams, can cause this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TsnKey(pub Tsn);

/// Stream and message number. The number is split into halves to keep the key small.
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

/// Position of a fragment. The fragments of a message have consecutive positions: TSNs for DATA,
/// fragment sequence numbers of the message for I-DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub message: MessageKey,
    /// TSN of DATA, or fragment sequence number of I-DATA, in the order of serial numbers.
    pub at: Tsn,
}

/// Key of an interleaved message: its stream, whether it is unordered, and its number.
pub(super) type MessageKey = (u16, bool, u32);

impl Place {
    /// Position `at` in the same message.
    pub fn with(self, at: Tsn) -> Self {
        Self { at, ..self }
    }
}
