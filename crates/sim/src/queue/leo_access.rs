//! Access over low-orbit satellites that are assigned for fixed intervals, as measured for
//! Starlink: satellites are assigned to all terminals at the same seconds of each minute, 12, 27,
//! 42 and 57 (Tanveer et al., *Making Sense of Constellations*, CoNEXT Companion 2023; Mohan et
//! al., *A Multifaceted Look at Starlink Performance*, WWW 2024).
//!
//! Each satellite has a random elevation, which determines rate and loss, and a random load. The
//! delay is set by the propagation model of the link, for example `satellites` with the same
//! interval.

use anabranch_settings::{Kind, KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::timed::{PacketTiming, TimedQueue, Transmission};
use super::{LIMIT, PERIOD, QueueDiscipline, QueueLimit, QueuedPacket};
use crate::error::BuildError;
use crate::rng::{Probability, Rng};

/// Value kind of a share or a probability.
const SHARE: Kind = Kind::number(0.0, 1.0);

kind! {
    /// Settings of [`LeoAccess`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LeoAccessConfig {
        /// Time for which a satellite is assigned to the terminal.
        interval: Nanos = "15 s", PERIOD, "Tanveer et al. 2023";
        /// Time of the first handover; one handover follows in each `interval`.
        first_handover: Nanos = "12 s", Kind::duration(0, Nanos::MAX), "Tanveer et al. 2023";
        /// Time after a handover during which no transmission begins.
        handover: Nanos = "0 ms", Kind::duration(0, Nanos::MAX);
        /// Minimum elevation of a satellite, degrees. Elevations are uniformly distributed from
        /// this value to 90.
        least_elevation: f64 = 25, Kind::number(0.0, 90.0);
        /// Rate at the minimum elevation, as a share of the rate of the link, which applies at 90
        /// degrees. Between them, the rate is linear in the sine of the elevation.
        least_rate: f64 = 1, Kind::number(0.01, 1.0);
        /// Maximum share of the rate that other users of a satellite take; the share is uniformly
        /// distributed from 0 to this value.
        load: f64 = 0, Kind::number(0.0, 0.99);
        /// Probability of loss at the minimum elevation; it is 0 at 90 degrees, and linear in the
        /// sine of the elevation between them.
        loss: f64 = 0, SHARE;
        limit: QueueLimit as LIMIT;
    }
    idle {
        interval: |it, ()| alike(it);
        first_handover: |it, ()| alike(it);
        least_elevation: |it, ()| idle_if(
            it.least_rate == 1.0 && it.loss == 0.0,
            "with a `least_rate` of 1 and a `loss` of 0: neither depends on the elevation",
        );
        least_rate: |it, ()| overhead(it);
        loss: |it, ()| overhead(it);
    }
    /// Access over satellites that change at fixed times: the first handover is at
    /// `first_handover`, and one follows in each `interval`. Each satellite has its own rate and
    /// loss, and no transmission begins for the time `handover` after a handover. Packets leave in
    /// the order of arrival. The rate of the link, which must be constant, is the maximum rate.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "leo-access", |config, ()| Ok(Box::new(LeoAccess::new(config)?));
}

/// The reason why the times of handovers have no effect, if all satellites are equivalent.
fn alike(config: &LeoAccessConfig) -> Option<String> {
    let flat = config.least_elevation == 90.0 || config.least_rate == 1.0 && config.loss == 0.0;
    idle_if(
        flat && config.load == 0.0 && config.handover == 0,
        "without `handover` and `load` if rate and loss do not depend on the elevation: all satellites are alike",
    )
}

/// The reason why a value at the minimum elevation has no effect, if all satellites are at 90
/// degrees.
fn overhead(config: &LeoAccessConfig) -> Option<String> {
    idle_if(
        config.least_elevation == 90.0,
        "with a `least_elevation` of 90: all satellites are at the zenith",
    )
}

/// The discipline for satellite access with fixed assignment intervals.
pub type LeoAccess = TimedQueue<AssignedSatellites>;

/// Packet timing of satellites that are assigned one after the other.
#[derive(Debug)]
pub struct AssignedSatellites {
    config: LeoAccessConfig,
    /// Number of satellites assigned so far; the last one is current.
    assigned: u64,
    /// Share of the link's rate and loss probability of the current satellite.
    share: f64,
    loss: Probability,
}

impl LeoAccess {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0, [`BuildError::Parameters`] if `handover` is not
    /// shorter than `interval`.
    pub fn new(config: LeoAccessConfig) -> Result<Self, BuildError> {
        if config.handover >= config.interval {
            return Err(BuildError::Parameters(
                "`handover` is not shorter than `interval`: nothing would pass",
            ));
        }
        let satellites = AssignedSatellites {
            config,
            assigned: 0,
            share: 1.0,
            loss: Probability::ZERO,
        };
        Ok(Self::with(config.limit.checked()?, satellites))
    }
}

impl AssignedSatellites {
    /// Number of handovers up to `now`.
    fn handovers(&self, now: Nanos) -> u64 {
        match now.checked_sub(self.config.first_handover) {
            Some(since) => since / self.config.interval + 1,
            None => 0,
        }
    }

    /// Assigns all satellites that are due by `now`. Returns the first time at which a transmission
    /// may begin.
    fn advance(&mut self, now: Nanos, rng: &mut Rng) -> Nanos {
        let handovers = self.handovers(now);
        while self.assigned <= handovers {
            self.assign(rng);
        }
        let Some(last) = handovers.checked_sub(1) else {
            return now;
        };
        let begun = self.config.first_handover + last * self.config.interval;
        now.max(begun + self.config.handover)
    }

    fn assign(&mut self, rng: &mut Rng) {
        let least = self.config.least_elevation;
        let elevation = least + (90.0 - least) * rng.unit();
        let load = self.config.load * rng.unit();
        let sine = |degrees: f64| libm::sin(degrees.to_radians());
        let span = 1.0 - sine(least);
        let height = match span > 0.0 {
            true => (sine(elevation) - sine(least)) / span,
            false => 1.0,
        };
        let by_elevation = self.config.least_rate + (1.0 - self.config.least_rate) * height;
        self.share = by_elevation * (1.0 - load);
        let loss = self.config.loss * (1.0 - height).clamp(0.0, 1.0);
        self.loss = Probability::new(loss).unwrap_or(Probability::ZERO);
        self.assigned += 1;
    }
}

impl PacketTiming for AssignedSatellites {
    const NOT_CONSTANT: &'static str =
        "a queue of the kind `leo-access` needs a constant rate of its link: the greatest";

    fn next(&mut self, now: Nanos, _: &QueuedPacket, rate: f64, rng: &mut Rng) -> Transmission {
        Transmission {
            begin: self.advance(now, rng),
            rate: rate * self.share,
            lost: rng.chance(self.loss),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Ecn;

    use super::super::testing::{MS, QueueTester};
    use super::*;

    const BASE: LeoAccessConfig = LeoAccessConfig {
        interval: 15_000 * MS,
        first_handover: 12_000 * MS,
        handover: 0,
        least_elevation: 25.0,
        least_rate: 1.0,
        load: 0.0,
        loss: 0.0,
        limit: QueueLimit::Unlimited,
    };

    /// A test bench in which a packet of 1500 bytes takes 10 ms at the maximum rate.
    fn bench(config: LeoAccessConfig) -> QueueTester {
        let mut queue = LeoAccess::new(config).expect("a queue");
        let mut rate = Some(1_200_000.into());
        queue.take_rate(&mut rate).expect("a rate");
        assert!(rate.is_none());
        QueueTester::new(Box::new(queue), Ecn::NotEct)
    }

    /// Departure times between `from` and `until`, milliseconds.
    fn departures(bench: &mut QueueTester, from: Nanos, until: Nanos) -> Vec<Nanos> {
        let times = (from * MS..=until * MS).step_by(MS as usize);
        let gone = times.filter(|&at| bench.go([at])[0].is_some());
        gone.map(|at| at / MS).collect()
    }

    /// Handovers occur at 12, 27, 42 and 57 s, and no transmission begins within 100 ms after each.
    /// The packet that would end 10 ms after the handover therefore ends 110 ms after it.
    #[test]
    fn packets_wait_at_fixed_seconds() {
        let mut bench = bench(BASE.with_pause(100 * MS));
        bench.come(0, 6500, 1);
        let left = departures(&mut bench, 0, 62_000);
        let gaps = left.windows(2).filter(|pair| pair[1] - pair[0] > 10);
        let gaps: Vec<_> = gaps.map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(
            gaps,
            [12_000, 27_000, 42_000, 57_000].map(|at| (at, at + 110))
        );
    }

    impl LeoAccessConfig {
        fn with_pause(self, handover: Nanos) -> Self {
            Self { handover, ..self }
        }
    }

    /// Each interval has one rate, between half of the maximum and the maximum, and most intervals
    /// have a different rate than the interval before. Departures are polled in whole milliseconds,
    /// so at most 11 different transmission times are observed.
    #[test]
    fn each_satellite_has_its_rate() {
        let mut bench = bench(LeoAccessConfig {
            least_rate: 0.5,
            first_handover: 0,
            ..BASE
        });
        let mut rates = Vec::new();
        for number in 0..40 {
            let from = number * 15_000;
            bench.come(from * MS, 100, 1);
            let left = departures(&mut bench, from, from + 2100);
            assert_eq!(left.len(), 100);
            let span = left[99] - left[0];
            assert!((985..=1990).contains(&span), "{span}");
            rates.push(span);
        }
        rates.sort_unstable();
        rates.dedup();
        assert!(rates.len() >= 8, "{rates:?}");
    }

    /// A tenth of the packets is lost at 25 degrees, and none at 90 degrees; sin 25 = 0.4226. The
    /// mean loss over elevations from 25 to 90 is 0.1 x (1 - (mean sine - 0.4226) / 0.5774) =
    /// 0.0348, with the mean sine cos 25 / (65 degrees) = 0.7989.
    #[test]
    fn loss_depends_on_the_elevation() {
        let mut bench = bench(LeoAccessConfig {
            loss: 0.1,
            interval: 1000 * MS,
            ..BASE
        });
        bench.come(0, 50_000, 1);
        let _ = departures(&mut bench, 0, 500_100);
        let lost = bench.dropped.len() as f64 / 50_000.0;
        assert!((lost / 0.0348 - 1.0).abs() < 0.1, "{lost}");
    }

    /// The transmitter is busy for the 10 ms of each of 6,000 packets. Pauses after handovers do
    /// not count as busy.
    #[test]
    fn pauses_are_not_busy() {
        let mut queue = LeoAccess::new(BASE.with_pause(100 * MS)).expect("a queue");
        queue
            .take_rate(&mut Some(1_200_000.into()))
            .expect("a rate");
        let mut bench = QueueTester::new(Box::new(queue), Ecn::NotEct);
        bench.come(0, 6000, 1);
        assert_eq!(departures(&mut bench, 0, 70_000).len(), 6000);
        assert_eq!(bench.busy(70_000 * MS), 60_000 * MS);
    }

    #[test]
    fn a_handover_that_never_ends_is_refused() {
        assert!(LeoAccess::new(BASE.with_pause(BASE.interval)).is_err());
        assert!(LeoAccess::new(BASE).unwrap().take_rate(&mut None).is_err());
    }
}
