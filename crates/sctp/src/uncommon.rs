//! What may be recorded while packets take the common ways.

use anabranch_transport::{Probe, ProbeSet};

/// Probes of which no common packet leaves a sample, whether it comes or goes: who wants these alone asks nothing of it.
pub(crate) const UNCOMMON: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::DuplicateAck)
    .with(Probe::FastRetransmit)
    .with(Probe::MarkAnswered)
    .with(Probe::Timeout)
    .with(Probe::Duplicate);
