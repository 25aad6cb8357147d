//! Number of packets in a queue, and the limit of it.

use anabranch_settings::{Datum, Kind, Value};

use crate::error::BuildError;

/// Number of packets and bytes in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets.
    pub packets: usize,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

impl Occupancy {
    /// Adds a packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// Removes a packet of `size` bytes.
    #[inline]
    pub fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// Capacity of a queue, including the packet in transmission.
///
/// ns-2 keeps the packet in transmission outside of its queue and drops a packet when the number of
/// queued packets plus one reaches the limit. For limits of two packets and more that rule equals
/// the rule of this module: at most `limit` packets between the first bit that is queued and the
/// last bit that leaves. (At a limit of 1, ns-2 drops everything; here a packet passes when the
/// link is idle.) A limit in bytes includes the packet in transmission, unlike in ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Maximum number of packets.
    Packets(usize),
    /// Maximum number of bytes on the wire.
    Bytes(u64),
    /// No limit.
    Unlimited,
}

impl Limit {
    /// The limit, if it is not 0.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn checked(self) -> Result<Self, BuildError> {
        match self {
            Limit::Packets(0) | Limit::Bytes(0) => Err(BuildError::EmptyQueue),
            limit => Ok(limit),
        }
    }

    /// Whether a packet of `size` bytes fits in addition to `occupancy`, which includes the packet
    /// in transmission.
    #[inline]
    pub fn admits(self, occupancy: Occupancy, size: usize) -> bool {
        match self {
            Limit::Packets(limit) => occupancy.packets < limit,
            Limit::Bytes(limit) => occupancy.bytes + size as u64 <= limit,
            Limit::Unlimited => true,
        }
    }
}

/// The form in specs: packets or bytes, including the packet in transmission.
impl Value for Limit {
    const KIND: Kind = Kind::Amount {
        segments: [1, 1 << 32],
        bytes: [1, 1 << 40],
        counted: "packets",
    };

    fn from_datum(datum: &Datum) -> Option<Self> {
        match *datum {
            Datum::Segments(packets) => usize::try_from(packets).ok().map(Limit::Packets),
            Datum::Whole(bytes) => Some(Limit::Bytes(bytes)),
            _ => None,
        }
    }

    /// A missing limit means unlimited.
    fn from_parameter(datum: Option<&Datum>) -> Option<Self> {
        datum.map_or(Some(Limit::Unlimited), Self::from_datum)
    }

    fn to_datum(&self) -> Datum {
        match *self {
            Limit::Packets(packets) => Datum::Segments(packets as u64),
            Limit::Bytes(bytes) => Datum::Whole(bytes),
            Limit::Unlimited => Datum::word("unlimited"),
        }
    }
}
