//! State of each destination address (RTO, MTU, congestion control) and path selection.

mod black_hole;
mod cmt_retransmission;
mod congestion_event;
mod heartbeat;
mod local_address;
mod loss_ratio;
pub mod manager;
mod new_path;
mod packet_size;
mod path_entry;
mod path_list;
mod pmtu;
mod rack;
mod removal;
pub mod rto;
mod state;
mod status;
mod switch_rules;
mod switchover;

pub(crate) use congestion_event::CongestionEvent;
pub(crate) use heartbeat::{Heartbeat, HeartbeatResult, Role};
pub(crate) use loss_ratio::LossRatio;
pub use manager::Paths;
pub(crate) use new_path::PathComponents;
pub use path_entry::{PathEntry, PathId};
pub(crate) use pmtu::{Discovery, ProbeResult, ProbeSize};
pub(crate) use rack::{PathRack, Sending};
pub use rto::RtoEstimator;
pub use state::PathState;
pub(crate) use switch_rules::SwitchRules;

pub use crate::mtu;
