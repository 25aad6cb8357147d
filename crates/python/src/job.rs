//! Jobs: specs with the requested outputs, whose runs can be executed all at once or in parts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::reference::Loaded;
use anabranch_lab::run;
use anabranch_lab::spec_files;
use anabranch_lab::store::{self, Store};
use anabranch_scenario::records::Manifest;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tempfile::TempDir;

use crate::background;
use crate::error;
use crate::kinds::{self, Stoppable};
use crate::results::Results;
use crate::spec::Spec;

/// A validated spec with the requested outputs. Its runs are numbered from 0.
#[pyclass(module = "anabranch", frozen)]
#[derive(Clone, Debug)]
pub struct Job {
    plan: Arc<Plan>,
    reference: Loaded,
}

fn create(directory: &Path) -> PyResult<Store> {
    Store::create(directory).map_err(error::failed)
}

/// Texts of a plan in which kinds may be named: its spec and overrides.
fn texts(plan: &Plan) -> Vec<&String> {
    let request = &plan.request;
    request.overrides.iter().chain([&request.text]).collect()
}

/// The number of threads: the requested number, or one per core. By default it is 1 if kinds are
/// written in Python, because their threads would only wait for each other.
fn threads(jobs: Option<usize>, plan: &Plan) -> usize {
    match jobs {
        Some(jobs) => jobs,
        None if !kinds::written_in_python(&texts(plan)).is_empty() => 1,
        None => thread::available_parallelism().map_or(1, usize::from),
    }
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (spec, *, seed=1, replications=None, quick=false, only=Vec::new(), set=Vec::new(), record_all=false))]
    fn new(
        spec: &Bound<'_, Spec>,
        seed: u64,
        replications: Option<u32>,
        quick: bool,
        only: Vec<String>,
        set: Vec<String>,
        record_all: bool,
    ) -> PyResult<Self> {
        let spec = spec.borrow().clone();
        if replications == Some(0) {
            return Err(error::asked(
                "replications: found 0; there must be one at least",
            ));
        }
        let plan = kinds::plan(PlanRequest::new(spec.file.clone(), spec.toml()).with(|it| {
            it.overrides = set;
            it.only = only;
            it.replications = replications;
            it.quick = quick;
            it.record_all = record_all;
            it.seed = seed;
            it.files = spec_files::files(&spec.folder);
        }))?;
        let reference = Loaded::read(&plan.spec.reference, &spec.folder).map_err(error::asked)?;
        Ok(Self {
            plan: Arc::new(plan),
            reference,
        })
    }

    /// Number of runs.
    fn __len__(&self) -> usize {
        self.plan.runs()
    }

    /// The spec's name.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.spec.name
    }

    /// Simulated seconds of each run, by run number.
    #[getter]
    fn seconds(&self) -> Vec<f64> {
        let units = PlannedRun::all(&self.plan);
        let seconds = |unit: &PlannedRun<'_>| unit.point.duration().seconds();
        units.iter().map(seconds).collect()
    }

    /// Names of the kinds written in Python on which its runs may depend.
    #[getter]
    fn written_in_python(&self) -> Vec<String> {
        kinds::written_in_python(&texts(&self.plan))
    }

    /// run(out=None, jobs=None, progress=None): executes the runs that are not finished in `out`,
    /// and combines the results. Without `out` the results are in a temporary directory, which is
    /// removed together with the returned object.
    #[pyo3(signature = (out=None, jobs=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        out: Option<PathBuf>,
        jobs: Option<usize>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Results> {
        let (directory, temporary) = place(out)?;
        let store = create(&directory)?;
        self.reference.keep(&directory).map_err(error::failed)?;
        let plan = Arc::clone(&self.plan);
        let jobs = threads(jobs, &plan);
        let made = background::wait(py, progress.as_ref(), move |state| {
            let runner = Stoppable::new(state, &texts(&plan));
            let made = run::run(&plan, &store, &runner, jobs, state.as_ref());
            made.map_err(|error| runner.instead(error::failed(error)))
        })?;
        Ok(Results::new(
            made?,
            self.reference.clone(),
            directory,
            temporary,
        ))
    }

    /// open_store(out): opens a results directory to find the finished runs, and to copy finished
    /// runs from other directories.
    fn open_store(slf: Py<Self>, out: PathBuf) -> PyResult<ResultsStore> {
        let store = create(&out)?;
        Ok(ResultsStore { job: slf, store })
    }

    /// run_subset(places, out, jobs=None): executes the runs with these numbers, and stores them in
    /// a directory.
    #[pyo3(signature = (places, out, jobs=None))]
    fn run_subset(
        &self,
        py: Python<'_>,
        places: BTreeSet<usize>,
        out: PathBuf,
        jobs: Option<usize>,
    ) -> PyResult<usize> {
        self.check(&places)?;
        let store = create(&out)?;
        let plan = Arc::clone(&self.plan);
        let jobs = threads(jobs, &plan);
        background::wait(py, None, move |state| {
            let runner = Stoppable::new(state, &texts(&plan));
            let wanted = |place| places.contains(&place);
            let made = run::run_some(&plan, wanted, &store, &runner, jobs, state.as_ref());
            made.map_err(|error| runner.instead(error::failed(error)))
        })?
    }

    /// combine(out): combines the finished runs in a results directory into measures, samples and a
    /// manifest.
    fn combine(&self, py: Python<'_>, out: PathBuf) -> PyResult<Results> {
        let missing = self.missing(&create(&out)?);
        if !missing.is_empty() {
            let all = self.plan.runs();
            return Err(error::failed(format!(
                "{} of {all} runs are not finished",
                missing.len()
            )));
        }
        self.run(py, Some(out), Some(1), None)
    }

    /// The job as bytes, for another process with the same version of this package: see
    /// `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let manifest = store::manifest(&self.plan, &[]);
        let text = serde_json::to_vec(&(manifest, store::CODE));
        let text = text.map_err(error::failed)?;
        Ok(PyBytes::new(py, &text))
    }

    /// from_bytes(bytes): the job that another process has converted with `to_bytes`. Reference
    /// data of the spec is not included.
    #[staticmethod]
    fn from_bytes(saved: &[u8]) -> PyResult<Self> {
        let read: Result<(Manifest, String), _> = serde_json::from_slice(saved);
        let (manifest, code) = read.map_err(error::failed)?;
        if code != store::CODE {
            return Err(error::failed(
                "the job was saved by another version of this package; install the same one everywhere",
            ));
        }
        let plan = kinds::plan_of(manifest)?;
        Ok(Self {
            plan: Arc::new(plan),
            reference: Loaded::default(),
        })
    }

    fn __repr__(&self) -> String {
        format!("Job({:?}, {} runs)", self.name(), self.plan.runs())
    }
}

impl Job {
    /// The numbers of the runs that are not finished in a results directory.
    fn missing(&self, store: &Store) -> Vec<usize> {
        let state = Arc::default();
        let runner = Stoppable::new(&state, &texts(&self.plan));
        let units = PlannedRun::all(&self.plan).into_iter().enumerate();
        let missing = units.filter(|(_, unit)| store.finished(unit, &runner).is_none());
        missing.map(|(place, _)| place).collect()
    }

    fn check(&self, places: &BTreeSet<usize>) -> PyResult<()> {
        let runs = self.plan.runs();
        match places.last() {
            Some(&last) if last >= runs => Err(PyValueError::new_err(format!(
                "found place {last}; the places of {runs} runs are 0 to {}",
                runs - 1
            ))),
            _ => Ok(()),
        }
    }
}

/// An open results directory of a job.
#[pyclass(module = "anabranch", frozen)]
#[derive(Debug)]
pub struct ResultsStore {
    job: Py<Job>,
    store: Store,
}

#[pymethods]
impl ResultsStore {
    /// missing(): the numbers of the runs that are not finished.
    fn missing(&self) -> Vec<usize> {
        self.job.get().missing(&self.store)
    }

    /// take(places, source): copies runs with these numbers that `run_subset` has stored in another
    /// directory.
    fn take(&self, places: BTreeSet<usize>, source: PathBuf) -> PyResult<()> {
        let job = self.job.get();
        job.check(&places)?;
        let from = create(&source)?;
        let state = Arc::default();
        let runner = Stoppable::new(&state, &texts(&job.plan));
        let units = PlannedRun::all(&job.plan);
        for place in places {
            let taken = self.store.take(&from, &units[place], &runner);
            taken.map_err(error::failed)?;
        }
        Ok(())
    }
}

/// The requested directory, or a temporary one, which is removed when its guard is dropped.
///
/// # Errors
/// The directory cannot be created.
pub fn place(out: Option<PathBuf>) -> PyResult<(PathBuf, Option<TempDir>)> {
    match out {
        Some(out) => Ok((out, None)),
        None => {
            let temporary = tempfile::Builder::new().prefix("anabranch-").tempdir()?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}
