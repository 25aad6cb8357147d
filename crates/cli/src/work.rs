//! What the commands do.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anabranch_engine::kinds::Standard;
use anabranch_engine::manual;
use anabranch_engine::plan::{Plan, Request};
use anabranch_engine::settings::TRANSPORTS;
use anabranch_engine::world;
use anabranch_lab::outputs::{self, WriteError};
use anabranch_lab::papers::{EXAMPLES, PAPERS, example, paper};
use anabranch_lab::reference;
use anabranch_lab::run::CaptureRequest;
use anabranch_lab::run::{self, Simulator};
use anabranch_lab::store::{Store, StoreError};
use anabranch_report::terminal::{self, Terminal};
use anabranch_report::{Outputs, Tally};
use anabranch_scenario::nearest::nearest;
use anabranch_scenario::schema::json_schema;

use crate::arguments::{Common, Reproduce, Run};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::wire::live::{self, MixedRunner};

/// Lists the papers.
pub fn papers() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for paper in PAPERS {
        let (name, title) = (paper.name, paper.title);
        writeln!(
            out,
            "{name:16} {title}\n{:16} anabranch reproduce {name}",
            ""
        )?;
    }
    Ok(())
}

/// Reproduces a paper.
pub fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    let name = &arguments.paper;
    let text = match paper(name) {
        Some(paper) => paper.spec,
        None => return Err(Failure::Asked(unknown_paper(name))),
    };
    work(
        &format!("{name}.toml"),
        text.to_owned(),
        &arguments.common,
        &[],
        &[],
    )
}

fn unknown_paper(name: &str) -> String {
    let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    let hint = nearest(name, names.iter().copied())
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    format!(
        "found {name:?}, but no paper has this name; known are: {}{hint}",
        names.join(", ")
    )
}

/// Runs a spec of the user's own.
pub fn run(arguments: &Run) -> Result<(), Failure> {
    let path = &arguments.spec;
    let text = read_spec(path)?;
    work(
        &path.display().to_string(),
        text,
        &arguments.common,
        &arguments.capture,
        &arguments.live,
    )
}

/// A spec from its file, or the example of that name where there is no such file.
fn read_spec(path: &Path) -> Result<String, Failure> {
    let error = match fs::read_to_string(path) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let missing = error.kind() == io::ErrorKind::NotFound;
    if let Some(text) = path.to_str().filter(|_| missing).and_then(example) {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
    let hint = if missing {
        format!("; examples that need no file are: {}", known.join(", "))
    } else {
        String::new()
    };
    let path = path.display();
    Err(Failure::Asked(format!(
        "cannot read the spec {path}: {error}{hint}"
    )))
}

/// Plans, runs, and writes everything that a spec asks for.
fn work(
    file: &str,
    text: String,
    common: &Common,
    captures: &[(String, PathBuf)],
    live: &[String],
) -> Result<(), Failure> {
    let plan = Plan::new(Request {
        file: file.to_owned(),
        text,
        overrides: common.set.clone(),
        only: common.only.clone(),
        replications: common.replications,
        quick: common.quick,
        seed: common.seed,
    })?;
    let directory = common
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(&plan.spec.name));
    check_captures(&plan, captures)?;
    live::check(&plan, live)?;
    let simulator = Simulator {
        captures: captures
            .iter()
            .map(|(link, path)| CaptureRequest {
                link: link.clone(),
                path: path.clone(),
            })
            .collect(),
        captured: plan
            .experiments
            .first()
            .map(|experiment| experiment.id.clone()),
    };
    let store = Store::create(&directory).map_err(|error| Failure::Directory(Box::new(error)))?;
    // What runs in real time is not to wait for a core.
    let jobs = if live.is_empty() {
        jobs(common.jobs)
    } else {
        1
    };
    let runner = MixedRunner { simulator, live };
    let bar = Bar::new();
    let results = run::run(&plan, &store, &runner, jobs, &bar);
    bar.clear();
    let results = results.map_err(|error| Failure::Run(Box::new(error), directory.clone()))?;
    let outputs_failed = |error: WriteError| Failure::Outputs(Box::new(error), directory.clone());
    let made = Outputs::make(&results, reference::embedded());
    let made = made.map_err(|error| outputs_failed(error.into()))?;
    outputs::write(&made, &directory).map_err(outputs_failed)?;
    summary(&made, &directory)
}

/// How many runs to make at a time: as asked, or one for each core.
pub fn jobs(asked: Option<u32>) -> usize {
    asked.map_or_else(
        || thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs as usize,
    )
}

/// Refuses captures of links that the world of the first run does not have.
fn check_captures(plan: &Plan, captures: &[(String, PathBuf)]) -> Result<(), Failure> {
    let known = world::link_names(&plan.spec);
    let known = || known.iter().map(String::as_str);
    for (link, _) in captures {
        if !known().any(|name| name == link) {
            let hint = nearest(link, known())
                .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            let all = known().collect::<Vec<_>>().join(", ");
            return Err(Failure::Asked(format!(
                "found --capture {link}=..., but the links are: {all}{hint}"
            )));
        }
    }
    Ok(())
}

/// Says in a few lines what was made.
fn summary(outputs: &Outputs<'_>, directory: &Path) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let tally = Tally::of(&outputs.tables);
    let runs = outputs.results.manifest.runs;
    writeln!(out, "{runs} {}", if runs == 1 { "run" } else { "runs" })?;
    for failure in outputs.results.failures() {
        writeln!(out, "failed: {failure}")?;
    }
    if tally.total() > 0 {
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
            Failure::Asked(format!(
                "{} holds no results: there is no {}",
                directory.display(),
                path.display()
            ))
        }
        error => Failure::Store(Box::new(error)),
    })?;
    let outputs = Outputs::make(&results, reference::embedded())
        .map_err(|error| Failure::Show(Box::new(error)))?;
    terminal::show(&outputs, Terminal::detect(), &mut io::stdout().lock())?;
    Ok(())
}

/// Prints the manual's page of settings, or the part about one transport, or what there is about one setting.
pub fn settings(transport: Option<&str>) -> Result<(), Failure> {
    let text = match transport {
        None => manual::page(),
        Some(name) => {
            let known = TRANSPORTS.iter().filter(|kind| !kind.settings.is_empty());
            let kind = known.clone().find(|kind| kind.name == name);
            let kind = kind.ok_or_else(|| {
                let names: Vec<&str> = known.map(|kind| kind.name).collect();
                Failure::Asked(format!(
                    "found {name:?}; transports with settings: {}",
                    names.join(", ")
                ))
            })?;
            manual::of(kind)
        }
    };
    write!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Prints the schema.
pub fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&json_schema(&Standard::default()))
        .map_err(io::Error::from)?;
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}
