//! Tables and figures of results.
//!
//! The rows of a table and the curves of a figure refer to results by `series` and `metric` of a
//! measure, or by `flow` or `link` and `probe` of a record. The same names select the values that
//! the paper published.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{GroupSize, Rate, Size, TimeSpan, Window};
use crate::value::SweepValue;

/// A table: the file `tables/<id>.csv`, and a section of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableOutput {
    /// Short name, which is the name of the file `tables/<id>.csv`.
    pub id: String,
    /// Title of the table.
    pub title: String,
    /// Kind of the table, which determines its rows.
    #[serde(default)]
    pub kind: TableKind,
    /// Experiment whose results are shown. Default: the experiment with the id of the table, or, if
    /// there is none, the first.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Kind `difference`: experiment whose measures are subtracted.
    #[serde(default)]
    pub subtract: Option<String>,
    /// Kind `difference`: short names of the two experiments, the subtracted one last. Default:
    /// their ids.
    #[serde(default)]
    pub names: Option<[String; 2]>,
    /// Place in the paper: `Table II`. Rows of the file of published values belong to the table if
    /// their column `where` has this value or is empty. Default: the id of the table.
    #[serde(default)]
    pub published: Option<String>,
    /// Points that are shown, for some of the sweeps: `{ hops = 1 }`. The other sweeps form the
    /// axis.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, SweepValue>,
    /// x values of the experiment's sweep that are shown. Default: all x values.
    #[serde(default)]
    pub at: Option<Vec<SweepValue>>,
    /// Kinds `steps` and `events`: maximum difference between a simulated and a printed time, in
    /// addition to rounding. Default: 0 s.
    #[serde(default)]
    pub time_tolerance: Option<TimeSpan>,
    /// Results of other programs with which the table is compared, by their keys in `[reference]`.
    /// Each program has a separate table.
    #[serde(default)]
    pub baseline: BTreeMap<String, BesideSource>,
    /// Remark that the report shows.
    #[serde(default)]
    pub note: Option<String>,
    /// Rows of the table. Each row is evaluated at every x.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// Kind of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Measures: mean and confidence interval over the replications.
    #[default]
    Metrics,
    /// Measures of two experiments, and their differences between replications with equal numbers.
    Difference,
    /// Successive values of a probe in one run with their times, from the first decrease on.
    Steps,
    /// Times of events in one run.
    Events,
}

/// Results of another program with which a table is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BesideSource {
    /// Value of the column `where` in the file of the program. Default: the value of `published`.
    #[serde(default)]
    pub place: Option<String>,
    /// Value of the column `condition` in the file of the program: `era n={x}`. `{x}` is replaced
    /// by the x of the row, and `{name}` by the x of the sweep with this name.
    pub condition: String,
}

/// A row of a table. Rows of the kinds `metrics` and `difference` use `series` and `metric` of a
/// measure. Rows of the kind `steps` use `flow` and `count`. Rows of the kind `events` use `flow`
/// or `link`, `probe`, and keys that select the event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Series of the measure; default: `all`. For the kinds `steps` and `events`, name of the
    /// series in the table; default: the name of the flow or link.
    #[serde(default)]
    pub series: Option<String>,
    /// Kinds `metrics` and `difference`: name of the row in the table.
    #[serde(default)]
    pub label: Option<String>,
    /// Kind `metrics`: series of the published values in the reference data, if it differs from
    /// `series`.
    #[serde(default)]
    pub printed: Option<String>,
    /// Points that are shown, for some of the sweeps, in addition to those of the table.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, SweepValue>,
    /// Metric of the measure. Default: `cwnd` for steps and `time` for events.
    #[serde(default)]
    pub metric: Option<String>,
    /// Name of the x column for this row, in place of the name of the sweep: `window`.
    #[serde(default)]
    pub x_name: Option<String>,
    /// Text in the x column for this row, in place of the x of the sweep: `50-150 s`. Kind
    /// `events`: description of the event.
    #[serde(default)]
    pub x: Option<SweepValue>,
    /// Name of the metric in the file of each other program. Kind `steps`: names of the metrics of
    /// the times, in order.
    #[serde(default)]
    pub baseline: BTreeMap<String, Names>,
    /// Flow whose record is shown.
    #[serde(default)]
    pub flow: Option<String>,
    /// Link whose record is shown.
    #[serde(default)]
    pub link: Option<String>,
    /// Number of the member in its group, from 0.
    #[serde(default)]
    pub member: u32,
    /// Recorded probe that is shown. Default for kind `steps`: `cwnd`.
    #[serde(default)]
    pub probe: Option<String>,
    /// Kind `events`: number of the data segment in the flow, from 1. An acknowledgement belongs to
    /// the last segment that it acknowledges; the first acknowledgement that covers this segment is
    /// used.
    #[serde(default)]
    pub segment: Option<u64>,
    /// Kind `events`: number of the occurrence of the event, from 1. Default: 1.
    #[serde(default)]
    pub occurrence: Option<u32>,
    /// Kind `events`: show the value of this probe of the same flow after the event, in place of
    /// the time of the event. The value is the last one that was recorded up to the time of the
    /// event. `metric` is the name of the value in the reference data.
    #[serde(default)]
    pub read_probe: Option<String>,
    /// Kind `steps`: also show the time from the first value to the value with this number (from
    /// 1). The metric is named `elapsed`, the x column `steps`, and the x is a range such as `1-6`.
    #[serde(default)]
    pub elapsed: Option<u32>,
    /// Kind `steps`: number of values that are shown.
    #[serde(default)]
    pub count: Option<u32>,
    /// Unit of the shown values. Kind `steps`, and kind `events` with `read_probe`: `bytes`, `KiB`
    /// or `segments`, for probes in bytes. Kinds `metrics` and `difference`: `kbit/s` or `Mbit/s`
    /// for `bit/s`, `ms` for `s`, `%` for `1`, `KiB` for `bytes`.
    #[serde(default)]
    pub unit: Option<String>,
    /// Size of a segment, if the unit is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// Kind `metrics`: set if the values are near a bound of the quantity, such as Jain's index
    /// near 1. A printed value is then compared with quantiles of the runs, and not with a normal
    /// distribution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near_bound: bool,
}

/// One name, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Names {
    /// One name.
    One(String),
    /// Several names.
    Several(Vec<String>),
}

impl Names {
    /// The name with this index; a single name has only the index 0.
    pub fn get(&self, index: usize) -> Option<&str> {
        match self {
            Names::One(name) => (index == 0).then_some(name.as_str()),
            Names::Several(names) => names.get(index).map(String::as_str),
        }
    }
}

/// A figure: the file `figures/<id>.svg`, and an image in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureOutput {
    /// Short name, which is the name of the file `figures/<id>.svg`.
    pub id: String,
    /// Title of the figure.
    pub title: String,
    /// Kind of the figure.
    #[serde(default)]
    pub kind: FigureKind,
    /// Experiment whose results are shown. Default: the experiment with the id of the figure, or,
    /// if there is none, the first.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Name in the paper: `Fig. 3`. Published values with this name, or without a name of a table
    /// or figure, are drawn, too.
    #[serde(default)]
    pub published: Option<String>,
    /// Caption in the report.
    #[serde(default)]
    pub caption: Option<String>,
    /// Points that are shown, for some of the sweeps: `{ hops = 1 }`. For kinds `sweep` and `bars`
    /// the other sweeps form the axis.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, SweepValue>,
    /// x value of the experiment's sweep that is shown. Default: the first x value. Kinds `sweep`
    /// and `bars` show all points.
    #[serde(default)]
    pub at: Option<SweepValue>,
    /// Number of the replication that is shown, from 0. Kinds `sweep` and `bars` show means over
    /// all replications.
    #[serde(default)]
    pub replication: u32,
    /// Start and end of the time that is shown. Default: all recorded times.
    #[serde(default)]
    pub window: Option<Window>,
    /// Label of the x axis. Default: the label of the sweep, or "time".
    #[serde(default)]
    pub x_label: Option<String>,
    /// Kinds `sweep` and `bars`: `%` shows x values from 0 to 1 in percent.
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
    /// Kinds `sequence` and `ladder`: flow that is shown.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `sequence` and `ladder`: number of the member of the flow, from 0.
    #[serde(default)]
    pub member: u32,
    /// Kind `sequence`: modulus of the shown sequence numbers.
    #[serde(default)]
    pub modulo: Option<u64>,
    /// Size of a segment, if the unit of a curve is `segments`.
    #[serde(default)]
    pub segment_size: Option<Size>,
    /// Kind `map`: number of maps, 2 to 60, at equally spaced times in the window, which the report
    /// shows one after the other. Default: one map, at the beginning of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<GroupSize>,
    /// Curves of the kinds `sweep`, `bars`, `cdf` and `time`; for kind `map`, flows whose paths are
    /// drawn.
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

/// Scale of an axis: linear or logarithmic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear scale.
    #[default]
    Linear,
    /// Logarithmic scale, for values such as `16 KiB`, `64 KiB`, `256 KiB`. If a value is 0 or
    /// negative, the axis is linear nevertheless.
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
    /// Measures over the x of the sweep: means with 95 % confidence intervals, and published
    /// values.
    Sweep,
    /// Like `sweep`, with bars side by side at each x.
    Bars,
    /// Cumulative distribution of a measure over all runs, or of the samples of a probe.
    Cdf,
    /// Segments sent and acknowledgements received over time.
    Sequence,
    /// Sender and receiver as two vertical lines, with packets as arrows between them.
    Ladder,
    /// Map of a recorded constellation at the start of `window`: satellites and stations, links
    /// between satellites coloured by their load, and the paths of the flows that curves name.
    Map,
}

/// A curve of a figure. Curves of the kinds `sweep` and `bars` use `series` and `metric` of a
/// measure. Curves of the kind `time` use `flow` or `link`, and `probe`. Curves of the kind `cdf`
/// use either of these. With the style `step` a value of a probe is weighted by its duration; with
/// other styles all samples have the same weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name of the curve in the legend.
    pub label: String,
    /// Kinds `sweep`, `bars` and `cdf`: series of the measure.
    #[serde(default)]
    pub series: Option<String>,
    /// Kinds `sweep`, `bars` and `cdf`: metric of the measure.
    #[serde(default)]
    pub metric: Option<String>,
    /// Experiment of the curve, if it differs from that of the figure.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Points that are shown, for some of the sweeps, in addition to those of the figure.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub at_point: BTreeMap<String, SweepValue>,
    /// Kinds `time` and `cdf`: show only samples of the path or stream with this index.
    #[serde(default)]
    pub index: Option<u16>,
    /// Kind `time`: show the sum of all samples up to each time.
    #[serde(default)]
    pub cumulative: bool,
    /// Kinds `time` and `cdf`: draw all members of the group in one colour, in place of one
    /// `member`.
    #[serde(default)]
    pub every_member: bool,
    /// Kinds `time` and `cdf`: flow whose record is shown.
    #[serde(default)]
    pub flow: Option<String>,
    /// Kinds `time` and `cdf`: link whose record is shown.
    #[serde(default)]
    pub link: Option<String>,
    /// Kinds `time` and `cdf`: number of the member in its group, from 0.
    #[serde(default)]
    pub member: u32,
    /// Kinds `time` and `cdf`: recorded probe that is shown.
    #[serde(default)]
    pub probe: Option<String>,
    /// Unit of the shown values. Default: the unit of the probe. It may be another unit of the same
    /// quantity (`ms` for `s`, `Mbit/s` for `bit/s`); values in bytes can also be shown in
    /// `segments`.
    #[serde(default)]
    pub unit: Option<String>,
    /// Drawing style.
    #[serde(default)]
    pub style: CurveStyle,
    /// Kind `time`: values given in the spec, each valid until the next, in place of recorded ones:
    /// `[["0 s", "1 Mbit/s"], ["15 s", "250 kbit/s"]]`. They can show the rate of a link for
    /// comparison with recorded curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<(TimeSpan, Rate)>,
    /// Series of the published values that are drawn, too, in the reference data of `published`.
    #[serde(default)]
    pub printed: Option<String>,
}

/// Drawing style of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveStyle {
    /// Straight lines between points.
    #[default]
    Line,
    /// Horizontal lines, with a step at each value.
    Step,
    /// Dashed horizontal lines, with a step at each value.
    DashedStep,
    /// Points only.
    Points,
}
