use anabranch_orbit::{Constellation, OrbitConfig};
use anabranch_transport::time::MILLISECOND;

use super::*;

/// Length of the spans for which delays are bounded. It is not a multiple of [`GRID`], so a span
/// can begin or end within a grid interval.
const SPAN: Nanos = 140 * MILLISECOND;

/// Minimum delay between two bodies at the milliseconds of a span, and an upper bound of the change
/// of the delay over two grid intervals, nanoseconds.
fn delays(
    motion: &mut Ephemeris,
    [one, other]: [u32; 2],
    span: RangeInclusive<Nanos>,
) -> [Nanos; 2] {
    let (mut least, mut change) = (Nanos::MAX, 0.0);
    let mut segment = motion.segment(one, other, *span.start());
    for at in span.step_by(MILLISECOND as usize) {
        let delay = segment.at(at).unwrap_or_else(|| {
            segment = motion.segment(one, other, at);
            segment.at(at).unwrap()
        });
        least = least.min(delay);
        change = f64::max(change, 2.0 * GRID as f64 * segment.slope.abs());
    }
    [least, change as Nanos]
}

/// Checks a bound on the delays of a span: it is not greater than any delay, and below the minimum
/// by no more than the change over two grid intervals.
fn check(bound: Nanos, [least, change]: [Nanos; 2], begin: Nanos) {
    assert!(bound <= least, "{begin}: {bound} exceeds {least}");
    // 1 ns is added because delays are rounded.
    assert!(
        bound + change + 1 >= least,
        "{begin}: {bound}, {least} - {change}"
    );
}

/// Two satellites of neighbouring planes approach each other twice in a revolution of 96 minutes.
#[test]
fn least_delay_is_a_close_bound() {
    let mut config = OrbitConfig::default();
    (config.altitude, config.inclination) = (570.0, 70.0);
    (config.planes, config.satellites) = (36, 1);
    config.phasing = 0.05;
    let shells = Shells::new(vec![Constellation::walker(&config).unwrap()]);
    let mut motion = Ephemeris::new(shells, Vec::new(), 0);
    let (mut shortest, mut longest) = (Nanos::MAX, 0);
    for begin in (0..96 * 60 * time::SECOND).step_by(37 * MILLISECOND as usize) {
        let span = begin..=begin + SPAN;
        let found = delays(&mut motion, [0, 1], span.clone());
        check(motion.least_delay(0, 1, span), found, begin);
        shortest = shortest.min(found[0]);
        longest = longest.max(found[0]);
    }
    assert!(2 * shortest < longest, "{shortest} {longest}");
}

/// A satellite moves between 1,000 and 7,300 km above the ground. In each span the station is
/// directly below the satellite when the satellite is lowest.
#[test]
fn least_ground_delay_is_a_close_bound() {
    let elements = "EPOCH = 2024-01-01T00:00:00\nMEAN_MOTION = 8\nECCENTRICITY = 0.3\n\
         INCLINATION = 63\nRA_OF_ASC_NODE = 0\nARG_OF_PERICENTER = 270\nMEAN_ANOMALY = 200\n\
         NORAD_CAT_ID = 1\nBSTAR = 0\n";
    let config = OrbitConfig::default().with(|it| it.relay = anabranch_orbit::Relay::BentPipe);
    let sky = Constellation::from_elements(elements, &config).unwrap();
    let shells = Shells::new(vec![sky]);
    for begin in (0..3 * 3600 * time::SECOND).step_by(3_037 * MILLISECOND as usize) {
        let span = begin..=begin + SPAN;
        let ends = [begin, begin + SPAN].map(|at| shells.position(0, time::seconds(at)).unwrap());
        let heights = ends.map(|at| distance(at, [0.0; 3]));
        let [x, y, z] = ends[usize::from(heights[1] < heights[0])];
        let place = Place {
            latitude: libm::atan2(z, libm::hypot(x, y)).to_degrees(),
            longitude: libm::atan2(y, x).to_degrees(),
        };
        let mut motion = Ephemeris::new(shells.clone(), vec![place], 0);
        let found = delays(&mut motion, [0, 1], span.clone());
        check(motion.least_ground_delay(span), found, begin);
    }
}
