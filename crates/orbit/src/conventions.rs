//! Conventions: the modelling choices in which published figures of satellite paths differ.

use anabranch_settings::{Choice, Kind, SettingError, Value, settings, spelled};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

/// How the planes of a shell are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Over 360 degrees: satellites of neighbouring planes move in the same direction.
    Delta,
    /// Over 180 degrees, for polar orbits: satellites of the first and the last plane move in
    /// opposite directions.
    Star,
}
spelled!(Pattern: Pattern::Delta = "delta", Pattern::Star = "star");

/// The shape of the Earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earth {
    /// A sphere of 6371.0088 km, which is the reference of altitudes.
    Sphere,
    /// The ellipsoid of WGS 84; the reference of altitudes is the equatorial radius, 6378.137 km.
    Wgs84,
    /// The ellipsoid of WGS 72, which SGP4 uses, as in Hypatia; the reference of altitudes is the
    /// equatorial radius, 6378.135 km.
    Wgs72,
    /// The ellipsoid of the library ephem, which Hypatia uses for distances: 6378.16 km, 1/298.25.
    /// The library also uses this radius as SGP4's unit of length, which makes orbits 27 m larger.
    Ephem,
}
spelled!(Earth: Earth::Sphere = "sphere", Earth::Wgs84 = "wgs84", Earth::Wgs72 = "wgs72", Earth::Ephem = "ephem");

/// Computation of the positions of a shell's satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagator {
    /// Circular orbit with a constant rate.
    Circular,
    /// SGP4 with WGS 72 and no drag, from elements at the epoch.
    Sgp4,
}
spelled!(Propagator: Propagator::Circular = "circular", Propagator::Sgp4 = "sgp4");

/// Phase offset between the satellites of neighbouring planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stagger {
    /// By the phasing, from each plane to the next.
    Walker,
    /// Half a spacing in planes of odd number, none in those of even number; the phasing is not
    /// used.
    Alternating,
}
spelled!(Stagger: Stagger::Walker = "walker", Stagger::Alternating = "alternating");

/// Whether the last plane has links to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seam {
    /// The last plane has links to the first.
    Closed,
    /// The last plane has no links to the first.
    Open,
}
spelled!(Seam: Seam::Closed = "closed", Seam::Open = "open");

/// Choice of the satellite that a place on the ground uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The satellite on the shortest path.
    Shortest,
    /// The nearest satellite, even if the remaining path is longer.
    Nearest,
}
spelled!(Access: Access::Shortest = "shortest", Access::Nearest = "nearest");

/// Forwarding of received packets by satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// Over links between satellites: to the next and the previous satellite of the plane, and to
    /// one in each neighbouring plane ("+grid").
    Isl,
    /// Directly to the ground: one satellite sees both ends, or one end and a gateway.
    BentPipe,
}
spelled!(Relay: Relay::Isl = "isl", Relay::BentPipe = "bent-pipe");

/// The kind of an angle in degrees.
const fn degrees(least: f64, most: f64) -> Kind {
    Kind::Number {
        least,
        most,
        above: false,
        step: 0.0,
    }
}

/// The word for an absent limit.
const OFF: &[Choice] = &[Choice::new("off")];

const REVOLUTIONS: Kind = Kind::Number {
    least: 0.5,
    most: 17.0,
    above: false,
    step: 0.0,
};

const RANGE: Kind = Kind::Number {
    least: 0.0,
    most: 100_000.0,
    above: true,
    step: 0.0,
};

settings! {
    /// A shell of satellites, and every convention by which a path over it is computed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrbitConfig {
        /// Altitude of the shell above the Earth's radius, km.
        altitude: f64 = 550.0,
            Kind::Number { least: 160.0, most: 40_000.0, above: false, step: 0.0 }, "";
        /// Revolutions a day, instead of those of the altitude.
        mean_motion: Option<f64> = None, Kind::Either(OFF, &REVOLUTIONS), "";
        /// Computation of positions: on circular orbits, or by SGP4 (WGS 72, without drag).
        propagator: Propagator = Propagator::Circular, Propagator::KIND, "";
        /// Inclination of the orbits, degrees.
        inclination: f64 = 53.0, degrees(0.0, 180.0), "";
        /// Number of planes.
        planes: u32 = 24, Kind::Count { least: 1, most: 1000 }, "";
        /// Satellites in each plane.
        satellites: u32 = 66, Kind::Count { least: 1, most: 1000 }, "";
        /// Walker's phasing factor F: from plane to plane, satellites are F x 360 / (planes x
        /// satellites) degrees further. A multiple of one half is usual: with `planes` / 2 each
        /// plane is shifted by half a spacing.
        phasing: f64 = 1.0, Kind::Number { least: 0.0, most: 1000.0, above: false, step: 0.0 }, "";
        /// Shift of planes relative to each other: `walker`, by the phasing; `alternating`, planes
        /// of odd number by half a spacing, so that links between planes zigzag, as in Hypatia.
        stagger: Stagger = Stagger::Walker, Stagger::KIND, "";
        /// Distribution of the planes. `delta`: over 360 degrees. `star`: over 180 degrees, for
        /// polar orbits.
        pattern: Pattern = Pattern::Delta, Pattern::KIND, "";
        /// Links between the last plane and the first (`closed`), or none (`open`). `star` has an
        /// open seam: satellites on its two sides move in opposite directions.
        seam: Seam = Seam::Closed, Seam::KIND, "";
        /// Forwarding by satellites: over links between satellites (`isl`, the +grid), or directly
        /// to the ground (`bent-pipe`).
        relay: Relay = Relay::Isl, Relay::KIND, "";
        /// Satellite that an end uses. `shortest`: the satellite on the shortest path. `nearest`:
        /// the nearest satellite, even if the remaining path is longer.
        access: Access = Access::Shortest, Access::KIND, "";
        /// Least elevation of a satellite above the horizon, degrees. Starlink's filings have 25,
        /// later 40. A larger value models obstacles around the dish. With a negative value links
        /// pass through the Earth, as in some published models.
        min_elevation: f64 = 25.0, degrees(-90.0, 89.0), "";
        /// Greatest distance from a place on the ground to a satellite, km, in addition to the
        /// least elevation.
        max_range: Option<f64> = None, Kind::Either(OFF, &RANGE), "";
        /// Time between two computations of the path, which keeps its satellites in between.
        /// Starlink: 15 s.
        interval: Nanos = 15 * SECOND, Kind::Duration { least: MILLISECOND, most: 86_400 * SECOND }, "";
        /// The shape of the Earth: `sphere`, as in most studies, `wgs84`, `wgs72`, or `ephem`, the
        /// Earth of the library that Hypatia uses.
        earth: Earth = Earth::Sphere, Earth::KIND, "";
        /// Planes drift by the Earth's flattening (J2): 4.5 degrees a day at 550 km and 53 degrees.
        /// Off: no drift, as in most studies.
        j2: bool = false, Kind::Flag, "";
        /// Rotation of the Earth at the epoch, degrees: from the first plane's ascending node to
        /// Greenwich.
        rotation: f64 = 0.0, degrees(-360.0, 360.0), "";
        /// The Earth rotates. Off: the Earth does not rotate, as in some studies.
        earth_rotates: bool = true, Kind::Flag, "";
        /// Minimum altitude of a link between satellites, km: lower links would pass through the
        /// atmosphere and are not used.
        isl_clearance: f64 = 80.0,
            Kind::Number { least: 0.0, most: 1000.0, above: false, step: 0.0 }, "";
        /// Speed in fibre between a gateway and the other end, as a share of the speed of light (1
        /// / 1.468).
        fibre_speed: f64 = 0.681, Kind::Number { least: 0.0, most: 1.0, above: true, step: 0.0 }, "";
        /// Length of the fibre divided by that of the great circle.
        fibre_detour: f64 = 1.0, Kind::Number { least: 1.0, most: 10.0, above: false, step: 0.0 }, "";
    }
    beside {}
}

/// Contradicting conventions.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OrbitConfigError {
    /// A value out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Elements that SGP4 does not accept.
    #[error("`propagator`: {0}")]
    Sgp4(String),
    /// A star pattern with a closed seam.
    #[error(
        "`seam`: found \"closed\"; allowed: \"open\", since `pattern` is \"star\": satellites of its first and last planes move in opposite directions"
    )]
    Seam,
    /// A phasing of a whole turn or more.
    #[error("`phasing`: found {found}; allowed: 0 to {most}, less than the number of planes")]
    Phasing {
        /// The value found.
        found: f64,
        /// The largest allowed value.
        most: u32,
    },
    /// Too many satellites.
    #[error("`planes` x `satellites`: found {found}; allowed: 1 to {most}")]
    Satellites {
        /// The number found.
        found: u64,
        /// The largest allowed number.
        most: u64,
    },
}

/// Maximum number of satellites of a constellation.
pub(crate) const MAX_SATELLITES: u64 = 50_000;

impl OrbitConfig {
    /// Whether a link of this length between a place and a satellite is possible, km.
    pub(crate) fn reaches(&self, distance: f64) -> bool {
        self.max_range.is_none_or(|most| distance <= most)
    }

    /// Checks each value, and their combination.
    ///
    /// # Errors
    /// The first fault: the value found, and the values allowed.
    pub fn check(&self) -> Result<(), OrbitConfigError> {
        self.check_ranges()?;
        if self.pattern == Pattern::Star && self.seam == Seam::Closed {
            return Err(OrbitConfigError::Seam);
        }
        if self.phasing >= f64::from(self.planes) {
            return Err(OrbitConfigError::Phasing {
                found: self.phasing,
                most: self.planes - 1,
            });
        }
        let found = u64::from(self.planes) * u64::from(self.satellites);
        if found > MAX_SATELLITES {
            return Err(OrbitConfigError::Satellites {
                found,
                most: MAX_SATELLITES,
            });
        }
        Ok(())
    }
}
