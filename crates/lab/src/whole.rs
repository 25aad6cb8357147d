//! Files that are whole or not there: written beside their place, then renamed. Directories that several processes share.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use fs4::FileExt;

use crate::plain;

/// What the name of a file ends in that is not whole yet.
const PART: &str = ".part";

/// Where a file is written before it is whole. No other call gives the name, nor another process, also on another machine:
/// two that work on one directory do the same runs twice, and neither harms the other.
pub fn part_path(path: &Path) -> PathBuf {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{process:016x}-{call}{PART}"));
    path.with_file_name(name)
}

/// A place in a directory that several processes may use at once; given up when it is dropped.
#[derive(Debug)]
pub struct Visit {
    _lock: File,
}

impl Visit {
    /// Enters the directory of `lock`, a file that is made if it is not there. Whoever finds nobody else there removes what
    /// a process that was killed left half written in `directories`.
    ///
    /// # Errors
    /// What the file system said.
    pub fn begin(lock: &Path, directories: &[&Path]) -> io::Result<Self> {
        let file = plain::update(lock)?;
        if FileExt::try_lock(&file).is_ok() {
            for directory in directories {
                remove_parts(directory)?;
            }
            FileExt::unlock(&file)?;
        }
        FileExt::lock_shared(&file)?;
        Ok(Self { _lock: file })
    }
}

/// Whether [`part_path`] gives such a name. Another file of a user that ends in `.part` is not ours to remove.
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
    let written = plain::create(&part).and_then(|mut file| {
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
