//! Planning: resolves a spec into its runs. Every experiment, point and replication is checked
//! before any of them is run.

mod across;
mod constellations;
mod elements;
mod finished;
mod network;
mod notes;
mod overrides;
mod point_errors;
mod unreached_times;
mod windows;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::document::Document;
use anabranch_scenario::limits::MAX_RUNS;
use anabranch_scenario::output::{Row, TableOutput};
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::sweep::{Assignment, Points};
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use anabranch_scenario::vocabulary::{MeasureName, Vocabulary};
use anabranch_scenario::{
    Experiment, Spec, Sweep, decode, output_dependencies, profiles, substitute,
};
use anabranch_settings::counted;

use crate::kinds::Standard;
use crate::parallel::{self, Executor, Sequential};
use crate::plan::{Plan, PlanRequest, PlannedExperiment};
use crate::point::{Lean, PlannedPoint, PointSummary, Source, facts, hash};
use across::Across;

pub use network::network;

impl Plan {
    /// Reads, resolves and checks a spec.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn new(request: PlanRequest) -> Result<Self, SpecError> {
        Self::with(request, &Standard::default())
    }

    /// Like [`Self::new`], for a program that adds kinds.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn with(request: PlanRequest, kinds: &Standard) -> Result<Self, SpecError> {
        Self::with_executor(request, kinds, &Sequential)
    }

    /// Like [`Self::with`], with `spread` as the executor that resolves the points. The executor
    /// does not affect the plan.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn with_executor(
        request: PlanRequest,
        kinds: &Standard,
        spread: &dyn Executor,
    ) -> Result<Self, SpecError> {
        SpecNode::parse(&request.text)
            .and_then(|root| build(&request, root, kinds, spread))
            .map_err(|problems| {
                SpecError::new(&request.file, &request.text, &request.overrides, problems)
            })
    }

    /// Resolves and checks a spec that a program built. The request's text is generated from the
    /// document.
    ///
    /// # Errors
    /// All errors of the spec, as for a file with the same contents, but without line numbers.
    pub fn of(document: &Document, request: PlanRequest) -> Result<Self, SpecError> {
        Self::of_with(document, request, &Standard::default())
    }

    /// Like [`Self::of`], for a program that adds kinds.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn of_with(
        document: &Document,
        request: PlanRequest,
        kinds: &Standard,
    ) -> Result<Self, SpecError> {
        let request = PlanRequest {
            text: document.to_toml(),
            ..request
        };
        let refused = |problems| SpecError::new(&request.file, "", &request.overrides, problems);
        if !document.problems().is_empty() {
            return Err(refused(document.problems().to_vec()));
        }
        build(&request, document.root().clone(), kinds, &Sequential).map_err(refused)
    }
}

fn build(
    request: &PlanRequest,
    mut root: SpecNode,
    kinds: &Standard,
    spread: &dyn Executor,
) -> Result<Plan, Vec<Diagnostic>> {
    let kinds = &Arc::new(kinds.clone());
    add_main_experiment(&mut root);
    check_shape(&root)?;
    let mut problems = Vec::new();
    let overrides = overrides::read(&request.overrides, &root, &mut problems);
    let overridden = Arc::new(overrides::applied(&root, &overrides));
    if let Err(found) = check_shape(&overridden) {
        problems.extend(found);
        return Err(problems);
    }
    problems.extend(profiles::unused(&overridden));
    let across = Mutex::default();
    let mut experiments = Vec::new();
    for (index, experiment) in overridden
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let planner = Planner {
            root: &overridden,
            overrides: &overrides,
            request,
            kinds,
            across: &across,
        };
        match planner.plan_experiment(experiment, index, spread) {
            Ok(planned) => experiments.push(planned),
            Err(found) => add_new(&mut problems, found),
        }
    }
    let mut across = across.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (Some(mut spec), false) = (across.spec().cloned(), experiments.is_empty()) else {
        return Err(problems);
    };
    let mut notes = Vec::new();
    if problems.is_empty() {
        problems = across.idle();
        let (mistakes, redundant) = across.everywhere();
        add_new(&mut problems, mistakes);
        notes.extend(redundant);
    }
    notes.extend(across.notes());
    add_plain_tables(&mut spec, kinds);
    if problems.is_empty() {
        // After errors, the record of used parameters is incomplete, so this check is omitted.
        if !overrides.is_empty() {
            substitute::mentioned(&root, &mut across.used);
        }
        problems.extend(substitute::unused(&root, &across.used));
        keep_only(&mut experiments, &spec, &request.only, &mut problems);
    }
    check_runs(request, &root, &experiments, &mut problems);
    if problems.is_empty() {
        let kept: Vec<String> = experiments.iter().map(|it| it.id.clone()).collect();
        problems.extend(overrides::without_effect(&root, &overrides, &kept));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    output_dependencies::list_only(&mut spec, &request.only);
    Ok(Plan {
        request: request.clone(),
        hash: hash(&[&overridden]),
        spec,
        experiments,
        notes,
    })
}

/// Checks that the total number of runs is within the limit. The error message names the experiment
/// with the most runs.
fn check_runs(
    request: &PlanRequest,
    root: &SpecNode,
    experiments: &[PlannedExperiment],
    problems: &mut Vec<Diagnostic>,
) {
    let runs = |it: &PlannedExperiment| it.points.len() as u64 * u64::from(it.replications);
    let all: u64 = experiments.iter().map(runs).sum();
    let Some(largest) = experiments.iter().max_by_key(|it| runs(it)) else {
        return;
    };
    if all <= MAX_RUNS {
        return;
    }
    let items = root
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default();
    let item = items
        .iter()
        .find(|item| item.own_name() == Some(&largest.id));
    let key = item.and_then(|item| item.get("replications"));
    let place = key.or(item).unwrap_or(root).place.clone();
    let message = format!(
        "found {} with {} each{}, and {all} runs in all; a plan has at most {MAX_RUNS}",
        counted(largest.points.len(), "point"),
        counted(largest.replications, "replication"),
        if request.replications.is_some() {
            " (--replications)"
        } else {
            ""
        },
    );
    problems.push(Diagnostic::new(
        place,
        format!("experiment.{}.replications", largest.id),
        message,
    ));
}

/// Adds a table of all metrics for each experiment, if the file has no tables.
fn add_plain_tables(spec: &mut Spec, kinds: &Standard) {
    if !spec.tables.is_empty() {
        return;
    }
    let table = |experiment: &Experiment| {
        let names = spec
            .measures_of(experiment)
            .into_iter()
            .flat_map(|metric| kinds.measure_names(&metric));
        let row = |name: MeasureName| Row {
            series: Some(name.series),
            metric: Some(name.metric),
            ..Row::default()
        };
        let title = experiment.title.clone().or_else(|| spec.title.clone());
        TableOutput {
            id: experiment.id.clone(),
            title: title.unwrap_or_else(|| spec.name.clone()),
            experiment: Some(experiment.id.clone()),
            rows: names.map(row).collect(),
            ..TableOutput::default()
        }
    };
    spec.tables = spec.experiments.iter().map(table).collect();
}

/// Adds an experiment, if the file has none.
fn add_main_experiment(root: &mut SpecNode) {
    if root.get("experiment").is_some() {
        return;
    }
    let place = root.place.clone();
    let entry = |key: &str, value| TableEntry {
        key: key.to_owned(),
        key_place: place.clone(),
        node: SpecNode {
            place: place.clone(),
            value,
        },
    };
    let id = entry("id", NodeValue::Text("main".to_owned()));
    let main = SpecNode {
        place: place.clone(),
        value: NodeValue::Table(vec![id]),
    };
    if let NodeValue::Table(entries) = &mut root.value {
        entries.push(entry("experiment", NodeValue::Array(vec![main])));
    }
}

/// Checks that experiments and sweeps have the form that substitution requires.
fn check_shape(root: &SpecNode) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    if let Some(parameters) = root.get("parameters")
        && !matches!(parameters.value, NodeValue::Table(_))
    {
        problems.push(Diagnostic::new(
            parameters.place.clone(),
            "parameters",
            "found no table; write [parameters]",
        ));
    }
    let Some(experiments) = root.get("experiment") else {
        return Ok(());
    };
    if !matches!(experiments.value, NodeValue::Array(_)) {
        problems.push(Diagnostic::new(
            experiments.place.clone(),
            "experiment",
            "found no array; write [[experiment]]",
        ));
    }
    for (index, experiment) in experiments.items().iter().enumerate() {
        let path = SpecNode::item_path("experiment", index, experiment);
        for (index, sweep) in experiment
            .get("sweep")
            .map(SpecNode::items)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let path = SpecNode::item_path(&format!("{path}.sweep"), index, sweep);
            if let Err(found) = decode::decode::<Sweep>(sweep, &path) {
                problems.extend(found);
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Adds the problems of `found` that `problems` does not contain yet.
fn add_new(problems: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    let known = |one: &Diagnostic, before: &[Diagnostic]| {
        let mut before = before.iter();
        before.any(|other| point_errors::is_same(one, other))
    };
    let new: Vec<Diagnostic> = found
        .into_iter()
        .filter(|one| !known(one, problems))
        .collect();
    problems.extend(new);
}

/// Data that the points of a plan share during planning.
struct Planner<'a> {
    root: &'a Arc<SpecNode>,
    overrides: &'a [Assignment],
    request: &'a PlanRequest,
    kinds: &'a Arc<Standard>,
    across: &'a Mutex<Across>,
}

impl Planner<'_> {
    fn plan_experiment(
        &self,
        experiment: &SpecNode,
        index: usize,
        spread: &dyn Executor,
    ) -> Result<PlannedExperiment, Vec<Diagnostic>> {
        let path = SpecNode::item_path("experiment", index, experiment);
        let source = Source {
            file: self.request.file.clone(),
            root: Arc::clone(self.root),
            index,
            points: Points::of(experiment, &path)?,
            settings: [overrides::own(experiment), self.overrides.to_vec()].concat(),
            kinds: Arc::clone(self.kinds),
            files: self.request.files.clone(),
            seed: self.request.seed,
            record_all: self.request.record_all,
            lean: Lean::of(self.root, index),
            open: Mutex::default(),
        };
        let count = source.points.count();
        let first = self.resolved(&source, 0, None);
        // If the first point is valid, parts that are equal at all points need not be checked
        // again.
        let agreed = first.as_ref().ok().filter(|_| source.lean.is_enough);
        let agreed = agreed.map(|first| facts(&first.spec, index, self.kinds));
        let others: Vec<usize> = (1..count).collect();
        let others = parallel::map(spread, &others, |place| {
            let point = self.resolved(&source, *place, agreed.as_deref())?;
            Ok(self.lock().add((index, *place), &point))
        });
        let first = first.map(|first| {
            let experiment = &first.experiment;
            let head = (
                experiment.id.clone(),
                replications(experiment, self.request),
            );
            (head, self.lock().add((index, 0), &first))
        });
        let (head, first) = match first {
            Ok((head, first)) => (Some(head), Ok(first)),
            Err(found) => (None, Err(found)),
        };
        let mut points: Vec<PointSummary> = Vec::with_capacity(count);
        let mut refused = Vec::new();
        for (place, planned) in std::iter::once(first).chain(others).enumerate() {
            match planned {
                Ok(point) => points.push(point),
                Err(found) => refused.push((source.swept(place), found)),
            }
        }
        let problems = point_errors::told(&refused, count, &path);
        match head {
            Some((id, replications)) if problems.is_empty() => Ok(PlannedExperiment {
                id,
                replications,
                points,
                source: Arc::new(source),
            }),
            _ => Err(problems),
        }
    }

    /// Resolves and checks a point. Uses the lean spec, without the parts that are equal at all
    /// points, if its facts at this point equal those at the first point.
    fn resolved(
        &self,
        source: &Source,
        place: usize,
        agreed: Option<&str>,
    ) -> Result<PlannedPoint, Vec<Diagnostic>> {
        let mut used = BTreeSet::new();
        let lean = agreed.and_then(|agreed| {
            let point = source.resolve(place, true, &mut used).ok()?;
            (facts(&point.spec, source.index, self.kinds) == agreed).then_some(point)
        });
        let point = match lean {
            Some(point) => Ok(point),
            None => source.resolve(place, false, &mut used),
        };
        self.lock().used.append(&mut used);
        point
    }

    fn lock(&self) -> MutexGuard<'_, Across> {
        self.across.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn replications(experiment: &Experiment, request: &PlanRequest) -> u32 {
    request.replications.unwrap_or(if request.quick {
        experiment.first_look()
    } else {
        experiment.replications
    })
}

/// Keeps the experiments that the requested experiments, tables and figures need.
fn keep_only(
    experiments: &mut Vec<PlannedExperiment>,
    spec: &Spec,
    only: &[String],
    problems: &mut Vec<Diagnostic>,
) {
    if only.is_empty() {
        return;
    }
    let mut wanted: Vec<String> = Vec::new();
    for id in only {
        if experiments.iter().any(|experiment| experiment.id == *id) {
            wanted.push(id.clone());
        } else if let Some(needed) = output_dependencies::experiments_of(spec, id) {
            wanted.extend(needed);
        } else {
            let ids = experiments.iter().map(|experiment| experiment.id.as_str());
            let known = ids
                .chain(output_dependencies::ids(spec))
                .collect::<Vec<_>>();
            let message = format!("found {id:?}, but no experiment, table or figure has this id");
            problems
                .push(Diagnostic::new(SourceSpan::Program, "--only", message).allowed(id, known));
        }
    }
    experiments.retain(|experiment| wanted.contains(&experiment.id));
}
