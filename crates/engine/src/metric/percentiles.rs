//! Percentiles and means of sampled values, and the metric of the percentiles of a probe.

use anabranch_scenario::quantity::Window;
use anabranch_scenario::unit::of_probe;
use anabranch_settings::{
    Choice, FromParameters, Kind, KindEntry, KindError, KindParameters, Setting, SettingValue, kind,
};
use anabranch_transport::{Nanos, Probe, Sample};

use super::common_parameters::{CLOCK, FLOW, INDEX, NAME, NameParameter, PROBE, WINDOW, WINDOWS};
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::aggregation::Weighting;
use crate::agent::flow_stats::end_of;
use crate::agent::histogram::Histogram;
use crate::agent::observer::{End, Observer};

/// Parameter `statistic`: the statistics of a distribution.
pub const STATISTIC: Setting = Setting::new(
    "statistic",
    " What to compute from the samples of all members, one word or a list: `mean`, `least`, \
     `most`, their number (`count`), percentiles (`p50` to `p99.9`). The name of each measure ends with the word. `cdf`: every fifth percentile from `p0` to `p100`. A percentile is the smallest sample for which at least this share of the samples is not larger.",
    Kind::List(&Kind::Choice(WORDS)),
)
.or("mean, p50, p95, p99");

macro_rules! words {
    ($($word:literal)+) => { &[$(Choice { name: $word, about: "" }),+] };
}

const WORDS: &[Choice] = words!(
    "mean" "least" "most" "count" "cdf" "p0" "p1" "p5" "p10" "p15" "p20" "p25" "p30" "p35" "p40" "p45" "p50" "p55" "p60" "p65"
    "p70" "p75" "p80" "p85" "p90" "p95" "p98" "p99" "p99.5" "p99.9" "p99.99" "p100"
);

/// Statistics of a distribution that a metric computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken(Vec<One>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum One {
    Mean,
    Count,
    /// A quantile: its word in the spec, and the fraction of values that are at most this quantile.
    Quantile(&'static str, f64),
}

impl FromParameters for Taken {
    /// Reads [`STATISTIC`], a list of words, none of which may be repeated.
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        let words: Vec<String> = parameters.get(STATISTIC.name)?;
        let known = |word: &str| WORDS.iter().find(|known| known.name == word);
        let mut taken: Vec<One> = Vec::new();
        for word in &words {
            let Some(word) = known(word) else { continue };
            let quantiles = |name: &str| {
                let fifth = name
                    .strip_prefix('p')
                    .and_then(|number| number.parse::<u32>().ok());
                fifth.is_some_and(|number| number % 5 == 0)
            };
            match word.name {
                "cdf" => {
                    let fifths = WORDS.iter().filter(|word| quantiles(word.name));
                    taken.extend(fifths.map(|word| One::named(word.name)));
                }
                name => taken.push(One::named(name)),
            }
        }
        let again = |(index, one): (usize, &One)| taken[..index].contains(one);
        if taken.iter().enumerate().any(again) {
            return Err(KindError::together("`statistic` names a value twice"));
        }
        Ok(Self(taken))
    }
}

impl Taken {
    /// Names of the values of a quantity, window by window.
    pub fn names(
        &self,
        over: &TimeWindows,
        series: &str,
        quantity: &str,
        unit: &'static str,
    ) -> Vec<ResultName> {
        let windows = over.names(series, quantity, unit);
        let names = windows.iter().flat_map(|window| {
            self.0.iter().map(|one| {
                let name = format!("{}_{}", window.metric, one.word());
                let unit = match one {
                    One::Count => "samples",
                    _ => unit,
                };
                ResultName::new(series, &name, unit)
            })
        });
        names.collect()
    }

    /// Computes the statistics of a distribution.
    pub fn of(&self, distribution: &Histogram) -> Vec<f64> {
        let values = self.0.iter().map(|one| match one {
            One::Mean => distribution.mean().unwrap_or(f64::NAN),
            One::Count => distribution.count() as f64,
            One::Quantile(_, share) => distribution.quantile(*share).unwrap_or(f64::NAN),
        });
        values.collect()
    }

    /// Computes the statistics for each window, from the combined observations of all members.
    pub fn over<T: Observer>(
        &self,
        over: &TimeWindows,
        seen: &RunData<'_>,
        flow: &str,
        of: impl Fn(&T) -> &Histogram,
    ) -> Vec<f64> {
        let windows = 0..over.windows().len();
        let values = windows.flat_map(|window| {
            let mut all = Histogram::default();
            for observer in seen.observers::<T>(flow, window) {
                all.merge(of(observer));
            }
            self.of(&all)
        });
        values.collect()
    }
}

impl One {
    fn named(name: &'static str) -> Self {
        match name {
            "mean" => One::Mean,
            "count" => One::Count,
            "least" => One::Quantile(name, 0.0),
            "most" => One::Quantile(name, 1.0),
            _ => {
                let percent = name[1..].parse::<f64>().unwrap_or(0.0);
                One::Quantile(name, percent / 100.0)
            }
        }
    }

    fn word(self) -> String {
        match self {
            One::Mean => "mean".to_owned(),
            One::Count => "count".to_owned(),
            One::Quantile(name, _) => name.replace('.', "_"),
        }
    }
}

kind! {
    /// Parameters of percentiles.
    struct Percentiles {
        name: NameParameter as [NAME];
        flow: String as FLOW;
        probe: Probe as PROBE;
        statistic: Taken as [STATISTIC];
        /// Weight of values. `time`: each value is weighted by its duration; `samples`: all values
        /// have the same weight.
        weighting: Weighting = "time", Weighting::KIND;
        index: Option<u16> as INDEX;
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// Percentiles of the values of a probe, over all members of the flow together. The names of
    /// the values begin with `name`, as in `cwnd_p95`.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "percentiles", |it, ()| Ok(Box::new(it));
}

/// Observer of the values of a probe of one member.
#[derive(Debug)]
struct Values {
    window: Window,
    probe: Probe,
    index: Option<u16>,
    weighting: Weighting,
    /// Current value, and the time since which it is valid.
    standing: Option<(f64, Nanos)>,
    seen: Histogram,
}

impl Values {
    fn stood_until(&mut self, until: Nanos) {
        if let Some((value, since)) = self.standing {
            let [begin, end] = self.window.0;
            let span = until.min(end.0).saturating_sub(since.max(begin.0));
            self.seen.add(value, span as f64);
        }
    }
}

impl Observer for Values {
    fn end(&self) -> End {
        end_of(self.probes())
    }

    fn probes(&self) -> &[Probe] {
        std::slice::from_ref(&self.probe)
    }

    fn first_window(&mut self, sample: &Sample) {
        self.sample(sample);
    }

    fn sample(&mut self, sample: &Sample) {
        let of_index = self.index.is_none_or(|index| index == sample.index);
        if sample.probe != self.probe || !of_index {
            return;
        }
        match self.weighting {
            Weighting::Time => {
                self.stood_until(sample.at);
                self.standing = Some((sample.value, sample.at));
            }
            Weighting::Samples if self.window.contains(sample.at) => {
                self.seen.add(sample.value, 1.0);
            }
            Weighting::Samples => {}
        }
    }

    fn close(&mut self, end: Nanos) {
        self.stood_until(end);
        self.standing = None;
    }
}

impl Metric for Percentiles {
    fn names(&self) -> Vec<ResultName> {
        let unit = of_probe(self.probe.name());
        self.statistic
            .names(&self.over, &self.flow, &self.name.0, unit)
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.over.observers(life, |window| Values {
            window,
            probe: self.probe,
            index: self.index,
            weighting: self.weighting,
            standing: None,
            seen: Histogram::default(),
        })
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        self.statistic
            .over::<Values>(&self.over, seen, &self.flow, |values| &values.seen)
    }
}
