//! Journal of finished runs: an append-only file.
//!
//! ```text
//! anabranch journal 1
//! LENGTH CHECKSUM KEY RECORD
//! LENGTH CHECKSUM KEY RECORD
//! ```
//!
//! Each line is a run: the length of `KEY RECORD` in bytes and its CRC32c (eight hexadecimal digits
//! each), the key of the run, and its record as JSON. A killed process or a full disk can leave a
//! partial line, and a disk can corrupt bytes. Reading then continues at the next valid line. The
//! next writer removes invalid data: it truncates a damaged end, and replaces earlier damage by
//! empty lines. The affected runs are executed again.
//!
//! Processes that use the same directory at the same time have separate journals, `1.journal` and
//! so on. Each process uses the first journal that no other process has locked. All processes read
//! all journals.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::atomic_write::Durability;
use crate::plain;

/// First line of a journal. A changed format must use another number.
const HEAD: &str = "anabranch journal 1\n";
/// Common start of all formats.
const NAME: &str = "anabranch journal ";
/// Extension of the file name.
const EXTENSION: &str = "journal";
/// Length of the two numbers at the start of a line, each with the space after it.
const PREFIX: usize = 18;

/// Error of a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The journal could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The journal has another format.
    #[error(
        "{path}: it is of form {found}, and this program knows form 1; take another --out, or the version that made it",
        path = path.display()
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// Format.
        found: String,
    },
}

/// Journals of a directory: the existing ones, and the one that this process writes.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// `KEY RECORD` of all runs, concatenated.
    text: Vec<u8>,
    /// Range of the record of each run in `text`.
    records: BTreeMap<String, Range<usize>>,
    /// File that this process writes; `None` before its first run.
    own: Option<OwnJournal>,
    damaged: Vec<Damage>,
}

/// The journal that this process writes.
#[derive(Clone, Debug)]
struct OwnJournal {
    path: PathBuf,
    file: Arc<File>,
}

/// A partly invalid journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Number of valid runs.
    pub runs: usize,
    /// Number of invalid bytes.
    pub bytes: u64,
    /// Estimated number of lost runs.
    pub lost: usize,
}

/// Result of parsing a journal.
#[derive(Debug, Default)]
struct ReadResult {
    /// Number of valid runs.
    runs: usize,
    /// Offset of the end of the last valid run, bytes.
    whole: usize,
    /// Invalid ranges, in order.
    damaged: Vec<Range<usize>>,
    /// Number of runs lost in the invalid ranges.
    lost: usize,
    /// Number of bytes that were checked with a CRC without finding a valid line.
    summed: usize,
}

/// Limit on the bytes in failed CRC checks, as a multiple of the size of the journal. The limit is
/// needed because each damaged position may look like the start of a line that extends to the end
/// of the file. Data after the limit counts as damaged.
const MAX_FAILED_CHECKS: usize = 16;

impl Journal {
    /// Reads the journals in `directory`.
    ///
    /// # Errors
    /// A journal cannot be read, or has another format.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        let mut state = State::default();
        for path in journals(directory)? {
            let failed = |source| JournalError::Read {
                path: path.clone(),
                source,
            };
            let bytes = plain::read(&path, plain::MAX_JOURNAL).map_err(failed)?;
            let found = state.read(&path, &bytes)?;
            let damaged: usize = found.damaged.iter().map(Range::len).sum();
            if damaged > 0 {
                state.damaged.push(Damage {
                    path,
                    runs: found.runs,
                    bytes: damaged as u64,
                    lost: found.lost,
                });
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// Journals that were partly invalid when they were read. A line that another process was just
    /// writing also counts as invalid.
    pub fn damaged(&self) -> Vec<Damage> {
        self.locked(|state| state.damaged.clone())
    }

    /// Whether the journals contain no runs.
    pub fn is_empty(&self) -> bool {
        self.locked(|state| state.records.is_empty())
    }

    /// The record of a run, converted from JSON by `read`; `None` if there is none.
    pub fn get<T>(&self, key: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let record = self.locked(|state| {
            let place = state.records.get(key)?.clone();
            Some(state.text[place].to_vec())
        });
        // The lock is released before parsing, so that other threads can look up their runs.
        read(&record?)
    }

    /// Adds a run. With [`Durability::Synced`], this run and all previous ones are flushed to disk.
    ///
    /// # Errors
    /// [`JournalError::Write`]; the run was not added.
    pub fn add(
        &self,
        key: &str,
        record: &[u8],
        durability: Durability,
    ) -> Result<(), JournalError> {
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
        // Flushed without the lock, so that other threads can continue.
        match durability {
            Durability::Synced => own.flush(),
            Durability::Buffered => Ok(()),
        }
    }

    /// Flushes the added runs to disk.
    ///
    /// # Errors
    /// [`JournalError::Write`].
    pub fn flush(&self) -> Result<(), JournalError> {
        let own = self.locked(|state| state.own.clone());
        own.map_or(Ok(()), |own| own.flush())
    }

    /// Locks the first journal that no other process writes, and removes its invalid data.
    fn own(&self, state: &mut State) -> Result<OwnJournal, JournalError> {
        for number in 1..=u32::MAX {
            let path = self.directory.join(format!("{number}.{EXTENSION}"));
            let failed = |source| JournalError::Write {
                path: path.clone(),
                source,
            };
            let mut file = plain::update(&path).map_err(failed)?;
            if is_taken(file.try_lock()).map_err(failed)? {
                continue;
            }
            // Read again, because another process may have added runs after the first read.
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            let found = state.read(&path, &bytes)?;
            repair(&mut file, &found).map_err(failed)?;
            let file = Arc::new(file);
            return Ok(OwnJournal { path, file });
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

impl OwnJournal {
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
    /// Adds the valid runs of a journal.
    fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<ReadResult, JournalError> {
        if let Some(found) = other_form(bytes) {
            return Err(JournalError::Form {
                path: path.to_owned(),
                found,
            });
        }
        let mut found = ReadResult::default();
        if bytes.starts_with(HEAD.as_bytes()) {
            found.whole = HEAD.len();
        }
        while let Some((begin, line)) = next(bytes, &mut found) {
            self.note(line.key, line.record);
            found.runs += 1;
            found.whole = begin + line.length;
        }
        Ok(found)
    }

    fn note(&mut self, key: &str, record: &[u8]) {
        let known = self.records.get(key).cloned();
        // Known runs are skipped, because the journal of this process is read a second time when it
        // is locked.
        if known.is_some_and(|known| self.text[known] == *record) {
            return;
        }
        let begin = self.text.len();
        self.text.extend_from_slice(record);
        self.records.insert(key.to_owned(), begin..self.text.len());
    }
}

/// Whether another process holds the lock. If the file system has no locks, returns an error.
fn is_taken(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Paths of the journals in a directory, ordered by name.
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

/// The format number of a journal, if it differs from that of this program.
fn other_form(bytes: &[u8]) -> Option<String> {
    let form = bytes.strip_prefix(NAME.as_bytes())?;
    let end = form.iter().position(|byte| *byte == b'\n')?;
    let form = std::str::from_utf8(&form[..end]).ok()?;
    // Content other than a number is a damaged header.
    let is_number = form.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && bytes[..NAME.len() + end + 1] != *HEAD.as_bytes()).then(|| form.to_owned())
}

/// A valid line: key and record of a run.
struct Line<'a> {
    key: &'a str,
    record: &'a [u8],
    length: usize,
}

/// Finds the next valid line; returns it with its offset. Data that was skipped is recorded as
/// damaged, except for empty lines.
fn next<'a>(bytes: &'a [u8], found: &mut ReadResult) -> Option<(usize, Line<'a>)> {
    let behind = &bytes[found.whole..];
    let empty = behind.iter().take_while(|byte| **byte == b'\n').count();
    found.whole += empty;
    let begin = found.whole;
    // Invalid data after the header counts as at least one lost run, even if the start of its line
    // is damaged.
    let mut lost = usize::from(begin > 0);
    for at in begin..bytes.len() {
        let Some((length, checksum)) = prefix(&bytes[at..]) else {
            continue;
        };
        if let Some(line) = parse(&bytes[at..], length, checksum) {
            found.note(begin..at, lost);
            return Some((at, line));
        }
        lost += usize::from(at > begin);
        found.summed += length.min(bytes.len() - at);
        if found.summed / MAX_FAILED_CHECKS > bytes.len() {
            break;
        }
    }
    found.note(begin..bytes.len(), lost);
    None
}

impl ReadResult {
    /// Records an invalid range and the number of runs lost in it.
    fn note(&mut self, damaged: Range<usize>, lost: usize) {
        if !damaged.is_empty() {
            self.lost += lost;
            self.damaged.push(damaged);
        }
    }
}

/// Removes damaged data: the end is truncated, and earlier damage is replaced by empty lines. New
/// runs are appended to the end.
fn repair(file: &mut File, found: &ReadResult) -> io::Result<()> {
    file.set_len(found.whole as u64)?;
    for damaged in &found.damaged {
        if damaged.start >= found.whole {
            continue;
        }
        let mut lines = vec![b'\n'; damaged.len()];
        if damaged.start == 0 && lines.len() >= HEAD.len() {
            lines[..HEAD.len()].copy_from_slice(HEAD.as_bytes());
        }
        file.seek(SeekFrom::Start(damaged.start as u64))?;
        file.write_all(&lines)?;
    }
    file.seek(SeekFrom::End(0))?;
    match found.whole {
        0 => file.write_all(HEAD.as_bytes()),
        _ => Ok(()),
    }
}

/// Length and checksum at the start of a line.
fn prefix(bytes: &[u8]) -> Option<(usize, u32)> {
    let prefix = bytes.first_chunk::<PREFIX>()?;
    let number = |from: usize| {
        let (digits, space) = prefix[from..].split_at_checked(8)?;
        let hexadecimal = digits.iter().all(u8::is_ascii_hexdigit) && space.first() == Some(&b' ');
        let digits = std::str::from_utf8(digits).ok().filter(|_| hexadecimal)?;
        u32::from_str_radix(digits, 16).ok()
    };
    Some((number(0)? as usize, number(9)?))
}

/// Parses the first line; `None` if it is invalid.
fn parse(bytes: &[u8], length: usize, checksum: u32) -> Option<Line<'_>> {
    let text = bytes.get(PREFIX..PREFIX.checked_add(length)?)?;
    let ends = bytes.get(PREFIX + length) == Some(&b'\n');
    if !ends || crc_fast::crc32_iscsi(text) != checksum {
        return None;
    }
    let space = text.iter().position(|byte| *byte == b' ')?;
    let key = std::str::from_utf8(&text[..space]).ok()?;
    Some(Line {
        key,
        record: &text[space + 1..],
        length: PREFIX + length + 1,
    })
}

/// Appends a line, completely or not at all.
fn append(mut file: &File, line: &[u8]) -> io::Result<()> {
    let end = file.stream_position()?;
    file.write_all(line).inspect_err(|_| {
        // If removing the partial line fails, the next process truncates it.
        let _ = file.set_len(end);
        let _ = file.seek(SeekFrom::Start(end));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locking_the_journal_stores_no_text_twice() {
        let directory = tempfile::tempdir().expect("a directory");
        for (key, record, kept) in [("a", "{}", 2), ("b", "[1]", 5), ("a", "{1}", 8)] {
            let journal = Journal::open(directory.path()).expect("journals");
            let added = journal.add(key, record.as_bytes(), Durability::Buffered);
            added.expect("it can be written");
            assert_eq!(journal.locked(|state| state.text.len()), kept, "{key}");
            let found = journal.get(key, |found| Some(found == record.as_bytes()));
            assert_eq!(found, Some(true), "{key}");
        }
    }

    /// Every 18 bytes of the data look like the start of a line that extends to the end.
    #[test]
    fn lines_that_claim_to_be_long_are_not_summed_without_end() {
        for count in [10_usize, 2_000] {
            let mut bytes = HEAD.as_bytes().to_vec();
            for left in (0..count).rev() {
                bytes.extend_from_slice(format!("{:08x} 00000000 ", left * PREFIX).as_bytes());
            }
            bytes.push(b'\n');
            let damaged = bytes.len() - HEAD.len();
            bytes.extend_from_slice(&line("key", b"{}"));
            let mut state = State::default();
            let found = state.read(Path::new("1.journal"), &bytes).expect("read");
            assert!(
                found.summed <= (MAX_FAILED_CHECKS + 2) * bytes.len(),
                "{count}"
            );
            // The run after the damage is found only if the damage is small, because the failed
            // checks are limited.
            let near = count == 10;
            assert_eq!(found.runs, usize::from(near));
            let bytes = match near {
                true => damaged,
                false => damaged + line("key", b"{}").len(),
            };
            let told: usize = found.damaged.iter().map(Range::len).sum();
            assert_eq!(told, bytes);
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
