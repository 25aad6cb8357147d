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
pub mod tally;
pub mod terminal;
pub mod unanswered;
pub mod unit;

mod braille;
mod files;

pub use outputs::{OutputError, Outputs, Words};
pub use tally::Tally;
