//! The probes that `[[record]]` can name of a flow, beside those of its transport ([`anabranch_transport::Probe`]).
//!
//! A probe is one file here, which declares how specs name it, and one line in [`KINDS`]. A program adds its own with
//! [`Standard::with_probe`](crate::kinds::Standard::with_probe).

use anabranch_transport::Nanos;

use crate::agent::series::Series;

mod goodput;

/// Every probe: one line for each.
pub const KINDS: &[&Entry] = &[&goodput::ENTRY];

/// A probe that specs can name.
#[derive(Debug)]
pub struct Entry {
    /// Its name in specs and series files. That of a probe of a transport is taken.
    pub name: &'static str,
    /// What it is, and its unit.
    pub about: &'static str,
    /// Makes one for a member of a flow.
    pub make: fn(Asked) -> Box<dyn Series>,
}

/// What a record asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The width of bins, where it has any; above 0.
    pub bin: Nanos,
}
