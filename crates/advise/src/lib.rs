//! What a user comes for: the smallest receive buffer and the fewest streams that carry a wanted share of what a sender could
//! carry on a path, found by simulation: for the sender that every stack has, and for a better one where there is one.
//!
//! ```text
//! Question -> ranking (every candidate without limit) -> a question of one candidate
//!          -> search (rounds of runs that are thrown away) -> a setting
//!          -> evidence (a spec, run by the ordinary engine with other losses) -> Advice
//! ```
//! The search may be lucky, so what it finds is not believed before the evidence, which met none of the search's losses,
//! shows it again with its 95 % interval. `docs/ADVISE.md` tells the reasons.

pub mod evidence;
pub mod grid;
pub mod knobs;
pub mod question;
pub mod ranking;
pub mod search;
pub mod spec;
pub mod trials;
pub mod words;

use anabranch_lab::run::RunError;
use anabranch_scenario::problem::SpecError;

pub use evidence::Advice;
pub use question::{Control, Question, Setting};
pub use ranking::{Ranking, ranking};
pub use search::Search;
pub use spec::Evidence;
pub use trials::{Trials, Watch};

/// Searches for the setting of a question's first candidate, on `jobs` threads. The answer does not depend on their number.
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
