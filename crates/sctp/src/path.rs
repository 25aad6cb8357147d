//! State of each destination address (RTO, MTU, congestion control) and path selection.

mod black_hole;
mod disowned;
mod entries;
mod heartbeat;
pub mod manager;
mod moved;
mod pmtu;
mod rack;
mod reduction;
mod retransmission;
pub mod rto;
mod seen;
mod settings;
mod size;
mod state;
mod switching;

pub(crate) use heartbeat::{Answered, Heartbeat, Role};
pub use manager::{PathEntry, PathId, Paths};
pub(crate) use pmtu::{Answered as ProbeAnswered, Discovery, ProbeSize};
pub(crate) use rack::{PathRack, Sending};
pub(crate) use reduction::Reduction;
pub(crate) use retransmission::Losses;
pub use rto::RtoEstimator;
pub(crate) use settings::Equipment;
pub use state::PathState;
pub(crate) use switching::SwitchRules;

pub use crate::mtu;
