//! Table of third-party stacks.

use anabranch_transport::{Nanos, Probe};

use crate::adapter::{Adapter, Role};
use crate::config::Config;

/// Function that creates an end whose packets have at most `packet` bytes.
type Open = fn(&Config, packet: usize, Role, Nanos) -> Result<Box<dyn Adapter>, String>;

/// A third-party stack, whether or not it was compiled in.
#[derive(Debug)]
pub struct Stack {
    /// Name in specs, which is also the name of the crate and the feature.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Supported probes. Some are derived from packets, and some are reported by the stack.
    pub probes: &'static [Probe],
    pub(crate) open: Option<Open>,
}

impl Stack {
    /// Whether the stack was compiled in.
    pub fn is_here(&self) -> bool {
        self.open.is_some()
    }
}

/// Rust port by Google of the stack in the WebRTC library.
pub static DCSCTP: Stack = Stack {
    name: "dcsctp",
    about: "SCTP by the crate dcsctp 0.1.16 (Google's, of the WebRTC library), unmodified. Options that are not listed have the defaults of the crate.",
    probes: &[
        Probe::Sent,
        Probe::Retransmitted,
        Probe::Received,
        Probe::Duplicate,
        Probe::Cwnd,
        Probe::Srtt,
    ],
    #[cfg(feature = "dcsctp")]
    open: Some(crate::dcsctp::open),
    #[cfg(not(feature = "dcsctp"))]
    open: None,
};

/// Sans-IO stack of webrtc-rs.
pub static RTC_SCTP: Stack = Stack {
    name: "rtc-sctp",
    about: "SCTP by the crate rtc-sctp 0.21.1 (webrtc-rs), unmodified. Options that are not listed have the defaults of the crate.",
    probes: PROTO,
    #[cfg(feature = "rtc-sctp")]
    open: Some(crate::rtc_sctp::open),
    #[cfg(not(feature = "rtc-sctp"))]
    open: None,
};

/// Stack of str0m.
pub static SCTP_PROTO: Stack = Stack {
    name: "sctp-proto",
    about: "SCTP by the crate sctp-proto 0.10.8 (str0m's), unmodified. Options that are not listed have the defaults of the crate.",
    probes: PROTO,
    #[cfg(feature = "sctp-proto")]
    open: Some(crate::sctp_proto::open),
    #[cfg(not(feature = "sctp-proto"))]
    open: None,
};

/// Probes of rtc-sctp and sctp-proto, which have the same origin.
const PROTO: &[Probe] = &[
    Probe::Sent,
    Probe::Retransmitted,
    Probe::Received,
    Probe::Duplicate,
    Probe::Srtt,
    Probe::Timeout,
    Probe::FastRetransmit,
];

/// All stacks.
pub const STACKS: &[&Stack] = &[&DCSCTP, &RTC_SCTP, &SCTP_PROTO];
