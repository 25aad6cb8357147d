//! Queue discipline interface: the trait that a discipline implements, and the queued packets.

use anabranch_transport::{Ecn, Nanos};

use super::{Assignments, Occupancy, QueueLimit};
use crate::error::BuildError;
use crate::packet::{DropReason, Packet, Parcel};
use crate::rng::Rng;
use crate::step_function::StepFunction;

/// A packet in a queue, or arriving at one.
#[derive(Debug)]
pub struct QueuedPacket {
    pub(crate) parcel: Parcel,
    came: Nanos,
    size: usize,
    marked: bool,
}

impl QueuedPacket {
    pub(crate) fn new(parcel: Parcel, came: Nanos, size: usize) -> Self {
        Self {
            parcel,
            came,
            size,
            marked: false,
        }
    }

    /// The packet.
    pub fn packet(&self) -> &Packet {
        &self.parcel
    }

    /// Size of the packet on the wire, bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Time at which the packet arrived at the queue, nanoseconds.
    pub fn came(&self) -> Nanos {
        self.came
    }

    /// Sojourn time: nanoseconds since the packet arrived at the queue (RFC 8289 §3.2).
    pub fn sojourn(&self, now: Nanos) -> Nanos {
        now - self.came
    }

    /// Sets CE in the packet's IP header and returns true, if the sender uses ECN. Otherwise
    /// returns false and changes nothing (RFC 3168 §5).
    pub fn mark(&mut self) -> bool {
        let capable = self.parcel.ecn.is_capable();
        if capable {
            // A packet that arrived with CE does not count as marked here, because another queue
            // has marked it.
            self.marked |= self.parcel.ecn != Ecn::Ce;
            self.parcel.ecn = Ecn::Ce;
        }
        capable
    }

    pub(crate) fn was_marked(&self) -> bool {
        self.marked
    }
}

/// A packet that a queue does not admit, and the drop reason.
#[derive(Debug)]
pub struct EnqueueError {
    /// The packet.
    pub packet: QueuedPacket,
    /// Reason for which the packet is dropped.
    pub reason: DropReason,
}

/// The parts of the transmitter that a discipline may use.
#[derive(Debug)]
pub struct TransmitterView<'a> {
    /// The packet in transmission: one packet or none. The limit of a discipline may include or
    /// exclude it.
    pub in_service: Occupancy,
    /// Random stream of the discipline: `link <link> <direction> queue`.
    pub rng: &'a mut Rng,
    pub(crate) dropped: &'a mut Vec<EnqueueError>,
}

impl TransmitterView<'_> {
    /// Drops a packet that was already queued.
    pub fn drop(&mut self, packet: QueuedPacket, reason: DropReason) {
        self.dropped.push(EnqueueError { packet, reason });
    }
}

/// A queue discipline: decides which packets are queued, which is sent next, and which are dropped
/// or marked.
///
/// The transmitter calls [`QueueDiscipline::dequeue`] when it is free: when a packet arrives at an
/// idle link, and after the last bit of each packet. Times of successive calls never decrease.
///
/// A new discipline is a file that implements this trait.
pub trait QueueDiscipline {
    /// Enqueues a packet that arrives at `now`.
    ///
    /// # Errors
    /// The packet and the drop reason, if the packet is not admitted. If queued packets are dropped
    /// to admit the new packet, they must be passed to [`TransmitterView::drop`].
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError>;

    /// Returns the packet to send at `now`; `None` if the queue is empty, or no packet may be sent
    /// yet.
    fn dequeue(
        &mut self,
        now: Nanos,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket>;

    /// Removes any queued packet without dropping or marking, because the link went down.
    fn remove(&mut self) -> Option<QueuedPacket>;

    /// Number and bytes of the queued packets, without the packet in transmission.
    fn occupancy(&self) -> Occupancy;

    /// Time of the next call of [`QueueDiscipline::dequeue`], if it returned no packet although
    /// packets are queued; must be later than `now`. `None`: the next call is at the arrival of a
    /// packet.
    fn wake_up(&self, now: Nanos) -> Option<Nanos> {
        let _ = now;
        None
    }

    /// The limit, if the discipline is a plain drop-tail queue. A link of constant rate can then
    /// compute the whole passage of a packet when it arrives, with one event.
    fn as_drop_tail(&self) -> Option<QueueLimit> {
        None
    }

    /// Receives the rate of the link, in bits per second; called once. A discipline that computes
    /// transmission times itself should take the rate out of the option.
    /// [`QueueDiscipline::dequeue`] must then return each packet when its last bit leaves.
    ///
    /// # Errors
    /// [`BuildError::Parameters`] if the discipline cannot work with the rate.
    fn take_rate(&mut self, rate: &mut Option<StepFunction<u64>>) -> Result<(), BuildError> {
        let _ = rate;
        Ok(())
    }

    /// Time up to `now` for which the discipline transmitted, nanoseconds, if it has taken the rate
    /// of the link.
    fn busy(&self, now: Nanos) -> Nanos {
        let _ = now;
        0
    }

    /// Capacity requests and assignments up to `now`, if capacity is assigned on demand.
    fn assignments(&self, now: Nanos) -> Option<Assignments> {
        let _ = now;
        None
    }
}
