//! Timeline of a path, which is recomputed at each interval; its satellites move in between.

use anabranch_transport::time;

use crate::constellation::Constellation;
use crate::earth::Place;
use crate::shortest_path::{Router, SatelliteRoute};

/// State of a path at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// Seconds from the start of the timeline.
    pub at: f64,
    /// One-way delay, seconds; `None` if there is no path.
    pub delay: Option<f64>,
    /// Index of the path in [`Followed::routes`].
    pub route: Option<usize>,
}

/// Timeline of a path between two places.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Samples, one for each step.
    pub samples: Vec<PathSample>,
    /// Successive routes, each with its start in seconds; `None` for a period without a path.
    pub routes: Vec<(f64, Option<SatelliteRoute>)>,
}

/// Summary of the timeline of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathSummary {
    /// Minimum, median, 95th percentile and maximum of the one-way delay, seconds; `None` if there
    /// was never a path.
    pub delay: Option<[f64; 4]>,
    /// Minimum, median and maximum number of satellites on the path; `None` if there was never a
    /// path.
    pub satellites: Option<[usize; 3]>,
    /// Fraction of the time without a path, 0 to 1.
    pub without: f64,
    /// Number of changes to another path.
    pub changes: usize,
    /// Number of changes of the first satellite, which are handovers of `from`.
    pub first: usize,
    /// Number of changes of the last satellite or the gateway, which are handovers of `to`.
    pub last: usize,
    /// Maximum change of the delay when the path changes, seconds.
    pub jump: f64,
}

/// Computes the timeline of the path from `from` to `to`, for a duration in seconds, in steps of
/// `step` seconds. If `gateways` are given, the path may leave the satellites at a gateway and
/// continue by fibre.
pub fn follow(
    constellation: &Constellation,
    from: Place,
    to: Place,
    gateways: &[Place],
    duration: f64,
    step: f64,
) -> Followed {
    follow_from(constellation, from, to, gateways, (0.0, duration, step))
}

/// Like [`follow`], but starts at a time after the epoch; start, duration and step are in seconds.
/// The times of samples count from this start.
pub fn follow_from(
    constellation: &Constellation,
    from: Place,
    to: Place,
    gateways: &[Place],
    (begin, duration, step): (f64, f64, f64),
) -> Followed {
    let router = Router::new(constellation, from, to, gateways);
    let interval = time::seconds(constellation.sky().interval);
    let mut followed = Followed {
        samples: Vec::new(),
        routes: Vec::new(),
    };
    let mut turn = 0_u64;
    let mut number = 0_u64;
    loop {
        let at = number as f64 * step;
        if at > duration {
            return followed;
        }
        // Paths are computed at multiples of the interval, whatever the step is.
        let now = ((begin + at) / interval + 1e-9).floor() as u64;
        if number == 0 || now > turn {
            turn = now;
            let begins = turn as f64 * interval;
            let route = router.at(begins);
            if followed
                .routes
                .last()
                .is_none_or(|(_, last)| *last != route)
            {
                followed.routes.push((begins - begin, route));
            }
        }
        let current = followed.routes.len() - 1;
        let delay = followed.routes[current]
            .1
            .as_ref()
            .and_then(|route| router.delay(route, begin + at));
        followed.samples.push(PathSample {
            at,
            delay,
            route: delay.map(|_| current),
        });
        number += 1;
    }
}

impl Followed {
    /// Computes the summary.
    pub fn summary(&self) -> PathSummary {
        let mut delays: Vec<f64> = self
            .samples
            .iter()
            .filter_map(|sample| sample.delay)
            .collect();
        delays.sort_unstable_by(f64::total_cmp);
        let on_the_way = |sample: &PathSample| {
            let route = self.routes.get(sample.route?)?.1.as_ref()?;
            Some(route.satellites.len())
        };
        let mut satellites: Vec<usize> = self.samples.iter().filter_map(on_the_way).collect();
        satellites.sort_unstable();
        let without = 1.0 - delays.len() as f64 / self.samples.len().max(1) as f64;
        let mut summary = PathSummary {
            delay: (!delays.is_empty())
                .then(|| [0.0, 0.5, 0.95, 1.0].map(|share| quantile(&delays, share))),
            satellites: (!satellites.is_empty()).then(|| {
                let last = satellites.len() - 1;
                [satellites[0], satellites[last / 2], satellites[last]]
            }),
            without,
            ..PathSummary::default()
        };
        for pair in self.routes.windows(2) {
            let [(_, Some(before)), (_, Some(after))] = pair else {
                continue; // neither the loss of a path nor its return is a change to another
            };
            summary.changes += 1;
            summary.first += usize::from(before.satellites.first() != after.satellites.first());
            let end = |route: &SatelliteRoute| (route.satellites.last().copied(), route.gateway);
            summary.last += usize::from(end(before) != end(after));
        }
        for pair in self.samples.windows(2) {
            if let [
                PathSample {
                    delay: Some(before),
                    route: one,
                    ..
                },
                PathSample {
                    delay: Some(after),
                    route: other,
                    ..
                },
            ] = pair
                && one != other
            {
                summary.jump = summary.jump.max((after - before).abs());
            }
        }
        summary
    }
}

/// Quantile of sorted values, with linear interpolation between them.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * (values.len() - 1) as f64;
    let (low, part) = (place as usize, place.fract());
    let high = (low + 1).min(values.len() - 1);
    values[low] + part * (values[high] - values[low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conventions::{OrbitConfig, Relay};
    use anabranch_transport::time::SECOND;

    fn place(text: &str) -> Place {
        text.parse().expect("a place")
    }

    fn atlantic(sky: &OrbitConfig, duration: f64, step: f64) -> Followed {
        let shell = Constellation::walker(sky).expect("a shell");
        follow(
            &shell,
            place("40.7,-74.0"),
            place("51.5,-0.1"),
            &[],
            duration,
            step,
        )
    }

    #[test]
    fn a_path_changes_at_multiples_of_the_interval_only() {
        let followed = atlantic(&OrbitConfig::default(), 600.0, 1.0);
        assert_eq!(followed.samples.len(), 601);
        assert!(followed.routes.len() > 2);
        for (begins, _) in &followed.routes {
            assert_eq!(begins % 15.0, 0.0);
        }
        let change = |pair: &[PathSample]| (pair[0].route != pair[1].route).then_some(pair[1].at);
        for at in followed.samples.windows(2).filter_map(change) {
            assert_eq!(at % 15.0, 0.0);
        }
    }

    /// While the satellites at its ends stay high enough, a retained path should not be shorter
    /// than a recomputed one.
    #[test]
    fn a_held_path_is_no_shorter() {
        let sky = OrbitConfig {
            interval: 60 * SECOND,
            ..OrbitConfig::default()
        };
        let held = atlantic(&sky, 600.0, 1.0);
        let shell = Constellation::walker(&sky).expect("a shell");
        let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
        let router = Router::new(&shell, from, to, &[]);
        let sine = libm::sin(sky.min_elevation.to_radians());
        let high = |place: Place, number: usize, at: f64| {
            let satellite = shell.position(number, at).expect("a shell's");
            place.sine_of_elevation(place.position(sky.earth), satellite) >= sine
        };
        let (mut compared, mut longer) = (0, 0);
        for sample in &held.samples {
            let route = sample.route.and_then(|route| held.routes[route].1.as_ref());
            let ends = &route.expect("a path").satellites;
            if !high(from, ends[0], sample.at) || !high(to, ends[ends.len() - 1], sample.at) {
                continue;
            }
            let now = router.at(sample.at).expect("a path");
            let now = router.delay(&now, sample.at).expect("a delay");
            let held = sample.delay.expect("a path");
            assert!(held >= now - 1e-12, "{}: {held} {now}", sample.at);
            compared += 1;
            longer += usize::from(held > now + 1e-6);
        }
        assert!(compared > 200 && longer > 20, "{compared} {longer}");
    }

    /// With one satellite that rises and sets, there should be a path for some minutes of each
    /// revolution.
    #[test]
    fn time_without_a_path_counts() {
        let sky = OrbitConfig {
            relay: Relay::BentPipe,
            planes: 1,
            satellites: 1,
            phasing: 0.0,
            earth_rotates: false,
            ..OrbitConfig::default()
        };
        let shell = Constellation::walker(&sky).expect("a shell");
        let here = place("0,0");
        let period = shell.period().expect("a shell");
        let followed = follow(&shell, here, here, &[], period, 1.0);
        // The satellite is in sight while the angle at the Earth's centre is below acos(R cos 25° /
        // (R + h)) - 25° = 8.44°.
        let angle = libm::acos(6371.0088 * libm::cos(25.0_f64.to_radians()) / 6921.0088)
            .to_degrees()
            - 25.0;
        let seen = 2.0 * angle / 360.0;
        let summary = followed.summary();
        assert!(
            (1.0 - summary.without - seen).abs() < 0.01,
            "{} {seen}",
            summary.without
        );
        assert_eq!((summary.changes, summary.satellites), (0, Some([1, 1, 1])));
    }

    #[test]
    fn quantiles_lie_on_straight_lines() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&values, share)),
            [1.0, 1.5, 2.0, 3.0, 4.0]
        );
    }
}
