//! `report.html`: a self-contained page without scripts that can be opened from disk.
//!
//! `maud` escapes all text. Only the style sheet and the drawings are inserted unescaped, because
//! both are generated here.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::claim::EvaluatedClaim;
use crate::compare::{Verdict, digits};
use crate::figure::{Figure, FigureError, for_page};
use crate::outputs::{Introduction, Outputs};
use crate::table::Table;
use crate::unit;
use crate::verdict_counts::VerdictCounts;

mod answer;
mod repeat;
mod tables;

pub(crate) use tables::Columns;

const STYLE: &str = include_str!("page.css");

/// The page as HTML.
///
/// # Errors
/// A figure cannot be drawn.
pub fn html(outputs: &Outputs<'_>) -> Result<String, FigureError> {
    let spec = &outputs.results.spec;
    let title = spec.title.as_deref().unwrap_or(&spec.name);
    let leading = answer::leading(outputs);
    let drawn = leading.map(figure).transpose()?;
    let (tables, figures) = (tables(outputs), figures(outputs, leading)?);
    let parts = match tables_first(outputs) {
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
                    (introduction(&outputs.introduction))
                    @if answer::is_there(outputs) { (answer::section(outputs, drawn.as_ref())) }
                    (contents(outputs))
                    (verdicts(outputs))
                    (runs(outputs))
                    (assumptions(outputs))
                    @for part in &parts { (part) }
                    h2 #spec { "The spec" }
                    p.files { (file("spec.toml")) " " (file("manifest.json")) }
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

/// Whether tables precede figures: they do if any table contains printed values.
fn tables_first(outputs: &Outputs<'_>) -> bool {
    let judged = |table: &Table| table.lines.iter().any(|line| line.judgement.is_some());
    outputs.tables.iter().any(judged)
}

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

fn introduction(words: &[Introduction]) -> Markup {
    html! {
        @for words in words {
            section.foreword {
                @match words {
                    Introduction::Text(text) => @for line in text.lines() { p { (line) } },
                    Introduction::List { title, items } => {
                        h2 { (title) }
                        dl {
                            @for (name, lines) in items {
                                dt { (name) }
                                dd { @for line in lines { div { (line) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Table of contents of the page, with links.
fn contents(outputs: &Outputs<'_>) -> Markup {
    let list = |name: &str, items: Vec<(String, String)>| {
        html! {
            @if !items.is_empty() {
                li {
                    a href={ "#" (name.to_lowercase()) } { (name) }
                    ul { @for (to, title) in &items { li { a href=(to) { (title) } } } }
                }
            }
        }
    };
    let named = |kind: &str, id: &str, place: Option<&str>, title: &str| {
        let title = place.map_or(title.to_owned(), |place| format!("{place}: {title}"));
        (format!("#{kind}-{id}"), title)
    };
    let tables = outputs.tables.iter();
    let tables = tables.map(|it| named("table", &it.id, it.place.as_deref(), &it.title));
    let leading = answer::leading(outputs).map(|it| it.id.as_str());
    let figures = outputs
        .figures
        .iter()
        .filter(|it| Some(it.id.as_str()) != leading);
    let figures = figures.map(|it| named("figure", &it.id, it.place.as_deref(), &it.title));
    let tables = list("Tables", tables.collect());
    let figures = list("Figures", figures.collect());
    let parts = match tables_first(outputs) {
        true => [tables, figures],
        false => [figures, tables],
    };
    html! {
        nav {
            details open[outputs.tables.len() + outputs.figures.len() <= 12] {
                summary { "Contents" }
                ul {
                    @if answer::is_there(outputs) { li { a href="#answer" { "The answer" } } }
                    @if VerdictCounts::of(&outputs.tables).total() > 0 { li { a href="#verdicts" { "Verdicts" } } }
                    @if !outputs.claims.is_empty() { li { a href="#claims" { "What the paper concludes" } } }
                    li { a href="#runs" { "What was run" } }
                    @if !outputs.results.spec.assumptions.is_empty() {
                        li { a href="#assumptions" { "What had to be assumed" } }
                    }
                    @for part in &parts { (part) }
                    li { a href="#spec" { "The spec" } }
                }
            }
        }
    }
}

/// Link to a file in the results directory.
fn file(name: &str) -> Markup {
    html! { a href=(name) download { (name) } }
}

/// Number of printed values by verdict, in total and for each table, and the claims.
fn verdicts(outputs: &Outputs<'_>) -> Markup {
    let all = VerdictCounts::of(&outputs.tables);
    html! {
        section.summary {
            @if all.total() > 0 {
                h2 #verdicts { "Verdicts" }
                (counts(&all))
                (verdicts_by_table(outputs))
                p.remark {
                    "A printed value is a single run. It is compatible when it lies where one more run of ours would lie with \
                     95 % probability, printed rounding allowed; it is reproduced when that band is also narrow, no more than \
                     20 % of the value to either side. Where nothing is left to chance it is reproduced when it agrees to its \
                     rounding (times: to the tolerance stated). A value printed so coarsely that it stands for more than 20 % to \
                     either side is compatible at most. \u{201c}Together\u{201d} is the probability that independent \
                     runs of ours lie together as far out as a column. Values that an earlier table has counted are in brackets. The \
                     rules and their reasons: docs/VERDICTS.md."
                }
                p.files { (file("verdicts.csv")) }
            }
            (claims(&outputs.claims))
        }
    }
}

fn counts(verdict_counts: &VerdictCounts) -> Markup {
    html! {
        div.tally {
            @for verdict in Verdict::ALL {
                div.count.(class_of(verdict)) { b { (verdict_counts.count(verdict)) } span { (verdict.text()) } }
            }
        }
    }
}

fn verdicts_by_table(outputs: &Outputs<'_>) -> Markup {
    html! {
        div {
            table.verdicts {
                thead {
                    tr {
                        th scope="col" { "Table" }
                        th scope="col" { "Printed as" }
                        @for verdict in Verdict::ALL { th scope="col" { (verdict.text()) } }
                        th scope="col" { "Together" }
                    }
                }
                tbody {
                    @for (table, (new, again)) in outputs.tables.iter().zip(VerdictCounts::of_each(&outputs.tables)) {
                        @if new.total() + again.total() > 0 {
                            tr {
                                th scope="row" { a href={ "#table-" (table.id) } { (table.title) } }
                                td data-label="printed as" { (table.place.as_deref().unwrap_or_default()) }
                                @for verdict in Verdict::ALL {
                                    @let (new, again) = (new.count(verdict), again.count(verdict));
                                    td.none[new + again == 0] data-label=(verdict.text()) {
                                        @match (new, again) {
                                            (new, 0) => (new),
                                            (0, again) => { "(" (again) ")" }
                                            (new, again) => { (new) " (" (again) ")" }
                                        }
                                    }
                                }
                                td data-label="together" { (together(table)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Joint probabilities of the columns of a table, as text.
fn together(table: &Table) -> String {
    let joint = table.columns().filter_map(|column| column.probability);
    joint.map(probability).collect::<Vec<_>>().join(", ")
}

/// Formats a probability.
pub(super) fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p => digits(p, 2),
    }
}

/// Section with the claims of the paper and their evaluation.
fn claims(claims: &[EvaluatedClaim]) -> Markup {
    html! {
        @if !claims.is_empty() {
            h2 #claims { "What the paper concludes" }
            (counts(&VerdictCounts::of_claims(claims)))
            p.remark {
                "Each claim is held against differences or slopes over common replications. It is reproduced when their 95 % \
                 intervals say so at every point, differs when one says the contrary, and is compatible when the runs do not decide."
            }
            p.files { (file("claims.csv")) }
            @for claim in claims {
                details.claim id={ "claim-" (claim.id) } {
                    summary {
                        span.verdict.(class_of(claim.verdict)) { (claim.verdict.text()) }
                        " " (claim.text)
                        @if let Some(place) = &claim.place { " " i { (place) } }
                        small { (claim.reason()) }
                    }
                    (findings(claim))
                }
            }
        }
    }
}

fn findings(claim: &EvaluatedClaim) -> Markup {
    html! {
        div {
            table.findings {
                thead {
                    tr {
                        th scope="col" { "at" }
                        th scope="col" { (unit::axis_label(claim.kind, &claim.shown)) }
                        th scope="col" { "runs" }
                        th scope="col" { "verdict" }
                    }
                }
                tbody {
                    @for it in &claim.findings {
                        tr {
                            th scope="row" { (it.at()) }
                            td data-label="value" { (claim.number(it)) }
                            td data-label="runs" { (it.replications) }
                            td data-label="verdict" { span.verdict.(class_of(it.verdict)) { (it.verdict.text()) } }
                        }
                    }
                }
            }
        }
    }
}

/// Facts about the runs and the program that has executed them.
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
        ("repeat with", repeat::command(outputs)),
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
    let notes = outputs.results.notes().into_iter();
    facts.extend(notes.map(|note| ("note", note)));
    let open = outputs.unmatched_rows.iter();
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
    let records = |id: &str| {
        let mut experiments = results.spec.experiments.iter();
        experiments.any(|it| it.id == id && !it.records.is_empty())
    };
    html! {
        h2 #runs { "What was run" }
        dl.facts {
            @for (name, value) in facts(outputs) { dt { (name) } dd { (value) } }
        }
        table.runs {
            thead {
                tr {
                    @for head in ["Experiment", "About", "Points", "Replications", "Data"] {
                        th scope="col" { (head) }
                    }
                }
            }
            tbody {
                @for (id, replications) in &results.manifest.replications {
                    tr {
                        th scope="row" { code { (id) } }
                        td data-label="about" { (title(id)) }
                        td data-label="points" { (super::table::by_point(results, id).len()) }
                        td data-label="replications" { (replications) }
                        td.files data-label="data" {
                            (file(&format!("measures/{id}.parquet")))
                            @if records(id) { " " (file(&format!("series/{id}.parquet"))) }
                        }
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
            @for it in &outputs.tables { (tables::section(it)) }
        }
    }
}

/// All figures except the leading one, which is at the top of the page.
fn figures(outputs: &Outputs<'_>, leading: Option<&Figure>) -> Result<Markup, FigureError> {
    let leading = leading.map(|it| it.id.as_str());
    let others = outputs
        .figures
        .iter()
        .filter(|it| Some(it.id.as_str()) != leading);
    let made = others.map(figure);
    let made = made.collect::<Result<Vec<Markup>, _>>()?;
    Ok(html! {
        @if !made.is_empty() {
            h2 #figures { "Figures" }
            div.figures { @for it in &made { (it) } }
        }
    })
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
                span.made { (figure.made) " " @if drawn.is_some() { (file(&format!("figures/{}.svg", figure.id))) } }
            }
        }
    })
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Compatible => "compatible",
        Verdict::Differs => "differs",
        Verdict::NotAttempted => "open",
    }
}
