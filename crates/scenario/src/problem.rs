//! What is wrong with a spec, said so that it can be put right: file, line, key, what was found, what is allowed.

use std::fmt::{self, Write};

use crate::nearest::nearest;
use crate::tree::Place;

/// One fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key's path, such as `link.satellite.rate`; empty for a fault of syntax.
    pub key: String,
    /// What was found, and what is wrong with it.
    pub message: String,
    /// What is allowed; empty where the message says it.
    pub allowed: Vec<String>,
    /// The nearest correct spelling, if one is near.
    pub nearest: Option<String>,
}

impl Problem {
    /// A fault that says all in its message.
    pub fn new(place: Place, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place,
            key: key.into(),
            message: message.into(),
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// Adds what is allowed, and which of it is nearest to what was found.
    #[must_use]
    pub fn allowed<'a>(mut self, found: &str, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        for word in allowed {
            if !self.allowed.iter().any(|known| known == word) {
                self.allowed.push(word.to_owned());
            }
        }
        self.nearest = nearest(found, self.allowed.iter().map(String::as_str)).map(str::to_owned);
        self
    }
}

/// All faults of a spec; its text says each with the line it stands on.
#[derive(Clone, Debug)]
pub struct SpecError {
    file: String,
    text: String,
    arguments: Vec<String>,
    problems: Vec<Problem>,
}

impl SpecError {
    /// Faults of `file`, whose contents are `text`, read with `arguments` to `--set`.
    pub fn new(file: &str, text: &str, arguments: &[String], mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| {
            a.place
                .cmp_position(&b.place)
                .then_with(|| a.key.cmp(&b.key))
        });
        let mut distinct: Vec<Problem> = Vec::new();
        for problem in problems {
            if !distinct
                .iter()
                .any(|known| known.place == problem.place && known.message == problem.message)
            {
                distinct.push(problem);
            }
        }
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            arguments: arguments.to_vec(),
            problems: distinct,
        }
    }

    /// The faults, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn write_problem(&self, f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        write!(f, "error: ")?;
        if !problem.key.is_empty() {
            write!(f, "`{}`: ", problem.key)?;
        }
        writeln!(f, "{}", problem.message)?;
        let margin = match &problem.place {
            Place::File(span) => {
                let (line, column, source) = locate(&self.text, span.start);
                let margin = line.to_string().len();
                let width = underline(source, column, span.len());
                writeln!(f, "{:margin$}--> {}:{line}:{}", "", self.file, column + 1)?;
                writeln!(f, "{:margin$} |\n{line} | {source}", "")?;
                writeln!(
                    f,
                    "{:margin$} | {}{}",
                    "",
                    " ".repeat(column),
                    "^".repeat(width)
                )?;
                margin
            }
            Place::Argument(number) => {
                let argument = self.arguments.get(*number).map_or("", String::as_str);
                writeln!(f, " --> --set {argument}")?;
                1
            }
            Place::Program => 1,
        };
        if !problem.allowed.is_empty() {
            write_wrapped(f, margin, &problem.allowed)?;
        }
        if let Some(nearest) = &problem.nearest {
            writeln!(f, "{:margin$} = did you mean `{nearest}`?", "")?;
        }
        Ok(())
    }
}

/// Writes the allowed words in lines of at most about 100 columns.
fn write_wrapped(f: &mut fmt::Formatter<'_>, margin: usize, words: &[String]) -> fmt::Result {
    let mut lines = vec![String::from("= allowed:")];
    for (i, word) in words.iter().enumerate() {
        let comma = if i + 1 < words.len() { "," } else { "" };
        if lines
            .last()
            .is_some_and(|line| line.len() + word.len() > 96)
        {
            lines.push(" ".repeat("= allowed:".len()));
        }
        if let Some(line) = lines.last_mut() {
            let _ = write!(line, " {word}{comma}");
        }
    }
    for line in lines {
        writeln!(f, "{:margin$} {line}", "")?;
    }
    Ok(())
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            self.write_problem(f, problem)?;
            writeln!(f)?;
        }
        let count = self.problems.len();
        write!(
            f,
            "{}: {count} {}; nothing was run",
            self.file,
            if count == 1 { "error" } else { "errors" }
        )
    }
}

impl std::error::Error for SpecError {}

/// Line (from 1), column (characters, from 0) and text of the line at a byte.
fn locate(text: &str, at: usize) -> (usize, usize, &str) {
    let at = (0..=at.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0);
    let begin = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    (
        text[..at].matches('\n').count() + 1,
        text[begin..at].chars().count(),
        &text[begin..end],
    )
}

/// How much of the line to underline.
fn underline(source: &str, column: usize, length: usize) -> usize {
    length
        .min(source.chars().count().saturating_sub(column))
        .max(1)
}
