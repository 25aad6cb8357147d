//! Several shells that form one constellation, for networks: positions, links, and the satellites
//! that a station can reach.

use crate::constellation::Constellation;
use crate::conventions::OrbitConfig;
use crate::earth::Place;
use crate::vector::Vector;

/// Earth-fixed position, km; `None` for a satellite whose elements are not valid at the time.
pub type Position = Option<[f64; 3]>;

fn vector([x, y, z]: [f64; 3]) -> Vector {
    Vector { x, y, z }
}

/// Shells whose satellites are numbered consecutively, in the order of the shells.
#[derive(Clone, Debug)]
pub struct Shells {
    shells: Vec<Constellation>,
    /// Number of the first satellite of each shell, followed by the total number.
    first: Vec<usize>,
}

impl Shells {
    /// Combines shells into one constellation.
    pub fn new(shells: Vec<Constellation>) -> Self {
        let mut first = vec![0];
        for shell in &shells {
            first.push(first[first.len() - 1] + shell.len());
        }
        Self { shells, first }
    }

    /// Number of satellites.
    pub fn len(&self) -> usize {
        self.first[self.shells.len()]
    }

    /// Whether there are no satellites.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shells in their order.
    pub fn shells(&self) -> &[Constellation] {
        &self.shells
    }

    /// Shell of a satellite, and the number of the satellite in this shell.
    fn split(&self, number: usize) -> (&Constellation, usize) {
        let shell = self.first.partition_point(|&first| first <= number) - 1;
        (&self.shells[shell], number - self.first[shell])
    }

    /// Name of a satellite: its plane and its index in the plane, or its name in the file.
    pub fn name(&self, number: usize) -> String {
        let (shell, number) = self.split(number);
        shell.name(number)
    }

    /// Links between satellites, each once with the lower number first.
    pub fn isls(&self) -> Vec<[usize; 2]> {
        let all = self.shells.iter().zip(&self.first);
        let all = all.flat_map(|(shell, &first)| {
            let isls = shell.isls().into_iter();
            isls.map(move |ends| ends.map(|end| first + end))
        });
        all.collect()
    }

    /// Earth-fixed position of a satellite `at` seconds after the epoch.
    pub fn position(&self, number: usize, at: f64) -> Position {
        let (shell, number) = self.split(number);
        let Vector { x, y, z } = shell.position(number, at)?;
        Some([x, y, z])
    }

    /// Computes the positions of all satellites `at` seconds after the epoch.
    pub fn positions(&self, at: f64, found: &mut Vec<Position>) {
        found.clear();
        for shell in &self.shells {
            let all = 0..shell.len();
            found.extend(all.map(|number| {
                let Vector { x, y, z } = shell.position(number, at)?;
                Some([x, y, z])
            }));
        }
    }

    /// Conventions of ground links, which are those of the first shell.
    fn sky(&self) -> Option<&OrbitConfig> {
        self.shells.first().map(Constellation::sky)
    }

    /// Earth-fixed position of a station on the Earth of the first shell, km.
    pub fn station(&self, place: Place) -> [f64; 3] {
        let earth = self
            .sky()
            .map_or(OrbitConfig::default().earth, |sky| sky.earth);
        let Vector { x, y, z } = place.position(earth);
        [x, y, z]
    }

    /// Finds the satellites at these positions that a station can reach, in ascending order with
    /// their distances in km.
    pub fn in_reach(&self, place: Place, positions: &[Position], found: &mut Vec<(usize, f64)>) {
        found.clear();
        let (own, up) = (vector(self.station(place)), place.up());
        for (shell, &first) in self.shells.iter().zip(&self.first) {
            let sky = shell.sky();
            let least = libm::sin(sky.min_elevation.to_radians());
            let of_shell = positions[first..first + shell.len()].iter();
            for (number, position) in (first..).zip(of_shell) {
                let Some(position) = position.map(vector) else {
                    continue;
                };
                let sight = position.minus(own);
                let height = sight.dot(up);
                // Excludes satellites on the other side of the Earth first, because most are there.
                if height < 0.0 && least >= 0.0 {
                    continue;
                }
                let distance = sight.length();
                if sky.reaches(distance) && height >= least * distance {
                    found.push((number, distance));
                }
            }
        }
    }

    /// Sine of the elevation of a satellite above the horizon of a place.
    pub fn sine_of_elevation(&self, place: Place, position: [f64; 3]) -> f64 {
        place.sine_of_elevation(vector(self.station(place)), vector(position))
    }

    /// Whether a station can reach a satellite at this position.
    pub fn is_in_reach(&self, place: Place, satellite: usize, position: Position) -> bool {
        let sky = self.split(satellite).0.sky();
        let own = vector(self.station(place));
        let least = libm::sin(sky.min_elevation.to_radians());
        position.map(vector).is_some_and(|position| {
            sky.reaches(own.distance(position)) && place.sine_of_elevation(own, position) >= least
        })
    }

    /// Length of the link between two satellites at these positions, km; `None` if the Earth blocks
    /// it.
    pub fn isl_length(&self, [one, other]: [usize; 2], positions: &[Position]) -> Option<f64> {
        let ends = (vector(positions[one]?), vector(positions[other]?));
        let horizon = self.split(one).0.horizon();
        (ends.0.clearance(ends.1) >= horizon).then(|| ends.0.distance(ends.1))
    }
}
