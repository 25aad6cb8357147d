//! Rate estimates of the TCP Westwood family, each of which consists of a sampling method and a
//! filter that smooths the samples.
//!
//! The papers differ in the method and in the filter, and later papers that cite them often do not
//! state which variant they use, so each of the two can be selected. [`Sampling`] computes `s_k`
//! from the acknowledgements `(t_j, d_j)` (time, bytes acknowledged), and [`Filter`] computes the
//! estimate `b_k` from the samples. [`PRESETS`] contains the published combinations.
//!
//! - Mobicom 2001: S. Mascolo, C. Casetti, M. Gerla, M. Sanadidi, R. Wang, "TCP Westwood: Bandwidth
//!   Estimation for Enhanced Transport over Wireless Links".
//! - ISCC 2002: R. Wang, M. Valla, M. Sanadidi, B. Ng, M. Gerla, "Efficiency/Friendliness Tradeoffs
//!   in TCP Westwood", which names BE and RE.
//! - ABSE: R. Wang, M. Valla, M. Sanadidi, M. Gerla, "Adaptive Bandwidth Share Estimation in TCP
//!   Westwood", Globecom 2002.
//! - CCR 2004: L. Grieco, S. Mascolo, "Performance Evaluation and Comparison of Westwood+, New
//!   Reno, and Vegas TCP Congestion Control".

mod filter;
mod sampling;

use anabranch_settings::{Choice, Datum, Kind, SettingValue};
use anabranch_transport::Nanos;

pub use filter::Filter;
pub use sampling::{Sampling, SamplingInterval};

use crate::AckSample;
use crate::estimator::PathEstimator;
use filter::FilterState;
use sampling::Sampler;

/// Parameters of a rate estimate: a sampling method and a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateParameters {
    /// Name in specs and reports.
    pub name: &'static str,
    /// The sampling method.
    pub sampling: Sampling,
    /// The filter.
    pub filter: Filter,
}

/// Published combinations, each with a description.
pub const PRESETS: &[(RateParameters, &str)] = &[
    (
        RateParameters {
            name: "westwood_re",
            sampling: Sampling::Rate {
                interval: SamplingInterval::RoundTrips(1.0),
            },
            filter: Filter::MOBICOM_2001,
        },
        "RE: bytes acknowledged in the last round trip over its length (ISCC 2002), low-pass filtered (Mobicom 2001)",
    ),
    (
        RateParameters {
            name: "westwood_be",
            sampling: Sampling::Bandwidth,
            filter: Filter::MOBICOM_2001,
        },
        "BE: bytes acknowledged over the time since the last acknowledgement, low-pass filtered (Mobicom 2001)",
    ),
    (
        RateParameters {
            name: "westwood_abse",
            sampling: Sampling::Rate {
                interval: SamplingInterval::Adaptive { least: 50_000_000 },
            },
            filter: Filter::ABSE,
        },
        "ABSE: interval and filter follow the congestion and the unsteadiness seen (Globecom 2002)",
    ),
    (
        RateParameters {
            name: "westwood_plus",
            sampling: Sampling::PerRoundTrip { least: 50_000_000 },
            filter: Filter::CCR_2004,
        },
        "Westwood+: one sample a round trip, seven eighths of the old estimate kept (CCR 2004)",
    ),
];

impl Default for RateParameters {
    /// [`RateParameters::WESTWOOD_PLUS`].
    fn default() -> Self {
        Self::WESTWOOD_PLUS
    }
}

impl RateParameters {
    /// RE of ISCC 2002.
    pub const RE: Self = PRESETS[0].0;
    /// Estimate of Westwood+.
    pub const WESTWOOD_PLUS: Self = PRESETS[3].0;

    /// The preset named `name`; see [`PRESETS`].
    pub fn by_name(name: &str) -> Option<Self> {
        PRESETS
            .iter()
            .map(|(parameters, _)| *parameters)
            .find(|parameters| parameters.name == name)
    }
}

/// Names and descriptions of [`PRESETS`], for settings.
fn choices() -> Vec<Choice> {
    let choice = |(parameters, about): &(RateParameters, &'static str)| Choice {
        name: parameters.name,
        about,
    };
    PRESETS.iter().map(choice).collect()
}

impl SettingValue for RateParameters {
    const KIND: Kind = Kind::Registered(choices);

    fn from_datum(datum: &Datum) -> Option<Self> {
        Self::by_name(datum.text()?)
    }

    fn to_datum(&self) -> Datum {
        Datum::word(self.name)
    }
}

/// Rate estimator of one path.
#[derive(Clone, Debug)]
pub struct WestwoodRate {
    name: &'static str,
    sampler: Sampler,
    filter: FilterState,
}

impl WestwoodRate {
    /// Creates an estimator for a new path.
    pub fn new(parameters: RateParameters) -> Self {
        Self {
            name: parameters.name,
            sampler: Sampler::new(parameters.sampling),
            filter: FilterState::new(parameters.filter),
        }
    }

    /// Adds virtual samples for an idle time that ends at `until`, because a real sample follows,
    /// or a loss is about to be classified.
    fn fill_idle_time(&mut self, until: Nanos) {
        while let Some(at) = self.filter.virtual_sample_before(until) {
            let sample = self.sampler.idle_sample(at);
            self.filter.take(at, sample, None);
        }
    }
}

impl PathEstimator for WestwoodRate {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.bytes_acked == 0 {
            return;
        }
        self.fill_idle_time(ack.now);
        self.filter.heard();
        if let Some(sample) = self.sampler.take(ack, self.filter.estimate()) {
            self.filter.take(ack.now, sample, ack.srtt);
        }
    }

    fn advance(&mut self, now: Nanos) {
        self.fill_idle_time(now);
    }

    fn rate(&self) -> Option<f64> {
        self.filter.estimate()
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests;
