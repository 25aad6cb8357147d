//! An 802.11 medium, which stations share by DCF. Stations need not hear each other.
//!
//! The model depends only on time, geometry and packet lengths, and not on the network around it.
//! The modules, from the antenna upwards:
//!
//! - [`propagation`]: received power and delay;
//! - [`phy`]: air times, and a receiver that follows one signal, and may lose it to other signals
//!   or capture it;
//! - `backoff` and `dcf`: channel access, retries and NAV of a station;
//! - [`medium`]: transports signals between stations, and packets to their receivers;
//! - [`outcome`]: packets that were delivered or dropped;
//! - [`parameters`]: all numeric parameters, with two named sets;
//! - [`medium_counts`]: counters of packets and frames.
//!
//! Collisions, hidden stations and captures are not modelled separately, because they result from
//! the times at which signals reach the stations.
//!
//! Broadcast, fragmentation, management frames, power save, rate adaptation, mobility and bit
//! errors are not implemented, because no reproduced result needs them. A frame that is strong
//! enough to decode is always decoded.

mod backoff;
mod dcf;
mod event_queue;
pub mod frame;
pub mod medium;
pub mod medium_counts;
pub mod outcome;
pub mod parameters;
pub mod phy;
pub mod propagation;

#[cfg(test)]
mod tests;

pub use frame::{Frame, FrameKind, FrameTrace, MacAddress, StationId};
pub use medium::Medium;
pub use medium_counts::{MediumCounts, StationStats, WifiDropReason};
pub use outcome::{DeliveredPacket, DroppedPacket, TransmissionOutcome};
pub use parameters::{
    AfterError, BackoffRange, IdleAccess, ParameterError, ResponseTimeout, WifiParameters,
};
pub use phy::PhyTiming;
pub use propagation::{AntennaPosition, PropagationLoss, Radio};
