//! Events of a flow, counted over all its members.

use anabranch_settings::{Entry, Variant};
use anabranch_transport::Probe;

use super::over::Over;
use super::words::{FLOW, PATH, WINDOW, WINDOWS};
use super::{Life, Made, Metric, Name, Seen};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;
use crate::agent::tally::Tally;

/// How specs name it.
pub(super) static RETRANSMISSIONS: Entry<Made> = Entry {
    variant: Variant {
        name: "retransmissions",
        about: " Number of retransmissions, by fast retransmit and by timeout.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::Retransmitted, |tally: &Tally| tally.retransmissions);
        Ok(Count::of(flow, "retransmissions", "segments", of))
    },
};

/// How specs name it.
pub(super) static FAST_RETRANSMITS: Entry<Made> = Entry {
    variant: Variant {
        name: "fast_retransmits",
        about: " Number of fast retransmits.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::FastRetransmit, |tally: &Tally| {
            tally.fast_retransmits
        });
        Ok(Count::of(flow, "fast_retransmits", "events", of))
    },
};

/// How specs name it.
pub(super) static TIMEOUTS: Entry<Made> = Entry {
    variant: Variant {
        name: "timeouts",
        about: " Number of expired retransmission timers.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::Timeout, |tally: &Tally| tally.timeouts);
        Ok(Count::of(flow, "timeouts", "events", of))
    },
};

/// How specs name it.
pub(super) static MARK_REDUCTIONS: Entry<Made> = Entry {
    variant: Variant {
        name: "mark_reductions",
        about: " Number of reductions of a congestion window because the receiver reported a mark (`ecn` of transport and \
                queue): one per window of data.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::MarkAnswered, |tally: &Tally| tally.mark_reductions);
        Ok(Count::of(flow, "mark_reductions", "events", of))
    },
};

/// How specs name it.
pub(super) static DUPLICATES_RECEIVED: Entry<Made> = Entry {
    variant: Variant {
        name: "duplicates_received",
        about: " Number of data segments (SCTP: DATA chunks) that the receiving transport had already received: unnecessary \
                retransmissions, or duplicates made by the network.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::Duplicate, |tally: &Tally| tally.duplicates);
        Ok(Count::of(flow, "duplicates_received", "segments", of))
    },
};

/// How specs name it.
pub(super) static STREAM_LIMITS_MET: Entry<Made> = Entry {
    variant: Variant {
        name: "stream_limits_met",
        about: " How often an allocation would have used more streams than were negotiated; consecutive occasions count once.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        let flow = parameters.get("flow")?;
        let of: Counted = (Probe::StreamsInUse, |tally: &Tally| tally.stream_limits_met);
        Ok(Count::of(flow, "stream_limits_met", "events", of))
    },
};

/// A probe, and what a tally counts of it.
type Counted = (Probe, fn(&Tally) -> u64);

/// What every tally counts.
struct Count {
    name: Name,
    /// Without which there is nothing to count.
    probe: Probe,
    of: fn(&Tally) -> u64,
}

impl Count {
    fn of(flow: String, metric: &str, unit: &'static str, (probe, of): Counted) -> Made {
        let name = Name::new(&flow, metric, unit);
        Box::new(Self { name, probe, of })
    }
}

impl Metric for Count {
    fn names(&self) -> Vec<Name> {
        vec![self.name.clone()]
    }

    fn counts(&self) -> Option<(&str, Probe)> {
        Some((&self.name.series, self.probe))
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        vec![seen.sum(&self.name.series, self.of)]
    }
}

/// How specs name it.
pub(super) static SEGMENTS_SENT: Entry<Made> = Entry {
    variant: Variant {
        name: "segments_sent",
        about: " Number of data segments sent, including retransmissions. With `path` the name ends in the path's number: \
                `segments_sent_1`.",
        parameters: &[FLOW, PATH, WINDOW, WINDOWS],
    },
    build: |parameters, ()| {
        Ok(Box::new(SegmentsSent {
            flow: parameters.get("flow")?,
            path: parameters.optional("path")?,
            over: Over::read(parameters)?,
        }))
    },
};

struct SegmentsSent {
    flow: String,
    path: Option<u16>,
    over: Over,
}

impl Metric for SegmentsSent {
    fn names(&self) -> Vec<Name> {
        let name = match self.path {
            None => "segments_sent".to_owned(),
            Some(path) => format!("segments_sent_{path}"),
        };
        self.over.names(&self.flow, &name, "segments")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Segments { path: self.path };
        self.over
            .observers(life, |window| Meter::new(kind.clone(), window))
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let sum = |window| {
            let meters = seen.observers::<Meter>(&self.flow, window);
            meters.iter().map(|meter| meter.sum).sum()
        };
        (0..self.over.windows().len()).map(sum).collect()
    }
}
