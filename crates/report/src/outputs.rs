//! What a reader sees of a run: tables, figures, a report, and the same in a terminal.
//!
//! ```text
//! DIR/tables/<id>.csv       measured, printed, verdict        DIR/figures/<id>.svg
//! DIR/tables/<id>-<yardstick>.csv   beside an independent program   DIR/report.html
//! ```

use std::io;

use anabranch_scenario::records::Results;
use anabranch_scenario::records::SeriesError;

use crate::compare::Verdict;
use crate::figure::{Figure, FigureError};
use crate::page;
use crate::reference::Reference;
use crate::table::Table;
use crate::unanswered::{Unanswered, unanswered};

/// Every table and figure that a spec asks for, made of its results.
#[derive(Clone, Debug)]
pub struct Outputs<'a> {
    /// What they are made of.
    pub results: &'a Results,
    /// The tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// The figures, in the order of the spec.
    pub figures: Vec<Figure>,
    /// Rows of the reference that none of them shows; nothing where only some were asked for.
    pub unanswered: Vec<Unanswered>,
}

/// Outputs that cannot be made or stored.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A table cannot be written.
    #[error("{name}: {source}")]
    Csv {
        /// Which file.
        name: String,
        /// What is wrong.
        source: io::Error,
    },
    /// A series cannot be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A figure cannot be made.
    #[error(transparent)]
    Figure(#[from] FigureError),
}

/// How many comparisons with printed values came to which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Printed values that were reproduced.
    pub reproduced: usize,
    /// Printed values that were not.
    pub differs: usize,
    /// Printed values without a measured one that could decide.
    pub not_attempted: usize,
}

impl Tally {
    /// Counts the verdicts of some tables.
    pub fn of<'t>(tables: impl IntoIterator<Item = &'t Table>) -> Tally {
        let mut tally = Tally::default();
        for judgement in tables
            .into_iter()
            .flat_map(|table| &table.lines)
            .filter_map(|line| line.judgement.as_ref())
        {
            match judgement.verdict {
                Verdict::Reproduced => tally.reproduced += 1,
                Verdict::Differs => tally.differs += 1,
                Verdict::NotAttempted => tally.not_attempted += 1,
            }
        }
        tally
    }

    /// All comparisons.
    pub fn total(&self) -> usize {
        self.reproduced + self.differs + self.not_attempted
    }
}

impl<'a> Outputs<'a> {
    /// Makes everything that the spec of some results asks for.
    ///
    /// # Errors
    /// A series file that cannot be read.
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
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        let unanswered = match results.manifest.only.is_empty() {
            true => unanswered(reference, &tables, &results.spec.figures),
            false => Vec::new(),
        };
        Ok(Outputs {
            results,
            tables,
            figures: figures.collect::<Result<_, _>>()?,
            unanswered,
        })
    }

    /// The contents of all files: tables, figures and the page, each with its path below the results directory.
    ///
    /// # Errors
    /// A table or figure that cannot be made.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, OutputError> {
        let mut files = Vec::new();
        for table in self.tables.iter().filter(|table| !table.lines.is_empty()) {
            let name = format!("tables/{}.csv", table.id);
            files.push(csv(name, |out| table.write_csv(out))?);
            for yardstick in table.yardsticks() {
                let name = format!("tables/{}-{yardstick}.csv", table.id);
                files.push(csv(name, |out| table.write_beside_csv(yardstick, out))?);
            }
        }
        for figure in &self.figures {
            if let Some(svg) = figure.svg()? {
                files.push((format!("figures/{}.svg", figure.id), svg.into_bytes()));
            }
        }
        files.push(("report.html".to_owned(), page::html(self)?.into_bytes()));
        Ok(files)
    }
}

fn csv(
    name: String,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> Result<(String, Vec<u8>), OutputError> {
    let mut bytes = Vec::new();
    match write(&mut bytes) {
        Ok(()) => Ok((name, bytes)),
        Err(source) => Err(OutputError::Csv { name, source }),
    }
}
