//! The algorithms an SCTP path can run, by name. A new one is one new file and one line in [`ALGORITHMS`].

use crate::CongestionControl;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};

/// Makes a controller for a new path.
pub type Factory = fn(&SctpParameters) -> Box<dyn CongestionControl>;

/// Name in specs, one line of what it is, and how to make it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name in specs and reports.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub about: &'static str,
    /// Makes a controller.
    pub make: Factory,
}

/// Every algorithm that an SCTP path can run.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "sctp",
    about: "slow start and congestion avoidance by bytes acknowledged (RFC 9260 §7.2)",
    make: |parameters| Box::new(SctpNewReno::new(*parameters)),
}];

/// The algorithm of that name.
pub fn by_name(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}
