//! Kinds that specs may name, such as congestion controls and workloads: those of this project, and
//! added ones.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use anabranch_congestion::registry;
use anabranch_engine::files::Files;
use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::Sink;
use anabranch_engine::world::WorldError;
use anabranch_lab::run::Simulator;
use anabranch_scenario::records::{Manifest, RunRecord};
use pyo3::prelude::*;

use crate::background::WorkState;
use crate::error;

/// Label of runs with only the project's own kinds; any other program of the project can reproduce
/// them.
const SIMULATED: &str = "simulated";

/// Implementation language of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// A Python class. Only one thread at a time can execute Python.
    Python,
    /// A Rust module in a program that includes this package.
    Rust,
}

/// Added kinds, which are not part of the project.
#[derive(Default)]
struct AddedKinds {
    kinds: Standard,
    codes: Vec<KindCode>,
    /// Labels of runs that may depend on added kinds.
    called: BTreeSet<&'static str>,
}

/// Code of an added kind, on which runs depend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KindCode {
    name: String,
    text: String,
    language: Language,
}

static ADDED: RwLock<Option<AddedKinds>> = RwLock::new(None);

/// All kinds that a spec may name.
pub fn kinds() -> Standard {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added
        .as_ref()
        .map(|added| added.kinds.clone())
        .unwrap_or_default()
}

/// Plans a spec, which may name any of these kinds.
///
/// # Errors
/// `SpecError`.
pub fn plan(request: PlanRequest) -> PyResult<Plan> {
    Plan::with(request, &kinds()).map_err(|error| error::spec(&error))
}

/// The plan that a manifest describes, with the kinds that are added at present.
///
/// # Errors
/// `SpecError` if the manifest names an unknown kind.
pub fn plan_of(manifest: Manifest) -> PyResult<Plan> {
    let request = PlanRequest::new("the job's spec", manifest.spec).with(|it| {
        it.overrides = manifest.overrides;
        it.only = manifest.only;
        it.seed = manifest.seed;
        it.record_all = manifest.record_all;
        it.files = Files::of(manifest.files);
    });
    let mut plan = plan(request)?;
    plan.keep_experiments(&manifest.replications);
    Ok(plan)
}

/// The added kinds on which the runs of a plan with these texts may depend: kinds that the texts
/// may name, and kinds that have replaced one of the project's.
fn named<'a>(added: &'a AddedKinds, texts: &[&String]) -> Vec<&'a KindCode> {
    let standing = |name: &str| registry::KINDS.iter().any(|known| known.name == name);
    let may = |code: &&KindCode| {
        standing(&code.name) || texts.iter().any(|text| text.contains(&code.name))
    };
    added.codes.iter().filter(may).collect()
}

/// Label for runs whose plan has these texts. If they may depend on added kinds, the label differs
/// from that of runs without added kinds, and of runs with other code.
fn called(texts: &[&String]) -> &'static str {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let Some(added) = added.as_mut() else {
        return SIMULATED;
    };
    let named = named(added, texts);
    if named.is_empty() {
        return SIMULATED;
    }
    let called = format!("{SIMULATED} with {named:?}");
    if let Some(known) = added.called.get(called.as_str()) {
        return known;
    }
    // The label is leaked, because labels must live until the end of the program. Each combination
    // of codes leaks only one label.
    let called: &'static str = Box::leak(called.into_boxed_str());
    added.called.insert(called);
    called
}

/// Names of the added kinds on which runs may depend whose plan has these texts.
fn added(texts: &[&String]) -> Vec<String> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let named = added.iter().flat_map(|added| named(added, texts));
    named.map(|code| code.name.clone()).collect()
}

/// Names of the kinds written in Python that these texts may name.
pub fn written_in_python(texts: &[&String]) -> Vec<String> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let named = added.iter().flat_map(|added| named(added, texts));
    let written = named.filter(|code| code.language == Language::Python);
    written.map(|code| code.name.clone()).collect()
}

/// Adds kinds; `change` returns the set of kinds with them.
pub fn add(change: impl FnOnce(Standard) -> Standard) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let added = added.get_or_insert_default();
    added.kinds = change(std::mem::take(&mut added.kinds));
}

/// Registers the code of an added kind: if the code changes, stored runs with the kind are executed
/// again. Replaces a kind with the same name.
pub fn depends(name: &str, code: &str, language: Language) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let added = added.get_or_insert_default();
    added.codes.retain(|known| known.name != name);
    added.codes.push(KindCode {
        name: name.to_owned(),
        text: code.to_owned(),
        language,
    });
    added.codes.sort();
}

thread_local! {
    /// Exception that Python code has raised in the current run of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Records an exception of Python code. The current run fails with the first one.
pub fn raised(error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(error);
    });
}

/// A simulator that starts no further run after a stop request, and fails if Python code raises.
pub struct Stoppable {
    state: Arc<WorkState>,
    simulator: Simulator,
    called: &'static str,
    /// Names of added kinds on which the runs may depend.
    added: Vec<String>,
    /// The first exception that Python code has raised.
    pub raised: Mutex<Option<PyErr>>,
}

impl Stoppable {
    /// Creates a runner for work with this state, and for runs that may depend on kinds in these
    /// texts (see `called`).
    pub fn new(state: &Arc<WorkState>, texts: &[&String]) -> Self {
        Self {
            state: Arc::clone(state),
            simulator: Simulator::default(),
            called: called(texts),
            added: added(texts),
            raised: Mutex::default(),
        }
    }

    /// If Python code has raised an exception that caused the failure, returns that exception
    /// instead.
    pub fn instead(self, failure: PyErr) -> PyErr {
        let raised = self.raised.into_inner();
        raised
            .unwrap_or_else(PoisonError::into_inner)
            .unwrap_or(failure)
    }
}

impl Runner for Stoppable {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        if self.state.stopped() {
            return Err(WorldError::Sink("stopped".into()));
        }
        RAISED.set(None);
        let record = self.simulator.run(unit, seed, sink);
        if let Some(error) = RAISED.take() {
            let text = error.to_string();
            let mut first = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            return Err(WorldError::Sink(text.into()));
        }
        record
    }

    fn kind(&self, _: &PlannedRun<'_>) -> &'static str {
        self.called
    }

    fn added(&self) -> Vec<String> {
        self.added.clone()
    }
}

/// Checks that a spec can contain this name.
///
/// # Errors
/// `ValueError`.
pub fn check_name(name: &str) -> PyResult<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(());
    }
    Err(pyo3::exceptions::PyValueError::new_err(format!(
        "found the name {name:?}; a kind's name has small letters, digits, \"-\" and \"_\""
    )))
}
