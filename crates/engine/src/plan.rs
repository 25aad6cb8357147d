//! What will be run: every experiment, point and replication of a spec.

use std::sync::Arc;

use anabranch_scenario::spec::Recorded;
use anabranch_scenario::value::Point;
use anabranch_scenario::{Experiment, Spec};

use crate::files::Files;
use crate::kinds::Standard;
use crate::resolved::Resolved;
use crate::sink::RunId;

/// A spec file and what the caller wants of it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// Name of the file, for messages.
    pub file: String,
    /// Its contents.
    pub text: String,
    /// `key=value`, each a parameter or a key of the file by its path.
    pub overrides: Vec<String>,
    /// Experiments, tables or figures wanted; all if empty.
    pub only: Vec<String>,
    /// Instead of each experiment's own number.
    pub replications: Option<u32>,
    /// Fewer replications, for a first look.
    pub quick: bool,
    /// Samples of all replications, whatever the spec's records say.
    pub record_all: bool,
    /// The seed.
    pub seed: u64,
    /// How files that the spec names are read.
    pub files: Files,
}

impl Request {
    /// All of a spec: the name of its file, for messages, and its text.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// What will be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The request.
    pub request: Request,
    /// The spec as the first point sees it: for titles, tables and figures.
    pub spec: Spec,
    /// SHA-256 of the file's values with overrides, hex.
    pub hash: String,
    /// The experiments, in the order of the file.
    pub experiments: Vec<PlannedExperiment>,
    /// What is right, and may yet be meant otherwise.
    pub notes: Vec<String>,
}

/// One experiment with its points.
#[derive(Clone, Debug)]
pub struct PlannedExperiment {
    /// Its id.
    pub id: String,
    /// Runs of each point.
    pub replications: u32,
    /// Its points, in order.
    pub points: Vec<PlannedPoint>,
}

/// One point: a world of its own.
#[derive(Clone, Debug)]
pub struct PlannedPoint {
    /// Where it stands.
    pub point: Point,
    /// The spec with the point's values.
    pub spec: Arc<Spec>,
    /// The experiment as this point sees it.
    pub experiment: Arc<Experiment>,
    /// The kinds that its world is built from.
    pub kinds: Arc<Standard>,
    /// What spec and experiment mean, for all replications.
    pub resolved: Arc<Resolved>,
    /// SHA-256 of all that a run depends on but seed and replication, hex.
    pub hash: String,
}

impl Plan {
    /// Keeps only these experiments, with so many replications each.
    pub fn keep_experiments(&mut self, kept: &[(String, u32)]) {
        self.experiments.retain_mut(|experiment| {
            let found = kept.iter().find(|(id, _)| *id == experiment.id);
            found.is_some_and(|(_, replications)| {
                experiment.replications = *replications;
                true
            })
        });
    }

    /// Has samples of all replications kept.
    pub(crate) fn record_all(&mut self) {
        let experiments = self.experiments.iter_mut();
        for point in experiments.flat_map(|experiment| &mut experiment.points) {
            for record in &mut Arc::make_mut(&mut point.experiment).records {
                record.replications = Some(Recorded::All);
            }
        }
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.experiments
            .iter()
            .map(|experiment| experiment.points.len() * experiment.replications as usize)
            .sum()
    }
}

/// One run of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The experiment.
    pub experiment: &'a PlannedExperiment,
    /// The point.
    pub point: &'a PlannedPoint,
    /// The replication.
    pub replication: u32,
}

impl Unit<'_> {
    /// Every run of a plan, in order.
    pub fn all(plan: &Plan) -> Vec<Unit<'_>> {
        let experiments = plan.experiments.iter();
        let points = experiments.flat_map(|experiment| {
            experiment
                .points
                .iter()
                .map(move |point| (experiment, point))
        });
        points
            .flat_map(|(experiment, point)| {
                (0..experiment.replications).map(move |replication| Unit {
                    experiment,
                    point,
                    replication,
                })
            })
            .collect()
    }

    /// Which run it is.
    pub fn id(&self) -> RunId<'_> {
        RunId {
            experiment: &self.experiment.id,
            point: &self.point.point,
            replication: self.replication,
        }
    }

    /// Whether it records samples.
    pub fn records(&self) -> bool {
        self.point
            .experiment
            .records
            .iter()
            .any(|record| record.wants(self.replication))
    }
}
