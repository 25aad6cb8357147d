//! Reporting: turns records of runs into statistics, comparisons with printed values, tables,
//! figures, an HTML page and terminal output. This crate must neither run simulations nor access
//! files.
#![forbid(unsafe_code)]

pub mod claim;
pub mod compare;
pub mod derive;
pub mod figure;
pub mod outputs;
pub mod page;
pub mod reference;
pub mod statistics;
pub mod table;
pub mod terminal;
pub mod unit;
pub mod unmatched_rows;
pub mod verdict_counts;

mod braille;
mod files;

pub use outputs::{Introduction, OutputError, Outputs};
pub use verdict_counts::VerdictCounts;
