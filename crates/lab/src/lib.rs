//! Experiments as data: spec, sweep, run, statistics, comparison, tables, figures, report
#![forbid(unsafe_code)]

pub mod model;
pub mod series;
pub mod spec;
