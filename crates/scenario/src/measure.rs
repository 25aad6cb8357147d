//! The measures of a spec: the scalars of a run. The vocabulary lists the available metrics.

use crate::kind_choice::{KindChoice, KindFamily};

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
    /// Name in specs and series files.
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

/// A probe of a constellation, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstellationProbe {
    /// Name in specs and series files.
    pub name: &'static str,
    /// Description: the sample and its time.
    pub about: &'static str,
    /// The unit of its samples.
    pub unit: &'static str,
}

/// Positions of satellites and stations.
pub const POSITION: &str = "position";
/// Utilization of the links between satellites.
pub const UTILIZATION: &str = "utilization";
/// Paths of flows.
pub const PATH: &str = "path";
/// The satellites of a link, which are recorded with [`UTILIZATION`].
pub const ENDS: &str = "ends";

/// Probes of a constellation.
pub const CONSTELLATION_PROBES: &[ConstellationProbe] = &[
    ConstellationProbe {
        name: POSITION,
        about: "Position of each satellite and station: degrees north (index 0) and east (index 1), geocentric; at the beginning of each bin; positions of stations are recorded once.",
        unit: "degrees",
    },
    ConstellationProbe {
        name: UTILIZATION,
        about: "Share of each bin in which the link between two satellites transmitted, %: forward (index 0) and backward (index 1), recorded if it is not 0; a sample's time is the beginning of its bin. The series `ends` has the numbers of the two satellites of each link.",
        unit: "%",
    },
    ConstellationProbe {
        name: PATH,
        about: "Path of each flow's packets from its first node: the index counts the satellites and stations on the path, the value is the number of the satellite, or the number of satellites plus that of the station; -1 if there is no path; recorded at the beginning of a bin if the path has changed.",
        unit: "1",
    },
];

/// Probes of a link. [`anabranch_transport::Probe`] has the probes of a flow.
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
pub type Metric = KindChoice<Metrics>;

impl KindFamily for Metrics {
    const NAME: &'static str = "Metric";
    const WHAT: &'static str = "a measure";
    const TAG: &'static str = "metric";
}
