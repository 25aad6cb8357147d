//! Probes that are compatible with the fast path.

use anabranch_transport::{Probe, ProbeSet};

/// Probes for which a packet on the fast path, received or sent, yields either no sample or the
/// same sample as on the slow path. If only these are recorded, the fast path stays enabled.
pub(crate) const SLOW_PATH_PROBES: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::DuplicateAck)
    .with(Probe::FastRetransmit)
    .with(Probe::EcnResponse)
    .with(Probe::Timeout)
    .with(Probe::Duplicate);
