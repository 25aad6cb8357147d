//! Real satellites: two-line elements, propagated by SGP4.

use sgp4::chrono::NaiveDateTime;

use crate::sky::{MOST, SkyError};
use crate::vector::Vector;

/// A file of elements that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ElementsError {
    /// Not two-line elements.
    #[error(
        "line {line}: {what}; expected are two lines of elements for each satellite, with or without a line of its name before"
    )]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// No satellite at all, or too many.
    #[error("found {found} satellites; allowed: 1 to {MOST}")]
    Count {
        /// How many.
        found: usize,
    },
    /// Elements say nothing of links between satellites.
    #[error(
        "`relay`: found \"isl\"; allowed: \"bent-pipe\", since two-line elements do not say which satellites have links"
    )]
    Relay,
    /// The conventions do not go together.
    #[error(transparent)]
    Sky(#[from] SkyError),
}

/// One satellite.
#[derive(Clone, Debug)]
struct Satellite {
    name: String,
    constants: sgp4::Constants,
    /// Minutes from its elements' epoch to the constellation's.
    age: f64,
}

/// Satellites with elements. The epoch of the constellation is the latest of theirs.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    satellites: Vec<Satellite>,
    /// Greenwich mean sidereal time at the epoch, rad.
    sidereal: f64,
}

/// Sidereal rotation of the Earth, rad/s (IAU 1982, at J2000).
const SIDEREAL: f64 = 7.292_115_855_3e-5;

/// Greenwich mean sidereal time (IAU 1982), rad; UTC stands for UT1, which is less than a second of time away.
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

fn minutes(from: &NaiveDateTime, to: &NaiveDateTime) -> f64 {
    let span = to.signed_duration_since(*from);
    span.num_seconds() as f64 / 60.0 + f64::from(span.subsec_nanos()) * 1e-9 / 60.0
}

impl Elements {
    pub fn read(text: &str) -> Result<Self, ElementsError> {
        let wrong = |line: usize, what: String| ElementsError::Syntax {
            line: line + 1,
            what,
        };
        let mut read = Vec::new();
        let mut name: Option<&str> = None;
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        while let Some((at, line)) = lines.next() {
            let line = line.trim_end();
            if !line.starts_with("1 ") {
                if name.is_some() {
                    return Err(wrong(
                        at,
                        format!(
                            "found {line:?}; expected line 1 of two-line elements, or the name of a satellite"
                        ),
                    ));
                }
                name = Some(line);
                continue;
            }
            let Some((_, second)) = lines.next() else {
                return Err(wrong(
                    at,
                    "the second line of the elements is missing".to_owned(),
                ));
            };
            let title = name
                .take()
                .map(|name| name.trim_start_matches("0 ").trim().to_owned());
            let elements =
                sgp4::Elements::from_tle(title, line.as_bytes(), second.trim_end().as_bytes());
            let elements = elements.map_err(|error| wrong(at, error.to_string()))?;
            let constants = sgp4::Constants::from_elements(&elements);
            let constants = constants.map_err(|error| wrong(at, error.to_string()))?;
            read.push((elements, constants));
        }
        let count = ElementsError::Count { found: read.len() };
        let Some(epoch) = read.iter().map(|(elements, _)| elements.datetime).max() else {
            return Err(count);
        };
        if read.len() as u64 > MOST {
            return Err(count);
        }
        let satellite = |(elements, constants): (sgp4::Elements, sgp4::Constants)| Satellite {
            name: elements
                .object_name
                .unwrap_or_else(|| elements.norad_id.to_string()),
            constants,
            age: minutes(&elements.datetime, &epoch),
        };
        Ok(Self {
            satellites: read.into_iter().map(satellite).collect(),
            sidereal: sidereal(&epoch),
        })
    }

    pub fn len(&self) -> usize {
        self.satellites.len()
    }

    pub fn name(&self, number: usize) -> &str {
        &self.satellites[number].name
    }

    /// Earth-fixed, from SGP4's frame (TEME) by the mean sidereal time; polar motion, 10 m, is left out.
    pub fn position(&self, number: usize, at: f64) -> Option<Vector> {
        let satellite = self.satellites.get(number)?;
        let minutes = sgp4::MinutesSinceEpoch(satellite.age + at / 60.0);
        let prediction = satellite.constants.propagate(minutes).ok()?;
        let [x, y, z] = prediction.position;
        Some(Vector { x, y, z }.turned(-(self.sidereal + SIDEREAL * at)))
    }
}

#[cfg(test)]
mod tests;
