//! A queue discipline: drop-tail with early random drops, whose probability grows with the length
//! of the queue.

use anabranch_settings::{Kind, KindEntry, KindError, idle_if, kind};
use anabranch_sim::queue::{
    EnqueueError, Fifo, Occupancy, QueueDiscipline, QueuedPacket, TransmitterView,
};
use anabranch_sim::{DropReason, Probability};

/// A number of packets.
const PACKETS: Kind = Kind::count(1, 1_000_000);

kind! {
    /// The parameters of [`Early`].
    struct EarlyConfig {
        /// No packet is dropped while the queue has at most this number of packets.
        from: u64 = 5, PACKETS;
        /// From this number of queued packets on, every packet is dropped.
        limit: u64, PACKETS, "Floyd and Jacobson 1993, §4";
        /// Never drop two consecutive packets at random.
        spread: bool = false, Kind::Flag;
    }
    idle {
        spread: |it, ()| idle_if(
            it.limit == it.from + 1,
            "with `limit` one above `from`: nothing is dropped at random",
        );
    }
    /// Drops at random, with a probability that rises from 0 at `from` packets to 1 at `limit`.
    pub static EARLY: KindEntry<Box<dyn QueueDiscipline>> = "early", |config, ()| {
        if config.from >= config.limit {
            return Err(KindError::together("`from` is not below `limit`"));
        }
        Ok(Box::new(Early {
            config,
            dropped: false,
            waiting: Fifo::new(),
        }))
    };
}

struct Early {
    config: EarlyConfig,
    /// The last packet was dropped at random.
    dropped: bool,
    waiting: Fifo,
}

impl QueueDiscipline for Early {
    fn enqueue(
        &mut self,
        _now: u64,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let EarlyConfig {
            from,
            limit,
            spread,
        } = self.config;
        let packets = self.waiting.with(transmitter.in_service).packets as u64;
        let above = packets.saturating_sub(from) as f64;
        let share = (above / (limit - from) as f64).min(1.0);
        let chance = Probability::new(share).unwrap_or(Probability::ZERO);
        let spared = spread && self.dropped && packets < limit;
        self.dropped = transmitter.rng.chance(chance) && !spared;
        if self.dropped {
            let reason = DropReason::Aqm;
            return Err(EnqueueError { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: u64, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}
