//! Periodic losses: one packet in `every` is lost, always after the same number of packets, as
//! window formulas assume.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{Loss, Traffic};
use crate::packet::Packet;
use crate::rng::Rng;

kind! {
    /// The parameter of [`Periodic`].
    struct PeriodicConfig {
        /// Number of packets per loss: 1000 for a loss rate of 0.1 %.
        every: u64, Kind::count(1, 1 << 40), "RFC 9438 §5.1";
    }
    /// One packet in `every` is lost, always after the same number of packets. The first lost
    /// packet is drawn at random among the first `every` packets.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> =
        "periodic", |config, _| Ok(Box::new(Periodic::new(config.every)));
}

/// Loss model that drops one packet in `every`, the first at a random position.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    every: u64,
    /// Number of packets that pass before the next loss; `None` before the first packet, at which
    /// it is drawn.
    left: Option<u64>,
}

impl Periodic {
    /// Drops one packet in `every`; 0 counts as 1.
    pub fn new(every: u64) -> Self {
        Self {
            every: every.max(1),
            left: None,
        }
    }
}

impl Loss for Periodic {
    fn takes(&mut self, _at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        let left = self.left.get_or_insert_with(|| rng.below(self.every));
        if *left > 0 {
            *left -= 1;
            return false;
        }
        *left = self.every - 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use anabranch_transport::Ecn;
    use bytes::Bytes;

    use super::*;
    use crate::rng::Seed;

    fn lost(every: u64, seed: u64) -> Vec<usize> {
        let packet = Packet {
            bytes: Bytes::new(),
            id: 0,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
            target: 0,
            receiver: 0,
            sent: 0,
            departed: 0,
            added: 0,
            ecn: Ecn::NotEct,
            may_fragment: false,
            fragment: 0,
            header: 0,
            protocol: 17,
            hops_left: 64,
        };
        let (mut loss, mut rng) = (Periodic::new(every), Seed::new(seed, 0).stream("loss"));
        let taken = (0..1000).map(|_| loss.takes(0, &packet, &mut rng));
        let taken: Vec<bool> = taken.collect();
        (0..1000).filter(|&at| taken[at]).collect()
    }

    #[test]
    fn losses_lie_at_equal_distances_from_a_place_that_the_seed_decides() {
        let mut firsts = Vec::new();
        for seed in 0..20 {
            let at = lost(100, seed);
            assert_eq!(at.len(), 10);
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] == 100), "{at:?}");
            firsts.push(at[0]);
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert!(
            firsts.len() > 10 && firsts[0] < 30 && firsts.last() > Some(&70),
            "{firsts:?}"
        );
        assert_eq!(lost(1, 3).len(), 1000);
    }
}
