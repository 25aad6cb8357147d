//! Tests that compare paths with closed formulas and with an exhaustive search.

use super::*;
use crate::conventions::{OrbitConfig, Seam};
use crate::earth::MEAN_RADIUS;

fn place(text: &str) -> Place {
    text.parse().expect("a place")
}

/// A place is directly below satellite 0, which does not move relative to 0° N 0° E: the way up and
/// the way down should each have the length of the altitude.
#[test]
fn a_satellite_overhead_is_an_altitude_away() {
    let sky = OrbitConfig {
        relay: Relay::BentPipe,
        ..OrbitConfig::default()
    };
    let shell = Constellation::walker(&sky).expect("a shell");
    let here = place("0,0");
    let router = Router::new(&shell, here, here, &[]);
    let route = router.at(0.0).expect("a path");
    assert_eq!(
        (route.satellites.as_slice(), route.gateway),
        (&[0][..], None)
    );
    let delay = router.delay(&route, 0.0).expect("a delay");
    assert!((delay - 2.0 * 550.0 / LIGHT).abs() < 1e-12, "{delay}");
}

/// The slant range at elevation e is sqrt((R sin e)² + 2 R h + h²) - R sin e; at 25° and 550 km it
/// is 1123.3 km.
#[test]
fn the_farthest_satellite_in_sight_is_at_the_least_elevation() {
    let sky = OrbitConfig::default();
    let shell = Constellation::walker(&sky).expect("a shell");
    let here = place("48,11");
    let router = Router::new(&shell, here, here, &[]);
    let sine = libm::sin(25.0_f64.to_radians());
    let most =
        ((MEAN_RADIUS * sine) * (MEAN_RADIUS * sine) + 2.0 * MEAN_RADIUS * 550.0 + 550.0 * 550.0)
            .sqrt()
            - MEAN_RADIUS * sine;
    assert!((most - 1123.3).abs() < 0.5, "{most}");
    let (mut farthest, mut count) = (0.0_f64, 0);
    for minute in 0..200 {
        let at = f64::from(minute) * 61.0;
        let positions: Vec<_> = (0..shell.len())
            .map(|number| shell.position(number, at))
            .collect();
        for (_, distance) in router.sights(here, &positions) {
            (farthest, count) = (farthest.max(distance), count + 1);
            assert!((550.0..=most + 1e-9).contains(&distance), "{distance}");
        }
    }
    assert!(farthest > 0.99 * most && count > 1000, "{farthest} {count}");
}

/// Relaxing all links until nothing changes should result in the same delay between two places.
#[test]
fn no_other_path_is_shorter() {
    for (seam, gateways) in [
        (Seam::Closed, vec![]),
        (Seam::Open, vec![place("50.1,8.7")]),
    ] {
        let sky = OrbitConfig {
            planes: 12,
            satellites: 20,
            altitude: 1200.0,
            min_elevation: 10.0,
            seam,
            ..OrbitConfig::default()
        };
        let shell = Constellation::walker(&sky).expect("a shell");
        let router = Router::new(&shell, place("40.7,-74.0"), place("51.5,-0.1"), &gateways);
        let mut found = 0;
        for step in 0..40 {
            let at = f64::from(step) * 97.0;
            let Some(route) = router.at(at) else {
                continue;
            };
            found += 1;
            let delay = router.delay(&route, at).expect("a delay");
            let positions: Vec<_> = (0..shell.len())
                .map(|number| shell.position(number, at))
                .collect();
            let mut least = vec![f64::INFINITY; shell.len()];
            for (number, distance) in router.sights(place("40.7,-74.0"), &positions) {
                least[number] = distance / LIGHT;
            }
            loop {
                let mut changed = false;
                for number in 0..shell.len() {
                    for &next in &router.links[number] {
                        let Some(link) = router.link(&positions, number, next) else {
                            continue;
                        };
                        if least[number] + link / LIGHT < least[next] {
                            (least[next], changed) = (least[number] + link / LIGHT, true);
                        }
                    }
                }
                if !changed {
                    break;
                }
            }
            let mut all = f64::INFINITY;
            for &(_, end, fibre) in &router.landings {
                for (number, distance) in router.sights(end, &positions) {
                    all = all.min(least[number] + distance / LIGHT + fibre);
                }
            }
            assert!((delay - all).abs() < 1e-12, "{at}: {delay} {all}");
        }
        assert!(found > 20, "{found}");
    }
}

/// No path should have a shorter delay than light on the great circle.
#[test]
fn nothing_is_faster_than_light() {
    let shell = Constellation::walker(&OrbitConfig::default()).expect("a shell");
    let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
    let router = Router::new(&shell, from, to, &[]);
    let light = great_circle(from, to) / LIGHT;
    for step in 0..50 {
        let at = f64::from(step) * 120.0;
        let route = router.at(at).expect("a path");
        let delay = router.delay(&route, at).expect("a delay");
        // The ways up and down have at least twice the length of the altitude, and detours over the
        // grid add less than half of the path.
        assert!(
            (light + 0.002..1.6 * light).contains(&delay),
            "{at}: {delay} {light}"
        );
    }
}

/// A gateway is below the satellite and continues by fibre: 2 x 550 km in space, and 10 degrees of
/// fibre.
#[test]
fn a_gateway_comes_down_where_the_other_end_sees_no_satellite() {
    let sky = OrbitConfig {
        relay: Relay::BentPipe,
        planes: 1,
        satellites: 1,
        phasing: 0.0,
        ..OrbitConfig::default()
    };
    let shell = Constellation::walker(&sky).expect("a shell");
    let (here, far) = (place("0,0"), place("0,30"));
    assert_eq!(Router::new(&shell, here, far, &[]).at(0.0), None);
    let gateways = [place("0,80"), place("0,0")];
    let router = Router::new(&shell, here, far, &gateways);
    let route = router.at(0.0).expect("a path");
    assert_eq!(route.gateway, Some(1));
    let fibre = great_circle(here, far) / (LIGHT * 0.681);
    let delay = router.delay(&route, 0.0).expect("a delay");
    assert!((delay - 1100.0 / LIGHT - fibre).abs() < 1e-12, "{delay}");
}

#[test]
fn the_nearest_satellite_may_be_a_longer_way() {
    let (from, to) = (place("40.7,-74.0"), place("51.5,-0.1"));
    let mut longer = 0;
    let shells = [SatelliteSelection::Shortest, SatelliteSelection::Nearest].map(|access| {
        Constellation::walker(&OrbitConfig {
            access,
            ..OrbitConfig::default()
        })
        .expect("a shell")
    });
    let routers = [0, 1].map(|number| Router::new(&shells[number], from, to, &[]));
    for step in 0..30 {
        let at = f64::from(step) * 100.0;
        let [shortest, nearest] = [0, 1].map(|number: usize| {
            let route = routers[number].at(at).expect("a path");
            routers[number].delay(&route, at).expect("a delay")
        });
        assert!(nearest >= shortest - 1e-12);
        longer += usize::from(nearest > shortest + 1e-4);
    }
    assert!(longer > 10, "{longer}");
}
