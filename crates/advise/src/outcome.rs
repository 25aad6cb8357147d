//! Answers a question: ranks the candidates, recommends settings for the relevant ones, and returns
//! the runs as evidence, a text, and a results directory.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::atomic_write::{self, Durability};
use anabranch_lab::outputs::{WriteError, write};
use anabranch_lab::plain;
use anabranch_lab::run::{self, ProgressObserver};
use anabranch_lab::store::{self, Store, StoreError};
use anabranch_report::reference::Reference;
use anabranch_report::{Introduction, Outputs};
use anabranch_scenario::document::Document;
use anabranch_scenario::records::{Results, RunRecord};

use crate::evidence::{Advice, EVENTS, full_size};
use crate::executor::{AdviceProgress, TrialExecutor};
use crate::question::Question;
use crate::ranking::{Ranking, ranking};
use crate::spec::{ABOUT, Evidence};
use crate::warm_up;
use crate::{AdviseError, find, render};

/// Subdirectory for the answer about a sender that is better than the first candidate.
pub const BETTER: &str = "better";
/// Name of the file with the text.
const WORDS: &str = "advice.txt";
/// Name of the file with the spec of the evidence.
const SPEC: &str = "spec.toml";

/// Answer for one sender.
#[derive(Clone, Debug)]
pub struct SenderAnswer {
    /// The recommendation.
    pub advice: Advice,
    /// The runs on which the recommendation is based.
    pub results: Results,
    /// Directory of these runs, if they are stored.
    pub directory: Option<PathBuf>,
    /// Introduction of the report.
    pub introduction: Vec<Introduction>,
}

/// Complete result of a question.
#[derive(Clone, Debug)]
pub struct AdviceReport {
    /// The question.
    pub question: Question,
    /// Goodput of each candidate with an unlimited buffer.
    pub ranking: Ranking,
    /// Answer for the first candidate.
    pub first: SenderAnswer,
    /// Answer for the best of the significantly better candidates, if there is one.
    pub better: Option<SenderAnswer>,
    /// The whole result as text.
    pub words: String,
}

/// Answers a question: ranks the candidates, searches for settings of the relevant ones, and runs
/// the evidence. Tables, figures, report and text are written to the directory, if one is given.
///
/// # Errors
/// [`AdviseError`].
pub fn advise(
    question: Question,
    directory: Option<&Path>,
    executor: TrialExecutor<'_>,
) -> Result<AdviceReport, AdviseError> {
    let question = question.checked()?;
    let store = directory.map(made).transpose()?;
    executor.progress.stage("1 of 3: ranking the senders");
    let ranking = ranking(&question, executor)?;
    let senders = 1 + u64::from(ranking.better.is_some());
    let ahead = senders * (EVENTS + warm_up::EVENTS);
    executor.progress.outlook(ahead, ranking.events);
    let asked = |place, directory: Option<&Path>| {
        let asked = CandidateQuestion {
            question: &question,
            ranking: &ranking,
            place,
        };
        asked.answer(directory, executor)
    };
    let first = asked(0, directory)?;
    let below = directory.map(|directory| directory.join(BETTER));
    let better = match ranking.better.map(|place| asked(place, below.as_deref())) {
        // No buffer was found for the better candidate. The answer about the first candidate is
        // still valid.
        None | Some(Err(AdviseError::Question(_))) => None,
        Some(found) => Some(found?),
    };
    drop(store);
    if let (None, Some(below)) = (&better, &below) {
        remove_stale(below)?;
    }
    let (mut first, mut better) = (first, better);
    let second = better.as_ref().map(|found| &found.advice);
    first.introduction = render::introduction(&question, &ranking, &first.advice, second);
    let words = render::whole(&question, &ranking, &first.advice, second);
    if let Some(found) = &mut better {
        found.introduction = render::of_better(&found.advice);
    }
    let outcome = AdviceReport {
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

/// Removes the answer about a better sender that an earlier question has written. Other files are
/// kept.
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

/// Writes a file atomically.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    atomic_write::write(path, Durability::Buffered, |file| {
        file.write_all(text.as_bytes())
    })
}

fn unwritten(path: PathBuf, source: std::io::Error) -> AdviseError {
    Box::new(StoreError::Write { path, source }).into()
}

impl SenderAnswer {
    /// Tables and figures of the evidence, preceded by the recommendation.
    ///
    /// # Errors
    /// [`AdviseError::Show`].
    pub fn outputs(&self) -> Result<Outputs<'_>, AdviseError> {
        let mut outputs = Outputs::make(&self.results, &Reference::default()).map_err(Box::new)?;
        outputs.introduction.clone_from(&self.introduction);
        Ok(outputs)
    }

    /// Writes tables, figures, report and text to the directory, if there is one.
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
struct CandidateQuestion<'a> {
    question: &'a Question,
    ranking: &'a Ranking,
    place: usize,
}

impl CandidateQuestion<'_> {
    /// The recommendation for a candidate, with its evidence. The directory is created only when
    /// there are results to write.
    fn answer(
        &self,
        directory: Option<&Path>,
        executor: TrialExecutor<'_>,
    ) -> Result<SenderAnswer, AdviseError> {
        let control = &self.ranking.candidates[self.place].0;
        executor
            .progress
            .stage(&format!("2 of 3: searching, {control}"));
        let (question, warm_up) = self.ranking.question(self.question, self.place, executor)?;
        let search = find(&question, executor)?;
        let mut evidence = Evidence::plan(&question, &search)?;
        let runs = Runs {
            seed: question.seed,
            store: directory.map(made).transpose()?,
            executor,
        };
        executor
            .progress
            .stage(&format!("3 of 3: confirming, {control}"));
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
        advice.warm_up = warm_up;
        if let Some(advised) = advice.advised() {
            advice.full = full_size(&question, advised, executor)?;
        }
        Ok(SenderAnswer {
            advice,
            results,
            directory: directory.map(Path::to_owned),
            introduction: Vec::new(),
        })
    }
}

/// Seed, store and executor for the runs of the evidence.
struct Runs<'a> {
    seed: u64,
    store: Option<Store>,
    executor: TrialExecutor<'a>,
}

impl Runs<'_> {
    /// Runs a spec with the simulation engine, in a directory or in memory. In memory, runs whose
    /// records are `known` are not repeated.
    fn of(&self, spec: &Document, known: &[RunRecord]) -> Result<Results, AdviseError> {
        let request = PlanRequest::default().with(|it| {
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
        let TrialExecutor {
            jobs,
            runner,
            progress,
        } = self.executor;
        run::run(&plan, store, runner, jobs, &ForwardedProgress(progress))
            .map_err(|error| AdviseError::Evidence(Box::new(error), directory.to_owned()))
    }

    fn in_memory(&self, plan: &Plan, known: &[RunRecord]) -> Result<Results, AdviseError> {
        let TrialExecutor {
            jobs,
            runner,
            progress,
        } = self.executor;
        let mut units = PlannedRun::all(plan);
        units.retain(|unit| !known.iter().any(|record| is_of(record, unit)));
        let seconds = |unit: &PlannedRun<'_>| unit.point.duration().seconds();
        progress.expect(units.iter().map(seconds).sum());
        let heard = |record: &RunRecord| progress.did(record.simulated);
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

/// Whether a record belongs to a unit.
fn is_of(record: &RunRecord, unit: &PlannedRun<'_>) -> bool {
    record.experiment == unit.experiment.id
        && record.replication == unit.replication
        && record.point == unit.point()
}

/// Forwards progress reports of the simulation engine.
struct ForwardedProgress<'a>(&'a dyn AdviceProgress);

impl ProgressObserver for ForwardedProgress<'_> {
    fn begin(&self, _: usize, _: usize, seconds: f64) {
        self.0.expect(seconds);
    }

    fn finished(&self, seconds: f64) {
        self.0.did(seconds);
    }
}
