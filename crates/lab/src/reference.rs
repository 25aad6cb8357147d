//! The files that a spec's `[reference]` names: read before anything is run, and kept with the results.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_report::reference::{Reference, ReferenceError};
use anabranch_scenario::reference::{PUBLISHED, ReferenceFiles};

use crate::folder::{Folder, REFERENCE};
use crate::whole::{self, Keep};

/// Reference data that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {path}, which `reference.{key}` names: {source}", path = path.display())]
    Read {
        /// The key in `[reference]`.
        key: String,
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A file is wrong.
    #[error(transparent)]
    Wrong(#[from] ReferenceError),
    /// A file cannot be kept with the results.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

/// Reference data as read, with the text of its files.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// What is compared with.
    pub reference: Reference,
    texts: Vec<(String, String)>,
}

impl Loaded {
    /// Reads the files that a spec names, which stand in its folder.
    ///
    /// # Errors
    /// The first file that cannot be read or is wrong.
    pub fn read(files: &ReferenceFiles, folder: &Folder) -> Result<Self, LoadError> {
        Self::read_as(files, folder, |_, file| file.to_owned())
    }

    /// Reads what was kept with the results of a spec.
    ///
    /// # Errors
    /// The first file that cannot be read or is wrong.
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
                key => loaded.reference.read_yardstick(key, &shown, &text)?,
            }
            loaded.texts.push((key.to_owned(), text));
        }
        Ok(loaded)
    }

    /// Whether the files of the two hold the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.texts == other.texts
    }

    /// Keeps the files with the results of their spec, so that these can be read again wherever they are.
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
            whole::write(&path, Keep::Cheaply, |file| file.write_all(text.as_bytes()))
                .map_err(failed(&path))?;
        }
        Ok(())
    }
}
