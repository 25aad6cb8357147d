//! The laboratory for Python, as the module `anabranch._native`; `python/anabranch` is what users import.
//!
//! Long work runs on threads of its own without the interpreter's lock ([`background`]); the thread that asked looks for signals
//! meanwhile and hands on progress. Tables are Arrow record batches behind the Arrow PyCapsule interface ([`table`]), so that
//! pandas, polars, pyarrow and DuckDB take them without a copy. Kinds written in Python ([`control`], [`workload`]) are called with the
//! lock held.
//!
//! A module of a user's own can carry kinds written in Rust: it depends on this crate, adds its kinds, and calls [`register`].

pub mod advice;
pub mod background;
pub mod compare;
pub mod control;
pub mod convert;
pub mod error;
pub mod job;
pub mod kinds;
pub mod results;
pub mod spec;
pub mod table;
pub mod workload;

use pyo3::prelude::*;

/// Puts everything into a module.
///
/// # Errors
/// What the interpreter says.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<job::Kept>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<results::Figure>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<control::Base>()?;
    module.add_class::<control::Ack>()?;
    module.add_function(wrap_pyfunction!(convert::setting, module)?)?;
    module.add_function(wrap_pyfunction!(spec::papers, module)?)?;
    module.add_function(wrap_pyfunction!(spec::examples, module)?)?;
    module.add_class::<advice::Advice>()?;
    module.add_function(wrap_pyfunction!(advice::advise, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(control::add_congestion, module)?)?;
    module.add_function(wrap_pyfunction!(workload::add_workload, module)?)?;
    Ok(())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register(module)
}
