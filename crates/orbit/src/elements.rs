//! Real satellites: mean elements, as two-line elements or as messages of CCSDS 502.0-B (OMM),
//! which SGP4 propagates.
//!
//! Such elements are fitted with the constants of WGS 72. SGP4 must therefore use these constants,
//! whatever shape of the Earth other computations use.

use std::collections::BTreeMap;
use std::fmt;

use sgp4::chrono::NaiveDateTime;

use crate::conventions::{MAX_SATELLITES, OrbitConfigError};
use crate::date::Date;
use crate::earth::MEAN_RADIUS;
use crate::isls::IslsError;
use crate::vector::Vector;

pub(crate) use shell::Kepler;

mod message;
mod omm;
mod shell;
mod tle;
mod xml;

/// Maximum difference in days between the date of elements and time 0. The limit is needed because
/// the error of SGP4 grows by some kilometres per day, and by far more for a satellite that
/// manoeuvres or decays.
pub const MAX_AGE_DAYS: f64 = 14.0;

/// Error: a file of elements cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElementsError {
    /// The file contains no elements in a known form.
    #[error(
        "{place}: {what}; expected are two lines of elements for each satellite, with or without a line of its name before, or OMM as XML, KVN, CSV or JSON"
    )]
    Syntax {
        /// Place of the fault: a line, or a JSON message.
        place: String,
        /// Description of the fault.
        what: String,
    },
    /// The file contains no satellite, or too many.
    #[error("found {found} satellites; allowed: 1 to {MAX_SATELLITES}")]
    Count {
        /// Number of satellites.
        found: usize,
    },
    /// Most elements are too far from time 0.
    #[error(
        "{old} of {all} satellites have elements of a date more than {MAX_AGE_DAYS} days from the start, {start}; the elements are of {first} to {last}. Choose another start, newer elements, or take old ones by `old_elements`"
    )]
    Old {
        /// Number of satellites whose elements are too old or too new.
        old: usize,
        /// Total number of satellites.
        all: usize,
        /// Date of time 0.
        start: Date,
        /// Date of the earliest elements.
        first: Date,
        /// Date of the latest elements.
        last: Date,
    },
    /// Links between satellites are requested, but elements do not define links.
    #[error(
        "`relay`: found \"isl\"; allowed: \"bent-pipe\", since elements do not say which satellites have links; a list of them, `isls`, does"
    )]
    Relay,
    /// The list of links between satellites is invalid.
    #[error("`isls`: {0}")]
    Isls(#[from] IslsError),
    /// Conventions are invalid or contradict each other.
    #[error(transparent)]
    Config(#[from] OrbitConfigError),
}

/// Options for reading a file: the date of time 0, and the use of old elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taking {
    /// Date of time 0; `None` for the latest date of the elements.
    pub start: Option<Date>,
    /// Whether elements that are more than [`MAX_AGE_DAYS`] from time 0 are also used.
    pub old: bool,
}

/// Dates and ages of the elements that are used.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    /// Date of time 0.
    pub start: Date,
    /// Dates of the earliest and the latest elements that are used.
    pub dates: [Date; 2],
    /// Minimum, median and maximum difference between the date of the elements and time 0, days.
    pub ages: [f64; 3],
    /// Descriptions of the omitted entries, by kind with count and reason.
    pub notes: Vec<String>,
}

impl fmt::Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = self.dates;
        let [least, median, most] = self.ages;
        match first == last {
            true => write!(f, "elements of {first}")?,
            false => write!(f, "elements of {first} to {last}")?,
        }
        write!(
            f,
            ", {least:.1} to {most:.1} days from the start, {} (median {median:.1})",
            self.start
        )
    }
}

/// Elements of one satellite at one time, in the units of files: degrees, and revolutions per day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Set {
    name: Option<String>,
    /// Catalogue number; 0 if the file has none.
    number: u64,
    epoch: Date,
    mean_motion: f64,
    eccentricity: f64,
    inclination: f64,
    node: f64,
    perigee: f64,
    anomaly: f64,
    drag: f64,
}

/// An entry of a file: its elements, or the fault in it.
pub(crate) struct Entry {
    place: String,
    set: Result<Set, String>,
}

/// Numbers of planes and satellites that the header of a file states.
pub(crate) struct Counts {
    line: usize,
    planes: u64,
    each: u64,
}

impl Counts {
    /// Note for a file whose number of usable entries differs from its header.
    fn note(&self, found: usize) -> Option<String> {
        let Self { line, planes, each } = self;
        let all = planes.saturating_mul(*each);
        let differ = all != found as u64;
        differ.then(|| {
            format!(
                "line {line}: found {planes} planes of {each} satellites, {all} in all; the file has usable elements of {found}"
            )
        })
    }
}

/// All entries of a file, with its header.
pub(crate) struct Entries {
    list: Vec<Entry>,
    counts: Option<Counts>,
}

/// A satellite whose elements SGP4 accepts.
#[derive(Clone, Debug)]
struct Satellite {
    name: String,
    constants: sgp4::Constants,
    /// Time from the date of its elements to time 0, minutes.
    age: f64,
}

/// Satellites of a file with their elements.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    satellites: Vec<Satellite>,
    /// Greenwich mean sidereal time at time 0, rad.
    sidereal: f64,
    catalogue: Catalogue,
}

/// Sidereal rotation rate of the Earth, rad/s (IAU 1982, at J2000).
const SIDEREAL: f64 = 7.292_115_855_3e-5;

/// Greenwich mean sidereal time (IAU 1982) of a date, rad. UTC is used in place of UT1, because
/// they differ by less than a second.
fn sidereal(at: &NaiveDateTime) -> f64 {
    let seconds =
        at.and_utc().timestamp() as f64 + f64::from(at.and_utc().timestamp_subsec_nanos()) * 1e-9;
    // J2000 is 2000-01-01 12:00 UTC.
    let days = (seconds - 946_728_000.0) / 86_400.0;
    let centuries = days / 36_525.0;
    let degrees = 280.460_618_37
        + 360.985_647_366_29 * days
        + centuries * centuries * (0.000_387_933 - centuries / 38_710_000.0);
    degrees.rem_euclid(360.0).to_radians()
}

impl Set {
    fn constants(&self) -> Result<sgp4::Constants, String> {
        let wrong = |error: &dyn std::fmt::Display| error.to_string();
        if !(0.0..1.0).contains(&self.eccentricity) {
            let found = self.eccentricity;
            return Err(format!(
                "found the eccentricity {found}; allowed: from 0 to below 1"
            ));
        }
        let orbit = sgp4::Orbit::from_kozai_elements(
            &sgp4::WGS72,
            self.inclination.to_radians(),
            self.node.to_radians(),
            self.eccentricity,
            self.perigee.to_radians(),
            self.anomaly.to_radians(),
            self.mean_motion * (std::f64::consts::PI / 720.0),
        );
        let orbit = orbit.map_err(|error| wrong(&error))?;
        let years = sgp4::julian_years_since_j2000(&self.epoch.0);
        let sidereal = sgp4::iau_epoch_to_sidereal_time;
        sgp4::Constants::new(sgp4::WGS72, sidereal, years, self.drag, orbit)
            .map_err(|error| wrong(&error))
    }
}

/// Parses a file in any supported form.
fn entries(text: &str) -> Result<Entries, ElementsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(form) = omm::Form::of(text) else {
        return Ok(tle::read(text));
    };
    let list =
        omm::read(text, form).map_err(|(place, what)| ElementsError::Syntax { place, what })?;
    Ok(Entries { list, counts: None })
}

fn days(one: Date, other: Date) -> f64 {
    one.seconds_since(other).abs() / 86_400.0
}

/// Count with a noun and a verb, such as "1 entry is" and "3 entries are".
fn counted(count: usize, one: &str, more: &str) -> String {
    match count {
        1 => format!("1 {one} is"),
        _ => format!("{count} {more} are"),
    }
}

impl Elements {
    pub fn read(text: &str, taking: Taking) -> Result<Self, ElementsError> {
        let mut notes = Vec::new();
        let (mut sets, mut odd) = (Vec::new(), Vec::new());
        let Entries { list, counts } = entries(text)?;
        for Entry { place, set } in list {
            match set.and_then(|set| Ok((set.constants()?, set))) {
                Ok((constants, set)) => sets.push((set, constants)),
                Err(what) => odd.push((place, what)),
            }
        }
        let Some(latest) = sets.iter().map(|(set, _)| set.epoch).max() else {
            let mut odd = odd.into_iter();
            return Err(match odd.next() {
                Some((place, what)) => ElementsError::Syntax { place, what },
                None => ElementsError::Count { found: 0 },
            });
        };
        if let [(place, what), ..] = &odd[..] {
            let entries = counted(odd.len(), "entry", "entries");
            notes.push(format!("{entries} left out; the first: {place}: {what}"));
        }
        notes.extend(counts.and_then(|counts| counts.note(sets.len())));
        let start = taking.start.unwrap_or(latest);
        let all = sets.len();
        let mut sets = nearest(sets, start);
        if sets.len() < all {
            let count = counted(all - sets.len(), "entry", "entries");
            notes.push(format!(
                "{count} left out: the same satellites have elements nearer to the start"
            ));
        }
        let (satellites, mut dates) = (sets.len(), [start; 2]);
        let span = |sets: &[(Set, sgp4::Constants)]| {
            let dates = || sets.iter().map(|(set, _)| set.epoch);
            Some([dates().min()?, dates().max()?])
        };
        if let Some(span) = span(&sets) {
            dates = span;
        }
        if !taking.old {
            sets.retain(|(set, _)| days(start, set.epoch) <= MAX_AGE_DAYS);
            let old = satellites - sets.len();
            if old > sets.len() {
                let [first, last] = dates;
                return Err(ElementsError::Old {
                    old,
                    all: satellites,
                    start,
                    first,
                    last,
                });
            }
            if old > 0 {
                let count = counted(old, "satellite", "satellites");
                notes.push(format!(
                    "{count} left out, with elements more than {MAX_AGE_DAYS} days from the start, {start}; `old_elements` takes them"
                ));
            }
        }
        if sets.len() as u64 > MAX_SATELLITES {
            return Err(ElementsError::Count { found: sets.len() });
        }
        let mut ages: Vec<f64> = sets.iter().map(|(set, _)| days(start, set.epoch)).collect();
        ages.sort_unstable_by(f64::total_cmp);
        let age = |at: usize| ages.get(at).copied().unwrap_or(0.0);
        let catalogue = Catalogue {
            start,
            dates: span(&sets).unwrap_or(dates),
            ages: [
                age(0),
                age(ages.len() / 2),
                age(ages.len().saturating_sub(1)),
            ],
            notes,
        };
        let satellite = |(set, constants): (Set, sgp4::Constants)| Satellite {
            name: set.name.unwrap_or_else(|| set.number.to_string()),
            constants,
            age: start.seconds_since(set.epoch) / 60.0,
        };
        Ok(Self {
            satellites: sets.into_iter().map(satellite).collect(),
            sidereal: sidereal(&start.0),
            catalogue,
        })
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub fn len(&self) -> usize {
        self.satellites.len()
    }

    pub fn name(&self, number: usize) -> &str {
        &self.satellites[number].name
    }

    /// Earth-fixed position, km, which is converted from SGP4's frame (TEME) with the mean sidereal
    /// time. Polar motion, which is about 10 m, is neglected. `None` for a satellite that has
    /// decayed, or that SGP4 cannot compute.
    pub fn position(&self, number: usize, at: f64) -> Option<Vector> {
        let place = self.inertial(number, at)?;
        Some(place.turned(-(self.sidereal + SIDEREAL * at)))
    }

    /// Position as seen from an Earth that does not rotate, km.
    pub fn frozen(&self, number: usize, at: f64) -> Option<Vector> {
        Some(self.inertial(number, at)?.turned(-self.sidereal))
    }

    fn inertial(&self, number: usize, at: f64) -> Option<Vector> {
        let satellite = self.satellites.get(number)?;
        let minutes = sgp4::MinutesSinceEpoch(satellite.age + at / 60.0);
        let prediction = satellite.constants.propagate(minutes).ok()?;
        let [x, y, z] = prediction.position;
        let place = Vector { x, y, z };
        (place.length() >= MEAN_RADIUS).then_some(place)
    }
}

/// For each satellite, the elements whose date is nearest to time 0, in the order of the file.
fn nearest(sets: Vec<(Set, sgp4::Constants)>, start: Date) -> Vec<(Set, sgp4::Constants)> {
    let mut best: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
    for (at, (set, _)) in sets.iter().enumerate().filter(|(_, it)| it.0.number != 0) {
        let age = days(start, set.epoch);
        let known = best.entry(set.number).or_insert((at, age));
        // Of several elements with the same date the last is used, because it corrects the others.
        if age <= known.1 {
            *known = (at, age);
        }
    }
    let kept = |at: usize, set: &Set| best.get(&set.number).is_none_or(|it| it.0 == at);
    let all = sets.into_iter().enumerate();
    let all = all.filter(|(at, (set, _))| kept(*at, set));
    all.map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests;
