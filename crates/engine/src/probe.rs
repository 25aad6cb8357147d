//! The probes of a flow that `[[record]]` can name, in addition to those of its transport
//! ([`anabranch_transport::Probe`]).
//!
//! A probe is one file here, which declares its name in specs, and one line in [`KINDS`]. A program
//! can add probes with [`Standard::with_probe`](crate::kinds::Standard::with_probe).

use anabranch_transport::Nanos;

use crate::agent::series::Series;

mod goodput;

/// All probes, one line for each.
pub const KINDS: &[&ProbeEntry] = &[&goodput::ENTRY];

/// A probe that specs can name.
#[derive(Debug)]
pub struct ProbeEntry {
    /// Name in specs and series files. It must differ from the names of transports' probes.
    pub name: &'static str,
    /// Description and unit.
    pub about: &'static str,
    /// Builds a probe for a member of a flow.
    pub make: fn(RecordOptions) -> Box<dyn Series>,
}

/// The options of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// The width of bins, if the probe uses bins; above 0.
    pub bin: Nanos,
}
