//! From a spec to the runs it asks for: every experiment, point and replication, all checked before any is run.

use std::sync::Arc;

use anabranch_scenario::limits::MAX_RUNS;
use anabranch_scenario::output::{Row, Table};
use anabranch_scenario::problem::{Problem, SpecError};
use anabranch_scenario::resolve::{self, Setting, SweptPoint};
use anabranch_scenario::tree::{Entry, Node, NodeValue, Place};
use anabranch_scenario::value::{Point, Value};
use anabranch_scenario::{Experiment, Spec, Sweep, decode, profiles, validate, wanted};
use sha2::{Digest, Sha256};

use crate::files::Files;
use crate::kinds::Standard;
use crate::plan::{Plan, PlannedExperiment, PlannedPoint, Request};
use crate::traces;

/// Replications under `--quick` where the spec does not say.
const QUICK_REPLICATIONS: u32 = 3;

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
        build(&request, kinds).map_err(|problems| {
            SpecError::new(&request.file, &request.text, &request.overrides, problems)
        })
    }
}

fn build(request: &Request, kinds: &Standard) -> Result<Plan, Vec<Problem>> {
    let kinds = &Arc::new(kinds.clone());
    let mut root = Node::parse(&request.text)?;
    add_main_experiment(&mut root);
    check_shape(&root)?;
    let mut problems = Vec::new();
    let overrides = read_overrides(request, &root, &mut problems);
    problems.extend(profiles::unused(&with_overrides(&root, &overrides)));
    let mut experiments = Vec::new();
    for (index, experiment) in root
        .get("experiment")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match plan_experiment(&root, experiment, index, &overrides, request, kinds) {
            Ok(planned) => experiments.push(planned),
            Err(found) => problems.extend(found),
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
    add_plain_tables(&mut spec);
    if problems.is_empty() {
        keep_only(&mut experiments, &spec, &request.only, &root, &mut problems);
    }
    check_runs(request, &root, &experiments, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    wanted::list_only(&mut spec, &request.only);
    Ok(Plan {
        request: request.clone(),
        hash: hash(&[&with_overrides(&root, &overrides)]),
        spec,
        experiments,
    })
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
        "found {} points with {} replications each{}, and {all} runs in all; a plan has at most {MAX_RUNS}",
        largest.points.len(),
        largest.replications,
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
fn add_plain_tables(spec: &mut Spec) {
    if !spec.tables.is_empty() {
        return;
    }
    let table = |experiment: &Experiment| {
        let names = spec
            .measures_of(experiment)
            .into_iter()
            .map(|metric| metric.names());
        let row = |(series, metric)| Row {
            series: Some(series),
            metric: Some(metric),
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

/// Reads the network of a file: its nodes and links. Flows and all that is made of runs are left out, and need not be there;
/// nor need name and world.
///
/// # Errors
/// Everything that is wrong with the rest.
pub fn network(
    file: &str,
    text: &str,
    overrides: &[String],
    files: &Files,
) -> Result<Spec, SpecError> {
    read_network(text, overrides, files)
        .map_err(|found| SpecError::new(file, text, overrides, found))
}

/// What of a file a network does not need, and what stands for it.
const NOT_NETWORK: &[(&str, Option<&str>)] = &[
    ("name", Some("\"network\"")),
    ("world", Some("{ duration = \"1 s\" }")),
    ("flow", Some("[]")),
    ("paper", None),
    ("reference", None),
    ("assumption", None),
    ("measure", None),
    ("experiment", None),
    ("derived", None),
    ("table", None),
    ("figure", None),
];

fn read_network(text: &str, overrides: &[String], files: &Files) -> Result<Spec, Vec<Problem>> {
    let mut root = Node::parse(text)?;
    if let NodeValue::Table(entries) = &mut root.value {
        for &(key, stands) in NOT_NETWORK {
            entries.retain(|entry| entry.key != key);
            let place = Place::File(0..0);
            entries.extend(stands.map(|value| Entry {
                key: key.to_owned(),
                key_place: place.clone(),
                node: Node {
                    place,
                    ..Node::parse_argument(value, 0)
                },
            }));
        }
    }
    let request = Request {
        overrides: overrides.to_vec(),
        ..Request::default()
    };
    let mut problems = Vec::new();
    let settings = read_overrides(&request, &root, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut tree = resolve::substitute(&with_overrides(&root, &settings))?;
    traces::put_in(&mut tree, files)?;
    let spec: Spec = decode::decode(&tree, "")?;
    let problems = validate::validate(&spec, &tree, &Standard::default());
    if problems.is_empty() {
        Ok(spec)
    } else {
        Err(problems)
    }
}

/// A file without experiments has one.
fn add_main_experiment(root: &mut Node) {
    if root.get("experiment").is_some() {
        return;
    }
    let place = Place::File(0..0);
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

fn read_overrides(request: &Request, root: &Node, problems: &mut Vec<Problem>) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (number, argument) in request.overrides.iter().enumerate() {
        match Setting::parse(argument, number) {
            Ok(setting) => match setting.apply(&mut root.clone()) {
                Ok(()) => settings.push(setting),
                Err(problem) => problems.push(problem),
            },
            Err(problem) => problems.push(problem),
        }
    }
    settings
}

fn with_overrides(root: &Node, overrides: &[Setting]) -> Node {
    let mut root = root.clone();
    for setting in overrides {
        // Each was applied to this tree before without fault.
        let _ = setting.apply(&mut root);
    }
    root
}

fn plan_experiment(
    root: &Node,
    experiment: &Node,
    index: usize,
    overrides: &[Setting],
    request: &Request,
    kinds: &Arc<Standard>,
) -> Result<PlannedExperiment, Vec<Problem>> {
    let path = Node::item_path("experiment", index, experiment);
    let own: Vec<Setting> = experiment
        .get("parameters")
        .map(Node::entries)
        .unwrap_or_default()
        .iter()
        .map(Setting::of)
        .collect();
    let mut points = Vec::new();
    let mut problems = Vec::new();
    for swept in resolve::points(experiment, &path)? {
        let settings = own.iter().chain(overrides).chain(&swept.settings);
        match plan_point(root, index, settings, &swept, request, kinds) {
            Ok(point) => points.push(point),
            Err(found) => problems.extend(found),
        }
    }
    let Some(first) = points.first() else {
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let replications = replications(&first.experiment, request);
    Ok(PlannedExperiment {
        id: first.experiment.id.clone(),
        replications,
        points,
    })
}

fn replications(experiment: &Experiment, request: &Request) -> u32 {
    let quick = experiment
        .quick_replications
        .unwrap_or(QUICK_REPLICATIONS)
        .min(experiment.replications);
    request.replications.unwrap_or(if request.quick {
        quick
    } else {
        experiment.replications
    })
}

fn plan_point<'a>(
    root: &Node,
    index: usize,
    settings: impl Iterator<Item = &'a Setting>,
    swept: &SweptPoint,
    request: &Request,
    kinds: &Arc<Standard>,
) -> Result<PlannedPoint, Vec<Problem>> {
    let mut tree = root.clone();
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
    let mut tree = resolve::substitute(&tree)?;
    traces::put_in(&mut tree, &request.files)?;
    let mut spec: Spec = decode::decode(&tree, "")?;
    let problems = validate::validate(&spec, &tree, &**kinds);
    if !problems.is_empty() {
        return Err(problems);
    }
    let experiment = spec.experiments[index].clone();
    if let Some(duration) = experiment.duration {
        spec.world.duration = duration;
    }
    let hash = run_hash(&tree, index, request.seed);
    Ok(PlannedPoint {
        point,
        spec: Arc::new(spec),
        experiment: Arc::new(experiment),
        kinds: Arc::clone(kinds),
        hash,
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
    root: &Node,
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
            problems.push(Problem::new(root.place.clone(), "--only", message).allowed(id, known));
        }
    }
    experiments.retain(|experiment| wanted.contains(&experiment.id));
}

#[cfg(test)]
mod tests {
    use super::{Files, network};

    const SECOND: u64 = 1_000_000_000;

    /// When the directions of a link are down, in seconds.
    fn outages(schedule: &str) -> [Vec<[u64; 2]>; 2] {
        let text = format!(
            "anabranch = 1\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{schedule}\n"
        );
        let spec = network("link.toml", &text, &[], &Files::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let seconds = |end: u64| if end == u64::MAX { end } else { end / SECOND };
        [true, false].map(|forward| {
            let outages = spec.links[0].outages(forward).into_iter();
            outages.map(|outage| outage.map(seconds)).collect()
        })
    }

    #[test]
    fn a_link_is_down_in_both_directions_or_in_one() {
        assert_eq!(outages(""), [Vec::<[u64; 2]>::new(), vec![]]);
        let both = vec![[1, 2], [5, 7]];
        assert_eq!(
            outages("down = [[\"1 s\", \"2 s\"], [\"5 s\", \"7 s\"]]"),
            [both.clone(), both]
        );
        assert_eq!(
            outages("down = { backward = [[\"1 s\", \"2 s\"]] }"),
            [vec![], vec![[1, 2]]]
        );
    }

    #[test]
    fn up_says_the_same_the_other_way_round() {
        assert_eq!(
            outages(
                "up = { forward = [[\"1 s\", \"2 s\"], [\"2 s\", \"4 s\"]] }\ndown = { backward = [[\"3 s\", \"9 s\"]] }"
            ),
            [vec![[0, 1], [4, u64::MAX]], vec![[3, 9]]]
        );
        assert_eq!(
            outages("up = [[\"0 s\", \"2 s\"]]"),
            [vec![[2, u64::MAX]], vec![[2, u64::MAX]]]
        );
    }
}
