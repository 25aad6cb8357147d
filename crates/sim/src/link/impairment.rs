//! Impairments of a link that only tests and adverse networks need: reordering, duplication,
//! corruption.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

use crate::rng::{Probability, Rng, Seed};

/// Delays some packets, so that later packets overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Probability of an extra delay.
    pub probability: Probability,
    /// Upper bound of the extra delay, which is drawn uniformly from 0 up to but not including it.
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

/// Impairments with their random streams, one each.
#[derive(Debug)]
pub(crate) struct Impairer {
    config: Impairments,
    reordering: Rng,
    duplication: Rng,
    corruption: Rng,
}

impl Impairer {
    /// `None` if the configuration has no impairments, so that such a link pays for one branch
    /// only.
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

    /// Extra delay of the next packet; `None` if it is not delayed.
    pub fn extra_delay(&mut self) -> Option<Nanos> {
        let Reordering { probability, up_to } = self.config.reordering;
        (self.reordering.chance(probability) && up_to > 0).then(|| self.reordering.below(up_to))
    }

    /// Whether the next packet arrives twice.
    pub fn duplicates(&mut self) -> bool {
        self.duplication.chance(self.config.duplication)
    }

    /// Payload of the next packet with one bit flipped, if it should be corrupted.
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
