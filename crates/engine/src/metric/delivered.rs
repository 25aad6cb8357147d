//! Metrics of the data that reached the receiving application.

use anabranch_settings::{KindEntry, KindError, kind};
use anabranch_transport::time;

use super::common_parameters::{CLOCK, FLOW, WINDOW, WINDOWS};
use super::outcome::mean;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// Parameters of goodput.
    struct Goodput {
        flow: String as FLOW;
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Goodput, bit/s: unique payload that reached the receiving application, divided by the length
    /// of the window; sum over the members.
    pub(super) static GOODPUT: KindEntry<BoxedMetric> = "goodput", |it, ()| Ok(Box::new(it));
}

impl Metric for Goodput {
    fn names(&self) -> Vec<ResultName> {
        self.over.names(&self.flow, "goodput", "bit/s")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        if self.over.is_whole() {
            return Vec::new();
        }
        let meter = |window| Meter::new(MeterKind::Delivered, window);
        self.over.observers(life, meter)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let windows = self.over.windows().enumerate();
        let values = windows.map(|(index, window)| match window {
            None => seen.sum(&self.flow, |flow_stats| flow_stats.delivered) * 8.0 / seen.seconds(),
            Some(window) => {
                let meters = seen.observers::<Meter>(&self.flow, index);
                let bytes = meters.iter().map(|meter| meter.sum).sum::<f64>();
                bytes * 8.0 / time::seconds(window.length())
            }
        });
        values.collect()
    }
}

kind! {
    /// The parameters of [`Segments`].
    struct SegmentsConfig {
        flow: String as FLOW;
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// Unique payload that reached the receiving application, in full segments: mean over the
    /// members.
    pub(super) static SEGMENTS_DELIVERED: KindEntry<BoxedMetric> =
        "segments_delivered", |it, ()| it.build(false);
    /// `segments_delivered` per second of the window, segments/s: mean over the members.
    pub(super) static SEGMENT_RATE: KindEntry<BoxedMetric> = "segment_rate", |it, ()| it.build(true);
}

struct Segments {
    flow: String,
    over: TimeWindows,
    per_second: bool,
}

impl SegmentsConfig {
    fn build(self, per_second: bool) -> Result<BoxedMetric, KindError> {
        Ok(Box::new(Segments {
            flow: self.flow,
            over: self.over,
            per_second,
        }))
    }
}

impl Metric for Segments {
    fn names(&self) -> Vec<ResultName> {
        let (name, unit) = match self.per_second {
            true => ("segment_rate", "segments/s"),
            false => ("segments_delivered", "segments"),
        };
        self.over.names(&self.flow, name, unit)
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let meter = |window| Meter::new(MeterKind::Delivered, window);
        self.over.observers(life, meter)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let segment = seen.segment(&self.flow);
        let of = |meter: &Meter| match self.per_second {
            true => meter.weight / segment / time::seconds(meter.length()),
            false => meter.weight / segment,
        };
        let windows = 0..self.over.windows().len();
        windows
            .map(|window| mean(seen.observers(&self.flow, window).into_iter().map(of)))
            .collect()
    }
}
