//! Instructions instead of seconds: what no load of the machine changes.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// Instructions that `program` executes when it is run with `arguments`, by `valgrind --tool=callgrind`.
///
/// # Errors
/// Valgrind is not there, or the run fails.
pub fn instructions(program: &Path, arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    collected(&[], program, arguments)
}

/// As [`instructions`], of what the functions with names like `functions` do (`*` for anything), and what they call.
///
/// # Errors
/// See [`instructions`].
pub fn within(
    functions: &str,
    program: &Path,
    arguments: &[String],
) -> Result<u64, Box<dyn Error>> {
    let toggle = format!("--toggle-collect={functions}");
    collected(&[toggle], program, arguments)
}

fn collected(
    options: &[String],
    program: &Path,
    arguments: &[String],
) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(program)
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

/// Instructions of the work between two runs of `program` that differ in how much they do: what starting costs is in both.
///
/// # Errors
/// See [`instructions`].
pub fn between(program: &Path, less: &[String], more: &[String]) -> Result<u64, Box<dyn Error>> {
    Ok(instructions(program, more)?.saturating_sub(instructions(program, less)?))
}

/// As [`between`], of this program.
///
/// # Errors
/// See [`instructions`].
pub fn between_own(less: &[String], more: &[String]) -> Result<u64, Box<dyn Error>> {
    between(&env::current_exe()?, less, more)
}
