//! What the commands do.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anabranch_lab::output::terminal::{self, Terminal};
use anabranch_lab::output::{OutputError, Outputs, Tally};
use anabranch_lab::papers::{PAPERS, paper};
use anabranch_lab::plan::{Plan, Request};
use anabranch_lab::reference::Reference;
use anabranch_lab::run::{self, RunError, Simulator};
use anabranch_lab::spec::nearest::nearest;
use anabranch_lab::spec::problem::SpecError;
use anabranch_lab::spec::schema::json_schema;
use anabranch_lab::store::{Store, StoreError};
use anabranch_lab::world::{CaptureRequest, WorldError};

use crate::arguments::{Common, Reproduce, Run};
use crate::progress::Bar;

/// Why a command did not do all it should.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something that is not there.
    Asked(String),
    /// The spec is wrong.
    Spec(SpecError),
    /// The runs, or their keeping, failed; what was finished is in the directory.
    Run(RunError, PathBuf),
    /// A run failed whose results are kept nowhere.
    Search(RunError),
    /// Results could not be read.
    Store(StoreError),
    /// Tables, figures or the report could not be made.
    Outputs(OutputError),
    /// Standard output does not take more.
    Output(io::Error),
}

impl Failure {
    /// The exit status: 2 where nothing was run because of what was asked, 1 for everything else.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Asked(_) | Failure::Spec(_) | Failure::Run(RunError::World { source: WorldError::NoSuchLink { .. }, .. }, _) => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Asked(message) => write!(f, "error: {message}"),
            Failure::Spec(error) => error.fmt(f),
            Failure::Run(error, directory) => write!(
                f,
                "error: {error}\nFinished runs are kept in {}; the same command goes on from there.",
                directory.display()
            ),
            Failure::Search(error) => write!(f, "error: {error}"),
            Failure::Store(error) => write!(f, "error: {error}"),
            Failure::Outputs(error) => write!(f, "error: {error}"),
            Failure::Output(error) => write!(f, "error: cannot write to standard output: {error}"),
        }
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Failure::Spec(error)
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Failure::Outputs(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Lists the papers.
pub fn papers() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for paper in PAPERS {
        let state = match paper.spec {
            Some(_) => format!("anabranch reproduce {}", paper.name),
            None => format!("not yet: {} is missing", paper.missing),
        };
        writeln!(out, "{:16} {}\n{:16} {state}", paper.name, paper.title, "")?;
    }
    Ok(())
}

/// Reproduces a paper.
pub fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    let name = &arguments.paper;
    let text = match paper(name) {
        Some(paper) => paper.spec.ok_or_else(|| {
            Failure::Asked(format!("{name} cannot be reproduced yet: {} is missing", paper.missing))
        })?,
        None => return Err(Failure::Asked(unknown_paper(name))),
    };
    work(&format!("{name}.toml"), text.to_owned(), &arguments.common, &[])
}

fn unknown_paper(name: &str) -> String {
    let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    let hint = nearest(name, names.iter().copied()).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    format!("found {name:?}, but no paper has this name; known are: {}{hint}", names.join(", "))
}

/// Runs a spec of the user's own.
pub fn run(arguments: &Run) -> Result<(), Failure> {
    let path = &arguments.spec;
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Asked(format!("cannot read the spec {}: {error}", path.display())))?;
    work(&path.display().to_string(), text, &arguments.common, &arguments.capture)
}

/// Plans, runs, and writes everything that a spec asks for.
fn work(file: &str, text: String, common: &Common, captures: &[(String, PathBuf)]) -> Result<(), Failure> {
    let plan = Plan::new(Request {
        file: file.to_owned(),
        text,
        overrides: common.set.clone(),
        only: common.only.clone(),
        replications: common.replications,
        quick: common.quick,
        seed: common.seed,
    })?;
    let directory = common.out.clone().unwrap_or_else(|| PathBuf::from(&plan.spec.name));
    let runner = Simulator {
        captures: captures.iter().map(|(link, path)| CaptureRequest { link: link.clone(), path: path.clone() }).collect(),
        captured: plan.experiments.first().map(|experiment| experiment.id.clone()),
    };
    let store = Store::create(&directory).map_err(Failure::Store)?;
    let jobs = jobs(common.jobs);
    let bar = Bar::new();
    let results = run::run(&plan, &store, &runner, jobs, &bar);
    bar.clear();
    let results = results.map_err(|error| Failure::Run(error, directory.clone()))?;
    let outputs = Outputs::make(&results, Reference::embedded())?;
    outputs.write(&directory)?;
    summary(&outputs, &directory, common.only.is_empty())
}

/// How many runs to make at a time: as asked, or one for each core.
pub fn jobs(asked: Option<u32>) -> usize {
    asked.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize)
}

/// Says in a few lines what was made.
fn summary(outputs: &Outputs<'_>, directory: &Path, whole: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let tally = Tally::of(&outputs.tables);
    writeln!(out, "{} runs", outputs.results.manifest.runs)?;
    if tally.total() > 0 && whole {
        writeln!(
            out,
            "printed values: {} reproduced, {} differ, {} not attempted",
            tally.reproduced, tally.differs, tally.not_attempted
        )?;
    }
    writeln!(out, "report: {}", directory.join("report.html").display())?;
    writeln!(out, "tables: anabranch show {}", directory.display())?;
    Ok(())
}

/// Shows a finished run.
pub fn show(directory: &Path) -> Result<(), Failure> {
    let (_, results) = Store::open(directory).map_err(|error| match error {
        StoreError::Read { path, source } if source.kind() == io::ErrorKind::NotFound => {
            Failure::Asked(format!("{} holds no results: there is no {}", directory.display(), path.display()))
        }
        error => Failure::Store(error),
    })?;
    let outputs = Outputs::make(&results, Reference::embedded())?;
    terminal::show(&outputs, Terminal::detect(), &mut io::stdout().lock())?;
    Ok(())
}

/// Prints the schema.
pub fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&json_schema()).map_err(io::Error::from)?;
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}
