//! Which stacks there are.

use anabranch_transport::{Nanos, Probe};

use crate::config::Config;
use crate::end::{End, Side};

/// Makes an end whose packets have at most so many bytes.
type Open = fn(&Config, packet: usize, Side, Nanos) -> Result<Box<dyn End>, String>;

/// A stack, whether it was compiled in or not.
#[derive(Debug)]
pub struct Stack {
    /// The name in specs, that of its crate and of the feature.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The probes that it can be asked for: what is seen of its packets, and what it tells.
    pub probes: &'static [Probe],
    pub(crate) open: Option<Open>,
}

impl Stack {
    /// Whether it was compiled in.
    pub fn is_here(&self) -> bool {
        self.open.is_some()
    }
}

/// Google's, of the WebRTC library, in Rust.
pub static DCSCTP: Stack = Stack {
    name: "dcsctp",
    about: "SCTP by the crate dcsctp 0.1.16 (Google's, of the WebRTC library), unmodified. What is not listed has its own default.",
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

/// That of webrtc-rs without I/O.
pub static RTC_SCTP: Stack = Stack {
    name: "rtc-sctp",
    about: "SCTP by the crate rtc-sctp 0.21.1 (webrtc-rs), unmodified. What is not listed has its own default.",
    probes: PROTO,
    #[cfg(feature = "rtc-sctp")]
    open: Some(crate::rtc_sctp::open),
    #[cfg(not(feature = "rtc-sctp"))]
    open: None,
};

/// That of str0m.
pub static SCTP_PROTO: Stack = Stack {
    name: "sctp-proto",
    about: "SCTP by the crate sctp-proto 0.10.8 (str0m's), unmodified. What is not listed has its own default.",
    probes: PROTO,
    #[cfg(feature = "sctp-proto")]
    open: Some(crate::sctp_proto::open),
    #[cfg(not(feature = "sctp-proto"))]
    open: None,
};

/// What is seen of the packets of rtc-sctp and sctp-proto, which have one origin, and what they tell.
const PROTO: &[Probe] = &[
    Probe::Sent,
    Probe::Retransmitted,
    Probe::Received,
    Probe::Duplicate,
    Probe::Srtt,
    Probe::Timeout,
    Probe::FastRetransmit,
];

/// Every stack: one line for each.
pub const STACKS: &[&Stack] = &[&DCSCTP, &RTC_SCTP, &SCTP_PROTO];
