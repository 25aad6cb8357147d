//! Experiments that are computed from another's runs rather than run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Value;

/// An experiment made of the measures of another one (one that is run, or one that stands before this), replication by
/// replication. Tables and figures use it like any
/// other, by its `id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Derived {
    /// By how much a measure exceeds its value at another point of the same replication, % of that value. The points
    /// are those of the experiment. With `common_losses` both met the same losses.
    Relative {
        /// Short name.
        id: String,
        /// The experiment whose measures are compared.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// The measure.
        metric: String,
        /// Where the base lies in the sweeps: `{ streams = 1 }`; in the others it is where the value lies.
        to: BTreeMap<String, Value>,
        /// Name of the result.
        name: String,
    },
    /// The smallest x of a sweep from which on a measure never exceeds a bound, in each replication. A point at which
    /// some replication has no such point is left out.
    SmallestX {
        /// Short name.
        id: String,
        /// The experiment whose measures are searched.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// The measure.
        metric: String,
        /// The sweep, whose x are numbers.
        along: String,
        /// The bound, in the measure's unit.
        at_most: f64,
        /// Name of the result.
        name: String,
        /// Unit of the x.
        #[serde(default)]
        unit: Option<String>,
    },
    /// The values of a measure at that x of a sweep where its mean over the replications is greatest: what a text that
    /// says "up to" speaks of.
    Greatest {
        /// Short name.
        id: String,
        /// The experiment whose measures are searched.
        experiment: String,
        /// Series of the measure.
        series: String,
        /// The measure.
        metric: String,
        /// The sweep.
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
