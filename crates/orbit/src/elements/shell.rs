//! Elements of a shell's satellites, as constellation generators write them.

use std::str::FromStr;

use super::{Catalogue, Elements, ElementsError, Satellite, Set};
use crate::date::Date;

/// Date of the elements: the midnight before J2000, as in Hypatia.
const EPOCH: &str = "2000-01-01T00:00:00";
/// Eccentricity of the orbits: SGP4 requires an ellipse, and this one differs from a circle by less
/// than a metre.
const ECCENTRICITY: f64 = 1e-7;

/// Elements of a satellite on a circular orbit, in degrees and revolutions per day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kepler {
    pub mean_motion: f64,
    pub inclination: f64,
    pub node: f64,
    pub anomaly: f64,
}

impl Elements {
    /// Creates satellites on circular orbits, without drag. `sidereal` is the angle from the first
    /// node to Greenwich at the epoch, rad.
    ///
    /// # Errors
    /// SGP4 rejects the elements.
    pub fn of_shell(
        all: impl Iterator<Item = Kepler>,
        sidereal: f64,
    ) -> Result<Self, ElementsError> {
        let wrong = |what: String| ElementsError::Syntax {
            place: "the shell".to_owned(),
            what,
        };
        let epoch = Date::from_str(EPOCH).map_err(|error| wrong(error.to_string()))?;
        let satellite = |(number, kepler): (u64, Kepler)| {
            let set = Set {
                name: None,
                number,
                epoch,
                mean_motion: kepler.mean_motion,
                eccentricity: ECCENTRICITY,
                inclination: kepler.inclination,
                node: kepler.node,
                perigee: 0.0,
                anomaly: kepler.anomaly.rem_euclid(360.0),
                drag: 0.0,
            };
            Ok::<_, ElementsError>(Satellite {
                name: String::new(),
                constants: set.constants().map_err(wrong)?,
                age: 0.0,
            })
        };
        let satellites = (1..).zip(all).map(satellite).collect::<Result<_, _>>()?;
        Ok(Self {
            satellites,
            sidereal,
            catalogue: Catalogue {
                start: epoch,
                dates: [epoch; 2],
                ages: [0.0; 3],
                notes: Vec::new(),
            },
        })
    }
}
