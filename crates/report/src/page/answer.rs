//! Top of the page: the claims, the figure that shows them, and printed values next to measured
//! ones.

use maud::{Markup, html};

use super::class_of;
use super::tables::ours;
use crate::figure::plot::Mark;
use crate::figure::{Content, Figure};
use crate::outputs::Outputs;
use crate::table::{Table, TableLine};
use crate::unit;

/// Maximum number of printed values at the top of the page.
const LINES: usize = 8;

/// The leading figure. It belongs to the same place in the paper as the first claim, or as the
/// first table with printed values; otherwise it is the first drawn figure. Among several, one with
/// printed values is preferred.
pub(super) fn leading<'o>(outputs: &'o Outputs<'_>) -> Option<&'o Figure> {
    let drawn = || outputs.figures.iter().filter(|it| it.content.is_some());
    let at = |place: Option<&String>| {
        let place = place?;
        let here = || drawn().filter(|it| it.place.as_ref() == Some(place));
        here()
            .find(|it| shows_printed(it))
            .or_else(|| here().next())
    };
    let claimed = outputs.claims.iter().find_map(|it| at(it.place.as_ref()));
    let printed = || at(judged(outputs).next()?.place.as_ref());
    let any = || {
        drawn()
            .find(|it| shows_printed(it))
            .or_else(|| drawn().next())
    };
    claimed.or_else(printed).or_else(any)
}

fn shows_printed(figure: &Figure) -> bool {
    match &figure.content {
        Some(Content::Plot(plot)) => plot.layers.iter().any(|it| it.mark == Mark::Printed),
        _ => false,
    }
}

/// Tables with printed values.
fn judged<'o>(outputs: &'o Outputs<'_>) -> impl Iterator<Item = &'o Table> {
    let has = |table: &&Table| table.lines.iter().any(|line| line.judgement.is_some());
    outputs.tables.iter().filter(has)
}

/// Whether this section has any content.
pub(super) fn is_there(outputs: &Outputs<'_>) -> bool {
    !outputs.claims.is_empty() || judged(outputs).next().is_some() || leading(outputs).is_some()
}

/// The section at the top; `figure` is the drawing of the leading figure.
pub(super) fn section(outputs: &Outputs<'_>, figure: Option<&Markup>) -> Markup {
    html! {
        section.answer id="answer" {
            div {
                @if let Some(short) = outputs.short_of() { p.short { (short) } }
                (claims(outputs))
                (printed(outputs))
            }
            @if let Some(figure) = figure { (figure) }
        }
    }
}

fn claims(outputs: &Outputs<'_>) -> Markup {
    html! {
        @if !outputs.claims.is_empty() {
            ul.claimed {
                @for claim in &outputs.claims {
                    li {
                        span.verdict.(class_of(claim.verdict)) { (claim.verdict.text()) }
                        " " a href={ "#claim-" (claim.id) } { (claim.text) }
                        " " small { (claim.short()) }
                    }
                }
            }
        }
    }
}

/// Printed values next to measured ones, from the table that belongs to the leading figure, or from
/// the first table.
fn printed(outputs: &Outputs<'_>) -> Markup {
    let place = leading(outputs).and_then(|it| it.place.as_ref());
    let same = judged(outputs).find(|table| place.is_some() && table.place.as_ref() == place);
    let Some(table) = same.or_else(|| judged(outputs).next()) else {
        return html! {};
    };
    let lines = || table.lines.iter().filter(|line| line.judgement.is_some());
    let all: usize = judged(outputs)
        .map(|table| {
            table
                .lines
                .iter()
                .filter(|it| it.judgement.is_some())
                .count()
        })
        .sum();
    let rest = all - lines().count().min(LINES);
    html! {
        table.printed {
            thead {
                tr {
                    th scope="col" { @if let Some(place) = &table.place { (place) } }
                    th scope="col" { "printed" }
                    th scope="col" { "ours" }
                    th scope="col" { "verdict" }
                }
            }
            tbody {
                @for line in lines().take(LINES) {
                    @if let (Some(published), Some(judgement)) = (&line.published, &line.judgement) {
                        tr {
                            th scope="row" { (name(line)) }
                            td data-label="printed" { b { (published.shown_with(&line.unit)) } }
                            td data-label="ours" { (ours(line)) }
                            td data-label="verdict" { span.verdict.(class_of(judgement.verdict)) { (judgement.verdict.text()) } }
                        }
                    }
                }
            }
        }
        @if rest > 0 {
            p.files { a href={ "#table-" (table.id) } { (rest) " more printed values: tables" } }
        }
    }
}

/// Short name of a line of a table.
fn name(line: &TableLine) -> String {
    let metric = unit::axis_label(&unit::readable(&line.metric), &line.unit);
    let of = match line.series.as_str() {
        "all" => metric,
        series => format!("{series}, {metric}"),
    };
    match (line.x_name.as_str(), line.x.as_str()) {
        (_, "") => of,
        ("event" | "", x) => format!("{of}, {x}"),
        (x_name, x) => format!("{of}, {}", unit::coordinates(x_name, x)),
    }
}
