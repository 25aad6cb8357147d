//! Ephemeris: positions of satellites and stations at any time, and the delays of links between
//! them.

use anabranch_orbit::{LIGHT, Place, Position, Shells};
use anabranch_transport::{Nanos, time};

/// Time between two computed positions; delays are interpolated linearly. The rate of change of a
/// link's length changes by at most 90 m/s per second, so the error of interpolation is at most 0.1
/// m, or 0.4 ns.
const GRID: Nanos = 100 * time::MILLISECOND;

/// Number of cached moments.
const KEPT: usize = 8;
/// Maximum distance of the next cached moment from the latest one.
const AHEAD: u64 = 2;

/// The delay, in nanoseconds, to a satellite whose elements are no longer valid, about 4.3 s.
/// Routes avoid it, so only packets that were already queued for it are delayed so long.
const UNKNOWN: f64 = u32::MAX as f64;

/// The delay of a link during an interval, as a linear function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    from: Nanos,
    until: Nanos,
    /// The delay at `from`, nanoseconds, and its change per nanosecond.
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

/// Positions of satellites at a moment of the grid.
#[derive(Debug, Default)]
struct Moment {
    /// Number of the moment, from 1; 0 for none.
    number: u64,
    satellites: Vec<Position>,
}

/// Satellites and stations. Bodies are numbered, the satellites first.
#[derive(Debug)]
pub(crate) struct Ephemeris {
    shells: Shells,
    places: Vec<Place>,
    stations: Vec<[f64; 3]>,
    /// Time 0 of the simulation, relative to the epoch.
    start: Nanos,
    moments: [Moment; KEPT],
    latest: u64,
    /// The time from which on each station may use its satellite, because of the interruption after
    /// a handover.
    pub opens: Vec<Nanos>,
    /// The satellite that serves each station, with a policy of one satellite.
    serving: Vec<Option<usize>>,
    /// Number of stations that each satellite serves.
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

    /// A station is served by a satellite from now on, or by none.
    pub fn serve(&mut self, station: usize, satellite: Option<usize>) {
        let last = std::mem::replace(&mut self.serving[station], satellite);
        if let Some(last) = last {
            self.served[last] -= 1;
        }
        if let Some(satellite) = satellite {
            self.served[satellite] += 1;
        }
    }

    /// Number of stations that a satellite serves, and `station`, because packets that it queued
    /// before it changed to another satellite are still sent to this one.
    pub fn served_with(&self, satellite: u32, station: usize) -> u32 {
        let is_served = self.serving[station] == Some(satellite as usize);
        self.served[satellite as usize] + u32::from(!is_served)
    }

    fn seconds(&self, at: Nanos) -> f64 {
        time::seconds(self.start.saturating_add(at))
    }

    /// The positions of all satellites at a moment of the grid, from the cache.
    fn moment(&mut self, number: u64) -> &[Position] {
        let slot = (number % KEPT as u64) as usize;
        if self.moments[slot].number != number + 1 {
            let at = self.seconds(number * GRID);
            let moment = &mut self.moments[slot];
            self.shells.positions(at, &mut moment.satellites);
            moment.number = number + 1;
            self.latest = number;
        }
        &self.moments[slot].satellites
    }

    /// The positions of all satellites at any time.
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

    /// The sine of the elevation of a satellite at a station, if its position is known; constant
    /// between two moments of the grid.
    pub fn sine_of_elevation(&mut self, station: usize, satellite: u32, at: Nanos) -> Option<f64> {
        let position = self.position(satellite, at / GRID)?;
        Some(
            self.shells
                .sine_of_elevation(self.places[station], position),
        )
    }

    /// The position of a body at a moment of the grid.
    fn position(&mut self, body: u32, number: u64) -> Position {
        let body = body as usize;
        let satellites = self.shells.len();
        if let Some(station) = body.checked_sub(satellites) {
            return Some(self.stations[station]);
        }
        let slot = (number % KEPT as u64) as usize;
        let kept = self.moments[slot].number == number + 1;
        // Moments far ahead are not cached, because they are needed for one link only.
        if kept || (self.latest..=self.latest + AHEAD).contains(&number) {
            return self.moment(number)[body];
        }
        self.shells.position(body, self.seconds(number * GRID))
    }

    /// The delay between two bodies around `at`; `UNKNOWN` if a position is unknown.
    pub fn segment(&mut self, one: u32, other: u32, at: Nanos) -> Segment {
        let number = at / GRID;
        let from = number * GRID;
        let mut delay = |number| {
            let (one, other) = (self.position(one, number)?, self.position(other, number)?);
            Some(distance(one, other) / LIGHT * 1e9)
        };
        let (first, last) = (delay(number), delay(number + 1));
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
}

fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|axis| one[axis] - other[axis]);
    (x * x + y * y + z * z).sqrt()
}
