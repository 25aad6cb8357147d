//! What is said on standard error beside the work.

use std::fmt::Display;
use std::io::{self, Write};

/// Says something on standard error. A command does its work, and has its exit status, also where nobody reads or the disk is full.
pub fn note(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}
