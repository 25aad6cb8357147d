//! The kinds that specs may name here: the project's, and those that are written in Python.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::Sink;
use anabranch_engine::world::WorldError;
use anabranch_lab::run::Simulator;
use anabranch_scenario::records::RunRecord;
use pyo3::prelude::*;

use crate::background::State;
use crate::error;

/// Runs of the project's own kinds, which any other program of it makes alike.
const SIMULATED: &str = "simulated";

/// Kinds written in Python.
#[derive(Default)]
struct Added {
    kinds: Standard,
    /// The name and the code of each.
    codes: Vec<(String, String)>,
    /// What runs are called that may depend on them.
    called: Option<&'static str>,
}

static ADDED: RwLock<Option<Added>> = RwLock::new(None);

/// All kinds that a spec may name.
pub fn kinds() -> Standard {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added
        .as_ref()
        .map(|added| added.kinds.clone())
        .unwrap_or_default()
}

/// Plans a spec that may name any of them.
///
/// # Errors
/// `SpecError`.
pub fn plan(request: Request) -> PyResult<Plan> {
    Plan::with(request, &kinds()).map_err(|error| error::spec(&error))
}

/// What keeps runs that may depend on Python code apart from others, and from those of other code.
pub fn called() -> &'static str {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added
        .as_ref()
        .and_then(|added| added.called)
        .unwrap_or(SIMULATED)
}

/// Whether one of these texts names a kind written in Python.
pub fn written_in_python<'t>(mut texts: impl Iterator<Item = &'t String>) -> bool {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let named = |text: &String| {
        let codes = added.iter().flat_map(|added| &added.codes);
        codes.into_iter().any(|(name, _)| text.contains(name))
    };
    texts.any(named)
}

/// Adds a kind by what it does to the others; `code` is what a run depends on. One of the same name is replaced.
pub fn add(name: &str, code: &str, change: impl FnOnce(Standard) -> Standard) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let added = added.get_or_insert_default();
    added.kinds = change(std::mem::take(&mut added.kinds));
    added.codes.retain(|(known, _)| known != name);
    added.codes.push((name.to_owned(), code.to_owned()));
    added.codes.sort();
    // A name lives as long as the program; there are as many as kinds were added.
    let called = format!("{SIMULATED} with {:?}", added.codes);
    added.called = Some(Box::leak(called.into_boxed_str()));
}

thread_local! {
    /// What Python code raised in the run of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Notes what Python code raised; the run under way fails by the first.
pub fn raised(error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(error);
    });
}

/// The simulator, which begins nothing after it was told to stop, and fails where Python code raised.
pub struct Stoppable {
    state: Arc<State>,
    simulator: Simulator,
    /// What Python code raised first.
    pub raised: Mutex<Option<PyErr>>,
}

impl Stoppable {
    /// A runner for work whose state is this.
    pub fn new(state: &Arc<State>) -> Self {
        Self {
            state: Arc::clone(state),
            simulator: Simulator::default(),
            raised: Mutex::default(),
        }
    }

    /// What Python code raised, in place of the failure that came of it.
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
        unit: &Unit<'_>,
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

    fn kind(&self, _: &Unit<'_>) -> &'static str {
        called()
    }
}

/// Refuses a name that no spec could say.
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
