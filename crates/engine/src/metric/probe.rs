//! Metrics that compute single numbers from the samples of a probe.

use anabranch_scenario::unit::of_probe;
use anabranch_settings::{Kind, KindEntry, KindError, SettingValue, kind};
use anabranch_transport::Probe;

use super::common_parameters::{
    CLOCK, FLOW, INDEX, NAME, NameParameter, PROBE, WINDOW, WINDOWS, check_takes,
};
use super::outcome::mean;
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData, whole};
use crate::agent::aggregation::Aggregation;
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

kind! {
    /// Parameters of a statistic of a probe.
    struct OfProbe {
        name: NameParameter as [NAME];
        flow: String as FLOW;
        probe: Probe as PROBE;
        /// Values to compute from the samples, one word or a list. `mean`: mean over time, each
        /// value weighted by its duration; `below`: share of the time below `threshold`; `least`,
        /// `most`: minimum and maximum; `sample-mean`: mean of the samples, all with the same
        /// weight; `count`: number of samples; `sum`: sum of the samples; `mean-gap`: mean time
        /// between samples, s; `first-time`: time of the first sample, s from the start of the run.
        statistic: Vec<Aggregation>, Kind::List(&Aggregation::KIND);
        /// Threshold of `below`, in the unit of the probe.
        threshold: Option<f64> = none, Kind::number(f64::MIN, f64::MAX);
        index: Option<u16> as INDEX;
        /// Number by which the statistic is divided. The result has no unit, as in mean cwnd
        /// / 4380.
        per: Option<f64> = none, ABOVE_ZERO;
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// A statistic of all samples of a probe of the flow: the mean over the members, and for
    /// `count` and `sum` the sum. The value is named `name`; with several words in `statistic`,
    /// each name also has the word, as in `cwnd_least`.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "probe", |it, ()| it.checked();
}

/// Kind of the values of a parameter that is a number above 0.
const ABOVE_ZERO: Kind = Kind::Number {
    least: 0.0,
    most: f64::INFINITY,
    above: true,
    step: 0.0,
};

impl OfProbe {
    fn checked(self) -> Result<BoxedMetric, KindError> {
        check_takes(&self.statistic)?;
        if self.statistic.contains(&Aggregation::Below) != self.threshold.is_some() {
            let message =
                "`threshold` is needed with `statistic = \"below\"`, and allowed only there";
            return Err(KindError::together(message));
        }
        Ok(Box::new(self))
    }
}

impl Metric for OfProbe {
    fn names(&self) -> Vec<ResultName> {
        let own = of_probe(self.probe.name());
        let of = |take: &Aggregation| {
            let unit = match take {
                _ if self.per.is_some() => "1",
                Aggregation::Mean
                | Aggregation::SampleMean
                | Aggregation::Least
                | Aggregation::Most
                | Aggregation::Sum => own,
                Aggregation::MeanGap | Aggregation::FirstTime => "s",
                Aggregation::Below => "1",
                Aggregation::Count => "samples",
            };
            match self.statistic.len() {
                1 => self.over.names(&self.flow, &self.name.0, unit),
                _ => {
                    let word = take.to_datum().text().unwrap_or_default().replace('-', "_");
                    let name = format!("{}_{word}", self.name.0);
                    self.over.names(&self.flow, &name, unit)
                }
            }
        };
        self.statistic.iter().flat_map(of).collect()
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let of = |take: &Aggregation| {
            let kind = MeterKind::Probe {
                probe: self.probe,
                index: self.index,
                take: *take,
                threshold: self.threshold.unwrap_or(0.0),
            };
            let meter = |window| Meter::new(kind.clone(), window);
            self.over.observers(life, meter)
        };
        self.statistic.iter().flat_map(of).collect()
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        // Meters are ordered by statistic, and then by window.
        let windows = self.over.windows().len();
        let value = |place: usize| {
            let meters: Vec<&Meter> = seen.observers(&self.flow, place);
            let any = || meters.iter().filter(|meter| meter.weight > 0.0);
            let value: f64 = match self.statistic[place / windows] {
                Aggregation::Mean
                | Aggregation::SampleMean
                | Aggregation::Below
                | Aggregation::MeanGap => mean(any().map(|meter| meter.sum / meter.weight)),
                Aggregation::Least | Aggregation::Most | Aggregation::FirstTime => {
                    mean(any().map(|meter| meter.sum))
                }
                Aggregation::Count => meters.iter().map(|meter| meter.weight).sum(),
                Aggregation::Sum => meters.iter().map(|meter| meter.sum).sum(),
            };
            self.per.map_or(value, |per| value / per)
        };
        (0..self.statistic.len() * windows).map(value).collect()
    }
}

kind! {
    /// Parameters of the time for which the receive buffer limits the sender.
    struct Blocked {
        flow: String as FLOW;
        /// Threshold of the receive window, usually the size of a packet.
        threshold: u64, Kind::bytes(0, 1 << 40);
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Share of the time, from the first congestion window on, for which the receive buffer limits
    /// the sender: the peer's receive window minus the outstanding bytes is below `threshold`, and
    /// the flight size is below cwnd. Mean over the members.
    pub(super) static BLOCKED_BY_RWND: KindEntry<BoxedMetric> = "rwnd_limited_share", |it, ()| Ok(Box::new(it));
}

impl Metric for Blocked {
    fn names(&self) -> Vec<ResultName> {
        self.over.names(&self.flow, "rwnd_limited_share", "1")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Blocked {
            threshold: self.threshold as f64,
        };
        self.over
            .observers(life, |window| Meter::new(kind.clone(), window))
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let of = |meter: &Meter| meter.sum / meter.weight;
        let windows = 0..self.over.windows().len();
        windows
            .map(|window| mean(seen.observers(&self.flow, window).into_iter().map(of)))
            .collect()
    }
}

kind! {
    /// Parameters of the maximum use of the receive buffer.
    struct MostHeld {
        flow: String as FLOW;
    }
    /// Maximum number of bytes in the receive buffer when a SACK was sent: the size of the buffer
    /// minus the smallest advertised a_rwnd; mean over the members.
    pub(super) static MAX_HELD: KindEntry<BoxedMetric> = "max_receive_buffer_used", |it, ()| Ok(Box::new(it));
}

impl Metric for MostHeld {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(
            &self.flow,
            "max_receive_buffer_used",
            "bytes",
        )]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Probe {
            probe: Probe::AdvertisedRwnd,
            index: None,
            take: Aggregation::Least,
            threshold: 0.0,
        };
        vec![Box::new(Meter::new(kind, whole(life)))]
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let flow = seen.flow(&self.flow);
        let buffer = flow.map_or(0.0, |flow| flow.receive_buffer as f64);
        let least = |meter: &Meter| match meter.weight > 0.0 {
            true => meter.sum,
            false => f64::NAN,
        };
        let meters = seen.observers(&self.flow, 0).into_iter();
        vec![buffer - mean(meters.map(least))]
    }
}
