//! Mean congestion window.

use anabranch_settings::{KindEntry, SettingValue, kind};

use super::common_parameters::{FLOW, WINDOW, WINDOWS};
use super::outcome::mean;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::aggregation::Weighting;
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// Parameters of the mean congestion window.
    struct MeanCwnd {
        flow: String as FLOW;
        /// Weight of samples. `time`: each value is weighted by its duration; `samples`: all
        /// samples have the same weight, as in a mean over the lines of a trace.
        weighting: Weighting = "time", Weighting::KIND;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Mean congestion window, segments: mean over the members of the flow. With `weighting =
    /// "samples"` the value is named `mean_cwnd_samples`.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "mean_cwnd", |it, ()| Ok(Box::new(it));
}

impl Metric for MeanCwnd {
    fn names(&self) -> Vec<ResultName> {
        let name = match self.weighting {
            Weighting::Time => "mean_cwnd",
            Weighting::Samples => "mean_cwnd_samples",
        };
        self.over.names(&self.flow, name, "segments")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = match self.weighting {
            Weighting::Time => MeterKind::CWND_BY_TIME,
            Weighting::Samples => MeterKind::CWND_BY_SAMPLES,
        };
        self.over
            .observers(life, |window| Meter::new(kind.clone(), window))
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let segment = seen.segment(&self.flow);
        let value = |window| {
            let meters: Vec<&Meter> = seen.observers(&self.flow, window);
            let any = meters.iter().filter(|meter| meter.weight > 0.0);
            mean(any.map(|meter| meter.sum / meter.weight / segment))
        };
        (0..self.over.windows().len()).map(value).collect()
    }
}
