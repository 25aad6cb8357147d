//! Rows of a reference file that were not compared with any result, perhaps because a name in them
//! is misspelt.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_scenario::output::FigureOutput;
use anabranch_scenario::suggest::nearest;

use crate::reference::{Published, Reference};
use crate::table::{Table, TableLine};

/// Maximum number of line ranges that are listed; further ones are only counted.
const NAMED: usize = 6;

/// Rows of a file that match no table and no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedRows {
    /// Name of the file.
    pub file: String,
    /// Number of rows in the file.
    pub rows: usize,
    /// Lines without a match, counted from 1.
    pub lines: Vec<u64>,
    /// Lines with a known reason. Each reason is listed once, with its first line.
    pub reasons: Vec<(u64, String)>,
}

impl fmt::Display for UnmatchedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<&[u64]> = self.lines.chunk_by(|a, b| *b == *a + 1).collect();
        let range = |range: &&[u64]| match range {
            [first, .., last] => format!("{first}-{last}"),
            [one] => one.to_string(),
            [] => String::new(),
        };
        let named: Vec<String> = ranges.iter().take(NAMED).map(range).collect();
        let rest: usize = ranges.iter().skip(NAMED).map(|range| range.len()).sum();
        let more = match rest {
            0 => String::new(),
            rest => format!(", and {rest} more"),
        };
        write!(
            f,
            "{}: nothing is compared with {} of {} rows (line {}{more})",
            self.file,
            self.lines.len(),
            self.rows,
            named.join(", "),
        )?;
        for (line, reason) in self.reasons.iter().take(NAMED) {
            write!(f, "; line {line}: {reason}")?;
        }
        Ok(())
    }
}

/// Rows of each file that match none of these tables and figures. Rows that state why they are not
/// compared are not included.
pub fn unmatched_rows(
    reference: &Reference,
    tables: &[Table],
    figures: &[FigureOutput],
) -> Vec<UnmatchedRows> {
    let lines = || tables.iter().flat_map(|table| &table.lines);
    let is_answered = |line: &&TableLine| {
        let remark = line.judgement.as_ref().and_then(|it| it.remark.as_ref());
        line.measured.is_some() || remark.is_none()
    };
    let printed = lines().filter(is_answered);
    let printed = printed.filter_map(|line| line.published.as_ref());
    let answered: BTreeSet<u64> = printed.map(|row| row.line).collect();
    let open = |row: &&Published| {
        let excused = !row.not_compared.is_empty() || answered.contains(&row.line);
        !excused && !figures.iter().any(|figure| draws(figure, row))
    };
    let open: Vec<&Published> = reference.published.iter().filter(open).collect();
    let reason = |row: &&Published| Some((row.line, reason(row, tables, figures)?));
    let published = UnmatchedRows {
        file: reference.file.clone(),
        rows: reference.published.len(),
        lines: open.iter().map(|row| row.line).collect(),
        reasons: distinct(open.iter().filter_map(reason)),
    };
    let baselines = reference.baselines.iter().map(|baseline| {
        let comparisons = lines().filter_map(|line| line.comparison(&baseline.name));
        let answered: BTreeSet<u64> = comparisons.map(|comparison| comparison.line).collect();
        let rows = baseline.means.iter().map(|row| row.line);
        UnmatchedRows {
            file: baseline.file.clone(),
            rows: baseline.means.len(),
            lines: rows.filter(|line| !answered.contains(line)).collect(),
            reasons: Vec::new(),
        }
    });
    let all = std::iter::once(published).chain(baselines);
    all.filter(|file| !file.lines.is_empty()).collect()
}

/// Each reason once, with the first line to which it applies.
fn distinct(all: impl Iterator<Item = (u64, String)>) -> Vec<(u64, String)> {
    let mut reasons: Vec<(u64, String)> = Vec::new();
    for (line, reason) in all {
        if reasons.iter().all(|(_, known)| *known != reason) {
            reasons.push((line, reason));
        }
    }
    reasons
}

/// The first name in a row that matches nothing: the table or figure, the series, or the metric.
fn reason(row: &Published, tables: &[Table], figures: &[FigureOutput]) -> Option<String> {
    let place = |table: &Table| table.place.clone().unwrap_or_else(|| table.id.clone());
    let here = |table: &&Table| row.place.is_empty() || place(table) == row.place;
    let drawn = figures
        .iter()
        .filter_map(|figure| figure.published.as_ref());
    let is_drawn = drawn.clone().any(|known| *known == row.place);
    if !is_drawn && !tables.iter().any(|table| here(&table)) {
        let known: Vec<String> = tables.iter().map(place).chain(drawn.cloned()).collect();
        let hint = hint(&row.place, known.iter().map(String::as_str));
        return Some(format!("no table and no figure is {:?}{hint}", row.place));
    }
    let lines = || tables.iter().filter(here).flat_map(|table| &table.lines);
    if lines().all(|line| line.series != row.series) {
        let hint = hint(&row.series, lines().map(|line| line.series.as_str()));
        return Some(format!(
            "no row there is of the series {:?}{hint}",
            row.series
        ));
    }
    let lines = || lines().filter(|line| line.series == row.series);
    if lines().all(|line| line.metric != row.metric) {
        let hint = hint(&row.metric, lines().map(|line| line.metric.as_str()));
        return Some(format!("no row there shows {:?}{hint}", row.metric));
    }
    let mut same = lines().filter(|line| {
        line.published
            .as_ref()
            .is_some_and(|it| it.line == row.line)
    });
    let remark = same.find_map(|line| line.judgement.as_ref()?.remark.clone())?;
    let of_line = format!("line {}: ", row.line);
    Some(remark.strip_prefix(&of_line).unwrap_or(&remark).to_owned())
}

fn hint<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = nearest(found, known);
    near.map_or(String::new(), |near| format!("; did you mean {near:?}?"))
}

/// Whether a figure draws a published value.
fn draws(figure: &FigureOutput, row: &Published) -> bool {
    let here = figure.published.as_ref() == Some(&row.place);
    let curve = |printed: &Option<String>| printed.as_ref() == Some(&row.series);
    here && figure.curves.iter().any(|it| curve(&it.printed))
}

#[cfg(test)]
mod tests {
    use super::UnmatchedRows;

    #[test]
    fn lines_are_named_in_ranges() {
        let text = |lines: &[u64]| {
            let (file, lines) = ("mine.csv".to_owned(), lines.to_vec());
            let unmatched_rows = UnmatchedRows {
                file,
                rows: 40,
                lines,
                reasons: Vec::new(),
            };
            unmatched_rows.to_string()
        };
        assert_eq!(
            text(&[2, 3, 4, 9]),
            "mine.csv: nothing is compared with 4 of 40 rows (line 2-4, 9)"
        );
        assert_eq!(
            text(&[2, 4, 6, 8, 10, 12, 14, 15, 20]),
            "mine.csv: nothing is compared with 9 of 40 rows (line 2, 4, 6, 8, 10, 12, and 3 more)"
        );
    }
}
