//! Commands that end together with their parent process, even if the parent is killed.
//!
//! PR_SET_PDEATHSIG applies to the calling process and remains set after `exec`, but child
//! processes do not inherit it. Therefore the command is started through this program, which calls
//! PR_SET_PDEATHSIG and then executes the command.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::stderr::note;

/// First argument with which this program executes another one.
const MARK: &str = "--tied-to";

/// Creates a command that ends when this process ends.
///
/// # Errors
/// The program does not exist.
pub fn command(program: &OsStr) -> io::Result<Command> {
    if !is_there(program) {
        return Err(io::Error::from_raw_os_error(nix::libc::ENOENT));
    }
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("anabranch")
        .arg(MARK)
        .arg(std::process::id().to_string())
        .arg(program);
    Ok(command)
}

/// Returns true if the program exists, by the search rules of `execvp`.
fn is_there(program: &OsStr) -> bool {
    let can_run = |path: &Path| {
        let found = fs::metadata(path);
        found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(program);
    if path.components().count() > 1 {
        return can_run(path);
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|it| can_run(&it.join(path)))
}

/// Executes a command if this program was started for that purpose. Returns only if the command
/// cannot be executed.
pub fn become_one() -> Option<ExitCode> {
    let mut words = env::args_os().skip(1);
    if words.next()? != MARK {
        return None;
    }
    let parent = words.next();
    let words: Vec<OsString> = words.collect();
    Some(tied(parent, &words))
}

fn tied(parent: Option<OsString>, words: &[OsString]) -> ExitCode {
    let parent = parent.and_then(|it| it.to_str()?.parse().ok());
    let [program, rest @ ..] = words else {
        return ExitCode::from(2);
    };
    // If this fails, the command does not end when its parent is killed.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    if parent != Some(getppid().as_raw()) {
        // The parent ended before the call.
        return ExitCode::from(137);
    }
    let error = Command::new(program).args(rest).exec();
    note(format_args!(
        "anabranch: cannot run {}: {error}",
        program.display()
    ));
    ExitCode::from(126)
}
