//! `anabranch advise`: the answer a user comes for.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_advise::evidence::{Advice, EVENTS, full_size};
use anabranch_advise::ranking::{Ranking, ranking};
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
use anabranch_scenario::document::Document;
use anabranch_scenario::records::{Results, RunRecord};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::arguments::Advise;
use crate::failure::Failure;
use crate::work::jobs;

/// Where the advice for a sender that carries more than the first candidate goes, below the directory of the first.
const BETTER: &str = "better";

/// Ranks the candidates, searches for those that matter, runs the evidence, and says what came out.
pub fn advise(arguments: &Advise) -> Result<(), Failure> {
    let question = question(arguments).checked().map_err(refused)?;
    let jobs = jobs(arguments.jobs);
    let bar = (!arguments.quiet).then(Bar::new);
    let watch: &dyn Watch = bar.as_ref().map_or(&Unwatched, |bar| bar);
    let store = store(arguments.out.as_deref())?;
    watch.stage("1 of 3: ranking the senders");
    #[allow(
        clippy::disallowed_methods,
        reason = "a guess at the time left, which decides nothing"
    )]
    let begun = Instant::now();
    let ranking = ranking(&question, jobs, watch).map_err(refused)?;
    if let Some(bar) = &bar {
        bar.announce(&ranking, begun.elapsed());
    }
    let asked = |place, store: &dyn Fn() -> Result<Option<Store>, Failure>| {
        let own = ranking.question(&question, place);
        answer(&own, store, jobs, watch)
    };
    let first = asked(0, &|| Ok(store.clone()))?;
    let better = match ranking.better {
        Some(place) => {
            let directory = arguments.out.as_ref().map(|out| out.join(BETTER));
            // The directory is made when there is something to write.
            match asked(place, &|| self::store(directory.as_deref())) {
                // It carries more without limit; that no buffer was found takes nothing from the first answer.
                Err(Failure::Asked(_)) => None,
                found => Some((found?, directory)),
            }
        }
        None => None,
    };
    if let Some(bar) = &bar {
        bar.clear();
    }
    let second = better.as_ref().map(|((advice, _), _)| advice);
    let text = words::whole(&question, &ranking, &first.0, second);
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    present(&first.1, &text, arguments.out.as_deref(), &mut out)?;
    if let Some(directory) = &arguments.out {
        let shown = directory.display();
        writeln!(out, "\nreport: {shown}/report.html")?;
        if let Some(((_, results), Some(below))) = &better {
            present(results, &text, Some(below), &mut io::sink())?;
            writeln!(
                out,
                "of the sender that carries more: {shown}/{BETTER}/report.html"
            )?;
        }
        writeln!(
            out,
            "change and rerun: anabranch run {shown}/spec.toml --seed {} --out {shown}",
            question.seed
        )?;
    }
    Ok(())
}

fn store(directory: Option<&Path>) -> Result<Option<Store>, Failure> {
    let store = directory.map(Store::create).transpose();
    store.map_err(|error| Failure::Directory(Box::new(error)))
}

/// Shows the figure, and writes everything into the directory, if there is one.
fn present(
    results: &Results,
    text: &str,
    directory: Option<&Path>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut outputs = Outputs::make(results, &Reference::default())
        .map_err(|error| Failure::Show(Box::new(error)))?;
    outputs.foreword = Some(text.to_owned());
    if let Some(directory) = directory {
        write(&outputs, directory)
            .map_err(|error| Failure::Outputs(Box::new(error), directory.to_owned()))?;
        let path = directory.join("advice.txt");
        fs::write(&path, text).map_err(|source| {
            Failure::Outputs(
                Box::new(WriteError::Io { path, source }),
                directory.to_owned(),
            )
        })?;
    }
    if let Some(figure) = outputs.figures.iter().find(|figure| figure.id == FIGURE) {
        terminal::show_figure(figure, Terminal::detect(), out)?;
    }
    Ok(())
}

/// The advice for the one candidate of a question, with the runs that it rests upon.
fn answer(
    question: &Question,
    store: &dyn Fn() -> Result<Option<Store>, Failure>,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<(Advice, Results), Failure> {
    let control = question.controls().swap_remove(0);
    watch.stage(&format!("2 of 3: searching, {control}"));
    let search = anabranch_advise::find(question, jobs, watch).map_err(refused)?;
    let evidence = Evidence::plan(question, &search).map_err(refused)?;
    let store = store()?;
    let store = store.as_ref();
    watch.stage(&format!("3 of 3: confirming, {control}"));
    let decided = run(
        &evidence.decision(question),
        &[],
        question.seed,
        store,
        jobs,
        watch,
    )?;
    let shown = Advice::confirmed(question, &evidence, &decided).unwrap_or(evidence.chosen);
    let whole = evidence.whole(question, shown);
    let results = run(&whole, &decided.records, question.seed, store, jobs, watch)?;
    let mut advice = Advice::of(question, &search, &evidence, &results);
    if let Some(advised) = advice.advised() {
        advice.full = full_size(question, advised, jobs, watch).map_err(refused)?;
    }
    Ok((advice, results))
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

/// Runs a spec by the ordinary engine: into a directory, or only in memory, where what is known already is not run again.
fn run(
    spec: &Document,
    known: &[RunRecord],
    seed: u64,
    store: Option<&Store>,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Results, Failure> {
    let request = Request {
        file: "spec.toml".to_owned(),
        seed,
        ..Request::default()
    };
    let plan = Plan::of(spec, request)?;
    let Some(store) = store else {
        let mut units = Unit::all(&plan);
        units.retain(|unit| {
            known
                .iter()
                .all(|record| record.experiment != unit.experiment.id)
        });
        let seconds = |unit: &Unit<'_>| unit.point.spec.world.duration.seconds();
        watch.expect(units.iter().map(seconds).sum());
        let heard = |record: &RunRecord| watch.did(record.simulated);
        let mut records = known.to_vec();
        records.extend(
            run::in_memory(&units, seed, &Simulator::default(), jobs, &heard)
                .map_err(|error| Failure::Search(Box::new(error)))?,
        );
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

/// A bar on standard error that counts runs, in one line of a terminal; nothing where that is none.
struct Bar {
    bar: ProgressBar,
    /// Simulated seconds, and runs.
    done: Mutex<(f64, usize)>,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(
            "{bar:14} {percent:>3} %  {prefix}  {wide_msg}  {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            done: Mutex::default(),
        }
    }

    /// Says, before the long part begins, what it may take at the speed seen so far.
    fn announce(&self, ranking: &Ranking, elapsed: Duration) {
        let searches = 1 + u64::from(ranking.better.is_some());
        let most = searches * EVENTS;
        let speed = ranking.events as f64 / elapsed.as_secs_f64().max(1e-3);
        self.bar.println(format!(
            "up to about {} million events, {:.0} s at this machine's speed",
            most / 1_000_000,
            (most as f64 / speed).ceil()
        ));
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Adds what was done; simulated seconds and runs so far.
    fn done(&self, seconds: f64, runs: usize) -> (f64, usize) {
        let mut done = self
            .done
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        done.0 += seconds;
        done.1 += runs;
        *done
    }
}

impl Watch for Bar {
    fn stage(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn expect(&self, seconds: f64) {
        self.bar
            .set_length((self.done(0.0, 0).0 + seconds).ceil() as u64);
    }

    fn did(&self, seconds: f64) {
        let (seconds, runs) = self.done(seconds, 1);
        self.bar.set_prefix(format!("{runs} runs"));
        self.bar.set_position(seconds as u64);
    }
}
