//! Recommendations for SCTP buffers and streams. This crate searches, by simulation, for the
//! smallest receive buffer and the fewest streams that reach a requested share of the achievable
//! goodput on a path. It does so for the standard sender that every stack has, and for a better
//! sender if there is one.
//!
//! ```text
//! Question -> ranking (every candidate without limit) -> a question of one candidate
//!          -> search (rounds of runs that are thrown away) -> a setting
//!          -> evidence (a spec, run by the ordinary engine with other losses) -> Advice
//! ```
//!
//! The search may find a setting by chance. Therefore its result should be confirmed by further
//! runs with other losses (the evidence), which give 95 % intervals. `docs/ADVISE.md` explains the
//! reasons.

pub mod discipline;
pub mod evidence;
pub mod executor;
pub mod grid;
pub mod invalid_question;
pub mod outcome;
pub mod parse;
pub mod question;
pub mod ranking;
pub mod recovery;
pub mod render;
pub mod satellites;
pub mod search;
pub mod spec;
pub mod stack_settings;
pub mod trials;
pub mod warm_up;

use std::path::PathBuf;

use anabranch_lab::outputs::WriteError;
use anabranch_lab::run::RunError;
use anabranch_lab::store::StoreError;
use anabranch_report::OutputError;
use anabranch_scenario::diagnostic::SpecError;

pub use evidence::Advice;
pub use executor::{AdviceProgress, NoProgress, TrialExecutor};
pub use invalid_question::InvalidQuestion;
pub use outcome::{AdviceReport, SenderAnswer, advise};
pub use question::{CandidateSender, Question, TunedSetting};
pub use ranking::{Ranking, ranking};
pub use satellites::Satellites;
pub use search::Search;
pub use spec::Evidence;
pub use trials::Trials;

/// Searches for the setting of the first candidate of a question.
///
/// # Errors
/// [`AdviseError`].
pub fn find(question: &Question, executor: TrialExecutor<'_>) -> Result<Search, AdviseError> {
    let mut trials = Trials::new(question, evidence::SEARCH_EVENTS, executor);
    search::search(question, &mut trials)
}

/// Error of answering a question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviseError {
    /// The question is invalid or has no answer.
    #[error(transparent)]
    Question(#[from] InvalidQuestion),
    /// The spec derived from the question is rejected.
    #[error(transparent)]
    Spec(#[from] Box<SpecError>),
    /// A run failed; no results were stored.
    #[error(transparent)]
    Run(#[from] Box<RunError>),
    /// The directory for the evidence cannot be used.
    #[error(transparent)]
    Directory(#[from] Box<StoreError>),
    /// A run of the evidence failed; finished runs are in the directory.
    #[error("{0}")]
    Evidence(Box<RunError>, PathBuf),
    /// Tables, figures or the report of the evidence could not be made.
    #[error(transparent)]
    Show(#[from] Box<OutputError>),
    /// The results could not be written; the runs are in the directory.
    #[error("{0}")]
    Outputs(Box<WriteError>, PathBuf),
}
