//! Strict priority: a packet is sent only if no packet of a higher class is queued.
//!
//! The class of a packet is the protocol in its IP header, because simulated packets carry no DSCP.

use anabranch_settings::{Kind, KindEntry, SettingValue, kind, spelled};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;

/// A class of packets: the protocol in the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityClass {
    /// SCTP, without UDP encapsulation.
    Sctp,
    /// TCP.
    Tcp,
    /// UDP, including SCTP over UDP.
    Udp,
}
spelled!(PriorityClass: PriorityClass::Sctp = "sctp", PriorityClass::Tcp = "tcp", PriorityClass::Udp = "udp");

impl PriorityClass {
    /// Protocol number in the IP header.
    const fn protocol(self) -> u8 {
        match self {
            PriorityClass::Sctp => 132,
            PriorityClass::Tcp => 6,
            PriorityClass::Udp => 17,
        }
    }
}

kind! {
    /// The parameters of [`Priority`].
    struct PriorityConfig {
        /// The protocols, highest priority first: `["udp", "sctp"]`.
        order: Vec<PriorityClass>, Kind::List(&PriorityClass::KIND);
        /// Capacity of each queue in packets or bytes; the packet in transmission counts in every
        /// queue. Default: unlimited.
        limit: QueueLimit as LIMIT;
    }
    /// Strict priority by protocol: a packet is sent only if no packet of a protocol that is
    /// earlier in `order` waits. Each listed protocol has a queue; all other protocols share the
    /// last queue.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "priority", |config, ()| Ok(Box::new(Priority::new(&config.order, config.limit)?));
}

/// Strict priority discipline, with one queue per class and one for all other packets.
#[derive(Debug)]
pub struct Priority {
    /// IP protocol numbers, highest class first.
    order: Vec<u8>,
    /// The queues: one per protocol in `order`, and the last for all other packets.
    waiting: Vec<Fifo>,
    limit: QueueLimit,
}

impl Priority {
    /// Creates empty queues.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(order: &[PriorityClass], limit: QueueLimit) -> Result<Self, BuildError> {
        let mut protocols: Vec<u8> = Vec::new();
        for class in order {
            if !protocols.contains(&class.protocol()) {
                protocols.push(class.protocol());
            }
        }
        Ok(Self {
            waiting: (0..=protocols.len()).map(|_| Fifo::new()).collect(),
            order: protocols,
            limit: limit.checked()?,
        })
    }

    fn next(&mut self) -> Option<QueuedPacket> {
        self.waiting.iter_mut().find_map(Fifo::pop)
    }
}

impl QueueDiscipline for Priority {
    fn enqueue(
        &mut self,
        _now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let protocol = packet.packet().protocol;
        let known = self.order.iter().position(|&known| known == protocol);
        let class = known.unwrap_or(self.order.len());
        let queue = self.waiting.get_mut(class);
        let fits = queue.filter(|queue| {
            let occupancy = queue.with(transmitter.in_service);
            self.limit.admits(occupancy, packet.size())
        });
        match fits {
            Some(queue) => queue.push(packet),
            None => {
                let reason = DropReason::QueueFull;
                return Err(EnqueueError { packet, reason });
            }
        }
        Ok(())
    }

    fn dequeue(&mut self, _now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.next()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.next()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting
            .iter()
            .map(Fifo::occupancy)
            .fold(Occupancy::default(), |all, one| Occupancy {
                packets: all.packets + one.packets,
                bytes: all.bytes + one.bytes,
            })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Ecn;

    use super::super::testing::QueueTester;
    use super::*;

    fn queue(order: &[PriorityClass], limit: usize) -> QueueTester {
        let queue = Priority::new(order, QueueLimit::Packets(limit)).expect("a queue");
        QueueTester::new(Box::new(queue), Ecn::NotEct)
    }

    #[test]
    fn a_higher_class_goes_first_whenever_it_waits() {
        let mut it = queue(&[PriorityClass::Udp, PriorityClass::Sctp], 10);
        for protocol in [6, 132, 6, 17, 132, 17] {
            it.protocol = protocol;
            assert_eq!(it.come(0, 1, 1), 0);
        }
        assert_eq!(it.go([0, 0, 0]), [Some(3), Some(5), Some(1)]);
        it.protocol = 17;
        it.come(0, 1, 1);
        let rest = [Some(6), Some(4), Some(0), Some(2), None];
        assert_eq!(it.go([0; 5]), rest);
    }

    #[test]
    fn a_full_class_leaves_the_others_their_space() {
        let mut it = queue(&[PriorityClass::Udp, PriorityClass::Udp], 2);
        it.protocol = 6;
        assert_eq!(it.come(0, 3, 1), 1);
        it.protocol = 17;
        assert_eq!(it.come(0, 3, 1), 1);
        assert_eq!(it.waiting(), 4);
        assert!(Priority::new(&[], QueueLimit::Packets(0)).is_err());
    }
}
