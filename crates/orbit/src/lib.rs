//! Paths over satellites: where satellites are, which of them a place on the ground sees, over which of them the shortest way
//! leads, and how that changes with time.
//!
//! [`Sky`] holds every convention by which published figures of such paths differ, each with its default and its reason.
//! [`Constellation`] is where the satellites are: a Walker shell, or the orbits of a file of elements. [`follow`] gives the
//! path between two places over time; [`Shells`], [`Graph`] and [`Tree`] are those of whole networks: positions of all satellites, and
//! the shortest paths of all nodes towards one.
//!
//! Lengths are kilometres, angles degrees at the surface and radians inside, times seconds from the epoch. Positions are
//! Earth-fixed: x to 0° N 0° E, z to the north pole.
#![forbid(unsafe_code)]

mod constellation;
mod conventions;
mod date;
mod earth;
mod elements;
mod isls;
mod kinds;
mod path_delay;
mod path_timeline;
mod places;
mod presets;
mod shells;
mod shortest_path;
mod snapshot;
mod tree;
mod vector;

pub use constellation::Constellation;
pub use conventions::{Access, Earth, Pattern, Propagator, Relay, Seam, Sky, SkyError, Stagger};
pub use date::{Date, DateError};
pub use earth::{LIGHT, Place, PlaceError, great_circle};
pub use elements::{Catalogue, ElementsError, MAX_AGE_DAYS, Taking};
pub use isls::IslsError;
pub use kinds::{KINDS, kinds};
pub use path_delay::Pathway;
pub use path_timeline::{Followed, Sample, Summary, follow, follow_from};
pub use places::{NamedPlace, places};
pub use presets::{SHELLS, Shell, shell};
pub use shells::{Position, Shells};
pub use shortest_path::Route;
pub use snapshot::{Snapshot, StationPath};
pub use tree::{Edge, Graph, Tree};
