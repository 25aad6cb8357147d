//! Remarks on standard error, in addition to the output of a command.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a remark on standard error. Write errors are ignored, because a command should do its
/// work, and have its exit status, even without a reader or with a full disk.
pub fn note(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}
