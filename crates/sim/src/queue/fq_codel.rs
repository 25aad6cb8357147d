//! FQ-CoDel (RFC 8290): one queue per flow, each controlled by CoDel. The queues are served by
//! deficit round robin, new flows first.

use std::collections::VecDeque;

use anabranch_settings::{Kind, KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::{
    CoDel, CoDelConfig, EnqueueError, Occupancy, QueueDiscipline, QueuedPacket, TIME,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::{DropReason, Packet};

kind! {
    /// Settings of [`FqCoDel`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FqCoDelConfig: Default {
        /// Number of queues into which flows are hashed.
        flows: usize = 1024, Kind::count(1, 65_536), "RFC 8290 §5.2.3";
        /// Bytes that a queue may send per round.
        quantum: u64 = "1514 B", Kind::bytes(1, 1 << 20), "RFC 8290 §5.2.4";
        /// Acceptable sojourn time of packets in a standing queue.
        target: Nanos = "5 ms", TIME, "RFC 8290 §5.2.2";
        /// Time for which the sojourn time must exceed `target` before the first drop: about the
        /// largest common round-trip time.
        interval: Nanos = "100 ms", TIME, "RFC 8290 §5.2.1";
        /// Mark packets of senders that use ECN instead of dropping them.
        ecn: bool = true, Kind::Flag, "RFC 8290 §5.2.6";
        /// Capacity of all queues together, in packets. When it is exceeded, packets are dropped
        /// from the head of the longest queue (in bytes).
        limit: u64 = 10240, Kind::count(1, 1 << 32), "RFC 8290 §5.2.5";
    }
    idle {
        quantum: |it, ()| idle_if(
            it.flows == 1,
            "with `flows = 1`: there is one queue, which always has its turn",
        );
    }
    /// FQ-CoDel: each flow (identified by addresses, protocol and ports) has a separate queue. The
    /// queues are served round robin, and CoDel limits the delay of each (RFC 8290).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "fq-codel", |config, ()| Ok(Box::new(FqCoDel::new(config)?));
}

/// Maximum number of packets dropped at one overflow: half of the longest queue, but at most this
/// many (RFC 8290 §4.1, as in Linux).
const BATCH: usize = 64;

/// Scheduler list that contains a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    None,
    New,
    Old,
}

#[derive(Debug)]
struct Flow {
    codel: CoDel,
    /// Bytes that the queue may still send in this round; negative if the last packet was larger
    /// than the credit.
    credit: i64,
    list: List,
}

/// The FQ-CoDel discipline of RFC 8290 §4.
#[derive(Debug)]
pub struct FqCoDel {
    config: FqCoDelConfig,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    occupancy: Occupancy,
    /// Salt of the hash, so that the assignment of flows to queues depends on the seed (§5.3);
    /// drawn when the first packet arrives.
    salt: Option<u64>,
}

impl FqCoDel {
    /// Creates empty queues.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for 0 queues or a limit of 0.
    pub fn new(config: FqCoDelConfig) -> Result<Self, BuildError> {
        if config.flows == 0 || config.limit == 0 {
            return Err(BuildError::EmptyQueue);
        }
        let codel = CoDelConfig {
            target: config.target,
            interval: config.interval,
            ecn: config.ecn,
            ..CoDelConfig::default()
        };
        let flow = || {
            Ok(Flow {
                codel: CoDel::new(codel)?,
                credit: 0,
                list: List::None,
            })
        };
        Ok(Self {
            config,
            flows: (0..config.flows)
                .map(|_| flow())
                .collect::<Result<_, BuildError>>()?,
            new: VecDeque::new(),
            old: VecDeque::new(),
            occupancy: Occupancy::default(),
            salt: None,
        })
    }

    /// Index of the queue of a packet's flow (§4.1): a hash of addresses, protocol, and ports,
    /// which are the first fields in UDP, TCP and SCTP.
    fn queue_of(&self, packet: &Packet, salt: u64) -> usize {
        let mut hash = salt;
        let mut mix = |value: u64| {
            // The finalizer of SplitMix64.
            hash = (hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            hash ^= hash >> 31;
        };
        for address in [packet.source, packet.destination] {
            let bits = match address {
                std::net::IpAddr::V4(v4) => u128::from(v4.to_bits()),
                std::net::IpAddr::V6(v6) => v6.to_bits(),
            };
            mix(bits as u64);
            mix((bits >> 64) as u64);
        }
        let ports = packet.ports().map_or(0, u32::from_be_bytes);
        mix(u64::from(ports) << 8 | u64::from(packet.protocol));
        (hash % self.flows.len() as u64) as usize
    }

    /// Handles an overflow of the limit: drops half of the packets of the longest queue from its
    /// head, at most 64 (§4.1.3).
    fn overflow(&mut self, transmitter: &mut TransmitterView<'_>) {
        let bytes = |flow: &Flow| flow.codel.occupancy().bytes;
        let Some(longest) = (0..self.flows.len()).max_by_key(|&at| bytes(&self.flows[at])) else {
            return;
        };
        let codel = &mut self.flows[longest].codel;
        let count = codel.occupancy().packets.div_ceil(2).min(BATCH);
        for packet in (0..count).map_while(|_| codel.remove()) {
            self.occupancy.remove(packet.size());
            transmitter.drop(packet, DropReason::QueueFull);
        }
    }

    /// Index of the queue that is served next.
    fn next(&self) -> Option<usize> {
        self.new.front().or(self.old.front()).copied()
    }

    /// Removes the first queue from its list, and appends it to the old queues if `to` is
    /// `List::Old`.
    fn rotate(&mut self, to: List) {
        let Some(at) = self.new.pop_front().or_else(|| self.old.pop_front()) else {
            return;
        };
        self.flows[at].list = to;
        if to == List::Old {
            self.old.push_back(at);
        }
    }
}

impl QueueDiscipline for FqCoDel {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let salt = *self.salt.get_or_insert_with(|| transmitter.rng.bits());
        let at = self.queue_of(packet.packet(), salt);
        let size = packet.size();
        let flow = &mut self.flows[at];
        flow.codel.enqueue(now, packet, transmitter)?;
        self.occupancy.add(size);
        if flow.list == List::None {
            flow.list = List::New;
            flow.credit = self.config.quantum as i64;
            self.new.push_back(at);
        }
        if self.occupancy.packets as u64 > self.config.limit {
            self.overflow(transmitter);
        }
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        transmitter: &mut TransmitterView<'_>,
    ) -> Option<QueuedPacket> {
        // The loop ends, because each iteration gives a queue credit, removes it from a list, or
        // sends a packet.
        while let Some(at) = self.next() {
            let flow = &mut self.flows[at];
            if flow.credit <= 0 {
                flow.credit += self.config.quantum as i64;
                self.rotate(List::Old);
                continue;
            }
            let before = flow.codel.occupancy();
            let packet = flow.codel.dequeue(now, transmitter);
            let after = flow.codel.occupancy();
            self.occupancy.packets -= before.packets - after.packets;
            self.occupancy.bytes -= before.bytes - after.bytes;
            if let Some(packet) = packet {
                flow.credit -= packet.size() as i64;
                return Some(packet);
            }
            // A new queue that is empty must move to the end of the old queues; otherwise it could
            // immediately return as a new queue (§4.2).
            let behind = flow.list == List::New && !self.old.is_empty();
            self.rotate(if behind { List::Old } else { List::None });
        }
        None
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        let at = self
            .flows
            .iter()
            .position(|flow| flow.codel.occupancy().packets > 0)?;
        let packet = self.flows[at].codel.remove()?;
        self.occupancy.remove(packet.size());
        Some(packet)
    }

    fn occupancy(&self) -> Occupancy {
        self.occupancy
    }
}

#[cfg(test)]
mod tests;
