//! Grammar of specs, the TOML files that describe simulations, and the records of their runs. This
//! crate depends neither on a protocol nor on the simulator: a [`vocabulary`] provides all names
//! that are not part of the grammar.
//!
//! A spec is read in four steps. The errors of each step contain file, line and key. The steps are:
//! text -> [`tree`] (values with source positions) -> parameters substituted for `"$name"`
//! ([`substitute`]) -> the types of [`spec`] ([`decode`]) -> [`validate`].
#![forbid(unsafe_code)]

pub mod addresses;
pub mod axis;
mod bound;
pub mod checker;
pub mod claim;
pub mod computed;
pub mod constellation;
pub mod decode;
pub mod derived;
pub mod diagnostic;
pub mod document;
pub mod encode;
pub mod flow;
pub mod kind_choice;
pub mod kind_families;
pub mod limits;
pub mod measure;
pub mod names;
pub mod output;
pub mod output_dependencies;
pub mod profiles;
pub mod quantity;
pub mod rates;
pub mod records;
pub mod reference;
pub mod routes;
pub mod schema;
pub mod source_span;
pub mod spec;
pub mod substitute;
pub mod suggest;
pub mod sweep;
pub mod transport;
pub mod tree;
pub mod unit;
pub mod validate;
pub mod value;
pub mod vocabulary;
pub mod wifi;
pub mod world;
mod write;

pub use anabranch_settings::counted;
pub use flow::{Flow, StartTime};
pub use kind_families::{Loss, Propagation, Queue, Workload};
pub use measure::Metric;
pub use spec::{Assumption, Experiment, Paper, Parameters, Record, Spec, Sweep, SweepPoint};
pub use transport::Transport;
pub use world::{Link, Node, World};
