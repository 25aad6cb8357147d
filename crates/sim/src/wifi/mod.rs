//! An 802.11 medium: stations that hear one another, or do not, and take turns by DCF.
//!
//! Self-contained: it knows time, geometry and packets' lengths, and nothing of the world around it. The pieces, from the
//! antenna upwards:
//!
//! - [`propagation`]: what power arrives where, and when;
//! - [`phy`]: air times, and a receiver that follows one signal, loses it to others, or captures it;
//! - `backoff` and `dcf`: a station's turn, its retries, its NAV;
//! - [`medium`]: carries signals from station to station, and packets to whom they are for;
//! - [`parameters`]: all numbers, as data, in two named sets;
//! - [`ledger`]: what became of every packet.
//!
//! A collision, a hidden station and a capture are not modelled anywhere: they follow from who hears whom, and when.
//!
//! Not here, because nothing that is reproduced needs it: broadcast, fragmentation, management frames, power save,
//! rate adaptation, stations that move, a radio's bit errors (a frame strong enough to decode is decoded).

mod backoff;
mod dcf;
mod due;
pub mod frame;
pub mod ledger;
pub mod medium;
pub mod parameters;
pub mod phy;
pub mod propagation;

#[cfg(test)]
mod tests;

pub use frame::{Frame, FrameKind, MacAddress, StationId};
pub use ledger::{DropReason, Ledger, StationStats};
pub use medium::{Delivery, Dropped, Medium, Outcome, Sighting};
pub use parameters::{
    AfterError, BackoffRange, IdleAccess, ParameterError, Parameters, ResponseTimeout,
};
pub use phy::Timing;
pub use propagation::{Position, Propagation, Radio};
