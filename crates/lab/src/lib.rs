//! Experiments as data: spec, sweep, run, statistics, comparison, tables, figures, report
#![forbid(unsafe_code)]

pub mod advise;
pub mod agent;
pub mod compare;
pub mod derive;
pub mod metric;
pub mod model;
pub mod output;
pub mod papers;
pub mod plan;
pub mod reference;
pub mod run;
pub mod series;
pub mod spec;
pub mod statistics;
pub mod store;
pub mod whole;
pub mod world;
