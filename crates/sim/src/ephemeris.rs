//! Ephemeris: positions of satellites and stations at any time, and the delays of links between
//! them.

use std::ops::RangeInclusive;

use anabranch_orbit::{LIGHT, Place, Position, Shells};
use anabranch_transport::{Nanos, time};

/// Interval between the times at which positions are computed, nanoseconds. Delays within an
/// interval are interpolated linearly. The interpolation error is at most 0.1 m, or 0.4 ns, because
/// the speed at which the length of a link changes varies by at most 90 m/s per second.
const GRID: Nanos = 100 * time::MILLISECOND;

/// Number of grid times whose positions are cached.
const KEPT: usize = 8;
/// The positions at a grid time are cached only if it is at most this number of grid times after
/// the latest cached one.
const AHEAD: u64 = 3;

/// The delay, in nanoseconds, to a satellite whose elements are no longer valid, about 4.3 s.
/// Routes avoid such a satellite, so only packets that were already queued for it have this delay.
const UNKNOWN: f64 = u32::MAX as f64;

/// The delay of a link during an interval, as a linear function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    from: Nanos,
    until: Nanos,
    /// Delay at `from`, nanoseconds, and its change per nanosecond.
    delay: f64,
    slope: f64,
}

impl Segment {
    #[inline]
    pub fn at(&self, at: Nanos) -> Option<Nanos> {
        let inside = self.from <= at && at < self.until;
        inside.then(|| (self.delay + self.slope * (at - self.from) as f64 + 0.5) as Nanos)
    }
}

/// Cached positions of all satellites at one time of the grid.
#[derive(Debug, Default)]
struct Moment {
    /// Index of the grid time plus 1; 0 if the slot is empty.
    number: u64,
    satellites: Vec<Position>,
    /// Minimum distance of a satellite from the centre of the Earth, km; computed when it is first
    /// needed.
    lowest: Option<f64>,
}

/// Positions of the satellites and ground stations of a constellation. Satellites and stations are
/// numbered together as bodies, satellites first.
#[derive(Debug)]
pub(crate) struct Ephemeris {
    shells: Shells,
    places: Vec<Place>,
    stations: Vec<[f64; 3]>,
    /// Time 0 of the simulation, relative to the epoch.
    start: Nanos,
    moments: [Moment; KEPT],
    latest: u64,
    /// For each station, the end of its last handover interruption, from which on it may send to
    /// its satellite.
    pub opens: Vec<Nanos>,
    /// Satellite that serves each station, if the routing policy assigns one satellite to a
    /// station.
    serving: Vec<Option<usize>>,
    /// Number of stations served by each satellite.
    served: Vec<u32>,
}

impl Ephemeris {
    pub fn new(shells: Shells, places: Vec<Place>, start: Nanos) -> Self {
        Self {
            stations: places.iter().map(|&place| shells.station(place)).collect(),
            opens: vec![0; places.len()],
            serving: vec![None; places.len()],
            served: vec![0; shells.len()],
            shells,
            places,
            start,
            moments: Default::default(),
            latest: 0,
        }
    }

    pub fn shells(&self) -> &Shells {
        &self.shells
    }

    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Sets the satellite that serves `station` from now on, or none.
    pub fn serve(&mut self, station: usize, satellite: Option<usize>) {
        let last = std::mem::replace(&mut self.serving[station], satellite);
        if let Some(last) = last {
            self.served[last] -= 1;
        }
        if let Some(satellite) = satellite {
            self.served[satellite] += 1;
        }
    }

    /// Number of stations that share the link of `satellite`, including `station`. A station that
    /// has changed to another satellite still counts, because the satellite still sends it the
    /// packets that it queued before.
    pub fn served_with(&self, satellite: u32, station: usize) -> u32 {
        let is_served = self.serving[station] == Some(satellite as usize);
        self.served[satellite as usize] + u32::from(!is_served)
    }

    fn seconds(&self, at: Nanos) -> f64 {
        time::seconds(self.start.saturating_add(at))
    }

    /// Positions of all satellites at the grid time `number`, from the cache.
    fn moment(&mut self, number: u64) -> &[Position] {
        let slot = (number % KEPT as u64) as usize;
        if self.moments[slot].number != number + 1 {
            let at = self.seconds(number * GRID);
            let moment = &mut self.moments[slot];
            self.shells.positions(at, &mut moment.satellites);
            moment.number = number + 1;
            moment.lowest = None;
            self.latest = number;
        }
        &self.moments[slot].satellites
    }

    /// Positions of all satellites at any time, also between grid times.
    pub fn satellites(&mut self, at: Nanos, found: &mut Vec<Position>) {
        if at.is_multiple_of(GRID) {
            let known = self.moment(at / GRID);
            found.clear();
            found.extend_from_slice(known);
        } else {
            self.shells.positions(self.seconds(at), found);
        }
    }

    /// Whether a station can reach a satellite at this time.
    pub fn reaches(&self, station: usize, satellite: usize, at: Nanos) -> bool {
        let position = self.shells.position(satellite, self.seconds(at));
        let place = self.places[station];
        self.shells.is_in_reach(place, satellite, position)
    }

    /// Sine of the elevation of `satellite` as seen by `station`; `None` if the satellite's
    /// position is unknown. The result is constant between two grid times.
    pub fn sine_of_elevation(&mut self, station: usize, satellite: u32, at: Nanos) -> Option<f64> {
        let position = self.position(satellite, at / GRID)?;
        Some(
            self.shells
                .sine_of_elevation(self.places[station], position),
        )
    }

    /// Position of a body at the grid time `number`.
    fn position(&mut self, body: u32, number: u64) -> Position {
        let body = body as usize;
        let satellites = self.shells.len();
        if let Some(station) = body.checked_sub(satellites) {
            return Some(self.stations[station]);
        }
        let slot = (number % KEPT as u64) as usize;
        let kept = self.moments[slot].number == number + 1;
        // Grid times far ahead are not cached, because only one link needs them.
        if kept || (self.latest..=self.latest + AHEAD).contains(&number) {
            return self.moment(number)[body];
        }
        self.shells.position(body, self.seconds(number * GRID))
    }

    /// Delay between two bodies at the grid time `number`, nanoseconds; `None` if a position is
    /// unknown.
    fn delay_at(&mut self, one: u32, other: u32, number: u64) -> Option<f64> {
        let (one, other) = (self.position(one, number)?, self.position(other, number)?);
        Some(distance(one, other) / LIGHT * 1e9)
    }

    /// Linear delay between two bodies in the grid interval that contains `at`. The delay is
    /// `UNKNOWN` if a position is unknown.
    pub fn segment(&mut self, one: u32, other: u32, at: Nanos) -> Segment {
        let number = at / GRID;
        let from = number * GRID;
        let mut delay_at = |number| self.delay_at(one, other, number);
        let (first, last) = (delay_at(number), delay_at(number + 1));
        let delay = first.or(last).unwrap_or(UNKNOWN);
        let slope = match (first, last) {
            (Some(first), Some(last)) => (last - first) / GRID as f64,
            _ => 0.0,
        };
        Segment {
            from,
            until: from.saturating_add(GRID),
            delay,
            slope,
        }
    }

    /// Lower bound of the delays between two bodies in `span`, nanoseconds. It is the minimum of
    /// the delays at grid times, because delays are linear between these.
    pub fn least_delay(&mut self, one: u32, other: u32, span: RangeInclusive<Nanos>) -> Nanos {
        let moments = span.start() / GRID..=span.end() / GRID + 1;
        let delays = moments.filter_map(|number| self.delay_at(one, other, number));
        delays.fold(UNKNOWN, f64::min) as Nanos
    }

    /// Lower bound of the delays between any satellite and any station in `span`, nanoseconds. It
    /// follows from the difference of their distances from the centre of the Earth.
    pub fn least_ground_delay(&mut self, span: RangeInclusive<Nanos>) -> Nanos {
        let highest = self.stations.iter().map(|at| distance(*at, [0.0; 3]));
        let highest = highest.fold(0.0, f64::max);
        let moments = span.start() / GRID..=span.end() / GRID + 1;
        let lowest = moments.fold(f64::INFINITY, |least, number| {
            least.min(self.lowest(number))
        });
        ((lowest - highest) / LIGHT * 1e9).clamp(0.0, UNKNOWN) as Nanos
    }

    /// Minimum distance of a satellite from the centre of the Earth at the grid time `number`, km.
    fn lowest(&mut self, number: u64) -> f64 {
        let slot = (number % KEPT as u64) as usize;
        self.moment(number);
        let Moment {
            satellites, lowest, ..
        } = &mut self.moments[slot];
        *lowest.get_or_insert_with(|| {
            let known = satellites.iter().flatten();
            known.fold(f64::INFINITY, |least, at| {
                least.min(distance(*at, [0.0; 3]))
            })
        })
    }
}

fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|axis| one[axis] - other[axis]);
    (x * x + y * y + z * z).sqrt()
}

#[cfg(test)]
mod tests;
