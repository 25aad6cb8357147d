//! Places on the ground, and shapes of the Earth.

use std::fmt;
use std::str::FromStr;

use crate::conventions::Earth;
use crate::vector::Vector;

/// Speed of light in vacuum, km/s.
pub const LIGHT: f64 = 299_792.458;
/// Mean radius of the Earth (IUGG), km, which is the radius of the sphere.
pub(crate) const MEAN_RADIUS: f64 = 6371.0088;
/// Equatorial radius (WGS 84), km.
pub(crate) const EQUATOR: f64 = 6378.137;
/// Flattening (WGS 84).
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Equatorial radius (WGS 72), km.
const EQUATOR_72: f64 = 6378.135;
/// Flattening (WGS 72).
const FLATTENING_72: f64 = 1.0 / 298.26;
/// Equatorial radius in km, and flattening, in the library ephem 4 (libastro, `earthsat.c`).
const EQUATOR_EPHEM: f64 = 6378.16;
const FLATTENING_EPHEM: f64 = 1.0 / 298.25;

impl Earth {
    /// Radius from which altitudes count, km.
    pub(crate) fn radius(self) -> f64 {
        match self {
            Earth::Sphere => MEAN_RADIUS,
            Earth::Wgs84 => EQUATOR,
            Earth::Wgs72 => EQUATOR_72,
            Earth::Ephem => EQUATOR_EPHEM,
        }
    }

    fn flattening(self) -> f64 {
        match self {
            Earth::Sphere => 0.0,
            Earth::Wgs84 => FLATTENING,
            Earth::Wgs72 => FLATTENING_72,
            Earth::Ephem => FLATTENING_EPHEM,
        }
    }

    /// Factor by which positions from SGP4 are scaled.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Earth::Ephem => EQUATOR_EPHEM / EQUATOR_72,
            _ => 1.0,
        }
    }
}

/// A place on the ground, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Latitude, degrees north of the equator, -90 to 90.
    pub latitude: f64,
    /// Longitude, degrees east of Greenwich, -180 to 180.
    pub longitude: f64,
}

/// Error: the text is not a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "found {found:?}; a place is LATITUDE,LONGITUDE in degrees, -90 to 90 and -180 to 180: 40.7,-74.0"
)]
pub struct PlaceError {
    found: String,
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let wrong = || PlaceError {
            found: text.to_owned(),
        };
        let (latitude, longitude) = text.split_once(',').ok_or_else(wrong)?;
        let number = |part: &str, most: f64| {
            let number: Option<f64> = part.trim().parse().ok();
            number.filter(|it| it.abs() <= most).ok_or_else(wrong)
        };
        Ok(Self {
            latitude: number(latitude, 90.0)?,
            longitude: number(longitude, 180.0)?,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |number: f64, positive, negative| {
            let side = if number < 0.0 { negative } else { positive };
            format!("{}° {side}", number.abs())
        };
        let latitude = side(self.latitude, 'N', 'S');
        write!(f, "{latitude} {}", side(self.longitude, 'E', 'W'))
    }
}

impl Place {
    fn radians(self) -> (f64, f64) {
        (self.latitude.to_radians(), self.longitude.to_radians())
    }

    /// Direction of the zenith, a unit vector.
    pub(crate) fn up(self) -> Vector {
        let (latitude, longitude) = self.radians();
        let (sin_latitude, cos_latitude) = libm::sincos(latitude);
        let (sin, cos) = libm::sincos(longitude);
        Vector {
            x: cos_latitude * cos,
            y: cos_latitude * sin,
            z: sin_latitude,
        }
    }

    /// Earth-fixed position of the place at sea level, km.
    pub(crate) fn position(self, earth: Earth) -> Vector {
        let up = self.up();
        let squared = earth.flattening() * (2.0 - earth.flattening());
        let radius = earth.radius() / (1.0 - squared * up.z * up.z).sqrt();
        let squeeze = 1.0 - squared;
        Vector {
            x: radius * up.x,
            y: radius * up.y,
            z: radius * squeeze * up.z,
        }
    }

    /// Sine of the elevation of a satellite above the horizon.
    pub(crate) fn sine_of_elevation(self, own: Vector, satellite: Vector) -> f64 {
        let sight = satellite.minus(own);
        sight.dot(self.up()) / sight.length()
    }
}

/// Length of the great circle between two places, on the sphere of the Earth's mean radius, km.
pub fn great_circle(from: Place, to: Place) -> f64 {
    let (from, to) = (from.up(), to.up());
    // Computed from the chord, because that is precise even for places that are close to each
    // other.
    2.0 * libm::asin((from.distance(to) / 2.0).min(1.0)) * MEAN_RADIUS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse().expect("a place")
    }

    #[test]
    fn places_are_read_and_shown() {
        let york = place("40.7, -74.0");
        assert_eq!(york.to_string(), "40.7° N 74° W");
        for wrong in ["", "40.7", "91,0", "0,181", "a,b", "NaN,0", "1,2,3"] {
            let error = wrong.parse::<Place>().expect_err(wrong).to_string();
            assert!(error.contains("LATITUDE,LONGITUDE"), "{error}");
        }
    }

    /// A quarter of a great circle, and the distance from New York to London, which is 5,570 km.
    #[test]
    fn great_circles() {
        let quarter = great_circle(place("0,0"), place("0,90"));
        assert!((quarter - MEAN_RADIUS * std::f64::consts::FRAC_PI_2).abs() < 1e-9);
        let atlantic = great_circle(place("40.7128,-74.0060"), place("51.5074,-0.1278"));
        assert!((atlantic - 5570.2).abs() < 0.5, "{atlantic}");
        assert_eq!(great_circle(place("1,1"), place("1,1")), 0.0);
    }

    /// In WGS 84 the pole has the radius 6,356.752 km, and a place at 45° N has x = 4517.591 and
    /// z = 4487.348 km.
    #[test]
    fn the_ellipsoid_is_flat_at_the_poles() {
        let pole = place("90,0").position(Earth::Wgs84);
        assert!((pole.z - 6_356.752_314_245).abs() < 1e-6 && pole.x.abs() < 1e-9);
        let middle = place("45,0").position(Earth::Wgs84);
        assert!((middle.x - 4_517.590_879).abs() < 1e-5, "{middle:?}");
        assert!((middle.z - 4_487.348_409).abs() < 1e-5, "{middle:?}");
    }
}
