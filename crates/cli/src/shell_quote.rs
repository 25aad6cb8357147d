//! Quoting of words for the shell, in printed commands and scripts.

use shlex::Quoter;

use crate::failure::Failure;

/// A word, quoted so that the shell reads it as one.
pub fn quoted(word: &str) -> Result<String, Failure> {
    let quoted = Quoter::new().quote(word);
    let quoted = quoted.map_err(|error| Failure::Usage(format!("found {word:?}: {error}")))?;
    Ok(quoted.into_owned())
}
