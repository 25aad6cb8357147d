//! The laboratory for Python, as the module `anabranch._native`. Users import the package in
//! `python/anabranch`.
//!
//! Long work runs on other threads without the interpreter's lock ([`background`]), while the
//! calling thread checks for signals and reports progress. Tables are Arrow record batches with the
//! Arrow PyCapsule interface ([`table`]), so pandas, polars, pyarrow and DuckDB can read them
//! without a copy. Congestion controls and workloads written in Python ([`control`], [`workload`])
//! are called while the lock is held.
//!
//! Users can build a module with congestion controls, queues or other kinds written in Rust. The
//! module should depend on this crate, add its kinds, and call [`register`].

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

/// Adds all items to a module.
///
/// # Errors
/// An exception of the interpreter.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<job::ResultsStore>()?;
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
