//! Overhead of HEARTBEAT chunks.

use anabranch_settings::{Kind, KindEntry, KindError, kind};
use anabranch_transport::Probe;

use super::common_parameters::{FLOW, PATH};
use super::{BoxedMetric, Life, Metric, ResultName, RunData, whole};
use crate::agent::aggregation::Aggregation;
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// Parameters of the overhead of HEARTBEATs.
    struct Overhead {
        flow: String as FLOW;
        path: Option<u16> as PATH;
        /// Assumed size of a HEARTBEAT or HEARTBEAT ACK packet, in place of the actual size;
        /// requires `of`.
        packet: Option<u64> = none, Kind::bytes(1, 65_535);
        /// Rate of a link with which the bytes are compared, in place of the delivered payload;
        /// requires `packet`.
        of: Option<u64> = none, Kind::rate(1, 1_000_000_000_000);
    }
    /// Size of the IP packets with HEARTBEAT and HEARTBEAT ACK chunks, % of the unique payload that
    /// reached the receiving application. The value is named `overhead`. With `packet` and `of`:
    /// `packet` bytes for each HEARTBEAT and each HEARTBEAT ACK, % of the bytes that a link with
    /// the rate `of` carries during the run; the value is named `overhead_of_link`.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "heartbeat_overhead", |it, ()| {
        if it.packet.is_some() != it.of.is_some() {
            let message =
                "`packet` and `of` stand together: so many bytes each, of a link of that rate";
            return Err(KindError::together(message));
        }
        Ok(Box::new(it))
    };
}

impl Metric for Overhead {
    fn names(&self) -> Vec<ResultName> {
        let name = match self.of {
            None => "overhead",
            Some(_) => "overhead_of_link",
        };
        vec![ResultName::new(&self.flow, name, "%")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Probe {
            probe: Probe::HeartbeatBytes,
            index: self.path,
            take: Aggregation::Sum,
            threshold: 0.0,
        };
        vec![Box::new(Meter::new(kind, whole(life)))]
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let meters = seen.observers::<Meter>(&self.flow, 0);
        let (spent, carried) = match self.packet.zip(self.of) {
            None => {
                let payload = seen.sum(&self.flow, |flow_stats| flow_stats.delivered);
                (meters.iter().map(|meter| meter.sum).sum::<f64>(), payload)
            }
            Some((packet, rate)) => {
                let sent = meters.iter().map(|meter| meter.weight).sum::<f64>();
                (sent * packet as f64, rate as f64 / 8.0 * seen.seconds())
            }
        };
        vec![spent / carried * 100.0]
    }
}
