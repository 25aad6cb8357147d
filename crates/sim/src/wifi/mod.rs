//! An 802.11 medium: stations that may or may not hear each other and share the medium by DCF.
//!
//! The model depends on time, geometry and packet lengths only, and not on the surrounding world.
//! Its modules, from the antenna upwards:
//!
//! - [`propagation`]: received power and delay;
//! - [`phy`]: air times, and a receiver that follows one signal, loses it to others, or captures
//!   it;
//! - `backoff` and `dcf`: channel access, retries and NAV of a station;
//! - [`medium`]: transports signals between stations, and packets to their receivers;
//! - [`parameters`]: all numbers, as data, in two named sets;
//! - [`ledger`]: accounting of packets and frames.
//!
//! Collisions, hidden stations and captures are not modelled separately, because they result from
//! the times at which stations hear each other.
//!
//! Broadcast, fragmentation, management frames, power save, rate adaptation, mobility and bit
//! errors are not implemented, because no reproduced result needs them. A frame that is strong
//! enough to decode is always decoded.

mod backoff;
mod dcf;
mod event_queue;
pub mod frame;
pub mod ledger;
pub mod medium;
pub mod parameters;
pub mod phy;
pub mod propagation;

#[cfg(test)]
mod tests;

pub use frame::{Frame, FrameKind, FrameTrace, MacAddress, StationId};
pub use ledger::{DropReason, Ledger, StationStats};
pub use medium::{Delivery, Dropped, Medium, Outcome};
pub use parameters::{
    AfterError, BackoffRange, IdleAccess, ParameterError, Parameters, ResponseTimeout,
};
pub use phy::Timing;
pub use propagation::{Position, Propagation, Radio};
