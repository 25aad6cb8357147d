//! Impairments of a link for robustness tests and adverse networks: reordering, duplication and
//! corruption.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

use crate::rng::{Probability, Rng, Seed};

/// Reordering by an extra delay of some packets, which later packets then overtake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Probability that a packet is delayed.
    pub probability: Probability,
    /// Upper bound of the extra delay, nanoseconds. The delay is drawn uniformly from 0 (inclusive)
    /// to this bound (exclusive).
    pub up_to: Nanos,
}

/// Impairments of one direction; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// Reordering by extra delay.
    pub reordering: Reordering,
    /// Probability that a packet arrives twice.
    pub duplication: Probability,
    /// Probability that one bit of the packet's payload is flipped. Checksums should detect this.
    pub corruption: Probability,
}

/// Impairments of one direction, each with its own random stream.
#[derive(Debug)]
pub(crate) struct Impairer {
    config: Impairments,
    reordering: Rng,
    duplication: Rng,
    corruption: Rng,
}

impl Impairer {
    /// `None` if the configuration has no impairments, so that a link without them costs only one
    /// branch per packet.
    pub fn new(config: Impairments, seed: Seed, name: &str) -> Option<Box<Self>> {
        (config != Impairments::default()).then(|| {
            let stream = |what: &str| seed.stream(&format!("{name} {what}"));
            Box::new(Self {
                config,
                reordering: stream("reordering"),
                duplication: stream("duplication"),
                corruption: stream("corruption"),
            })
        })
    }

    /// Extra delay of the next packet, nanoseconds; `None` if it is not delayed.
    pub fn extra_delay(&mut self) -> Option<Nanos> {
        let Reordering { probability, up_to } = self.config.reordering;
        (self.reordering.chance(probability) && up_to > 0).then(|| self.reordering.below(up_to))
    }

    /// Whether the next packet arrives twice.
    pub fn duplicates(&mut self) -> bool {
        self.duplication.chance(self.config.duplication)
    }

    /// Payload of the next packet with one bit flipped; `None` if it is not corrupted.
    pub fn corrupted(&mut self, bytes: &Bytes) -> Option<Bytes> {
        if !self.corruption.chance(self.config.corruption) || bytes.is_empty() {
            return None;
        }
        let bit = self.corruption.below(bytes.len() as u64 * 8);
        let mut copy = BytesMut::from(&bytes[..]);
        copy[(bit / 8) as usize] ^= 1 << (bit % 8);
        Some(copy.freeze())
    }
}
