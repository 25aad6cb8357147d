//! The measures of a spec: which scalars a run gives. Which there are, the vocabulary knows.

use crate::chosen::{Chosen, Family};

/// What a probe of a link records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQuantity {
    /// What arrived at the far end.
    Throughput,
    /// What waits.
    Queue,
    /// What was dropped.
    Drop,
}

/// A probe of a link, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// What it records.
    pub quantity: LinkQuantity,
    /// Its name in specs and series files.
    pub name: &'static str,
    /// What is recorded, and when.
    pub about: &'static str,
    /// The unit of its samples.
    pub unit: &'static str,
}

impl LinkProbe {
    /// The probe of that name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        LINK_PROBES.iter().find(|probe| probe.name == name)
    }
}

/// Probes of a link, beside those of a flow ([`anabranch_transport::Probe`]).
pub const LINK_PROBES: &[LinkProbe] = &[
    LinkProbe {
        quantity: LinkQuantity::Throughput,
        name: "throughput",
        about: "Bits per second that arrived at the far end, IP headers included, in each bin; a sample's time is the beginning of its bin.",
        unit: "bit/s",
    },
    LinkProbe {
        quantity: LinkQuantity::Queue,
        name: "queue",
        about: "Packets in the queue, including the one in transmission; recorded when it changes.",
        unit: "packets",
    },
    LinkProbe {
        quantity: LinkQuantity::Drop,
        name: "drop",
        about: "A packet was dropped: the number of drops for this reason so far.",
        unit: "1",
    },
];

/// Metrics: what is made of a run, and of what.
///
/// A flow's name means the group: `goodput` of a group is the sum over its members, a mean is the mean over members,
/// counts are sums. `flow[1]` is one member.
#[derive(Debug)]
pub enum Metrics {}

/// A metric and what it is taken of: `{ metric = "goodput", flow = "web" }`.
pub type Metric = Chosen<Metrics>;

impl Family for Metrics {
    const NAME: &'static str = "Metric";
    const WHAT: &'static str = "a measure";
    const TAG: &'static str = "metric";
}
