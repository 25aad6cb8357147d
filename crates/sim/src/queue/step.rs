//! Step marking: marks packets at one threshold of the queue length, as the switches of DCTCP do
//! (Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, §3.1; RFC 8257 §3.1). The decision depends on
//! the instantaneous queue length on arrival, and not on an average.

use anabranch_settings::{Kind, KindEntry, SettingValue, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// Settings of [`Step`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StepConfig {
        /// Queue length above which an arriving packet is marked (K), in packets or bytes. It
        /// includes the packet in transmission and excludes the arriving packet.
        threshold: QueueLimit, QueueLimit::KIND, "RFC 8257 §3.1";
        /// Queue packets of senders that do not use ECN even above the threshold. Off: such packets
        /// are dropped.
        mark_only: bool = false, Kind::Flag, "RFC 3168 §5";
        limit: QueueLimit as LIMIT;
    }
    /// Step marking: marks a packet that arrives at a queue longer than a threshold, as the
    /// switches of DCTCP do (RFC 8257 §3.1).
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "step", |config, ()| Ok(Box::new(Step::new(config)?));
}

/// The step marking discipline.
#[derive(Debug)]
pub struct Step {
    config: StepConfig,
    waiting: Fifo,
}

impl Step {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(config: StepConfig) -> Result<Self, BuildError> {
        config.limit.checked()?;
        Ok(Self {
            config,
            waiting: Fifo::new(),
        })
    }

    /// Whether `occupancy` is above the threshold, so that an arriving packet is marked.
    fn is_above(&self, occupancy: Occupancy) -> bool {
        match self.config.threshold {
            QueueLimit::Packets(threshold) => occupancy.packets > threshold,
            QueueLimit::Bytes(threshold) => occupancy.bytes > threshold,
            QueueLimit::Unlimited => false,
        }
    }
}

impl QueueDiscipline for Step {
    fn enqueue(
        &mut self,
        _: Nanos,
        mut packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        if self.is_above(occupancy) && !packet.mark() && !self.config.mark_only {
            let reason = DropReason::Aqm;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Ecn;

    use super::super::testing::{MS, QueueTester, SIZE};
    use super::*;

    fn bench(threshold: QueueLimit, mark_only: bool, limit: QueueLimit, ecn: Ecn) -> QueueTester {
        let step = Step::new(StepConfig {
            threshold,
            mark_only,
            limit,
        });
        let mut bench = QueueTester::new(Box::new(step.unwrap()), ecn);
        bench.in_service.add(SIZE);
        bench
    }

    /// With one packet in transmission and K = 3, packets that find 1, 2 or 3 packets pass, and
    /// packets that find more are marked, whatever happened to earlier packets.
    #[test]
    fn a_packet_that_finds_more_than_the_threshold_is_marked() {
        for threshold in [QueueLimit::Packets(3), QueueLimit::Bytes(3 * SIZE as u64)] {
            let mut bench = bench(threshold, false, QueueLimit::Packets(100), Ecn::Ect0);
            assert_eq!(bench.come(0, 5, 1), 0);
            bench.go([MS, 2 * MS, 3 * MS]);
            assert_eq!(bench.come(4 * MS, 2, 1), 0);
            bench.go((5..12).map(|at| at * MS));
            assert_eq!(bench.marked, [3, 4, 6], "{threshold:?}");
        }
    }

    #[test]
    fn without_ecn_what_would_be_marked_is_dropped_or_waits() {
        let mut drops = bench(
            QueueLimit::Packets(3),
            false,
            QueueLimit::Unlimited,
            Ecn::NotEct,
        );
        assert_eq!(drops.come(0, 5, 1), 2);
        let mut waits = bench(
            QueueLimit::Packets(3),
            true,
            QueueLimit::Unlimited,
            Ecn::NotEct,
        );
        assert_eq!((waits.come(0, 5, 1), waits.waiting()), (0, 5));
    }

    #[test]
    fn a_full_queue_drops_whom_it_would_mark() {
        let mut bench = bench(
            QueueLimit::Packets(1),
            false,
            QueueLimit::Packets(4),
            Ecn::Ect1,
        );
        assert_eq!(bench.come(0, 5, 1), 2);
        assert!(
            Step::new(StepConfig {
                threshold: QueueLimit::Packets(1),
                mark_only: false,
                limit: QueueLimit::Packets(0)
            })
            .is_err()
        );
    }
}
