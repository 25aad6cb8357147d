//! Geometry against closed forms.

use super::*;
use crate::conventions::Earth;

fn starlink() -> Constellation {
    Constellation::walker(&Sky::default()).expect("a shell")
}

fn at(it: &Constellation, number: usize, seconds: f64) -> Vector {
    it.position(number, seconds).expect("a shell's")
}

/// 2 pi sqrt(a³ / mu) with a = 6921.0088 km: 5730.1 s.
#[test]
fn a_revolution_takes_keplers_time() {
    let period = starlink().period().expect("a shell");
    assert!((period - 5730.06).abs() < 0.1, "{period}");
    let frozen = Constellation::walker(&Sky {
        turns: false,
        ..Sky::default()
    })
    .expect("a shell");
    let (before, after) = (at(&frozen, 700, 0.0), at(&frozen, 700, period));
    assert!(before.distance(after) < 1e-6);
}

/// Neighbours in a plane always have the distance 2 a sin(pi / 66).
#[test]
fn neighbours_in_a_plane_keep_their_distance() {
    let it = starlink();
    let chord = 2.0 * 6921.0088 * libm::sin(std::f64::consts::PI / 66.0);
    for seconds in [0.0, 100.0, 3000.0] {
        assert!((at(&it, 130, seconds).distance(at(&it, 131, seconds)) - chord).abs() < 1e-6);
        assert!((at(&it, 132, seconds).distance(at(&it, 197, seconds)) - chord).abs() < 1e-6);
    }
}

/// Satellite 0 should start at the ascending node, on the equator at Greenwich, and move north-east
/// up to the latitude of its inclination.
#[test]
fn the_first_satellite_starts_at_the_node() {
    let it = starlink();
    let first = at(&it, 0, 0.0);
    assert!((first.x - 6921.0088).abs() < 1e-9 && first.y == 0.0 && first.z == 0.0);
    let highest = at(&it, 0, it.period().expect("a shell") / 4.0);
    let latitude = libm::asin(highest.z / highest.length()).to_degrees();
    assert!((latitude - 53.0).abs() < 1e-9, "{latitude}");
    // The Earth turns once in a day of 86164.1 s.
    let turned = Constellation::walker(&Sky {
        rotation: 90.0,
        ..Sky::default()
    })
    .expect("a shell");
    let there = at(&turned, 0, 0.0);
    assert!(
        there.x.abs() < 1e-9 && (there.y + 6921.0088).abs() < 1e-9,
        "{there:?}"
    );
}

/// All links should be mutual, and a link across the seam should be as long as any other.
#[test]
fn links_are_mutual_and_the_seam_is_like_any_other_place() {
    for phasing in [0, 1, 5, 23] {
        let it = Constellation::walker(&Sky {
            phasing: f64::from(phasing),
            ..Sky::default()
        })
        .expect("a shell");
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for number in 0..it.len() {
            it.neighbours(number, &mut own);
            assert_eq!(own.len(), 4);
            for &other in &own {
                it.neighbours(other, &mut theirs);
                assert!(theirs.contains(&number), "{number} {other}");
            }
        }
        // Between planes, equal arguments of latitude should give equal distances.
        let inner = at(&it, 0, 0.0).distance(at(&it, 66, 0.0));
        let seam = at(&it, 23 * 66, 0.0).distance(at(&it, phasing as usize, 0.0));
        // Both pairs start one phase step apart; they differ only in their position along the
        // orbit.
        let step = TAU * f64::from(phasing) / (24.0 * 66.0);
        let of = |number: usize| {
            let Orbits::Walker(walker) = &it.orbits else {
                unreachable!("a shell")
            };
            let (plane, place) = walker.split(number);
            TAU * f64::from(place) / 66.0 + step * f64::from(plane)
        };
        let ahead = (of(phasing as usize) - of(23 * 66)).rem_euclid(TAU);
        assert!(
            (ahead - step).abs() < 1e-9 || ahead < 1e-9,
            "{ahead} {step}"
        );
        assert!(inner > 0.0 && seam > 0.0);
    }
}

#[test]
fn an_open_seam_has_no_links() {
    let it = Constellation::walker(&Sky {
        seam: Seam::Open,
        ..Sky::default()
    })
    .expect("a shell");
    let mut found = Vec::new();
    it.neighbours(0, &mut found);
    assert_eq!(found, [1, 65, 66]);
    it.neighbours(23 * 66, &mut found);
    assert_eq!(found, [23 * 66 + 1, 24 * 66 - 1, 22 * 66]);
}

/// With J2 at 550 km above the equatorial radius and 53°, the nodes should drift by -4.49 degrees a
/// day.
#[test]
fn planes_drift_by_flattening() {
    let sky = Sky {
        j2: true,
        earth: Earth::Wgs84,
        ..Sky::default()
    };
    let walker = Walker::new(&sky);
    let a_day = walker.drift.to_degrees() * 86_400.0;
    assert!((a_day + 4.49).abs() < 0.02, "{a_day}");
}
