//! Tables and plots on a terminal.

use std::io::{self, IsTerminal, Write};

use crate::braille::Dots;
use crate::compare::{Verdict, digits};
use crate::figure::plot::{Mark, Plot};
use crate::figure::{Content, Figure, wrapped};
use crate::page::Columns;
use crate::table::{Table, TableLine, readable};
use crate::{Outputs, unit};

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in characters.
    pub width: usize,
    /// Whether the terminal displays colours.
    pub colours: bool,
}

impl Terminal {
    /// Detects the capabilities of standard output. Colours require a terminal that supports them,
    /// and that `NO_COLOR` is not set. The default width is 100.
    pub fn detect() -> Terminal {
        let quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let quiet = quiet || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
        Terminal {
            width: width.clamp(40, 160),
            colours: io::stdout().is_terminal() && !quiet,
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        let text = printable(text);
        if self.colours && !code.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text
        }
    }
}

/// Replaces control characters by visible symbols, because the text may come from a results
/// directory of another user, and must not control the terminal.
pub fn printable(text: &str) -> String {
    let sign = |character: char| match u32::from(character) {
        // The symbols are in the Unicode block Control Pictures, U+2400 to U+241F.
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        0x80..=0x9f => char::REPLACEMENT_CHARACTER,
        _ => character,
    };
    text.chars().map(sign).collect()
}

/// Breaks a text into lines that fit standard output after an indent. The text is not broken if
/// standard output is not a terminal, because a program may read it.
pub fn fitted(text: &str, indent: usize) -> Vec<String> {
    let text = printable(text);
    match io::stdout().is_terminal() {
        true => lines(&text, indent, Terminal::detect()),
        false => vec![text],
    }
}

/// Breaks a text into lines that leave space for an indent.
fn lines(text: &str, indent: usize, terminal: Terminal) -> Vec<String> {
    wrapped(text, terminal.width.saturating_sub(indent).max(20))
}

const BOLD: &str = "1";
const FAINT: &str = "2";
/// Colours of layers, in the order of the palette.
const LAYERS: [&str; 6] = ["34", "31", "32", "35", "33", "36"];

/// Writes all tables, and the figures that are readable as characters.
///
/// # Errors
/// Any error of the writer.
pub fn show(outputs: &Outputs<'_>, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    let spec = &outputs.results.spec;
    writeln!(
        out,
        "{}",
        terminal.paint(BOLD, spec.title.as_deref().unwrap_or(&spec.name))
    )?;
    if let Some(paper) = &spec.paper {
        writeln!(
            out,
            "{}",
            terminal.paint(FAINT, &format!("{}. {}", paper.authors, paper.venue))
        )?;
    }
    for failure in outputs.results.failures() {
        writeln!(
            out,
            "{}",
            terminal.paint("33", &format!("failed: {failure}"))
        )?;
    }
    for note in outputs.results.notes() {
        writeln!(out, "{}", terminal.paint(FAINT, &format!("note: {note}")))?;
    }
    for flow in spec.flows.iter().filter(|flow| flow.count.0 == 0) {
        let text = format!(
            "off: the flow {} has count = 0 in the spec; it runs only where an experiment sets another",
            flow.name
        );
        for line in lines(&text, 0, terminal) {
            writeln!(out, "{}", terminal.paint(FAINT, &line))?;
        }
    }
    for verdict_counts in outputs.tallies() {
        for line in lines(&verdict_counts, 0, terminal) {
            writeln!(out, "{line}")?;
        }
    }
    show_claims(outputs, terminal, out)?;
    for table in outputs
        .tables
        .iter()
        .filter(|table| !table.lines.is_empty())
    {
        show_table(table, terminal, out)?;
    }
    for figure in &outputs.figures {
        show_figure(figure, terminal, out)?;
    }
    Ok(())
}

fn colour_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "32",
        Verdict::Compatible => "36",
        Verdict::Differs => "33",
        Verdict::NotAttempted => FAINT,
    }
}

/// Writes the verdict on each claim.
fn show_claims(outputs: &Outputs<'_>, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    if !outputs.claims.is_empty() {
        writeln!(
            out,
            "\n{}",
            terminal.paint(BOLD, "What the paper concludes")
        )?;
    }
    for claim in &outputs.claims {
        let verdict = format!("{:13}", claim.verdict.text());
        let verdict = terminal.paint(colour_of(claim.verdict), &verdict);
        let room = terminal.width.saturating_sub(17).max(20);
        let text = wrapped(&claim.text, room);
        let reason = wrapped(&claim.reason(), room);
        let faint = reason.iter().map(|line| terminal.paint(FAINT, line));
        let lines = text.iter().map(|line| printable(line)).chain(faint);
        for (at, line) in lines.enumerate() {
            match at {
                0 => writeln!(out, "  {verdict}  {line}")?,
                _ => writeln!(out, "  {:13}  {line}", "")?,
            }
        }
    }
    Ok(())
}

fn headline(place: Option<&str>, title: &str) -> String {
    place.map_or(title.to_owned(), |place| format!("{place}: {title}"))
}

/// Text and colour of a cell.
type Cell = (String, &'static str);

fn show_table(table: &Table, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    let columns = Columns::of(table);
    writeln!(
        out,
        "\n{}",
        terminal.paint(BOLD, &headline(table.place.as_deref(), &table.title))
    )?;
    let mut heads = vec!["", "ours", "runs"];
    let baselines = columns.baselines.iter().map(String::as_str);
    if columns.published {
        heads.extend(["printed", "verdict"]);
    }
    heads.extend(baselines.flat_map(|name| [name, "intervals", "difference"]));
    let rows: Vec<Vec<Cell>> = table
        .lines
        .iter()
        .map(|line| cells(line, &columns))
        .collect();
    let width = |column: usize| {
        let longest = rows
            .iter()
            .map(|row| row[column].0.chars().count())
            .max()
            .unwrap_or(0);
        longest.max(heads[column].chars().count())
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(width).collect();
    // The verdict is always shown. If the terminal is too narrow, the names before it are
    // shortened, and the columns after it are omitted.
    let needed = if columns.published { 5 } else { 2 };
    let rest: usize = widths[1..needed].iter().map(|width| width + 2).sum();
    let room = terminal.width.saturating_sub(rest + 4);
    widths[0] = widths[0].min(room.max(8));
    let mut left = terminal.width.saturating_sub(2);
    let fits = |width: &&usize| {
        let enough = left >= **width + 2;
        left = left.saturating_sub(**width + 2);
        enough
    };
    let shown = widths.iter().take_while(fits).count().max(needed);
    let heading: Vec<Cell> = heads
        .iter()
        .map(|head| ((*head).to_owned(), FAINT))
        .collect();
    write_row(&heading, &widths, shown, terminal, out)?;
    let mut group = None;
    for (line, row) in table.lines.iter().zip(&rows) {
        let head = (&line.series, &line.metric);
        if columns.grouped && group != Some(head) {
            group = Some(head);
            let name = unit::axis_label(&unit::readable(&line.metric), &line.unit);
            let series = printable(&line.series);
            writeln!(out, "  {}, {series}", printable(&name))?;
        }
        write_row(row, &widths, shown, terminal, out)?;
    }
    show_remarks(table, terminal, out)
}

/// Writes the remarks on published values, without duplicates.
fn show_remarks(table: &Table, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    let judged = table
        .lines
        .iter()
        .filter_map(|line| line.judgement.as_ref());
    let mut said: Vec<&str> = Vec::new();
    for remark in judged.filter_map(|it| it.remark.as_deref()) {
        if said.contains(&remark) {
            continue;
        }
        said.push(remark);
        for line in lines(remark, 2, terminal) {
            writeln!(out, "  {}", terminal.paint(FAINT, &line))?;
        }
    }
    Ok(())
}

fn write_row(
    row: &[Cell],
    widths: &[usize],
    shown: usize,
    terminal: Terminal,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = String::new();
    for (column, ((cell, colour), width)) in row.iter().zip(widths).take(shown).enumerate() {
        let cell = &cut(cell, *width);
        let pad = " ".repeat(width - cell.chars().count());
        // Numbers are right-aligned, and words left-aligned.
        let padded = match column {
            1..=3 => format!("{pad}{}", terminal.paint(colour, cell)),
            _ => format!("{}{pad}", terminal.paint(colour, cell)),
        };
        text.push_str("  ");
        text.push_str(&padded);
    }
    writeln!(out, "  {}", text.trim_end())
}

/// Shortens a text in the middle, because rows often differ at the end (`sources 2`, `sources 4`).
fn cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let end = width / 2;
    let begin = text.chars().take(width.saturating_sub(end + 1));
    begin
        .chain(['…'])
        .chain(text.chars().skip(count - end))
        .collect()
}

fn with_half((mean, half): (String, Option<String>)) -> String {
    half.map_or(mean.clone(), |half| format!("{mean} ± {half}"))
}

fn cells(line: &TableLine, columns: &Columns) -> Vec<Cell> {
    let plain = |text: String| (text, "");
    let ours = line.measured.map_or("–".to_owned(), |m| {
        with_half(readable(m.mean, m.confidence()))
    });
    let runs = line
        .measured
        .map_or(String::new(), |m| m.replications.to_string());
    let mut row = vec![plain(columns.head(line)), plain(ours), (runs, FAINT)];
    if columns.published {
        row.push(plain(
            line.published
                .as_ref()
                .map_or(String::new(), |printed| printed.shown_with(&line.unit)),
        ));
        row.push(
            line.judgement
                .as_ref()
                .map_or(plain(String::new()), |judgement| {
                    (
                        judgement.verdict.text().to_owned(),
                        colour_of(judgement.verdict),
                    )
                }),
        );
    }
    for name in &columns.baselines {
        let comparison = line.comparison(name);
        row.push(plain(comparison.map_or(String::new(), |comparison| {
            with_half(readable(comparison.mean, comparison.confidence))
        })));
        row.push(match comparison.and_then(|comparison| comparison.overlap) {
            Some(true) => ("overlap".to_owned(), colour_of(Verdict::Reproduced)),
            Some(false) => ("apart".to_owned(), colour_of(Verdict::Differs)),
            None => plain(String::new()),
        });
        row.push(plain(
            comparison
                .and_then(|comparison| comparison.difference)
                .map_or(String::new(), |difference| {
                    let sign = if difference > 0.0 { "+" } else { "" };
                    format!("{sign}{}", digits(difference, 3))
                }),
        ));
    }
    row
}

/// Writes a figure if it is readable as characters. Plots of sequence numbers and ladders are not;
/// they are only available as SVG.
///
/// # Errors
/// Any error of the writer.
pub fn show_figure(figure: &Figure, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    let Some(Content::Plot(plot)) = &figure.content else {
        return Ok(());
    };
    if plot
        .layers
        .iter()
        .all(|layer| matches!(layer.mark, Mark::Dots | Mark::Crosses | Mark::Discs))
    {
        return Ok(());
    }
    writeln!(out, "\n{}", terminal.paint(BOLD, &figure.headline()))?;
    show_plot(plot, terminal, out)
}

const ROWS: usize = 12;

fn show_plot(plot: &Plot, terminal: Terminal, out: &mut impl Write) -> io::Result<()> {
    let gutter = plot
        .y
        .ticks
        .iter()
        .map(|(_, text)| text.chars().count())
        .max()
        .unwrap_or(1);
    let columns = terminal.width.saturating_sub(gutter + 5).clamp(20, 100);
    let cut = match plot.y.cut {
        true => "; the axis does not begin at 0",
        false => "",
    };
    let label = format!("{}{cut}", plot.y.label);
    writeln!(out, "  {}", terminal.paint(FAINT, &label))?;
    for (row, characters) in Dots::of(plot, columns, ROWS).rows().enumerate() {
        let of_row =
            |at: f64| ROWS - 1 - ((plot.y.part(at) * ROWS as f64) as usize).min(ROWS - 1) == row;
        let label = plot
            .y
            .ticks
            .iter()
            .find(|(at, _)| of_row(*at))
            .map_or("", |(_, text)| text.as_str());
        let edge = if label.is_empty() { '│' } else { '┤' };
        writeln!(
            out,
            "  {label:>gutter$} {edge}{}",
            painted(&characters, plot, terminal)
        )?;
    }
    writeln!(out, "  {:>gutter$} └{}", "", "─".repeat(columns))?;
    let mut line = vec![' '; columns + 2];
    let mut free = 0;
    for (at, text) in &plot.x.ticks {
        let middle = (plot.x.part(*at) * (columns - 1) as f64).round() as usize;
        let begin = middle.saturating_sub(text.chars().count() / 2);
        if begin >= free && begin + text.chars().count() <= line.len() {
            text.chars()
                .enumerate()
                .for_each(|(offset, c)| line[begin + offset] = c);
            free = begin + text.chars().count() + 1;
        }
    }
    let ticks: String = line.into_iter().collect();
    writeln!(out, "  {:>gutter$}  {}", "", ticks.trim_end())?;
    let names: Vec<String> = plot
        .layers
        .iter()
        .filter(|layer| !layer.label.is_empty() && !layer.mark.is_spread())
        .map(|layer| match layer.mark {
            Mark::Printed => format!("◇ {}", layer.label),
            _ => terminal.paint(
                LAYERS[layer.curve % LAYERS.len()],
                &format!("⠶ {}", layer.label),
            ),
        })
        .collect();
    writeln!(
        out,
        "  {:>gutter$}  {}   {}",
        "",
        terminal.paint(FAINT, &plot.x.label),
        names.join("   ")
    )
}

/// A row of characters in the colours of their layers. There is one colour code per run of
/// characters with the same colour.
fn painted(characters: &[(char, usize)], plot: &Plot, terminal: Terminal) -> String {
    let mut text = String::new();
    for run in characters.chunk_by(|a, b| a.1 == b.1) {
        let part: String = run.iter().map(|(c, _)| *c).collect();
        let layer = plot.layers.get(run[0].1);
        let colour = layer
            .filter(|layer| layer.mark != Mark::Printed)
            .map_or("", |l| LAYERS[l.curve % LAYERS.len()]);
        text.push_str(&if part.trim().is_empty() {
            part
        } else {
            terminal.paint(colour, &part)
        });
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_cut_can_be_distinguished_from_each_other() {
        let rows = ["sources 2", "sources 4", "loss 0.0001, hops 3", "é"];
        let cut = rows.map(|row| cut(row, 8));
        assert_eq!(cut, ["sou…es 2", "sou…es 4", "los…ps 3", "é"]);
    }

    #[test]
    fn text_of_a_spec_gives_a_terminal_no_commands() {
        let title = "\x1b]0;owned\x07 \x1b[2J\u{9b}31m\x7f wide é ✓";
        for colours in [false, true] {
            let terminal = Terminal { width: 80, colours };
            let shown = terminal.paint(BOLD, title);
            let ours = ["\x1b[1m", "\x1b[0m"];
            let rest = ours
                .iter()
                .fold(shown, |rest, code| rest.replacen(code, "", 1));
            assert!(!rest.chars().any(char::is_control), "{rest:?}");
            assert!(rest.ends_with(" wide é ✓") && rest.chars().count() == title.chars().count());
        }
    }
}
