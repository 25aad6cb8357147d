//! Points of experiments. A plan keeps only a summary of each point, and the point is reconstructed
//! from the spec when it is run. The memory of a plan therefore hardly depends on the number of
//! points.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::spec::{Record, Recorded};
use anabranch_scenario::sweep::{Assignment, Points, SweptPoint};
use anabranch_scenario::tree::{NodeValue, SpecNode};
use anabranch_scenario::value::{Point, SweepValue};
use anabranch_scenario::{Experiment, Spec, decode, substitute, validate};
use sha2::{Digest, Sha256};

use crate::files::Files;
use crate::kinds::Standard;
use crate::network::{constellation, constellation_checks};
use crate::resolved_point::ResolvedPoint;
use crate::traces;

mod lean;

pub(crate) use lean::{Lean, facts};

/// Position of a point in a plan: index of its experiment, and index of the point in the
/// experiment.
pub type PointIndex = (usize, usize);

/// A resolved point of an experiment, which describes one world.
#[derive(Clone, Debug)]
pub struct PlannedPoint {
    /// x values of the sweeps.
    pub point: Point,
    /// The spec with the point's values. Outputs (tables, figures, claims) and sweeps are missing,
    /// because only the plan's spec contains them.
    pub spec: Arc<Spec>,
    /// The experiment with the point's values.
    pub experiment: Arc<Experiment>,
    /// Kinds from which the world is built.
    pub kinds: Arc<Standard>,
    /// Names and configurations that all replications share.
    pub resolved: Arc<ResolvedPoint>,
    /// SHA-256 of all inputs of a run except seed and replication.
    pub(crate) hash: [u8; 32],
}

impl PlannedPoint {
    /// SHA-256 of all inputs of a run except seed and replication, as hex digits.
    pub fn hash(&self) -> String {
        hex(&self.hash)
    }

    /// Summary of the point for the plan.
    pub(crate) fn summary(&self, place: usize) -> PointSummary {
        PointSummary {
            hash: self.hash,
            // An experiment has at most 20,000 points.
            place: place as u32,
            shape: Arc::new(Shape {
                duration: self.spec.world.duration,
                records: self.experiment.records.clone(),
                changed: None,
            }),
        }
    }
}

/// Summary of a point in a plan; it has 48 bytes.
#[derive(Clone, Debug)]
pub struct PointSummary {
    hash: [u8; 32],
    shape: Arc<Shape>,
    place: u32,
}

/// Data that the summaries of many points share.
#[derive(Debug)]
pub(crate) struct Shape {
    duration: TimeSpan,
    records: Vec<Record>,
    /// The point itself, if a program has changed it.
    changed: Option<Arc<PlannedPoint>>,
}

impl PointSummary {
    /// Index of the point in its experiment, from 0.
    pub fn place(&self) -> usize {
        self.place as usize
    }

    /// SHA-256 of all inputs of a run except seed and replication, as hex digits.
    pub fn hash(&self) -> String {
        hex(&self.hash)
    }

    /// Duration of the point's runs.
    pub fn duration(&self) -> TimeSpan {
        self.shape.duration
    }

    /// Samples that the point's runs keep.
    pub fn records(&self) -> &[Record] {
        &self.shape.records
    }

    /// Shares the records and the duration with the earlier point in `other` if they are equal.
    /// Otherwise stores those of this point in `other`, so that the next points can share them.
    pub(crate) fn share(&mut self, other: &mut Option<Arc<Shape>>) {
        match other {
            Some(other)
                if (other.duration, &other.records) == (self.duration(), &self.shape.records) =>
            {
                self.shape = Arc::clone(other);
            }
            _ => *other = Some(Arc::clone(&self.shape)),
        }
    }

    /// Replaces the point by a changed one.
    pub(crate) fn change(&mut self, point: PlannedPoint) {
        *self = PointSummary {
            shape: Arc::new(Shape {
                duration: point.spec.world.duration,
                records: point.experiment.records.clone(),
                changed: Some(Arc::new(point)),
            }),
            ..self.clone()
        };
    }
}

/// Source from which the points of an experiment are reconstructed.
pub(crate) struct Source {
    /// Name of the file, for messages.
    pub file: String,
    /// The whole spec with overrides.
    pub root: Arc<SpecNode>,
    /// Index of the experiment in the spec.
    pub index: usize,
    /// Points of the experiment's sweeps.
    pub points: Points,
    /// Values that the experiment and overrides set at all points.
    pub settings: Vec<Assignment>,
    /// The kinds.
    pub kinds: Arc<Standard>,
    /// Reader of the spec's files.
    pub files: Files,
    /// Seed of all runs.
    pub seed: u64,
    /// Whether to record samples of all replications, regardless of the records in the spec.
    pub record_all: bool,
    /// The spec without the parts that are equal at all points, if it can be used.
    pub lean: Lean,
    /// Resolved points of the runs in progress.
    pub open: Mutex<Vec<(usize, Arc<PlannedPoint>)>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("file", &self.file)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// The experiment as written in the spec.
    pub fn experiment(&self) -> &SpecNode {
        &self
            .root
            .get("experiment")
            .map(SpecNode::items)
            .unwrap_or_default()[self.index]
    }

    /// Values that the sweeps set at the point with this index.
    pub fn swept(&self, place: usize) -> SweptPoint {
        self.points.get(self.experiment(), place)
    }

    /// x values of the point with this index.
    pub fn point(&self, place: usize) -> Point {
        xs(&self.swept(place), &mut Vec::new())
    }

    /// x values of each sweep alone, which determine the columns of results.
    pub fn axes(&self) -> Vec<Point> {
        let each = self.points.of_each(self.experiment());
        let alone = each.iter().flatten().map(|it| xs(it, &mut Vec::new()));
        alone.collect()
    }

    /// Resolved point with this index, which is shared with its other runs in progress. Points
    /// without a run in progress are removed from memory.
    ///
    /// # Errors
    /// None if the point was resolved before, and kinds and files have not changed.
    pub fn shared(&self, summary: &PointSummary) -> Result<Arc<PlannedPoint>, SpecError> {
        if let Some(changed) = &summary.shape.changed {
            return Ok(Arc::clone(changed));
        }
        let known = |open: &[(usize, Arc<PlannedPoint>)]| {
            let found = open.iter().find(|(place, _)| *place == summary.place());
            found.map(|(_, point)| Arc::clone(point))
        };
        if let Some(point) = known(&self.opened()) {
            return Ok(point);
        }
        let refused = |problems| SpecError::new(&self.file, "", &[], problems);
        let resolve = |lean| self.resolve(summary.place(), lean, &mut BTreeSet::new());
        // The lean spec fails if a sweep sets a key in one of the omitted parts; then the whole
        // spec is used.
        let resolved = resolve(true).or_else(|_| resolve(false));
        let made = Arc::new(resolved.map_err(refused)?);
        let mut open = self.opened();
        if let Some(point) = known(&open) {
            return Ok(point);
        }
        open.retain(|(_, point)| Arc::strong_count(point) > 1);
        open.push((summary.place(), Arc::clone(&made)));
        Ok(made)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<(usize, Arc<PlannedPoint>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves and checks the point with this index, from the whole spec or the `lean` one, and
    /// records the parameters that the point uses.
    ///
    /// # Errors
    /// All errors at the point.
    pub fn resolve(
        &self,
        place: usize,
        lean: bool,
        used: &mut BTreeSet<String>,
    ) -> Result<PlannedPoint, Vec<Diagnostic>> {
        let swept = self.swept(place);
        let mut tree = match lean {
            true => self.lean.root.clone(),
            false => SpecNode::clone(&self.root),
        };
        let settings = self.settings.iter();
        let mut problems: Vec<Diagnostic> = settings
            .filter_map(|setting| setting.apply(&mut tree).err())
            .collect();
        if lean {
            // In the lean spec, values that the sweeps set in omitted parts cause errors, which are
            // ignored.
            problems.clear();
        }
        let settings = swept.settings.iter();
        problems.extend(settings.filter_map(|setting| setting.apply(&mut tree).err()));
        let point = xs(&swept, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut tree = substitute::substitute(tree, used)?;
        traces::put_in(&mut tree, &self.files)?;
        let mut spec: Spec = decode::decode(&tree, "")?;
        let mut problems = constellation::complete(&mut spec, &self.kinds, &tree);
        problems.extend(validate::validate(&spec, &tree, &*self.kinds));
        if problems.is_empty() {
            problems = constellation_checks::check(&spec, &self.kinds, &tree);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let resolved = ResolvedPoint::new(&spec, self.index, &self.kinds, &tree)?;
        let mut experiment = spec.experiments[self.index].clone();
        if let Some(duration) = experiment.duration {
            spec.world.duration = duration;
        }
        if self.record_all {
            for record in &mut experiment.records {
                record.replications = Some(Recorded::All);
            }
        }
        Ok(PlannedPoint {
            point,
            hash: run_hash(&tree, self.index, self.seed),
            spec: Arc::new(spec),
            experiment: Arc::new(experiment),
            kinds: Arc::clone(&self.kinds),
            resolved: Arc::new(resolved),
        })
    }
}

/// x values of a point; an invalid x is added to the problems.
fn xs(swept: &SweptPoint, problems: &mut Vec<Diagnostic>) -> Point {
    let x = swept.point.iter().filter_map(|(name, x)| match x_value(x) {
        Ok(x) => Some((name.clone(), x)),
        Err(problem) => {
            problems.push(problem);
            None
        }
    });
    x.collect()
}

fn x_value(node: &SpecNode) -> Result<SweepValue, Diagnostic> {
    match &node.value {
        NodeValue::Integer(number) => Ok(SweepValue::Integer(*number)),
        NodeValue::Float(number) => Ok(SweepValue::Float(*number)),
        NodeValue::Boolean(truth) => Ok(SweepValue::Boolean(*truth)),
        NodeValue::Text(text) => Ok(SweepValue::Text(text.clone())),
        NodeValue::Array(_) | NodeValue::Table(_) => {
            let message = format!(
                "found {}; an x is a number or text (a sweep with `points` names it)",
                node.describe()
            );
            Err(Diagnostic::new(node.place.clone(), "x", message))
        }
    }
}

/// Sections of a spec on which runs depend. Titles, tables and figures may change without new runs.
const RUN_SECTIONS: &[&str] = &[
    "anabranch",
    "name",
    "world",
    "node",
    "link",
    "wifi",
    "constellation",
    "ground",
    "route",
    "flow",
    "measure",
];

/// Keys of an experiment that do not affect its runs.
const NOT_RUN: &[&str] = &[
    "title",
    "replications",
    "quick_replications",
    "parameters",
    "sweep",
];

fn run_hash(tree: &SpecNode, experiment: usize, seed: u64) -> [u8; 32] {
    let parts = RUN_SECTIONS.iter().filter_map(|section| tree.get(section));
    let experiment = tree
        .get("experiment")
        .and_then(|experiments| experiments.items().get(experiment));
    let own = experiment.map(|experiment| SpecNode {
        place: experiment.place.clone(),
        value: match &experiment.value {
            NodeValue::Table(entries) => {
                let related = |key: &str| !NOT_RUN.contains(&key);
                let entries = entries.iter().filter(|entry| related(&entry.key));
                NodeValue::Table(entries.cloned().collect())
            }
            other => other.clone(),
        },
    });
    let nodes: Vec<&SpecNode> = parts.chain(own.as_ref()).collect();
    let mut digest = Sha256::new();
    digest.update(env!("CARGO_PKG_VERSION"));
    digest.update(seed.to_le_bytes());
    digest.update(hash(&nodes));
    digest.finalize().into()
}

/// SHA-256 of the contents of nodes, as hex digits.
pub(crate) fn hash(nodes: &[&SpecNode]) -> String {
    let mut digest = Sha256::new();
    for node in nodes {
        node.write_json(&mut |text| digest.update(text));
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
