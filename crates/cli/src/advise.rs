//! `anabranch advise`: the answer a user comes for.

use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_advise::evidence::Advice;
use anabranch_advise::spec::{Evidence, FIGURE};
use anabranch_advise::trials::{Unwatched, Watch};
use anabranch_advise::{AdviseError, Question, words};
use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_lab::outputs::{WriteError, write};
use anabranch_lab::run::{self, Progress, Simulator};
use anabranch_lab::store::{self, Store, StoreError};
use anabranch_report::Outputs;
use anabranch_report::reference::Reference;
use anabranch_report::terminal::{self, Terminal};
use anabranch_scenario::records::Results;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::arguments::Advise;
use crate::failure::Failure;
use crate::work::jobs;

/// Searches, runs the evidence, and says what came out.
pub fn advise(arguments: &Advise) -> Result<(), Failure> {
    let question = question(arguments).checked().map_err(refused)?;
    let store = arguments
        .out
        .as_deref()
        .map(Store::create)
        .transpose()
        .map_err(|error| Failure::Directory(Box::new(error)))?;
    let jobs = jobs(arguments.jobs);
    let bar = (!arguments.quiet).then(Bar::new);
    let watch: &dyn Watch = bar.as_ref().map_or(&Unwatched, |bar| bar);
    watch.stage("1 of 3: looking at the path");
    let question = anabranch_advise::timed(question, jobs, watch).map_err(refused)?;
    watch.stage("2 of 3: searching");
    let search = anabranch_advise::find(&question, jobs, watch).map_err(refused)?;
    let evidence = Evidence::plan(&question, &search).map_err(refused)?;
    let results = show(&evidence, question.seed, store.as_ref(), jobs, watch)?;
    if let Some(bar) = &bar {
        bar.clear();
    }
    let advice = Advice::of(&question, &search, &evidence, &results);
    let outputs = Outputs::make(&results, &Reference::default())
        .map_err(|error| Failure::Show(Box::new(error)))?;
    let text = words::whole(&advice);
    if let Some(directory) = &arguments.out {
        write(&outputs, directory)
            .map_err(|error| Failure::Outputs(Box::new(error), directory.clone()))?;
        let path = directory.join("advice.txt");
        fs::write(&path, &text).map_err(|source| {
            Failure::Outputs(Box::new(WriteError::Io { path, source }), directory.clone())
        })?;
    }
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    if let Some(figure) = outputs.figures.iter().find(|figure| figure.id == FIGURE) {
        terminal::show_figure(figure, Terminal::detect(), &mut out)?;
    }
    if let Some(directory) = &arguments.out {
        let directory = directory.display();
        writeln!(out, "\nreport: {directory}/report.html")?;
        writeln!(
            out,
            "change and rerun: anabranch run {directory}/spec.toml --seed {} --out {directory}",
            question.seed
        )?;
    }
    Ok(())
}

fn question(arguments: &Advise) -> Question {
    let mut question = Question::new(arguments.rtt, arguments.rate, arguments.loss);
    question.share = arguments.goodput;
    question.mtu = arguments.mtu;
    question.message = arguments.message;
    question.queue = arguments.queue;
    question.duration = arguments.duration;
    question.seed = arguments.seed;
    let lists = [
        (&arguments.profile, &mut question.profiles),
        (&arguments.congestion, &mut question.congestion),
    ];
    for (named, list) in lists {
        if !named.is_empty() {
            list.clone_from(named);
        }
    }
    if !arguments.streams.is_empty() {
        question.streams.clone_from(&arguments.streams);
    }
    question
}

fn refused(error: AdviseError) -> Failure {
    match error {
        AdviseError::Question(message) => Failure::Asked(message),
        AdviseError::Spec(error) => Failure::Spec(error),
        // Nothing of the search is kept: there is no directory to speak of.
        AdviseError::Run(error) => Failure::Search(error),
    }
}

/// Runs the evidence by the ordinary engine: into a directory, or only in memory.
fn show(
    evidence: &Evidence,
    seed: u64,
    store: Option<&Store>,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Results, Failure> {
    watch.stage("3 of 3: confirming with other losses");
    let request = Request {
        file: "spec.toml".to_owned(),
        seed,
        ..Request::default()
    };
    let plan = Plan::of(&evidence.spec, request)?;
    let Some(store) = store else {
        let units = Unit::all(&plan);
        watch.expect(
            units
                .iter()
                .map(|unit| unit.point.spec.world.duration.seconds())
                .sum(),
        );
        let heard = |record: &anabranch_scenario::records::RunRecord| watch.did(record.simulated);
        let records = run::in_memory(&units, seed, &Simulator::default(), jobs, &heard)
            .map_err(|error| Failure::Search(Box::new(error)))?;
        return Ok(Results {
            manifest: store::manifest(&plan, &records),
            spec: plan.spec.clone(),
            records,
            series: Arc::new(Vec::new()),
        });
    };
    let directory = store.directory();
    let path = directory.join("spec.toml");
    fs::write(&path, &plan.request.text)
        .map_err(|source| Failure::Directory(Box::new(StoreError::Write { path, source })))?;
    run::run(&plan, store, &Simulator::default(), jobs, &Passed(watch))
        .map_err(|error| Failure::Run(Box::new(error), directory.to_owned()))
}

/// Passes on how far a run of the ordinary engine is.
struct Passed<'a>(&'a dyn Watch);

impl Progress for Passed<'_> {
    fn begin(&self, _: usize, _: usize, seconds: f64) {
        self.0.expect(seconds);
    }

    fn finished(&self, seconds: f64) {
        self.0.did(seconds);
    }
}

/// A bar on standard error; nothing where that is no terminal.
struct Bar {
    bar: ProgressBar,
    done: Mutex<f64>,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(
            "{bar:32} {percent:>3} %  {msg}, {human_pos} simulated seconds, {per_sec}  {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            done: Mutex::new(0.0),
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn done(&self, seconds: f64) -> f64 {
        let mut done = self
            .done
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *done += seconds;
        *done
    }
}

impl Watch for Bar {
    fn stage(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn expect(&self, seconds: f64) {
        self.bar
            .set_length((self.done(0.0) + seconds).ceil() as u64);
    }

    fn did(&self, seconds: f64) {
        self.bar.set_position(self.done(seconds) as u64);
    }
}
