//! What runs gave: measures, samples, tables, figures, the report.

use std::path::{Path, PathBuf};

use anabranch_lab::measures::Measures;
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
    /// The records.
    pub records: Records,
    reference: Loaded,
    directory: PathBuf,
    /// What a reader of the report should see first.
    introduction: Vec<Introduction>,
    /// Removes the directory with the last that needs it.
    _temporary: Option<TempDir>,
}

/// A figure: a picture in a notebook; `svg` is its text.
#[pyclass(module = "anabranch", frozen, get_all)]
#[derive(Debug)]
pub struct Figure {
    /// Its name.
    id: String,
    /// Its head line.
    title: String,
    /// The picture.
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
    /// Results in a directory, which goes with them where there is a guard.
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

    /// The same, whose report begins with these words.
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

    /// The experiment asked for, or the only one.
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
    /// open(path): results that a run left in a directory.
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

    /// The directory that holds them.
    #[getter]
    fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many runs were made.
    #[getter]
    fn runs(&self) -> u64 {
        self.records.manifest.runs
    }

    /// The ids of the experiments.
    #[getter(experiments)]
    fn ids(&self) -> Vec<String> {
        self.experiments()
    }

    /// measures(experiment=None): every measure of every run, one row each: experiment, a column for each sweep, replication,
    /// series, metric, value, unit. The experiment may be left out where there is one.
    #[pyo3(signature = (experiment=None))]
    fn measures(&self, experiment: Option<String>) -> PyResult<Table> {
        let id = self.one(experiment)?;
        let measures = Measures::of(self.records.experiment(&id));
        table(measures.batch())
    }

    /// samples(experiment=None): what was recorded, one row for each sample: experiment, a column for each sweep as in the measures,
    /// replication, entity, member, probe, index, time_s, value.
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

    /// The tables of the spec by their ids: measured, printed, verdict.
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

    /// The figures of the spec by their ids; those without anything to draw are left out.
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

    /// The tallies of verdicts, in a line each; none where nothing is compared.
    #[getter]
    fn tallies(&self) -> PyResult<Vec<String>> {
        Ok(self.outputs()?.tallies())
    }

    /// What failed, in a line each.
    #[getter]
    fn failures(&self) -> Vec<String> {
        self.records.failures()
    }

    /// What may be meant otherwise, in a line each: what the command prints as `note:`. What concerns a spec that
    /// names a kind written in Python is left out where its class is not there.
    #[getter]
    fn notes(&self) -> PyResult<Vec<String>> {
        let planned = kinds::plan_of(self.records.manifest.clone());
        let mut notes = match planned {
            Ok(plan) => plan.notes,
            // Without the kind that the program had added, the spec cannot be planned.
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

    /// What made the results: version, spec, seed, replications.
    #[getter]
    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.records.manifest).map_err(error::failed)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// write(): writes tables, figures and report beside the measures, as `anabranch run` does.
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
