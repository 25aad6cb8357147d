//! Instruction counts by valgrind, which unlike times do not depend on the load of the machine.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
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

/// Number of instructions of each thread of `program`, in the order in which the threads started.
/// All threads run on one processor, so that waiting threads sleep instead of spinning. `scratch`
/// is a directory for the counts.
///
/// # Errors
/// Valgrind or `taskset` is not installed, or the run fails.
pub fn by_thread(
    scratch: &Path,
    program: &Path,
    arguments: &[String],
) -> Result<Vec<u64>, Box<dyn Error>> {
    let name = "callgrind.by-thread";
    let file = scratch.join(name);
    let output = Command::new("taskset")
        .args(["-c", "0", "valgrind", "--tool=callgrind"])
        .arg("--separate-threads=yes")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run taskset: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("valgrind failed on {arguments:?}: {said}").into());
    }
    let mut files: Vec<PathBuf> = fs::read_dir(scratch)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    // The file of a thread has the number of the thread as its suffix; the file without a suffix
    // is empty.
    let prefix = format!("{name}-");
    files.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix))
    });
    files.sort();
    let mut counts = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("summary: ")?.trim().parse().ok());
        counts.push(count.ok_or_else(|| format!("{} has no summary", path.display()))?);
        fs::remove_file(&path)?;
    }
    Ok(counts)
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
