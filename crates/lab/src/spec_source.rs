//! Location of a spec and its files: a folder on disk, or one embedded in the program.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anabranch_scenario::records::Manifest;
use anabranch_scenario::tree::SpecNode;

pub use crate::carried::EmbeddedFolder;

/// Folder in a results directory with copies of the `[reference]` files, each named `<key>.csv`.
pub(crate) const REFERENCE: &str = "reference";

/// Maximum size of a file, bytes. Needed because a spec of another user may name an endless file.
pub const MAX_FILE: u64 = 256 << 20;

/// A folder of text files.
#[derive(Clone, Debug)]
pub enum Folder {
    /// A folder on disk.
    Disk(PathBuf),
    /// A folder embedded in the program; file paths are relative to it.
    Carried(&'static EmbeddedFolder),
}

impl Folder {
    /// The folder that contains this file.
    pub fn of(file: &Path) -> Self {
        let parent = file.parent().filter(|parent| *parent != Path::new(""));
        Self::Disk(parent.unwrap_or(Path::new(".")).to_owned())
    }

    /// Path of a file in the folder, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            // "./mine.csv" is shown as "mine.csv".
            Self::Disk(folder) if folder == Path::new(".") => PathBuf::from(name),
            Self::Disk(folder) => folder.join(name),
            Self::Carried(folder) => Path::new(folder.name).join(name),
        }
    }

    /// Contents of a file in the folder.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        match self {
            Self::Disk(folder) => bounded(&folder.join(name)),
            Self::Carried(folder) => {
                let contents = folder.file(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(contents.to_owned())
            }
        }
    }

    /// Text of a file that is missing in this folder, if the folder is a results directory that
    /// stores the text. The spec in the manifest of such a directory still names the files in their
    /// original folder.
    pub fn kept(&self, name: &str) -> Option<String> {
        let Self::Disk(folder) = self else {
            return None;
        };
        match folder.join(name).try_exists() {
            Ok(false) => kept(folder, name),
            Ok(true) | Err(_) => None,
        }
    }

    /// Text of a file in the folder.
    ///
    /// # Errors
    /// Any error of the file system; a file that is not UTF-8.
    pub fn read(&self, name: &str) -> io::Result<String> {
        if let Some(text) = self.kept(name) {
            return Ok(text);
        }
        String::from_utf8(self.bytes(name)?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let what = format!("byte {at} is not UTF-8; the file must be text in UTF-8");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }
}

/// Text of a file by its name in the spec, from the manifest of a results directory or from its
/// copies of the reference files.
fn kept(results: &Path, name: &str) -> Option<String> {
    let text = |path: &Path| String::from_utf8(bounded(path).ok()?).ok();
    let manifest = text(&results.join("manifest.json"))?;
    let mut manifest: Manifest = serde_json::from_str(&manifest).ok()?;
    if let Some(file) = manifest.files.remove(name) {
        return Some(file);
    }
    let spec = SpecNode::parse(&manifest.spec).ok()?;
    let files = spec.get("reference")?.entries();
    let key = &files.iter().find(|it| it.node.text() == Some(name))?.key;
    text(&results.join(REFERENCE).join(format!("{key}.csv")))
}

/// Reads a file; an error if it exceeds the maximum size.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// The error for a file larger than [`MAX_FILE`].
pub fn too_large() -> io::Error {
    let what = format!("it has more than {} MiB", MAX_FILE >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(folder) => folder.display().fmt(f),
            Self::Carried(_) => f.write_str("the program itself"),
        }
    }
}
