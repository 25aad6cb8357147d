//! Number of verdicts of each kind, and the joint probability of a column of published values.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use crate::claim::EvaluatedClaim;
use crate::compare::{Verdict, digits};
use crate::statistics::joint_probability;
use crate::table::{Table, TableLine};

/// Number of comparisons per verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts([usize; Verdict::ALL.len()]);

impl VerdictCounts {
    /// Counts the verdicts of several tables. A published value counts only once, in the first
    /// table that contains it. Values that the reference declares to be identical also count once.
    pub fn of<'t>(tables: impl IntoIterator<Item = &'t Table>) -> VerdictCounts {
        let mut seen = BTreeSet::new();
        let mut verdict_counts = VerdictCounts::default();
        for table in tables {
            verdict_counts.add_new(&table.lines, &mut seen);
        }
        verdict_counts
    }

    /// Counts the verdicts of each table separately: those of new values, and those of values that
    /// were counted in an earlier table.
    pub fn of_each(tables: &[Table]) -> Vec<(VerdictCounts, VerdictCounts)> {
        let mut seen = BTreeSet::new();
        let each = tables.iter().map(|table| {
            let whole = VerdictCounts::of([table]);
            let new = {
                let mut new = VerdictCounts::default();
                new.add_new(&table.lines, &mut seen);
                new
            };
            let rest = whole.0.iter().zip(new.0).map(|(all, new)| all - new);
            let mut again = VerdictCounts::default();
            again.0.iter_mut().zip(rest).for_each(|(to, it)| *to = it);
            (new, again)
        });
        each.collect()
    }

    /// Counts the verdicts of claims.
    pub fn of_claims(claims: &[EvaluatedClaim]) -> VerdictCounts {
        let mut verdict_counts = VerdictCounts::default();
        claims
            .iter()
            .for_each(|claim| verdict_counts.add(claim.verdict));
        verdict_counts
    }

    fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }

    /// Adds the verdicts on published values that were not counted before.
    fn add_new(&mut self, lines: &[TableLine], seen: &mut BTreeSet<(u64, String)>) {
        for line in lines {
            let (Some(judgement), Some(printed)) = (&line.judgement, &line.published) else {
                continue;
            };
            // The metric is part of the key, because a step has two published values on one line of
            // the file: the value and its time.
            if seen.insert((printed.first, printed.metric.clone())) {
                self.add(judgement.verdict);
            }
        }
    }

    /// Number of comparisons with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.0[verdict as usize]
    }

    /// Total number of comparisons.
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }
}

impl fmt::Display for VerdictCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |verdict: Verdict| {
            let text = match verdict {
                Verdict::Differs => "differ",
                other => other.text(),
            };
            format!("{} {text}", self.count(verdict))
        };
        f.write_str(&Verdict::ALL.map(part).join(", "))
    }
}

/// The lines of a table about one quantity: one line for each x.
#[derive(Clone, Copy, Debug)]
pub struct QuantityLines<'t> {
    /// The lines; there is at least one.
    pub lines: &'t [TableLine],
    /// Probability that independent runs deviate together as far as the published values; `None`
    /// for fewer than two values with a score.
    pub probability: Option<f64>,
}

impl Table {
    /// The columns in order.
    pub fn columns(&self) -> impl Iterator<Item = QuantityLines<'_>> {
        let same = |a: &TableLine, b: &TableLine| a.series == b.series && a.metric == b.metric;
        self.lines.chunk_by(same).map(|lines| {
            let judgements = lines.iter().filter_map(|line| line.judgement.as_ref());
            let scores: Vec<f64> = judgements.filter_map(|it| it.score).collect();
            let several = (scores.len() > 1).then_some(scores);
            QuantityLines {
                lines,
                probability: several.and_then(|scores| joint_probability(&scores)),
            }
        })
    }
}

/// Columns of `verdicts.csv`, which has one line per table column. `counted` is the number of
/// values that count in the tally; the others were counted in an earlier table.
const COLUMNS: [&str; 11] = [
    "table",
    "published",
    "series",
    "metric",
    "reproduced",
    "compatible",
    "differs",
    "not_attempted",
    "values",
    "counted",
    "joint_p",
];

/// Writes `verdicts.csv`, which is empty if no table has a verdict.
///
/// # Errors
/// Any error of the writer.
pub fn write_csv(tables: &[Table], out: impl io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    let mut seen = BTreeSet::new();
    for table in tables {
        for column in table.columns() {
            let mut all = VerdictCounts::default();
            all.add_new(column.lines, &mut BTreeSet::new());
            let mut counted = VerdictCounts::default();
            counted.add_new(column.lines, &mut seen);
            let (Some(first), true) = (column.lines.first(), all.total() > 0) else {
                continue;
            };
            let names = [
                table.id.as_str(),
                table.place.as_deref().unwrap_or_default(),
                &first.series,
                &first.metric,
            ];
            let counts = Verdict::ALL.map(|verdict| all.count(verdict).to_string());
            let totals = [all.total(), counted.total()].map(|count| count.to_string());
            let joint = column.probability.map(|p| digits(p, 3));
            let numbers = counts
                .into_iter()
                .chain(totals)
                .chain([joint.unwrap_or_default()]);
            let names = names.into_iter().map(str::to_owned);
            writer.write_record(names.chain(numbers))?;
        }
    }
    writer.flush()
}
