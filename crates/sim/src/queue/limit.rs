//! Queue occupancy, and the limit of a queue.

use anabranch_settings::{Datum, Kind, SettingValue};

use crate::error::BuildError;

/// Occupancy of a queue: number and size of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Number of packets.
    pub packets: usize,
    /// Size of these packets on the wire, bytes.
    pub bytes: u64,
}

impl Occupancy {
    /// Counts a packet of `size` bytes that is added.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// Counts a packet of `size` bytes that is removed.
    #[inline]
    pub fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// Capacity of a queue, including the packet in transmission.
///
/// ns-2 does not count the packet in transmission as queued, and drops an arriving packet when the
/// number of queued packets plus one reaches the limit. For limits of at least two packets this is
/// the same rule: at most `limit` packets are queued or in transmission. With a limit of 1, ns-2
/// drops every packet, whereas here a packet passes if the link is idle. A limit in bytes includes
/// the packet in transmission, unlike in ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Maximum number of packets.
    Packets(usize),
    /// Maximum number of bytes on the wire.
    Bytes(u64),
    /// No limit.
    Unlimited,
}

impl QueueLimit {
    /// Returns the limit if it is above 0.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn checked(self) -> Result<Self, BuildError> {
        match self {
            QueueLimit::Packets(0) | QueueLimit::Bytes(0) => Err(BuildError::EmptyQueue),
            limit => Ok(limit),
        }
    }

    /// Whether a packet of `size` bytes fits in addition to `occupancy`, which includes the packet
    /// in transmission.
    #[inline]
    pub fn admits(self, occupancy: Occupancy, size: usize) -> bool {
        match self {
            QueueLimit::Packets(limit) => occupancy.packets < limit,
            QueueLimit::Bytes(limit) => occupancy.bytes + size as u64 <= limit,
            QueueLimit::Unlimited => true,
        }
    }
}

/// Form of a limit in specs: a number of packets or bytes, including the packet in transmission.
impl SettingValue for QueueLimit {
    const KIND: Kind = Kind::Amount {
        segments: [1, 1 << 32],
        bytes: [1, 1 << 40],
        counted: "packets",
    };

    fn from_datum(datum: &Datum) -> Option<Self> {
        match *datum {
            Datum::Segments(packets) => usize::try_from(packets).ok().map(QueueLimit::Packets),
            Datum::Whole(bytes) => Some(QueueLimit::Bytes(bytes)),
            _ => None,
        }
    }

    /// Without the parameter the queue is unlimited.
    fn from_parameter(datum: Option<&Datum>) -> Option<Self> {
        datum.map_or(Some(QueueLimit::Unlimited), Self::from_datum)
    }

    fn to_datum(&self) -> Datum {
        match *self {
            QueueLimit::Packets(packets) => Datum::Segments(packets as u64),
            QueueLimit::Bytes(bytes) => Datum::Whole(bytes),
            QueueLimit::Unlimited => Datum::word("unlimited"),
        }
    }
}
