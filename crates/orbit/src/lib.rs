//! Paths over satellites: where satellites are, which of them a place on the ground sees, over which of them the shortest way
//! leads, and how that changes with time.
//!
//! [`Sky`] holds every convention by which published figures of such paths differ, each with its default and its reason.
//! [`Constellation`] is where the satellites are: a Walker shell, or the orbits of a file of elements. [`follow`] gives the
//! path between two places over time.
//!
//! Lengths are kilometres, angles degrees at the surface and radians inside, times seconds from the epoch. Positions are
//! Earth-fixed: x to 0° N 0° E, z to the north pole.
#![forbid(unsafe_code)]

mod constellation;
mod date;
mod earth;
mod elements;
mod path;
mod pathway;
mod route;
mod shells;
mod sky;
mod vector;

pub use constellation::Constellation;
pub use date::{Date, DateError};
pub use earth::{LIGHT, Place, PlaceError, great_circle};
pub use elements::{Catalogue, ElementsError, MAX_AGE_DAYS, Taking};
pub use path::{Followed, Sample, Summary, follow, follow_from};
pub use pathway::Pathway;
pub use route::Route;
pub use shells::{SHELLS, Shell, shell};
pub use sky::{Access, Earth, Pattern, Relay, Seam, Sky, SkyError};
