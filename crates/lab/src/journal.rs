//! Finished runs, one after the other in a file that only grows.
//!
//! ```text
//! anabranch journal 1
//! LENGTH CHECKSUM KEY RECORD
//! LENGTH CHECKSUM KEY RECORD
//! ```
//! A line is a run: eight hexadecimal digits of the length of `KEY RECORD` in bytes, eight of its CRC32c, the key of the run, its
//! record as JSON. A process that was killed, or a full disk, leaves half a line: what does not check, and all behind it, is cut off
//! by whoever writes next, and those runs are made again.
//!
//! Processes that work on one directory at once have a journal each, `1.journal` and so on: the first that nobody else holds a
//! lock on. Everybody reads all of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs4::{FileExt, TryLockError};

use crate::whole::Keep;

/// The first line of a journal. Another form gets another number.
const HEAD: &str = "anabranch journal 1\n";
/// What all forms begin with.
const NAME: &str = "anabranch journal ";
/// What the file's name ends in.
const EXTENSION: &str = "journal";
/// Length and checksum, each with the space behind it.
const PREFIX: usize = 18;

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// Which file or directory.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// It could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// Which file or directory.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// It is of another form.
    #[error(
        "{path}: it is of form {found}, and this program knows form 1; take another --out, or the version that made it",
        path = path.display()
    )]
    Form {
        /// Which file.
        path: PathBuf,
        /// Its form.
        found: String,
    },
}

/// The journals of a directory: those that are there, and the one that this process writes.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// `KEY RECORD` of all runs, one after the other.
    text: Vec<u8>,
    /// The record of each run in `text`.
    records: BTreeMap<String, Range<usize>>,
    /// The file that this process writes, once it has kept a run.
    own: Option<Own>,
    damaged: Vec<Damage>,
}

/// The journal that this process writes.
#[derive(Clone, Debug)]
struct Own {
    path: PathBuf,
    file: Arc<File>,
}

/// A journal that does not check to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which.
    pub path: PathBuf,
    /// Runs before the damage.
    pub runs: usize,
    /// Bytes from there on.
    pub bytes: u64,
}

impl Journal {
    /// Reads the journals in `directory`.
    ///
    /// # Errors
    /// A journal that cannot be read, or has another form.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        let mut state = State::default();
        for path in journals(directory)? {
            let failed = |source| JournalError::Read {
                path: path.clone(),
                source,
            };
            let bytes = fs::read(&path).map_err(failed)?;
            let (runs, whole) = state.read(&path, &bytes)?;
            if whole < bytes.len() {
                let bytes = (bytes.len() - whole) as u64;
                state.damaged.push(Damage { path, runs, bytes });
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// Journals that did not check to their ends when they were read. Another process may have been about to write there.
    pub fn damaged(&self) -> Vec<Damage> {
        self.locked(|state| state.damaged.clone())
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.locked(|state| state.records.is_empty())
    }

    /// The record of a run, as `read` makes it of its JSON; `None` where there is none.
    pub fn get<T>(&self, key: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let record = self.locked(|state| {
            let place = state.records.get(key)?.clone();
            Some(state.text[place].to_vec())
        });
        // Others look up theirs meanwhile.
        read(&record?)
    }

    /// Adds a run. With [`Keep::Durably`] it, and all before it, is flushed to the disk.
    ///
    /// # Errors
    /// [`JournalError::Write`]; the run is not there then.
    pub fn add(&self, key: &str, record: &[u8], keep: Keep) -> Result<(), JournalError> {
        let line = line(key, record);
        let own = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let own = match &state.own {
                Some(own) => own.clone(),
                None => {
                    let own = self.own(&mut state)?;
                    state.own.insert(own).clone()
                }
            };
            append(&own.file, &line).map_err(|source| own.failed(source))?;
            state.note(key, record);
            own
        };
        // The others go on meanwhile.
        match keep {
            Keep::Durably => own.flush(),
            Keep::Cheaply => Ok(()),
        }
    }

    /// Flushes what was added to the disk.
    ///
    /// # Errors
    /// [`JournalError::Write`].
    pub fn flush(&self) -> Result<(), JournalError> {
        let own = self.locked(|state| state.own.clone());
        own.map_or(Ok(()), |own| own.flush())
    }

    /// The first journal that nobody else writes, locked, its damaged end cut off.
    fn own(&self, state: &mut State) -> Result<Own, JournalError> {
        for number in 1..=u32::MAX {
            let path = self.directory.join(format!("{number}.{EXTENSION}"));
            let failed = |source| JournalError::Write {
                path: path.clone(),
                source,
            };
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .map_err(failed)?;
            if is_taken(FileExt::try_lock(&file)).map_err(failed)? {
                continue;
            }
            // What another process has written since it was read counts, too.
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            let (_, whole) = state.read(&path, &bytes)?;
            file.set_len(whole as u64)
                .and_then(|()| file.seek(SeekFrom::End(0)))
                .map_err(failed)?;
            if whole == 0 {
                file.write_all(HEAD.as_bytes()).map_err(failed)?;
            }
            let file = Arc::new(file);
            return Ok(Own { path, file });
        }
        Err(JournalError::Write {
            path: self.directory.clone(),
            source: io::Error::other("every journal is in use"),
        })
    }

    fn locked<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Own {
    fn flush(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::Write {
            path: self.path.clone(),
            source,
        }
    }
}

impl State {
    /// Takes in what checks of a journal: the runs and the bytes that do.
    fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<(usize, usize), JournalError> {
        if !bytes.starts_with(HEAD.as_bytes()) {
            let begun = HEAD.as_bytes().starts_with(bytes);
            if !begun && bytes.starts_with(NAME.as_bytes()) {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let found = String::from_utf8_lossy(&bytes[NAME.len()..end.unwrap_or(bytes.len())]);
                return Err(JournalError::Form {
                    path: path.to_owned(),
                    found: found.into_owned(),
                });
            }
            return Ok((0, 0));
        }
        let (mut runs, mut at) = (0, HEAD.len());
        while let Some((key, record, length)) = parse(&bytes[at..]) {
            self.note(key, record);
            (runs, at) = (runs + 1, at + length);
        }
        Ok((runs, at))
    }

    fn note(&mut self, key: &str, record: &[u8]) {
        let known = self.records.get(key).cloned();
        // The journal of this process is read a second time when it is locked.
        if known.is_some_and(|known| self.text[known] == *record) {
            return;
        }
        let begin = self.text.len();
        self.text.extend_from_slice(record);
        self.records.insert(key.to_owned(), begin..self.text.len());
    }
}

/// Whether another process holds the lock; a file system that has no locks is an error.
fn is_taken(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The journals in a directory, by name.
fn journals(directory: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let failed = |source| JournalError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|it| it == EXTENSION) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn line(key: &str, record: &[u8]) -> Vec<u8> {
    let mut line = vec![b' '; PREFIX];
    line.extend_from_slice(key.as_bytes());
    line.push(b' ');
    line.extend_from_slice(record);
    let text = &line[PREFIX..];
    let prefix = format!("{:08x} {:08x} ", text.len(), crc_fast::crc32_iscsi(text));
    line[..PREFIX].copy_from_slice(prefix.as_bytes());
    line.push(b'\n');
    line
}

/// The key and the record of the first line, and the line's length; `None` where it does not check.
fn parse(bytes: &[u8]) -> Option<(&str, &[u8], usize)> {
    let prefix = bytes.first_chunk::<PREFIX>()?;
    let number = |from: usize| {
        let (digits, space) = prefix[from..].split_at_checked(8)?;
        let hexadecimal = digits.iter().all(u8::is_ascii_hexdigit) && space.first() == Some(&b' ');
        let digits = std::str::from_utf8(digits).ok().filter(|_| hexadecimal)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (length, checksum) = (number(0)? as usize, number(9)?);
    let text = bytes.get(PREFIX..PREFIX.checked_add(length)?)?;
    let ends = bytes.get(PREFIX + length) == Some(&b'\n');
    if !ends || crc_fast::crc32_iscsi(text) != checksum {
        return None;
    }
    let space = text.iter().position(|byte| *byte == b' ')?;
    let key = std::str::from_utf8(&text[..space]).ok()?;
    Some((key, &text[space + 1..], PREFIX + length + 1))
}

/// Writes a line at the end, or none of it.
fn append(mut file: &File, line: &[u8]) -> io::Result<()> {
    let end = file.stream_position()?;
    file.write_all(line).inspect_err(|_| {
        // What cannot be taken back is cut off by the next process.
        let _ = file.set_len(end);
        let _ = file.seek(SeekFrom::Start(end));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_not_kept_twice_when_the_journal_is_locked() {
        let directory = tempfile::tempdir().expect("a directory");
        for (key, record, kept) in [("a", "{}", 2), ("b", "[1]", 5), ("a", "{1}", 8)] {
            let journal = Journal::open(directory.path()).expect("journals");
            let added = journal.add(key, record.as_bytes(), Keep::Cheaply);
            added.expect("it can be written");
            assert_eq!(journal.locked(|state| state.text.len()), kept, "{key}");
            let found = journal.get(key, |found| Some(found == record.as_bytes()));
            assert_eq!(found, Some(true), "{key}");
        }
    }

    #[test]
    fn only_a_lock_of_another_process_leads_to_the_next_journal() {
        let refused = io::Error::from(io::ErrorKind::Unsupported);
        assert!(is_taken(Err(TryLockError::WouldBlock)).is_ok_and(|taken| taken));
        assert!(is_taken(Ok(())).is_ok_and(|taken| !taken));
        assert!(is_taken(Err(TryLockError::Error(refused))).is_err());
    }
}
