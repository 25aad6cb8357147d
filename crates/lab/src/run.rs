//! Runs a plan over all cores and keeps what each run gives as soon as it is finished.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anabranch_engine::plan::{Plan, Unit};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::{Discard, Sink};
use anabranch_engine::world::{self, Capture, WorldError};
use anabranch_scenario::records::{Results, RunRecord};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::plain;
use crate::series::{self, SeriesWriter};
use crate::shard::Share;
use crate::store::{self, Store, StoreError};
use crate::whole::{Keep, part_path};

/// A plan that could not be run to its end. What was finished is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The results directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(#[from] ThreadPoolBuildError),
    /// A run failed.
    #[error("{experiment}, replication {replication}: {source}")]
    World {
        /// The experiment.
        experiment: String,
        /// The replication.
        replication: u32,
        /// Why.
        source: WorldError,
    },
}

/// Hears how the work goes on.
pub trait Progress: Sync {
    /// So many runs are to be made, so many of them were there already; `seconds` of simulated time are left to do.
    fn begin(&self, runs: usize, finished: usize, seconds: f64);
    /// One more run is finished, which took so many seconds of simulated time.
    fn finished(&self, seconds: f64);
}

/// Nobody listens.
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: usize, _: usize, _: f64) {}
    fn finished(&self, _: f64) {}
}

/// Packets of a link to be written to a pcapng file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureRequest {
    /// The link; `name[i]` for a member of a group.
    pub link: String,
    /// The file.
    pub path: PathBuf,
}

impl CaptureRequest {
    /// Of this link, to this file.
    pub fn new(link: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            link: link.into(),
            path: path.into(),
        }
    }
}

/// The simulator, with captures of the first replication of the first point of each experiment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Simulator {
    /// What to capture.
    pub captures: Vec<CaptureRequest>,
    /// The experiment whose first run is captured.
    pub captured: Option<String>,
    /// The text of the kinds that the program itself added, as `include_str!` gives it. Runs that were kept under another are made again;
    /// a program that leaves it out would take those of its old code for those of the new.
    pub code: &'static str,
}

impl Simulator {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Runner for Simulator {
    fn run(
        &self,
        unit: &Unit<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        if !self.wants(unit) {
            return world::run(unit, seed, sink, &[]);
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

    fn kind(&self, _: &Unit<'_>) -> &'static str {
        match self.code {
            "" => "simulated",
            code => code,
        }
    }

    fn wants(&self, unit: &Unit<'_>) -> bool {
        let first = unit
            .experiment
            .points
            .first()
            .is_some_and(|first| std::ptr::eq(first, unit.point));
        let captured = self
            .captured
            .as_ref()
            .is_some_and(|id| *id == unit.experiment.id);
        !self.captures.is_empty() && captured && first && unit.replication == 0
    }
}

/// Opens the file of a capture.
fn opener(request: &CaptureRequest) -> impl Fn() -> io::Result<Box<dyn Write>> {
    || {
        let file = File::create(&request.path)?;
        Ok(Box::new(BufWriter::new(file)) as Box<dyn Write>)
    }
}

/// Runs what of a plan is not finished, on `jobs` threads, and puts the results together. The results do not depend on
/// the number of threads, nor on what was finished before.
///
/// # Errors
/// The first failure. Runs under way are ended and kept; none is begun after it.
pub fn run(
    plan: &Plan,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl Progress,
) -> Result<Results, RunError> {
    let units = Unit::all(plan);
    threads(jobs, units.len())?.install(|| {
        let records = run_units(&units, plan, store, runner, progress)?;
        Ok(store.assemble_known(plan, runner, records)?)
    })
}

/// Runs what of a share of a plan is not finished, and says how many runs the share has. They are put together where all
/// shares are: [`crate::shard::Whole`].
///
/// # Errors
/// The first failure, as with [`run`].
pub fn run_share(
    plan: &Plan,
    share: Share,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl Progress,
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

/// Runs what is not finished of the runs whose places in the plan are wanted, and says how many these are.
///
/// # Errors
/// The first failure, as with [`run`].
pub fn run_some(
    plan: &Plan,
    wanted: impl Fn(usize) -> bool,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    progress: &impl Progress,
) -> Result<usize, RunError> {
    let units = Unit::all(plan).into_iter().enumerate();
    let own = units.filter(|(place, _)| wanted(*place));
    let own: Vec<Unit<'_>> = own.map(|(_, unit)| unit).collect();
    threads(jobs, own.len())?
        .install(|| run_units(&own, plan, store, runner, progress).map(|_| ()))?;
    Ok(own.len())
}

/// Runs what of these is not finished, and gives all records, as what was kept would be read again; `None` where it would not be.
fn run_units(
    units: &[Unit<'_>],
    plan: &Plan,
    store: &Store,
    runner: &(impl Runner + ?Sized),
    progress: &impl Progress,
) -> Result<Vec<Option<RunRecord>>, RunError> {
    let there = units.par_iter().map(|unit| {
        let again = runner.wants(unit);
        (!again).then(|| store.finished(unit, runner)).flatten()
    });
    let mut records: Vec<Option<RunRecord>> = there.collect();
    let is_open = |place: &usize| records[*place].is_none();
    let places: Vec<usize> = (0..units.len()).filter(is_open).collect();
    let open: Vec<&Unit<'_>> = places.iter().map(|place| &units[*place]).collect();
    let seconds = open
        .iter()
        .map(|unit| unit.point.spec.world.duration.seconds())
        .sum();
    progress.begin(units.len(), units.len() - open.len(), seconds);
    let made = each(&open, |unit| {
        let record = run_unit(unit, plan.request.seed, store, runner)?;
        progress.finished(unit.point.spec.world.duration.seconds());
        // JSON has no form for infinity.
        let is_kept = record.metrics.iter().all(|it| it.value.is_finite());
        Ok(is_kept.then_some(record))
    })?;
    for (place, record) in places.into_iter().zip(made) {
        records[place] = record;
    }
    store.flush()?;
    Ok(records)
}

/// Runs units on `jobs` threads and gives their records in the order of the units. Nothing is kept on a disk, and samples
/// that a unit records are dropped.
///
/// # Errors
/// The first failure.
pub fn in_memory(
    units: &[Unit<'_>],
    seed: u64,
    runner: &(impl Runner + ?Sized),
    jobs: usize,
    heard: &(impl Fn(&RunRecord) + Sync),
) -> Result<Vec<RunRecord>, RunError> {
    let units: Vec<&Unit<'_>> = units.iter().collect();
    threads(jobs, units.len())?.install(|| {
        each(&units, |unit| {
            let record = runner
                .run(unit, seed, &mut Discard)
                .map_err(|source| failed(unit, source))?;
            heard(&record);
            Ok(record)
        })
    })
}

/// More threads than this wait for each other: 5,000 took 50 s for 40 runs.
const MOST_THREADS: usize = 512;

/// As many threads as work is to be done at a time, and no more than there are runs.
fn threads(jobs: usize, runs: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let threads = jobs.min(runs).clamp(1, MOST_THREADS);
    ThreadPoolBuilder::new().num_threads(threads).build()
}

/// Does the work of each unit on the threads of this pool; the results stand in the order of the units. After the first failure no
/// other unit is begun.
fn each<T: Send>(
    units: &[&Unit<'_>],
    work: impl Fn(&Unit<'_>) -> Result<T, RunError> + Sync,
) -> Result<Vec<T>, RunError> {
    // One unit at a time: their lengths differ, and a thread that is done takes the next of another.
    let units = units.par_iter().with_max_len(1);
    units.map(|unit| work(unit)).collect()
}

fn failed(unit: &Unit<'_>, source: WorldError) -> RunError {
    RunError::World {
        experiment: unit.experiment.id.clone(),
        replication: unit.replication,
        source,
    }
}

fn run_unit(
    unit: &Unit<'_>,
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
            // What was begun would only take room.
            let _ = std::fs::remove_file(&part);
        }
        recorded?
    } else {
        runner
            .run(unit, seed, &mut Discard)
            .map_err(|source| failed(unit, source))?
    };
    store.keep(&key, &record)?;
    Ok(record)
}

/// Runs a unit whose samples are written at `part` and, once they are whole, stand at `path`.
fn run_recorded(
    unit: &Unit<'_>,
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
    store::finish_series(sink, part, path, Keep::Durably)?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_threads_than_runs() {
        let started = |jobs, runs| {
            threads(jobs, runs)
                .map(|pool| pool.current_num_threads())
                .ok()
        };
        assert_eq!(started(100_000, 3), Some(3));
        assert_eq!(started(2, 40), Some(2));
        assert_eq!(started(4, 0), Some(1));
    }
}
