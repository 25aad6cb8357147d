//! Results directory, in which each run is stored as soon as it has finished, so that an
//! interrupted sweep can be resumed.
//!
//! ```text
//! DIR/manifest.json          the executed plan and the version of the program
//! DIR/measures.csv           all scalars of all runs; several sweeps are joined in one column
//! DIR/measures/<id>.parquet  scalars of an experiment, with a typed column for each sweep
//! DIR/measures/<id>.csv      the same as text
//! DIR/records.json           the same for this program
//! DIR/series/<id>.parquet    samples of an experiment
//! DIR/runs/1.journal         finished runs, one per line, by key (a hash of all dependencies)
//! DIR/runs/<key>.parquet     samples of a run, if it recorded any
//! DIR/runs/.lock             locked by the processes that use the directory
//! ```
//!
//! Except for journals, each file is written under a temporary name and then renamed, so that a
//! file under its final name is always complete. Runs are flushed to disk in groups: as soon as
//! repeating them would take longer than a flush. Files that can be created again from the runs are
//! not flushed.

mod csv;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedExperiment, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_report::derive;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::records::{Manifest, Results, RunRecord, SeriesError};
use serde::Serialize;

use crate::atomic_write::{self, DirectoryLock, Durability, part_path};
use crate::build;
use crate::columns::Axes;
use crate::journal::{Damage, Journal, JournalError};
use crate::measures::ExperimentMeasures;
use crate::plain;
use crate::pool;
use crate::series::{self, SeriesWriter};

/// Error of reading or writing a results directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file has invalid contents.
    #[error("{path}: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        reason: String,
    },
    /// Error of a journal: runs cannot be stored, or it has another format.
    #[error(transparent)]
    Journal(JournalError),
    /// A series file could not be written or read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// This version does not understand the spec in the manifest.
    #[error("the spec in the manifest is not understood by this version:\n{0}")]
    Spec(#[from] SpecError),
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Write { path, source } => Self::Write { path, source },
            JournalError::Read { path, source } => Self::Read { path, source },
            form @ JournalError::Form { .. } => Self::Journal(form),
        }
    }
}

/// A results directory. Several processes may use it at the same time.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    journal: Journal,
    /// Number of events in stored runs that were not flushed yet.
    unflushed: Arc<AtomicU64>,
    _lock: Arc<DirectoryLock>,
}

/// Crates of this project that affect a run. A fingerprint of their sources and of the versions of
/// all other crates is part of a [`key`].
pub const CODE_OF: &str = env!("ANABRANCH_CODE_OF");
pub use crate::build::CODE;

/// Key of a stored run: a hash of everything that determines its result, including the code and the
/// kind of runner.
pub fn key(unit: &PlannedRun<'_>, kind: &str) -> String {
    let hash = unit.point.hash();
    let point = serde_json::to_string(&unit.point()).unwrap_or_default();
    // The keys of the hash functions are fixed. Two hashes of 64 bits make collisions within a
    // directory negligible.
    let [one, other] = [0_u8, 1].map(|which| {
        let mut hasher = DefaultHasher::new();
        (which, &hash, &point, unit.replication).hash(&mut hasher);
        (CODE, kind).hash(&mut hasher);
        hasher.finish()
    });
    let other = other as u32;
    format!(
        "{}-{}-{one:016x}{other:08x}",
        unit.experiment.id, unit.replication
    )
}

impl Store {
    /// Creates the directory if necessary, and checks before any run that it is writable.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create(directory: &Path) -> Result<Self, StoreError> {
        let [runs, series, measures] =
            ["runs", "series", "measures"].map(|name| directory.join(name));
        for path in [&runs, &series, &measures] {
            fs::create_dir_all(path).map_err(|source| StoreError::Write {
                path: path.clone(),
                source,
            })?;
        }
        let failed = |path: PathBuf| |source| StoreError::Write { path, source };
        let lock = runs.join(".lock");
        let visit = DirectoryLock::acquire(&lock, &[directory, &runs, &series, &measures])
            .map_err(failed(lock))?;
        let probe = part_path(&runs.join(".writable"));
        plain::create(&probe)
            .and_then(|mut file| file.write_all(b"anabranch"))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(failed(probe))?;
        Ok(Self {
            directory: directory.to_owned(),
            journal: Journal::open(&runs)?,
            unflushed: Arc::default(),
            _lock: Arc::new(visit),
        })
    }

    /// Path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn runs(&self) -> PathBuf {
        self.directory.join("runs")
    }

    /// Journals with damaged runs. Damaged data is ignored, and removed when the next run is
    /// stored.
    pub fn damaged(&self) -> Vec<Damage> {
        self.journal.damaged()
    }

    /// Path of the samples of a run.
    pub fn series_path(&self, key: &str) -> PathBuf {
        self.runs().join(format!("{key}.parquet"))
    }

    /// The record of a finished run; `None` unless it is stored, belongs to this run and kind of
    /// runner, and has complete samples.
    pub fn finished(
        &self,
        unit: &PlannedRun<'_>,
        runner: &(impl Runner + ?Sized),
    ) -> Option<RunRecord> {
        if self.journal.is_empty() {
            return None;
        }
        let key = key(unit, runner.kind(unit));
        let record: RunRecord = self
            .journal
            .get(&key, |record| serde_json::from_slice(record).ok())?;
        let of_this_unit = record.experiment == unit.experiment.id
            && record.point == unit.point()
            && record.replication == unit.replication;
        let has_samples = || !unit.records() || series::is_whole(&self.series_path(&key));
        (of_this_unit && has_samples()).then_some(record)
    }

    /// Stores the record of a finished run. Its samples, if any, must be stored before, because the
    /// record marks the run as finished.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn keep(&self, key: &str, record: &RunRecord) -> Result<(), StoreError> {
        let json = serde_json::to_vec(record).map_err(|error| StoreError::Write {
            path: self.runs(),
            source: error.into(),
        })?;
        let unflushed = self.unflushed.fetch_add(record.events, Ordering::Relaxed) + record.events;
        let durability = worth(record.events, unflushed);
        if durability == Durability::Synced {
            self.unflushed.store(0, Ordering::Relaxed);
        }
        Ok(self.journal.add(key, &json, durability)?)
    }

    /// Flushes stored runs to disk.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn flush(&self) -> Result<(), StoreError> {
        match self.unflushed.swap(0, Ordering::Relaxed) {
            0..WORTH_A_FLUSH => Ok(()),
            _ => Ok(self.journal.flush()?),
        }
    }

    /// Combines the finished runs of a plan into a manifest, measures and series. Unfinished runs
    /// are omitted. The work is distributed over all cores.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Series`].
    pub fn assemble(
        &self,
        plan: &Plan,
        runner: &(impl Runner + ?Sized),
    ) -> Result<Results, StoreError> {
        self.assemble_known(plan, runner, pool::all_cores(), Vec::new())
    }

    /// Like [`Self::assemble`], for records that are already in memory: `known` has the records in
    /// the order of the plan's runs, and may end before the last run.
    pub(crate) fn assemble_known(
        &self,
        plan: &Plan,
        runner: &(impl Runner + ?Sized),
        threads: usize,
        mut known: Vec<Option<RunRecord>>,
    ) -> Result<Results, StoreError> {
        let units = PlannedRun::all(plan);
        let is_missing = |place: &usize| known.get(*place).is_none_or(Option::is_none);
        let missing: Vec<usize> = (0..units.len()).filter(is_missing).collect();
        let read = pool::map(threads, (missing.len(), 8), |at| {
            self.finished(&units[missing[at]], runner)
        });
        known.resize_with(units.len(), || None);
        for (place, record) in missing.into_iter().zip(read) {
            known[place] = record;
        }
        let finished = units.iter().zip(known).filter_map(|(unit, record)| {
            let path = || self.series_path(&key(unit, runner.kind(unit)));
            let samples = unit
                .records()
                .then(|| (unit.experiment.id.as_str(), path()));
            Some((record?, samples))
        });
        let (mut records, samples): (Vec<_>, Vec<_>) = finished.unzip();
        let samples: Vec<_> = samples.into_iter().flatten().collect();
        let manifest = Manifest {
            added: runner.added(),
            live: runner.live(),
            ..manifest(plan, &records)
        };
        records.extend(derive::records(&plan.spec, &records));
        for experiment in &plan.experiments {
            let of_it = |(id, path): &(&str, PathBuf)| (*id == experiment.id).then(|| path.clone());
            self.assemble_series(experiment, samples.iter().filter_map(of_it).collect())?;
        }
        let path = |name| self.directory.join(name);
        let (measures, (tidy, json)) = pool::join(
            || csv::write_measures(&path("measures.csv"), &records),
            || {
                pool::join(
                    || self.write_tidy_measures(plan, &records),
                    || write_json(&path("records.json"), Durability::Buffered, &records),
                )
            },
        );
        measures.and(tidy).and(json)?;
        write_json(
            &self.directory.join("manifest.json"),
            Durability::Buffered,
            &manifest,
        )?;
        let series = Arc::new(series::Directory(self.directory.clone()));
        Ok(Results {
            manifest,
            spec: plan.spec.clone(),
            records,
            series,
        })
    }

    /// Writes the measures of each experiment, with a column for each of its sweeps.
    fn write_tidy_measures(&self, plan: &Plan, records: &[RunRecord]) -> Result<(), StoreError> {
        let folder = self.directory.join("measures");
        // Uses the columns of all points, as for the samples, even if some runs are unfinished.
        let axes = |id: &str| plan.experiments.iter().find(|it| it.id == id).map(axes);
        for (id, measures) in ExperimentMeasures::by_experiment(records, axes) {
            let path = |form| folder.join(format!("{id}.{form}"));
            let (csv, parquet) = pool::join(
                || {
                    write_atomically(&path("csv"), Durability::Buffered, |file| {
                        measures.write_csv(BufWriter::new(file))
                    })
                },
                || {
                    write_atomically(&path("parquet"), Durability::Buffered, |file| {
                        let written = measures.write_parquet(BufWriter::new(file));
                        written.map_err(io::Error::other)
                    })
                },
            );
            csv.and(parquet)?;
        }
        Ok(())
    }

    /// Copies a finished run from another results directory.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn take(
        &self,
        other: &Self,
        unit: &PlannedRun<'_>,
        runner: &(impl Runner + ?Sized),
    ) -> Result<(), StoreError> {
        let key = key(unit, runner.kind(unit));
        // Samples are copied first, because the record marks the run as finished.
        if unit.records() {
            let [from, to] = [other, self].map(|it| it.series_path(&key));
            let mut source = plain::open(&from).map_err(|source| StoreError::Read {
                path: from.clone(),
                source,
            })?;
            write_atomically(&to, Durability::Buffered, |file| {
                io::copy(&mut source, file).map(|_| ())
            })?;
        }
        let record = other.journal.get(&key, |record| Some(record.to_vec()));
        let record = record.ok_or_else(|| StoreError::Damaged {
            path: other.runs(),
            reason: format!("the run {key} is not there"),
        })?;
        Ok(self.journal.add(&key, &record, Durability::Buffered)?)
    }

    /// Combines these files with the samples of the runs of an experiment into one file, in order.
    fn assemble_series(
        &self,
        experiment: &PlannedExperiment,
        files: Vec<PathBuf>,
    ) -> Result<(), StoreError> {
        let path = series::path(&self.directory, &experiment.id);
        if files.is_empty() {
            return Ok(());
        }
        let part = part_path(&path);
        let failed = |source| StoreError::Series(series::failed(&part, source));
        let sink = plain::create(&part).map_err(|source| StoreError::Write {
            path: part.clone(),
            source,
        })?;
        let axes = axes(experiment);
        let written = SeriesWriter::new(BufWriter::new(sink), &experiment.id, axes)
            .map_err(failed)
            .and_then(|mut writer| {
                for path in files {
                    let source = match plain::open(&path) {
                        Ok(file) => file,
                        Err(source) => return Err(StoreError::Read { path, source }),
                    };
                    let rows =
                        series::row_groups(&source).map_err(|error| damaged(&path, error))?;
                    for group in rows {
                        let group = group.map_err(|error| damaged(&path, error))?;
                        writer.append(&group).map_err(failed)?;
                    }
                }
                finish_series(writer, &part, &path, Durability::Buffered)
            });
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Reads a results directory. The program need not know the kinds that its spec names.
    ///
    /// # Errors
    /// The manifest is missing or damaged, or this version does not understand its spec.
    pub fn open(directory: &Path) -> Result<Results, StoreError> {
        let path = directory.join("manifest.json");
        let text = plain::text(&path).map_err(|source| StoreError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| StoreError::Damaged {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        let spec = Plan::finished(&request(&manifest))?;
        let path = directory.join("records.json");
        let text = plain::text(&path).map_err(|source| StoreError::Read {
            path: path.clone(),
            source,
        })?;
        let records = serde_json::from_str(&text).map_err(|error| StoreError::Damaged {
            path,
            reason: error.to_string(),
        })?;
        let series = Arc::new(series::Directory(directory.to_owned()));
        Ok(Results {
            manifest,
            spec,
            records,
            series,
        })
    }
}

/// Number of events whose simulation takes about as long as a flush, which is some milliseconds.
const WORTH_A_FLUSH: u64 = 20_000;
/// Maximum computing time that a failure of the machine may destroy, as a multiple of the duration
/// of a flush.
const FLUSHED_TOGETHER: u64 = 10;

/// Durability of a record of a run with `events` events; `unflushed` counts the events of this run
/// and of all earlier runs that are not flushed. By this rule, a flush takes a tenth of the
/// computing time that it protects from a failure. A run without events took real time, and is
/// always flushed. If data is lost in a failure, its checksum is wrong, and the run is repeated.
fn worth(events: u64, unflushed: u64) -> Durability {
    if events == 0 || unflushed >= WORTH_A_FLUSH * FLUSHED_TOGETHER {
        Durability::Synced
    } else {
        Durability::Buffered
    }
}

/// Error for samples that cannot be read although their footer is complete.
fn damaged(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        reason: format!("{error}; delete it and repeat the command"),
    }
}

/// Columns of the sweeps of an experiment, in measures and samples.
pub fn axes(experiment: &PlannedExperiment) -> Axes {
    Axes::of(&experiment.axes(), &[])
}

/// Completes the series file `part`, and renames it to its final path.
///
/// # Errors
/// [`StoreError::Write`], [`StoreError::Series`].
pub fn finish_series(
    writer: SeriesWriter<BufWriter<File>>,
    part: &Path,
    path: &Path,
    durability: Durability,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::Write {
        path: part.to_owned(),
        source,
    };
    let file = writer
        .finish()
        .map_err(|source| StoreError::Series(series::failed(part, source)))?
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    if durability == Durability::Synced {
        file.sync_all().map_err(failed)?;
    }
    fs::rename(part, path).map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

fn write_atomically(
    path: &Path,
    durability: Durability,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    atomic_write::write(path, durability, fill).map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn write_json(
    path: &Path,
    durability: Durability,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    write_atomically(path, durability, |file| {
        let mut out = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
        out.flush()
    })
}

/// The request that a manifest describes.
fn request(manifest: &Manifest) -> PlanRequest {
    PlanRequest::new(format!("{}.toml", manifest.name), manifest.spec.clone()).with(|it| {
        it.overrides = manifest.overrides.clone();
        it.only = manifest.only.clone();
        it.seed = manifest.seed;
        it.files = Files::of(manifest.files.clone());
        it.record_all = manifest.record_all;
    })
}

/// The plan that a manifest describes.
///
/// # Errors
/// This version does not understand the spec.
pub fn plan_of(manifest: &Manifest) -> Result<Plan, StoreError> {
    let mut plan = Plan::new(request(manifest))?;
    plan.keep_experiments(&manifest.replications);
    Ok(plan)
}

/// Creates the manifest of a plan, given the records of its finished runs.
pub fn manifest(plan: &Plan, records: &[RunRecord]) -> Manifest {
    let request = &plan.request;
    Manifest {
        version: build::VERSION.to_owned(),
        commit: build::COMMIT.map(str::to_owned),
        name: plan.spec.name.clone(),
        spec: request.text.clone(),
        overrides: request.overrides.clone(),
        only: request.only.clone(),
        files: request.files.all(),
        spec_hash: plan.hash.clone(),
        seed: request.seed,
        record_all: request.record_all,
        added: Vec::new(),
        live: Vec::new(),
        replications: plan
            .experiments
            .iter()
            .map(|e| (e.id.clone(), e.replications))
            .collect(),
        runs: records.len() as u64,
        packet_hops: records.iter().map(|record| record.packet_hops).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_flushed_where_their_runs_took_ten_times_as_long_as_a_flush() {
        assert_eq!(worth(100, 100), Durability::Buffered);
        assert_eq!(worth(199_000, 199_999), Durability::Buffered);
        assert_eq!(worth(100, 200_000), Durability::Synced);
        // A run on real sockets has no events, but took real time.
        assert_eq!(worth(0, 0), Durability::Synced);
    }
}
