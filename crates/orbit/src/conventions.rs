//! Conventions: modelling choices in which published studies of satellite paths differ.

use anabranch_settings::{Choice, Kind, SettingError, SettingValue, settings, spelled};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

/// Distribution of the planes of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Over 360 degrees, so that satellites of neighbouring planes move in the same direction.
    Delta,
    /// Over 180 degrees, for polar orbits. Satellites of the first and the last plane move in
    /// opposite directions.
    Star,
}
spelled!(Pattern: Pattern::Delta = "delta", Pattern::Star = "star");

/// Shape of the Earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earth {
    /// Sphere of 6371.0088 km, from which altitudes count.
    Sphere,
    /// Ellipsoid of WGS 84; altitudes count from the equatorial radius, 6378.137 km.
    Wgs84,
    /// Ellipsoid of WGS 72, which SGP4 uses, as in Hypatia; altitudes count from the equatorial
    /// radius, 6378.135 km.
    Wgs72,
    /// Ellipsoid of the library ephem, which Hypatia uses for distances: 6378.16 km, flattening
    /// 1/298.25. The library also uses this radius as SGP4's unit of length, which makes orbits 27
    /// m larger.
    Ephem,
}
spelled!(Earth: Earth::Sphere = "sphere", Earth::Wgs84 = "wgs84", Earth::Wgs72 = "wgs72", Earth::Ephem = "ephem");

/// Propagator, which computes the positions of a shell's satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagator {
    /// Circular orbits with a constant angular rate.
    Circular,
    /// SGP4 with WGS 72 and without drag, from elements at the epoch.
    Sgp4,
}
spelled!(Propagator: Propagator::Circular = "circular", Propagator::Sgp4 = "sgp4");

/// Phase offset between the satellites of neighbouring planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stagger {
    /// The phasing shifts each plane relative to the one before.
    Walker,
    /// Planes of odd number are shifted by half a spacing, and those of even number are not; the
    /// phasing is ignored.
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

/// Selection of the satellite that a place on the ground uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SatelliteSelection {
    /// The satellite on the shortest path.
    Shortest,
    /// The nearest satellite, even if the remaining path is longer.
    Nearest,
}
spelled!(SatelliteSelection: SatelliteSelection::Shortest = "shortest", SatelliteSelection::Nearest = "nearest");

/// Forwarding of received packets by satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// Over links between satellites: to the next and the previous satellite of the plane, and to
    /// one satellite in each neighbouring plane ("+grid").
    Isl,
    /// Directly to the ground: one satellite must see both ends, or one end and a gateway.
    BentPipe,
}
spelled!(Relay: Relay::Isl = "isl", Relay::BentPipe = "bent-pipe");

/// Value kind of an angle in degrees.
const fn degrees(least: f64, most: f64) -> Kind {
    Kind::Number {
        least,
        most,
        above: false,
        step: 0.0,
    }
}

/// Word for a limit that is not set.
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
    /// Configuration of a shell of satellites, with all conventions by which a path over it is
    /// computed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrbitConfig {
        /// Altitude of the shell above the radius of the Earth, km.
        altitude: f64 = 550.0,
            Kind::Number { least: 160.0, most: 40_000.0, above: false, step: 0.0 }, "";
        /// Revolutions per day, in place of those that follow from the altitude.
        mean_motion: Option<f64> = None, Kind::Either(OFF, &REVOLUTIONS), "";
        /// Method that computes positions: circular orbits, or SGP4 (WGS 72, without drag).
        propagator: Propagator = Propagator::Circular, Propagator::KIND, "";
        /// Inclination of the orbits, degrees.
        inclination: f64 = 53.0, degrees(0.0, 180.0), "";
        /// Number of orbital planes.
        planes: u32 = 24, Kind::Count { least: 1, most: 1000 }, "";
        /// Number of satellites in each plane.
        satellites: u32 = 66, Kind::Count { least: 1, most: 1000 }, "";
        /// Walker's phasing factor F: from each plane to the next, satellites are shifted by F x
        /// 360 / (planes x satellites) degrees. F is usually a multiple of one half; with `planes`
        /// / 2 each plane is shifted by half a spacing.
        phasing: f64 = 1.0, Kind::Number { least: 0.0, most: 1000.0, above: false, step: 0.0 }, "";
        /// Shift of the planes relative to each other. `walker`: according to the phasing;
        /// `alternating`: planes of odd number by half a spacing, so that links between planes
        /// zigzag, as in Hypatia.
        stagger: Stagger = Stagger::Walker, Stagger::KIND, "";
        /// Distribution of the planes. `delta`: over 360 degrees. `star`: over 180 degrees, for
        /// polar orbits.
        pattern: Pattern = Pattern::Delta, Pattern::KIND, "";
        /// Links between the last plane and the first: present (`closed`) or not (`open`). A `star`
        /// must have an open seam, because satellites on the two sides of the seam move in opposite
        /// directions.
        seam: Seam = Seam::Closed, Seam::KIND, "";
        /// Forwarding of packets by satellites: over links between satellites (`isl`, the +grid),
        /// or directly to the ground (`bent-pipe`).
        relay: Relay = Relay::Isl, Relay::KIND, "";
        /// Satellite that an end of the path uses. `shortest`: the satellite on the shortest path.
        /// `nearest`: the nearest satellite, even if the remaining path is longer.
        access: SatelliteSelection = SatelliteSelection::Shortest, SatelliteSelection::KIND, "";
        /// Minimum elevation of a satellite above the horizon, degrees. Filings for Starlink state
        /// 25, and later ones 40. A larger value can model obstacles around the antenna. With a
        /// negative value links may pass through the Earth, as in some published models.
        min_elevation: f64 = 25.0, degrees(-90.0, 89.0), "";
        /// Maximum distance from a place on the ground to a satellite, km, in addition to the
        /// minimum elevation.
        max_range: Option<f64> = None, Kind::Either(OFF, &RANGE), "";
        /// Time between two computations of the path, between which the path keeps its satellites.
        /// For Starlink it is 15 s.
        interval: Nanos = 15 * SECOND, Kind::Duration { least: MILLISECOND, most: 86_400 * SECOND }, "";
        /// Shape of the Earth: `sphere`, as in most studies, `wgs84`, `wgs72`, or `ephem`, the
        /// ellipsoid of the library that Hypatia uses.
        earth: Earth = Earth::Sphere, Earth::KIND, "";
        /// The flattening of the Earth (J2) makes planes drift: 4.5 degrees per day at 550 km and
        /// 53 degrees. Off: no drift, as in most studies.
        j2: bool = false, Kind::Flag, "";
        /// Rotation of the Earth at the epoch, degrees: the angle from the ascending node of the
        /// first plane to Greenwich.
        rotation: f64 = 0.0, degrees(-360.0, 360.0), "";
        /// The Earth rotates. Off: the Earth does not rotate, as in some studies.
        earth_rotates: bool = true, Kind::Flag, "";
        /// Minimum altitude of a link between satellites, km. Lower links are not used, because
        /// they would pass through the atmosphere.
        isl_clearance: f64 = 80.0,
            Kind::Number { least: 0.0, most: 1000.0, above: false, step: 0.0 }, "";
        /// Speed of light in the fibre between a gateway and the other end, as a share of that in
        /// vacuum (1 / 1.468).
        fibre_speed: f64 = 0.681, Kind::Number { least: 0.0, most: 1.0, above: true, step: 0.0 }, "";
        /// Length of the fibre divided by the length of the great circle.
        fibre_detour: f64 = 1.0, Kind::Number { least: 1.0, most: 10.0, above: false, step: 0.0 }, "";
    }
    beside {}
}

/// Error: conventions are invalid or contradict each other.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OrbitConfigError {
    /// A value is out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// SGP4 rejects the elements.
    #[error("`propagator`: {0}")]
    Sgp4(String),
    /// The pattern is a star, but the seam is closed.
    #[error(
        "`seam`: found \"closed\"; allowed: \"open\", since `pattern` is \"star\": satellites of its first and last planes move in opposite directions"
    )]
    Seam,
    /// The phasing shifts planes by a whole revolution or more.
    #[error("`phasing`: found {found}; allowed: 0 to {most}, less than the number of planes")]
    Phasing {
        /// Value of the phasing.
        found: f64,
        /// Maximum value.
        most: u32,
    },
    /// There are too many satellites.
    #[error("`planes` x `satellites`: found {found}; allowed: 1 to {most}")]
    Satellites {
        /// Number of satellites.
        found: u64,
        /// Maximum number.
        most: u64,
    },
}

/// Maximum number of satellites of a constellation.
pub(crate) const MAX_SATELLITES: u64 = 50_000;

impl OrbitConfig {
    /// Whether a link between a place and a satellite may have this length, km.
    pub(crate) fn reaches(&self, distance: f64) -> bool {
        self.max_range.is_none_or(|most| distance <= most)
    }

    /// Checks each value, and their combination.
    ///
    /// # Errors
    /// The first invalid value, with the allowed values.
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
