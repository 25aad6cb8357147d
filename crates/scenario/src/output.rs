//! Tables and figures made of the runs.
//!
//! The rows of a table and the curves of a figure refer to results by `series` and `metric` of a
//! measure, or by `flow`/`link` and `probe` of a recording. The same words find the paper's numbers
//! under `published`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Rate, Size, Span, Window};
use crate::value::Value;

/// A table: `tables/<id>.csv`, and a section of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Short name; `tables/<id>.csv` is made of it.
    pub id: String,
    /// Head line.
    pub title: String,
    /// What its rows are.
    #[serde(default)]
    pub kind: TableKind,
    /// The experiment it is made of; the one of the table's own id, or else the first, if left out.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Kind `difference`: the experiment that is subtracted.
    #[serde(default)]
    pub less: Option<String>,
    /// Kind `difference`: short names of the two experiments, in that order; their ids if left out.
    #[serde(default)]
    pub names: Option<[String; 2]>,
    /// Where the paper printed it: `Table II`. Rows of the published file belong to the table when their `where` says the
    /// same, or is empty. Without this the table's id stands for it.
    #[serde(default)]
    pub published: Option<String>,
    /// Only at these x of some of the sweeps: `{ hops = 1 }`; the others make the axis.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Only these x of the experiment's sweep; all if left out.
    #[serde(default)]
    pub at: Option<Vec<Value>>,
    /// How far a time may lie from a printed one, beside rounding (kinds `steps` and `events`); 0 if left out.
    #[serde(default)]
    pub time_tolerance: Option<Span>,
    /// The means of independent programs to set beside, each in a table of its own: by the key of `[reference]`.
    #[serde(default)]
    pub beside: BTreeMap<String, BesideSource>,
    /// A remark for the report.
    #[serde(default)]
    pub note: Option<String>,
    /// Its rows, each at every x.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Measures: mean and interval over the replications.
    #[default]
    Metrics,
    /// Measures of two experiments and their difference over common replications.
    Difference,
    /// The values that a probe of one run takes one after the other from its first decrease, and when.
    Steps,
    /// When something happened in one run.
    Events,
}

/// Which means of another program belong to a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BesideSource {
    /// The place in its file; that of `published` if left out.
    #[serde(default)]
    pub place: Option<String>,
    /// The condition; `{x}` stands for the row's x and `{name}` for the x of the sweep of that name: `era n={x}`.
    pub condition: String,
}

/// A row of a table. Kinds `metrics` and `difference`: `series` and `metric` of a measure. Kind `steps`: `flow`, and
/// as many steps as `count`. Kind `events`: `flow` or `link`, `probe` and which sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The measure's series, or the name for it in the table; the flow's or link's name if left out.
    #[serde(default)]
    pub series: Option<String>,
    /// The name for it in the table instead (kinds `metrics` and `difference`).
    #[serde(default)]
    pub label: Option<String>,
    /// The series under which the paper's numbers stand in the reference data, where it is not `series` (kind `metrics`).
    #[serde(default)]
    pub printed: Option<String>,
    /// Only at these x of some of the sweeps, beside the table's.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// The measure's metric; `cwnd` for steps and `time` for events if left out.
    #[serde(default)]
    pub metric: Option<String>,
    /// Under which x name and x it stands, instead of the sweep's: `window`, `50-150 s`. For events, `x` says what
    /// happened.
    #[serde(default)]
    pub x_name: Option<String>,
    /// See `x_name`.
    #[serde(default)]
    pub x: Option<Value>,
    /// The metric of its mean in each of those files. For steps, the metrics of the times, in order.
    #[serde(default)]
    pub beside: BTreeMap<String, Names>,
    /// The recorded flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Or the recorded link.
    #[serde(default)]
    pub link: Option<String>,
    /// Its member, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// What was recorded of it; `cwnd` for steps if left out.
    #[serde(default)]
    pub probe: Option<String>,
    /// Kind `events`: the segment concerned, counted from 1 for the first of the flow. An acknowledgement concerns the
    /// last segment that it covers, and the first to cover it or more is taken.
    #[serde(default)]
    pub segment: Option<u64>,
    /// Kind `events`: which occurrence, counted from 1; the first if left out.
    #[serde(default)]
    pub occurrence: Option<u32>,
    /// Kind `events`: the value of this probe of the same flow after the event, instead of its time: the last one recorded up
    /// to then. `metric` is its name in the reference data.
    #[serde(default)]
    pub reads: Option<String>,
    /// Kind `steps`: also the time from the first value to the value of this number, counted from 1, as the metric `elapsed`
    /// under the x name `steps` and an x such as `1-6`.
    #[serde(default)]
    pub elapsed: Option<u32>,
    /// Kind `steps`: how many values.
    #[serde(default)]
    pub count: Option<u32>,
    /// The unit to show. Kind `steps`, and `events` with `reads`: `bytes`, `KiB` or `segments`, for probes in bytes. Kinds `metrics` and
    /// `difference`: `kbit/s` or `Mbit/s` instead of `bit/s`, `ms` instead of `s`, `%` instead of `1`, `KiB` instead of `bytes`.
    #[serde(default)]
    pub unit: Option<String>,
    /// How many bytes a segment has, where the unit is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// Kind `metrics`: the runs come near a bound of the quantity, as Jain's index does to 1. A printed value is then held
    /// against quantiles of the runs and not against a normal distribution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bounded: bool,
}

/// One name or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Names {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Names {
    /// The name at an index; a single name has index 0 only.
    pub fn get(&self, index: usize) -> Option<&str> {
        match self {
            Names::One(name) => (index == 0).then_some(name.as_str()),
            Names::Several(names) => names.get(index).map(String::as_str),
        }
    }
}

/// A figure: `figures/<id>.svg`, and a place in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Short name; `figures/<id>.svg` is made of it.
    pub id: String,
    /// Head line.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: FigureKind,
    /// The experiment it is made of; the one of the figure's own id, or else the first, if left out.
    #[serde(default)]
    pub experiment: Option<String>,
    /// The figure's name in the paper: `Fig. 3`. Points printed under that name (or under the table's name, for
    /// kind `sweep`) are drawn beside ours.
    #[serde(default)]
    pub published: Option<String>,
    /// What to look at, for the report.
    #[serde(default)]
    pub caption: Option<String>,
    /// Only at these x of some of the sweeps: `{ hops = 1 }`; the others make the axis of kinds `sweep` and `bars`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Which x of the experiment's sweep; the first if left out (kinds `sweep` and `bars` draw all).
    #[serde(default)]
    pub at: Option<Value>,
    /// Which replication, counted from 0 (kinds `sweep` and `bars` draw means over all).
    #[serde(default)]
    pub replication: u32,
    /// From when to when; all that was recorded if left out.
    #[serde(default)]
    pub window: Option<Window>,
    /// The text along x; the sweep's label, or time, if left out.
    #[serde(default)]
    pub x_label: Option<String>,
    /// Kinds `sweep` and `bars`: `%` where the sweep's x are shares, 0 to 1, and are to be shown in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<XUnit>,
    /// Kinds `sweep` and `cdf`: how numbers stand along x; `linear` if left out.
    #[serde(default, skip_serializing_if = "Scale::is_linear")]
    pub x_scale: Scale,
    /// Kinds `sweep` and `time`: how numbers stand along y; `linear` if left out.
    #[serde(default, skip_serializing_if = "Scale::is_linear")]
    pub y_scale: Scale,
    /// The text along y.
    #[serde(default)]
    pub y_label: Option<String>,
    /// Kinds `sequence` and `ladder`: the flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `sequence` and `ladder`: its member, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// Kind `sequence`: sequence numbers are shown modulo this.
    #[serde(default)]
    pub modulo: Option<u64>,
    /// How many bytes a segment has, where a curve's unit is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// The curves of kinds `sweep`, `bars`, `cdf` and `time`; of kind `map` the flows whose paths
    /// are drawn.
    #[serde(default, rename = "curve", skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// A unit of what stands along x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum XUnit {
    /// Hundredths.
    #[serde(rename = "%")]
    Percent,
}

/// How numbers stand along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long: for `16 KiB`, `64 KiB`, `256 KiB`. Where a value is not above 0, the axis is linear.
    Log,
}

impl Scale {
    fn is_linear(&self) -> bool {
        *self == Scale::Linear
    }
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Recorded probes over time.
    #[default]
    Time,
    /// Measures over the sweep's x: means with 95 % intervals, printed points beside.
    Sweep,
    /// The same as bars, side by side at each x.
    Bars,
    /// The cumulative distribution of a measure over all runs, or of the samples of a probe.
    Cdf,
    /// Segments sent and acknowledgements received over time.
    Sequence,
    /// Sender and receiver as two lines down the page, packets as arrows between them.
    Ladder,
    /// A map of a recorded constellation: satellites and stations at the begin of `window`, the
    /// links between satellites coloured by their load in it, and the paths of the flows that
    /// curves name.
    Map,
}

/// A curve. Kinds `sweep` and `bars`: `series` and `metric` of a measure. Kind `time`: `flow` or
/// `link`, and `probe`. Kind `map`: `flow` and `member`. Kind `cdf`: either; of a
/// probe with the style `step` each value counts as long as it stands, otherwise each sample once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// Kinds `sweep`, `bars` and `cdf`: the measure's series.
    #[serde(default)]
    pub series: Option<String>,
    /// Kinds `sweep`, `bars` and `cdf`: the measure's metric.
    #[serde(default)]
    pub metric: Option<String>,
    /// An experiment other than the figure's.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Only at these x of some of the sweeps, beside the figure's.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Kinds `time` and `cdf`: only samples with this index: of a path, or of a stream.
    #[serde(default)]
    pub index: Option<u16>,
    /// Kind `time`: each value is the sum of all samples so far.
    #[serde(default)]
    pub cumulative: bool,
    /// Kinds `time` and `cdf`: every member of the group, in one colour, instead of `member`.
    #[serde(default)]
    pub every_member: bool,
    /// Kinds `time` and `cdf`: the recorded flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `time` and `cdf`: or the recorded link.
    #[serde(default)]
    pub link: Option<String>,
    /// Kinds `time` and `cdf`: its member, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// Kinds `time` and `cdf`: what was recorded of it.
    #[serde(default)]
    pub probe: Option<String>,
    /// The unit to show: the probe's own, which it is if left out, or another of the same kind (`ms` for `s`, `Mbit/s` for `bit/s`); of bytes
    /// also `segments`.
    #[serde(default)]
    pub unit: Option<String>,
    /// How its points are joined.
    #[serde(default)]
    pub style: Style,
    /// Kind `time`: not recorded but given, each value until the next: `[["0 s", "1 Mbit/s"], ["15 s", "250 kbit/s"]]`, what
    /// the world offers and the recorded curves are held against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<(Span, Rate)>,
    /// Printed values to draw with it: their series in the reference data, where `published` names the place.
    #[serde(default)]
    pub printed: Option<String>,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// By straight lines.
    #[default]
    Line,
    /// Each value stands until the next.
    Step,
    /// Each value stands until the next, dashed.
    DashedStep,
    /// Not at all.
    Points,
}
