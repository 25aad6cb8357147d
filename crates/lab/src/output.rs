//! What a reader sees of a run: tables, figures, a report, and the same in a terminal.

pub mod table;
pub mod unit;
