//! Papers: folders with a spec and its reference values, which are found at run time.
//!
//! ```text
//! <name>/paper.toml       the spec; its `name` must be that of the folder
//! <name>/published.csv    published values, and other files named in `[reference]`
//! ```
//!
//! Papers are searched in `papers` of the working directory, in `anabranch/papers` of the user's
//! data directory (`$XDG_DATA_HOME`, or `~/.local/share`), and among the folders that are embedded
//! in the program. If several have the same name, the first one found is used.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_scenario::Spec;
use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::suggest::nearest;
use anabranch_scenario::tree::{NodeValue, SpecNode};

use crate::carried::{self, EXAMPLES, PAPERS};
use crate::reference::{LoadError, Loaded};
use crate::spec_source::Folder;

/// File name of the spec in the folder of a paper.
pub const SPEC: &str = "paper.toml";

/// Error of finding or reading a paper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// No folder has this name.
    #[error("found {name:?}, but no paper has this name; known are: {known}{hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing names.
        known: String,
        /// The most similar name, as a question.
        hint: String,
    },
    /// The folder cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The spec is invalid.
    #[error(transparent)]
    Spec(Box<SpecError>),
}

/// The folder of a paper.
#[derive(Clone, Debug)]
pub struct PaperFolder {
    /// Name, which is that of the folder.
    pub name: String,
    /// Location of the folder.
    pub folder: Folder,
    /// Folders with the same name that come later in the search path, so that this one hides them,
    /// in search order.
    pub hides: Vec<Folder>,
}

impl PaperFolder {
    /// Text of the spec.
    ///
    /// # Errors
    /// [`PaperError::Read`], also if the name in the spec differs from that of the folder.
    pub fn text(&self) -> Result<String, PaperError> {
        let text = self.unchecked()?;
        self.checked(&text)?;
        Ok(text)
    }

    fn unchecked(&self) -> Result<String, PaperError> {
        self.folder.read(SPEC).map_err(|source| PaperError::Read {
            path: self.spec_path(),
            source,
        })
    }

    /// The parsed spec; an error if it is not TOML or has another name than the folder.
    fn checked(&self, text: &str) -> Result<SpecNode, PaperError> {
        let wrong = |problems: Vec<Diagnostic>| {
            let file = self.spec_path().display().to_string();
            PaperError::Spec(Box::new(SpecError::new(&file, text, &[], problems)))
        };
        let root = SpecNode::parse(text).map_err(wrong)?;
        if let Some(name) = root.get("name")
            && let NodeValue::Text(found) = &name.value
            && *found != self.name
        {
            let message = format!(
                "found {found:?}; a paper is called as its folder, which is {:?}",
                self.name
            );
            return Err(wrong(vec![Diagnostic::new(
                name.place.clone(),
                "name",
                message,
            )]));
        }
        Ok(root)
    }

    /// Path of the spec, for messages.
    pub fn spec_path(&self) -> PathBuf {
        self.folder.path(SPEC)
    }

    /// Title in the spec. A spec that equals the embedded one is not checked further, even if it
    /// was found on disk, because it is known to be correct.
    ///
    /// # Errors
    /// The spec cannot be read.
    pub fn title(&self) -> Result<String, PaperError> {
        let text = self.unchecked()?;
        let carried = carried::paper(&self.name).and_then(|paper| paper.file(SPEC));
        let is_carried = carried.is_some_and(|contents| contents == text.as_bytes());
        // Only the top-level keys, which come before the first table, are parsed.
        let head = text.find("\n[").filter(|_| is_carried);
        let root = self.checked(&text[..head.unwrap_or(text.len())])?;
        Ok(match root.get("title").map(|title| &title.value) {
            Some(NodeValue::Text(title)) => title.clone(),
            _ => String::new(),
        })
    }

    /// Reference values of the spec.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn reference(&self, spec: &Spec) -> Result<Loaded, LoadError> {
        Loaded::read(&spec.reference, &self.folder)
    }
}

/// Search path for papers. The embedded papers follow.
#[derive(Clone, Debug)]
pub struct PaperCatalog {
    folders: Vec<PathBuf>,
}

impl PaperCatalog {
    /// Default search path of this process: working directory, data directory of the user, embedded
    /// folders.
    pub fn standard() -> Self {
        let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        // The XDG Base Directory Specification requires that relative paths are ignored.
        let data = data.filter(|data| data.is_absolute()).or_else(|| {
            let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(".local/share"))
        });
        let user = data.map(|data| data.join("anabranch/papers"));
        Self::of([PathBuf::from("papers")].into_iter().chain(user))
    }

    /// A search path of these folders, followed by the embedded ones.
    pub fn of(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            folders: folders.into_iter().collect(),
        }
    }

    /// All papers, ordered by the year at the end of their names. Folders without a `paper.toml`
    /// are skipped.
    ///
    /// # Errors
    /// An existing folder of the search path cannot be read.
    pub fn papers(&self) -> Result<Vec<PaperFolder>, PaperError> {
        let mut found: BTreeMap<(String, String), PaperFolder> = BTreeMap::new();
        let mut folders = Vec::new();
        for root in &self.folders {
            folders.extend(papers_in(root)?);
        }
        let carried = PAPERS.iter();
        folders.extend(carried.map(|it| (it.name.to_owned(), Folder::Carried(it))));
        for (name, folder) in folders {
            let year = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            let paper = found.entry((year.to_owned(), name.clone()));
            paper
                .and_modify(|paper| paper.hides.push(folder.clone()))
                .or_insert_with(|| PaperFolder {
                    name,
                    folder,
                    hides: Vec::new(),
                });
        }
        Ok(found.into_values().collect())
    }

    /// The first paper with this name on the search path.
    ///
    /// # Errors
    /// [`PaperError::Unknown`], or an existing folder of the search path cannot be read.
    pub fn paper(&self, name: &str) -> Result<PaperFolder, PaperError> {
        let papers = self.papers()?;
        let names: Vec<&str> = papers.iter().map(|paper| paper.name.as_str()).collect();
        papers
            .iter()
            .find(|paper| paper.name == name)
            .cloned()
            .ok_or_else(|| PaperError::Unknown {
                name: name.to_owned(),
                known: names.join(", "),
                hint: nearest(name, names.iter().copied())
                    .map_or(String::new(), |near| format!("; did you mean `{near}`?")),
            })
    }
}

/// All papers in one folder of the search path.
fn papers_in(directory: &Path) -> Result<Vec<(String, Folder)>, PaperError> {
    let failed = |source| PaperError::Read {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        // Only existence is checked here; reading the file is checked later.
        let is_paper = fs::symlink_metadata(path.join(SPEC)).is_ok();
        if let Some(name) = name.filter(|_| is_paper) {
            found.push((name.to_owned(), Folder::Disk(path.clone())));
        }
    }
    Ok(found)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The embedded paper with this name, independent of the working directory.
///
/// # Errors
/// [`PaperError::Unknown`].
pub fn carried(name: &str) -> Result<PaperFolder, PaperError> {
    PaperCatalog::of([]).paper(name)
}

/// Names of the embedded examples.
pub fn examples() -> Vec<String> {
    let paths = EXAMPLES.files.iter().map(|(path, _)| path);
    // Only specs directly in the folder are examples.
    let stems = paths.filter_map(|path| path.strip_suffix(".toml").filter(|it| !it.contains('/')));
    let mut names: Vec<String> = stems.map(str::to_owned).collect();
    names.sort();
    names
}

/// The embedded example with this name, and the folder with its reference values.
pub fn example(name: &str) -> Option<(&'static str, Folder)> {
    let contents = EXAMPLES.file(format!("{name}.toml"))?;
    Some((str::from_utf8(contents).ok()?, Folder::Carried(&EXAMPLES)))
}
