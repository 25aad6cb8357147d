//! Tables and figures of results.
//!
//! The rows of a table and the curves of a figure refer to results by `series` and `metric` of a
//! measure, or by `flow` or `link` and `probe` of a recording. The same names select the published
//! values of the paper.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Count, Rate, Size, Span, Window};
use crate::value::Value;

/// A table: the file `tables/<id>.csv`, and a section of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Short name, which is the name of the file `tables/<id>.csv`.
    pub id: String,
    /// Title.
    pub title: String,
    /// Kind of the rows.
    #[serde(default)]
    pub kind: TableKind,
    /// The experiment. Default: the one with the id of the table; if there is none, the first.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Kind `difference`: the experiment whose measures are subtracted.
    #[serde(default)]
    pub subtract: Option<String>,
    /// Kind `difference`: short names of the two experiments, in this order. Default: their ids.
    #[serde(default)]
    pub names: Option<[String; 2]>,
    /// Place in the paper: `Table II`. Rows of the published file belong to the table if their
    /// column `where` is equal to this, or empty. Default: the id of the table.
    #[serde(default)]
    pub published: Option<String>,
    /// Restriction to points of some sweeps: `{ hops = 1 }`. The other sweeps are the axis.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Points of the sweep of the experiment to show. Default: all.
    #[serde(default)]
    pub at: Option<Vec<Value>>,
    /// Kinds `steps` and `events`: maximum difference between a time and the printed one, in
    /// addition to rounding. Default: 0 s.
    #[serde(default)]
    pub time_tolerance: Option<Span>,
    /// Results of other programs to compare with, by their keys in `[reference]`. Each program has
    /// a separate table.
    #[serde(default)]
    pub baseline: BTreeMap<String, BesideSource>,
    /// Remark for the report.
    #[serde(default)]
    pub note: Option<String>,
    /// Rows. Each is evaluated at every x.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// Kind of the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Measures: mean and confidence interval over the replications.
    #[default]
    Metrics,
    /// Measures of two experiments and their difference over common replications.
    Difference,
    /// Successive values of a probe in one run, from its first decrease, with their times.
    Steps,
    /// Times of events in one run.
    Events,
}

/// Results of another program that belong to a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BesideSource {
    /// Value of the column `where` in its file. Default: that of `published`.
    #[serde(default)]
    pub place: Option<String>,
    /// Value of the column `condition`: `era n={x}`. `{x}` stands for the x of the row, and
    /// `{name}` for the x of the sweep with that name.
    pub condition: String,
}

/// A row of a table. Kinds `metrics` and `difference` use `series` and `metric` of a measure. Kind
/// `steps` uses `flow` and `count`. Kind `events` uses `flow` or `link`, `probe`, and the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Series of the measure, or its name in the table. Default: the name of the flow or link.
    #[serde(default)]
    pub series: Option<String>,
    /// Kinds `metrics` and `difference`: name of the row in the table.
    #[serde(default)]
    pub label: Option<String>,
    /// Kind `metrics`: series of the paper's values in the reference data, if it differs from
    /// `series`.
    #[serde(default)]
    pub printed: Option<String>,
    /// Restriction to points of some sweeps, in addition to that of the table.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Metric of the measure. Default: `cwnd` for steps and `time` for events.
    #[serde(default)]
    pub metric: Option<String>,
    /// Name of x to show instead of the name of the sweep: `window`.
    #[serde(default)]
    pub x_name: Option<String>,
    /// Value of x to show instead of that of the sweep: `50-150 s`. Kind `events`: description of
    /// the event.
    #[serde(default)]
    pub x: Option<Value>,
    /// Metric in the file of each other program. Kind `steps`: the metrics of the times, in order.
    #[serde(default)]
    pub baseline: BTreeMap<String, Names>,
    /// Recorded flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Recorded link.
    #[serde(default)]
    pub link: Option<String>,
    /// Member of the group, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// Recorded probe. Default for steps: `cwnd`.
    #[serde(default)]
    pub probe: Option<String>,
    /// Kind `events`: number of the segment, counted from 1 for the first of the flow. An
    /// acknowledgement belongs to the last segment that it covers; the first acknowledgement that
    /// covers this segment is used.
    #[serde(default)]
    pub segment: Option<u64>,
    /// Kind `events`: number of the occurrence, counted from 1. Default: the first.
    #[serde(default)]
    pub occurrence: Option<u32>,
    /// Kind `events`: show the value of this probe of the same flow after the event instead of its
    /// time, that is, the last value recorded up to then. `metric` is its name in the reference
    /// data.
    #[serde(default)]
    pub read_probe: Option<String>,
    /// Kind `steps`: also show the time from the first value to the value of this number, counted
    /// from 1, as the metric `elapsed` with the x name `steps` and an x such as `1-6`.
    #[serde(default)]
    pub elapsed: Option<u32>,
    /// Kind `steps`: number of values.
    #[serde(default)]
    pub count: Option<u32>,
    /// Unit to show. Kind `steps`, and `events` with `read_probe`: `bytes`, `KiB` or `segments`,
    /// for probes in bytes. Kinds `metrics` and `difference`: `kbit/s` or `Mbit/s` instead of
    /// `bit/s`, `ms` instead of `s`, `%` instead of `1`, `KiB` instead of `bytes`.
    #[serde(default)]
    pub unit: Option<String>,
    /// Size of a segment, if the unit is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// Kind `metrics`: the values are near a bound of the quantity, like the index of Jain near 1.
    /// A printed value is then compared with quantiles of the runs instead of a normal
    /// distribution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near_bound: bool,
}

/// One name, or several.
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

/// A figure: the file `figures/<id>.svg`, and an image of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Short name, which is the name of the file `figures/<id>.svg`.
    pub id: String,
    /// Title.
    pub title: String,
    /// Kind of the figure.
    #[serde(default)]
    pub kind: FigureKind,
    /// The experiment. Default: the one with the id of the figure; if there is none, the first.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Name in the paper: `Fig. 3`. Values printed under that name (kind `sweep`: or under the name
    /// of the table) are drawn as well.
    #[serde(default)]
    pub published: Option<String>,
    /// Caption in the report.
    #[serde(default)]
    pub caption: Option<String>,
    /// Restriction to points of some sweeps: `{ hops = 1 }`. The other sweeps are the axis of kinds
    /// `sweep` and `bars`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Point of the sweep of the experiment. Default: the first. Kinds `sweep` and `bars` draw all
    /// points.
    #[serde(default)]
    pub at: Option<Value>,
    /// Replication, counted from 0. Kinds `sweep` and `bars` draw means over all replications.
    #[serde(default)]
    pub replication: u32,
    /// Start and end of the figure. Default: everything that was recorded.
    #[serde(default)]
    pub window: Option<Window>,
    /// Label of the x axis. Default: the label of the sweep, or time.
    #[serde(default)]
    pub x_label: Option<String>,
    /// Kinds `sweep` and `bars`: `%` to show x values from 0 to 1 in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<XUnit>,
    /// Kinds `sweep` and `cdf`: scale of the x axis. Default: `linear`.
    #[serde(default, skip_serializing_if = "Scale::is_linear")]
    pub x_scale: Scale,
    /// Kinds `sweep` and `time`: scale of the y axis. Default: `linear`.
    #[serde(default, skip_serializing_if = "Scale::is_linear")]
    pub y_scale: Scale,
    /// Label of the y axis.
    #[serde(default)]
    pub y_label: Option<String>,
    /// Kinds `sequence` and `ladder`: the flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `sequence` and `ladder`: member of the flow, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// Kind `sequence`: show sequence numbers modulo this.
    #[serde(default)]
    pub modulo: Option<u64>,
    /// Size of a segment, if the unit of a curve is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// Kind `map`: number of times, equally spaced in the window, that the report shows one after
    /// the other, 2 to 60. Default: one map, at the beginning of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Count>,
    /// The curves of kinds `sweep`, `bars`, `cdf` and `time`; of kind `map` the flows whose paths
    /// are drawn.
    #[serde(default, rename = "curve", skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// Unit of the x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum XUnit {
    /// Percent.
    #[serde(rename = "%")]
    Percent,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic, for values such as `16 KiB`, `64 KiB`, `256 KiB`. The axis is linear if a value
    /// is not above 0.
    Log,
}

impl Scale {
    fn is_linear(&self) -> bool {
        *self == Scale::Linear
    }
}

/// Kind of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Recorded probes over time.
    #[default]
    Time,
    /// Measures over the x of the sweep: means with 95 % intervals, and printed values.
    Sweep,
    /// Like `sweep`, with bars side by side at each x.
    Bars,
    /// The cumulative distribution of a measure over all runs, or of the samples of a probe.
    Cdf,
    /// Segments sent and acknowledgements received over time.
    Sequence,
    /// Sender and receiver as two vertical lines, with packets as arrows between them.
    Ladder,
    /// A map of a recorded constellation: satellites and stations at the begin of `window`, the
    /// links between satellites coloured by their load in it, and the paths of the flows that
    /// curves name.
    Map,
}

/// A curve. Kinds `sweep` and `bars` use `series` and `metric` of a measure. Kind `time` uses
/// `flow` or `link`, and `probe`. Kind `cdf` uses the keys of either. A value of a probe with the
/// style `step` is weighted by its duration; with other styles each sample has the same weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name in the legend.
    pub label: String,
    /// Kinds `sweep`, `bars` and `cdf`: series of the measure.
    #[serde(default)]
    pub series: Option<String>,
    /// Kinds `sweep`, `bars` and `cdf`: metric of the measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// The experiment, if it is not that of the figure.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Restriction to points of some sweeps, in addition to that of the figure.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, Value>,
    /// Kinds `time` and `cdf`: only samples with this index of a path or stream.
    #[serde(default)]
    pub index: Option<u16>,
    /// Kind `time`: each value is the sum of all samples so far.
    #[serde(default)]
    pub cumulative: bool,
    /// Kinds `time` and `cdf`: draw all members of the group in one colour, instead of `member`.
    #[serde(default)]
    pub every_member: bool,
    /// Kinds `time` and `cdf`: recorded flow.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `time` and `cdf`: recorded link.
    #[serde(default)]
    pub link: Option<String>,
    /// Kinds `time` and `cdf`: member of the group, counted from 0.
    #[serde(default)]
    pub member: u32,
    /// Kinds `time` and `cdf`: recorded probe.
    #[serde(default)]
    pub probe: Option<String>,
    /// Unit to show. Default: that of the probe. Another unit of the same kind is possible (`ms`
    /// for `s`, `Mbit/s` for `bit/s`); bytes can also be shown as `segments`.
    #[serde(default)]
    pub unit: Option<String>,
    /// Drawing style.
    #[serde(default)]
    pub style: Style,
    /// Kind `time`: values that are given and not recorded, each valid until the next: `[["0 s", "1
    /// Mbit/s"], ["15 s", "250 kbit/s"]]`. Use it for the rate of a link that recorded curves are
    /// compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<(Span, Rate)>,
    /// Series of printed values to draw as well, in the reference data of `published`.
    #[serde(default)]
    pub printed: Option<String>,
}

/// Drawing style of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Straight lines between points.
    #[default]
    Line,
    /// A step at each value.
    Step,
    /// A dashed line with a step at each value.
    DashedStep,
    /// Points only.
    Points,
}
