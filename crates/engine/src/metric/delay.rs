//! One-way delay of messages between applications.

use anabranch_scenario::quantity::Window;
use anabranch_settings::{KindEntry, kind};
use anabranch_transport::{Nanos, time};

use super::common_parameters::{CLOCK, FLOW, WINDOW, WINDOWS};
use super::percentiles::{STATISTIC, Taken};
use super::window::TimeWindows;
use super::{BoxedMetric, Life, MeasureNeeds, Metric, ResultName, RunData};
use crate::agent::histogram::Histogram;
use crate::agent::observer::Observer;

kind! {
    /// Parameters of the mean delay.
    struct MeanDelay {
        flow: String as FLOW;
    }
    /// Mean one-way delay of messages, from the sending application to the receiving one, s.
    pub(super) static MEAN: KindEntry<BoxedMetric> = "mean_one_way_delay", |it, ()| Ok(Box::new(it));
}

/// Metrics of delay need messages that carry their offer time.
const DELAYS: MeasureNeeds = MeasureNeeds {
    delays: true,
    numbers: false,
    transfers: false,
    packets: false,
    moments: Vec::new(),
};

impl Metric for MeanDelay {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(&self.flow, "mean_one_way_delay", "s")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        DELAYS
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let members = seen.members(&self.flow).iter();
        let (sum, count) = members.fold((0, 0), |(sum, count), flow_stats| {
            (sum + flow_stats.delay_sum, count + flow_stats.delays)
        });
        vec![sum as f64 / count as f64 / 1e9]
    }
}

kind! {
    /// Parameters of the distribution of delays.
    struct Delays {
        flow: String as FLOW;
        statistic: Taken as [STATISTIC];
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// One-way delay of messages, s: percentiles over the messages of all members. The delay is the
    /// time from the acceptance of a message by the transport (TCP: of a write) until the last byte
    /// of the message reaches the receiving application. A message counts in the window in which it
    /// arrives.
    pub(super) static DISTRIBUTION: KindEntry<BoxedMetric> = "one_way_delay", |it, ()| Ok(Box::new(it));
}

/// Observer of the delays of one member's messages.
#[derive(Debug)]
struct Delayed {
    window: Window,
    seen: Histogram,
}

impl Observer for Delayed {
    fn message(&mut self, at: Nanos, delay: Nanos) {
        if self.window.contains(at) {
            self.seen.add(time::seconds(delay), 1.0);
        }
    }
}

impl Metric for Delays {
    fn names(&self) -> Vec<ResultName> {
        self.statistic
            .names(&self.over, &self.flow, "one_way_delay", "s")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        DELAYS
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.over.observers(life, |window| Delayed {
            window,
            seen: Histogram::default(),
        })
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        self.statistic
            .over::<Delayed>(&self.over, seen, &self.flow, |delayed| &delayed.seen)
    }
}
