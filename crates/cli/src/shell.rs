//! Words of a command that is printed, or written into a script.

use shlex::Quoter;

use crate::failure::Failure;

/// A word as the shell reads it whole.
pub fn quoted(word: &str) -> Result<String, Failure> {
    let quoted = Quoter::new().quote(word);
    let quoted = quoted.map_err(|error| Failure::Asked(format!("found {word:?}: {error}")))?;
    Ok(quoted.into_owned())
}
