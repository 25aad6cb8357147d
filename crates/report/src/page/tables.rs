//! Tables of the page. Their lines are arranged as a matrix, like in a paper, if possible, and
//! otherwise as a list.

use anabranch_scenario::counted;
use maud::{Markup, html};

use super::{class_of, file, probability};
use crate::compare::{Judgement, digits};
use crate::table::{Table, TableLine, readable};
use crate::unit;
use crate::verdict_counts::QuantityLines;

/// Maximum number of lines of a table that is shown initially. Longer tables are folded under a
/// summary line.
const FOLDED: usize = 40;

/// Maximum number of columns of a matrix.
const WIDE: usize = 6;

/// Section of a table, with its heading and links to its files.
pub(super) fn section(table: &Table) -> Markup {
    html! {
        section id={ "table-" (table.id) } {
            h3 {
                @if let Some(place) = &table.place { span { (place) } " " }
                (table.title)
            }
            @if let Some(note) = &table.note { p.remark { (note) } }
            @if table.lines.is_empty() {
                p.remark { "Not made: its experiment was not run." }
            } @else if table.lines.len() > FOLDED {
                details { summary { (summary(table)) } (body(table)) }
            } @else {
                (body(table))
            }
            @if !table.lines.is_empty() {
                p.files {
                    (file(&format!("tables/{}.csv", table.id)))
                    @for name in table.baselines() { " " (file(&format!("tables/{}-{name}.csv", table.id))) }
                }
            }
        }
    }
}

fn body(table: &Table) -> Markup {
    match Matrix::of(table) {
        Some(matrix) => matrix.markup(),
        None => list(table),
    }
}

/// The lines of a table, arranged in rows and columns.
struct Matrix<'t> {
    /// Heading of the column with row names.
    corner: String,
    /// Heading of each column, with its joint probability.
    columns: Vec<(String, Option<f64>)>,
    rows: Vec<(String, Vec<Option<&'t TableLine>>)>,
}

impl<'t> Matrix<'t> {
    /// The matrix of a table: x in rows and quantities in columns, or the reverse, or, for a single
    /// quantity over several sweeps, the last sweep in columns. `None` if the lines do not form a
    /// matrix.
    fn of(table: &'t Table) -> Option<Matrix<'t>> {
        let quantities: Vec<QuantityLines<'_>> = table.columns().collect();
        let first = quantities.first()?.lines;
        let alike = |column: &QuantityLines<'_>| {
            let same = |(a, b): (&TableLine, &TableLine)| a.x == b.x && a.x_name == b.x_name;
            column.lines.len() == first.len() && column.lines.iter().zip(first).all(same)
        };
        if !quantities.iter().all(alike) || first.iter().any(|line| line.x_name == "event") {
            return None;
        }
        match quantities.as_slice() {
            [one] => Matrix::of_sweeps(one),
            all if first.len() == 1 => (all.len() <= WIDE).then(|| Matrix::across(all)),
            all if all.len() <= WIDE => Some(Matrix::down(all)),
            all => (first.len() <= WIDE).then(|| Matrix::across(all)),
        }
    }

    /// A matrix with x in rows and quantities in columns.
    fn down(quantities: &[QuantityLines<'t>]) -> Matrix<'t> {
        let first = quantities[0].lines;
        let rows = first.iter().enumerate().map(|(at, line)| {
            let cells = quantities.iter().map(|it| it.lines.get(at)).collect();
            (line.x.clone(), cells)
        });
        Matrix {
            corner: unit::readable(&first[0].x_name),
            columns: quantities
                .iter()
                .map(|it| (name(it), it.probability))
                .collect(),
            rows: rows.collect(),
        }
    }

    /// A matrix with quantities in rows and x in columns.
    fn across(quantities: &[QuantityLines<'t>]) -> Matrix<'t> {
        let first = quantities[0].lines;
        let row = |it: &QuantityLines<'t>| {
            let together = it
                .probability
                .map(|p| format!(" (together {})", probability(p)));
            let name = name(it) + &together.unwrap_or_default();
            (name, it.lines.iter().map(Some).collect())
        };
        let x = |line: &TableLine| (unit::coordinates(&line.x_name, &line.x), None);
        Matrix {
            corner: String::new(),
            columns: first.iter().map(x).collect(),
            rows: quantities.iter().map(row).collect(),
        }
    }

    /// A matrix of one quantity, with the last sweep in columns and all others in rows.
    fn of_sweeps(quantity: &QuantityLines<'t>) -> Option<Matrix<'t>> {
        let split = |line: &'t TableLine| {
            let (name, last_name) = line.x_name.rsplit_once(", ")?;
            let (x, last) = line.x.rsplit_once(", ")?;
            // If a value contains a comma, it cannot be split into the values of the sweeps.
            (name.matches(", ").count() == x.matches(", ").count()).then(|| {
                (
                    unit::coordinates(name, x),
                    format!("{} {last}", unit::readable(last_name)),
                )
            })
        };
        let mut columns: Vec<String> = Vec::new();
        let mut rows: Vec<(String, Vec<Option<&TableLine>>)> = Vec::new();
        for line in quantity.lines {
            let Some((x, last)) = split(line) else {
                return (quantity.lines.len() <= WIDE).then(|| Matrix::down(&[*quantity]));
            };
            let column = columns.iter().position(|it| *it == last);
            let column = column.unwrap_or_else(|| {
                columns.push(last);
                columns.len() - 1
            });
            if rows.last().is_none_or(|(row, _)| *row != x) {
                rows.push((x, Vec::new()));
            }
            if let Some((_, cells)) = rows.last_mut() {
                cells.resize(cells.len().max(column + 1), None);
                cells[column] = Some(line);
            }
        }
        let columns: Vec<(String, Option<f64>)> =
            columns.into_iter().map(|it| (it, None)).collect();
        let matrix = Matrix {
            corner: name(quantity),
            columns,
            rows,
        };
        (matrix.columns.len() <= WIDE).then_some(matrix)
    }

    /// Prefix of row names on narrow screens, on which the table heading is not visible.
    fn prefix(&self) -> Option<&str> {
        let numbers = self
            .rows
            .iter()
            .all(|(name, _)| name.parse::<f64>().is_ok());
        (numbers && !self.corner.is_empty()).then_some(&self.corner)
    }

    fn markup(&self) -> Markup {
        html! {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { (self.corner) }
                        @for (name, _) in &self.columns { th scope="col" { (name) } }
                    }
                }
                tbody {
                    @for (name, cells) in &self.rows {
                        tr {
                            th scope="row" data-label=[self.prefix()] { (name) }
                            @for ((column, _), line) in self.columns.iter().zip(cells) {
                                td data-label=(column) { @if let Some(line) = line { (cell(line)) } }
                            }
                        }
                    }
                }
                @if self.columns.iter().any(|(_, p)| p.is_some()) {
                    tfoot {
                        tr {
                            th scope="row" { "together" }
                            @for (name, p) in &self.columns {
                                td data-label=(name) { @if let Some(p) = p { (joint(*p)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Formats a joint probability: `p = 0.2`, `p < 0.001`.
fn joint(p: f64) -> String {
    match probability(p) {
        small if small.starts_with('<') => format!("p {small}"),
        other => format!("p = {other}"),
    }
}

/// Name of a quantity: subject, metric and unit.
fn name(column: &QuantityLines<'_>) -> String {
    let Some(first) = column.lines.first() else {
        return String::new();
    };
    let metric = unit::axis_label(&unit::readable(&first.metric), &first.unit);
    match first.series.as_str() {
        "all" => metric,
        series => format!("{series}, {metric}"),
    }
}

/// A cell of a matrix.
fn cell(line: &TableLine) -> Markup {
    html! {
        div { (ours(line)) }
        @if let (Some(published), Some(judgement)) = (&line.published, &line.judgement) {
            div { "printed " b { (published.shown_with(&line.unit)) } " " (verdict(judgement)) }
            @if let (Some(band), Some(rank)) = (judgement.band, judgement.rank) {
                small {
                    "one more run: " (digits(band.low, 4)) " to " (digits(band.high, 4)) "; rank " (rank.place()) " of " (rank.of)
                    @if let Some(remark) = &judgement.remark { "; " (remark) }
                }
            } @else {
                small { (judgement.reason) }
            }
        }
        @for comparison in &line.comparisons {
            small {
                (comparison.baseline) " " (with_half(comparison.mean, comparison.confidence)) " "
                @match comparison.overlap {
                    Some(true) => "overlaps",
                    Some(false) => "lies apart",
                    None => "",
                }
            }
        }
    }
}

pub(super) fn ours(line: &TableLine) -> Markup {
    html! {
        @match &line.measured {
            Some(measured) => (with_half(measured.mean, measured.confidence())),
            None => "–",
        }
    }
}

fn verdict(judgement: &Judgement) -> Markup {
    html! { span.verdict.(class_of(judgement.verdict)) { (judgement.verdict.text()) } }
}

/// The lines of a table from top to bottom, grouped by series and metric in their order.
fn list(table: &Table) -> Markup {
    let columns = Columns::of(table);
    let width = 3 + 3 * usize::from(columns.published) + 2 * columns.baselines.len();
    html! {
        table.lines {
            thead {
                tr {
                    th scope="col" {}
                    th scope="col" { "ours" }
                    th scope="col" { "runs" }
                    @if columns.published { th scope="col" { "printed" } th scope="col" { "verdict" } }
                    @for name in &columns.baselines {
                        th scope="col" { (name) }
                        th scope="col" { "ours less " (name) }
                    }
                    @if columns.published { th scope="col" { "reason" } }
                }
            }
            @for group in table.columns() {
                tbody {
                    @if columns.grouped {
                        tr.group {
                            th colspan=(width) scope="rowgroup" {
                                (name(&group))
                                @if let Some(p) = group.probability { span { "together " (joint(p)) } }
                            }
                        }
                    }
                    @for it in group.lines { (line(it, &columns)) }
                }
            }
        }
    }
}

fn line(line: &TableLine, columns: &Columns) -> Markup {
    let judgement = line.judgement.as_ref();
    html! {
        tr {
            th scope="row" { (columns.head(line)) }
            td data-label="ours" { (ours(line)) }
            td data-label="runs" { @if let Some(measured) = &line.measured { (measured.replications) } }
            @if columns.published {
                td data-label="printed" { @if let Some(published) = &line.published { (published.shown_with(&line.unit)) } }
                td data-label="verdict" { @if let Some(judgement) = judgement { (verdict(judgement)) } }
            }
            @for name in &columns.baselines {
                @let comparison = line.comparison(name);
                td data-label=(name) {
                    @if let Some(comparison) = comparison { (with_half(comparison.mean, comparison.confidence)) }
                }
                td data-label={ "ours less " (name) } {
                    @if let Some(difference) = comparison.and_then(|it| it.difference) {
                        (signed(difference))
                        @match comparison.and_then(|it| it.overlap) {
                            Some(true) => ", intervals overlap",
                            Some(false) => ", apart",
                            None => "",
                        }
                    }
                }
            }
            @if columns.published {
                td.reason { @if let Some(judgement) = judgement { (judgement.reason) } }
            }
        }
    }
}

/// Columns of a table, and whether lines are grouped.
pub(crate) struct Columns {
    /// Whether there are columns for printed values and verdicts.
    pub published: bool,
    /// Names of the independent programs whose means are shown.
    pub baselines: Vec<String>,
    /// Whether lines with the same series and metric are grouped under a heading.
    pub grouped: bool,
}

impl Columns {
    /// The columns of a table.
    pub fn of(table: &Table) -> Columns {
        let same = |pair: &[TableLine]| {
            pair[0].series == pair[1].series && pair[0].metric == pair[1].metric
        };
        Columns {
            published: table.lines.iter().any(|line| line.judgement.is_some()),
            baselines: table.baselines().into_iter().map(str::to_owned).collect(),
            grouped: table.lines.windows(2).any(same),
        }
    }

    /// Heading of a line: only its x if lines are grouped, and otherwise all its names.
    pub fn head(&self, line: &TableLine) -> String {
        let x = match line.x_name.as_str() {
            "" => String::new(),
            "event" => line.x.clone(),
            name => unit::coordinates(name, &line.x),
        };
        if self.grouped {
            return x;
        }
        let metric = unit::axis_label(&unit::readable(&line.metric), &line.unit);
        match x.is_empty() {
            true => format!("{}, {metric}", line.series),
            false => format!("{}, {metric}, {x}", line.series),
        }
    }
}

/// Summary of a folded table.
fn summary(table: &Table) -> String {
    let total = table.lines.len();
    let mut text = counted(total, "line");
    for name in table.baselines() {
        let comparisons = table.lines.iter().filter_map(|line| line.comparison(name));
        let overlaps: Vec<bool> = comparisons
            .filter_map(|comparison| comparison.overlap)
            .collect();
        let overlapping = overlaps.iter().filter(|overlap| **overlap).count();
        if !overlaps.is_empty() {
            let all = overlaps.len();
            text.push_str(&format!(
                "; intervals overlap those of {name} in {overlapping} of {all}"
            ));
        }
    }
    text
}

fn with_half(mean: f64, half: Option<f64>) -> Markup {
    let (mean, half) = readable(mean, half);
    html! {
        (mean)
        @if let Some(half) = half { " " i { "± " (half) } }
    }
}

/// Formats a difference with its sign and three significant digits.
fn signed(difference: f64) -> String {
    let text = digits(difference, 3);
    if difference > 0.0 {
        format!("+{text}")
    } else {
        text.replace('-', "\u{2212}")
    }
}
