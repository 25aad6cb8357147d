//! The measures of a spec: the scalars of a run. The vocabulary lists the available metrics.

use crate::chosen::{Chosen, Family};

/// The quantity that a link probe records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQuantity {
    /// Arrivals at the far end.
    Throughput,
    /// Queue length.
    Queue,
    /// Dropped packets.
    Drop,
}

/// A link probe, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// The recorded quantity.
    pub quantity: LinkQuantity,
    /// Its name in specs and series files.
    pub name: &'static str,
    /// Description: the sample and its time.
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

/// Probes of a link. [`anabranch_transport::Probe`] has those of a flow.
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

/// Metrics: scalars that are computed from a run.
///
/// The name of a flow means its group: `goodput` of a group is the sum over its members, a mean is
/// the mean over members, counts are sums. `flow[1]` is one member.
#[derive(Debug)]
pub enum Metrics {}

/// A metric and its subject: `{ metric = "goodput", flow = "web" }`.
pub type Metric = Chosen<Metrics>;

impl Family for Metrics {
    const NAME: &'static str = "Metric";
    const WHAT: &'static str = "a measure";
    const TAG: &'static str = "metric";
}
