//! The outputs of an evaluation: tables, figures, claims and their tallies.

use std::io;

use anabranch_scenario::records::Results;
use anabranch_scenario::records::SeriesError;

use crate::claim::EvaluatedClaim;
use crate::figure::{Figure, FigureError};
use crate::reference::Reference;
use crate::table::Table;
use crate::unmatched_rows::{UnmatchedRows, unmatched_rows};
use crate::verdict_counts::VerdictCounts;

/// Name of the file with the tallies, one per line.
pub const TALLIES: &str = "tally.txt";

/// All tables, figures and claims that a spec requests, computed from its results.
#[derive(Clone, Debug)]
pub struct Outputs<'a> {
    /// The results from which they were computed.
    pub results: &'a Results,
    /// The tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// The figures, in the order of the spec.
    pub figures: Vec<Figure>,
    /// The claims, in the order of the spec.
    pub claims: Vec<EvaluatedClaim>,
    /// Rows of the reference that match no table or figure. Empty if only some outputs were
    /// requested.
    pub unmatched_rows: Vec<UnmatchedRows>,
    /// Introduction that is displayed before the outputs.
    pub introduction: Vec<Introduction>,
    /// Name by which the command finds the paper of this spec; `None` if there is no such name.
    pub paper: Option<String>,
}

/// Introductory text of a report, which the calling program provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Introduction {
    /// Text; each line is a paragraph.
    Text(String),
    /// A list of names, each with lines of text.
    List {
        /// Title of the list.
        title: String,
        /// Names and their lines, in order.
        items: Vec<(String, Vec<String>)>,
    },
}

/// Error of making or writing outputs.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A table cannot be written.
    #[error("{name}: {source}")]
    Csv {
        /// Name of the file.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// A series cannot be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A figure cannot be made.
    #[error(transparent)]
    Figure(#[from] FigureError),
}

impl<'a> Outputs<'a> {
    /// Makes all outputs that the spec of the results requests.
    ///
    /// # Errors
    /// A series file cannot be read.
    pub fn make(results: &'a Results, reference: &Reference) -> Result<Self, OutputError> {
        let tables = results
            .spec
            .tables
            .iter()
            .map(|spec| Table::make(spec, results, reference));
        let figures = results
            .spec
            .figures
            .iter()
            .map(|spec| Figure::make(spec, results, reference));
        let claims = results.spec.claims.iter();
        let claims = claims
            .map(|claim| EvaluatedClaim::make(claim, results))
            .collect();
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        let unmatched_rows = match results.manifest.only.is_empty() {
            true => unmatched_rows(reference, &tables, &results.spec.figures),
            false => Vec::new(),
        };
        Ok(Outputs {
            results,
            tables,
            claims,
            figures: figures.collect::<Result<_, _>>()?,
            unmatched_rows,
            introduction: Vec::new(),
            paper: None,
        })
    }

    /// Tallies of printed values and of claims, one per line. They state whether the runs have
    /// fewer replications than the spec requests.
    pub fn tallies(&self) -> Vec<String> {
        let short = self
            .short_of()
            .map_or(String::new(), |short| format!(" ({short})"));
        let [values, claims] = [
            VerdictCounts::of(&self.tables),
            VerdictCounts::of_claims(&self.claims),
        ];
        let line = |(name, verdict_counts): (&str, VerdictCounts)| {
            let line = format!("{} {name}: {verdict_counts}{short}", verdict_counts.total());
            (verdict_counts.total() > 0).then_some(line)
        };
        let both = [("printed values", values), ("claims", claims)];
        both.into_iter().filter_map(line).collect()
    }

    /// Text about how many replications are missing compared with the spec; `None` if all are
    /// present.
    pub fn short_of(&self) -> Option<String> {
        let (mut short, mut asked) = (0, 0);
        for (id, made) in &self.results.manifest.replications {
            let experiment = self.results.spec.experiments.iter().find(|it| it.id == *id);
            if let Some(full) = experiment
                .map(|it| it.replications)
                .filter(|full| made < full)
            {
                short += made;
                asked += full;
            }
        }
        (asked > 0).then(|| format!("quick: {short} of {asked} replications"))
    }
}
