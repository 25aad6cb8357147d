//! A results directory: finished runs are kept as they come, so that an interrupted sweep goes on where it stopped.
//!
//! ```text
//! DIR/manifest.json          what was run, by which version
//! DIR/measures.csv           every scalar of every run; the x of several sweeps joined
//! DIR/measures/<id>.parquet  the scalars of an experiment, with a typed column for each sweep
//! DIR/measures/<id>.csv      the same as text
//! DIR/records.json           the same for this program
//! DIR/series/<id>.parquet    the samples of an experiment
//! DIR/runs/1.journal         the finished runs, a line each, by keys: hashes of all that a run depends on
//! DIR/runs/<key>.parquet     the samples of a run, if it recorded any
//! DIR/runs/.lock             held by the processes that work on the directory
//! ```
//! Any other file is written beside its place and renamed: what stands under its name is whole. Runs are flushed to the disk
//! together, once it would take longer to make them again; what can be put together again is not flushed at all.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlannedExperiment, Request, Unit};
use anabranch_engine::runner::Runner;
use anabranch_report::derive;
use anabranch_scenario::problem::SpecError;
use anabranch_scenario::records::{Manifest, Results, RunRecord, SeriesError};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use crate::build;
use crate::columns::Axes;
use crate::journal::{Damage, Journal, JournalError};
use crate::measures::Measures;
use crate::plain;
use crate::series::{self, SeriesWriter};
use crate::whole::{self, Keep, Visit, part_path};

/// A results directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Something could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// Which file or directory.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Something could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {reason}", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The runs cannot be kept, or are of another form.
    #[error(transparent)]
    Journal(JournalError),
    /// A series file could not be written or read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The manifest's spec is not understood by this version.
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

/// A results directory. Several processes may work on one.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    journal: Journal,
    /// Events of runs that were kept and not flushed.
    unflushed: Arc<AtomicU64>,
    _visit: Arc<Visit>,
}

/// The crates of this project that a run depends on: whose sources, beside the versions of all others, are the code that
/// [`key`] speaks of.
pub const CODE_OF: &str = env!("ANABRANCH_CODE_OF");
pub use crate::build::CODE;

/// The name under which a run is kept: what it depends on, the code and the kind of runner among it.
pub fn key(unit: &Unit<'_>, kind: &str) -> String {
    let point = serde_json::to_string(&unit.point.point).unwrap_or_default();
    // Its keys are fixed. Two of 64 bits: no two runs of a directory are taken for one.
    let [one, other] = [0_u8, 1].map(|which| {
        let mut hasher = DefaultHasher::new();
        (which, &unit.point.hash, &point, unit.replication).hash(&mut hasher);
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
    /// The directory, made if it is not there, and tried: an unwritable one is found before anything is run.
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
        let visit =
            Visit::begin(&lock, &[directory, &runs, &series, &measures]).map_err(failed(lock))?;
        let probe = part_path(&runs.join(".writable"));
        plain::create(&probe)
            .and_then(|mut file| file.write_all(b"anabranch"))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(failed(probe))?;
        Ok(Store {
            directory: directory.to_owned(),
            journal: Journal::open(&runs)?,
            unflushed: Arc::default(),
            _visit: Arc::new(visit),
        })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn runs(&self) -> PathBuf {
        self.directory.join("runs")
    }

    /// Journals of runs that were damaged. What does not check counts for nothing, and is taken away by the next run that is kept.
    pub fn damaged(&self) -> Vec<Damage> {
        self.journal.damaged()
    }

    /// Where a run's samples are kept.
    pub fn series_path(&self, key: &str) -> PathBuf {
        self.runs().join(format!("{key}.parquet"))
    }

    /// A finished run, if it is there, whole, this unit's and of this runner's kind, and has its samples.
    pub fn finished(&self, unit: &Unit<'_>, runner: &(impl Runner + ?Sized)) -> Option<RunRecord> {
        if self.journal.is_empty() {
            return None;
        }
        let key = key(unit, runner.kind(unit));
        let record: RunRecord = self
            .journal
            .get(&key, |record| serde_json::from_slice(record).ok())?;
        let of_this_unit = record.experiment == unit.experiment.id
            && record.point == unit.point.point
            && record.replication == unit.replication;
        let has_samples = || !unit.records() || series::is_whole(&self.series_path(&key));
        (of_this_unit && has_samples()).then_some(record)
    }

    /// Keeps a finished run. Its samples, if any, must have been kept before: the record makes it count.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn keep(&self, key: &str, record: &RunRecord) -> Result<(), StoreError> {
        let json = serde_json::to_vec(record).map_err(|error| StoreError::Write {
            path: self.runs(),
            source: error.into(),
        })?;
        let unflushed = self.unflushed.fetch_add(record.events, Ordering::Relaxed) + record.events;
        let keep = worth(record.events, unflushed);
        if keep == Keep::Durably {
            self.unflushed.store(0, Ordering::Relaxed);
        }
        Ok(self.journal.add(key, &json, keep)?)
    }

    /// Flushes what was kept to the disk.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn flush(&self) -> Result<(), StoreError> {
        match self.unflushed.swap(0, Ordering::Relaxed) {
            0..WORTH_A_FLUSH => Ok(()),
            _ => Ok(self.journal.flush()?),
        }
    }

    /// Puts together what the finished runs of a plan gave: manifest, measures, series. Runs that are not finished
    /// are left out. The threads of the pool that this is called in share the work.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Series`].
    pub fn assemble(
        &self,
        plan: &Plan,
        runner: &(impl Runner + ?Sized),
    ) -> Result<Results, StoreError> {
        self.assemble_known(plan, runner, Vec::new())
    }

    /// The same where some of the records are at hand: `known` has the units' in their order, and ends where no more are known.
    pub(crate) fn assemble_known(
        &self,
        plan: &Plan,
        runner: &(impl Runner + ?Sized),
        mut known: Vec<Option<RunRecord>>,
    ) -> Result<Results, StoreError> {
        let units = Unit::all(plan);
        known.resize_with(units.len(), || None);
        let finished = units.par_iter().zip(known).map(|(unit, known)| {
            let record = known.or_else(|| self.finished(unit, runner))?;
            let path = || self.series_path(&key(unit, runner.kind(unit)));
            let samples = unit
                .records()
                .then(|| (unit.experiment.id.as_str(), path()));
            Some((record, samples))
        });
        let finished: Vec<_> = finished.flatten_iter().collect();
        let (mut records, samples): (Vec<_>, Vec<_>) = finished.into_iter().unzip();
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
        let (measures, (tidy, json)) = rayon::join(
            || write_measures(&path("measures.csv"), &records),
            || {
                rayon::join(
                    || self.write_tidy_measures(plan, &records),
                    || write_json(&path("records.json"), Keep::Cheaply, &records),
                )
            },
        );
        measures.and(tidy).and(json)?;
        write_json(
            &self.directory.join("manifest.json"),
            Keep::Cheaply,
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

    /// The measures of each experiment, with a column for each of its sweeps.
    fn write_tidy_measures(&self, plan: &Plan, records: &[RunRecord]) -> Result<(), StoreError> {
        let folder = self.directory.join("measures");
        // Those of the samples, also where not all runs are finished.
        let axes = |id: &str| plan.experiments.iter().find(|it| it.id == id).map(axes);
        for (id, measures) in Measures::by_experiment(records, axes) {
            let path = |form| folder.join(format!("{id}.{form}"));
            let (csv, parquet) = rayon::join(
                || {
                    write_whole(&path("csv"), Keep::Cheaply, |file| {
                        measures.write_csv(BufWriter::new(file))
                    })
                },
                || {
                    write_whole(&path("parquet"), Keep::Cheaply, |file| {
                        let written = measures.write_parquet(BufWriter::new(file));
                        written.map_err(io::Error::other)
                    })
                },
            );
            csv.and(parquet)?;
        }
        Ok(())
    }

    /// Takes a finished run from another results directory.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn take(
        &self,
        other: &Store,
        unit: &Unit<'_>,
        runner: &(impl Runner + ?Sized),
    ) -> Result<(), StoreError> {
        let key = key(unit, runner.kind(unit));
        // The record comes last: it makes the run count.
        if unit.records() {
            let [from, to] = [other, self].map(|it| it.series_path(&key));
            let mut source = plain::open(&from).map_err(|source| StoreError::Read {
                path: from.clone(),
                source,
            })?;
            write_whole(&to, Keep::Cheaply, |file| {
                io::copy(&mut source, file).map(|_| ())
            })?;
        }
        let record = other.journal.get(&key, |record| Some(record.to_vec()));
        let record = record.ok_or_else(|| StoreError::Damaged {
            path: other.runs(),
            reason: format!("the run {key} is not there"),
        })?;
        Ok(self.journal.add(&key, &record, Keep::Cheaply)?)
    }

    /// One file of the samples of all runs of an experiment, which are in these files, in their order.
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
                finish_series(writer, &part, &path, Keep::Cheaply)
            });
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Reads a results directory again. The kinds that its spec names need not be known here.
    ///
    /// # Errors
    /// No manifest, a damaged one, or one whose spec this version does not understand.
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

/// Events that take about as long as a flush: some milliseconds.
const WORTH_A_FLUSH: u64 = 20_000;
/// So many times as long may what a failure of the machine would lose have taken.
const FLUSHED_TOGETHER: u64 = 10;

/// How a record is kept that makes `unflushed` events of those that are not on the disk: a flush takes a tenth of what it saves. What
/// took no events took real time. What does not outlive a failure of the machine does not check, and its run is made again.
fn worth(events: u64, unflushed: u64) -> Keep {
    if events == 0 || unflushed >= WORTH_A_FLUSH * FLUSHED_TOGETHER {
        Keep::Durably
    } else {
        Keep::Cheaply
    }
}

/// The samples of a run that cannot be read: whole by its footer, and yet not.
fn damaged(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        reason: format!("{error}; delete it and repeat the command"),
    }
}

/// The columns of an experiment's sweeps, in its measures and in its samples.
pub fn axes(experiment: &PlannedExperiment) -> Axes {
    Axes::of(experiment.points.iter().map(|point| &point.point), &[])
}

/// Finishes a series file written at `part` and puts it in its place.
///
/// # Errors
/// [`StoreError::Write`], [`StoreError::Series`].
pub fn finish_series(
    writer: SeriesWriter<BufWriter<File>>,
    part: &Path,
    path: &Path,
    keep: Keep,
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
    if keep == Keep::Durably {
        file.sync_all().map_err(failed)?;
    }
    fs::rename(part, path).map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

fn write_whole(
    path: &Path,
    keep: Keep,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    whole::write(path, keep, fill).map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn write_json(
    path: &Path,
    keep: Keep,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    write_whole(path, keep, |file| {
        let mut out = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
        out.flush()
    })
}

/// The columns of `measures.csv`; a point of several sweeps has its names and values joined by `;`.
const MEASURE_COLUMNS: [&str; 8] = [
    "experiment",
    "x_name",
    "x",
    "replication",
    "series",
    "metric",
    "value",
    "unit",
];

fn write_measures(path: &Path, records: &[RunRecord]) -> Result<(), StoreError> {
    write_whole(path, Keep::Cheaply, |file| {
        let mut out = csv::Writer::from_writer(BufWriter::new(file));
        out.write_record(MEASURE_COLUMNS)?;
        for record in records {
            let names: Vec<&str> = record.point.iter().map(|(name, _)| name.as_str()).collect();
            let values: Vec<String> = record.point.iter().map(|(_, x)| x.to_string()).collect();
            let (names, values, replication) = (
                names.join(";"),
                values.join(";"),
                record.replication.to_string(),
            );
            for measure in &record.metrics {
                let value = measure.value.to_string();
                let run = [&record.experiment, &names, &values, &replication];
                out.write_record(run.into_iter().chain([
                    &measure.series,
                    &measure.metric,
                    &value,
                    &measure.unit,
                ]))?;
            }
        }
        out.flush()
    })
}

/// The request that a manifest speaks of.
fn request(manifest: &Manifest) -> Request {
    Request::new(format!("{}.toml", manifest.name), manifest.spec.clone()).with(|it| {
        it.overrides = manifest.overrides.clone();
        it.only = manifest.only.clone();
        it.seed = manifest.seed;
        it.files = Files::of(manifest.files.clone());
        it.record_all = manifest.record_all;
    })
}

/// The plan that a manifest speaks of.
///
/// # Errors
/// A spec that this version does not understand.
pub fn plan_of(manifest: &Manifest) -> Result<Plan, StoreError> {
    let mut plan = Plan::new(request(manifest))?;
    plan.keep_experiments(&manifest.replications);
    Ok(plan)
}

/// What a plan says of itself once these of its runs were made.
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
        assert_eq!(worth(100, 100), Keep::Cheaply);
        assert_eq!(worth(199_000, 199_999), Keep::Cheaply);
        assert_eq!(worth(100, 200_000), Keep::Durably);
        // On real sockets nothing is counted, and time was real.
        assert_eq!(worth(0, 0), Keep::Durably);
    }
}
