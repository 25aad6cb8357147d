//! Executes the runs of a plan on all cores, and stores the results of each run as soon as it has
//! finished.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anabranch_engine::plan::{Plan, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::{NullSink, Sink};
use anabranch_engine::world::{self, Capture, WorldError};
use anabranch_scenario::records::{Results, RunRecord};

use crate::atomic_write::{Durability, part_path};
use crate::plain;
use crate::pool;
use crate::series::{self, SeriesWriter};
use crate::shard::ShardSpec;
use crate::store::{self, Store, StoreError};
use crate::threads::Team;

/// Error of executing a plan. Runs that had finished remain stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The results directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run failed.
    #[error("{experiment}, replication {replication}: {source}")]
    World {
        /// Id of the experiment.
        experiment: String,
        /// Number of the replication.
        replication: u32,
        /// Cause.
        source: WorldError,
    },
}

/// Receiver of progress reports.
pub trait ProgressObserver: Sync {
    /// The work starts. `runs` is the total number of runs, `finished` the number that had finished
    /// before, and `seconds` the simulated time of the others.
    fn begin(&self, runs: usize, finished: usize, seconds: f64);
    /// A run of `seconds` of simulated time has finished.
    fn finished(&self, seconds: f64);
}

/// A progress receiver that ignores all reports.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl ProgressObserver for Quiet {
    fn begin(&self, _: usize, _: usize, _: f64) {}
    fn finished(&self, _: f64) {}
}

/// Request to capture the packets of a link to a pcapng file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureRequest {
    /// Name of the link; `name[i]` for a member of a group.
    pub link: String,
    /// Path of the pcapng file.
    pub path: PathBuf,
}

impl CaptureRequest {
    /// Requests a capture of `link` to the file `path`.
    pub fn new(link: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            link: link.into(),
            path: path.into(),
        }
    }
}

/// Runner that simulates. Captures apply to the first replication of the first point of each
/// experiment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Simulator {
    /// Requested captures.
    pub captures: Vec<CaptureRequest>,
    /// Experiment whose first run is captured; `None`: all.
    pub captured: Option<String>,
    /// Source text of the kinds that the program itself adds, as given by `include_str!`. Stored
    /// runs of other code are repeated. A program that adds kinds should set it, because stored
    /// runs of its old code would otherwise be reused.
    pub code: &'static str,
    /// Number of threads that share the world of a run; 0 means one. Results do not depend on it. A
    /// captured run uses one thread.
    pub threads: usize,
}

impl Simulator {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Runner for Simulator {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        if !self.wants(unit) {
            return world::run_divided(unit, seed, sink, &Team(self.threads));
        }
        let open: Vec<_> = self.captures.iter().map(opener).collect();
        let captures: Vec<Capture<'_>> = self
            .captures
            .iter()
            .zip(&open)
            .map(|(request, open)| Capture {
                link: &request.link,
                name: request.path.display().to_string(),
                open,
            })
            .collect();
        world::run(unit, seed, sink, &captures)
    }

    fn kind(&self, _: &PlannedRun<'_>) -> &'static str {
        match self.code {
            "" => "simulated",
            code => code,
        }
    }

    fn wants(&self, unit: &PlannedRun<'_>) -> bool {
        let first = unit.point.place() == 0;
        let captured = self
            .captured
            .as_ref()
            .is_some_and(|id| *id == unit.experiment.id);
        !self.captures.is_empty() && captured && first && unit.replication == 0
    }
}

/// A function that opens the file of a capture.
fn opener(request: &CaptureRequest) -> impl Fn() -> io::Result<Box<dyn Write>> {
    || {
        let file = File::create(&request.path)?;
        Ok(Box::new(BufWriter::new(file)) as Box<dyn Write>)
    }
}

/// Executes the unfinished runs of a plan on `jobs` threads, and combines the results. The results
/// depend neither on the number of threads nor on which runs had finished before.
///
/// # Errors
/// The first error. Runs in progress are completed and stored; no further run is started.
pub fn run(
    plan: &Plan,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl ProgressObserver,
) -> Result<Results, RunError> {
    let units = PlannedRun::all(plan);
    let threads = pool::threads(jobs, units.len());
    let records = run_units(&units, threads, plan, store, runner, progress)?;
    Ok(store.assemble_known(plan, runner, threads, records)?)
}

/// Executes the unfinished runs of a shard of a plan, and returns the number of runs in the shard.
/// [`crate::shard::CompleteShards`] combines the results once all shards exist.
///
/// # Errors
/// The first error, see [`run`].
pub fn run_shard(
    plan: &Plan,
    share: ShardSpec,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl ProgressObserver,
) -> Result<usize, RunError> {
    run_some(
        plan,
        |place| share.has(place),
        store,
        runner,
        jobs,
        progress,
    )
}

/// Executes the unfinished runs among those with `wanted` indices in the plan, and returns their
/// number.
///
/// # Errors
/// The first error, see [`run`].
pub fn run_some(
    plan: &Plan,
    wanted: impl Fn(usize) -> bool,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl ProgressObserver,
) -> Result<usize, RunError> {
    let units = PlannedRun::all(plan).into_iter().enumerate();
    let own = units.filter(|(place, _)| wanted(*place));
    let own: Vec<PlannedRun<'_>> = own.map(|(_, unit)| unit).collect();
    let threads = pool::threads(jobs, own.len());
    run_units(&own, threads, plan, store, runner, progress)?;
    Ok(own.len())
}

/// Executes the unfinished runs among `units`. Returns for each run its record, or `None` if the
/// stored record must be read, because it differs from the record in memory.
fn run_units(
    units: &[PlannedRun<'_>],
    threads: usize,
    plan: &Plan,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    progress: &impl ProgressObserver,
) -> Result<Vec<Option<RunRecord>>, RunError> {
    let mut records: Vec<Option<RunRecord>> = pool::map(threads, (units.len(), 8), |place| {
        let unit = &units[place];
        let again = runner.wants(unit);
        (!again).then(|| store.finished(unit, runner)).flatten()
    });
    let is_open = |place: &usize| records[*place].is_none();
    let places: Vec<usize> = (0..units.len()).filter(is_open).collect();
    let open: Vec<&PlannedRun<'_>> = places.iter().map(|place| &units[*place]).collect();
    let seconds = open
        .iter()
        .map(|unit| unit.point.duration().seconds())
        .sum();
    progress.begin(units.len(), units.len() - open.len(), seconds);
    let made = each(threads, &open, |unit| {
        let record = run_unit(unit, plan.request.seed, store, runner)?;
        progress.finished(unit.point.duration().seconds());
        // A record with infinite values is read back differently, because JSON cannot represent
        // infinity.
        let is_kept = record.metrics.iter().all(|it| it.value.is_finite());
        Ok(is_kept.then_some(record))
    })?;
    for (place, record) in places.into_iter().zip(made) {
        records[place] = record;
    }
    store.flush()?;
    Ok(records)
}

/// Executes the runs `units` on `jobs` threads and returns their records in the same order. Results
/// are not stored on disk, and recorded samples are dropped.
///
/// # Errors
/// The first error.
pub fn in_memory(
    units: &[PlannedRun<'_>],
    seed: u64,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    heard: &(impl Fn(&RunRecord) + Sync),
) -> Result<Vec<RunRecord>, RunError> {
    let units: Vec<&PlannedRun<'_>> = units.iter().collect();
    each(pool::threads(jobs, units.len()), &units, |unit| {
        let record = runner
            .run(unit, seed, &mut NullSink)
            .map_err(|source| failed(unit, source))?;
        heard(&record);
        Ok(record)
    })
}

/// Processes all runs on this many threads, and returns the results in the order of the runs. After
/// the first error no further run is started.
fn each<T: Send>(
    threads: usize,
    units: &[&PlannedRun<'_>],
    work: impl Fn(&PlannedRun<'_>) -> Result<T, RunError> + Sync,
) -> Result<Vec<T>, RunError> {
    // Runs are distributed one at a time, because their durations differ.
    pool::each(threads, (units.len(), 1), |place| work(units[place]))
}

fn failed(unit: &PlannedRun<'_>, source: WorldError) -> RunError {
    RunError::World {
        experiment: unit.experiment.id.clone(),
        replication: unit.replication,
        source,
    }
}

fn run_unit(
    unit: &PlannedRun<'_>,
    seed: u64,
    store: &Store,
    runner: &(impl Runner + ?Sized),
) -> Result<RunRecord, RunError> {
    let key = store::key(unit, runner.kind(unit));
    let record = if unit.records() {
        let path = store.series_path(&key);
        let part = part_path(&path);
        let recorded = run_recorded(unit, seed, &part, &path, runner);
        if recorded.is_err() {
            // The incomplete file is removed, because it would only use space.
            let _ = std::fs::remove_file(&part);
        }
        recorded?
    } else {
        runner
            .run(unit, seed, &mut NullSink)
            .map_err(|source| failed(unit, source))?
    };
    store.keep(&key, &record)?;
    Ok(record)
}

/// Executes a run. Its samples are written to the file `part`, which is renamed to `path` when they
/// are complete.
fn run_recorded(
    unit: &PlannedRun<'_>,
    seed: u64,
    part: &Path,
    path: &Path,
    runner: &(impl Runner + ?Sized),
) -> Result<RunRecord, RunError> {
    let series_failed = |source| StoreError::Series(series::failed(part, source));
    let file = plain::create(part).map_err(|source| StoreError::Write {
        path: part.to_owned(),
        source,
    })?;
    let axes = store::axes(unit.experiment);
    let mut sink = SeriesWriter::new(BufWriter::new(file), &unit.experiment.id, axes)
        .map_err(series_failed)?;
    let record = runner
        .run(unit, seed, &mut sink)
        .map_err(|source| failed(unit, source))?;
    store::finish_series(sink, part, path, Durability::Synced)?;
    Ok(record)
}
