//! What will be run: every experiment, point and replication of a spec.

use std::sync::Arc;

use anabranch_scenario::Spec;
use anabranch_scenario::problem::SpecError;
use anabranch_scenario::value::Point;

use crate::files::Files;
use crate::point::{PlannedPoint, PointSummary, Source};
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
    /// What is kept of its points, in order.
    pub points: Vec<PointSummary>,
    pub(crate) source: Arc<Source>,
}

impl PlannedExperiment {
    /// The x of a point.
    pub fn point(&self, point: &PointSummary) -> Point {
        self.source.point(point.place())
    }

    /// The x of each sweep, each as a point that has no other.
    pub fn axes(&self) -> Vec<Point> {
        self.source.axes()
    }

    /// A point, resolved. Runs of it that are under way share it.
    ///
    /// # Errors
    /// None where kinds and files have not changed since the plan was made, which resolved it, too.
    pub fn resolve(&self, point: &PointSummary) -> Result<Arc<PlannedPoint>, SpecError> {
        self.source.shared(point)
    }

    /// Changes each of its points by a program. They are kept: this is for few.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn change(&mut self, change: impl Fn(&mut PlannedPoint)) -> Result<(), SpecError> {
        for point in &mut self.points {
            let mut changed = PlannedPoint::clone(&*self.source.shared(point)?);
            change(&mut changed);
            point.change(changed);
        }
        Ok(())
    }
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
    pub point: &'a PointSummary,
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

    /// The x of its point.
    pub fn point(&self) -> Point {
        self.experiment.point(self.point)
    }

    /// Its point, resolved. Runs of it that are under way share it.
    ///
    /// # Errors
    /// As [`PlannedExperiment::resolve`].
    pub fn resolve(&self) -> Result<Arc<PlannedPoint>, SpecError> {
        self.experiment.resolve(self.point)
    }

    /// Which run it is, at its point.
    pub fn id<'u>(&'u self, point: &'u PlannedPoint) -> RunId<'u> {
        RunId {
            experiment: &self.experiment.id,
            point: &point.point,
            replication: self.replication,
        }
    }

    /// Whether it records samples.
    pub fn records(&self) -> bool {
        let mut records = self.point.records().iter();
        records.any(|record| record.wants(self.replication))
    }
}
