//! `report.html`: one page that opens from disk, with everything inside it and no script.

use crate::compare::{Verdict, digits};
use crate::figure::{Figure, FigureError, escaped, for_page};
use crate::table::{Line, Table, readable};
use crate::unit;
use crate::{Outputs, Tally};

const STYLE: &str = include_str!("page.css");

/// The page.
///
/// # Errors
/// A figure that cannot be drawn.
pub fn html(outputs: &Outputs<'_>) -> Result<String, FigureError> {
    let mut page = Page(String::new());
    let spec = &outputs.results.spec;
    let title = spec.title.as_deref().unwrap_or(&spec.name);
    page.add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.add("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.add(&format!(
        "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escaped(title)
    ));
    page.header(outputs, title);
    page.verdicts(outputs);
    page.runs(outputs);
    page.assumptions(outputs);
    let judged = |table: &Table| table.lines.iter().any(|line| line.judgement.is_some());
    if outputs.tables.iter().any(judged) {
        page.tables(outputs);
        page.figures(outputs)?;
    } else {
        page.figures(outputs)?;
        page.tables(outputs);
    }
    page.spec(outputs);
    page.add("</main>\n</body>\n</html>\n");
    Ok(page.0)
}

/// A table of more lines than this is folded under a line that sums it up.
const FOLDED: usize = 40;

struct Page(String);

impl Page {
    fn add(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn paragraph(&mut self, class: &str, text: &str) {
        self.add(&format!("<p class=\"{class}\">{}</p>\n", escaped(text)));
    }

    fn header(&mut self, outputs: &Outputs<'_>, title: &str) {
        let spec = &outputs.results.spec;
        self.add(&format!("<header>\n<h1>{}</h1>\n", escaped(title)));
        if let Some(paper) = &spec.paper {
            self.paragraph("paper", &format!("{}. {}", paper.authors, paper.venue));
            if let Some(about) = &paper.about {
                self.paragraph("about", about);
            }
        }
        self.add("</header>\n");
    }

    /// How many printed values were reproduced, in all and table by table.
    fn verdicts(&mut self, outputs: &Outputs<'_>) {
        let tally = Tally::of(&outputs.tables);
        if tally.total() == 0 {
            return;
        }
        self.add("<section class=\"summary\">\n<div class=\"tally\">\n");
        for (verdict, count) in [
            (Verdict::Reproduced, tally.reproduced),
            (Verdict::Differs, tally.differs),
            (Verdict::NotAttempted, tally.not_attempted),
        ] {
            let class = class_of(verdict);
            self.add(&format!(
                "<div class=\"count {class}\"><b>{count}</b><span>{verdict}</span></div>\n"
            ));
        }
        self.add(
            "</div>\n<table class=\"verdicts\">\n<thead><tr><th>Table</th><th>Printed as</th>",
        );
        self.add(
            "<th>reproduced</th><th>differs</th><th>not attempted</th></tr></thead>\n<tbody>\n",
        );
        for table in &outputs.tables {
            let tally = Tally::of([table]);
            if tally.total() == 0 {
                continue;
            }
            self.add(&format!(
                "<tr><td><a href=\"#table-{}\">{}</a></td><td>{}</td>",
                escaped(&table.id),
                escaped(&table.title),
                escaped(table.place.as_deref().unwrap_or_default())
            ));
            for count in [tally.reproduced, tally.differs, tally.not_attempted] {
                let class = if count == 0 { " class=\"none\"" } else { "" };
                self.add(&format!("<td{class}>{count}</td>"));
            }
            self.add("</tr>\n");
        }
        self.add("</tbody>\n</table>\n");
        self.paragraph(
            "remark",
            "A printed value is a single run. It counts as reproduced when it lies where one more run of ours would lie \
             with 95 % probability, printed rounding allowed; where nothing is left to chance, when it agrees to its \
             rounding (times: to the tolerance stated). The rules and their reasons: docs/VERDICTS.md.",
        );
        self.add("</section>\n");
    }

    fn runs(&mut self, outputs: &Outputs<'_>) {
        let (manifest, records) = (&outputs.results.manifest, &outputs.results.records);
        self.add("<h2 id=\"runs\">What was run</h2>\n<dl class=\"facts\">\n");
        let events: u64 = records.iter().map(|record| record.events).sum();
        let simulated: f64 = records.iter().map(|record| record.simulated).sum();
        let commit = manifest
            .commit
            .as_ref()
            .map_or(String::new(), |commit| format!(", commit {commit}"));
        for (name, value) in [
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
                    "{}: {} s simulated, {events} events",
                    manifest.runs,
                    digits(simulated, 6)
                ),
            ),
        ] {
            if !value.is_empty() {
                self.add(&format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value)));
            }
        }
        for failure in outputs.results.failures() {
            self.add(&format!("<dt>failed</dt><dd>{}</dd>\n", escaped(&failure)));
        }
        for file in &outputs.unanswered {
            let text = escaped(&file.to_string());
            self.add(&format!("<dt>not compared</dt><dd>{text}</dd>\n"));
        }
        self.add("</dl>\n<table class=\"runs\">\n<thead><tr><th>Experiment</th><th>About</th><th>Points</th>");
        self.add("<th>Replications</th></tr></thead>\n<tbody>\n");
        for (id, replications) in &manifest.replications {
            let experiment = outputs
                .results
                .spec
                .experiments
                .iter()
                .find(|experiment| experiment.id == *id);
            let title = experiment
                .and_then(|e| e.title.as_deref())
                .unwrap_or_default();
            let points = super::table::by_point(outputs.results, id).len();
            self.add(&format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{points}</td><td>{replications}</td></tr>\n",
                escaped(id),
                escaped(title)
            ));
        }
        self.add("</tbody>\n</table>\n");
    }

    fn assumptions(&mut self, outputs: &Outputs<'_>) {
        if outputs.results.spec.assumptions.is_empty() {
            return;
        }
        self.add(
            "<h2 id=\"assumptions\">What had to be assumed</h2>\n<dl class=\"assumptions\">\n",
        );
        for assumption in &outputs.results.spec.assumptions {
            self.add(&format!(
                "<dt>{}</dt><dd>{}</dd>\n",
                escaped(&assumption.about),
                escaped(&assumption.text)
            ));
        }
        self.add("</dl>\n");
    }

    fn tables(&mut self, outputs: &Outputs<'_>) {
        if !outputs.tables.is_empty() {
            self.add("<h2 id=\"tables\">Tables</h2>\n");
            outputs.tables.iter().for_each(|table| self.table(table));
        }
    }

    fn figures(&mut self, outputs: &Outputs<'_>) -> Result<(), FigureError> {
        if !outputs.figures.is_empty() {
            self.add("<h2 id=\"figures\">Figures</h2>\n");
        }
        let mut figures = outputs.figures.iter();
        figures.try_for_each(|figure| self.figure(figure))
    }

    fn table(&mut self, table: &Table) {
        let place = table.place.as_ref().map_or(String::new(), |place| {
            format!("<span>{}</span> ", escaped(place))
        });
        self.add(&format!(
            "<section id=\"table-{}\">\n<h3>{place}{}</h3>\n",
            escaped(&table.id),
            escaped(&table.title)
        ));
        if let Some(note) = &table.note {
            self.paragraph("remark", note);
        }
        if table.lines.is_empty() {
            self.paragraph("remark", "Not made: its experiment was not run.");
        } else if table.lines.len() > FOLDED {
            let summary = escaped(&summary(table));
            self.add(&format!("<details><summary>{summary}</summary>\n"));
            self.lines(table);
            self.add("</details>\n");
        } else {
            self.lines(table);
        }
        self.add(&format!(
            "<p class=\"files\">tables/{}.csv</p>\n</section>\n",
            escaped(&table.id)
        ));
    }

    /// The lines of a table, grouped by series and metric as they come.
    fn lines(&mut self, table: &Table) {
        let columns = Columns::of(table);
        self.add("<div class=\"wide\"><table class=\"lines\">\n<thead><tr><th></th><th>ours</th><th>runs</th>");
        if columns.published {
            self.add("<th>printed</th><th>verdict</th>");
        }
        for name in columns.beside.iter().map(|name| escaped(name)) {
            self.add(&format!(
                "<th>{name}</th><th>intervals</th><th>ours less {name}</th>"
            ));
        }
        if columns.published {
            self.add("<th>reason</th>");
        }
        self.add("</tr></thead>\n<tbody>\n");
        let mut group = None;
        for line in &table.lines {
            let head = (&line.series, &line.metric);
            if columns.grouped && group != Some(head) {
                group = Some(head);
                let width = 3 + 3 * usize::from(columns.published) + 3 * columns.beside.len();
                let name = unit::axis_label(&unit::readable(&line.metric), &line.unit);
                let text = format!("{name} <span>{}</span>", escaped(&line.series));
                self.add(&format!(
                    "<tr class=\"group\"><th colspan=\"{width}\">{text}</th></tr>\n"
                ));
            }
            self.line(line, &columns);
        }
        self.add("</tbody>\n</table></div>\n");
    }

    fn line(&mut self, line: &Line, columns: &Columns) {
        self.add(&format!(
            "<tr><td class=\"x\">{}</td><td>{}</td>",
            escaped(&columns.head(line)),
            ours(line)
        ));
        self.add(&format!(
            "<td>{}</td>",
            line.measured
                .map_or(String::new(), |m| m.replications.to_string())
        ));
        if columns.published {
            let printed = line
                .published
                .as_ref()
                .map_or("", |published| published.printed.as_str());
            let verdict = line.judgement.as_ref().map_or(String::new(), |judgement| {
                format!(
                    "<span class=\"verdict {}\">{}</span>",
                    class_of(judgement.verdict),
                    judgement.verdict
                )
            });
            self.add(&format!("<td>{}</td><td>{verdict}</td>", escaped(printed)));
        }
        for name in &columns.beside {
            let cells = line.beside(name).map_or(<[String; 3]>::default(), |it| {
                let (mean, half) = readable(it.mean, it.confidence);
                let overlap = it
                    .overlap
                    .map_or("", |overlap| if overlap { "overlap" } else { "apart" });
                let difference = it.difference.map_or(String::new(), |difference| {
                    let relative = it
                        .relative()
                        .map_or(String::new(), |r| format!(" ({:+.1} %)", 100.0 * r));
                    format!("{}{relative}", signed(difference))
                });
                [with_half(mean, half), overlap.to_owned(), difference]
            });
            self.add(&format!(
                "<td>{}</td><td>{}</td><td>{}</td>",
                cells[0], cells[1], cells[2]
            ));
        }
        if columns.published {
            let reason = line
                .judgement
                .as_ref()
                .map_or("", |judgement| &judgement.reason);
            self.add(&format!("<td class=\"reason\">{}</td>", escaped(reason)));
        }
        self.add("</tr>\n");
    }

    fn figure(&mut self, figure: &Figure) -> Result<(), FigureError> {
        self.add(&format!("<figure id=\"figure-{}\">\n", escaped(&figure.id)));
        match figure.svg()? {
            Some(svg) => self.add(&for_page(&svg)),
            None => self.paragraph(
                "remark",
                "Not made: nothing was recorded for it in this run.",
            ),
        }
        self.add("<figcaption>");
        self.add(&format!("<b>{}.</b> ", escaped(&figure.headline())));
        if let Some(caption) = &figure.caption {
            self.add(&format!("{} ", escaped(caption)));
        }
        self.add(&format!(
            "<span>{} figures/{}.svg</span>",
            escaped(&figure.made),
            escaped(&figure.id)
        ));
        self.add("</figcaption>\n</figure>\n");
        Ok(())
    }

    fn spec(&mut self, outputs: &Outputs<'_>) {
        self.add(
            "<h2 id=\"spec\">The spec</h2>\n<details>\n<summary>as it was read</summary>\n<pre>",
        );
        self.add(&escaped(&outputs.results.manifest.spec));
        self.add("</pre>\n</details>\n");
    }
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

fn with_half(mean: String, half: Option<String>) -> String {
    match half {
        Some(half) => format!("{mean} <i>± {half}</i>"),
        None => mean,
    }
}

fn ours(line: &Line) -> String {
    let Some(measured) = &line.measured else {
        return "–".to_owned();
    };
    let (mean, half) = readable(measured.mean, measured.confidence());
    with_half(mean, half)
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
