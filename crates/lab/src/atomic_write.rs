//! Atomic file writes (to a temporary name, then renamed), and directories shared by several
//! processes.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::plain;

/// Suffix of the name of an incomplete file.
const PART: &str = ".part";

/// Temporary path of a file until it is complete. The name is unique across calls, processes and
/// machines. Two processes in the same directory may therefore execute the same runs, but do not
/// damage each other's files.
pub fn part_path(path: &Path) -> PathBuf {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{process:016x}-{call}{PART}"));
    path.with_file_name(name)
}

/// Shared lock of a directory that several processes may use at the same time; released on drop.
#[derive(Debug)]
pub struct DirectoryLock {
    _lock: File,
}

impl DirectoryLock {
    /// Acquires the shared lock of a directory. `lock` is the lock file, which is created if
    /// necessary. If no other process holds the lock, incomplete files left in `directories` by
    /// killed processes are removed.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn acquire(lock: &Path, directories: &[&Path]) -> io::Result<Self> {
        let file = plain::update(lock)?;
        if file.try_lock().is_ok() {
            for directory in directories {
                remove_parts(directory)?;
            }
            file.unlock()?;
        }
        file.lock_shared()?;
        Ok(Self { _lock: file })
    }
}

/// Whether [`part_path`] could have returned this name. Other files that end in `.part` belong to
/// the user, and must not be removed.
fn is_part(name: &str) -> bool {
    let ours = name.strip_suffix(PART).and_then(|it| it.rsplit_once('.'));
    let Some((process, call)) = ours.and_then(|(_, ours)| ours.split_once('-')) else {
        return false;
    };
    let digits = |text: &str, radix| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    process.len() == 16 && digits(process, 16) && digits(call, 10)
}

fn remove_parts(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_str().is_some_and(is_part) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Durability of a file: whether it must survive a failure of the machine, or only of this program.
/// Waiting for the disk takes longer than a short run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Flushed to disk before the call returns.
    Synced,
    /// Flushed to disk when the operating system chooses, which suffices because the same command
    /// can create the file again.
    Buffered,
}

/// Writes a file atomically.
///
/// # Errors
/// Any error of the file system; the temporary file is removed.
pub fn write(
    path: &Path,
    durability: Durability,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_path(path);
    let written = plain::create(&part).and_then(|mut file| {
        fill(&mut file)?;
        match durability {
            Durability::Synced => file.sync_all(),
            Durability::Buffered => Ok(()),
        }
    });
    written
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
}
