//! Plans: every experiment, point and replication of a spec.

use std::sync::Arc;

use anabranch_scenario::Spec;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::value::Point;

use crate::files::Files;
use crate::point::{PlannedPoint, PointSummary, Source};
use crate::sink::RunId;

/// A spec file and the options of the caller.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// Name of the file, for messages.
    pub file: String,
    /// Contents.
    pub text: String,
    /// `key=value` pairs, each with a parameter or the path of a key of the file.
    pub overrides: Vec<String>,
    /// The requested experiments, tables or figures; all if empty.
    pub only: Vec<String>,
    /// Number of replications, in place of each experiment's own.
    pub replications: Option<u32>,
    /// Fewer replications, for a first look.
    pub quick: bool,
    /// Record samples of all replications, regardless of the spec's records.
    pub record_all: bool,
    /// The seed.
    pub seed: u64,
    /// Reader of the files that the spec refers to.
    pub files: Files,
}

impl Request {
    /// A request for a whole spec: the name of its file, for messages, and its text.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// Applies `change` to a copy.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The request.
    pub request: Request,
    /// The spec at the first point, for titles, tables and figures.
    pub spec: Spec,
    /// SHA-256 of the file's values with overrides, hex.
    pub hash: String,
    /// The experiments, in the order of the file.
    pub experiments: Vec<PlannedExperiment>,
    /// Notes about settings that are valid but may not be intended.
    pub notes: Vec<String>,
}

/// One experiment with its points.
#[derive(Clone, Debug)]
pub struct PlannedExperiment {
    /// Id.
    pub id: String,
    /// Runs of each point.
    pub replications: u32,
    /// The retained data of its points, in order.
    pub points: Vec<PointSummary>,
    pub(crate) source: Arc<Source>,
}

impl PlannedExperiment {
    /// The x of a point.
    pub fn point(&self, point: &PointSummary) -> Point {
        self.source.point(point.place())
    }

    /// The x values of each sweep, as points of that sweep alone.
    pub fn axes(&self) -> Vec<Point> {
        self.source.axes()
    }

    /// Resolves a point. Concurrent runs of the point share the result.
    ///
    /// # Errors
    /// None if kinds and files have not changed since the plan was made, because that resolved the
    /// point, too.
    pub fn resolve(&self, point: &PointSummary) -> Result<Arc<PlannedPoint>, SpecError> {
        self.source.shared(point)
    }

    /// Changes each of its points by a function. The changed points are kept in memory, so there
    /// should be few.
    ///
    /// # Errors
    /// See [`Self::resolve`].
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
    /// Keeps only the given experiments, with their numbers of replications.
    pub fn keep_experiments(&mut self, kept: &[(String, u32)]) {
        self.experiments.retain_mut(|experiment| {
            let found = kept.iter().find(|(id, _)| *id == experiment.id);
            found.is_some_and(|(_, replications)| {
                experiment.replications = *replications;
                true
            })
        });
    }

    /// Number of runs.
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

    /// Resolves its point. Concurrent runs of the point share the result.
    ///
    /// # Errors
    /// See [`PlannedExperiment::resolve`].
    pub fn resolve(&self) -> Result<Arc<PlannedPoint>, SpecError> {
        self.experiment.resolve(self.point)
    }

    /// The identity of the run at its point.
    pub fn id<'u>(&'u self, point: &'u PlannedPoint) -> RunId<'u> {
        RunId {
            experiment: &self.experiment.id,
            point: &point.point,
            replication: self.replication,
        }
    }

    /// Whether the run records samples.
    pub fn records(&self) -> bool {
        let mut records = self.point.records().iter();
        records.any(|record| record.wants(self.replication))
    }
}
