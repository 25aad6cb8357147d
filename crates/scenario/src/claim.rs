//! Claims: conclusions of a paper, as statements that runs can confirm or contradict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::SweepValue;

/// A conclusion about measures: an order, a trend, a crossing, or equality. It is tested at each
/// point of the sweeps that it does not fix to one value. The test uses the differences, or the
/// slopes, of the measures in each replication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name of the claim.
    pub id: String,
    /// The claim as a sentence.
    pub text: String,
    /// Place in the paper: `Fig. 12`.
    #[serde(default)]
    pub published: Option<String>,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Experiment whose results are tested. Default: the first experiment.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Series of the measure. Default: `all`.
    #[serde(default)]
    pub series: Option<String>,
    /// Metric of the measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// Restriction to points of some sweeps: `{ hops = 1, error = [0.05, 0.1] }`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Values>,
    /// The measure that the claim is about. Only keys whose values differ from those of the claim
    /// itself are needed.
    #[serde(default, skip_serializing_if = "ClaimSide::is_empty")]
    pub of: ClaimSide,
    /// The measure or value with which `of` is compared. Kinds `rises` and `falls` do not need it.
    #[serde(default)]
    pub reference: Option<ClaimSide>,
    /// Kinds `rises`, `falls` and `crosses`: name of the sweep along which the measure is followed.
    #[serde(default)]
    pub along: Option<String>,
    /// Kind `equal`: maximum difference, as a fraction of the reference, such as 0.05.
    #[serde(default)]
    pub within: Option<f64>,
    /// Unit in which differences are shown, such as `Mbit/s`. Default: a suitable unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Kind `never-best`: whether the greatest or the least value is the best.
    #[serde(default, skip_serializing_if = "Best::is_greatest")]
    pub best: Best,
}

/// Kind of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// `of` is greater than `reference`.
    #[default]
    Greater,
    /// `of` and `reference` differ by at most `within`.
    Equal,
    /// `of`, or its difference from `reference`, increases along a sweep: the least-squares line
    /// has a slope above 0.
    Rises,
    /// `of`, or its difference from `reference`, decreases along a sweep: the least-squares line
    /// has a slope below 0.
    Falls,
    /// `of` is above `reference` at the smallest x of the sweep, and below it at the largest.
    Crosses,
    /// Another point of the sweeps that `of` fixes has a better value than `of`.
    NeverBest,
}

impl ClaimKind {
    /// Name of the kind in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimKind::Greater => "greater",
            ClaimKind::Equal => "equal",
            ClaimKind::Rises => "rises",
            ClaimKind::Falls => "falls",
            ClaimKind::Crosses => "crosses",
            ClaimKind::NeverBest => "never-best",
        }
    }
}

/// Direction in which values are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// The greatest value is the best.
    #[default]
    Greatest,
    /// The least value is the best.
    Least,
}

impl Best {
    fn is_greatest(&self) -> bool {
        *self == Best::Greatest
    }
}

/// One side of a comparison: a measure, or a value. By default each key has the value that it has
/// in the claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSide {
    /// Experiment of the measure.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Series of the measure.
    #[serde(default)]
    pub series: Option<String>,
    /// Metric of the measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// Restriction to points of some sweeps, in addition to that of the claim.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, SweepValue>,
    /// In `reference` only: a value in place of a measure. It is a number in the unit of the
    /// measure, a quantity with a unit (`"96.5 Mbit/s"`), or an expression with names of sweeps and
    /// parameters, whose values at the point are used: `"96.5 Mbit/s * (1 - $loss)"`.
    #[serde(default)]
    pub value: Option<Bound>,
}

impl ClaimSide {
    fn is_empty(&self) -> bool {
        *self == ClaimSide::default()
    }
}

/// A bound: a number, a quantity such as `96.5 Mbit/s`, or an expression such as `96.5 Mbit/s *
/// (1 - $loss)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A number in the unit of the measure.
    Number(f64),
    /// Text: a quantity, or an expression.
    Text(String),
}

/// One x value, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Values {
    /// Several values.
    Several(Vec<SweepValue>),
    /// One value.
    One(SweepValue),
}

impl Values {
    /// All values as a list.
    pub fn all(&self) -> &[SweepValue] {
        match self {
            Values::Several(values) => values,
            Values::One(value) => std::slice::from_ref(value),
        }
    }
}

impl Claim {
    /// Experiment of each side of the comparison, if the side names one.
    pub fn experiments(&self) -> impl Iterator<Item = Option<&String>> {
        let sides = std::iter::once(&self.of).chain(&self.reference);
        let measured = sides.filter(|side| side.value.is_none());
        measured.map(|side| side.experiment.as_ref().or(self.experiment.as_ref()))
    }
}
