//! Output files of an evaluation.
//!
//! ```text
//! DIR/tables/<id>.csv               measured and published values, verdicts
//! DIR/tables/<id>-<baseline>.csv    comparison with an independent program
//! DIR/figures/<id>.svg              figures
//! DIR/report.html                   the page
//! DIR/verdicts.csv                  verdict counts and probability of each column
//! DIR/claims.csv                    evaluated claims
//! DIR/spec.toml                     the spec as read
//! DIR/tally.txt                     tallies
//! ```

use std::io;

use crate::outputs::{OutputError, Outputs, TALLIES};
use crate::verdict_counts::VerdictCounts;
use crate::{claim, page, verdict_counts};

impl Outputs<'_> {
    /// Path (relative to the results directory) and contents of all output files: tables, figures
    /// and the page.
    ///
    /// # Errors
    /// A table or figure cannot be generated.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, OutputError> {
        let mut files = Vec::new();
        for table in self.tables.iter().filter(|table| !table.lines.is_empty()) {
            let name = format!("tables/{}.csv", table.id);
            files.push(csv(name, |out| table.write_csv(out))?);
            for baseline in table.baselines() {
                let name = format!("tables/{}-{baseline}.csv", table.id);
                files.push(csv(name, |out| table.write_baseline_csv(baseline, out))?);
            }
        }
        if VerdictCounts::of(&self.tables).total() > 0 {
            let name = "verdicts.csv".to_owned();
            files.push(csv(name, |out| {
                verdict_counts::write_csv(&self.tables, out)
            })?);
        }
        if !self.claims.is_empty() {
            let name = "claims.csv".to_owned();
            files.push(csv(name, |out| claim::write_csv(&self.claims, out))?);
        }
        for figure in &self.figures {
            if let Some(svg) = figure.svg()? {
                files.push((format!("figures/{}.svg", figure.id), svg.into_bytes()));
            }
        }
        let spec = self.results.manifest.spec.clone();
        files.push(("spec.toml".to_owned(), spec.into_bytes()));
        if !self.tallies().is_empty() {
            let tallies = self.tallies().join("\n") + "\n";
            files.push((TALLIES.to_owned(), tallies.into_bytes()));
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
