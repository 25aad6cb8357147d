//! What a queue discipline is, and what it is shown.

use anabranch_transport::{Ecn, Nanos};

use super::Limit;
use crate::packet::{DropReason, Packet, Parcel};
use crate::rng::Rng;

/// How much is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets.
    pub packets: usize,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Occupancy {
    /// A packet of `size` bytes joins.
    #[inline]
    pub fn add(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
    }

    /// A packet of `size` bytes leaves.
    #[inline]
    pub fn remove(&mut self, size: usize) {
        self.packets -= 1;
        self.bytes -= size as u64;
    }
}

/// A packet that waits, or asks to.
#[derive(Debug)]
pub struct Queued {
    pub(crate) parcel: Parcel,
    /// The first of two numbers that were kept for its arrivals when it came.
    pub(crate) sequence: u64,
    came: Nanos,
    size: usize,
    marked: bool,
}

impl Queued {
    pub(crate) fn new(parcel: Parcel, came: Nanos, size: usize, sequence: u64) -> Self {
        Self {
            parcel,
            sequence,
            came,
            size,
            marked: false,
        }
    }

    /// The packet.
    pub fn packet(&self) -> &Packet {
        &self.parcel
    }

    /// Its bytes on the wire.
    pub fn size(&self) -> usize {
        self.size
    }

    /// When it came to the queue.
    pub fn came(&self) -> Nanos {
        self.came
    }

    /// How long it has been in the queue (RFC 8289 §3.2: sojourn time).
    pub fn sojourn(&self, now: Nanos) -> Nanos {
        now - self.came
    }

    /// Sets CE in its IP header, if its sender uses ECN; `false` if not, and nothing is done (RFC 3168 §5).
    pub fn mark(&mut self) -> bool {
        let capable = self.parcel.ecn.is_capable();
        if capable {
            // One that came with CE from another queue is not this one's.
            self.marked |= self.parcel.ecn != Ecn::Ce;
            self.parcel.ecn = Ecn::Ce;
        }
        capable
    }

    pub(crate) fn was_marked(&self) -> bool {
        self.marked
    }
}

/// A packet that a queue does not take.
#[derive(Debug)]
pub struct Refused {
    /// The packet.
    pub packet: Queued,
    /// Why.
    pub reason: DropReason,
}

/// What a discipline may use while it decides.
#[derive(Debug)]
pub struct Transmitter<'a> {
    /// The packet that is being sent: one, or none. A limit may count it or not.
    pub in_service: Occupancy,
    /// The discipline's own random stream, `link <link> <direction> queue`.
    pub rng: &'a mut Rng,
    pub(crate) dropped: &'a mut Vec<Refused>,
}

impl Transmitter<'_> {
    /// Drops a packet that waited.
    pub fn drop(&mut self, packet: Queued, reason: DropReason) {
        self.dropped.push(Refused { packet, reason });
    }
}

/// A queue discipline: who may wait for the transmitter, who goes next, and who is dropped or marked instead.
///
/// The transmitter calls [`QueueDiscipline::dequeue`] when it is free: at once when a packet came to an idle link, and
/// whenever it has sent the last bit of another. Times never go back.
///
/// A discipline is added by one file that implements this.
pub trait QueueDiscipline {
    /// A packet comes at `now`.
    ///
    /// # Errors
    /// The packet, and why it may not wait. What waited and is dropped in its place goes to [`Transmitter::drop`].
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused>;

    /// The packet to be sent at `now`; `None` if there is none, or none may go yet.
    fn dequeue(&mut self, now: Nanos, transmitter: &mut Transmitter<'_>) -> Option<Queued>;

    /// Takes out any packet, without judging it: the link went down.
    fn remove(&mut self) -> Option<Queued>;

    /// What waits, without the packet in transmission.
    fn occupancy(&self) -> Occupancy;

    /// When [`QueueDiscipline::dequeue`] is to be called again, where packets wait and it gave none; later than `now`.
    /// `None`: with the next packet that comes.
    fn wake_up(&self, now: Nanos) -> Option<Nanos> {
        let _ = now;
        None
    }

    /// Its limit, if it is nothing but drop-tail: a link of constant rate then knows a packet's whole passage when it comes,
    /// and decides it with one event.
    fn as_drop_tail(&self) -> Option<Limit> {
        None
    }
}
