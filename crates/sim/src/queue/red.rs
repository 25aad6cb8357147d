//! RED (Floyd and Jacobson, *Random early detection gateways for congestion avoidance*, 1993): drops or marks packets as they come, with a
//! probability that rises with the average length of the queue.
//!
//! As ns-2 has it with its `gentle_` mode, which the authors advise since 2000: above `max` the probability goes on rising to 1 at twice `max`.

use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Variant};
use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use super::{Fifo, Limit, Occupancy, QueueDiscipline, Queued, Refused, Transmitter};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::rng::{Probability, Rng};

/// A number of packets.
const PACKETS: Kind = Kind::Count {
    least: 1,
    most: 1_000_000,
};

/// A share above 0.
const SHARE: Kind = Kind::Number {
    least: 0.0,
    most: 1.0,
    step: 0.0,
    above: true,
};

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn QueueDiscipline>> = Entry {
    variant: Variant {
        name: "red",
        about: " RED: drops or marks arriving packets at random, with a probability that grows with the average queue length (Floyd and Jacobson 1993).",
        parameters: &[
            Setting {
                name: "min",
                about: " Average queue length, in packets, up to which no packet is dropped (min_th).",
                clause: "Floyd and Jacobson 1993, §4",
                kind: PACKETS,
                fallback: Fallback::Is("5"),
            },
            Setting {
                name: "max",
                about: " Average queue length, in packets, at which the probability is `probability` (max_th). Must be above `min`.",
                clause: "Floyd and Jacobson 1993, §4",
                kind: PACKETS,
                fallback: Fallback::Is("15"),
            },
            Setting {
                name: "probability",
                about: " Probability at `max` (max_p).",
                clause: "Floyd and Jacobson 1993, §4",
                kind: SHARE,
                fallback: Fallback::Is("0.1"),
            },
            Setting {
                name: "weight",
                about: " Weight of a sample in the average (w_q).",
                clause: "Floyd and Jacobson 1993, §6",
                kind: SHARE,
                fallback: Fallback::Is("0.002"),
            },
            Setting {
                name: "packet_time",
                about: " Transmission time of a typical packet. While the link is idle, the average falls as if one empty sample had arrived in each such time.",
                clause: "Floyd and Jacobson 1993, §4",
                kind: Kind::Duration {
                    least: 1,
                    most: 3_600_000_000_000,
                },
                fallback: Fallback::Is("1 ms"),
            },
            Setting {
                name: "gentle",
                about: " Between `max` and twice `max` the probability rises to 1. Off: every packet above `max` is dropped.",
                clause: "ns-2, gentle_",
                kind: Kind::Flag,
                fallback: Fallback::Is("true"),
            },
            Setting {
                name: "wait",
                about: " Keep a minimum distance between two drops: as many packets as the average leaves between two of them. Off: none, as in the paper.",
                clause: "ns-2, wait_",
                kind: Kind::Flag,
                fallback: Fallback::Is("false"),
            },
            Setting {
                name: "spare",
                about: " Drop and mark nothing while at most one packet waits, whatever the average is, nor the first packet behind that. Off: the average alone decides, as in the paper.",
                clause: "ns-2, red.cc (qlen > 1, old)",
                kind: Kind::Flag,
                fallback: Fallback::Is("false"),
            },
            Setting {
                name: "waiting_only",
                about: " The average counts the packets that wait. Off: the one in transmission, too, as `limit` does.",
                clause: "ns-2, red.cc (estimator)",
                kind: Kind::Flag,
                fallback: Fallback::Is("false"),
            },
            Setting {
                name: "ecn",
                about: " Mark packets of senders that use ECN instead of dropping them, while the probability is below 1.",
                clause: "RFC 3168 §7",
                kind: Kind::Flag,
                fallback: Fallback::Is("false"),
            },
            super::LIMIT,
        ],
    },
    build: |parameters, ()| {
        let (min, max): (u64, u64) = (parameters.get("min")?, parameters.get("max")?);
        if min >= max {
            return Err(Refusal::together("`min` is not below `max`"));
        }
        let red = Red::new(RedConfig {
            min,
            max,
            probability: parameters.get("probability")?,
            weight: parameters.get("weight")?,
            packet_time: parameters.get("packet_time")?,
            gentle: parameters.get("gentle")?,
            wait: parameters.get("wait")?,
            spare: parameters.get("spare")?,
            waiting_only: parameters.get("waiting_only")?,
            ecn: parameters.get("ecn")?,
            limit: parameters.optional("limit")?.unwrap_or(Limit::Unlimited),
        });
        Ok(Box::new(red.map_err(Refusal::together)?))
    },
};

/// The settings of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Up to this average none is dropped, packets (min_th).
    pub min: u64,
    /// At this average the probability is `probability`, packets (max_th); above `min`.
    pub max: u64,
    /// Probability at `max`, above 0 (max_p).
    pub probability: f64,
    /// What a sample counts in the average, above 0 (w_q).
    pub weight: f64,
    /// How long a typical packet is sent.
    pub packet_time: Nanos,
    /// From `max` to twice `max` the probability rises to 1.
    pub gentle: bool,
    /// Between two that go lie at least as many packets as the probability leaves between two of them on average.
    pub wait: bool,
    /// While at most one packet waits, the one in transmission not counted, none goes, nor the first behind that.
    pub spare: bool,
    /// The packet in transmission does not count in the average.
    pub waiting_only: bool,
    /// Marks packets of senders that use ECN instead of dropping them.
    pub ecn: bool,
    /// What is dropped at the tail, the packet in transmission included.
    pub limit: Limit,
}

impl Default for RedConfig {
    /// Averages of 5 and 15 packets, 10 %, a weight of 0.002; gentle; no minimum distance, short queues not spared, the packet in transmission
    /// counted, no ECN, no limit.
    fn default() -> Self {
        Self {
            min: 5,
            max: 15,
            probability: 0.1,
            weight: 0.002,
            packet_time: MILLISECOND,
            gentle: true,
            wait: false,
            spare: false,
            waiting_only: false,
            ecn: false,
            limit: Limit::Unlimited,
        }
    }
}

/// The discipline.
#[derive(Debug)]
pub struct Red {
    config: RedConfig,
    waiting: Fifo,
    /// The average length, packets (`avg`).
    average: f64,
    /// Packets since the last that went (`count`); `None`: none went since the average was below `min`.
    count: Option<u64>,
    /// The average counts the idle time up to then (`q_time`, moved by each packet that an empty queue drops). `None`: the queue is not
    /// empty.
    idle: Option<Nanos>,
}

impl Red {
    /// An empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0.
    pub fn new(config: RedConfig) -> Result<Self, BuildError> {
        config.limit.checked()?;
        Ok(Self {
            config,
            waiting: Fifo::new(),
            average: 0.0,
            count: None,
            idle: Some(0),
        })
    }

    /// A packet comes and sees `packets` before it: the average moves.
    fn sample(&mut self, now: Nanos, packets: usize) {
        let weight = self.config.weight;
        if let Some(since) = &mut self.idle {
            let samples = now.saturating_sub(*since) / self.config.packet_time;
            *since = now;
            self.average *= power(1.0 - weight, samples);
        }
        self.average = (1.0 - weight) * self.average + weight * packets as f64;
    }

    /// The queue is too short for a drop. Its average falls by 0.2 % a packet, so that it is above `min` long after senders backed off, and
    /// drops would leave the link idle.
    fn spares(&self) -> bool {
        self.config.spare && self.waiting.occupancy().packets <= 1
    }

    /// The probability by the average alone (`p_b`), and whether packets of ECN are dropped, too.
    fn base(&self) -> (f64, bool) {
        let RedConfig {
            min,
            max,
            probability,
            gentle,
            ..
        } = self.config;
        let (min, max) = (min as f64, max as f64);
        if self.average < min {
            (0.0, false)
        } else if self.average < max {
            (probability * (self.average - min) / (max - min), false)
        } else if gentle && self.average < 2.0 * max {
            let beyond = (self.average - max) / max;
            (probability + (1.0 - probability) * beyond, false)
        } else {
            (1.0, true)
        }
    }

    /// Whether the packet that comes is to go, and by a drop in any case. Packets between two that go are spread evenly: with
    /// p_b / (1 - count p_b) (§4); with `wait` none goes before count p_b is 1, and then with p_b / (2 - count p_b) (ns-2, `wait_`).
    fn chooses(&mut self, rng: &mut Rng) -> Option<bool> {
        let (base, surely) = self.base();
        if base <= 0.0 || self.spares() {
            self.count = None;
            return None;
        }
        if self.config.spare && self.count.is_none() {
            self.count = Some(1); // it counts itself
            return None;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let waited = count as f64 * base;
        if self.config.wait && waited < 1.0 {
            self.count = Some(count);
            return None;
        }
        let left = if self.config.wait { 2.0 } else { 1.0 } - waited;
        let probability = if left <= base { 1.0 } else { base / left };
        let probability = Probability::new(probability).unwrap_or(Probability::ALWAYS);
        let goes = rng.chance(probability);
        self.count = Some(if goes { 0 } else { count });
        goes.then_some(surely)
    }
}

/// `base` to a whole power by squaring: products alone, which IEEE 754 rounds the same everywhere.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

impl QueueDiscipline for Red {
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: Queued,
        transmitter: &mut Transmitter<'_>,
    ) -> Result<(), Refused> {
        let occupancy = self.waiting.with(transmitter.in_service);
        let counted = if self.config.waiting_only {
            self.waiting.occupancy()
        } else {
            occupancy
        };
        self.sample(now, counted.packets);
        if !self.config.limit.admits(occupancy, packet.size()) {
            let reason = DropReason::QueueFull;
            return Err(Refused { packet, reason });
        }
        if let Some(surely) = self.chooses(transmitter.rng) {
            let marked = self.config.ecn && !surely && packet.mark();
            if !marked {
                let reason = DropReason::Aqm;
                return Err(Refused { packet, reason });
            }
        }
        self.idle = None;
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut Transmitter<'_>) -> Option<Queued> {
        let packet = self.waiting.pop();
        if packet.is_none() {
            self.idle.get_or_insert(now);
        }
        packet
    }

    fn remove(&mut self) -> Option<Queued> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }
}

#[cfg(test)]
mod tests;
