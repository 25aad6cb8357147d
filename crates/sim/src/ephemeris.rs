//! Where the satellites and stations of a network are, and how long the ways between them are, at
//! any time.

use anabranch_orbit::{LIGHT, Place, Position, Shells};
use anabranch_transport::{Nanos, time};

/// Positions are computed so far apart, and delays are straight lines in between. Lengths of links
/// change by at most 90 m/s each second, so a line is wrong by 0.1 m at most, 0.4 ns.
const GRID: Nanos = 100 * time::MILLISECOND;

/// How many moments are kept.
const KEPT: usize = 8;
/// How far ahead of the latest moment that is kept the next one may be.
const AHEAD: u64 = 2;

/// The delay of a way for a while: a straight line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    from: Nanos,
    until: Nanos,
    /// At `from`, nanoseconds; and what is added each nanosecond.
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
    /// Its number, counted from 1; 0 for none.
    number: u64,
    satellites: Vec<Position>,
}

/// Satellites and stations: bodies by their numbers, the stations behind the satellites.
#[derive(Debug)]
pub(crate) struct Ephemeris {
    shells: Shells,
    places: Vec<Place>,
    stations: Vec<[f64; 3]>,
    /// What is time 0, after the epoch.
    start: Nanos,
    moments: [Moment; KEPT],
    latest: u64,
    /// From when on each station may use its satellite, where it waits after a handover.
    pub opens: Vec<Nanos>,
}

impl Ephemeris {
    pub fn new(shells: Shells, places: Vec<Place>, start: Nanos) -> Self {
        Self {
            stations: places.iter().map(|&place| shells.station(place)).collect(),
            opens: vec![0; places.len()],
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

    fn seconds(&self, at: Nanos) -> f64 {
        time::seconds(self.start.saturating_add(at))
    }

    /// The positions of all satellites at a moment of the grid, which are kept.
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

    /// Whether a station reaches a satellite at any time.
    pub fn reaches(&self, station: usize, satellite: usize, at: Nanos) -> bool {
        let position = self.shells.position(satellite, self.seconds(at));
        let place = self.places[station];
        self.shells.is_in_reach(place, satellite, position)
    }

    /// Where a body is at a moment of the grid.
    fn position(&mut self, body: u32, number: u64) -> Position {
        let body = body as usize;
        let satellites = self.shells.len();
        if let Some(station) = body.checked_sub(satellites) {
            return Some(self.stations[station]);
        }
        let slot = (number % KEPT as u64) as usize;
        let kept = self.moments[slot].number == number + 1;
        // What lies far ahead is asked for one way only.
        if kept || (self.latest..=self.latest + AHEAD).contains(&number) {
            return self.moment(number)[body];
        }
        self.shells.position(body, self.seconds(number * GRID))
    }

    /// The delay from one body to another around `at`; without end where one is nowhere.
    pub fn segment(&mut self, one: u32, other: u32, at: Nanos) -> Segment {
        let number = at / GRID;
        let from = number * GRID;
        let mut delay = |number| {
            let (one, other) = (self.position(one, number)?, self.position(other, number)?);
            Some(distance(one, other) / LIGHT * 1e9)
        };
        let (first, last) = (delay(number), delay(number + 1));
        let delay = first.or(last).unwrap_or(f64::from(u32::MAX));
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
