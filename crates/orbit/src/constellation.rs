//! Positions of satellites in shells and from elements.

use std::f64::consts::TAU;

use crate::conventions::{
    OrbitConfig, OrbitConfigError, Pattern, Propagator, Relay, Seam, Stagger,
};
use crate::earth::EQUATOR;
use crate::elements::{Catalogue, Elements, ElementsError, Kepler, Taking};
use crate::isls;
use crate::vector::Vector;

/// Gravitational parameter of the Earth (WGS 84), km³/s².
const GRAVITY: f64 = 398_600.441_8;
/// Second zonal harmonic J2 of the Earth, which results from its flattening (EGM 96).
const J2: f64 = 1.082_626_68e-3;
/// Rotation rate of the Earth (WGS 84), rad/s.
const ROTATION: f64 = 7.292_115e-5;

/// A set of satellites, numbered from 0.
#[derive(Clone, Debug)]
pub struct Constellation {
    orbits: Orbits,
    sky: OrbitConfig,
}

#[derive(Clone, Debug)]
enum Orbits {
    Walker(Walker),
    /// A shell whose positions are computed by SGP4.
    Propagated(Walker, Elements),
    /// Satellites from a file of elements, and the links between them.
    Elements(Elements, Vec<[usize; 2]>),
}

impl Orbits {
    fn shell(&self) -> Option<&Walker> {
        match self {
            Orbits::Walker(walker) | Orbits::Propagated(walker, _) => Some(walker),
            Orbits::Elements(..) => None,
        }
    }
}

/// A shell of circular orbits.
#[derive(Clone, Debug)]
struct Walker {
    radius: f64,
    sin_inclination: f64,
    cos_inclination: f64,
    /// Rate of the argument of latitude, rad/s.
    motion: f64,
    /// Drift rate of the ascending nodes, rad/s.
    drift: f64,
    planes: u32,
    each: u32,
    phasing: f64,
    stagger: Stagger,
    /// Angle between the nodes of neighbouring planes, rad.
    apart: f64,
}

impl Walker {
    fn new(sky: &OrbitConfig) -> Self {
        let radius = match sky.mean_motion {
            None => sky.altitude + sky.earth.radius(),
            Some(a_day) => {
                let motion = TAU * a_day / 86_400.0;
                (GRAVITY / (motion * motion)).cbrt()
            }
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
            // Sum of the rates of mean anomaly and perigee for a circular orbit, to first order in
            // J2.
            motion: motion * (1.0 + 1.5 * flat * (4.0 * cos_inclination * cos_inclination - 1.0)),
            drift: -1.5 * motion * flat * cos_inclination,
            planes: sky.planes,
            each: sky.satellites,
            phasing: sky.phasing,
            stagger: sky.stagger,
            apart: spread / f64::from(sky.planes),
        }
    }

    /// Elements of the shell's satellites at the epoch, in the order of their numbers.
    fn elements(&self, sky: &OrbitConfig) -> Result<Elements, ElementsError> {
        let motion = match sky.mean_motion {
            Some(a_day) => a_day,
            None => (GRAVITY / self.radius.powi(3)).sqrt() * 86_400.0 / TAU,
        };
        let apart = self.apart.to_degrees();
        let all = (0..(self.planes * self.each) as usize).map(|number| Kepler {
            mean_motion: motion,
            inclination: sky.inclination,
            node: apart * f64::from(self.split(number).0),
            anomaly: 360.0 * self.phase(number),
        });
        Elements::of_shell(all, sky.rotation.to_radians())
    }

    /// Plane of a satellite, and its index in the plane.
    fn split(&self, number: usize) -> (u32, u32) {
        let number = number as u32;
        (number / self.each, number % self.each)
    }

    fn number(&self, plane: u32, place: u32) -> usize {
        (plane * self.each + place % self.each) as usize
    }

    /// Phase of a satellite in its orbit at the epoch, as a fraction of a revolution from the
    /// ascending node.
    fn phase(&self, number: usize) -> f64 {
        let (plane, place) = self.split(number);
        let each = f64::from(self.each);
        let shift = match self.stagger {
            Stagger::Walker => self.phasing * f64::from(plane) / (f64::from(self.planes) * each),
            Stagger::Alternating => f64::from(plane % 2) / (2.0 * each),
        };
        f64::from(place) / each + shift
    }

    fn inertial(&self, number: usize, at: f64) -> Vector {
        let (plane, _) = self.split(number);
        let phase = self.phase(number);
        let (sin, cos) = libm::sincos(TAU * phase + self.motion * at);
        let in_plane = Vector {
            x: self.radius * cos,
            y: self.radius * sin * self.cos_inclination,
            z: self.radius * sin * self.sin_inclination,
        };
        in_plane.turned(self.apart * f64::from(plane) + self.drift * at)
    }

    /// Satellites to which a satellite has links: two in its plane, and one in each neighbouring
    /// plane.
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
        // Around all planes the phase offsets add up to this number of slots, rounded down to whole
        // slots.
        let turn = match self.stagger {
            Stagger::Walker => self.phasing as u32 % self.each,
            Stagger::Alternating => 0,
        };
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
    /// Creates the shell that `sky` describes.
    ///
    /// # Errors
    /// The errors of [`OrbitConfig::check`].
    pub fn walker(sky: &OrbitConfig) -> Result<Self, OrbitConfigError> {
        sky.check()?;
        let walker = Walker::new(sky);
        let orbits = match sky.propagator {
            Propagator::Circular => Orbits::Walker(walker),
            Propagator::Sgp4 => {
                let elements = walker.elements(sky);
                let elements =
                    elements.map_err(|error| OrbitConfigError::Sgp4(error.to_string()))?;
                Orbits::Propagated(walker, elements)
            }
        };
        Ok(Self {
            orbits,
            sky: sky.clone(),
        })
    }

    /// Creates the satellites from a file of elements: two-line elements, or OMM (CCSDS 502.0-B) as
    /// XML, KVN, CSV or JSON. Time 0 is the latest date of the elements.
    ///
    /// # Errors
    /// The errors of [`Constellation::of_catalogue`].
    pub fn from_elements(text: &str, sky: &OrbitConfig) -> Result<Self, ElementsError> {
        Self::of_catalogue(text, sky, Taking::default())
    }

    /// Like [`Constellation::from_elements`], with a given date of time 0, and optionally with old
    /// elements. Unusable entries are omitted, and counted in the notes of
    /// [`Constellation::catalogue`].
    ///
    /// # Errors
    /// There is no usable entry (the error contains the first fault with its place), most entries
    /// are too old, or conventions contradict each other.
    pub fn of_catalogue(
        text: &str,
        sky: &OrbitConfig,
        taking: Taking,
    ) -> Result<Self, ElementsError> {
        Self::of_linked_catalogue(text, "", sky, taking)
    }

    /// Like [`Constellation::of_catalogue`], with a list of links between satellites. Each line has
    /// the numbers of two satellites, counted from 0 in the order of the file. `relay` must be
    /// "isl" if the list is not empty.
    ///
    /// # Errors
    /// The errors of [`Constellation::of_catalogue`], or a line that is no valid link.
    pub fn of_linked_catalogue(
        text: &str,
        isls: &str,
        sky: &OrbitConfig,
        taking: Taking,
    ) -> Result<Self, ElementsError> {
        sky.check()?;
        let elements = Elements::read(text, taking)?;
        let isls = isls::read(isls, elements.len())?;
        if sky.relay == Relay::Isl && isls.is_empty() {
            return Err(ElementsError::Relay);
        }
        Ok(Self {
            orbits: Orbits::Elements(elements, isls),
            sky: sky.clone(),
        })
    }

    /// Dates and ages of the elements that are used; `None` for a shell.
    pub fn catalogue(&self) -> Option<&Catalogue> {
        match &self.orbits {
            Orbits::Walker(_) | Orbits::Propagated(..) => None,
            Orbits::Elements(elements, _) => Some(elements.catalogue()),
        }
    }

    /// Conventions of the constellation.
    pub fn sky(&self) -> &OrbitConfig {
        &self.sky
    }

    /// Number of satellites.
    pub fn len(&self) -> usize {
        match &self.orbits {
            Orbits::Walker(walker) => (walker.planes * walker.each) as usize,
            Orbits::Propagated(_, elements) | Orbits::Elements(elements, _) => elements.len(),
        }
    }

    /// Whether there are no satellites.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of a satellite: its plane and its index in the plane, or its name in the file.
    pub fn name(&self, number: usize) -> String {
        match &self.orbits {
            Orbits::Walker(walker) | Orbits::Propagated(walker, _) => {
                let (plane, place) = walker.split(number);
                format!("{plane}/{place}")
            }
            Orbits::Elements(elements, _) => elements.name(number).to_owned(),
        }
    }

    /// Earth-fixed position of a satellite `at` seconds after the epoch, km; `None` if its elements
    /// are not valid at that time.
    pub(crate) fn position(&self, number: usize, at: f64) -> Option<Vector> {
        match &self.orbits {
            Orbits::Walker(walker) => {
                let turned = if self.sky.earth_rotates {
                    ROTATION * at
                } else {
                    0.0
                };
                let turned = turned + self.sky.rotation.to_radians();
                Some(walker.inertial(number, at).turned(-turned))
            }
            Orbits::Propagated(_, elements) => {
                let place = match self.sky.earth_rotates {
                    true => elements.position(number, at)?,
                    false => elements.frozen(number, at)?,
                };
                Some(place.times(self.sky.earth.scale()))
            }
            Orbits::Elements(elements, _) => {
                let place = elements.position(number, at)?;
                Some(place.times(self.sky.earth.scale()))
            }
        }
    }

    /// Links between satellites, each once with the lower number first, in ascending order; empty
    /// unless `relay` is "isl".
    pub fn isls(&self) -> Vec<[usize; 2]> {
        if self.sky.relay == Relay::BentPipe {
            return Vec::new();
        }
        let walker = match &self.orbits {
            Orbits::Walker(walker) | Orbits::Propagated(walker, _) => walker,
            Orbits::Elements(_, isls) => return isls.clone(),
        };
        let (mut all, mut found) = (Vec::new(), Vec::new());
        for number in 0..self.len() {
            walker.neighbours(number, self.sky.seam, &mut found);
            all.extend(
                found
                    .drain(..)
                    .map(|other| [number.min(other), number.max(other)]),
            );
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Minimum distance of an inter-satellite link from the Earth's centre, km.
    pub(crate) fn horizon(&self) -> f64 {
        self.sky.earth.radius() + self.sky.isl_clearance
    }

    /// Duration of a revolution, seconds; `None` if the constellation is not a shell.
    pub fn period(&self) -> Option<f64> {
        self.orbits.shell().map(|walker| TAU / walker.motion)
    }
}

#[cfg(test)]
mod tests;
