//! Files of a results directory: regular ones. Others may have put something else in their place.
//!
//! A link there leads a writer to a file of the user's that is no result; a device or a FIFO gives
//! a reader bytes without end, or none. So a file that is written is never one that a link leads
//! to, and a file that is read is regular and has at most so many bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of the text of a results directory: a manifest has the files that its spec names within
/// it.
pub const MAX_TEXT: u64 = 2 << 30;
/// Bytes of a journal.
pub const MAX_JOURNAL: u64 = 8 << 30;

/// Opens a regular file to be read. A FIFO is not waited for.
///
/// # Errors
/// What the file system said; it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    checked(at_once(&mut options).open(path)?)
}

/// The bytes of a regular file, if that has at most `most`.
///
/// # Errors
/// As [`open`]; it has more.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // A file that grows meanwhile is read as far as it may be.
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    let message = format!("it has more than {} MiB", most >> 20);
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// As [`read`], of text in UTF-8 with at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// As [`read`]; it is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path, MAX_TEXT)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Opens a regular file to be read and written, which is made if it is not there. A link is an
/// error, wherever it leads.
///
/// # Errors What the file system said; it is a link, or not a regular file.
pub fn update(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    let opened = without_links(at_once(&mut options)).open(path);
    checked(opened.map_err(|error| of_link(path, error))?)
}

/// Makes a file that is not there yet: nobody else has opened it, and no link of its name is
/// followed.
///
/// # Errors What the file system said.
pub fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

fn checked(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular("it is not a regular file")),
    }
}

fn not_regular(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// An error that a link is the reason of says so.
fn of_link(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink()) {
        true => not_regular("it is a link; no file of results is written through one"),
        false => error,
    }
}

#[cfg(unix)]
fn flags(options: &mut OpenOptions, flags: rustix::fs::OFlags) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(flags.bits() as i32)
}

/// To open a FIFO waits for the other end, without this.
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    flags(options, rustix::fs::OFlags::NONBLOCK);
    options
}

fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    flags(
        options,
        rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK,
    );
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_only_so_much_of_it() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("file");
        fs::write(&path, b"text").expect("written");
        assert_eq!(text(&path).expect("read"), "text");
        assert_eq!(read(&path, 4).expect("read"), b"text");
        let error = read(&path, 3).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        // Sparse: nothing of it is on the disk, and all of it would be in memory.
        let sparse = File::create(&path).and_then(|it| it.set_len(1 << 42));
        if sparse.is_ok() {
            let error = text(&path).expect_err("too large");
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        for other in ["/dev/zero", "/dev/null", "/"] {
            let link = folder.path().join("link");
            symlink(other, &link).expect("a link");
            assert!(text(&link).is_err(), "{other}");
            fs::remove_file(&link).expect("it is there");
        }
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        if made.is_ok_and(|it| it.success()) {
            let error = text(&fifo).expect_err("not a regular file");
            assert_eq!(error.to_string(), "it is not a regular file");
            assert!(update(&fifo).is_err());
        }
    }

    #[test]
    fn no_link_is_written_through() {
        let folder = tempfile::tempdir().expect("a directory");
        let victim = folder.path().join("victim");
        fs::write(&victim, b"precious").expect("written");
        let link = folder.path().join("link");
        for target in [&victim, &folder.path().join("nothing")] {
            symlink(target, &link).expect("a link");
            let error = update(&link).expect_err("a link").to_string();
            assert!(error.starts_with("it is a link"), "{error}");
            assert!(create(&link).is_err());
            fs::remove_file(&link).expect("it is there");
        }
        assert!(!folder.path().join("nothing").exists());
        assert_eq!(fs::read(&victim).expect("read"), b"precious");
        update(&victim).expect("a file").set_len(0).expect("a file");
        update(&folder.path().join("new")).expect("it is made");
    }
}
