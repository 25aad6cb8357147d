//! Paths over satellites: positions of satellites, their visibility from places on the ground,
//! shortest paths, and changes of paths over time.
//!
//! [`OrbitConfig`] contains all conventions in which published studies of such paths differ, each
//! with its default and its reason. [`Constellation`] computes the positions of satellites in a
//! Walker shell, or in the orbits of a file of elements. [`follow`] computes the path between two
//! places over time. [`Shells`], [`Graph`] and [`Tree`] are for networks: the positions of all
//! satellites, and the shortest paths of all nodes towards one node.
//!
//! Lengths are in kilometres, and times in seconds from the epoch. Angles are in degrees in public
//! interfaces, and in radians internally. Positions are Earth-fixed: the x axis points to 0° N 0°
//! E, the z axis to the north pole.
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
pub use conventions::{
    Earth, OrbitConfig, OrbitConfigError, Pattern, Propagator, Relay, SatelliteSelection, Seam,
    Stagger,
};
pub use date::{Date, DateError};
pub use earth::{LIGHT, Place, PlaceError, great_circle};
pub use elements::{Catalogue, ElementsError, MAX_AGE_DAYS, Taking};
pub use isls::IslsError;
pub use kinds::{KINDS, kinds};
pub use path_delay::Pathway;
pub use path_timeline::{Followed, PathSample, PathSummary, follow, follow_from};
pub use places::{NamedPlace, places};
pub use presets::{SHELLS, ShellPreset, shell};
pub use shells::{Position, Shells};
pub use shortest_path::SatelliteRoute;
pub use snapshot::{Snapshot, StationPath};
pub use tree::{Edge, Graph, Tree};
