//! Claims: what a paper concludes from its figures, as something that runs can hold or break.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Value;

/// A conclusion about measures: an order, a slope, a crossing, or that there is no difference. It is judged at each point of
/// the sweeps that it leaves open, by differences over common replications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name.
    pub id: String,
    /// What is claimed, in a sentence.
    pub text: String,
    /// Where the paper says so: `Fig. 12`.
    #[serde(default)]
    pub published: Option<String>,
    /// What has to hold.
    pub kind: ClaimKind,
    /// The experiment; the first if left out.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Series of the measure; `all` if left out.
    #[serde(default)]
    pub series: Option<String>,
    /// The measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// Only at these x of some of the sweeps: `{ hops = 1, error = [0.05, 0.1] }`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Values>,
    /// What the claim is about, where it is not all of the above.
    #[serde(default, skip_serializing_if = "Side::is_empty")]
    pub of: Side,
    /// What it is held against. Kinds `rises` and `falls` may leave it out.
    #[serde(default)]
    pub than: Option<Side>,
    /// Kinds `rises`, `falls` and `crosses`: the sweep.
    #[serde(default)]
    pub along: Option<String>,
    /// Kind `equal`: the greatest difference that counts as none, as a share of what it is held against: 0.05.
    #[serde(default)]
    pub within: Option<f64>,
    /// The unit in which the differences are shown, such as `Mbit/s`; one that suits them if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Kind `never-best`: whether the greatest or the least value is best.
    #[serde(default, skip_serializing_if = "Best::is_greatest")]
    pub best: Best,
}

/// What has to hold at each point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// `of` is greater than `than`.
    #[default]
    Greater,
    /// `of` and `than` differ by no more than `within`.
    Equal,
    /// `of`, or its excess over `than`, grows along a sweep: the slope of the least squares is above 0.
    Rises,
    /// It shrinks: the slope is below 0.
    Falls,
    /// `of` is above `than` at the sweep's least x and below it at the greatest.
    Crosses,
    /// Some other value of the sweeps that `of` fixes does better than `of`.
    NeverBest,
}

impl ClaimKind {
    /// Its name in a spec.
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

/// Which value is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// The greatest.
    #[default]
    Greatest,
    /// The least.
    Least,
}

impl Best {
    fn is_greatest(&self) -> bool {
        *self == Best::Greatest
    }
}

/// One side of a comparison. What it leaves out is as the claim says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The experiment.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Series of the measure.
    #[serde(default)]
    pub series: Option<String>,
    /// The measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// Only at these x of some of the sweeps, beside the claim's.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// A number instead (`than` only): in the measure's unit, with a unit of its own (`"96.5 Mbit/s"`), or an expression in which the names of
    /// sweeps and parameters stand for their values at the point: `"96.5 Mbit/s * (1 - $loss)"`.
    #[serde(default)]
    pub value: Option<Bound>,
}

impl Side {
    fn is_empty(&self) -> bool {
        *self == Side::default()
    }
}

/// A number, a quantity such as `96.5 Mbit/s`, or an expression such as `96.5 Mbit/s * (1 - $loss)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A number in the unit of the measure.
    Number(f64),
    /// Text: a quantity, or an expression.
    Text(String),
}

/// One x or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Values {
    /// Several.
    Several(Vec<Value>),
    /// One.
    One(Value),
}

impl Values {
    /// All values.
    pub fn all(&self) -> &[Value] {
        match self {
            Values::Several(values) => values,
            Values::One(value) => std::slice::from_ref(value),
        }
    }
}

impl Claim {
    /// The experiment of each side, if the side names one.
    pub fn experiments(&self) -> impl Iterator<Item = Option<&String>> {
        let sides = std::iter::once(&self.of).chain(&self.than);
        let measured = sides.filter(|side| side.value.is_none());
        measured.map(|side| side.experiment.as_ref().or(self.experiment.as_ref()))
    }
}
