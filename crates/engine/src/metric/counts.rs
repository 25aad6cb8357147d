//! Metrics that count events of a flow over all its members.

use anabranch_settings::{KindEntry, kind};
use anabranch_transport::Probe;

use super::common_parameters::{FLOW, PATH, WINDOW, WINDOWS};
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::flow_stats::FlowStats;
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// The flow whose events are counted.
    struct Events {
        flow: String as FLOW;
    }
    /// Number of retransmitted data segments, by fast retransmit and by timeout.
    pub(super) static RETRANSMISSIONS: KindEntry<BoxedMetric> = "retransmissions", |it, ()| {
        Ok(it.count("retransmissions", "segments", (Probe::Retransmitted, |flow_stats| flow_stats.retransmissions)))
    };
    /// Number of fast retransmits.
    pub(super) static FAST_RETRANSMITS: KindEntry<BoxedMetric> = "fast_retransmits", |it, ()| {
        Ok(it.count("fast_retransmits", "events", (Probe::FastRetransmit, |flow_stats| flow_stats.fast_retransmits)))
    };
    /// Number of expired retransmission timers.
    pub(super) static TIMEOUTS: KindEntry<BoxedMetric> = "timeouts", |it, ()| {
        Ok(it.count("timeouts", "events", (Probe::Timeout, |flow_stats| flow_stats.timeouts)))
    };
    /// Number of congestion window reductions because the receiver reported a mark (`ecn` of
    /// transport and queue); at most one reduction per window of data.
    pub(super) static MARK_REDUCTIONS: KindEntry<BoxedMetric> = "ecn_reductions", |it, ()| {
        Ok(it.count("ecn_reductions", "events", (Probe::EcnResponse, |flow_stats| flow_stats.ecn_reductions)))
    };
    /// Number of data segments (SCTP: DATA chunks) that the receiving transport had already
    /// received. Such segments are unnecessary retransmissions, or duplicates created by the
    /// network.
    pub(super) static DUPLICATES_RECEIVED: KindEntry<BoxedMetric> = "duplicates_received", |it, ()| {
        Ok(it.count("duplicates_received", "segments", (Probe::Duplicate, |flow_stats| flow_stats.duplicates)))
    };
    /// Number of times at which a stream allocation would have used more streams than were
    /// negotiated. After such an event, the next one counts only if fewer streams were in use in
    /// between.
    pub(super) static STREAM_LIMITS_MET: KindEntry<BoxedMetric> = "stream_limits_met", |it, ()| {
        Ok(it.count("stream_limits_met", "events", (Probe::StreamsInUse, |flow_stats| flow_stats.stream_limits_met)))
    };
}

/// A probe, and the counter of its events in the statistics of a member.
type Counted = (Probe, fn(&FlowStats) -> u64);

/// Metric of a counter that the statistics of every member have.
struct Count {
    name: ResultName,
    /// Probe that must be enabled for the counter.
    probe: Probe,
    of: fn(&FlowStats) -> u64,
}

impl Events {
    fn count(self, metric: &str, unit: &'static str, (probe, of): Counted) -> BoxedMetric {
        let name = ResultName::new(&self.flow, metric, unit);
        Box::new(Count { name, probe, of })
    }
}

impl Metric for Count {
    fn names(&self) -> Vec<ResultName> {
        vec![self.name.clone()]
    }

    fn counts(&self) -> Option<(&str, Probe)> {
        Some((&self.name.series, self.probe))
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        vec![seen.sum(&self.name.series, self.of)]
    }
}

kind! {
    /// Parameters of the number of transmitted segments.
    struct SegmentsSent {
        flow: String as FLOW;
        path: Option<u16> as PATH;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Number of data segments sent, including retransmissions. With `path` the name ends with the
    /// number of the path: `segments_sent_1`.
    pub(super) static SEGMENTS_SENT: KindEntry<BoxedMetric> = "segments_sent", |it, ()| Ok(Box::new(it));
}

impl Metric for SegmentsSent {
    fn names(&self) -> Vec<ResultName> {
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

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let sum = |window| {
            let meters = seen.observers::<Meter>(&self.flow, window);
            meters.iter().map(|meter| meter.sum).sum()
        };
        (0..self.over.windows().len()).map(sum).collect()
    }
}
