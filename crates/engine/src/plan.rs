//! Plans: every experiment, point and replication of a spec.

use std::sync::Arc;

use anabranch_scenario::Spec;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::value::Point;

use crate::files::Files;
use crate::point::{PlannedPoint, PointSummary, Source};
use crate::sink::RunId;

/// Request for a plan: a spec file and the options of the caller.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PlanRequest {
    /// Name of the file, for messages.
    pub file: String,
    /// Text of the file.
    pub text: String,
    /// Overrides as `key=value`; a key is a parameter or the path of a key in the file.
    pub overrides: Vec<String>,
    /// Ids of the requested experiments, tables or figures; all if empty.
    pub only: Vec<String>,
    /// Number of replications, which replaces that of each experiment.
    pub replications: Option<u32>,
    /// Whether to plan fewer replications, for a first look.
    pub quick: bool,
    /// Whether to record samples of all replications, regardless of the records in the spec.
    pub record_all: bool,
    /// Seed of all runs.
    pub seed: u64,
    /// Reader of the files that the spec refers to.
    pub files: Files,
}

impl PlanRequest {
    /// Creates a request for a whole spec, from the name of its file for messages and its text.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// Applies `change` to the request, and returns it.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Plan of all runs of a spec.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The request from which the plan was made.
    pub request: PlanRequest,
    /// The spec at the first point, for titles, tables and figures.
    pub spec: Spec,
    /// SHA-256 of the values in the file with overrides, as hex digits.
    pub hash: String,
    /// The experiments, in the order of the file.
    pub experiments: Vec<PlannedExperiment>,
    /// Notes about settings that are valid but possibly not intended.
    pub notes: Vec<String>,
}

/// An experiment of a plan with its points.
#[derive(Clone, Debug)]
pub struct PlannedExperiment {
    /// Id of the experiment.
    pub id: String,
    /// Number of runs of each point.
    pub replications: u32,
    /// Summaries of the points, in order.
    pub points: Vec<PointSummary>,
    pub(crate) source: Arc<Source>,
}

impl PlannedExperiment {
    /// x values of a point.
    pub fn point(&self, point: &PointSummary) -> Point {
        self.source.point(point.place())
    }

    /// x values of each sweep, as points of this sweep alone.
    pub fn axes(&self) -> Vec<Point> {
        self.source.axes()
    }

    /// Resolves a point, as its runs require. Runs of one point that are in progress at the same
    /// time share the result.
    ///
    /// # Errors
    /// None if kinds and files are unchanged since the plan was made, because planning has already
    /// resolved the point.
    pub fn resolve(&self, point: &PointSummary) -> Result<Arc<PlannedPoint>, SpecError> {
        self.source.shared(point)
    }

    /// Applies `change` to each point of the experiment. Changed points stay in memory, so there
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
    /// Keeps only the given experiments, with the given numbers of replications.
    pub fn keep_experiments(&mut self, kept: &[(String, u32)]) {
        self.experiments.retain_mut(|experiment| {
            let found = kept.iter().find(|(id, _)| *id == experiment.id);
            found.is_some_and(|(_, replications)| {
                experiment.replications = *replications;
                true
            })
        });
    }

    /// Number of runs of the plan.
    pub fn runs(&self) -> usize {
        self.experiments
            .iter()
            .map(|experiment| experiment.points.len() * experiment.replications as usize)
            .sum()
    }
}

/// A run of a plan: one replication of a point.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRun<'a> {
    /// The experiment.
    pub experiment: &'a PlannedExperiment,
    /// The point.
    pub point: &'a PointSummary,
    /// Number of the replication, from 0.
    pub replication: u32,
}

impl PlannedRun<'_> {
    /// All runs of a plan, in order.
    pub fn all(plan: &Plan) -> Vec<PlannedRun<'_>> {
        let experiments = plan.experiments.iter();
        let points = experiments.flat_map(|experiment| {
            experiment
                .points
                .iter()
                .map(move |point| (experiment, point))
        });
        points
            .flat_map(|(experiment, point)| {
                (0..experiment.replications).map(move |replication| PlannedRun {
                    experiment,
                    point,
                    replication,
                })
            })
            .collect()
    }

    /// x values of the run's point.
    pub fn point(&self) -> Point {
        self.experiment.point(self.point)
    }

    /// Resolves the point of the run. Runs of the point that take place at the same time share the
    /// result.
    ///
    /// # Errors
    /// See [`PlannedExperiment::resolve`].
    pub fn resolve(&self) -> Result<Arc<PlannedPoint>, SpecError> {
        self.experiment.resolve(self.point)
    }

    /// Identity of the run: its experiment, the x values of its point, and its replication.
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
