//! Overrides by `--set` and by the parameters of experiments, and checks that they have an effect.

use std::collections::BTreeSet;

use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::substitute::substitute;
use anabranch_scenario::sweep::{Assignment, Points, SweptPoint};
use anabranch_scenario::tree::{NodeValue, SpecNode};

/// Parses the arguments of `--set`.
pub fn read(
    arguments: &[String],
    root: &SpecNode,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Assignment> {
    let mut settings = Vec::new();
    for (number, argument) in arguments.iter().enumerate() {
        match Assignment::parse(argument, number) {
            Ok(setting) => match setting.apply(&mut root.clone()) {
                Ok(()) => settings.push(setting),
                Err(problem) => problems.push(problem),
            },
            Err(problem) => problems.push(problem),
        }
    }
    settings
}

/// Applies the overrides to the tree of a spec.
pub fn applied(root: &SpecNode, overrides: &[Assignment]) -> SpecNode {
    let mut root = root.clone();
    for setting in overrides {
        // Ignores the result, because each override was already applied to this tree without an
        // error.
        let _ = setting.apply(&mut root);
    }
    root
}

/// Parameters that an experiment sets.
pub fn own(experiment: &SpecNode) -> Vec<Assignment> {
    let parameters = experiment.get("parameters").map(SpecNode::entries);
    let parameters = parameters.unwrap_or_default().iter();
    parameters.map(Assignment::of).collect()
}

/// Problems of settings that change no run: of `--set` over all kept experiments, and of an
/// experiment's parameters in that experiment.
pub fn without_effect(
    root: &SpecNode,
    overrides: &[Assignment],
    kept: &[String],
) -> Vec<Diagnostic> {
    let root = applied(root, overrides);
    let experiments = root
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default();
    let kept = |item: &SpecNode| kept.iter().any(|id| item.own_name() == Some(id));
    let runs: Vec<RunSettings<'_>> = experiments
        .iter()
        .enumerate()
        .filter(|(_, item)| kept(item))
        .filter_map(|(index, experiment)| {
            let path = SpecNode::item_path("experiment", index, experiment);
            Some(RunSettings {
                root: &root,
                index,
                experiment,
                path: path.clone(),
                points: Points::of(experiment, &path).ok()?,
            })
        })
        .collect();
    let mut problems = Vec::new();
    for (number, setting) in overrides.iter().enumerate() {
        let changes = |run: &RunSettings<'_>| {
            let all = [own(run.experiment), overrides.to_vec()].concat();
            run.is_changed_by(&all, all.len() - overrides.len() + number)
        };
        if !setting.key.starts_with("experiment.") && !runs.iter().any(changes) {
            let again = overrides[number + 1..]
                .iter()
                .any(|it| it.key == setting.key);
            problems.push(match again {
                true => overtaken(setting),
                false => idle(setting, &setting.key, &runs),
            });
        }
    }
    for run in &runs {
        let own = own(run.experiment);
        for number in 0..own.len() {
            if !run.is_changed_by(&own, number) {
                let path = format!("{}.parameters.{}", run.path, own[number].key);
                problems.push(idle(&own[number], &path, std::slice::from_ref(run)));
            }
        }
    }
    problems
}

/// Settings of an experiment that is run.
struct RunSettings<'a> {
    root: &'a SpecNode,
    index: usize,
    experiment: &'a SpecNode,
    path: String,
    points: Points,
}

impl RunSettings<'_> {
    /// Whether another value of one of these settings would change the world at any point.
    fn is_changed_by(&self, settings: &[Assignment], number: usize) -> bool {
        let mut others = settings.to_vec();
        others[number].node.value = NodeValue::Text("another value".to_owned());
        self.points
            .iter(self.experiment)
            .any(|point| self.tree(settings, &point) != self.tree(&others, &point))
    }

    /// Tree of the world at a point; `None` if it cannot be built.
    fn tree(&self, settings: &[Assignment], point: &SweptPoint) -> Option<SpecNode> {
        let mut tree = self.root.clone();
        for setting in settings.iter().chain(&point.settings) {
            setting.apply(&mut tree).ok()?;
        }
        let mut tree = substitute(tree, &mut BTreeSet::new()).ok()?;
        if let NodeValue::Table(entries) = &mut tree.value {
            entries.retain(|entry| !matches!(entry.key.as_str(), "parameters" | "profiles"));
        }
        if let Some(NodeValue::Array(items)) =
            tree.get_mut("experiment").map(|items| &mut items.value)
        {
            *items = vec![items.swap_remove(self.index)];
        }
        Some(tree)
    }

    /// Name of the sweep that sets a key.
    fn sweep_of(&self, key: &str) -> Option<String> {
        let sets = |sweep: &&SpecNode| {
            let by_parameter = sweep.get("parameter").and_then(SpecNode::text) == Some(key);
            let points = sweep.get("points").map(SpecNode::items).unwrap_or_default();
            by_parameter || points.iter().any(|point| point.get(key).is_some())
        };
        let sweeps = self.experiment.get("sweep").map(SpecNode::items);
        let sweep = sweeps.unwrap_or_default().iter().find(sets)?;
        let name = sweep.get("name").or_else(|| sweep.get("parameter"));
        Some(name.and_then(SpecNode::text).unwrap_or(key).to_owned())
    }
}

fn overtaken(setting: &Assignment) -> Diagnostic {
    let message = "has no effect: it is set again further on; write it once";
    Diagnostic::new(setting.key_place.clone(), &setting.key, message)
}

fn idle(setting: &Assignment, path: &str, runs: &[RunSettings<'_>]) -> Diagnostic {
    let key = &setting.key;
    let swept = runs.iter().find_map(|run| {
        let sweep = run.sweep_of(key)?;
        Some((run.experiment.own_name().unwrap_or("main"), sweep))
    });
    let message = match swept {
        Some((experiment, sweep)) => format!(
            "has no effect: the sweep `{sweep}` of the experiment `{experiment}` gives `{key}` its values; \
             set `experiment.{experiment}.sweep.{sweep}.values`, or another key"
        ),
        None => "has no effect: nothing that is run depends on it".to_owned(),
    };
    Diagnostic::new(setting.key_place.clone(), path, message)
}
