//! Files that are whole or not there: written beside their place, then renamed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where a file is written before it is whole. The name is the process's own: two that work on one directory do the same
/// runs twice, and neither harms the other.
pub fn part_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Whether a file must outlive a failure of the machine, not only of this program. Waiting for the disk takes longer
/// than a short run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Flushed to the disk.
    Durably,
    /// Left to the operating system: the same command makes it again.
    Cheaply,
}

/// Writes a file so that it is whole or not there.
///
/// # Errors
/// What the file system said; what was begun is removed.
pub fn write(
    path: &Path,
    keep: Keep,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_path(path);
    let written = File::create(&part).and_then(|mut file| {
        fill(&mut file)?;
        match keep {
            Keep::Durably => file.sync_all(),
            Keep::Cheaply => Ok(()),
        }
    });
    written
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
}
