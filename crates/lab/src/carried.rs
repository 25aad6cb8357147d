//! The folders of papers and examples that are embedded in the program. The build script lists
//! their files.

use std::path::Path;

/// An embedded folder.
#[derive(Debug)]
pub struct EmbeddedFolder {
    /// Name of the folder.
    pub(crate) name: &'static str,
    /// Paths below the folder, and contents.
    pub(crate) files: &'static [(&'static str, &'static [u8])],
}

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

impl EmbeddedFolder {
    /// Contents of a file.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> Option<&'static [u8]> {
        let mut files = self.files.iter();
        let found = files.find(|(path, _)| Path::new(path) == name.as_ref());
        found.map(|(_, contents)| *contents)
    }
}

/// The paper with this name.
pub(crate) fn paper(name: &str) -> Option<&'static EmbeddedFolder> {
    PAPERS.iter().find(|paper| paper.name == name)
}
