//! What HEARTBEATs cost.

use anabranch_settings::{Entry, Variant};
use anabranch_transport::Probe;

use super::words::{FLOW, PATH};
use super::{Life, Made, Metric, Name, Seen, whole};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;
use crate::agent::taking::Take;

/// How specs name it.
pub(super) static ENTRY: Entry<Made> = Entry {
    variant: Variant {
        name: "heartbeat_overhead",
        about: " Bytes of HEARTBEATs and their answers, as IP packets, % of the unique payload that reached the receiving \
                application. The measure's name is `overhead`.",
        parameters: &[FLOW, PATH],
    },
    build: |parameters, ()| {
        Ok(Box::new(Overhead {
            flow: parameters.get("flow")?,
            path: parameters.optional("path")?,
        }))
    },
};

struct Overhead {
    flow: String,
    path: Option<u16>,
}

impl Metric for Overhead {
    fn names(&self) -> Vec<Name> {
        vec![Name::new(&self.flow, "overhead", "%")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Probe {
            probe: Probe::HeartbeatBytes,
            index: self.path,
            take: Take::Sum,
            threshold: 0.0,
        };
        vec![Box::new(Meter::new(kind, whole(life)))]
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let payload = seen.sum(&self.flow, |tally| tally.delivered);
        let meters = seen.observers::<Meter>(&self.flow, 0);
        let bytes = meters.iter().map(|meter| meter.sum).sum::<f64>();
        vec![bytes / payload * 100.0]
    }
}
