//! Where satellites are.

use std::f64::consts::TAU;

use crate::earth::{EQUATOR, MEAN_RADIUS};
use crate::elements::{Catalogue, Elements, ElementsError, Taking};
use crate::sky::{Earth, Pattern, Relay, Seam, Sky, SkyError};
use crate::vector::Vector;

/// The Earth's gravity (WGS 84), km³/s².
const GRAVITY: f64 = 398_600.441_8;
/// What flattening adds to it (EGM 96).
const J2: f64 = 1.082_626_68e-3;
/// The Earth's rotation (WGS 84), rad/s.
const ROTATION: f64 = 7.292_115e-5;

/// Satellites, by their numbers.
#[derive(Clone, Debug)]
pub struct Constellation {
    orbits: Orbits,
    sky: Sky,
}

#[derive(Clone, Debug)]
enum Orbits {
    Walker(Walker),
    Elements(Elements),
}

/// A shell of circular orbits.
#[derive(Clone, Debug)]
struct Walker {
    radius: f64,
    sin_inclination: f64,
    cos_inclination: f64,
    /// Of the argument of latitude, rad/s.
    motion: f64,
    /// Of the ascending nodes, rad/s.
    drift: f64,
    planes: u32,
    each: u32,
    phasing: u32,
    /// Between the nodes of neighbouring planes, rad.
    apart: f64,
}

impl Walker {
    fn new(sky: &Sky) -> Self {
        let radius = sky.altitude
            + match sky.earth {
                Earth::Sphere => MEAN_RADIUS,
                Earth::Wgs84 => EQUATOR,
            };
        let (sin_inclination, cos_inclination) = libm::sincos(sky.inclination.to_radians());
        let motion = (GRAVITY / (radius * radius * radius)).sqrt();
        let flat = J2 * (EQUATOR / radius) * (EQUATOR / radius);
        let flat = if sky.j2 { flat } else { 0.0 };
        let spread = match sky.pattern {
            Pattern::Delta => TAU,
            Pattern::Star => TAU / 2.0,
        };
        Self {
            radius,
            sin_inclination,
            cos_inclination,
            // Of a circular orbit to first order in J2: the mean anomaly's rate and the perigee's, added.
            motion: motion * (1.0 + 1.5 * flat * (4.0 * cos_inclination * cos_inclination - 1.0)),
            drift: -1.5 * motion * flat * cos_inclination,
            planes: sky.planes,
            each: sky.satellites,
            phasing: sky.phasing,
            apart: spread / f64::from(sky.planes),
        }
    }

    /// Its plane and its place there.
    fn split(&self, number: usize) -> (u32, u32) {
        let number = number as u32;
        (number / self.each, number % self.each)
    }

    fn number(&self, plane: u32, place: u32) -> usize {
        (plane * self.each + place % self.each) as usize
    }

    fn inertial(&self, number: usize, at: f64) -> Vector {
        let (plane, place) = self.split(number);
        let of_all = f64::from(self.planes) * f64::from(self.each);
        let phase = f64::from(place) / f64::from(self.each)
            + f64::from(self.phasing) * f64::from(plane) / of_all;
        let (sin, cos) = libm::sincos(TAU * phase + self.motion * at);
        let in_plane = Vector {
            x: self.radius * cos,
            y: self.radius * sin * self.cos_inclination,
            z: self.radius * sin * self.sin_inclination,
        };
        in_plane.turned(self.apart * f64::from(plane) + self.drift * at)
    }

    /// The satellites that it has links with: two of its plane, one in each neighbouring plane.
    fn neighbours(&self, number: usize, seam: Seam, found: &mut Vec<usize>) {
        let (plane, place) = self.split(number);
        if self.each > 1 {
            found.push(self.number(plane, place + 1));
            found.push(self.number(plane, place + self.each - 1));
        }
        if self.planes < 2 {
            return;
        }
        let last = self.planes - 1;
        let closed = seam == Seam::Closed && self.planes > 2;
        // Around all planes phases add up to so many places.
        let turn = self.phasing % self.each;
        if plane < last {
            found.push(self.number(plane + 1, place));
        } else if closed {
            found.push(self.number(0, place + turn));
        }
        if plane > 0 {
            found.push(self.number(plane - 1, place));
        } else if closed {
            found.push(self.number(last, place + self.each - turn));
        }
    }
}

impl Constellation {
    /// The shell that `sky` describes.
    ///
    /// # Errors
    /// As [`Sky::check`].
    pub fn walker(sky: &Sky) -> Result<Self, SkyError> {
        sky.check()?;
        Ok(Self {
            orbits: Orbits::Walker(Walker::new(sky)),
            sky: sky.clone(),
        })
    }

    /// The satellites of a file of elements: two-line elements, or OMM (CCSDS 502.0-B) as XML, KVN, CSV or JSON. Times count from the latest
    /// date in it.
    ///
    /// # Errors
    /// As [`Constellation::of_catalogue`].
    pub fn from_elements(text: &str, sky: &Sky) -> Result<Self, ElementsError> {
        Self::of_catalogue(text, sky, Taking::default())
    }

    /// The same, with times from a start, and of elements that may be old. An entry that cannot be used is left out, and is counted in the
    /// notes of [`Constellation::catalogue`].
    ///
    /// # Errors
    /// No entry can be used: the first fault with its place. Most entries are too old. The conventions do not go together.
    pub fn of_catalogue(text: &str, sky: &Sky, taking: Taking) -> Result<Self, ElementsError> {
        sky.check()?;
        if sky.relay == Relay::Isl {
            return Err(ElementsError::Relay);
        }
        Ok(Self {
            orbits: Orbits::Elements(Elements::read(text, taking)?),
            sky: sky.clone(),
        })
    }

    /// Dates and ages of the elements that are used; `None` of a shell.
    pub fn catalogue(&self) -> Option<&Catalogue> {
        match &self.orbits {
            Orbits::Walker(_) => None,
            Orbits::Elements(elements) => Some(elements.catalogue()),
        }
    }

    /// The conventions.
    pub fn sky(&self) -> &Sky {
        &self.sky
    }

    /// How many satellites there are.
    pub fn len(&self) -> usize {
        match &self.orbits {
            Orbits::Walker(walker) => (walker.planes * walker.each) as usize,
            Orbits::Elements(elements) => elements.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What to call a satellite: its plane and place, or its name in the file.
    pub fn name(&self, number: usize) -> String {
        match &self.orbits {
            Orbits::Walker(walker) => {
                let (plane, place) = walker.split(number);
                format!("{plane}/{place}")
            }
            Orbits::Elements(elements) => elements.name(number).to_owned(),
        }
    }

    /// Where a satellite is so many seconds after the epoch, Earth-fixed; `None` where its elements no longer tell.
    pub(crate) fn position(&self, number: usize, at: f64) -> Option<Vector> {
        match &self.orbits {
            Orbits::Walker(walker) => {
                let turned = if self.sky.turns { ROTATION * at } else { 0.0 };
                let turned = turned + self.sky.rotation.to_radians();
                Some(walker.inertial(number, at).turned(-turned))
            }
            Orbits::Elements(elements) => elements.position(number, at),
        }
    }

    /// The satellites that `number` has links with.
    pub(crate) fn neighbours(&self, number: usize, found: &mut Vec<usize>) {
        found.clear();
        if let Orbits::Walker(walker) = &self.orbits {
            walker.neighbours(number, self.sky.seam, found);
        }
    }

    /// Below which distance from the Earth's centre a link between satellites does not pass, km.
    pub(crate) fn horizon(&self) -> f64 {
        let radius = match self.sky.earth {
            Earth::Sphere => MEAN_RADIUS,
            Earth::Wgs84 => EQUATOR,
        };
        radius + self.sky.isl_clearance
    }

    /// How long a revolution takes, seconds; of a shell.
    pub fn period(&self) -> Option<f64> {
        match &self.orbits {
            Orbits::Walker(walker) => Some(TAU / walker.motion),
            Orbits::Elements(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
