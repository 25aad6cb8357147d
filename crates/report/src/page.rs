//! `report.html`: one page that opens from disk, with everything inside it and no script.
//!
//! `maud` escapes all text. Two things go in as they are: the style sheet and the drawings, which are made here.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::compare::{Verdict, digits};
use crate::figure::{Figure, FigureError, for_page};
use crate::table::{Line, Table, readable};
use crate::unit;
use crate::{Outputs, Tally};

const STYLE: &str = include_str!("page.css");

/// The page.
///
/// # Errors
/// A figure that cannot be drawn.
pub fn html(outputs: &Outputs<'_>) -> Result<String, FigureError> {
    let spec = &outputs.results.spec;
    let title = spec.title.as_deref().unwrap_or(&spec.name);
    let judged = |table: &Table| table.lines.iter().any(|line| line.judgement.is_some());
    let (tables, figures) = (tables(outputs), figures(outputs)?);
    let parts = match outputs.tables.iter().any(judged) {
        true => [tables, figures],
        false => [figures, tables],
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (header(outputs, title))
                    (verdicts(outputs))
                    (runs(outputs))
                    (assumptions(outputs))
                    @for part in &parts { (part) }
                    h2 #spec { "The spec" }
                    details {
                        summary { "as it was read" }
                        pre { (outputs.results.manifest.spec) }
                    }
                }
            }
        }
    };
    Ok(page.into_string() + "\n")
}

/// A table of more lines than this is folded under a line that sums it up.
const FOLDED: usize = 40;

fn header(outputs: &Outputs<'_>, title: &str) -> Markup {
    html! {
        header {
            h1 { (title) }
            @if let Some(paper) = &outputs.results.spec.paper {
                p.paper { (paper.authors) ". " (paper.venue) }
                @if let Some(about) = &paper.about { p.about { (about) } }
            }
        }
    }
}

/// How many printed values were reproduced, in all and table by table.
fn verdicts(outputs: &Outputs<'_>) -> Markup {
    let all = Tally::of(&outputs.tables);
    if all.total() == 0 {
        return html! {};
    }
    let counts = |tally: &Tally| [tally.reproduced, tally.differs, tally.not_attempted];
    let verdicts = [Verdict::Reproduced, Verdict::Differs, Verdict::NotAttempted];
    html! {
        section.summary {
            div.tally {
                @for (verdict, count) in verdicts.into_iter().zip(counts(&all)) {
                    div.count.(class_of(verdict)) { b { (count) } span { (verdict.text()) } }
                }
            }
            table.verdicts {
                thead {
                    tr {
                        th { "Table" }
                        th { "Printed as" }
                        @for verdict in verdicts { th { (verdict.text()) } }
                    }
                }
                tbody {
                    @for table in &outputs.tables {
                        @let tally = Tally::of([table]);
                        @if tally.total() > 0 {
                            tr {
                                td { a href={ "#table-" (table.id) } { (table.title) } }
                                td { (table.place.as_deref().unwrap_or_default()) }
                                @for count in counts(&tally) {
                                    td.none[count == 0] { (count) }
                                }
                            }
                        }
                    }
                }
            }
            p.remark {
                "A printed value is a single run. It counts as reproduced when it lies where one more run of ours would lie \
                 with 95 % probability, printed rounding allowed; where nothing is left to chance, when it agrees to its \
                 rounding (times: to the tolerance stated). The rules and their reasons: docs/VERDICTS.md."
            }
        }
    }
}

/// What was run, and by which program.
fn facts(outputs: &Outputs<'_>) -> Vec<(&'static str, String)> {
    let (manifest, records) = (&outputs.results.manifest, &outputs.results.records);
    let events: u64 = records.iter().map(|record| record.events).sum();
    let simulated: f64 = records.iter().map(|record| record.simulated).sum();
    let simulated = digits(simulated, 6);
    let commit = manifest.commit.as_ref();
    let commit = commit.map_or(String::new(), |commit| format!(", commit {commit}"));
    let mut facts = vec![
        ("program", format!("anabranch {}{commit}", manifest.version)),
        (
            "spec",
            format!("{}, SHA-256 {}", manifest.name, manifest.spec_hash),
        ),
        ("seed", manifest.seed.to_string()),
        ("overrides", manifest.overrides.join(", ")),
        (
            "runs",
            format!(
                "{}: {simulated} s simulated, {events} events",
                manifest.runs
            ),
        ),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    let failures = outputs.results.failures().into_iter();
    facts.extend(failures.map(|failure| ("failed", failure)));
    let open = outputs.unanswered.iter();
    facts.extend(open.map(|file| ("not compared", file.to_string())));
    facts
}

fn runs(outputs: &Outputs<'_>) -> Markup {
    let results = outputs.results;
    let title = |id: &str| {
        let experiment = results.spec.experiments.iter().find(|it| it.id == id);
        experiment
            .and_then(|it| it.title.as_deref())
            .unwrap_or_default()
    };
    html! {
        h2 #runs { "What was run" }
        dl.facts {
            @for (name, value) in facts(outputs) { dt { (name) } dd { (value) } }
        }
        table.runs {
            thead {
                tr {
                    th { "Experiment" }
                    th { "About" }
                    th { "Points" }
                    th { "Replications" }
                }
            }
            tbody {
                @for (id, replications) in &results.manifest.replications {
                    tr {
                        td { code { (id) } }
                        td { (title(id)) }
                        td { (super::table::by_point(results, id).len()) }
                        td { (replications) }
                    }
                }
            }
        }
    }
}

fn assumptions(outputs: &Outputs<'_>) -> Markup {
    let assumptions = &outputs.results.spec.assumptions;
    html! {
        @if !assumptions.is_empty() {
            h2 #assumptions { "What had to be assumed" }
            dl.assumptions {
                @for it in assumptions { dt { (it.about) } dd { (it.text) } }
            }
        }
    }
}

fn tables(outputs: &Outputs<'_>) -> Markup {
    html! {
        @if !outputs.tables.is_empty() {
            h2 #tables { "Tables" }
            @for it in &outputs.tables { (table(it)) }
        }
    }
}

fn figures(outputs: &Outputs<'_>) -> Result<Markup, FigureError> {
    let made = outputs.figures.iter().map(figure);
    let made = made.collect::<Result<Vec<Markup>, _>>()?;
    Ok(html! {
        @if !made.is_empty() {
            h2 #figures { "Figures" }
            @for it in &made { (it) }
        }
    })
}

fn table(table: &Table) -> Markup {
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
                details { summary { (summary(table)) } (lines(table)) }
            } @else {
                (lines(table))
            }
            p.files { "tables/" (table.id) ".csv" }
        }
    }
}

/// The lines of a table, grouped by series and metric as they come.
fn lines(table: &Table) -> Markup {
    let columns = Columns::of(table);
    let width = 3 + 3 * usize::from(columns.published) + 3 * columns.beside.len();
    let head = |line: &Line| (line.series.clone(), line.metric.clone());
    let groups = table.lines.chunk_by(|a, b| head(a) == head(b));
    html! {
        div.wide {
            table.lines {
                thead {
                    tr {
                        th {}
                        th { "ours" }
                        th { "runs" }
                        @if columns.published { th { "printed" } th { "verdict" } }
                        @for name in &columns.beside {
                            th { (name) }
                            th { "intervals" }
                            th { "ours less " (name) }
                        }
                        @if columns.published { th { "reason" } }
                    }
                }
                tbody {
                    @for group in groups {
                        @if let Some(first) = group.first().filter(|_| columns.grouped) {
                            tr.group {
                                th colspan=(width) {
                                    (unit::axis_label(&unit::readable(&first.metric), &first.unit))
                                    " " span { (first.series) }
                                }
                            }
                        }
                        @for it in group { (line(it, &columns)) }
                    }
                }
            }
        }
    }
}

fn line(line: &Line, columns: &Columns) -> Markup {
    let judgement = line.judgement.as_ref();
    html! {
        tr {
            td.x { (columns.head(line)) }
            td {
                @match &line.measured {
                    Some(measured) => (with_half(measured.mean, measured.confidence())),
                    None => "–",
                }
            }
            td { @if let Some(measured) = &line.measured { (measured.replications) } }
            @if columns.published {
                td { @if let Some(published) = &line.published { (published.printed) } }
                td {
                    @if let Some(judgement) = judgement {
                        span.verdict.(class_of(judgement.verdict)) { (judgement.verdict.text()) }
                    }
                }
            }
            @for name in &columns.beside { (beside(line, name)) }
            @if columns.published {
                td.reason { @if let Some(judgement) = judgement { (judgement.reason) } }
            }
        }
    }
}

/// The cells of an independent program.
fn beside(line: &Line, name: &str) -> Markup {
    let Some(beside) = line.beside(name) else {
        return html! { td {} td {} td {} };
    };
    html! {
        td { (with_half(beside.mean, beside.confidence)) }
        td {
            @match beside.overlap {
                Some(true) => "overlap",
                Some(false) => "apart",
                None => "",
            }
        }
        td {
            @if let Some(difference) = beside.difference {
                (signed(difference))
                @if let Some(relative) = beside.relative() {
                    " (" (format!("{:+.1}", 100.0 * relative)) " %)"
                }
            }
        }
    }
}

fn figure(figure: &Figure) -> Result<Markup, FigureError> {
    let drawn = figure.svg()?;
    Ok(html! {
        figure id={ "figure-" (figure.id) } {
            @match &drawn {
                Some(svg) => (PreEscaped(for_page(svg))),
                None => p.remark { "Not made: nothing was recorded for it in this run." },
            }
            figcaption {
                b { (figure.headline()) "." } " "
                @if let Some(caption) = &figure.caption { (caption) " " }
                span { (figure.made) " figures/" (figure.id) ".svg" }
            }
        }
    })
}

/// Which columns a table needs, and how its lines are headed.
pub(super) struct Columns {
    /// Printed values and verdicts.
    pub published: bool,
    /// The independent programs whose means stand beside.
    pub beside: Vec<String>,
    /// Lines that share series and metric stand together under a heading of their own.
    pub grouped: bool,
}

impl Columns {
    /// The columns of a table.
    pub fn of(table: &Table) -> Columns {
        let same =
            |pair: &[Line]| pair[0].series == pair[1].series && pair[0].metric == pair[1].metric;
        Columns {
            published: table.lines.iter().any(|line| line.judgement.is_some()),
            beside: table.yardsticks().into_iter().map(str::to_owned).collect(),
            grouped: table.lines.windows(2).any(same),
        }
    }

    /// What stands at the head of a line: x under a heading, all its names without one.
    pub fn head(&self, line: &Line) -> String {
        let x = match line.x_name.as_str() {
            "" => String::new(),
            "event" => line.x.clone(),
            name => coordinates(name, &line.x),
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

/// `error, streams` and `0.01, 4` as `error 0.01, streams 4`; values that hold commas of their own stay as they are.
fn coordinates(names: &str, values: &str) -> String {
    let (each_name, each_value): (Vec<&str>, Vec<&str>) =
        (names.split(", ").collect(), values.split(", ").collect());
    if each_name.len() != each_value.len() {
        return format!("{} {values}", unit::readable(names));
    }
    let pair = |(name, value)| format!("{} {value}", unit::readable(name));
    let pairs: Vec<String> = each_name.into_iter().zip(each_value).map(pair).collect();
    pairs.join(", ")
}

/// What a folded table says of itself.
fn summary(table: &Table) -> String {
    let total = table.lines.len();
    let mut text = format!("{total} lines");
    for name in table.yardsticks() {
        let besides = table.lines.iter().filter_map(|line| line.beside(name));
        let overlaps: Vec<bool> = besides.filter_map(|beside| beside.overlap).collect();
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

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Differs => "differs",
        Verdict::NotAttempted => "open",
    }
}

fn with_half(mean: f64, half: Option<f64>) -> Markup {
    let (mean, half) = readable(mean, half);
    html! {
        (mean)
        @if let Some(half) = half { " " i { "± " (half) } }
    }
}

/// A difference with its sign, three digits.
fn signed(difference: f64) -> String {
    let text = digits(difference, 3);
    if difference > 0.0 {
        format!("+{text}")
    } else {
        text.replace('-', "\u{2212}")
    }
}

#[cfg(test)]
mod tests {
    use super::coordinates;

    #[test]
    fn each_value_stands_beside_its_name() {
        let two = coordinates("error, streams", "0.01, 4");
        assert_eq!(two, "error 0.01, streams 4");
        assert_eq!(coordinates("buffer", "15"), "buffer 15");
        // A value with a comma of its own cannot be told from two values.
        assert_eq!(coordinates("variant", "1 s, cap 64"), "variant 1 s, cap 64");
    }
}
