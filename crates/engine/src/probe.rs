//! Probes of a flow that `[[record]]` can name, in addition to those of its transport
//! ([`anabranch_transport::Probe`]).
//!
//! To add a probe, write one file in this folder with the code of the probe and its name in specs,
//! and add one line to [`KINDS`]. A program can add probes with
//! [`Standard::with_probe`](crate::kinds::Standard::with_probe).

use anabranch_transport::Nanos;

use crate::agent::series::SeriesProbe;

mod goodput;

/// All probes that are computed by the engine.
pub const KINDS: &[&ProbeEntry] = &[&goodput::ENTRY];

/// A probe that specs can name.
#[derive(Debug)]
pub struct ProbeEntry {
    /// Name of the probe in specs and series files. It must differ from the names of the
    /// transports' probes.
    pub name: &'static str,
    /// Description of the probe, with its unit.
    pub about: &'static str,
    /// Builds a probe for a member of a flow.
    pub make: fn(RecordOptions) -> Box<dyn SeriesProbe>,
}

/// Options of a record that a probe may use.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// Width of bins in nanoseconds, if the probe uses bins; above 0.
    pub bin: Nanos,
}
