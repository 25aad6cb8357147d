//! Python exceptions for errors of this project.

use std::fmt::Display;

use anabranch_advise::InvalidQuestion;
use anabranch_scenario::diagnostic::{Diagnostic, SpecError as Faults};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    anabranch,
    Error,
    PyException,
    "What this package raises. `SpecError` and `RunError` are kinds of it."
);
create_exception!(
    anabranch,
    SpecError,
    Error,
    "A spec that is wrong, or a question that makes no sense; nothing was run.\n\n`problems` lists each fault as a dict: `key`, `message`, `allowed` (list of str), `nearest` (str or None), `line` and `column` (int, counted from 1, or None)."
);
create_exception!(
    anabranch,
    RunError,
    Error,
    "A run that failed, or results that cannot be kept, read or put together."
);

/// Adds the exceptions to the module.
///
/// # Errors
/// An exception of the interpreter.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("SpecError", py.get_type::<SpecError>())?;
    module.add("RunError", py.get_type::<RunError>())
}

/// The exception for an invalid spec, with its errors as data.
pub fn spec(error: &Faults) -> PyErr {
    Python::attach(|py| {
        let raised = SpecError::new_err(error.to_string());
        match problems(py, error) {
            Ok(problems) => match raised.value(py).setattr("problems", problems) {
                Ok(()) => raised,
                Err(other) => other,
            },
            Err(other) => other,
        }
    })
}

fn problems<'py>(py: Python<'py>, error: &Faults) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let dict = |problem: &Diagnostic| -> PyResult<Bound<'py, PyDict>> {
        let position = error.position(problem);
        let dict = PyDict::new(py);
        dict.set_item("key", &problem.key)?;
        dict.set_item("message", &problem.message)?;
        dict.set_item("allowed", &problem.allowed)?;
        dict.set_item("nearest", &problem.nearest)?;
        dict.set_item("line", position.map(|(line, _)| line))?;
        dict.set_item("column", position.map(|(_, column)| column))?;
        Ok(dict)
    };
    error.problems().iter().map(dict).collect()
}

fn refusal<'py>(py: Python<'py>, error: &InvalidQuestion) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("key", &error.key)?;
    dict.set_item("message", &error.message)?;
    dict.set_item("allowed", &error.allowed)?;
    dict.set_item("nearest", &error.nearest)?;
    dict.set_item("line", py.None())?;
    dict.set_item("column", py.None())?;
    Ok(dict)
}

/// The exception for an invalid question, with the allowed values as data.
pub fn refused(error: &InvalidQuestion) -> PyErr {
    Python::attach(|py| {
        let raised = SpecError::new_err(error.to_string());
        let set = |dict| raised.value(py).setattr("problems", [dict]);
        match refusal(py, error).and_then(set) {
            Ok(()) => raised,
            Err(other) => other,
        }
    })
}

/// The exception for a request with an unknown name or an invalid value.
pub fn asked(message: impl Display) -> PyErr {
    Python::attach(|py| {
        let raised = SpecError::new_err(message.to_string());
        let none: [&str; 0] = [];
        match raised.value(py).setattr("problems", none) {
            Ok(()) => raised,
            Err(other) => other,
        }
    })
}

/// The exception for a failed operation.
pub fn failed(error: impl Display) -> PyErr {
    RunError::new_err(error.to_string())
}
