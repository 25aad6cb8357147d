//! The explored run: one experiment of a spec, at one point of its sweeps and with some values
//! changed, as a separate spec.

use std::collections::BTreeSet;

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::document::Document;
use anabranch_scenario::sweep::{Assignment, Points};
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use anabranch_scenario::{profiles, substitute};
use serde::{Deserialize, Serialize};

use crate::choices::Choices;

/// Sections of a spec that affect a run, directly or because others refer to them.
const KEPT: &[&str] = &[
    "anabranch",
    "name",
    "title",
    "parameters",
    "profiles",
    "world",
    "node",
    "link",
    "wifi",
    "constellation",
    "ground",
    "route",
    "flow",
    "measure",
    "experiment",
];

/// Keys of an experiment that have no meaning for a single run.
const OF_MANY_RUNS: &[&str] = &[
    "sweep",
    "parameters",
    "replications",
    "quick_replications",
    "duration",
];

/// Maximum number of values that a request may set.
const MAX_SET: usize = 256;

/// A spec with its files.
#[derive(Clone, Debug, Default)]
pub struct LoadedSpec {
    /// File name for messages.
    pub file: String,
    /// Text of the spec.
    pub text: String,
    /// Access to the files that it names.
    pub files: Files,
}

/// Selection of a run, with changed values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSelection {
    /// Index of the experiment.
    pub experiment: usize,
    /// Index of the point of the experiment's sweeps.
    pub point: usize,
    /// Random seed.
    pub seed: u64,
    /// Changed values, as in `--set`: names of parameters, or paths of keys, with their values.
    #[serde(default)]
    pub set: Vec<(String, String)>,
}

/// An experiment in the list of the page.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentSummary {
    id: String,
    title: Option<String>,
    /// Description of each point; a single empty text if there is no sweep.
    points: Vec<String>,
}

/// A validated spec, of which single runs can be executed.
#[derive(Debug)]
pub struct Session {
    source: LoadedSpec,
    root: SpecNode,
    /// Name of the spec.
    pub name: String,
    /// Title of the spec.
    pub title: String,
    /// Experiments of the spec.
    pub experiments: Vec<ExperimentSummary>,
    /// Whether the spec has constellations.
    pub map: bool,
    /// Allowed words of text values.
    pub choices: Choices,
}

/// One run as a separate spec.
#[derive(Debug)]
pub struct SingleRun {
    /// The spec of the run, parsed.
    pub root: SpecNode,
    /// The spec of the run, as TOML.
    pub toml: String,
}

impl Session {
    /// Parses and validates a spec.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn new(source: LoadedSpec) -> Result<Self, SpecError> {
        let plan = Plan::new(
            PlanRequest::new(source.file.clone(), source.text.clone()).with(|it| {
                it.files = source.files.clone();
            }),
        )?;
        let refused = |problems| SpecError::new(&source.file, &source.text, &[], problems);
        let root = SpecNode::parse(&source.text).map_err(refused)?;
        let titles = plan.spec.experiments.iter();
        let titles = titles.map(|experiment| experiment.title.clone());
        let experiments = plan.experiments.iter().zip(titles);
        let experiments = experiments.map(|(planned, title)| ExperimentSummary {
            id: planned.id.clone(),
            title,
            points: planned
                .points
                .iter()
                .map(|it| words(&planned.point(it)))
                .collect(),
        });
        Ok(Self {
            name: plan.spec.name.clone(),
            title: plan.spec.title.clone().unwrap_or_default(),
            experiments: experiments.collect(),
            map: !plan.spec.constellations.is_empty(),
            choices: Choices::of(&root),
            root,
            source,
        })
    }

    /// The spec of a single run: the point of the sweeps is substituted, and parts that belong only
    /// to other runs are removed.
    ///
    /// # Errors
    /// The spec has no value for a changed key, or no such experiment or point.
    pub fn single(&self, choice: &RunSelection) -> Result<SingleRun, SpecError> {
        let arguments: Vec<String> = choice.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let refused = |problems| SpecError::new(&self.source.file, "", &arguments, problems);
        let mut root = self.root.clone();
        let place = root.place.clone();
        let wrong = |key: &str, message: String| {
            refused(vec![Diagnostic::new(place.clone(), key, message)])
        };
        if choice.set.len() > MAX_SET {
            let message = format!(
                "found {} values; at most {MAX_SET} can be set",
                choice.set.len()
            );
            return Err(wrong("", message));
        }
        let known = self.experiments.len();
        if choice.experiment >= known {
            let message = format!("found number {}; there are {known}", choice.experiment);
            return Err(wrong("experiment", message));
        }
        let experiment = take_experiment(&mut root, choice.experiment);
        let mut settings: Vec<Assignment> = own_settings(&experiment);
        let path = SpecNode::item_path("experiment", choice.experiment, &experiment);
        let points = Points::of(&experiment, &path).map_err(refused)?;
        let Some(point) = points.iter(&experiment).nth(choice.point) else {
            let message = format!("found number {}; it has fewer points", choice.point);
            return Err(wrong(&path, message));
        };
        settings.extend(point.settings);
        let asked = arguments.iter().enumerate();
        let asked: Result<Vec<_>, _> = asked
            .map(|(at, text)| Assignment::parse(text, at))
            .collect();
        settings.extend(asked.map_err(|problem| refused(vec![problem]))?);
        let applied = settings.iter().filter_map(|it| it.apply(&mut root).err());
        let problems: Vec<Diagnostic> = applied.collect();
        if !problems.is_empty() {
            return Err(refused(problems));
        }
        put_experiment(&mut root, experiment);
        leave_out_unused(&mut root);
        let toml = Document::from(root.clone())
            .head(&self.head(choice))
            .to_toml();
        Ok(SingleRun { root, toml })
    }

    /// Header comment of the spec of a run.
    fn head(&self, choice: &RunSelection) -> String {
        let listed = &self.experiments[choice.experiment];
        let words = listed.points.get(choice.point).map_or("", String::as_str);
        let at = match words {
            "" => String::new(),
            words => format!(" at {words}"),
        };
        let seed = choice.seed;
        format!(
            "One run of {}, experiment {}{at}.\n\n  anabranch run FILE --seed {seed}",
            self.name, listed.id
        )
    }

    /// The plan of the spec of a single run.
    ///
    /// # Errors
    /// All errors of the spec.
    pub fn plan(&self, choice: &RunSelection, toml: &str) -> Result<Plan, SpecError> {
        Plan::new(
            PlanRequest::new(format!("{}.toml", self.name), toml).with(|it| {
                it.seed = choice.seed;
                it.files = self.source.files.clone();
            }),
        )
    }
}

fn words(point: &[(String, anabranch_scenario::value::SweepValue)]) -> String {
    let pair = |(name, x): &(String, _)| format!("{} {x}", anabranch_report::unit::readable(name));
    let pairs: Vec<String> = point.iter().map(pair).collect();
    pairs.join(", ")
}

fn entries_mut(node: &mut SpecNode) -> Option<&mut Vec<TableEntry>> {
    match &mut node.value {
        NodeValue::Table(entries) => Some(entries),
        _ => None,
    }
}

/// Removes all experiments, and the parts that are derived from their runs, from a spec. Returns
/// the experiment with this number. A spec without experiments has one implicit experiment.
fn take_experiment(root: &mut SpecNode, number: usize) -> SpecNode {
    let plain = SpecNode {
        place: root.place.clone(),
        value: NodeValue::Table(vec![TableEntry {
            key: "id".to_owned(),
            key_place: root.place.clone(),
            node: SpecNode {
                place: root.place.clone(),
                value: NodeValue::Text("main".to_owned()),
            },
        }]),
    };
    let found = root
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default();
    let taken = found.get(number).cloned().unwrap_or(plain);
    if let Some(entries) = entries_mut(root) {
        entries.retain(|entry| KEPT.contains(&entry.key.as_str()) && entry.key != "experiment");
    }
    taken
}

/// Settings that an experiment makes for its runs: parameters, and its duration, which replaces
/// that of the world.
fn own_settings(experiment: &SpecNode) -> Vec<Assignment> {
    let parameters = experiment.get("parameters").map(SpecNode::entries);
    let parameters = parameters.unwrap_or_default().iter().map(Assignment::of);
    let duration = experiment.get("duration").map(|node| Assignment {
        key: "world.duration".to_owned(),
        key_place: node.place.clone(),
        node: node.clone(),
    });
    parameters.chain(duration).collect()
}

fn put_experiment(root: &mut SpecNode, mut experiment: SpecNode) {
    let place = root.place.clone();
    if let Some(entries) = entries_mut(&mut experiment) {
        entries.retain(|entry| !OF_MANY_RUNS.contains(&entry.key.as_str()));
    }
    if let Some(entries) = entries_mut(root) {
        entries.push(TableEntry {
            key: "experiment".to_owned(),
            key_place: place.clone(),
            node: SpecNode {
                place,
                value: NodeValue::Array(vec![experiment]),
            },
        });
    }
}

/// Removes profiles and parameters that only other experiments use, until all remaining ones are
/// used.
fn leave_out_unused(root: &mut SpecNode) {
    loop {
        let mut unused: BTreeSet<String> = profiles::unused(root)
            .into_iter()
            .map(|problem| problem.key)
            .collect();
        let mut used = BTreeSet::new();
        substitute::mentioned(root, &mut used);
        let parameters = root.get("parameters").map(SpecNode::entries);
        let parameters = parameters.unwrap_or_default().iter();
        let names = parameters.map(|entry| &entry.key);
        let left = names.filter(|name| !used.contains(*name));
        unused.extend(left.map(|name| SpecNode::key_path("parameters", name)));
        if unused.is_empty() {
            return;
        }
        for section in ["profiles", "parameters"] {
            if let Some(entries) = root.get_mut(section).and_then(entries_mut) {
                entries.retain(|it| !unused.contains(&SpecNode::key_path(section, &it.key)));
            }
        }
    }
}
