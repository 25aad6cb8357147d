//! Records in; statistics, comparison with what was printed, tables, figures, a page and a terminal's view out. Nothing
//! is run here, and no file is touched.
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
