//! Path of packets over satellites: its delay at any time, including waiting times at handovers.

use anabranch_transport::{Nanos, time};

use crate::constellation::Constellation;
use crate::earth::Place;
use crate::shortest_path::{Router, SatelliteRoute};

/// Time between two computations of the delay, nanoseconds; the delay is constant in between.
const STEP: Nanos = 10 * time::MILLISECOND;

/// Path of packets between two places. Its delay must be queried in the order of time.
///
/// While there is no path, or the path is changing, a packet waits at the sender.
#[derive(Clone, Debug)]
pub struct Pathway {
    router: Router,
    interval: Nanos,
    handover: Nanos,
    /// Routes of the two intervals that were computed last, with the later one at the end.
    turns: [Option<(u64, Option<SatelliteRoute>)>; 2],
    /// Index and delay of the step that was computed last.
    step: Option<(u64, Nanos)>,
}

impl Pathway {
    /// Maximum time for which a packet waits for a path, nanoseconds.
    pub const MAX_WAIT: Nanos = 3600 * time::SECOND;

    /// Creates the path from `from` to `to`. It is blocked for `handover` nanoseconds after each
    /// change to another path.
    pub fn new(
        constellation: &Constellation,
        from: Place,
        to: Place,
        gateways: &[Place],
        handover: Nanos,
    ) -> Self {
        Self {
            router: Router::new(constellation, from, to, gateways),
            interval: constellation.sky().interval.max(1),
            handover,
            turns: [None, None],
            step: None,
        }
    }

    /// Lower bound on all delays, nanoseconds.
    pub fn least_delay(&self) -> Nanos {
        (self.router.least_delay() * 1e9) as Nanos
    }

    fn route(&mut self, turn: u64) -> Option<SatelliteRoute> {
        let known = self
            .turns
            .iter()
            .flatten()
            .find(|(known, _)| *known == turn);
        if let Some((_, route)) = known {
            return route.clone();
        }
        let begins = time::seconds(turn.saturating_mul(self.interval));
        let route = self.router.at(begins);
        self.turns.rotate_left(1);
        self.turns[1] = Some((turn, route.clone()));
        route
    }

    /// Time at which a packet that is ready at `at` can be sent, and the route; `None` if there is
    /// no path for an hour.
    fn ready(&mut self, at: Nanos) -> Option<(Nanos, SatelliteRoute)> {
        let first = at / self.interval;
        let last = first + Self::MAX_WAIT / self.interval + 1;
        for turn in first..=last {
            let before = turn.checked_sub(1).map(|before| self.route(before));
            let Some(route) = self.route(turn) else {
                continue;
            };
            let begins = turn * self.interval;
            let changed = before.is_some_and(|before| before.as_ref() != Some(&route));
            let opens = begins + if changed { self.handover } else { 0 };
            if opens >= begins + self.interval {
                continue; // changed again before it opens
            }
            return Some((at.max(opens), route));
        }
        None
    }

    /// Delay in nanoseconds of a packet whose last bit is sent at `at`, including the waiting time;
    /// `None` if there is no path for an hour.
    pub fn delay(&mut self, at: Nanos) -> Option<Nanos> {
        let step = at / STEP;
        if let Some((known, delay)) = self.step
            && known == step
        {
            return Some(delay);
        }
        let (leaves, route) = self.ready(at)?;
        let delay = self.router.delay(&route, time::seconds(leaves))?;
        let delay = time::from_seconds(delay);
        if leaves == at {
            self.step = Some((step, delay));
        }
        Some(delay.saturating_add(leaves - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conventions::{OrbitConfig, Relay};
    use crate::path_timeline::follow;
    use anabranch_transport::time::{MILLISECOND, SECOND};

    fn place(text: &str) -> Place {
        text.parse().expect("a place")
    }

    #[test]
    fn it_is_the_path_that_is_followed() {
        let shell = Constellation::walker(&OrbitConfig::default()).expect("a shell");
        let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
        let mut pathway = Pathway::new(&shell, from, to, &[], 0);
        for sample in follow(&shell, from, to, &[], 120.0, 1.0).samples {
            let delay = pathway
                .delay(time::from_seconds(sample.at))
                .expect("a path");
            assert_eq!(delay, time::from_seconds(sample.delay.expect("a path")));
        }
    }

    #[test]
    fn no_delay_is_below_the_least() {
        let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
        for (relay, gateways) in [
            (Relay::Isl, &[][..]),
            (Relay::Isl, &["48.9,2.4"]),
            (Relay::BentPipe, &["40.0,-75.0"]),
        ] {
            let sky = OrbitConfig {
                relay,
                ..OrbitConfig::default()
            };
            let shell = Constellation::walker(&sky).expect("a shell");
            let gateways: Vec<Place> = gateways.iter().map(|text| place(text)).collect();
            let mut pathway = Pathway::new(&shell, from, to, &gateways, 0);
            let least = pathway.least_delay();
            let delays = (0..600).map(|at| pathway.delay(at * SECOND).expect("a path"));
            let shortest = delays.min().expect("many");
            assert!(
                least <= shortest && shortest < 2 * least,
                "{least} {shortest}"
            );
        }
    }

    /// For 80 ms after each change, packets should wait for the end of the change, which increases
    /// their delay.
    #[test]
    fn a_handover_holds_packets_back() {
        let shell = Constellation::walker(&OrbitConfig::default()).expect("a shell");
        let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
        let [mut free, mut held] =
            [0, 80 * MILLISECOND].map(|it| Pathway::new(&shell, from, to, &[], it));
        let change = follow(&shell, from, to, &[], 600.0, 1.0).routes[1].0;
        let change = time::from_seconds(change);
        for (after, wait) in [(0, 80), (30, 50), (79, 1), (80, 0), (500, 0)] {
            let at = change + after * MILLISECOND;
            let (free, held) = (
                free.delay(at).expect("a path"),
                held.delay(at).expect("a path"),
            );
            // Meanwhile the delay of the path itself changes by some microseconds.
            let waited = held - free.min(held);
            assert!(
                waited.abs_diff(wait * MILLISECOND) < 5000,
                "{after}: {waited}"
            );
        }
        // If a change takes longer than an interval, the path should never be usable.
        let mut never = Pathway::new(&shell, from, to, &[], 15 * SECOND);
        let waits = never.delay(change).expect("a path") / SECOND;
        assert!(waits >= 15, "{waits}");
    }

    #[test]
    fn without_a_path_a_packet_waits_for_one_an_hour_at_most() {
        let sky = OrbitConfig {
            relay: Relay::BentPipe,
            planes: 1,
            satellites: 1,
            phasing: 0.0,
            earth_rotates: false,
            ..OrbitConfig::default()
        };
        let shell = Constellation::walker(&sky).expect("a shell");
        let mut pathway = Pathway::new(&shell, place("0,0"), place("0,0"), &[], 0);
        assert!(
            pathway
                .delay(0)
                .is_some_and(|delay| delay < 5 * MILLISECOND)
        );
        // After 40 minutes the satellite is on the other side of the Earth. It rises again 5730 s
        // (one revolution) after the start, less half of the time for which it is in sight.
        let wait = pathway.delay(2400 * SECOND).expect("a path") / SECOND;
        assert!((3180..3220).contains(&wait), "{wait}");
        let mut pole = Pathway::new(&shell, place("90,0"), place("90,0"), &[], 0);
        assert_eq!(pole.delay(0), None);
    }
}
