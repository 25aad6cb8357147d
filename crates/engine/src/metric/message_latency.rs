//! Latency of messages by size, for example of small messages among large ones, or of video frames.

use anabranch_scenario::quantity::Window;
use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::time;

use super::common_parameters::{CLOCK, FLOW, NAME, NameParameter, WINDOW, WINDOWS};
use super::message_integrity::numbered;
use super::percentiles::{STATISTIC, Taken};
use super::window::TimeWindows;
use super::{BoxedMetric, FlowFacts, Life, MeasureNeeds, Metric, ResultName, RunData};
use crate::agent::histogram::Histogram;
use crate::agent::observer::Observer;
use crate::agent::transfers::Transfer;

const SIZE: Kind = Kind::bytes(0, 1 << 40);

kind! {
    /// Parameters of the latency of messages.
    struct MessageLatency {
        flow: String as FLOW;
        name: NameParameter as [NAME];
        /// Minimum size of the messages that count.
        at_least: u64 = "0 B", SIZE;
        /// Maximum size of the messages that count. Default: no limit.
        at_most: Option<u64> = none, SIZE;
        statistic: Taken as [STATISTIC];
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// Latency of messages, s: time from the generation of a message at its source until its last
    /// byte reaches the receiving application. Only messages with a size from `at_least` to
    /// `at_most` count, so that classes of messages in one flow can be measured separately. A
    /// message counts in the window in which it is generated; abandoned messages do not count.
    /// Requires a flow over SCTP with messages of at least 16 B.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "message_latency", |it, ()| Ok(Box::new(it));
}

/// Observer of the latencies of one member's messages.
#[derive(Debug)]
struct Aged {
    window: Window,
    sizes: [u64; 2],
    seen: Histogram,
}

impl Observer for Aged {
    fn transfer(&mut self, transfer: &Transfer) {
        let counts = (self.sizes[0]..=self.sizes[1]).contains(&transfer.sizes[0]);
        if counts && self.window.contains(transfer.begin) {
            self.seen.add(time::seconds(transfer.time()), 1.0);
        }
    }
}

impl Metric for MessageLatency {
    fn names(&self) -> Vec<ResultName> {
        self.statistic
            .names(&self.over, &self.flow, &self.name.0, "s")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds {
            transfers: true,
            ..MeasureNeeds::default()
        }
    }

    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        numbered(flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.over.observers(life, |window| Aged {
            window,
            sizes: [self.at_least, self.at_most.unwrap_or(u64::MAX)],
            seen: Histogram::default(),
        })
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        self.statistic
            .over::<Aged>(&self.over, seen, &self.flow, |aged| &aged.seen)
    }
}
