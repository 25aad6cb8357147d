//! Checks of unused keys: keys of tables and figures that have no effect for the chosen kind.

use crate::checker::Checker;
use crate::output::{Curve, FigureKind, FigureOutput, Row, Scale, TableKind, TableOutput};

/// A key: its name, whether it is set, and the kinds that use it.
type Key<'a, K> = (&'static str, bool, &'a [(K, &'static str)]);

const DIFFERENCE: &[(TableKind, &str)] = &[(TableKind::Difference, "difference")];
const EVENTS: &[(TableKind, &str)] = &[(TableKind::Events, "events")];
const STEPS: &[(TableKind, &str)] = &[(TableKind::Steps, "steps")];
const OF_RUNS: &[(TableKind, &str)] = &[
    (TableKind::Metrics, "metrics"),
    (TableKind::Difference, "difference"),
];
const OF_ONE_RUN: &[(TableKind, &str)] =
    &[(TableKind::Steps, "steps"), (TableKind::Events, "events")];

const TIME: &[(FigureKind, &str)] = &[(FigureKind::Time, "time")];
const SWEEP: &[(FigureKind, &str)] = &[(FigureKind::Sweep, "sweep"), (FigureKind::Bars, "bars")];
const MEASURED: &[(FigureKind, &str)] = &[
    (FigureKind::Sweep, "sweep"),
    (FigureKind::Bars, "bars"),
    (FigureKind::Cdf, "cdf"),
];
const RECORDED: &[(FigureKind, &str)] = &[(FigureKind::Time, "time"), (FigureKind::Cdf, "cdf")];
const CURVES: &[(FigureKind, &str)] = &[
    (FigureKind::Time, "time"),
    (FigureKind::Sweep, "sweep"),
    (FigureKind::Bars, "bars"),
    (FigureKind::Cdf, "cdf"),
    (FigureKind::Map, "map"),
];
const PATHS: &[(FigureKind, &str)] = &[
    (FigureKind::Time, "time"),
    (FigureKind::Cdf, "cdf"),
    (FigureKind::Map, "map"),
];
const SCALED_ALONG: &[(FigureKind, &str)] =
    &[(FigureKind::Sweep, "sweep"), (FigureKind::Cdf, "cdf")];
const SCALED_UP: &[(FigureKind, &str)] =
    &[(FigureKind::Time, "time"), (FigureKind::Sweep, "sweep")];
const SEQUENCE: &[(FigureKind, &str)] = &[(FigureKind::Sequence, "sequence")];
const SEGMENTS: &[(FigureKind, &str)] = &[
    (FigureKind::Sequence, "sequence"),
    (FigureKind::Ladder, "ladder"),
];
const SIZED: &[(FigureKind, &str)] = &[
    (FigureKind::Time, "time"),
    (FigureKind::Cdf, "cdf"),
    (FigureKind::Ladder, "ladder"),
];
const FIGURES_OF_SAMPLES: &[(FigureKind, &str)] = &[
    (FigureKind::Time, "time"),
    (FigureKind::Cdf, "cdf"),
    (FigureKind::Sequence, "sequence"),
    (FigureKind::Ladder, "ladder"),
    (FigureKind::Map, "map"),
];
const FIGURES_OF_ONE_RUN: &[(FigureKind, &str)] = &[
    (FigureKind::Time, "time"),
    (FigureKind::Sequence, "sequence"),
    (FigureKind::Ladder, "ladder"),
    (FigureKind::Map, "map"),
];

const MAPS: &[(FigureKind, &str)] = &[(FigureKind::Map, "map")];

/// Checks for unused keys of a table.
pub(super) fn check_table(c: &mut Checker<'_>, table: &TableOutput, path: &str) {
    let keys = [
        ("names", table.names.is_some(), DIFFERENCE),
        ("time_tolerance", table.time_tolerance.is_some(), OF_ONE_RUN),
    ];
    check(c, "table", table.kind, &keys, path);
}

/// Checks for unused keys of a row.
pub(super) fn check_row(c: &mut Checker<'_>, kind: TableKind, row: &Row, path: &str) {
    let keys = [
        ("label", row.label.is_some(), OF_RUNS),
        ("flow", row.flow.is_some(), OF_ONE_RUN),
        ("link", row.link.is_some(), OF_ONE_RUN),
        ("member", row.member != 0, OF_ONE_RUN),
        ("probe", row.probe.is_some(), OF_ONE_RUN),
        ("segment_size", row.segment_size.is_some(), OF_ONE_RUN),
        ("count", row.count.is_some(), STEPS),
        ("elapsed", row.elapsed.is_some(), STEPS),
        ("segment", row.segment.is_some(), EVENTS),
        ("occurrence", row.occurrence.is_some(), EVENTS),
        ("read_probe", row.read_probe.is_some(), EVENTS),
    ];
    check(c, "table", kind, &keys, path);
}

/// Checks for unused keys of a figure.
pub(super) fn check_figure(c: &mut Checker<'_>, figure: &FigureOutput, path: &str) {
    let keys = [
        ("at", figure.at.is_some(), FIGURES_OF_SAMPLES),
        ("replication", figure.replication != 0, FIGURES_OF_ONE_RUN),
        ("window", figure.window.is_some(), FIGURES_OF_SAMPLES),
        ("x_unit", figure.x_unit.is_some(), SWEEP),
        ("x_scale", figure.x_scale != Scale::Linear, SCALED_ALONG),
        ("y_scale", figure.y_scale != Scale::Linear, SCALED_UP),
        ("flow", figure.flow.is_some(), SEGMENTS),
        ("member", figure.member != 0, SEGMENTS),
        ("modulo", figure.modulo.is_some(), SEQUENCE),
        ("segment_size", figure.segment_size.is_some(), SIZED),
        ("frames", figure.frames.is_some(), MAPS),
        ("curve", !figure.curves.is_empty(), CURVES),
    ];
    check(c, "figure", figure.kind, &keys, path);
}

/// Checks for unused keys of a curve.
pub(super) fn check_curve(c: &mut Checker<'_>, kind: FigureKind, curve: &Curve, path: &str) {
    let keys = [
        ("series", curve.series.is_some(), MEASURED),
        ("metric", curve.metric.is_some(), MEASURED),
        ("flow", curve.flow.is_some(), PATHS),
        ("link", curve.link.is_some(), RECORDED),
        ("probe", curve.probe.is_some(), RECORDED),
        ("index", curve.index.is_some(), RECORDED),
        ("member", curve.member != 0, PATHS),
        ("every_member", curve.every_member, RECORDED),
        ("cumulative", curve.cumulative, TIME),
    ];
    check(c, "figure", kind, &keys, path);
    if curve.every_member && curve.member != 0 {
        let message = "found `member` and `every_member`, which shows all; use one of them";
        c.problem(&format!("{path}.member"), message);
    }
}

fn check<K: Copy + PartialEq>(
    c: &mut Checker<'_>,
    what: &str,
    kind: K,
    keys: &[Key<'_, K>],
    path: &str,
) {
    let unread = keys
        .iter()
        .filter(|(_, is_set, kinds)| *is_set && kinds.iter().all(|(known, _)| *known != kind));
    for (key, _, kinds) in unread {
        let kinds: Vec<String> = kinds.iter().map(|(_, name)| format!("{name:?}")).collect();
        let kinds = kinds.join(" or ");
        let message = format!(
            "only a {what} of kind {kinds} reads `{key}`; leave it out, or set the `kind` of the {what}"
        );
        c.problem(&format!("{path}.{key}"), message);
    }
}
