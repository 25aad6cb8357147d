//! Rain fading: a channel whose fading depth changes over time, independently of packet arrivals.
//! Each depth has its own loss probability. The depths are the states of a continuous-time Markov
//! chain that moves to an adjacent depth at each change. The model does not include adaptive
//! coding, with which a modem reduces its rate during rain; a link with a time-dependent rate
//! should be used for that.

use anabranch_settings::{Kind, KindEntry, KindError, kind};
use anabranch_transport::Nanos;

use super::{CHANCE, Loss, Traffic};
use crate::error::BuildError;
use crate::packet::Packet;
use crate::rng::{Probability, Rng};

kind! {
    /// The parameters of [`RainFade`].
    struct RainFadeConfig {
        /// Probability of loss at each depth, from clear sky to the deepest fade.
        losses: Vec<f64>, Kind::List(&CHANCE);
        /// Mean time at each depth, one value for each of `losses`; the times are exponentially
        /// distributed.
        means: Vec<Nanos>, Kind::List(&Kind::duration(1, 31_536_000_000_000_000));
        /// Probability that the next change is to the deeper neighbour; the first and the last
        /// depth have only one neighbour.
        deeper: f64 = 0.5, CHANCE;
    }
    /// A Markov chain of fading depths, from clear sky to the deepest. Each depth has its own
    /// probability of loss.
    pub(super) static ENTRY: KindEntry<Box<dyn Loss>, Traffic> = "rain-fade", |config, _| {
        if config.losses.is_empty() || config.losses.len() != config.means.len() {
            return Err(KindError::together(
                "`losses` and `means` need one value for each depth, and at least one depth",
            ));
        }
        Ok(Box::new(RainFade::new(&config.losses, &config.means, config.deeper)?))
    };
}

/// Loss model with a fading depth; it starts at clear sky.
#[derive(Clone, Debug)]
pub struct RainFade {
    /// Probability of loss and mean time of each depth.
    depths: Vec<(Probability, Nanos)>,
    deeper: Probability,
    depth: usize,
    /// Time of the next change of depth, nanoseconds; `None` before the first packet.
    moves: Option<Nanos>,
}

impl RainFade {
    /// A channel with these loss probabilities and mean times in nanoseconds. From a middle depth
    /// it changes to the deeper neighbour with the probability `deeper`. Surplus values of the
    /// longer list are ignored; without any depth no packet is lost.
    ///
    /// # Errors
    /// [`BuildError::Probability`] if a probability is outside 0 to 1.
    pub fn new(losses: &[f64], means: &[Nanos], deeper: f64) -> Result<Self, BuildError> {
        let depth = |(&loss, &mean): (&f64, &Nanos)| Ok((Probability::new(loss)?, mean.max(1)));
        Ok(Self {
            depths: losses
                .iter()
                .zip(means)
                .map(depth)
                .collect::<Result<_, _>>()?,
            deeper: Probability::new(deeper)?,
            depth: 0,
            moves: None,
        })
    }

    /// Moves to the next deeper or shallower depth.
    fn step(&mut self, rng: &mut Rng) {
        let last = self.depths.len() - 1;
        let deepens = match self.depth {
            0 => true,
            depth if depth == last => false,
            _ => rng.chance(self.deeper),
        };
        self.depth = if deepens {
            self.depth + 1
        } else {
            self.depth - 1
        };
    }
}

impl Loss for RainFade {
    fn takes(&mut self, at: Nanos, _packet: &Packet, rng: &mut Rng) -> bool {
        if self.depths.len() > 1 {
            let mut moves = match self.moves {
                Some(moves) => moves,
                None => rng.exponential(self.depths[self.depth].1),
            };
            while moves <= at {
                self.step(rng);
                let stays = rng.exponential(self.depths[self.depth].1);
                moves = moves.saturating_add(stays.max(1));
            }
            self.moves = Some(moves);
        }
        let depth = self.depths.get(self.depth);
        depth.is_some_and(|&(loss, _)| rng.chance(loss))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::time::{MILLISECOND, SECOND};

    use std::net::{IpAddr, Ipv4Addr};

    use bytes::Bytes;

    use super::*;
    use crate::rng::Seed;

    fn packet() -> Packet {
        Packet {
            bytes: Bytes::new(),
            id: 0,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
            target: 0,
            receiver: 0,
            sent: 0,
            departed: 0,
            added: 0,
            ecn: anabranch_transport::Ecn::NotEct,
            may_fragment: false,
            fragment: 0,
            header: 0,
            protocol: 17,
            hops_left: 64,
        }
    }

    /// The fraction of packets that are lost, with one packet every 100 ms for `hours` hours.
    fn share(fade: &mut RainFade, hours: u64) -> f64 {
        let mut rng = Seed::new(7, 0).stream("rain");
        let packet = packet();
        let count = hours * 36_000;
        let lost = (0..count).filter(|n| fade.takes(n * 100 * MILLISECOND, &packet, &mut rng));
        lost.count() as f64 / count as f64
    }

    /// With two depths, the fraction of time in the second is its mean divided by the sum of both
    /// means.
    #[test]
    fn two_depths_take_turns() {
        let mut fade = RainFade::new(&[0.0, 1.0], &[90 * SECOND, 10 * SECOND], 0.5).unwrap();
        let lost = share(&mut fade, 500);
        assert!((lost / 0.1 - 1.0).abs() < 0.05, "{lost}");
    }

    /// With three depths, a fraction `1 - deeper` of the changes from the middle depth leads to the
    /// first, and a fraction `deeper` to the last. The times at the depths are therefore in the
    /// proportion 0.75 x 60 : 1 x 10 : 0.25 x 8, together 57 seconds.
    #[test]
    fn three_depths_share_the_time_by_visits_and_means() {
        let means = [60 * SECOND, 10 * SECOND, 8 * SECOND];
        for (losses, expected) in [
            ([1.0, 0.0, 0.0], 45.0 / 57.0),
            ([0.0, 1.0, 0.0], 10.0 / 57.0),
            ([0.0, 0.0, 1.0], 2.0 / 57.0),
            ([0.01, 0.1, 0.5], (0.45 + 1.0 + 1.0) / 57.0),
        ] {
            let mut fade = RainFade::new(&losses, &means, 0.25).unwrap();
            let lost = share(&mut fade, 1000);
            assert!(
                (lost / expected - 1.0).abs() < 0.06,
                "{losses:?}: {lost}, {expected}"
            );
        }
    }

    /// The duration of a fade does not depend on the packet rate.
    #[test]
    fn one_depth_is_a_constant_probability() {
        let mut fade = RainFade::new(&[0.25], &[SECOND], 0.5).unwrap();
        let lost = share(&mut fade, 10);
        assert!((lost - 0.25).abs() < 0.01, "{lost}");
        assert!(RainFade::new(&[1.5], &[SECOND], 0.5).is_err());
    }
}
