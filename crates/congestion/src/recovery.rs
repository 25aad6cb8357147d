//! Common parts of the loss recoveries of SCTP and TCP: rules that use times and a transmission
//! order, but no headers.
//!
//! A sender numbers its data: SCTP its chunks, TCP its bytes. A number here is one of those,
//! counted from the first and without wrapping. The sender keeps track of the chunks or segments in
//! flight.

pub mod prr;
pub mod rack;
pub mod tail_probe;
mod windowed_min;

pub use prr::Prr;
pub use rack::{Rack, RackDecision, Transmission};
pub use tail_probe::TailProbe;
