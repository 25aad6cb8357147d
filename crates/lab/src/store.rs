//! A results directory: finished runs are kept one by one, so that an interrupted sweep goes on where it stopped.
//!
//! ```text
//! DIR/manifest.json          what was run, by which version
//! DIR/measures.csv           every scalar of every run, tidy
//! DIR/records.json           the same for this program
//! DIR/series/<id>.parquet    the samples of an experiment
//! DIR/runs/<key>.json        one finished run; <key> is a hash of all that it depends on
//! DIR/runs/<key>.parquet     its samples, if it recorded any
//! DIR/runs/.lock             held by the processes that work on the directory
//! ```
//! A file is written beside its place and renamed: what stands under its name is whole. What only a run can give is
//! flushed to the disk before it counts; what can be put together again from that is not.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlannedExperiment, Request, Unit};
use anabranch_report::derive;
use anabranch_scenario::problem::SpecError;
use anabranch_scenario::records::{Manifest, Results, RunRecord, SeriesError};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::series::{self, Axes, SeriesWriter};
use crate::whole::{self, Keep, Visit, part_path};

/// A results directory that cannot be used.
#[derive(Debug, thiserror::Error)]
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
    /// A series file could not be written or read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The manifest's spec is not understood by this version.
    #[error("the spec in the manifest is not understood by this version:\n{0}")]
    Spec(#[from] SpecError),
}

/// A results directory. Several processes may work on one.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    _visit: Arc<Visit>,
}

/// The crates of this project that a run depends on: whose sources, beside the versions of all others, are the code that
/// [`key`] speaks of.
pub const CODE_OF: &str = env!("ANABRANCH_CODE_OF");

/// The name under which a run is kept: what it depends on, the code among it.
pub fn key(unit: &Unit<'_>) -> String {
    let mut digest = Sha256::new();
    digest.update(&unit.point.hash);
    digest.update(serde_json::to_string(&unit.point.point).unwrap_or_default());
    digest.update(unit.replication.to_le_bytes());
    digest.update(env!("ANABRANCH_CODE"));
    let digest = digest.finalize();
    let hex: String = digest
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{}-{}-{hex}", unit.experiment.id, unit.replication)
}

impl Store {
    /// The directory, made if it is not there, and tried: an unwritable one is found before anything is run.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create(directory: &Path) -> Result<Self, StoreError> {
        let (runs, series) = (directory.join("runs"), directory.join("series"));
        for path in [&runs, &series] {
            fs::create_dir_all(path).map_err(|source| StoreError::Write {
                path: path.clone(),
                source,
            })?;
        }
        let failed = |path: PathBuf| |source| StoreError::Write { path, source };
        let lock = runs.join(".lock");
        let visit = Visit::begin(&lock, &[directory, &runs, &series]).map_err(failed(lock))?;
        let probe = part_path(&runs.join(".writable"));
        fs::write(&probe, b"anabranch")
            .and_then(|()| fs::remove_file(&probe))
            .map_err(failed(probe))?;
        Ok(Store {
            directory: directory.to_owned(),
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

    fn record_path(&self, key: &str) -> PathBuf {
        self.runs().join(format!("{key}.json"))
    }

    /// Where a run's samples are kept.
    pub fn series_path(&self, key: &str) -> PathBuf {
        self.runs().join(format!("{key}.parquet"))
    }

    /// A finished run, if it is there, whole, this unit's, and has its samples.
    pub fn finished(&self, unit: &Unit<'_>) -> Option<RunRecord> {
        let key = key(unit);
        let text = fs::read_to_string(self.record_path(&key)).ok()?;
        let record: RunRecord = serde_json::from_str(&text).ok()?;
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
        write_json(&self.record_path(key), Keep::Durably, record)
    }

    /// Puts together what the finished runs of a plan gave: manifest, measures, series. Runs that are not finished
    /// are left out.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Series`].
    pub fn assemble(&self, plan: &Plan) -> Result<Results, StoreError> {
        let units = Unit::all(plan);
        let mut records: Vec<RunRecord> = units
            .iter()
            .filter_map(|unit| self.finished(unit))
            .collect();
        let manifest = manifest(plan, &records);
        records.extend(derive::records(&plan.spec, &records));
        for experiment in &plan.experiments {
            self.assemble_series(experiment)?;
        }
        write_measures(&self.directory.join("measures.csv"), &records)?;
        write_json(
            &self.directory.join("records.json"),
            Keep::Cheaply,
            &records,
        )?;
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

    /// One file of the samples of all runs of an experiment, in their order.
    fn assemble_series(&self, experiment: &PlannedExperiment) -> Result<(), StoreError> {
        let path = series::path(&self.directory, &experiment.id);
        let points = experiment.points.iter();
        let units = points.flat_map(|point| {
            (0..experiment.replications).map(move |replication| Unit {
                experiment,
                point,
                replication,
            })
        });
        let files: Vec<PathBuf> = units
            .filter(|unit| unit.records() && self.finished(unit).is_some())
            .map(|unit| self.series_path(&key(&unit)))
            .collect();
        if files.is_empty() {
            return Ok(());
        }
        let part = part_path(&path);
        let failed = |source| StoreError::Series(series::failed(&part, source));
        let sink = File::create(&part).map_err(|source| StoreError::Write {
            path: part.clone(),
            source,
        })?;
        let axes = axes(experiment);
        let written = SeriesWriter::new(BufWriter::new(sink), &experiment.id, axes)
            .map_err(failed)
            .and_then(|mut writer| {
                for path in files {
                    let source = match File::open(&path) {
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

    /// Reads a results directory again.
    ///
    /// # Errors
    /// No manifest, a damaged one, or one whose spec this version does not understand.
    pub fn open(directory: &Path) -> Result<(Plan, Results), StoreError> {
        let path = directory.join("manifest.json");
        let text = fs::read_to_string(&path).map_err(|source| StoreError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| StoreError::Damaged {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        let mut plan = Plan::new(Request {
            file: format!("{}.toml", manifest.name),
            text: manifest.spec.clone(),
            overrides: manifest.overrides.clone(),
            only: manifest.only.clone(),
            seed: manifest.seed,
            files: Files::of(manifest.files.clone()),
            ..Request::default()
        })?;
        plan.keep_experiments(&manifest.replications);
        let path = directory.join("records.json");
        let text = fs::read_to_string(&path).map_err(|source| StoreError::Read {
            path: path.clone(),
            source,
        })?;
        let records = serde_json::from_str(&text).map_err(|error| StoreError::Damaged {
            path,
            reason: error.to_string(),
        })?;
        let series = Arc::new(series::Directory(directory.to_owned()));
        let results = Results {
            manifest,
            spec: plan.spec.clone(),
            records,
            series,
        };
        Ok((plan, results))
    }
}

/// The samples of a run that cannot be read: whole by its footer, and yet not.
fn damaged(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        reason: format!("{error}; delete it, and the same command makes it again"),
    }
}

/// The x columns of an experiment's series.
pub fn axes(experiment: &PlannedExperiment) -> Axes {
    Axes::of(experiment.points.iter().map(|point| &point.point))
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

fn write_json(path: &Path, keep: Keep, value: &impl Serialize) -> Result<(), StoreError> {
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

/// What a plan says of itself once these of its runs were made.
pub fn manifest(plan: &Plan, records: &[RunRecord]) -> Manifest {
    let request = &plan.request;
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("ANABRANCH_BUILT_FROM").map(str::to_owned),
        name: plan.spec.name.clone(),
        spec: request.text.clone(),
        overrides: request.overrides.clone(),
        only: request.only.clone(),
        files: request.files.all(),
        spec_hash: plan.hash.clone(),
        seed: request.seed,
        replications: plan
            .experiments
            .iter()
            .map(|e| (e.id.clone(), e.replications))
            .collect(),
        runs: records.len() as u64,
        packet_hops: records.iter().map(|record| record.packet_hops).sum(),
    }
}
