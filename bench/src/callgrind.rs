//! Instructions instead of seconds: what no load of the machine changes.

use std::env;
use std::error::Error;
use std::process::Command;

/// Instructions that this program executes when it is run with `arguments`, by `valgrind --tool=callgrind`.
///
/// # Errors
/// Valgrind is not there, or the run fails.
pub fn instructions(arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said
        .lines()
        .filter_map(|line| line.split("Collected :").nth(1))
        .find_map(|number| number.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("valgrind failed on {arguments:?}: {said}").into()),
    }
}

/// Instructions of the work between two runs that differ in how much they do: what starting costs is in both.
///
/// # Errors
/// See [`instructions`].
pub fn between(less: &[String], more: &[String]) -> Result<u64, Box<dyn Error>> {
    Ok(instructions(more)?.saturating_sub(instructions(less)?))
}
