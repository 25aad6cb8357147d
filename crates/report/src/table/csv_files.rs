//! Writes tables as CSV files.

use std::io;

use super::{BASELINE_COLUMNS, COLUMNS, Table, optional};
use crate::compare::digits;
use crate::statistics::Rank;

impl Table {
    /// Writes `tables/<id>.csv`: see [`COLUMNS`]. Numbers have six significant digits. A missing
    /// number is an empty cell.
    ///
    /// # Errors
    /// Any error of the writer.
    pub fn write_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS)?;
        for line in &self.lines {
            let [value, confidence, replications] = line.numbers();
            let published = line.published.as_ref();
            let published = published.map_or(String::new(), |it| it.in_unit_of(&line.unit));
            let judgement = line.judgement.as_ref();
            let verdict = judgement.map_or("", |judgement| judgement.verdict.text());
            let band = judgement.and_then(|judgement| judgement.band);
            let rank = judgement.and_then(|judgement| judgement.rank);
            writer.write_record([
                line.series.as_str(),
                &line.x_name,
                &line.x,
                &line.metric,
                &value,
                &confidence,
                &replications,
                &line.unit,
                &published,
                verdict,
                &optional(band.map(|band| band.low)),
                &optional(band.map(|band| band.high)),
                &optional(rank.map(Rank::place)),
            ])?;
        }
        writer.flush()
    }

    /// Writes `tables/<id>-<baseline>.csv` with the lines that have a mean of that program: see
    /// [`BASELINE_COLUMNS`]. `overlap` is `yes`, `no`, or empty if either side is a single run.
    ///
    /// # Errors
    /// Any error of the writer.
    pub fn write_baseline_csv(&self, baseline: &str, out: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(BASELINE_COLUMNS.map(|column| column.replace('*', baseline)))?;
        for line in &self.lines {
            let Some(comparison) = line.comparison(baseline) else {
                continue;
            };
            let [value, confidence, replications] = line.numbers();
            writer.write_record([
                line.series.as_str(),
                &line.x_name,
                &line.x,
                &line.metric,
                &value,
                &confidence,
                &replications,
                &line.unit,
                &digits(comparison.mean, 6),
                &optional(comparison.confidence),
                &comparison.replications.to_string(),
                comparison
                    .overlap
                    .map_or("", |overlap| if overlap { "yes" } else { "no" }),
                &optional(comparison.difference),
                &optional(comparison.relative()),
            ])?;
        }
        writer.flush()
    }
}
