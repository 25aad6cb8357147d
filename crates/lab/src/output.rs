//! What a reader sees of a run: tables, figures, a report, and the same in a terminal.
//!
//! ```text
//! DIR/tables/<id>.csv       measured, printed, verdict        DIR/figures/<id>.svg
//! DIR/tables/<id>-ns2.csv   measured beside ns-2.35           DIR/report.html
//! ```

pub mod figure;
pub mod report;
pub mod table;
pub mod terminal;
pub mod unit;

mod braille;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::compare::Verdict;
use crate::model::Results;
use crate::reference::Reference;
use crate::series::SeriesError;
use crate::whole::{self, Keep};
use figure::{Figure, FigureError};
use table::Table;

/// Every table and figure that a spec asks for, made of its results.
#[derive(Clone, Debug)]
pub struct Outputs<'a> {
    /// What they are made of.
    pub results: &'a Results,
    /// The tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// The figures, in the order of the spec.
    pub figures: Vec<Figure>,
}

/// Outputs that cannot be made or stored.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
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
        Ok(Outputs {
            results,
            tables: tables.collect::<Result<_, _>>()?,
            figures: figures.collect::<Result<_, _>>()?,
        })
    }

    /// Writes tables, figures and report under a directory. Each file appears whole or not at all.
    ///
    /// # Errors
    /// The first file that cannot be written; those before it stay.
    pub fn write(&self, directory: &Path) -> Result<(), OutputError> {
        let (tables, figures) = (directory.join("tables"), directory.join("figures"));
        for folder in [&tables, &figures] {
            fs::create_dir_all(folder).map_err(|source| OutputError::Io {
                path: folder.clone(),
                source,
            })?;
        }
        for table in self.tables.iter().filter(|table| !table.lines.is_empty()) {
            let mut bytes = Vec::new();
            let path = tables.join(format!("{}.csv", table.id));
            table
                .write_csv(&mut bytes)
                .map_err(|source| OutputError::Io {
                    path: path.clone(),
                    source,
                })?;
            write_whole(&path, &bytes)?;
            if table.has_ns2() {
                bytes.clear();
                let path = tables.join(format!("{}-ns2.csv", table.id));
                table
                    .write_ns2_csv(&mut bytes)
                    .map_err(|source| OutputError::Io {
                        path: path.clone(),
                        source,
                    })?;
                write_whole(&path, &bytes)?;
            }
        }
        for figure in &self.figures {
            if let Some(svg) = figure.svg()? {
                write_whole(&figures.join(format!("{}.svg", figure.id)), svg.as_bytes())?;
            }
        }
        write_whole(
            &directory.join("report.html"),
            report::html(self)?.as_bytes(),
        )
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    whole::write(path, Keep::Cheaply, |file| file.write_all(bytes)).map_err(|source| {
        OutputError::Io {
            path: path.to_owned(),
            source,
        }
    })
}
