//! Derived experiments, which are computed from the results of another experiment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::SweepValue;

/// An experiment that is computed from the measures of another one, separately for each
/// replication. The other experiment is run, or is an earlier derived one. Tables and figures refer
/// to it by its `id`, as to any experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Derived {
    /// Relative difference of a measure from its value at another point of the same replication, in
    /// percent of the value at that point. With `common_random_numbers` both points have the same
    /// losses.
    Relative {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Point of the value with which the measure is compared: `{ streams = 1 }`. In all other
        /// sweeps the two points have the same x.
        to: BTreeMap<String, SweepValue>,
        /// Name of the resulting metric.
        name: String,
    },
    /// For each replication, the smallest x of a sweep for which a measure does not exceed a bound
    /// at this x and at all larger x. A point is omitted if some replication has no such x.
    SmallestX {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Sweep that is searched; its x values must be numbers.
        along: String,
        /// Bound, in the unit of the measure.
        at_most: f64,
        /// Name of the resulting metric.
        name: String,
        /// Unit of the x values.
        #[serde(default)]
        unit: Option<String>,
    },
    /// For each replication, the value of a measure at one x of a sweep: the x at which the mean
    /// over the replications is greatest. It is meant for statements such as "up to 20 %".
    Greatest {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Sweep that is searched.
        along: String,
        /// Name of the resulting metric.
        name: String,
    },
}

impl Derived {
    /// Short name of the derived experiment.
    pub fn id(&self) -> &str {
        match self {
            Derived::Relative { id, .. }
            | Derived::SmallestX { id, .. }
            | Derived::Greatest { id, .. } => id,
        }
    }

    /// Id of the source experiment.
    pub fn experiment(&self) -> &str {
        match self {
            Derived::Relative { experiment, .. }
            | Derived::SmallestX { experiment, .. }
            | Derived::Greatest { experiment, .. } => experiment,
        }
    }

    /// Series and metric of the source measure.
    pub fn source(&self) -> (&str, &str) {
        match self {
            Derived::Relative { series, metric, .. }
            | Derived::SmallestX { series, metric, .. }
            | Derived::Greatest { series, metric, .. } => (series, metric),
        }
    }

    /// Series and metric of the result.
    pub fn names(&self) -> (String, String) {
        match self {
            Derived::Relative { series, name, .. }
            | Derived::SmallestX { series, name, .. }
            | Derived::Greatest { series, name, .. } => (series.clone(), name.clone()),
        }
    }

    /// Unit of the result; `None` if it is that of the source measure.
    pub fn unit(&self) -> Option<&str> {
        match self {
            Derived::Relative { .. } => Some("1"),
            Derived::SmallestX { unit, .. } => Some(unit.as_deref().unwrap_or("1")),
            Derived::Greatest { .. } => None,
        }
    }

    /// Keys and names of the sweeps to which this experiment refers.
    pub fn sweeps(&self) -> Vec<(String, &str)> {
        match self {
            Derived::Relative { to, .. } => to
                .keys()
                .map(|name| (format!("to.{name}"), name.as_str()))
                .collect(),
            Derived::SmallestX { along, .. } | Derived::Greatest { along, .. } => {
                vec![("along".to_owned(), along.as_str())]
            }
        }
    }

    /// Sweep that is searched, which the result no longer has.
    pub fn along(&self) -> Option<&str> {
        match self {
            Derived::Relative { .. } => None,
            Derived::SmallestX { along, .. } | Derived::Greatest { along, .. } => Some(along),
        }
    }
}
