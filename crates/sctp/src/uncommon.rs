//! What may be recorded while packets take the common ways.

use anabranch_transport::{Probe, ProbeSet};

/// Probes of which a common packet, whether it comes or goes, leaves no sample, or the one that the long way leaves: who wants these alone
/// asks nothing else of it.
pub(crate) const UNCOMMON: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::DuplicateAck)
    .with(Probe::FastRetransmit)
    .with(Probe::MarkAnswered)
    .with(Probe::Timeout)
    .with(Probe::Duplicate);
