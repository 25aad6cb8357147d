//! Notes on standard error, in addition to the output of a command.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a note on standard error. Write errors are ignored, because a command should do its work
/// and return its exit status even if its notes cannot be written.
pub fn note(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}
