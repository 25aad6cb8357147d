//! The measures of a spec: which scalars a run gives. Which there are, the vocabulary knows.

use crate::chosen::{Chosen, Family};

/// Probes of a link and what each records, beside those of a flow ([`anabranch_transport::Probe`]).
pub const LINK_PROBES: &[(&str, &str)] = &[
    (
        "throughput",
        "Bits per second that arrived at the far end, IP headers included, in each bin; a sample's time is the beginning of its bin.",
    ),
    (
        "queue",
        "Packets in the queue, including the one in transmission; recorded when it changes.",
    ),
    (
        "drop",
        "A packet was dropped: the number of drops for this reason so far.",
    ),
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
