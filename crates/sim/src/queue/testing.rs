//! Test bench for queue disciplines, which calls them as a transmitter does.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos};
use bytes::Bytes;

use super::{Occupancy, QueueDiscipline, QueuedPacket, TransmitterView};
use crate::packet::Packet;
use crate::rng::{Rng, Seed};

pub(super) const MS: Nanos = MILLISECOND;
/// Size of a packet on the wire, bytes.
pub(super) const SIZE: usize = 1500;

/// A discipline under test; packets are numbered in the order of arrival.
pub(super) struct QueueTester {
    queue: Box<dyn QueueDiscipline>,
    rng: Rng,
    pub ecn: Ecn,
    /// IP protocol number of the next packets.
    pub protocol: u8,
    came: u64,
    /// The packet in transmission.
    pub in_service: Occupancy,
    /// Numbers of the packets that were dropped after they were queued, and of those that were
    /// marked.
    pub dropped: Vec<u64>,
    pub marked: Vec<u64>,
}

impl QueueTester {
    pub fn new(queue: Box<dyn QueueDiscipline>, ecn: Ecn) -> Self {
        Self {
            queue,
            rng: Seed::new(1, 0).stream("queue"),
            ecn,
            protocol: 17,
            came: 0,
            in_service: Occupancy::default(),
            dropped: Vec::new(),
            marked: Vec::new(),
        }
    }

    /// Enqueues `packets` of full size from a source port. Returns the number of packets that were
    /// not admitted.
    pub fn come(&mut self, now: Nanos, packets: u64, port: u16) -> u64 {
        self.come_sized(now, packets, port, SIZE)
    }

    /// Like [`Self::come`], with packets of `size` bytes.
    pub fn come_sized(&mut self, now: Nanos, packets: u64, port: u16, size: usize) -> u64 {
        let mut refused = 0;
        for _ in 0..packets {
            let mut bytes = vec![0; size - 20];
            bytes[..2].copy_from_slice(&port.to_be_bytes());
            let packet = Packet {
                bytes: Bytes::from(bytes),
                id: self.came,
                source: IpAddr::V4(Ipv4Addr::LOCALHOST),
                destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
                target: 0,
                receiver: 0,
                sent: now,
                departed: now,
                added: 0,
                ecn: self.ecn,
                may_fragment: false,
                fragment: 0,
                header: 0,
                protocol: self.protocol,
                hops_left: 64,
            };
            self.came += 1;
            let size = packet.wire_size();
            let queued = QueuedPacket::new(Box::new(packet), now, size);
            let taken =
                self.with(|queue, transmitter| queue.enqueue(now, queued, transmitter).is_ok());
            refused += u64::from(!taken);
        }
        refused
    }

    /// Dequeues at each of `times`. Returns the numbers of the dequeued packets.
    pub fn go(&mut self, times: impl IntoIterator<Item = Nanos>) -> Vec<Option<u64>> {
        let mut out = Vec::new();
        for now in times {
            let next = self.with(|queue, transmitter| queue.dequeue(now, transmitter));
            if let Some(next) = next.as_ref().filter(|next| next.was_marked()) {
                self.marked.push(next.packet().id);
            }
            out.push(next.map(|next| next.packet().id));
        }
        out
    }

    /// Number of queued packets.
    pub fn waiting(&self) -> usize {
        self.queue.occupancy().packets
    }

    /// Time for which the discipline transmitted, nanoseconds.
    pub fn busy(&self, now: Nanos) -> Nanos {
        self.queue.busy(now)
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut Box<dyn QueueDiscipline>, &mut TransmitterView<'_>) -> T,
    ) -> T {
        let mut dropped = Vec::new();
        let mut transmitter = TransmitterView {
            in_service: self.in_service,
            rng: &mut self.rng,
            dropped: &mut dropped,
        };
        let result = act(&mut self.queue, &mut transmitter);
        let ids = dropped.iter().map(|refused| refused.packet.packet().id);
        self.dropped.extend(ids);
        result
    }
}
