//! Checks of tables and figures: the results to which they refer must exist.

use std::collections::BTreeMap;

use crate::checker::Checker;
use crate::derived::Derived;
use crate::measure::{PATH, POSITION};
use crate::output::{Curve, FigureKind, FigureOutput, Row, TableKind, TableOutput};
use crate::spec::{Record, Spec};
use crate::value::SweepValue;
use crate::vocabulary::Vocabulary;

use super::source::{Source, is_of, known_before, source_of};
use super::{units, unused_keys};

/// Checks all tables, figures and derived experiments.
pub fn check(c: &mut Checker<'_>, spec: &Spec, vocabulary: &dyn Vocabulary) {
    for (index, derived) in spec.derived.iter().enumerate() {
        check_derived(c, spec, vocabulary, derived, &format!("derived.{index}"));
    }
    for (index, table) in spec.tables.iter().enumerate() {
        check_table(c, spec, vocabulary, table, &format!("table.{index}"));
    }
    for (index, figure) in spec.figures.iter().enumerate() {
        check_figure(c, spec, vocabulary, figure, &format!("figure.{index}"));
    }
}

pub(super) fn check_experiment(
    c: &mut Checker<'_>,
    spec: &Spec,
    named: Option<&String>,
    path: &str,
) {
    let known = || {
        let run = spec
            .experiments
            .iter()
            .map(|experiment| experiment.id.as_str());
        run.chain(spec.derived.iter().map(Derived::id))
    };
    if let Some(name) = named.filter(|name| known().all(|id| id != name.as_str())) {
        c.not_among(
            path,
            &format!("found {name:?}, but no experiment has this id"),
            name,
            known(),
        );
    }
}

/// Checks that fixed sweeps are sweeps of the shown experiment, and that they have the given x
/// values.
pub(super) fn check_where(
    c: &mut Checker<'_>,
    spec: &Spec,
    source: Option<Source<'_>>,
    fixed: &BTreeMap<String, SweepValue>,
    path: &str,
) {
    let place = |name: &str| format!("{path}.where.{name}");
    check_sweeps(c, spec, source, fixed.keys().map(String::as_str), place);
    for (name, x) in fixed {
        check_point(c, spec, source, (name, x), &place(name));
    }
}

/// Checks that an x belongs to a sweep. A sweep that a `--set` argument has changed is not checked,
/// because the argument may select fewer points.
pub(super) fn check_point(
    c: &mut Checker<'_>,
    spec: &Spec,
    source: Option<Source<'_>>,
    (name, x): (&str, &SweepValue),
    place: &str,
) {
    let Some((sweep, known)) = source.and_then(|source| source.points(spec, name)) else {
        return;
    };
    if c.is_set(&sweep) || known.iter().any(|it| it.is_same(x)) {
        return;
    }
    let shown = |x: &SweepValue| match x {
        SweepValue::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    let message = format!("found {}, but sweep {name:?} has no such point", shown(x));
    let known: Vec<String> = known.iter().map(shown).collect();
    c.not_among(place, &message, &shown(x), known.iter().map(String::as_str));
}

/// Checks that each name is that of a sweep of the source; `place` returns the path of a name in
/// the spec.
pub(super) fn check_sweeps<'n>(
    c: &mut Checker<'_>,
    spec: &Spec,
    source: Option<Source<'_>>,
    names: impl Iterator<Item = &'n str>,
    place: impl Fn(&str) -> String,
) {
    let Some(source) = source else { return };
    let known = source.sweeps(spec);
    for name in names.filter(|name| !known.contains(name)) {
        let message = format!(
            "found {name:?}, but experiment {:?} has no such sweep",
            source.id()
        );
        c.not_among(&place(name), &message, name, known.iter().copied());
    }
}

/// Checks a derived experiment: its source, the measure that it uses, and the sweeps that it names.
fn check_derived(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    derived: &Derived,
    path: &str,
) {
    let known = || known_before(spec, derived);
    let id = derived.experiment();
    if known().all(|run| run != id) {
        let message = format!("found {id:?}, but no experiment has this id");
        return c.not_among(&format!("{path}.experiment"), &message, id, known());
    }
    let source = Source::named(spec, id);
    let (series, metric) = derived.source();
    check_measure(
        c,
        spec,
        vocabulary,
        source,
        Some(&series.to_owned()),
        Some(&metric.to_owned()),
        path,
    );
    for (key, name) in derived.sweeps() {
        let place = |_: &str| format!("{path}.{key}");
        check_sweeps(c, spec, source, std::iter::once(name), place);
    }
    if spec.experiments.iter().any(|run| run.id == derived.id()) {
        c.problem(
            &format!("{path}.id"),
            format!("found {:?}, which is an experiment's id", derived.id()),
        );
    }
}

fn check_table(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    table: &TableOutput,
    path: &str,
) {
    check_experiment(
        c,
        spec,
        table.experiment.as_ref(),
        &format!("{path}.experiment"),
    );
    check_experiment(
        c,
        spec,
        table.subtract.as_ref(),
        &format!("{path}.subtract"),
    );
    if table.kind == TableKind::Difference && table.subtract.is_none() {
        c.problem(
            path,
            "a table of kind \"difference\" names in `subtract` the experiment that is subtracted",
        );
    }
    if table.kind != TableKind::Difference && table.subtract.is_some() {
        c.problem(
            &format!("{path}.subtract"),
            "only a table of kind \"difference\" subtracts an experiment",
        );
    }
    unused_keys::check_table(c, table, path);
    let source = source_of(spec, &table.id, table.experiment.as_ref());
    check_where(c, spec, source, &table.at_point, path);
    for (index, row) in table.rows.iter().enumerate() {
        let path = format!("{path}.row.{index}");
        unused_keys::check_row(c, table.kind, row, &path);
        match table.kind {
            TableKind::Metrics | TableKind::Difference => {
                check_where(c, spec, source, &row.at_point, &path);
                let own = check_measure(
                    c,
                    spec,
                    vocabulary,
                    source,
                    row.series.as_ref(),
                    row.metric.as_ref(),
                    &path,
                );
                units::of_measure(c, own.as_deref(), row.unit.as_ref(), &path);
            }
            TableKind::Steps | TableKind::Events => {
                check_single_run(c, source, table.kind, row, &path)
            }
        }
        if row.near_bound && table.kind != TableKind::Metrics {
            let message = "only values of a table of kind \"metrics\" are held against quantiles";
            c.problem(&format!("{path}.near_bound"), message);
        }
    }
}

/// Checks a row about a single run: its probe must be recorded.
fn check_single_run(
    c: &mut Checker<'_>,
    source: Option<Source<'_>>,
    kind: TableKind,
    row: &Row,
    path: &str,
) {
    let default = (kind == TableKind::Steps).then_some("cwnd");
    let probe = row.probe.as_deref().or(default);
    let member = Some(row.member);
    check_recorded(
        c,
        source,
        (row.flow.as_ref(), row.link.as_ref()),
        member,
        probe,
        path,
    );
    if let Some(read) = row.read_probe.as_deref() {
        check_recorded(
            c,
            source,
            (row.flow.as_ref(), row.link.as_ref()),
            member,
            Some(read),
            path,
        );
    }
    match (kind, row.read_probe.as_deref(), row.unit.as_ref()) {
        (TableKind::Events, None, Some(unit)) => c.problem(
            &format!("{path}.unit"),
            format!("found {unit:?}, but a row of kind \"events\" without `read_probe` shows a time, in seconds"),
        ),
        (TableKind::Events, shown, unit) => {
            units::of_probe_shown(c, shown, unit, row.segment_size, path);
        }
        (_, _, unit) => units::of_probe_shown(c, probe, unit, row.segment_size, path),
    }
    if row.elapsed.is_some_and(|last| last < 2) {
        c.problem(
            &format!("{path}.elapsed"),
            "the time from the first value goes to the second or a later one: 2 or more",
        );
    }
    for (name, number) in [
        ("segment", row.segment),
        ("occurrence", row.occurrence.map(u64::from)),
    ] {
        if number == Some(0) {
            c.problem(&format!("{path}.{name}"), "found 0; this is counted from 1");
        }
    }
}

/// Checks that an experiment has a measure. Returns the unit of the measure.
pub(super) fn check_measure(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    source: Option<Source<'_>>,
    series: Option<&String>,
    metric: Option<&String>,
    path: &str,
) -> Option<String> {
    let Some(metric) = metric else {
        c.missing_key(path, "metric", "; it names the measure to show");
        return None;
    };
    let source = source?;
    let taken = source.measures(spec, vocabulary);
    if taken.iter().all(|it| it.metric != *metric) {
        let message = format!(
            "found {metric:?}, but experiment {:?} has no measure of this name",
            source.id()
        );
        let known = taken.iter().map(|it| it.metric.as_str());
        c.not_among(&format!("{path}.metric"), &message, metric, known);
        return None;
    }
    let known = || taken.iter().filter(|it| it.metric == *metric);
    let wanted = series.map_or("all", String::as_str);
    let found = known().find(|it| is_of(&it.series, wanted));
    if found.is_none() {
        let message = match series {
            Some(found) => format!("found {found:?}, but {metric:?} is not taken of it"),
            None => format!("the key `series` is missing; it says of what {metric:?} is taken"),
        };
        let known = known().map(|it| it.series.as_str());
        c.not_among(&format!("{path}.series"), &message, wanted, known);
    }
    found.map(|it| it.unit.clone())
}

/// Checks that an experiment records a probe of a flow or link.
fn check_recorded(
    c: &mut Checker<'_>,
    source: Option<Source<'_>>,
    entity: (Option<&String>, Option<&String>),
    member: Option<u32>,
    probe: Option<&str>,
    path: &str,
) {
    let (of, entity) = match entity {
        (Some(flow), None) => (RecordedOf::Flow, flow),
        (None, Some(link)) => (RecordedOf::Link, link),
        _ => {
            return c.problem(
                path,
                "needs either a `flow` or a `link`, whose recording it shows",
            );
        }
    };
    let Some(probe) = probe else {
        return c.missing_key(path, "probe", "; it names what was recorded");
    };
    let experiment = match source {
        Some(Source::Run(experiment)) => experiment,
        Some(Source::Derived(derived)) => {
            let message = format!(
                "experiment {:?} is computed and records nothing",
                derived.id()
            );
            return c.problem(path, message);
        }
        None => return,
    };
    // The record may name the group, or the single member that is shown.
    let alone = member.map(|member| format!("{entity}[{member}]"));
    let of_entity = |record: &&Record| {
        let named = of.name_in(record);
        named.is_some_and(|named| named == entity || alone.as_ref() == Some(named))
    };
    let recorded: Vec<&str> = experiment
        .records
        .iter()
        .filter(of_entity)
        .flat_map(|record| &record.probes)
        .map(String::as_str)
        .collect();
    if recorded.is_empty() {
        let message = format!(
            "found {entity:?}, but experiment {:?} records nothing of it",
            experiment.id
        );
        let all = experiment.records.iter();
        let all = all
            .filter_map(|record| of.name_in(record))
            .map(String::as_str);
        c.not_among(&format!("{path}.{}", of.key()), &message, entity, all);
    } else if !recorded.contains(&probe) {
        let message = format!(
            "found {probe:?}, but experiment {:?} does not record it of {entity:?}",
            experiment.id
        );
        let recorded = recorded.iter().copied();
        c.not_among(&format!("{path}.probe"), &message, probe, recorded);
    }
}

/// Subject of a record: a flow or a link.
#[derive(Clone, Copy)]
enum RecordedOf {
    Flow,
    Link,
}

impl RecordedOf {
    /// Key with which a spec names the subject.
    fn key(self) -> &'static str {
        match self {
            RecordedOf::Flow => "flow",
            RecordedOf::Link => "link",
        }
    }

    /// Name of the subject in a record; `None` if the record is about another kind of subject.
    fn name_in(self, record: &Record) -> Option<&String> {
        match self {
            RecordedOf::Flow => record.flow.as_ref(),
            RecordedOf::Link => record.link.as_ref(),
        }
    }
}

fn check_figure(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    figure: &FigureOutput,
    path: &str,
) {
    check_experiment(
        c,
        spec,
        figure.experiment.as_ref(),
        &format!("{path}.experiment"),
    );
    unused_keys::check_figure(c, figure, path);
    let source = source_of(spec, &figure.id, figure.experiment.as_ref());
    check_where(c, spec, source, &figure.at_point, path);
    match figure.kind {
        FigureKind::Sequence | FigureKind::Ladder => {
            let member = Some(figure.member);
            check_recorded(
                c,
                source,
                (figure.flow.as_ref(), None),
                member,
                Some("sent"),
                path,
            );
        }
        FigureKind::Map => check_map(c, spec, figure, source, path),
        _ if figure.curves.is_empty() => {
            c.problem(path, "a figure of this kind has at least one `curve`");
        }
        _ => {
            for (index, curve) in figure.curves.iter().enumerate() {
                unused_keys::check_curve(c, figure.kind, curve, &format!("{path}.curve.{index}"));
                check_curve(
                    c,
                    spec,
                    vocabulary,
                    figure,
                    source,
                    curve,
                    &format!("{path}.curve.{index}"),
                );
            }
        }
    }
    if figure.modulo == Some(0) {
        c.problem(
            &format!("{path}.modulo"),
            "found 0; numbers are shown modulo 1 or more",
        );
    }
}

/// Maximum number of maps in a figure of kind `map`.
const MAX_FRAMES: u32 = 60;

/// Checks a figure of kind `map`: the series that it shows must be recorded.
fn check_map(
    c: &mut Checker<'_>,
    spec: &Spec,
    figure: &FigureOutput,
    source: Option<Source<'_>>,
    path: &str,
) {
    let records = match source {
        Some(Source::Run(experiment)) => experiment.records.as_slice(),
        Some(Source::Derived(_)) => &[],
        None => return,
    };
    let records = records.iter().filter(|it| it.constellation.is_some());
    let probes: Vec<&String> = records.flat_map(|record| &record.probes).collect();
    let lacks = |probe: &str| !probes.iter().any(|it| *it == probe);
    if lacks(POSITION) || !figure.curves.is_empty() && lacks(PATH) {
        let message = "a map shows what a `record` of a `constellation` has: its experiment needs the probes `position` and, for curves, `path`";
        c.problem(path, message);
    }
    if let Some(frames) = figure.frames
        && !(2..=MAX_FRAMES).contains(&frames.0)
    {
        let message = format!("found {}; allowed: 2 to {MAX_FRAMES}", frames.0);
        c.problem(&format!("{path}.frames"), message);
    }
    for (index, curve) in figure.curves.iter().enumerate() {
        let path = format!("{path}.curve.{index}");
        unused_keys::check_curve(c, figure.kind, curve, &path);
        let Some(name) = &curve.flow else {
            c.missing_key(&path, "flow", "; it names the flow whose path is drawn");
            continue;
        };
        let flow = spec.flows.iter().find(|it| it.name == *name);
        match flow {
            None => {
                let message = format!("found {name:?}, but no flow has this name");
                let known = spec.flows.iter().map(|it| it.name.as_str());
                c.not_among(&format!("{path}.flow"), &message, name, known);
            }
            Some(flow) if curve.member >= flow.count.0 => {
                let message = format!(
                    "found {}, but {name:?} has {} members, counted from 0",
                    curve.member, flow.count.0
                );
                c.problem(&format!("{path}.member"), message);
            }
            Some(_) => {}
        }
    }
}

/// Checks a curve whose values are given in the spec.
fn check_given(c: &mut Checker<'_>, figure: &FigureOutput, curve: &Curve, path: &str) {
    let path = format!("{path}.constant");
    if figure.kind != FigureKind::Time {
        c.problem(&path, "only a figure of kind \"time\" has given curves");
    }
    if curve.flow.is_some() || curve.link.is_some() || curve.probe.is_some() {
        let message = "found `constant` together with a flow, link or probe; a curve is either given or recorded";
        c.problem(&path, message);
    }
    if curve.constant.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        c.problem(&path, "the times of the steps must rise");
    }
}

fn check_curve(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    figure: &FigureOutput,
    source: Option<Source<'_>>,
    curve: &Curve,
    path: &str,
) {
    check_experiment(
        c,
        spec,
        curve.experiment.as_ref(),
        &format!("{path}.experiment"),
    );
    let source = match &curve.experiment {
        Some(name) => Source::named(spec, name),
        None => source,
    };
    check_where(c, spec, source, &curve.at_point, path);
    if !curve.constant.is_empty() {
        check_given(c, figure, curve, path);
        units::of_measure(c, Some("bit/s"), curve.unit.as_ref(), path);
    } else if figure.kind == FigureKind::Time
        || figure.kind == FigureKind::Cdf && curve.probe.is_some()
    {
        let entity = (curve.flow.as_ref(), curve.link.as_ref());
        let member = (!curve.every_member).then_some(curve.member);
        let probe = curve.probe.as_deref();
        check_recorded(c, source, entity, member, probe, path);
        units::of_probe_shown(c, probe, curve.unit.as_ref(), figure.segment_size, path);
    } else {
        let own = check_measure(
            c,
            spec,
            vocabulary,
            source,
            curve.series.as_ref(),
            curve.metric.as_ref(),
            path,
        );
        units::of_measure(c, own.as_deref(), curve.unit.as_ref(), path);
    }
}
