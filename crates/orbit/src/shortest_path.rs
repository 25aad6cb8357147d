//! Shortest path over satellites at one time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::constellation::Constellation;
use crate::conventions::{Relay, SatelliteSelection};
use crate::earth::{LIGHT, Place, great_circle};
use crate::vector::Vector;

/// A path: up to a satellite, from satellite to satellite, down, and by fibre if it goes down to a
/// gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SatelliteRoute {
    /// Numbers of the satellites, in the order of the path; at least one.
    pub satellites: Vec<usize>,
    /// Index of the gateway to which the path goes down; `None` if it goes down to the other end.
    pub gateway: Option<usize>,
}

/// Computes paths between two ends over a constellation and gateways.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    constellation: Constellation,
    from: Place,
    /// Places to which a path may go down, each with the remaining delay by fibre in seconds.
    landings: Vec<(Option<usize>, Place, f64)>,
    links: Vec<Vec<usize>>,
}

/// A satellite in sight, and its distance in km.
type Sight = (usize, f64);

impl Router {
    pub fn new(constellation: &Constellation, from: Place, to: Place, gateways: &[Place]) -> Self {
        let sky = constellation.sky();
        let fibre =
            |place: Place| great_circle(place, to) * sky.fibre_detour / (LIGHT * sky.fibre_speed);
        let mut landings = vec![(None, to, 0.0)];
        let gateways = gateways.iter().enumerate();
        landings.extend(gateways.map(|(number, &place)| (Some(number), place, fibre(place))));
        let mut links = vec![Vec::new(); constellation.len()];
        for [one, other] in constellation.isls() {
            links[one].push(other);
            links[other].push(one);
        }
        Self {
            constellation: constellation.clone(),
            from,
            landings,
            links,
        }
    }

    /// Lower bound on the delay of all paths, seconds: that of a straight line to the other end, or
    /// of a straight line to a gateway and the fibre from there, whichever is smaller.
    pub fn least_delay(&self) -> f64 {
        let earth = self.constellation.sky().earth;
        let from = self.from.position(earth);
        let straight = |place: Place| from.distance(place.position(earth)) / LIGHT;
        let delays = self.landings.iter();
        let delays = delays.map(|&(_, place, fibre)| straight(place) + fibre);
        delays.fold(f64::INFINITY, f64::min)
    }

    /// Satellites that a place may use under its access policy.
    fn sights(&self, place: Place, positions: &[Option<Vector>]) -> Vec<Sight> {
        let sky = self.constellation.sky();
        let own = place.position(sky.earth);
        let least = libm::sin(sky.min_elevation.to_radians());
        let seen = |(number, position): (usize, &Option<Vector>)| {
            let position = (*position)?;
            let high = place.sine_of_elevation(own, position) >= least;
            let distance = own.distance(position);
            (high && sky.reaches(distance)).then_some((number, distance))
        };
        let mut seen: Vec<Sight> = positions.iter().enumerate().filter_map(seen).collect();
        if sky.access == SatelliteSelection::Nearest {
            let nearest = seen.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
            seen = nearest.into_iter().collect();
        }
        seen
    }

    /// The shortest path `at` seconds after the epoch, if one exists.
    pub fn at(&self, at: f64) -> Option<SatelliteRoute> {
        let positions: Vec<_> = (0..self.constellation.len())
            .map(|number| self.constellation.position(number, at))
            .collect();
        let up = self.sights(self.from, &positions);
        // Remaining delay from each satellite: down to the other end, or down to a gateway and then
        // by fibre.
        let mut down: Vec<Option<(f64, Option<usize>)>> = vec![None; positions.len()];
        for &(gateway, place, fibre) in &self.landings {
            for (number, distance) in self.sights(place, &positions) {
                let left = distance / LIGHT + fibre;
                if down[number].is_none_or(|(least, _)| left < least) {
                    down[number] = Some((left, gateway));
                }
            }
        }
        match self.constellation.sky().relay {
            Relay::BentPipe => one_satellite(&up, &down),
            Relay::Isl => self.shortest(&up, &down, &positions),
        }
    }

    /// Dijkstra's algorithm over the links between satellites; of equal paths, the one with the
    /// lowest number is chosen.
    fn shortest(
        &self,
        up: &[Sight],
        down: &[Option<(f64, Option<usize>)>],
        positions: &[Option<Vector>],
    ) -> Option<SatelliteRoute> {
        let mut before: Vec<Option<usize>> = vec![None; positions.len()];
        let mut least = vec![f64::INFINITY; positions.len()];
        // The bits of non-negative floats sort like the numbers, so they serve as integer keys.
        let mut heap = BinaryHeap::new();
        for &(number, distance) in up {
            least[number] = distance / LIGHT;
            heap.push(Reverse((least[number].to_bits(), number)));
        }
        let mut best: Option<(f64, usize)> = None;
        while let Some(Reverse((bits, number))) = heap.pop() {
            let so_far = f64::from_bits(bits);
            if so_far > least[number] {
                continue;
            }
            if best.is_some_and(|(all, _)| so_far >= all) {
                break;
            }
            if let Some((left, _)) = down[number]
                && best.is_none_or(|(all, _)| so_far + left < all)
            {
                best = Some((so_far + left, number));
            }
            for &next in &self.links[number] {
                let Some(distance) = self.link(positions, number, next) else {
                    continue;
                };
                let there = so_far + distance / LIGHT;
                if there < least[next] {
                    (least[next], before[next]) = (there, Some(number));
                    heap.push(Reverse((there.to_bits(), next)));
                }
            }
        }
        let (_, last) = best?;
        let mut satellites = vec![last];
        while let Some(earlier) = satellites.last().and_then(|&number| before[number]) {
            satellites.push(earlier);
        }
        satellites.reverse();
        let gateway = down[last].and_then(|(_, gateway)| gateway);
        Some(SatelliteRoute {
            satellites,
            gateway,
        })
    }

    /// Length of a link between satellites, km; `None` if the Earth blocks it.
    fn link(&self, positions: &[Option<Vector>], one: usize, other: usize) -> Option<f64> {
        let (one, other) = (positions[one]?, positions[other]?);
        (one.clearance(other) >= self.constellation.horizon()).then(|| one.distance(other))
    }

    /// Delay of a path `at` seconds after the epoch, seconds. The path need not be the shortest.
    pub fn delay(&self, route: &SatelliteRoute, at: f64) -> Option<f64> {
        let earth = self.constellation.sky().earth;
        let landing = self
            .landings
            .iter()
            .find(|landing| landing.0 == route.gateway);
        let &(_, place, fibre) = landing?;
        let mut here = self.from.position(earth);
        let mut length = 0.0;
        for &number in &route.satellites {
            let there = self.constellation.position(number, at)?;
            length += here.distance(there);
            here = there;
        }
        Some((length + here.distance(place.position(earth))) / LIGHT + fibre)
    }
}

fn one_satellite(up: &[Sight], down: &[Option<(f64, Option<usize>)>]) -> Option<SatelliteRoute> {
    let whole = |&(number, distance): &Sight| {
        let (left, gateway) = down[number]?;
        Some((distance / LIGHT + left, number, gateway))
    };
    let least = up
        .iter()
        .filter_map(whole)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, number, gateway) = least?;
    Some(SatelliteRoute {
        satellites: vec![number],
        gateway,
    })
}

#[cfg(test)]
mod tests;
