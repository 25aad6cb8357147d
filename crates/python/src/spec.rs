//! Specs: creating, reading, changing and writing them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_engine::plan::PlanRequest;
use anabranch_lab::papers::{
    PaperCatalog, PaperError, PaperFolder, SPEC, example, examples as carried,
};
use anabranch_lab::spec_files;
use anabranch_lab::spec_source::Folder;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::document::Document;
use anabranch_scenario::tree::SpecNode;
use pyo3::exceptions::{PyKeyError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{find, known, to_node, to_python};
use crate::error;
use crate::kinds;

/// A spec: nodes, links, flows, measures and sweeps, as in a TOML file.
///
/// `Spec(name, **sections)` creates one; `Spec.read`, `Spec.parse`, `Spec.paper` and `Spec.example`
/// load one. Values are accessed by their path with the syntax of `--set`:
/// `spec["link.wire.rate"] = "2 Mbit/s"`. A spec is validated only by `check` or by a run.
#[pyclass(module = "anabranch")]
#[derive(Clone, Debug)]
pub struct Spec {
    /// File name for messages.
    pub file: String,
    /// Text of the spec as it was read; `None` if it was changed or built.
    pub text: Option<String>,
    /// The values, with parameters and expressions as written.
    pub document: Document,
    /// Folder of the files that the spec names.
    pub folder: Folder,
}

impl Spec {
    /// Parses a spec.
    ///
    /// # Errors
    /// The text is not valid TOML.
    pub fn of(file: String, text: String, folder: Folder) -> PyResult<Self> {
        let document = Document::parse(&text)
            .map_err(|problems| error::spec(&SpecError::new(&file, &text, &[], problems)))?;
        Ok(Self {
            file,
            text: Some(text),
            document,
            folder,
        })
    }

    /// The text of the spec.
    pub fn toml(&self) -> String {
        let text = self.text.clone();
        text.unwrap_or_else(|| self.document.to_toml())
    }

    fn change(&mut self, change: impl FnOnce(Document) -> Document) -> PyResult<()> {
        let changed = change(self.document.clone());
        if let Some(problem) = changed.problems().first() {
            let mut message = format!("{}: {}", problem.key, problem.message);
            if !problem.allowed.is_empty() {
                message += &format!("; there are: {}", problem.allowed.join(", "));
            }
            return Err(PyKeyError::new_err(message));
        }
        self.document = changed;
        self.text = None;
        Ok(())
    }

    fn text_at(&self, key: &str) -> String {
        let found = self.document.root().get(key).and_then(SpecNode::text);
        found.unwrap_or_default().to_owned()
    }
}

#[pymethods]
impl Spec {
    /// Spec(name, **sections): a spec built from sections; a section is a dict, or a list of dicts
    /// if it can occur several times.
    #[new]
    #[pyo3(signature = (name, **sections))]
    fn new(name: &str, sections: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut spec = Self {
            file: name.to_owned(),
            text: None,
            document: Document::new(name),
            folder: Folder::Disk(PathBuf::from(".")),
        };
        for (key, value) in sections.into_iter().flatten() {
            let key: String = key.extract()?;
            let node = to_node(&value)?;
            spec.change(|document| document.with(&key, node))?;
        }
        Ok(spec)
    }

    /// read(path): reads a spec from a file. Files that it names are relative to its directory.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        let text = fs::read_to_string(&path).map_err(|error| at(&path, error))?;
        Self::of(path.display().to_string(), text, Folder::of(&path))
    }

    /// parse(text): the spec in a TOML text.
    #[staticmethod]
    fn parse(text: String) -> PyResult<Self> {
        Self::of("spec".to_owned(), text, Folder::Disk(PathBuf::from(".")))
    }

    /// paper(name): the spec of a paper, with its reference data. `papers()` lists the names.
    #[staticmethod]
    fn paper(name: &str) -> PyResult<Self> {
        let refused = |error| match error {
            PaperError::Spec(error) => error::spec(&error),
            error => error::asked(error),
        };
        let paper = PaperCatalog::standard().paper(name).map_err(refused)?;
        let text = paper.text().map_err(refused)?;
        let file = paper.folder.path(SPEC).display().to_string();
        Self::of(file, text, paper.folder)
    }

    /// example(name): a spec that the package includes. `examples()` lists the names.
    #[staticmethod]
    #[pyo3(name = "example")]
    fn of_example(name: &str) -> PyResult<Self> {
        let (text, folder) = example(name).ok_or_else(|| {
            let known = carried().join(", ");
            error::asked(format!("found {name:?}; the examples are: {known}"))
        })?;
        Self::of(format!("{name}.toml"), text.to_owned(), folder)
    }

    /// Name of the spec, which is also the name of the results directory.
    #[getter]
    fn name(&self) -> String {
        self.text_at("name")
    }

    /// Title.
    #[getter]
    fn title(&self) -> String {
        self.text_at("title")
    }

    /// The value at a path.
    fn __getitem__<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = find(self.document.root(), path);
        let found = found.ok_or_else(|| {
            let known = known(self.document.root(), path).join(", ");
            PyKeyError::new_err(format!("{path}: there are: {known}"))
        })?;
        to_python(py, found)
    }

    /// Sets the value at a path; all parts of the path except the last must exist.
    fn __setitem__(&mut self, path: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let node = to_node(value)?;
        self.change(|document| document.with(path, node))
    }

    fn __contains__(&self, path: &str) -> bool {
        find(self.document.root(), path).is_some()
    }

    /// get(path, default=None): the value at a path, or the default.
    #[pyo3(signature = (path, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match find(self.document.root(), path) {
            Some(node) => Ok(Some(to_python(py, node)?)),
            None => Ok(default),
        }
    }

    /// append(section, table): adds a table to a section that can occur several times ("node",
    /// "link", "flow", "measure", ...).
    fn append(&mut self, section: &str, table: &Bound<'_, PyAny>) -> PyResult<()> {
        let node = to_node(table)?;
        if node.entries().is_empty() {
            return Err(PyTypeError::new_err(
                "a section takes a dict that is not empty",
            ));
        }
        self.change(|document| document.push(section, node))
    }

    /// check(): raises SpecError with all errors of the spec. A run does this check too.
    fn check(&self) -> PyResult<()> {
        let request = PlanRequest::new(self.file.clone(), self.toml())
            .with(|it| it.files = spec_files::files(&self.folder));
        kinds::plan(request).map(drop)
    }

    /// The spec as TOML.
    fn to_toml(&self) -> String {
        self.toml()
    }

    /// The spec as a dict, with its parameters and expressions as written.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.document.root())
    }

    /// write(path): writes the spec to a file.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        fs::write(&path, self.toml()).map_err(|error| at(&path, error))
    }

    /// A copy of the spec, which can be changed independently.
    fn copy(&self) -> Self {
        self.clone()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>();
        other.is_ok_and(|other| self.document == other.borrow().document)
    }

    fn __repr__(&self) -> String {
        format!("Spec({:?})", self.text_at("name"))
    }
}

/// Converts an I/O error to the matching Python exception (such as FileNotFoundError), with the
/// name of the file.
fn at(path: &Path, error: io::Error) -> PyErr {
    let code = error.raw_os_error();
    let words = error.to_string();
    match code {
        Some(code) => PyOSError::new_err((code, words, path.to_owned())),
        None => PyValueError::new_err(format!("{}: {words}", path.display())),
    }
}

/// papers(): names of the papers that can be reproduced, with their titles.
#[pyfunction]
pub fn papers() -> PyResult<Vec<(String, String)>> {
    let papers = PaperCatalog::standard().papers().map_err(error::asked)?;
    let line = |paper: &PaperFolder| {
        let title = paper.title().map_err(error::asked)?;
        Ok((paper.name.clone(), title))
    };
    papers.iter().map(line).collect()
}

/// examples(): names of the specs that the package includes.
#[pyfunction]
pub fn examples() -> Vec<String> {
    carried()
}
