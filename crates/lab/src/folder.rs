//! Where a spec and the files beside it stand: a folder on the disk, or one that the program carries.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anabranch_scenario::records::Manifest;
use anabranch_scenario::tree::Node;
use include_dir::Dir;

/// The folder of a results directory in which the files of `[reference]` are kept, each as `<key>.csv`.
pub(crate) const REFERENCE: &str = "reference";

/// Bytes of a file. A spec of somebody else's may name one that never ends.
pub const MAX_FILE: u64 = 256 << 20;

/// A folder of text files.
#[derive(Clone, Debug)]
pub enum Folder {
    /// On the disk.
    Disk(PathBuf),
    /// Carried by the program; files have their paths below this.
    Carried(&'static Dir<'static>),
}

impl Folder {
    /// The folder in which a file stands.
    pub fn of(file: &Path) -> Self {
        let parent = file.parent().filter(|parent| *parent != Path::new(""));
        Folder::Disk(parent.unwrap_or(Path::new(".")).to_owned())
    }

    /// The path of a file in it, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            // "./mine.csv" says no more than "mine.csv".
            Folder::Disk(folder) if folder == Path::new(".") => PathBuf::from(name),
            Folder::Disk(folder) => folder.join(name),
            Folder::Carried(folder) => folder.path().join(name),
        }
    }

    /// What a file in it holds.
    ///
    /// # Errors
    /// What the file system said.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        match self {
            Folder::Disk(folder) => bounded(&folder.join(name)),
            Folder::Carried(folder) => {
                let file = folder.get_file(folder.path().join(name));
                let file = file.ok_or(io::ErrorKind::NotFound)?;
                Ok(file.contents().to_owned())
            }
        }
    }

    /// The text of a file that is missing in a results directory, and that its runs were made with: a spec kept there names the files
    /// that stood in its first folder.
    pub fn kept(&self, name: &str) -> Option<String> {
        let Folder::Disk(folder) = self else {
            return None;
        };
        match folder.join(name).try_exists() {
            Ok(false) => kept(folder, name),
            Ok(true) | Err(_) => None,
        }
    }

    /// The text of a file in it.
    ///
    /// # Errors
    /// What the file system said; a file that is not UTF-8.
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

/// The text of a file by the name that the spec of a results directory has for it.
fn kept(results: &Path, name: &str) -> Option<String> {
    let text = |path: &Path| String::from_utf8(bounded(path).ok()?).ok();
    let manifest = text(&results.join("manifest.json"))?;
    let mut manifest: Manifest = serde_json::from_str(&manifest).ok()?;
    if let Some(file) = manifest.files.remove(name) {
        return Some(file);
    }
    let spec = Node::parse(&manifest.spec).ok()?;
    let files = spec.get("reference")?.entries();
    let key = &files.iter().find(|it| it.node.text() == Some(name))?.key;
    text(&results.join(REFERENCE).join(format!("{key}.csv")))
}

/// What a file holds, if that is not more than it may be.
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

/// That a file has more than [`MAX_FILE`].
pub fn too_large() -> io::Error {
    let what = format!("it has more than {} MiB", MAX_FILE >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Folder::Disk(folder) => folder.display().fmt(f),
            Folder::Carried(_) => f.write_str("the program itself"),
        }
    }
}
