//! Layout of text for a terminal.

use std::fmt::Write;

use anabranch_report::Introduction;

/// Line width in characters.
const WIDE: usize = 80;
/// Column in which values start.
const VALUES: usize = 20;

/// Wraps text to the width of a terminal. Continued values start in their column.
pub fn fitted(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = if line.starts_with("  ") { VALUES } else { 0 };
        if line.chars().count() <= WIDE {
            let _ = writeln!(out, "{line}");
            continue;
        }
        // Names are ASCII, so that the start of the value is a character boundary.
        let (mut head, rest) = line.split_at_checked(indent).unwrap_or(("", line));
        let below = " ".repeat(indent);
        let mut now = String::new();
        for word in rest.split_whitespace() {
            if !now.is_empty() && indent + now.chars().count() + 1 + word.chars().count() > WIDE {
                let _ = writeln!(out, "{head}{now}");
                (head, now) = (&below, String::new());
            }
            if !now.is_empty() {
                now.push(' ');
            }
            now.push_str(word);
        }
        let _ = writeln!(out, "{head}{now}");
    }
    out
}

/// Formats text for a terminal or a file.
pub fn text(words: &Introduction) -> String {
    match words {
        Introduction::Text(text) => fitted(text),
        Introduction::List { title, items } => {
            let mut text = format!("{title}\n");
            for (name, lines) in items {
                for (place, line) in lines.iter().enumerate() {
                    let name = if place == 0 { name.as_str() } else { "" };
                    let _ = writeln!(text, "  {name:18}{line}");
                }
            }
            fitted(&text)
        }
    }
}

/// Space between columns, characters.
const GAP: usize = 2;

/// Formats rows as aligned columns; the first column is left-aligned. Columns that do not fit the
/// line follow below, again with the first column.
pub fn columns(rows: &[Vec<String>]) -> String {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..most).map(width).collect();
    let first = GAP + widths.first().copied().unwrap_or(0);
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = WIDE;
    for (column, width) in widths.iter().enumerate().skip(1) {
        match blocks.last_mut() {
            Some(block) if used + GAP + width <= WIDE => {
                block.push(column);
                used += GAP + width;
            }
            _ => {
                blocks.push(vec![0, column]);
                used = first + GAP + width;
            }
        }
    }
    let block = |columns: &Vec<usize>| -> String {
        let line = |row: &Vec<String>| {
            let cells = columns.iter().map(|&column| {
                let cell = row.get(column).map_or("", String::as_str);
                let pad = widths[column] - cell.chars().count();
                format!("{cell}{}", " ".repeat(pad))
            });
            let cells: Vec<String> = cells.collect();
            let gap = " ".repeat(GAP);
            format!("{gap}{}", cells.join(&gap)).trim_end().to_owned() + "\n"
        };
        rows.iter().map(line).collect()
    };
    let blocks: Vec<String> = blocks.iter().map(block).collect();
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_lost() {
        let long = "word ".repeat(30);
        let text = format!(
            "Head {long}\n  {:18}{long}\n  short             1 ± 2 %\n",
            "limited by"
        );
        let fitted = fitted(&text);
        assert!(
            fitted.lines().all(|line| line.chars().count() <= WIDE),
            "{fitted}"
        );
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&fitted), words(&text));
        let below = fitted.lines().nth(3).expect("the value goes on");
        assert!(
            below.starts_with(&" ".repeat(VALUES)) && !below.starts_with(&" ".repeat(VALUES + 1)),
            "{fitted}"
        );
        assert!(fitted.contains("  short             1 ± 2 %\n"), "{fitted}");
    }

    #[test]
    fn columns_that_do_not_fit_stand_below_with_the_first() {
        let row = |name: &str, cell: &str, count: usize| -> Vec<String> {
            let cells = std::iter::repeat_n(cell.to_owned(), count);
            [name.to_owned()].into_iter().chain(cells).collect()
        };
        let wide = "0.262 ± 0.006 c*";
        for count in [1, 4, 5, 16] {
            let text = columns(&[
                row("buffer", "1 stream", count),
                row("768 KiB", wide, count),
            ]);
            let lines = || text.lines().filter(|line| !line.is_empty());
            assert!(lines().all(|line| line.chars().count() <= WIDE), "{text}");
            assert_eq!(text.matches(wide).count(), count, "{text}");
            assert!(
                lines().all(|line| line.starts_with("  buffer") || line.starts_with("  768 KiB")),
                "{text}"
            );
        }
    }
}
