//! From a question to what a user gets: the candidates ranked, the settings of those that matter, the runs behind them, the
//! words, and a directory with all of it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_lab::outputs::{WriteError, write};
use anabranch_lab::plain;
use anabranch_lab::run::{self, Progress};
use anabranch_lab::store::{self, Store, StoreError};
use anabranch_lab::whole::{self, Keep};
use anabranch_report::reference::Reference;
use anabranch_report::{Outputs, Words};
use anabranch_scenario::document::Document;
use anabranch_scenario::records::{Results, RunRecord};

use crate::evidence::{Advice, EVENTS, full_size};
use crate::question::Question;
use crate::ranking::{Ranking, ranking};
use crate::settle;
use crate::spec::{ABOUT, Evidence};
use crate::work::{Watch, Work};
use crate::{AdviseError, find, words};

/// Where the advice for a sender that carries more than the first candidate goes, below the directory of the first.
pub const BETTER: &str = "better";
/// The words, as a file of a directory.
const WORDS: &str = "advice.txt";
/// The spec of the evidence, as a file of a directory.
const SPEC: &str = "spec.toml";

/// The answer for one sender.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is advised.
    pub advice: Advice,
    /// The runs that it rests upon.
    pub results: Results,
    /// Where these are kept, if they are.
    pub directory: Option<PathBuf>,
    /// What the report begins with.
    pub foreword: Vec<Words>,
}

/// Everything that came of a question.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The question.
    pub question: Question,
    /// What each candidate carries without limit.
    pub ranking: Ranking,
    /// The answer for the first candidate.
    pub first: Found,
    /// The answer for the best of those that surely carry more, if there is one.
    pub better: Option<Found>,
    /// All of it in words.
    pub words: String,
}

/// Ranks the candidates, searches for those that matter, and runs the evidence; into a directory, if one is named, with tables,
/// figures, report and words.
///
/// # Errors
/// [`AdviseError`].
pub fn advise(
    question: Question,
    directory: Option<&Path>,
    work: Work<'_>,
) -> Result<Outcome, AdviseError> {
    let question = question.checked()?;
    let store = directory.map(made).transpose()?;
    work.watch.stage("1 of 3: ranking the senders");
    let ranking = ranking(&question, work)?;
    let senders = 1 + u64::from(ranking.better.is_some());
    let ahead = senders * (EVENTS + settle::EVENTS);
    work.watch.outlook(ahead, ranking.events);
    let asked = |place, directory: Option<&Path>| {
        let asked = Asked {
            question: &question,
            ranking: &ranking,
            place,
        };
        asked.answer(directory, work)
    };
    let first = asked(0, directory)?;
    let below = directory.map(|directory| directory.join(BETTER));
    let better = match ranking.better.map(|place| asked(place, below.as_deref())) {
        // It carries more without limit; that no buffer was found takes nothing from the first answer.
        None | Some(Err(AdviseError::Question(_))) => None,
        Some(found) => Some(found?),
    };
    drop(store);
    if let (None, Some(below)) = (&better, &below) {
        remove_stale(below)?;
    }
    let (mut first, mut better) = (first, better);
    let second = better.as_ref().map(|found| &found.advice);
    first.foreword = words::foreword(&question, &ranking, &first.advice, second);
    let words = words::whole(&question, &ranking, &first.advice, second);
    if let Some(found) = &mut better {
        found.foreword = words::of_better(&found.advice);
    }
    let outcome = Outcome {
        question,
        ranking,
        first,
        better,
        words,
    };
    outcome.first.write(&outcome.words)?;
    if let Some(better) = &outcome.better {
        better.write(&outcome.words)?;
    }
    Ok(outcome)
}

/// Takes away what an earlier question left in the place of a better sender. What is not an answer of this kind stays.
fn remove_stale(directory: &Path) -> Result<(), AdviseError> {
    let spec = plain::text(&directory.join(SPEC));
    if !spec.is_ok_and(|text| text.contains(ABOUT)) {
        return Ok(());
    }
    let removed = fs::remove_dir_all(directory);
    removed.map_err(|source| unwritten(directory.to_owned(), source))
}

fn made(directory: &Path) -> Result<Store, AdviseError> {
    Ok(Store::create(directory).map_err(Box::new)?)
}

/// Writes a file that stands there whole or not at all.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    whole::write(path, Keep::Cheaply, |file| file.write_all(text.as_bytes()))
}

fn unwritten(path: PathBuf, source: std::io::Error) -> AdviseError {
    Box::new(StoreError::Write { path, source }).into()
}

impl Found {
    /// Tables and figures of the evidence, with the advice before them.
    ///
    /// # Errors
    /// [`AdviseError::Show`].
    pub fn outputs(&self) -> Result<Outputs<'_>, AdviseError> {
        let mut outputs = Outputs::make(&self.results, &Reference::default()).map_err(Box::new)?;
        outputs.foreword.clone_from(&self.foreword);
        Ok(outputs)
    }

    /// Writes tables, figures, report and words into the directory, if there is one.
    fn write(&self, words: &str) -> Result<(), AdviseError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let failed = |error| AdviseError::Outputs(Box::new(error), directory.clone());
        write(&self.outputs()?, directory).map_err(failed)?;
        let path = directory.join(WORDS);
        put(&path, words).map_err(|source| failed(WriteError::Io { path, source }))
    }
}

/// One of the candidates of a question.
struct Asked<'a> {
    question: &'a Question,
    ranking: &'a Ranking,
    place: usize,
}

impl Asked<'_> {
    /// The advice for it, with the runs that it rests upon. The directory is made when there is something to write.
    fn answer(&self, directory: Option<&Path>, work: Work<'_>) -> Result<Found, AdviseError> {
        let control = &self.ranking.candidates[self.place].0;
        work.watch.stage(&format!("2 of 3: searching, {control}"));
        let (question, settled) = self.ranking.question(self.question, self.place, work)?;
        let search = find(&question, work)?;
        let mut evidence = Evidence::plan(&question, &search)?;
        let runs = Runs {
            seed: question.seed,
            store: directory.map(made).transpose()?,
            work,
        };
        work.watch.stage(&format!("3 of 3: confirming, {control}"));
        let mut decided = runs.of(&evidence.decision(&question), &[])?;
        let shown = loop {
            if let Some(confirmed) = Advice::confirmed(&question, &evidence, &decided) {
                break confirmed;
            }
            if !evidence.fall_back() {
                break evidence.chosen;
            }
            decided = runs.of(&evidence.decision(&question), &decided.records)?;
        };
        evidence.add_half(&question, shown);
        let whole = evidence.whole(&question, shown);
        let results = runs.of(&whole, &decided.records)?;
        let mut advice = Advice::of(&question, &search, &evidence, &results);
        advice.settled = settled;
        if let Some(advised) = advice.advised() {
            advice.full = full_size(&question, advised, work)?;
        }
        Ok(Found {
            advice,
            results,
            directory: directory.map(Path::to_owned),
            foreword: Vec::new(),
        })
    }
}

/// How the evidence is run.
struct Runs<'a> {
    seed: u64,
    store: Option<Store>,
    work: Work<'a>,
}

impl Runs<'_> {
    /// Runs a spec by the ordinary engine: into a directory, or only in memory, where what is known already is not run again.
    fn of(&self, spec: &Document, known: &[RunRecord]) -> Result<Results, AdviseError> {
        let request = Request::default().with(|it| {
            it.file = SPEC.to_owned();
            it.seed = self.seed;
        });
        let plan = Plan::of(spec, request).map_err(Box::new)?;
        let Some(store) = &self.store else {
            return self.in_memory(&plan, known);
        };
        let directory = store.directory();
        let path = directory.join(SPEC);
        put(&path, &plan.request.text).map_err(|source| unwritten(path, source))?;
        let Work {
            jobs,
            runner,
            watch,
        } = self.work;
        run::run(&plan, store, runner, jobs, &Passed(watch))
            .map_err(|error| AdviseError::Evidence(Box::new(error), directory.to_owned()))
    }

    fn in_memory(&self, plan: &Plan, known: &[RunRecord]) -> Result<Results, AdviseError> {
        let Work {
            jobs,
            runner,
            watch,
        } = self.work;
        let mut units = Unit::all(plan);
        units.retain(|unit| !known.iter().any(|record| is_of(record, unit)));
        let seconds = |unit: &Unit<'_>| unit.point.spec.world.duration.seconds();
        watch.expect(units.iter().map(seconds).sum());
        let heard = |record: &RunRecord| watch.did(record.simulated);
        let more = run::in_memory(&units, self.seed, runner, jobs, &heard).map_err(Box::new)?;
        let mut records = known.to_vec();
        records.extend(more);
        Ok(Results {
            manifest: store::manifest(plan, &records),
            spec: plan.spec.clone(),
            records,
            series: Arc::new(Vec::new()),
        })
    }
}

/// Whether a record is that of a unit.
fn is_of(record: &RunRecord, unit: &Unit<'_>) -> bool {
    record.experiment == unit.experiment.id
        && record.replication == unit.replication
        && record.point == unit.point.point
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
