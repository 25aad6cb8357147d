//! Measures of a spec: the scalar results of a run. The vocabulary provides the available metrics.

use crate::kind_choice::{KindChoice, KindFamily};

/// Quantity that a link probe records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQuantity {
    /// Throughput at the far end of the link.
    Throughput,
    /// Queue length.
    Queue,
    /// Dropped packets.
    Drop,
}

/// A probe of a link, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// The recorded quantity.
    pub quantity: LinkQuantity,
    /// Name of the probe in specs and series files.
    pub name: &'static str,
    /// Description: the sample, and the time at which it is taken.
    pub about: &'static str,
    /// Unit of the samples.
    pub unit: &'static str,
}

impl LinkProbe {
    /// The probe named `name`.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        LINK_PROBES.iter().find(|probe| probe.name == name)
    }
}

/// A probe of a constellation, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstellationProbe {
    /// Name of the probe in specs and series files.
    pub name: &'static str,
    /// Description: the sample, and the time at which it is taken.
    pub about: &'static str,
    /// Unit of the samples.
    pub unit: &'static str,
}

/// Probe of the positions of satellites and stations.
pub const POSITION: &str = "position";
/// Probe of the utilisation of the links between satellites.
pub const UTILIZATION: &str = "utilization";
/// Probe of the paths of flows.
pub const PATH: &str = "path";
/// Series of the two satellites of each link, which is recorded with [`UTILIZATION`].
pub const ENDS: &str = "ends";

/// All probes of a constellation.
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

/// All probes of a link. The probes of a flow are in [`anabranch_transport::Probe`].
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

/// Metrics: scalar results that are computed from a run.
///
/// The name of a group of flows refers to all its members: `goodput` is then the sum over the
/// members, means are means over the members, and counts are sums. `flow[1]` refers to one member.
#[derive(Debug)]
pub enum Metrics {}

/// A metric and its subject: `{ metric = "goodput", flow = "web" }`.
pub type Metric = KindChoice<Metrics>;

impl KindFamily for Metrics {
    const NAME: &'static str = "Metric";
    const WHAT: &'static str = "a measure";
    const TAG: &'static str = "metric";
}
