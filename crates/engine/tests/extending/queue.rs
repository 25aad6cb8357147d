//! A queue discipline: drop-tail that drops at random before it is full, the more often the fuller it is.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_sim::queue::{Fifo, Occupancy, QueueDiscipline, Queued, Refused, Transmitter};
use anabranch_sim::{DropReason, Probability};

/// A number of packets.
const PACKETS: Kind = Kind::Count {
    least: 1,
    most: 1_000_000,
};

/// How specs name it.
pub static EARLY: Entry<Box<dyn QueueDiscipline>> = Entry {
    variant: Variant {
        name: "early",
        about: " Drops at random, with a probability that rises from 0 at `from` packets to 1 at `limit`.",
        parameters: &[
            Setting {
                name: "from",
                about: " Up to so many packets none is dropped.",
                clause: "",
                kind: PACKETS,
                fallback: Fallback::Is("5"),
            },
            Setting {
                name: "limit",
                about: " From so many packets on each is dropped.",
                clause: "",
                kind: PACKETS,
                fallback: Fallback::Required,
            },
        ],
    },
    build: |parameters, ()| {
        let (from, limit): (u64, u64) = (parameters.get("from")?, parameters.get("limit")?);
        if from >= limit {
            return Err(Refusal::together("`from` is not below `limit`"));
        }
        Ok(Box::new(Early {
            from,
            limit,
            waiting: Fifo::new(),
        }))
    },
};

struct Early {
    from: u64,
    limit: u64,
    waiting: Fifo,
}

impl QueueDiscipline for Early {
    fn enqueue(
        &mut self,
        _now: u64,
        packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused> {
        let packets = self.waiting.with(transmitter.in_service).packets as u64;
        let above = packets.saturating_sub(self.from) as f64;
        let share = (above / (self.limit - self.from) as f64).min(1.0);
        let chance = Probability::new(share).unwrap_or(Probability::NEVER);
        if transmitter.rng.chance(chance) {
            let reason = DropReason::Aqm;
            return Err(Refused { packet, reason });
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: u64, _: &mut Transmitter<'_>) -> Option<Queued> {
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<Queued> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}
