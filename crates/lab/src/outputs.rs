//! Tables, figures and the report as files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_report::outputs::{OutputError, Outputs};

use crate::papers::Shelves;
use crate::whole::{self, Keep};

/// Outputs that were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// They cannot be made.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The file system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// The name of the paper whose spec this is, as a command in this directory would find it.
pub fn paper(outputs: &Outputs<'_>) -> Option<String> {
    let manifest = &outputs.results.manifest;
    let paper = Shelves::standard().paper(&manifest.name).ok()?;
    let is_same = paper.text().is_ok_and(|text| text == manifest.spec);
    is_same.then_some(paper.name)
}

/// Writes tables, figures and report under a directory. Each file appears whole or not at all.
///
/// # Errors
/// The first file that cannot be written; those before it stay.
pub fn write(outputs: &Outputs<'_>, directory: &Path) -> Result<(), WriteError> {
    for folder in ["tables", "figures"] {
        let path = directory.join(folder);
        fs::create_dir_all(&path).map_err(|source| WriteError::Io { path, source })?;
    }
    let outputs = Outputs {
        paper: outputs.paper.clone().or_else(|| paper(outputs)),
        ..outputs.clone()
    };
    for (name, bytes) in outputs.files()? {
        let path = directory.join(name);
        whole::write(&path, Keep::Cheaply, |file| file.write_all(&bytes))
            .map_err(|source| WriteError::Io { path, source })?;
    }
    Ok(())
}
