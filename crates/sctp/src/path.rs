//! What is known of each destination address: RTO, MTU, congestion state, and which one to use.

mod disowned;
pub mod manager;
pub mod mtu;
mod pmtu;
pub mod rto;

pub use manager::{PathEntry, PathId, PathState, Paths};
pub(crate) use pmtu::Discovery;
pub use rto::RtoEstimator;
