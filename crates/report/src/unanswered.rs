//! Rows of a reference that nothing of a run was compared with: a name in them may be misspelt.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_scenario::output::Figure;

use crate::reference::{Published, Reference};
use crate::table::Table;

/// Ranges of lines that are named before the rest is only counted.
const NAMED: usize = 6;

/// The rows of one file that no table and no figure shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The file.
    pub file: String,
    /// How many rows it has.
    pub rows: usize,
    /// The lines of those that nothing shows, counted from 1.
    pub lines: Vec<u64>,
}

impl fmt::Display for Unanswered {
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
        )
    }
}

/// The rows of each file that these tables and figures do not show, and that do not say why.
pub fn unanswered(reference: &Reference, tables: &[Table], figures: &[Figure]) -> Vec<Unanswered> {
    let lines = || tables.iter().flat_map(|table| &table.lines);
    let printed = lines().filter_map(|line| line.published.as_ref());
    let answered: BTreeSet<u64> = printed.map(|row| row.line).collect();
    let open = |row: &&Published| {
        let excused = !row.not_compared.is_empty() || answered.contains(&row.line);
        !excused && !figures.iter().any(|figure| draws(figure, row))
    };
    let all = reference.published.iter();
    let published = Unanswered {
        file: reference.file.clone(),
        rows: reference.published.len(),
        lines: all.filter(open).map(|row| row.line).collect(),
    };
    let yardsticks = reference.yardsticks.iter().map(|yardstick| {
        let besides = lines().filter_map(|line| line.beside(&yardstick.name));
        let answered: BTreeSet<u64> = besides.map(|beside| beside.line).collect();
        let rows = yardstick.means.iter().map(|row| row.line);
        Unanswered {
            file: yardstick.file.clone(),
            rows: yardstick.means.len(),
            lines: rows.filter(|line| !answered.contains(line)).collect(),
        }
    });
    let all = std::iter::once(published).chain(yardsticks);
    all.filter(|file| !file.lines.is_empty()).collect()
}

/// Whether a figure draws a published value.
fn draws(figure: &Figure, row: &Published) -> bool {
    let here = figure.published.as_ref() == Some(&row.place);
    let curve = |printed: &Option<String>| printed.as_ref() == Some(&row.series);
    here && figure.curves.iter().any(|it| curve(&it.printed))
}

#[cfg(test)]
mod tests {
    use super::Unanswered;

    #[test]
    fn lines_are_named_in_ranges() {
        let text = |lines: &[u64]| {
            let (file, lines) = ("mine.csv".to_owned(), lines.to_vec());
            let rows = 40;
            Unanswered { file, rows, lines }.to_string()
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
