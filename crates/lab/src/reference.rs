//! Files in `[reference]` of a spec. They are read before any run starts, and copied to the results
//! directory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_report::reference::{Reference, ReferenceError};
use anabranch_scenario::reference::{PUBLISHED, ReferenceFiles};

use crate::atomic_write::{self, Durability};
use crate::spec_source::{Folder, REFERENCE};

/// Error of reading or copying reference files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {path}, which `reference.{key}` names: {source}", path = path.display())]
    Read {
        /// Key in `[reference]`.
        key: String,
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file is invalid.
    #[error(transparent)]
    Wrong(#[from] ReferenceError),
    /// A file cannot be copied to the results.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Reference data with the text of its files.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Reference values.
    pub reference: Reference,
    texts: Vec<(String, String)>,
}

impl Loaded {
    /// Reads the files that a spec names, from its folder.
    ///
    /// # Errors
    /// The first file that cannot be read or is invalid.
    pub fn read(files: &ReferenceFiles, folder: &Folder) -> Result<Self, LoadError> {
        Self::read_as(files, folder, |_, file| file.to_owned())
    }

    /// Reads the copies stored with the results of a spec.
    ///
    /// # Errors
    /// The first file that cannot be read or is invalid.
    pub fn kept(files: &ReferenceFiles, results: &Path) -> Result<Self, LoadError> {
        let folder = Folder::Disk(results.join(REFERENCE));
        Self::read_as(files, &folder, |key, _| format!("{key}.csv"))
    }

    fn read_as(
        files: &ReferenceFiles,
        folder: &Folder,
        called: impl Fn(&str, &str) -> String,
    ) -> Result<Self, LoadError> {
        let mut loaded = Self::default();
        for (key, file) in files.all() {
            let file = called(key, file);
            let path = folder.path(&file);
            let text = folder.read(&file).map_err(|source| LoadError::Read {
                key: key.to_owned(),
                path: path.clone(),
                source,
            })?;
            let shown = path.display().to_string();
            match key {
                PUBLISHED => loaded.reference.read_published(&shown, &text)?,
                key => loaded.reference.read_baseline(key, &shown, &text)?,
            }
            loaded.texts.push((key.to_owned(), text));
        }
        Ok(loaded)
    }

    /// Whether `self` and `other` have files with the same contents.
    pub fn is_same(&self, other: &Self) -> bool {
        self.texts == other.texts
    }

    /// Copies the files to the results directory, so that they can be read even if the results are
    /// moved.
    ///
    /// # Errors
    /// [`LoadError::Write`].
    pub fn keep(&self, results: &Path) -> Result<(), LoadError> {
        let folder = results.join(REFERENCE);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LoadError::Write { path, source }
        };
        if !self.texts.is_empty() {
            fs::create_dir_all(&folder).map_err(failed(&folder))?;
        }
        for (key, text) in &self.texts {
            let path = folder.join(format!("{key}.csv"));
            atomic_write::write(&path, Durability::Buffered, |file| {
                file.write_all(text.as_bytes())
            })
            .map_err(failed(&path))?;
        }
        Ok(())
    }
}
