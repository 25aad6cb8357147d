//! Tests of the geometry against closed formulas.

use super::*;
use crate::conventions::Earth;

fn starlink() -> Constellation {
    Constellation::walker(&OrbitConfig::default()).expect("a shell")
}

fn at(it: &Constellation, number: usize, seconds: f64) -> Vector {
    it.position(number, seconds).expect("a shell's")
}

/// The neighbours of a satellite of a shell.
fn neighbours(it: &Constellation, number: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let walker = it.orbits.shell().expect("a shell");
    walker.neighbours(number, it.sky.seam, &mut found);
    found
}

/// The period is 2 pi sqrt(a³ / mu) = 5730.1 s with a = 6921.0088 km.
#[test]
fn a_revolution_takes_keplers_time() {
    let period = starlink().period().expect("a shell");
    assert!((period - 5730.06).abs() < 0.1, "{period}");
    let frozen = Constellation::walker(&OrbitConfig {
        earth_rotates: false,
        ..OrbitConfig::default()
    })
    .expect("a shell");
    let (before, after) = (at(&frozen, 700, 0.0), at(&frozen, 700, period));
    assert!(before.distance(after) < 1e-6);
}

/// The distance between neighbours in a plane is always 2 a sin(pi / 66).
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
/// to the latitude of its inclination.
#[test]
fn the_first_satellite_starts_at_the_node() {
    let it = starlink();
    let first = at(&it, 0, 0.0);
    assert!((first.x - 6921.0088).abs() < 1e-9 && first.y == 0.0 && first.z == 0.0);
    let highest = at(&it, 0, it.period().expect("a shell") / 4.0);
    let latitude = libm::asin(highest.z / highest.length()).to_degrees();
    assert!((latitude - 53.0).abs() < 1e-9, "{latitude}");
    // The Earth rotates once in a sidereal day of 86164.1 s.
    let turned = Constellation::walker(&OrbitConfig {
        rotation: 90.0,
        ..OrbitConfig::default()
    })
    .expect("a shell");
    let there = at(&turned, 0, 0.0);
    assert!(
        there.x.abs() < 1e-9 && (there.y + 6921.0088).abs() < 1e-9,
        "{there:?}"
    );
}

/// Every link should exist in both directions, and a link across the seam should be as long as any
/// other.
#[test]
fn links_are_mutual_and_the_seam_is_like_any_other_place() {
    for phasing in [0, 1, 5, 23] {
        let it = Constellation::walker(&OrbitConfig {
            phasing: f64::from(phasing),
            ..OrbitConfig::default()
        })
        .expect("a shell");
        for number in 0..it.len() {
            let own = neighbours(&it, number);
            assert_eq!(own.len(), 4);
            for other in own {
                assert!(neighbours(&it, other).contains(&number), "{number} {other}");
            }
        }
        // Between planes, equal arguments of latitude should result in equal distances. The first
        // satellite of the last plane was at the node some time before the epoch.
        let inner = at(&it, 0, 0.0).distance(at(&it, 66, 0.0));
        let ahead = 23.0 * f64::from(phasing) / (24.0 * 66.0);
        let node = -ahead * it.period().expect("a shell");
        assert!(at(&it, 23 * 66, node).z.abs() < 1e-6);
        let over = neighbours(&it, 23 * 66)[2];
        assert_eq!(over, phasing as usize);
        let seam = at(&it, 23 * 66, node).distance(at(&it, over, node));
        assert!((inner - seam).abs() < 1e-6, "{phasing}: {inner} {seam}");
    }
}

#[test]
fn an_open_seam_has_no_links() {
    let it = Constellation::walker(&OrbitConfig {
        seam: Seam::Open,
        ..OrbitConfig::default()
    })
    .expect("a shell");
    assert_eq!(neighbours(&it, 0), [1, 65, 66]);
    assert_eq!(
        neighbours(&it, 23 * 66),
        [23 * 66 + 1, 24 * 66 - 1, 22 * 66]
    );
}

/// With J2, at 550 km above the equatorial radius and an inclination of 53°, the nodes should drift
/// by -4.49 degrees per day.
#[test]
fn planes_drift_by_flattening() {
    let sky = OrbitConfig {
        j2: true,
        earth: Earth::Wgs84,
        ..OrbitConfig::default()
    };
    let walker = Walker::new(&sky);
    let a_day = walker.drift.to_degrees() * 86_400.0;
    assert!((a_day + 4.49).abs() < 0.02, "{a_day}");
}
