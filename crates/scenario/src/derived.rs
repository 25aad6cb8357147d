//! Experiments that are computed from the results of another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Value;

/// An experiment that is computed from the measures of another one, which is run or derived before
/// this, replication by replication. Tables and figures refer to it by its `id`, as to any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Derived {
    /// Relative difference of a measure from its value at another point of the same replication, in
    /// percent of that value. With `common_random_numbers` both points have the same losses.
    Relative {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Point of the value to compare with: `{ streams = 1 }`. In all other sweeps, the two
        /// points have the same x.
        to: BTreeMap<String, Value>,
        /// Name of the result.
        name: String,
    },
    /// The smallest x of a sweep from which a measure never exceeds a bound, in each replication. A
    /// point is omitted if any replication has no such x.
    SmallestX {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Sweep to search; its x values are numbers.
        along: String,
        /// Bound, in the unit of the measure.
        at_most: f64,
        /// Name of the result.
        name: String,
        /// Unit of the x.
        #[serde(default)]
        unit: Option<String>,
    },
    /// The values of a measure at the x of a sweep at which its mean over the replications is
    /// greatest. Use it for statements such as "up to 20 %".
    Greatest {
        /// Short name.
        id: String,
        /// Experiment of the measure.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// Metric of the measure.
        metric: String,
        /// Sweep to search.
        along: String,
        /// Name of the result.
        name: String,
    },
}

impl Derived {
    /// The short name.
    pub fn id(&self) -> &str {
        match self {
            Derived::Relative { id, .. }
            | Derived::SmallestX { id, .. }
            | Derived::Greatest { id, .. } => id,
        }
    }

    /// The source experiment.
    pub fn experiment(&self) -> &str {
        match self {
            Derived::Relative { experiment, .. }
            | Derived::SmallestX { experiment, .. }
            | Derived::Greatest { experiment, .. } => experiment,
        }
    }

    /// The series and metric that are read.
    pub fn source(&self) -> (&str, &str) {
        match self {
            Derived::Relative { series, metric, .. }
            | Derived::SmallestX { series, metric, .. }
            | Derived::Greatest { series, metric, .. } => (series, metric),
        }
    }

    /// The series and metric of the result.
    pub fn names(&self) -> (String, String) {
        match self {
            Derived::Relative { series, name, .. }
            | Derived::SmallestX { series, name, .. }
            | Derived::Greatest { series, name, .. } => (series.clone(), name.clone()),
        }
    }

    /// The unit of the result; `None` if it is the unit of the source measure.
    pub fn unit(&self) -> Option<&str> {
        match self {
            Derived::Relative { .. } => Some("1"),
            Derived::SmallestX { unit, .. } => Some(unit.as_deref().unwrap_or("1")),
            Derived::Greatest { .. } => None,
        }
    }

    /// The sweeps that are named.
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

    /// The sweep that is searched and does not appear in the result.
    pub fn along(&self) -> Option<&str> {
        match self {
            Derived::Relative { .. } => None,
            Derived::SmallestX { along, .. } | Derived::Greatest { along, .. } => Some(along),
        }
    }
}
