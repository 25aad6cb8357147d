//! Quoting for the shell, in printed commands and generated scripts.

use shlex::Quoter;

use crate::failure::Failure;

/// Quotes a word so that the shell parses it as one word.
pub fn quoted(word: &str) -> Result<String, Failure> {
    let quoted = Quoter::new().quote(word);
    let quoted = quoted.map_err(|error| Failure::Usage(format!("found {word:?}: {error}")))?;
    Ok(quoted.into_owned())
}
