//! The interface of queue disciplines.

use anabranch_transport::{Ecn, Nanos};

use super::{Assignments, Limit, Occupancy};
use crate::error::BuildError;
use crate::packet::{DropReason, Packet, Parcel};
use crate::rng::Rng;
use crate::step_function::StepFunction;

/// A packet that is in a queue or arrives at one.
#[derive(Debug)]
pub struct QueuedPacket {
    pub(crate) parcel: Parcel,
    /// The first of two sequence numbers that were reserved for its arrivals when it joined.
    pub(crate) sequence: u64,
    came: Nanos,
    size: usize,
    marked: bool,
}

impl QueuedPacket {
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

    /// Bytes on the wire.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The time at which it arrived at the queue.
    pub fn came(&self) -> Nanos {
        self.came
    }

    /// The time since it joined the queue (RFC 8289 §3.2: sojourn time).
    pub fn sojourn(&self, now: Nanos) -> Nanos {
        now - self.came
    }

    /// Sets CE in its IP header if its sender uses ECN; otherwise returns `false` and changes
    /// nothing (RFC 3168 §5).
    pub fn mark(&mut self) -> bool {
        let capable = self.parcel.ecn.is_capable();
        if capable {
            // A packet that arrived with CE is not counted, because another queue marked it.
            self.marked |= self.parcel.ecn != Ecn::Ce;
            self.parcel.ecn = Ecn::Ce;
        }
        capable
    }

    pub(crate) fn was_marked(&self) -> bool {
        self.marked
    }
}

/// A packet that is not admitted to a queue.
#[derive(Debug)]
pub struct EnqueueError {
    /// The packet.
    pub packet: QueuedPacket,
    /// The reason of the drop.
    pub reason: DropReason,
}

/// The part of the transmitter that a discipline may use for its decisions.
#[derive(Debug)]
pub struct Transmitter<'a> {
    /// The packet in transmission: one or none. A limit may include it or not.
    pub in_service: Occupancy,
    /// The discipline's own random stream, `link <link> <direction> queue`.
    pub rng: &'a mut Rng,
    pub(crate) dropped: &'a mut Vec<EnqueueError>,
}

impl Transmitter<'_> {
    /// Drops a packet that was in the queue.
    pub fn drop(&mut self, packet: QueuedPacket, reason: DropReason) {
        self.dropped.push(EnqueueError { packet, reason });
    }
}

/// A queue discipline: decides which packets are queued, which is sent next, and which are dropped
/// or marked.
///
/// The transmitter calls [`QueueDiscipline::dequeue`] when it is free: immediately if a packet
/// arrives at an idle link, and each time it has sent the last bit of another packet. Times never
/// decrease.
///
/// A new discipline is a file that implements this trait.
pub trait QueueDiscipline {
    /// A packet arrives at `now`.
    ///
    /// # Errors
    /// The packet and the reason why it is not admitted. Queued packets that are dropped in its
    /// place go to [`Transmitter::drop`].
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), EnqueueError>;

    /// The packet to send at `now`; `None` if there is none, or none may be sent yet.
    fn dequeue(&mut self, now: Nanos, transmitter: &mut Transmitter<'_>) -> Option<QueuedPacket>;

    /// Removes any packet without dropping or marking, because the link went down.
    fn remove(&mut self) -> Option<QueuedPacket>;

    /// The queued packets, without the packet in transmission.
    fn occupancy(&self) -> Occupancy;

    /// The time of the next call of [`QueueDiscipline::dequeue`] if packets are queued and it
    /// returned none; later than `now`. `None`: when the next packet arrives.
    fn wake_up(&self, now: Nanos) -> Option<Nanos> {
        let _ = now;
        None
    }

    /// The limit, if the discipline is a plain drop-tail queue: a link of constant rate can then
    /// compute the whole passage of a packet on its arrival, with one event.
    fn as_drop_tail(&self) -> Option<Limit> {
        None
    }

    /// Called once with the rate of the link. A discipline that computes itself how long a packet
    /// takes, takes the rate: [`QueueDiscipline::dequeue`] then returns a packet when its last bit
    /// leaves.
    ///
    /// # Errors
    /// [`BuildError::Parameters`] for a rate that the discipline cannot serve.
    fn take_rate(&mut self, rate: &mut Option<StepFunction<u64>>) -> Result<(), BuildError> {
        let _ = rate;
        Ok(())
    }

    /// Time up to `now` for which it transmitted, if it has taken the rate of the link.
    fn busy(&self, now: Nanos) -> Nanos {
        let _ = now;
        0
    }

    /// Requests and assignments of capacity up to `now`, if the link is assigned on demand.
    fn assignments(&self, now: Nanos) -> Option<Assignments> {
        let _ = now;
        None
    }
}
