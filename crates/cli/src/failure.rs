//! Errors of commands, with their exit statuses.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_lab::outputs::WriteError;
use anabranch_lab::reference::LoadError;
use anabranch_lab::run::RunError;
use anabranch_lab::shard::ShardError;
use anabranch_lab::store::StoreError;
use anabranch_report::OutputError;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::suggest::{hint, nearest};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line contains an unknown name.
    Usage(String),
    /// The spec is invalid.
    Spec(Box<SpecError>),
    /// Runs failed, or their results could not be stored. Finished runs are in this directory.
    Run(Box<RunError>, PathBuf),
    /// A run of `advise` failed. Its runs are not stored.
    Search(Box<RunError>),
    /// The results directory cannot be used; no run was started.
    Directory(Box<StoreError>),
    /// Reference results could not be read or stored.
    Reference(Box<LoadError>),
    /// Shards cannot be merged, or a directory cannot hold a shard; no run was started.
    Shard(Box<ShardError>),
    /// Results could not be read.
    Store(Box<StoreError>),
    /// Tables, figures or the report could not be computed from the results.
    Show(Box<OutputError>),
    /// Tables, figures or the report could not be written; the runs are in this directory.
    Outputs(Box<WriteError>, PathBuf),
    /// A command on real sockets failed.
    Net(String),
    /// Writing to standard output failed.
    Output(io::Error),
    /// The user interrupted the command.
    Interrupted,
    /// The program that the command ran ended with this exit status, and has printed its own error.
    Program(u8),
}

/// The reason why a file could not be read, for messages.
pub fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => "it is not text in UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

impl Failure {
    /// Error for an unknown name on the command line, with the allowed names and the most similar
    /// one.
    pub fn unknown<'a>(
        argument: &str,
        found: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = nearest(found, known.iter().copied())
            .map_or(String::new(), |name| format!("; {}", hint(found, name)));
        let known = known.join(", ");
        Failure::Usage(format!(
            "{argument}: found {found:?}; allowed: {known}{hint}"
        ))
    }

    /// Error of a command that this build lacks, with the feature that adds it.
    #[cfg_attr(feature = "full", allow(dead_code))]
    pub fn absent(command: &str, feature: &str) -> Self {
        Failure::Usage(format!(
            "`{command}` is not compiled in; it needs the feature `{feature}`: cargo install --locked --path crates/cli --features {feature} (`full` has all)"
        ))
    }

    /// The exit status: 2 if the request was wrong and nothing was run, 130 after an interrupt (the
    /// convention of shells), and 1 for all other failures.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Spec(_) => 2,
            Failure::Directory(error) if !is_full(error) => 2,
            Failure::Shard(error) if !matches!(**error, ShardError::Store(_)) => 2,
            Failure::Interrupted => 130,
            Failure::Program(status) => *status,
            _ => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Net(message) => write!(f, "error: {message}"),
            Failure::Spec(error) => error.fmt(f),
            Failure::Search(error) => write!(f, "error: {error}"),
            Failure::Directory(error) => {
                write!(
                    f,
                    "error: {error}\nNothing was run; `--out DIR` names another directory."
                )
            }
            Failure::Run(error, directory) => kept(f, error, directory),
            Failure::Outputs(error, directory) => kept(f, error, directory),
            Failure::Reference(error) => write!(f, "error: {error}"),
            Failure::Shard(error) => write!(f, "error: {error}"),
            Failure::Store(error) => write!(f, "error: {error}"),
            Failure::Show(error) => write!(f, "error: {error}"),
            Failure::Output(error) => write!(f, "error: cannot write to standard output: {error}"),
            Failure::Interrupted => write!(f, "interrupted"),
            Failure::Program(status) => write!(f, "the program gave status {status}"),
        }
    }
}

/// Returns true if the disk is full. All other errors concern the directory: it is read-only, has
/// no locks, or was made by another version.
fn is_full(error: &StoreError) -> bool {
    let StoreError::Write { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Text that states which directory contains the finished runs.
pub fn location_of_runs(directory: &Path) -> String {
    let directory = directory.display();
    format!("Finished runs are kept in {directory}; repeat the command to continue.")
}

/// Formats an error during the work, followed by the location of finished runs.
fn kept(f: &mut fmt::Formatter<'_>, error: &dyn fmt::Display, directory: &Path) -> fmt::Result {
    write!(f, "error: {error}\n{}", location_of_runs(directory))
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Failure::Spec(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn a_directory_that_cannot_be_used_is_status_2_and_a_full_disk_is_1() {
        let status = |errno: Errno| {
            let path = PathBuf::from("results/runs/.lock");
            let source = errno.into();
            Failure::Directory(Box::new(StoreError::Write { path, source })).status()
        };
        for errno in [Errno::ENOLCK, Errno::EROFS, Errno::EACCES, Errno::ENOTDIR] {
            assert_eq!(status(errno), 2, "{errno}");
        }
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG] {
            assert_eq!(status(errno), 1, "{errno}");
        }
    }
}
