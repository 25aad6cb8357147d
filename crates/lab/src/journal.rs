//! Finished runs, one after the other in a file that only grows.
//!
//! ```text
//! anabranch journal 1
//! LENGTH CHECKSUM KEY RECORD
//! LENGTH CHECKSUM KEY RECORD
//! ```
//! A line is a run: eight hexadecimal digits of the length of `KEY RECORD` in bytes, eight of its CRC32c, the key of the run, its
//! record as JSON. A process that was killed, or a full disk, leaves half a line, and a disk may change bytes: reading goes on at the
//! next line that checks. What does not check is taken away by whoever writes next: cut off at the end, made empty lines before it.
//! Those runs are made again.
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

use crate::plain;
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

/// A journal of which not all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which.
    pub path: PathBuf,
    /// Runs that check.
    pub runs: usize,
    /// Bytes that do not.
    pub bytes: u64,
    /// Runs that these were, as far as it can be seen.
    pub lost: usize,
}

/// What a journal was found to be.
#[derive(Debug, Default)]
struct Found {
    /// Runs that check.
    runs: usize,
    /// Where the last of them ends.
    whole: usize,
    /// What does not check, in order.
    damaged: Vec<Range<usize>>,
    /// Runs that this was.
    lost: usize,
    /// Bytes that were summed and did not check.
    summed: usize,
}

/// How often as many bytes as a journal has may be summed in vain: each place of damaged bytes may claim that a line begins there and
/// goes to the end. What is behind that counts as damaged.
const MOST_SUMMED: usize = 16;

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

    /// Journals of which not all did check when they were read. Another process may have been about to write there.
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

    /// The first journal that nobody else writes, locked, with what is damaged taken away.
    fn own(&self, state: &mut State) -> Result<Own, JournalError> {
        for number in 1..=u32::MAX {
            let path = self.directory.join(format!("{number}.{EXTENSION}"));
            let failed = |source| JournalError::Write {
                path: path.clone(),
                source,
            };
            let mut file = plain::update(&path).map_err(failed)?;
            if is_taken(FileExt::try_lock(&file)).map_err(failed)? {
                continue;
            }
            // What another process has written since it was read counts, too.
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            let found = state.read(&path, &bytes)?;
            mend(&mut file, &found).map_err(failed)?;
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
    /// Takes in what checks of a journal.
    fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<Found, JournalError> {
        if let Some(found) = other_form(bytes) {
            return Err(JournalError::Form {
                path: path.to_owned(),
                found,
            });
        }
        let mut found = Found::default();
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

/// The form that a journal says to be of, where that is another.
fn other_form(bytes: &[u8]) -> Option<String> {
    let form = bytes.strip_prefix(NAME.as_bytes())?;
    let end = form.iter().position(|byte| *byte == b'\n')?;
    let form = std::str::from_utf8(&form[..end]).ok()?;
    // Anything else is a damaged head.
    let is_number = form.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && bytes[..NAME.len() + end + 1] != *HEAD.as_bytes()).then(|| form.to_owned())
}

/// A line that checks.
struct Line<'a> {
    key: &'a str,
    record: &'a [u8],
    length: usize,
}

/// The next line that checks, and where it begins. What is between it and the last one is noted as damaged, but for empty lines.
fn next<'a>(bytes: &'a [u8], found: &mut Found) -> Option<(usize, Line<'a>)> {
    let behind = &bytes[found.whole..];
    let empty = behind.iter().take_while(|byte| **byte == b'\n').count();
    found.whole += empty;
    let begin = found.whole;
    // What is behind the head is a run, though its own beginning may be damaged.
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
        if found.summed / MOST_SUMMED > bytes.len() {
            break;
        }
    }
    found.note(begin..bytes.len(), lost);
    None
}

impl Found {
    /// Notes what does not check, and how many runs it was.
    fn note(&mut self, damaged: Range<usize>, lost: usize) {
        if !damaged.is_empty() {
            self.lost += lost;
            self.damaged.push(damaged);
        }
    }
}

/// Takes away what is damaged: the end is cut off, and empty lines take the place of what is before it. What is added goes to the end.
fn mend(file: &mut File, found: &Found) -> io::Result<()> {
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

/// Length and checksum that a line begins with.
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

/// The first line; `None` where it does not check.
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

    /// Every 18 bytes claim that a run goes from there to the end.
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
            assert!(found.summed <= (MOST_SUMMED + 2) * bytes.len(), "{count}");
            // What an accident damages is small, and what is behind it is found.
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
