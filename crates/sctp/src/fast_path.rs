//! Probes that may be recorded without disabling the fast path.

use anabranch_transport::{Probe, ProbeSet};

/// Probes whose samples are the same on the fast path as on the slow path. The fast path is used
/// only if no other probe is recorded.
pub(crate) const FAST_PATH_PROBES: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::DuplicateAck)
    .with(Probe::FastRetransmit)
    .with(Probe::EcnResponse)
    .with(Probe::Timeout)
    .with(Probe::Duplicate);
