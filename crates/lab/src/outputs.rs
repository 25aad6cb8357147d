//! Writes tables, figures and the report to files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_report::outputs::{OutputError, Outputs};

use crate::atomic_write::{self, Durability};
use crate::papers::PaperCatalog;

/// Error while writing outputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A table, figure or report could not be computed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// An error of the file system.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// The name of the paper of these outputs, if a command in the current directory would find the
/// paper by that name.
pub fn paper(outputs: &Outputs<'_>) -> Option<String> {
    let manifest = &outputs.results.manifest;
    let paper = PaperCatalog::standard().paper(&manifest.name).ok()?;
    let is_same = paper.text().is_ok_and(|text| text == manifest.spec);
    is_same.then_some(paper.name)
}

/// Writes tables, figures and the report below a directory. Each file is written atomically.
///
/// # Errors
/// The error of the first file that could not be written; files before it remain.
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
        atomic_write::write(&path, Durability::Buffered, |file| file.write_all(&bytes))
            .map_err(|source| WriteError::Io { path, source })?;
    }
    Ok(())
}
