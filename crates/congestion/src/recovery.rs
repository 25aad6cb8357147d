//! What the loss recoveries of SCTP and TCP have in common: rules that know times and an order of sending, and no header.
//!
//! A sender numbers what it sends: SCTP its chunks, TCP its bytes. A number here is one of those, counted from the first and
//! never wrapping. Which chunks or segments are in flight is the sender's to know.

pub mod prr;
pub mod rack;
pub mod tail_probe;
mod windowed_min;

pub use prr::Prr;
pub use rack::{Rack, Transmission, Verdict};
pub use tail_probe::TailProbe;
