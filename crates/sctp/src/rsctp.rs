//! RSCTP (Y.-K. Ho and Q.-H. Cheng 2008): measurement schedule, reports, and plausibility checks.
//!
//! - RSCTP is used only if both endpoints offer it
//!   ([`Parameter::Rsctp`](anabranch_wire::Parameter::Rsctp)); else the association is standard
//!   SCTP.
//! - After the first DATA, a HEARTBEAT is sent on the path for new data every
//!   `rsctp_primary_interval`, and two HEARTBEATs back to back on every other path every
//!   `rsctp_secondary_interval`. An endpoint that sends no data takes no measurements.
//! - The receiver measures the data between HEARTBEATs ([`meter`]), and reports the result in each
//!   HEARTBEAT ACK.
//! - The sender uses a plausible report for the estimates of the path, for congestion control, and
//!   for the decision to switch the primary path ([`crate::path`]).

mod meter;

use anabranch_transport::Nanos;
use anabranch_wire::parameter::Parameter;
use anabranch_wire::rsctp::{NO_LOSS_RATE, WHOLE};

pub(crate) use meter::{Meter, Report};

use crate::extension_descriptor::Extension;
use crate::path::Role;

/// The extension RSCTP, offered if the switch `rsctp` is on.
pub(crate) static RSCTP: Extension = Extension {
    wanted: |config| config.profile.rsctp,
    parameter: || Some(Parameter::Rsctp),
    chunks: &[],
};

/// Maximum plausible bandwidth of a path in bytes per second: 10 Gbit/s.
const MAX_BANDWIDTH: u32 = 1_250_000_000;
/// Maximum ratio of the reported rate to the sent rate. A higher ratio means that the time between
/// HEARTBEATs was less than an eighth of the time between them at the sender. They are then too
/// compressed for a measurement.
const MAX_COMPRESSION: u64 = 8;

/// State of an association that uses RSCTP.
#[derive(Debug, Default)]
pub(crate) struct Rsctp {
    pub(crate) meter: Meter,
    /// Whether DATA was sent. Measurements are made only after that.
    pub(crate) sending: bool,
    /// Whether a HEARTBEAT has been sent on the path for new data after this path became the path
    /// for new data. The next HEARTBEAT then yields a measurement.
    pub(crate) marked: bool,
}

/// Report of the receiver, with the sender's data for a plausibility check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathReport {
    pub(crate) report: Report,
    pub(crate) role: Role,
    /// Number of DATA bytes sent between the last two answered HEARTBEATs.
    pub(crate) bytes: u64,
    /// Time between the HEARTBEAT and the previous one, in nanoseconds.
    pub(crate) interval: Nanos,
}

impl PathReport {
    /// Whether the report is plausible.
    pub(crate) fn is_plausible(&self) -> bool {
        let Report {
            available_bandwidth,
            chunk_loss_rate,
        } = self.report;
        if available_bandwidth > MAX_BANDWIDTH {
            return false;
        }
        if chunk_loss_rate > WHOLE && chunk_loss_rate != NO_LOSS_RATE {
            return false;
        }
        let claimed = u128::from(available_bandwidth) * u128::from(self.interval);
        let most = u128::from(MAX_COMPRESSION) * u128::from(self.bytes) * 1_000_000_000;
        self.role != Role::Measure || claimed <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::SECOND;

    fn claim(role: Role, available_bandwidth: u32, chunk_loss_rate: u32) -> PathReport {
        PathReport {
            report: Report {
                available_bandwidth,
                chunk_loss_rate,
            },
            role,
            bytes: 100_000,
            interval: SECOND,
        }
    }

    #[test]
    fn implausible_measurements_are_ignored() {
        let measured = |bandwidth| claim(Role::Measure, bandwidth, 0).is_plausible();
        assert!(measured(0) && measured(100_000) && measured(800_000));
        assert!(!measured(800_001) && !measured(u32::MAX));
        let paired = |bandwidth| claim(Role::PairSecond, bandwidth, NO_LOSS_RATE).is_plausible();
        assert!(paired(MAX_BANDWIDTH) && !paired(MAX_BANDWIDTH + 1));
        for (rate, plausible) in [
            (WHOLE, true),
            (WHOLE + 1, false),
            (NO_LOSS_RATE - 1, false),
            (NO_LOSS_RATE, true),
        ] {
            assert_eq!(claim(Role::Measure, 1, rate).is_plausible(), plausible);
        }
    }
}
