//! Common parts of the loss recovery of SCTP and TCP: rules that use times and transmission order,
//! but no headers.
//!
//! A sender numbers its data: SCTP its chunks, TCP its bytes. A number in this module is that of a
//! chunk or byte, counted from the first one, without wrapping. The sender keeps track of the
//! chunks or segments in flight.

pub mod prr;
pub mod rack;
pub mod tail_probe;
mod windowed_min;

pub use prr::Prr;
pub use rack::{Rack, RackDecision, RackTransmission};
pub use tail_probe::TailProbe;
