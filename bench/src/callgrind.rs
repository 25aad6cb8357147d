//! Instruction counts by valgrind, which unlike times do not depend on the load of the machine.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// Number of instructions that `program` executes with `arguments`, counted by
/// `valgrind --tool=callgrind`.
///
/// # Errors
/// Valgrind is not installed, or the run fails.
pub fn instructions(program: &Path, arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    collected(&[], program, arguments)
}

/// Like [`instructions`], but counts only functions whose names match `functions` (in which `*` is
/// a wildcard), and the functions that they call.
///
/// # Errors
/// The errors of [`instructions`].
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

/// Number of additional instructions that `program` executes with the arguments `more` instead of
/// `less`. The startup cost cancels out.
///
/// # Errors
/// The errors of [`instructions`].
pub fn between(program: &Path, less: &[String], more: &[String]) -> Result<u64, Box<dyn Error>> {
    Ok(instructions(program, more)?.saturating_sub(instructions(program, less)?))
}

/// Like [`between`], for the running program itself.
///
/// # Errors
/// The errors of [`instructions`].
pub fn between_own(less: &[String], more: &[String]) -> Result<u64, Box<dyn Error>> {
    between(&env::current_exe()?, less, more)
}
