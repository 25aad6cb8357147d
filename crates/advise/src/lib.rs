//! What a user comes for: the smallest receive buffer, the number of streams, the congestion control and the profile that
//! carry a wanted share of what the path could give, found by simulation.
//!
//! ```text
//! Question -> search (rounds of runs that are thrown away) -> a setting
//!          -> evidence (a spec, run by the ordinary engine with other losses) -> Advice
//! ```
//! The search may be lucky, so what it finds is not believed before the evidence, which met none of the search's losses,
//! shows it again with its 95 % interval. `docs/ADVISE.md` tells the reasons.

pub mod evidence;
pub mod grid;
pub mod question;
pub mod search;
pub mod spec;
pub mod trials;
pub mod words;

use anabranch_lab::run::RunError;
use anabranch_scenario::problem::SpecError;
use anabranch_scenario::quantity::Span;

pub use evidence::Advice;
pub use question::{Control, Question, Setting};
pub use search::{Finding, Found, Search};
pub use spec::Evidence;
pub use trials::{Trials, Watch};

/// Events that a run of the dearest candidate may cost, where that leaves enough of a path to see: many short runs say as
/// much as few long ones.
const EVENTS_OF_A_RUN: u128 = 40_000;

/// Chooses how long each run is measured, where the question leaves it open, after a short run of each candidate.
///
/// # Errors
/// [`AdviseError`].
pub fn timed(
    mut question: Question,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Question, AdviseError> {
    if question.duration.is_some() {
        return Ok(question);
    }
    let (least, most) = (question.least_measured(), question.most_measured());
    question.duration = Some(least);
    let settings: Vec<Setting> = (0..question.controls().len())
        .map(|control| Setting {
            control,
            streams: question.streams[0],
            buffer: None,
        })
        .collect();
    let mut trials = Trials::new(&question, jobs, u64::MAX, watch);
    trials.expect(settings.len());
    trials.ensure(&settings, 1)?;
    let brief = u128::from(question.timing().end.0);
    let measured = brief * EVENTS_OF_A_RUN / u128::from(trials.dearest().max(1));
    let measured = u64::try_from(measured).unwrap_or(u64::MAX);
    question.duration = Some(Span(measured).clamp(least, most));
    Ok(question)
}

/// Searches for the setting that a question asks for, on `jobs` threads. The answer does not depend on their number.
///
/// # Errors
/// [`AdviseError`].
pub fn find(question: &Question, jobs: usize, watch: &dyn Watch) -> Result<Search, AdviseError> {
    let mut trials = Trials::new(question, jobs, evidence::SEARCH_EVENTS, watch);
    search::search(question, &mut trials)
}

/// Advice that could not be found.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// What is asked makes no sense; the message says what is allowed.
    #[error("{0}")]
    Question(String),
    /// The spec made of the question is refused.
    #[error(transparent)]
    Spec(#[from] Box<SpecError>),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] Box<RunError>),
}
