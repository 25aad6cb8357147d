//! Results of runs: measures, samples, tables, figures, the report.

use std::path::{Path, PathBuf};

use anabranch_lab::measures::ExperimentMeasures;
use anabranch_lab::outputs;
use anabranch_lab::reference::Loaded;
use anabranch_lab::series;
use anabranch_lab::store::Store;
use anabranch_report::page;
use anabranch_report::{Introduction, Outputs};
use anabranch_scenario::records::Results as Records;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};
use tempfile::TempDir;

use crate::error;
use crate::kinds;
use crate::table::{Table, table};

/// The results of a spec.
#[pyclass(module = "anabranch", frozen, dict)]
#[derive(Debug)]
pub struct Results {
    /// The records of the runs.
    pub records: Records,
    reference: Loaded,
    directory: PathBuf,
    /// Introduction of the report.
    introduction: Vec<Introduction>,
    /// Guard that removes a temporary directory when dropped.
    _temporary: Option<TempDir>,
}

/// A figure. A notebook shows it as a picture; `svg` is its source.
#[pyclass(module = "anabranch", frozen, get_all)]
#[derive(Debug)]
pub struct Figure {
    /// Identifier.
    id: String,
    /// Title.
    title: String,
    /// The picture as SVG.
    svg: String,
}

#[pymethods]
impl Figure {
    fn _repr_svg_(&self) -> &str {
        &self.svg
    }

    fn __repr__(&self) -> String {
        format!("Figure({:?})", self.id)
    }
}

impl Results {
    /// Creates the results in a directory. If there is a guard, the directory is removed together
    /// with the results.
    pub fn new(
        records: Records,
        reference: Loaded,
        directory: PathBuf,
        temporary: Option<TempDir>,
    ) -> Self {
        Self {
            records,
            reference,
            directory,
            introduction: Vec::new(),
            _temporary: temporary,
        }
    }

    /// Sets the introduction of the report.
    #[must_use]
    pub fn with_introduction(mut self, words: Vec<Introduction>) -> Self {
        self.introduction = words;
        self
    }

    fn outputs(&self) -> PyResult<Outputs<'_>> {
        let made = Outputs::make(&self.records, &self.reference.reference);
        let mut outputs = made.map_err(error::failed)?;
        outputs.introduction.clone_from(&self.introduction);
        outputs.paper = outputs::paper(&outputs);
        Ok(outputs)
    }

    fn experiments(&self) -> Vec<String> {
        let ids = self.records.spec.experiments.iter().map(|it| it.id.clone());
        let run = |id: &String| self.records.experiment(id).next().is_some();
        ids.filter(run).collect()
    }

    /// The id of the requested experiment, or of the only one.
    fn one(&self, experiment: Option<String>) -> PyResult<String> {
        let known = self.experiments();
        match (experiment, known.as_slice()) {
            (Some(id), known) if known.contains(&id) => Ok(id),
            (None, [only]) => Ok(only.clone()),
            (Some(id), known) => Err(PyKeyError::new_err(format!(
                "no experiment {id:?}; there are: {}",
                known.join(", ")
            ))),
            (None, known) => Err(PyValueError::new_err(format!(
                "there are several experiments, each with columns of its own; name one: {}",
                known.join(", ")
            ))),
        }
    }
}

#[pymethods]
impl Results {
    /// open(path): the results that a run has written to a directory.
    #[staticmethod]
    fn open(path: PathBuf) -> PyResult<Self> {
        let records = Store::open(&path).map_err(error::failed)?;
        let reference = Loaded::kept(&records.spec.reference, &path).map_err(error::failed)?;
        Ok(Self::new(records, reference, path, None))
    }

    /// The spec's name.
    #[getter]
    fn name(&self) -> &str {
        &self.records.manifest.name
    }

    /// The directory of the results.
    #[getter]
    fn directory(&self) -> &Path {
        &self.directory
    }

    /// Number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.records.manifest.runs
    }

    /// Identifiers of the experiments.
    #[getter(experiments)]
    fn ids(&self) -> Vec<String> {
        self.experiments()
    }

    /// measures(experiment=None): table with one row for every measure of every run. Columns:
    /// experiment, a column for each sweep, replication, series, metric, value, unit. The
    /// experiment can be omitted if there is only one.
    #[pyo3(signature = (experiment=None))]
    fn measures(&self, experiment: Option<String>) -> PyResult<Table> {
        let id = self.one(experiment)?;
        let measures = ExperimentMeasures::of(self.records.experiment(&id));
        table(measures.batch())
    }

    /// samples(experiment=None): table with one row for every recorded sample. Columns: experiment,
    /// a column for each sweep as in the measures, replication, entity, member, probe, index,
    /// time_s, value.
    #[pyo3(signature = (experiment=None))]
    fn samples(&self, py: Python<'_>, experiment: Option<String>) -> PyResult<Table> {
        let id = self.one(experiment)?;
        let path = series::path(&self.directory, &id);
        if !path.exists() {
            return Err(error::failed(format!(
                "{id} recorded nothing; its spec has no `record`, or `record_all=True` was not given"
            )));
        }
        let read = py.detach(|| Table::of_parquet(&path));
        read.map_err(|failure| error::failed(format!("{}: {failure}", path.display())))
    }

    /// The tables of the spec by identifier, with measured values, printed values and verdicts.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for made in &self.outputs()?.tables {
            let mut text = Vec::new();
            made.write_csv(&mut text)?;
            tables.set_item(
                &made.id,
                Py::new(py, Table::of_csv(&text).map_err(error::failed)?)?,
            )?;
        }
        Ok(tables)
    }

    /// The figures of the spec by identifier; empty figures are omitted.
    #[getter]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        for made in &self.outputs()?.figures {
            if let Some(svg) = made.svg().map_err(error::failed)? {
                let (id, title) = (made.id.clone(), made.title.clone());
                figures.set_item(&made.id, Py::new(py, Figure { id, title, svg })?)?;
            }
        }
        Ok(figures)
    }

    /// Numbers of verdicts, as lines of text; empty if there are no comparisons.
    #[getter]
    fn tallies(&self) -> PyResult<Vec<String>> {
        Ok(self.outputs()?.tallies())
    }

    /// Failures in the runs, one line each.
    #[getter]
    fn failures(&self) -> Vec<String> {
        self.records.failures()
    }

    /// Notes about the spec, one line each, which the command prints after `note:`. If the spec has
    /// a kind written in Python whose class is not available, they are omitted.
    #[getter]
    fn notes(&self) -> PyResult<Vec<String>> {
        let planned = kinds::plan_of(self.records.manifest.clone());
        let mut notes = match planned {
            Ok(plan) => plan.notes,
            // A spec with kinds that another program has added cannot be planned.
            Err(_) if !self.records.manifest.added.is_empty() => Vec::new(),
            Err(error) => return Err(error),
        };
        notes.extend(self.records.notes());
        Ok(notes)
    }

    /// The report as one HTML page.
    fn html(&self) -> PyResult<String> {
        page::html(&self.outputs()?).map_err(error::failed)
    }

    /// Provenance of the results: version, spec, seed, replications.
    #[getter]
    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.records.manifest).map_err(error::failed)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// write(): writes tables, figures and the report to the results directory, like `anabranch
    /// run`.
    fn write(&self) -> PyResult<()> {
        self.reference
            .keep(&self.directory)
            .map_err(error::failed)?;
        outputs::write(&self.outputs()?, &self.directory).map_err(error::failed)
    }

    fn __repr__(&self) -> String {
        let manifest = &self.records.manifest;
        format!("Results({:?}, {} runs)", manifest.name, manifest.runs)
    }
}
