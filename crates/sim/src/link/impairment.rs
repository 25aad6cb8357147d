//! What a link does to packets that only tests and hostile weather ask for: reordering, duplication, corruption.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

use crate::rng::{Probability, Rng, Seed};

/// Holds some packets back, so that later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// How likely a packet is held back.
    pub probability: Probability,
    /// The longest extra delay; each is drawn uniformly from 0 up to and without this.
    pub up_to: Nanos,
}

/// The impairments of one direction; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// Reordering by extra delay.
    pub reordering: Reordering,
    /// How likely a packet arrives twice.
    pub duplication: Probability,
    /// How likely one bit of the packet's payload is flipped. Checksums are what should notice.
    pub corruption: Probability,
}

/// The impairments with their random streams, one each.
#[derive(Debug)]
pub(crate) struct Impairer {
    config: Impairments,
    reordering: Rng,
    duplication: Rng,
    corruption: Rng,
}

impl Impairer {
    /// `None` if the configuration impairs nothing, so that such a link pays one branch.
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

    /// Extra delay for the next packet; `None` if it is not held back.
    pub fn extra_delay(&mut self) -> Option<Nanos> {
        let Reordering { probability, up_to } = self.config.reordering;
        (self.reordering.chance(probability) && up_to > 0).then(|| self.reordering.below(up_to))
    }

    /// Whether the next packet arrives twice.
    pub fn duplicates(&mut self) -> bool {
        self.duplication.chance(self.config.duplication)
    }

    /// The next packet's bytes with one bit flipped, if it is to be corrupted.
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
