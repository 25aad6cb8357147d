//! Safe access to the files of a results directory, in which another user may have replaced a file
//! by a device or a link.
//!
//! A link could make this program overwrite an unrelated file of the user, and a device or FIFO
//! could supply endless data or block. Therefore a file is never written through a link, and only
//! regular files of limited size are read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a text file in a results directory, bytes. Large, because a manifest contains
/// the files that its spec names.
pub const MAX_TEXT: u64 = 2 << 30;
/// Maximum size of a journal, bytes.
pub const MAX_JOURNAL: u64 = 8 << 30;

/// Opens a regular file for reading. A FIFO is refused without blocking.
///
/// # Errors
/// Any error of the file system; the file is not regular.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    checked(at_once(&mut options).open(path)?)
}

/// Contents of a regular file of at most `most` bytes.
///
/// # Errors
/// The errors of [`open`]; or the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // Reading stops at the limit, because the file may grow meanwhile.
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

/// Like [`read`], for UTF-8 text of at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// The errors of [`read`]; or the text is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path, MAX_TEXT)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Opens a regular file for reading and writing, and creates it if necessary. A link is an error,
/// regardless of its target.
///
/// # Errors
/// Any error of the file system; the file is a link, or not regular.
pub fn update(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    let opened = without_links(at_once(&mut options)).open(path);
    checked(opened.map_err(|error| of_link(path, error))?)
}

/// Creates a new file. A link with this name is not followed, and no other process can have opened
/// the file before.
///
/// # Errors
/// Any error of the file system.
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

/// Adds to an error message that the cause is a link.
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

/// Sets the option by which opening a FIFO does not wait for the other end.
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
        // A sparse file uses no space on disk, but would fill the memory if it was read.
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
