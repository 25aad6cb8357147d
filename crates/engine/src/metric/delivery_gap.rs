//! Metrics of the times without a delivery to the receiving application.

use anabranch_settings::{KindEntry, kind};

use super::common_parameters::{FLOW, WINDOW, WINDOWS};
use super::outcome::mean;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// The parameters of [`Silence`].
    struct SilenceConfig {
        flow: String as FLOW;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// End of the longest time in the window without a delivery to the receiving application, in
    /// seconds from the start of the window. If the window starts when a path fails, this is the
    /// time until transmission resumes. A later time without a delivery counts as a continuation of
    /// the longest one if it is at least half as long, and if the deliveries between these two
    /// times lasted no longer than the longest one. The value is 0 if no time without a delivery in
    /// the window is longer than all such times before the window. There is no value if no data is
    /// delivered after the longest one. Mean over the members.
    pub(super) static RECOVERY_TIME: KindEntry<BoxedMetric> =
        "recovery_time", |it, ()| Ok(it.of("recovery_time", |meter| meter.sum));
    /// Longest time without a delivery to the receiving application, s: mean over the members.
    pub(super) static MAX_DELIVERY_GAP: KindEntry<BoxedMetric> =
        "max_delivery_gap", |it, ()| Ok(it.of("max_delivery_gap", |meter| meter.weight));
}

struct DeliveryGap {
    name: &'static str,
    /// Value of the meter in nanoseconds.
    of: fn(&Meter) -> f64,
    flow: String,
    over: TimeWindows,
}

impl SilenceConfig {
    fn of(self, name: &'static str, of: fn(&Meter) -> f64) -> BoxedMetric {
        Box::new(DeliveryGap {
            name,
            of,
            flow: self.flow,
            over: self.over,
        })
    }
}

impl Metric for DeliveryGap {
    fn names(&self) -> Vec<ResultName> {
        self.over.names(&self.flow, self.name, "s")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let meter = |window| Meter::new(MeterKind::Silence, window);
        self.over.observers(life, meter)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let seconds = |meter: &Meter| (self.of)(meter) / 1e9;
        let windows = 0..self.over.windows().len();
        windows
            .map(|window| mean(seen.observers(&self.flow, window).into_iter().map(seconds)))
            .collect()
    }
}
