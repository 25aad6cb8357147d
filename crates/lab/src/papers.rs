//! Papers: folders with a spec and what it is compared with, found when the program runs.
//!
//! ```text
//! <name>/paper.toml       the spec; its `name` is that of the folder
//! <name>/published.csv    what was printed, and whatever else its `[reference]` names
//! ```
//! They are looked for in `papers` of the working directory, in `anabranch/papers` of the user's data
//! (`$XDG_DATA_HOME`, or `~/.local/share`), and in what the program carries. The first of a name hides the others.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_scenario::Spec;
use anabranch_scenario::nearest::nearest;
use anabranch_scenario::problem::{Problem, SpecError};
use anabranch_scenario::tree::{Node, NodeValue};
use include_dir::{Dir, include_dir};

use crate::folder::Folder;
use crate::reference::{LoadError, Loaded};

static CARRIED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/carried/papers");
static EXAMPLES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/carried/examples");

/// The spec of a paper's folder.
pub const SPEC: &str = "paper.toml";

/// A paper that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// No folder has this name.
    #[error("found {name:?}, but no paper has this name; known are: {known}{hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
        /// The nearest of them, as a question.
        hint: String,
    },
    /// Its folder cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// Which file or folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Its spec is wrong.
    #[error(transparent)]
    Spec(Box<SpecError>),
}

/// A paper's folder.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its name, which is that of the folder.
    pub name: String,
    /// Where it stands.
    pub folder: Folder,
    /// Folders of the same name that it hides, the nearest first.
    pub hides: Vec<Folder>,
}

impl Paper {
    /// The text of its spec.
    ///
    /// # Errors
    /// [`PaperError::Read`]; a name in the spec that is not the folder's.
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

    /// What the text of its spec says, if it is TOML and has the name of the folder.
    fn checked(&self, text: &str) -> Result<Node, PaperError> {
        let wrong = |problems: Vec<Problem>| {
            let file = self.spec_path().display().to_string();
            PaperError::Spec(Box::new(SpecError::new(&file, text, &[], problems)))
        };
        let root = Node::parse(text).map_err(wrong)?;
        if let Some(name) = root.get("name")
            && let NodeValue::Text(found) = &name.value
            && *found != self.name
        {
            let message = format!(
                "found {found:?}; a paper is called as its folder, which is {:?}",
                self.name
            );
            return Err(wrong(vec![Problem::new(
                name.place.clone(),
                "name",
                message,
            )]));
        }
        Ok(root)
    }

    /// The path of its spec, for messages.
    pub fn spec_path(&self) -> PathBuf {
        self.folder.path(SPEC)
    }

    /// What it is about, as its spec says. Of a spec that the program carries, wherever it was found, nobody need check more than that.
    ///
    /// # Errors
    /// A spec that cannot be read.
    pub fn title(&self) -> Result<String, PaperError> {
        let text = self.unchecked()?;
        let carried = CARRIED.get_file(Path::new(&self.name).join(SPEC));
        let is_carried = carried.is_some_and(|file| file.contents() == text.as_bytes());
        // The keys of the document itself stand before its first table.
        let head = text.find("\n[").filter(|_| is_carried);
        let root = self.checked(&text[..head.unwrap_or(text.len())])?;
        Ok(match root.get("title").map(|title| &title.value) {
            Some(NodeValue::Text(title)) => title.clone(),
            _ => String::new(),
        })
    }

    /// What its spec, once it is read, is compared with.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn reference(&self, spec: &Spec) -> Result<Loaded, LoadError> {
        Loaded::read(&spec.reference, &self.folder)
    }
}

/// Where papers are looked for, the nearest place first.
#[derive(Clone, Debug)]
pub struct Shelves {
    folders: Vec<Folder>,
}

impl Shelves {
    /// The places of this process: working directory, the user's data, and what the program carries.
    pub fn standard() -> Self {
        let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        // The XDG Base Directory Specification has relative paths ignored.
        let data = data.filter(|data| data.is_absolute()).or_else(|| {
            let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(".local/share"))
        });
        let user = data.map(|data| data.join("anabranch/papers"));
        Self::of([PathBuf::from("papers")].into_iter().chain(user))
    }

    /// These folders of papers, and what the program carries.
    pub fn of(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let carried = [Folder::Carried(&CARRIED)];
        Self {
            folders: folders
                .into_iter()
                .map(Folder::Disk)
                .chain(carried)
                .collect(),
        }
    }

    /// All papers, by the year that their names end in. A folder without a `paper.toml` is something else.
    ///
    /// # Errors
    /// A shelf that is there and cannot be read.
    pub fn papers(&self) -> Result<Vec<Paper>, PaperError> {
        let mut found: BTreeMap<(String, String), Paper> = BTreeMap::new();
        for shelf in &self.folders {
            for (name, folder) in books(shelf)? {
                let year = name.trim_start_matches(|c: char| !c.is_ascii_digit());
                let paper = found.entry((year.to_owned(), name.clone()));
                paper
                    .and_modify(|paper| paper.hides.push(folder.clone()))
                    .or_insert_with(|| Paper {
                        name,
                        folder,
                        hides: Vec::new(),
                    });
            }
        }
        Ok(found.into_values().collect())
    }

    /// The paper of a name: the nearest.
    ///
    /// # Errors
    /// [`PaperError::Unknown`], or a shelf that cannot be read.
    pub fn paper(&self, name: &str) -> Result<Paper, PaperError> {
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

/// The papers of one shelf.
fn books(shelf: &Folder) -> Result<Vec<(String, Folder)>, PaperError> {
    let directory = match shelf {
        Folder::Carried(carried) => {
            let name = |folder: &Dir<'_>| folder.path().to_string_lossy().into_owned();
            let folders = carried
                .dirs()
                .map(|folder| (name(folder), Folder::Carried(folder)));
            return Ok(folders.collect());
        }
        Folder::Disk(directory) => directory,
    };
    let failed = |source| PaperError::Read {
        path: directory.clone(),
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
        // Whether it can be read is found when it is.
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

/// A paper that the program carries, wherever it runs.
///
/// # Errors
/// [`PaperError::Unknown`].
pub fn carried(name: &str) -> Result<Paper, PaperError> {
    Shelves::of([]).paper(name)
}

/// The names of the specs that the program carries beside papers.
pub fn examples() -> Vec<String> {
    let stems = EXAMPLES.files().filter_map(|file| {
        let path = file.path();
        let is_spec = path.extension().is_some_and(|end| end == "toml");
        let stem = path.file_stem().filter(|_| is_spec)?;
        Some(stem.to_str()?.to_owned())
    });
    let mut names: Vec<String> = stems.collect();
    names.sort();
    names
}

/// The example of a name, and the folder of what it is compared with.
pub fn example(name: &str) -> Option<(&'static str, Folder)> {
    let file = EXAMPLES.get_file(Path::new(&format!("{name}.toml")))?;
    Some((file.contents_utf8()?, Folder::Carried(&EXAMPLES)))
}
