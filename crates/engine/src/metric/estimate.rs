//! Errors of probes that are estimates.

use anabranch_scenario::unit::of_probe;
use anabranch_settings::{Kind, KindEntry, KindError, SettingValue, kind};
use anabranch_transport::{Nanos, Probe};

use super::common_parameters::{FLOW, INDEX, NAME, NameParameter, PROBE, TIME, WINDOW, WINDOWS};
use super::outcome::mean;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::aggregation::Weighting;
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// The parameters of [`EstimateError`].
    struct EstimateErrorConfig {
        name: NameParameter as [NAME];
        flow: String as FLOW;
        probe: Probe as PROBE;
        index: Option<u16> as INDEX;
        /// True rates, in the order of time: each with the time from which it is valid, as in `[["0
        /// s", "1 Mbit/s"], ["15 s", "250 kbit/s"]]`.
        truth: Vec<(Nanos, u64)>, Kind::List(&Kind::Tuple(&[TIME, Kind::rate(1, 1_000_000_000_000)]));
        /// Weight of samples. `samples`: all samples have the same weight; `time`: each sample is
        /// weighted by the time until the next one.
        weighting: Weighting = "samples", Weighting::KIND;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Relative error of a probe that estimates a rate, %: mean of |sample - truth| / truth.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "estimate_error", |it, ()| {
        if it.truth.is_empty() || it.truth.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            let message = "the truth has at least one step, and the times of its steps rise";
            return Err(KindError::together(message));
        }
        let per_unit = if of_probe(it.probe.name()) == "B/s" { 8.0 } else { 1.0 };
        let truth = it.truth.iter().map(|&(from, rate)| (from, rate as f64 / per_unit));
        let kind = MeterKind::Error {
            probe: it.probe,
            index: it.index,
            truth: truth.collect(),
            weighting: it.weighting,
        };
        Ok(Box::new(EstimateError {
            name: it.name.0,
            flow: it.flow,
            kind,
            over: it.over,
        }))
    };
}

struct EstimateError {
    name: String,
    flow: String,
    kind: MeterKind,
    over: TimeWindows,
}

impl Metric for EstimateError {
    fn names(&self) -> Vec<ResultName> {
        self.over.names(&self.flow, &self.name, "%")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.over
            .observers(life, |window| Meter::new(self.kind.clone(), window))
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let value = |window| {
            let meters: Vec<&Meter> = seen.observers(&self.flow, window);
            let any = meters.iter().filter(|meter| meter.weight > 0.0);
            mean(any.map(|meter| meter.sum / meter.weight * 100.0))
        };
        (0..self.over.windows().len()).map(value).collect()
    }
}
