//! From a spec to the runs it asks for: every experiment, point and replication, all checked before any is run.

mod at_points;
mod beyond;
mod elements;
mod finished;
mod network;
mod overrides;
mod windows;

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_scenario::document::Document;
use anabranch_scenario::limits::MAX_RUNS;
use anabranch_scenario::output::{Row, Table};
use anabranch_scenario::place::Place;
use anabranch_scenario::problem::{Problem, SpecError};
use anabranch_scenario::resolve::{self, Setting, SweptPoint};
use anabranch_scenario::tree::{Entry, Node, NodeValue};
use anabranch_scenario::value::{Point, Value};
use anabranch_scenario::vocabulary::{MeasureName, Vocabulary};
use anabranch_scenario::{Experiment, Spec, Sweep, decode, profiles, substitute, validate, wanted};
use anabranch_settings::counted;
use sha2::{Digest, Sha256};

use crate::idle;
use crate::kinds::Standard;
use crate::plan::{Plan, PlannedExperiment, PlannedPoint, Request};
use crate::resolved::{Idle, Resolved};
use crate::spread::{self, Alone, Spread};
use crate::traces;

pub use network::network;

impl Plan {
    /// Reads, resolves and checks a spec.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(request: Request) -> Result<Self, SpecError> {
        Self::with(request, &Standard::default())
    }

    /// The same for a program that has kinds of its own.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn with(request: Request, kinds: &Standard) -> Result<Self, SpecError> {
        Self::spread(request, kinds, &Alone)
    }

    /// The same by whoever `spread` gives the points to. The plan is the same.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn spread(
        request: Request,
        kinds: &Standard,
        spread: &dyn Spread,
    ) -> Result<Self, SpecError> {
        Node::parse(&request.text)
            .and_then(|root| build(&request, root, kinds, spread))
            .map_err(|problems| {
                SpecError::new(&request.file, &request.text, &request.overrides, problems)
            })
    }

    /// Resolves and checks a spec that a program built. The request's text is made of the document.
    ///
    /// # Errors
    /// Everything that is wrong with it: what is said of a file that says the same, without lines.
    pub fn of(document: &Document, request: Request) -> Result<Self, SpecError> {
        Self::of_with(document, request, &Standard::default())
    }

    /// The same for a program that has kinds of its own.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn of_with(
        document: &Document,
        request: Request,
        kinds: &Standard,
    ) -> Result<Self, SpecError> {
        let request = Request {
            text: document.to_toml(),
            ..request
        };
        let refused = |problems| SpecError::new(&request.file, "", &request.overrides, problems);
        if !document.problems().is_empty() {
            return Err(refused(document.problems().to_vec()));
        }
        build(&request, document.root().clone(), kinds, &Alone).map_err(refused)
    }
}

fn build(
    request: &Request,
    mut root: Node,
    kinds: &Standard,
    spread: &dyn Spread,
) -> Result<Plan, Vec<Problem>> {
    let kinds = &Arc::new(kinds.clone());
    add_main_experiment(&mut root);
    check_shape(&root)?;
    let mut problems = Vec::new();
    let overrides = overrides::read(&request.overrides, &root, &mut problems);
    let overridden = overrides::applied(&root, &overrides);
    if let Err(found) = check_shape(&overridden) {
        problems.extend(found);
        return Err(problems);
    }
    problems.extend(profiles::unused(&overridden));
    let mut used = BTreeSet::new();
    let mut experiments = Vec::new();
    for (index, experiment) in overridden
        .get("experiment")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let mut planner = Planner {
            root: &overridden,
            overrides: &overrides,
            request,
            kinds,
            used: &mut used,
        };
        match planner.plan_experiment(experiment, index, spread) {
            Ok(planned) => experiments.push(planned),
            Err(found) => add_new(&mut problems, found),
        }
    }
    let Some(first) = experiments
        .iter()
        .flat_map(|experiment| &experiment.points)
        .next()
    else {
        return Err(problems);
    };
    let mut spec = Spec::clone(&first.spec);
    let mut notes = Vec::new();
    if problems.is_empty() {
        problems = idle_everywhere(&experiments);
        let points = experiments.iter().flat_map(|it| &it.points);
        let judged = points.map(|point| &*point.resolved.judged);
        let idle = idle::Everywhere::of(judged);
        add_new(&mut problems, idle.mistakes);
        notes.extend(idle.redundant);
    }
    notes.extend(beyond::notes(&experiments));
    notes.extend(windows::notes(&experiments));
    notes.extend(elements::notes(&experiments, kinds));
    add_plain_tables(&mut spec, kinds);
    if problems.is_empty() {
        // Where something is wrong not every use was seen.
        if !overrides.is_empty() {
            substitute::mentioned(&root, &mut used);
        }
        problems.extend(substitute::unused(&root, &used));
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
    wanted::list_only(&mut spec, &request.only);
    let mut plan = Plan {
        request: request.clone(),
        hash: hash(&[&overridden]),
        spec,
        experiments,
        notes,
    };
    if request.record_all {
        plan.record_all();
    }
    Ok(plan)
}

/// Checks that all runs together are not too many. The experiment with the most of them is named.
fn check_runs(
    request: &Request,
    root: &Node,
    experiments: &[PlannedExperiment],
    problems: &mut Vec<Problem>,
) {
    let runs = |it: &PlannedExperiment| it.points.len() as u64 * u64::from(it.replications);
    let all: u64 = experiments.iter().map(runs).sum();
    let Some(largest) = experiments.iter().max_by_key(|it| runs(it)) else {
        return;
    };
    if all <= MAX_RUNS {
        return;
    }
    let items = root.get("experiment").map(Node::items).unwrap_or_default();
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
    problems.push(Problem::new(
        place,
        format!("experiment.{}.replications", largest.id),
        message,
    ));
}

/// A file without tables has one for each experiment, of everything that is measured.
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
        Table {
            id: experiment.id.clone(),
            title: title.unwrap_or_else(|| spec.name.clone()),
            experiment: Some(experiment.id.clone()),
            rows: names.map(row).collect(),
            ..Table::default()
        }
    };
    spec.tables = spec.experiments.iter().map(table).collect();
}

/// A file without experiments has one.
fn add_main_experiment(root: &mut Node) {
    if root.get("experiment").is_some() {
        return;
    }
    let place = root.place.clone();
    let entry = |key: &str, value| Entry {
        key: key.to_owned(),
        key_place: place.clone(),
        node: Node {
            place: place.clone(),
            value,
        },
    };
    let id = entry("id", NodeValue::Text("main".to_owned()));
    let main = Node {
        place: place.clone(),
        value: NodeValue::Table(vec![id]),
    };
    if let NodeValue::Table(entries) = &mut root.value {
        entries.push(entry("experiment", NodeValue::Array(vec![main])));
    }
}

/// Checks what must hold before parameters can be put in: that experiments and their sweeps have their shape.
fn check_shape(root: &Node) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    if let Some(parameters) = root.get("parameters")
        && !matches!(parameters.value, NodeValue::Table(_))
    {
        problems.push(Problem::new(
            parameters.place.clone(),
            "parameters",
            "found no table; write [parameters]",
        ));
    }
    let Some(experiments) = root.get("experiment") else {
        return Ok(());
    };
    if !matches!(experiments.value, NodeValue::Array(_)) {
        problems.push(Problem::new(
            experiments.place.clone(),
            "experiment",
            "found no array; write [[experiment]]",
        ));
    }
    for (index, experiment) in experiments.items().iter().enumerate() {
        let path = Node::item_path("experiment", index, experiment);
        for (index, sweep) in experiment
            .get("sweep")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let path = Node::item_path(&format!("{path}.sweep"), index, sweep);
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

/// Adds what was not found before.
fn add_new(problems: &mut Vec<Problem>, found: Vec<Problem>) {
    let known = |one: &Problem, before: &[Problem]| {
        let mut before = before.iter();
        before.any(|other| at_points::is_same(one, other))
    };
    let new: Vec<Problem> = found
        .into_iter()
        .filter(|one| !known(one, problems))
        .collect();
    problems.extend(new);
}

/// Settings that have no effect wherever they are given. One that has an effect at some point is meant for that: experiments compare what
/// is on with what is off.
fn idle_everywhere(experiments: &[PlannedExperiment]) -> Vec<Problem> {
    let points = || experiments.iter().flat_map(|it| &it.points);
    let has_no_effect = |point: &PlannedPoint, idle: &Idle| {
        let is_same = |it: &Idle| (it.flow, &it.setting) == (idle.flow, &idle.setting);
        point.resolved.idle.iter().any(is_same) || !gives(point, idle)
    };
    let mut problems = Vec::new();
    for idle in points().flat_map(|it| &it.resolved.idle) {
        if points().all(|it| has_no_effect(it, idle)) {
            add_new(&mut problems, vec![idle.problem.clone()]);
        }
    }
    problems
}

/// Whether the setting is given at a point.
fn gives(point: &PlannedPoint, idle: &Idle) -> bool {
    let written = &point.spec.flows[idle.flow].transport;
    let kind = point.kinds.transports.kind(written);
    kind.is_some_and(|kind| {
        let mut given = written.values(kind);
        given.any(|(setting, _)| setting.name == idle.setting)
    })
}

/// What all points of a plan share.
struct Planner<'a> {
    root: &'a Node,
    overrides: &'a [Setting],
    request: &'a Request,
    kinds: &'a Arc<Standard>,
    /// The parameters that were used.
    used: &'a mut BTreeSet<String>,
}

impl Planner<'_> {
    fn plan_experiment(
        &mut self,
        experiment: &Node,
        index: usize,
        spread: &dyn Spread,
    ) -> Result<PlannedExperiment, Vec<Problem>> {
        let path = Node::item_path("experiment", index, experiment);
        let own = overrides::own(experiment);
        let swept = resolve::points(experiment, &path)?;
        let planned = spread::map(spread, &swept, |swept| {
            let settings = own.iter().chain(self.overrides).chain(&swept.settings);
            let mut used = BTreeSet::new();
            (self.plan_point(index, settings, swept, &mut used), used)
        });
        let mut points = Vec::new();
        let mut refused = Vec::new();
        for ((planned, used), swept) in planned.into_iter().zip(&swept) {
            self.used.extend(used);
            match planned {
                Ok(point) => points.push(point),
                Err(found) => refused.push((swept, found)),
            }
        }
        let problems = at_points::told(refused, swept.len(), &path);
        let Some(first) = points.first() else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let replications = replications(&first.experiment, self.request);
        Ok(PlannedExperiment {
            id: first.experiment.id.clone(),
            replications,
            points,
        })
    }

    fn plan_point<'s>(
        &self,
        index: usize,
        settings: impl Iterator<Item = &'s Setting>,
        swept: &SweptPoint,
        used: &mut BTreeSet<String>,
    ) -> Result<PlannedPoint, Vec<Problem>> {
        let mut tree = self.root.clone();
        let mut problems: Vec<Problem> = settings
            .filter_map(|setting| setting.apply(&mut tree).err())
            .collect();
        let point = swept.point.iter().filter_map(|(name, x)| match x_value(x) {
            Ok(x) => Some((name.clone(), x)),
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let point: Point = point.collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut tree = substitute::substitute(&tree, used)?;
        traces::put_in(&mut tree, &self.request.files)?;
        let mut spec: Spec = decode::decode(&tree, "")?;
        let problems = validate::validate(&spec, &tree, &**self.kinds);
        if !problems.is_empty() {
            return Err(problems);
        }
        let resolved = Resolved::new(&spec, index, self.kinds, &tree)?;
        let experiment = spec.experiments[index].clone();
        if let Some(duration) = experiment.duration {
            spec.world.duration = duration;
        }
        let hash = run_hash(&tree, index, self.request.seed);
        Ok(PlannedPoint {
            point,
            spec: Arc::new(spec),
            experiment: Arc::new(experiment),
            kinds: Arc::clone(self.kinds),
            resolved: Arc::new(resolved),
            hash,
        })
    }
}

fn replications(experiment: &Experiment, request: &Request) -> u32 {
    request.replications.unwrap_or(if request.quick {
        experiment.first_look()
    } else {
        experiment.replications
    })
}

fn x_value(node: &Node) -> Result<Value, Problem> {
    match &node.value {
        NodeValue::Integer(number) => Ok(Value::Integer(*number)),
        NodeValue::Float(number) => Ok(Value::Float(*number)),
        NodeValue::Boolean(truth) => Ok(Value::Boolean(*truth)),
        NodeValue::Text(text) => Ok(Value::Text(text.clone())),
        NodeValue::Array(_) | NodeValue::Table(_) => {
            let message = format!(
                "found {}; an x is a number or text (a sweep with `points` names it)",
                node.describe()
            );
            Err(Problem::new(node.place.clone(), "x", message))
        }
    }
}

/// The parts of a spec that a run depends on; titles, tables and figures may change without running anew.
const RUN_SECTIONS: &[&str] = &[
    "anabranch",
    "name",
    "world",
    "node",
    "link",
    "wifi",
    "route",
    "flow",
    "measure",
];

fn run_hash(tree: &Node, experiment: usize, seed: u64) -> String {
    let parts = RUN_SECTIONS.iter().filter_map(|section| tree.get(section));
    let experiment = tree
        .get("experiment")
        .and_then(|experiments| experiments.items().get(experiment));
    let mut own = experiment.cloned();
    if let Some(Node {
        value: NodeValue::Table(entries),
        ..
    }) = &mut own
    {
        let unrelated = [
            "title",
            "replications",
            "quick_replications",
            "parameters",
            "sweep",
        ];
        entries.retain(|entry| !unrelated.contains(&entry.key.as_str()));
    }
    let nodes: Vec<&Node> = parts.chain(own.as_ref()).collect();
    let mut digest = Sha256::new();
    digest.update(env!("CARGO_PKG_VERSION"));
    digest.update(seed.to_le_bytes());
    digest.update(hash(&nodes));
    hex(&digest.finalize())
}

fn hash(nodes: &[&Node]) -> String {
    let mut digest = Sha256::new();
    for node in nodes {
        digest.update(node.to_json().to_string());
        digest.update([0]);
    }
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Keeps the experiments that the wanted experiments, tables and figures need.
fn keep_only(
    experiments: &mut Vec<PlannedExperiment>,
    spec: &Spec,
    only: &[String],
    problems: &mut Vec<Problem>,
) {
    if only.is_empty() {
        return;
    }
    let mut wanted: Vec<String> = Vec::new();
    for id in only {
        if experiments.iter().any(|experiment| experiment.id == *id) {
            wanted.push(id.clone());
        } else if let Some(needed) = wanted::experiments_of(spec, id) {
            wanted.extend(needed);
        } else {
            let ids = experiments.iter().map(|experiment| experiment.id.as_str());
            let known = ids.chain(wanted::ids(spec)).collect::<Vec<_>>();
            let message = format!("found {id:?}, but no experiment, table or figure has this id");
            problems.push(Problem::new(Place::Program, "--only", message).allowed(id, known));
        }
    }
    experiments.retain(|experiment| wanted.contains(&experiment.id));
}
