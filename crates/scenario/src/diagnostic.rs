//! Errors of a spec, with file, line, key, the value found and the allowed values.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use anabranch_settings::counted;
use annotate_snippets::{Annotation, AnnotationKind, Level, Renderer, Snippet};

use crate::limits::MAX_PROBLEMS;
use crate::source_span::SourceSpan;
use crate::suggest::{hint, nearest, renamed};

/// Maximum number of allowed values that a message lists. For a longer list, the message gives only
/// the number of the remaining values.
const MAX_ALLOWED: usize = 500;

/// Maximum number of characters in a message. The limit is needed because a message may quote a
/// text of any length.
const MAX_SHOWN: usize = 1_000;

/// Class of an error, if other errors depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FaultClass {
    /// Any other error.
    #[default]
    Other,
    /// A key that is unknown in its table.
    UnknownKey,
    /// A required key is missing in a table.
    MissingKey {
        /// The missing key.
        key: String,
    },
}

/// One error of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Source position of the error.
    pub place: SourceSpan,
    /// Class of the error.
    pub fault: FaultClass,
    /// Path of the key, such as `link.satellite.rate`; empty for a syntax error.
    pub key: String,
    /// Description of the error, with the value found.
    pub message: String,
    /// Allowed values; empty if the message contains them.
    pub allowed: Vec<String>,
    /// Nearest correct spelling, if there is a similar one.
    pub nearest: Option<String>,
}

impl Diagnostic {
    /// Creates an error that its message describes completely.
    pub fn new(place: SourceSpan, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place,
            fault: FaultClass::Other,
            key: key.into(),
            message: message.into(),
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// Creates an error for an unknown key.
    pub fn unknown_key(place: SourceSpan, path: impl Into<String>, key: &str) -> Self {
        Self {
            fault: FaultClass::UnknownKey,
            ..Self::new(place, path, format!("unknown key `{key}`"))
        }
    }

    /// Creates an error for a table at `path` that lacks a required key; `what` describes the key.
    pub fn missing_key(place: SourceSpan, path: impl Into<String>, key: &str, what: &str) -> Self {
        Self {
            fault: FaultClass::MissingKey {
                key: key.to_owned(),
            },
            ..Self::new(place, path, format!("the key `{key}` is missing{what}"))
        }
    }

    /// Table and key for which an unknown key was probably intended. That key is then not also
    /// reported as missing.
    fn meant(&self) -> Option<(String, String)> {
        let meant = self.nearest.clone();
        let meant = meant.filter(|_| self.fault == FaultClass::UnknownKey)?;
        let parent = self.key.rsplit_once('.').map_or("", |(parent, _)| parent);
        Some((parent.to_owned(), meant))
    }

    /// Adds the allowed values, and finds the one nearest to the value found.
    #[must_use]
    pub fn allowed<'a>(mut self, found: &str, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: BTreeSet<&str> = self.allowed.iter().map(String::as_str).collect();
        let new: Vec<&str> = allowed
            .into_iter()
            .filter(|word| known.insert(word))
            .collect();
        let all = self.allowed.iter().map(String::as_str);
        let all: Vec<&str> = all.chain(new).collect();
        if let Some(new) = renamed(found, all.iter().copied()) {
            let text = hint(found, new);
            self.message = format!("{}; {text}", self.message);
            self.allowed.clear();
            return self;
        }
        self.nearest = nearest(found, all.iter().copied()).map(str::to_owned);
        let shown = all.iter().take(MAX_ALLOWED);
        let mut shown: Vec<String> = shown.map(|&word| word.to_owned()).collect();
        if all.len() > MAX_ALLOWED {
            shown.push(format!("and {} more", all.len() - MAX_ALLOWED));
        }
        self.allowed = shown;
        self
    }
}

/// All errors of a spec, which are displayed with their source lines.
#[derive(Clone, Debug)]
pub struct SpecError {
    file: String,
    text: String,
    arguments: Vec<String>,
    problems: Vec<Diagnostic>,
    /// Whether there are more errors than are shown.
    more: bool,
}

impl SpecError {
    /// Creates the errors of `file` with the contents `text`, which was read with the `--set`
    /// arguments `arguments`.
    pub fn new(
        file: &str,
        text: &str,
        arguments: &[String],
        mut problems: Vec<Diagnostic>,
    ) -> Self {
        problems.sort_by(|a, b| {
            a.place
                .cmp_position(&b.place)
                .then_with(|| a.key.cmp(&b.key))
        });
        // The checks stop after the limit, so some errors are not shown.
        let cut = problems.len() > MAX_PROBLEMS;
        let meant: Vec<(String, String)> = problems.iter().filter_map(Diagnostic::meant).collect();
        let mut distinct: Vec<Diagnostic> = Vec::new();
        for problem in problems {
            if let FaultClass::MissingKey { key } = &problem.fault
                && meant.contains(&(problem.key.clone(), key.clone()))
            {
                continue;
            }
            if !distinct
                .iter()
                .any(|known| known.place == problem.place && known.message == problem.message)
            {
                distinct.push(problem);
            }
            if distinct.len() > MAX_PROBLEMS {
                break;
            }
        }
        let more = cut || distinct.len() > MAX_PROBLEMS;
        distinct.truncate(MAX_PROBLEMS);
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            arguments: arguments.to_vec(),
            problems: distinct,
            more,
        }
    }

    /// The errors in the order of the file, up to the limit.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// Line and column of an error in the file, from 1; `None` if the position is outside the file.
    pub fn position(&self, problem: &Diagnostic) -> Option<(usize, usize)> {
        let SourceSpan::File(span) = &problem.place else {
            return None;
        };
        let before = self.text.get(..by_key(&self.text, span.clone()).start)?;
        let line = before.rsplit('\n').next().unwrap_or_default();
        Some((before.matches('\n').count() + 1, line.chars().count() + 1))
    }

    /// Formats one error with its source line, in the style of a compiler.
    fn render(&self, problem: &Diagnostic) -> String {
        let title = match problem.key.as_str() {
            "" => problem.message.clone(),
            key => format!("`{key}`: {}", problem.message),
        };
        let title = shortened(title);
        let argument = match problem.place {
            SourceSpan::Argument(number) => self.arguments.get(number),
            _ => None,
        };
        let argument = argument.map(|argument| format!("--set {argument}"));
        let source = match (&problem.place, &argument) {
            (SourceSpan::File(span), _) => Some((
                self.file.as_str(),
                self.text.as_str(),
                by_key(&self.text, span.clone()),
            )),
            (_, Some(argument)) => Some(("command line", argument.as_str(), 6..argument.len())),
            _ => None,
        };
        let mut group = Level::ERROR
            .primary_title(&title)
            .elements(source.map(snippet));
        let allowed = match problem.allowed.is_empty() {
            true => None,
            false => Some(wrapped(
                &format!("allowed: {}", problem.allowed.join(", ")),
                NOTE_WIDTH,
            )),
        };
        if let Some(allowed) = &allowed {
            group = group.element(Level::NOTE.no_name().message(allowed));
        }
        let nearest = problem
            .nearest
            .as_ref()
            .map(|nearest| format!("did you mean `{nearest}`?"));
        if let Some(nearest) = &nearest {
            group = group.element(Level::HELP.no_name().message(nearest));
        }
        Renderer::plain().term_width(WIDTH).render(&[group])
    }
}

/// Assumed width of a terminal, columns.
const WIDTH: usize = 80;
/// Width available for a note under a source line, columns.
const NOTE_WIDTH: usize = WIDTH - 8;

/// Range that is marked for an error in a value. For an inline table or a list of tables only its
/// key is marked, because the error concerns a combination of its contents.
fn by_key(text: &str, span: Range<usize>) -> Range<usize> {
    let value = text.get(span.clone()).unwrap_or_default();
    let items = value.strip_prefix('[').map(str::trim_start);
    if !value.starts_with('{') && !items.is_some_and(|it| it.starts_with('{')) {
        return span;
    }
    let before = text[..span.start].trim_end_matches([' ', '\t']);
    let key = before
        .strip_suffix('=')
        .map(|key| key.trim_end_matches([' ', '\t']));
    match key.filter(|key| !key.is_empty()) {
        Some(key) => {
            let apart = |c: char| c.is_whitespace() || matches!(c, '{' | ',' | '.');
            let begin = key.rfind(apart).map_or(0, |at| at + 1);
            begin..key.len()
        }
        // The value has no key, because it is an item of a list.
        None => span.start..span.start + 1,
    }
}

/// Source line at a byte range; the first line if there are several.
fn snippet<'a>(
    (file, text, span): (&'a str, &'a str, Range<usize>),
) -> Snippet<'a, Annotation<'a>> {
    let boundary = |at: usize| {
        (0..=at.min(text.len()))
            .rev()
            .find(|&at| text.is_char_boundary(at))
    };
    let begin = boundary(span.start).unwrap_or(0);
    let line = text[begin..]
        .find('\n')
        .map_or(text.len(), |end| begin + end);
    let end = boundary(span.end).unwrap_or(begin).clamp(begin, line);
    // Only a short excerpt is passed, because the renderer reads its whole input for each error.
    let before = &text[..begin];
    let from = before.rfind('\n').map_or(0, |at| at + 1);
    let shown = &text[from..line];
    let shown = shown.strip_suffix('\r').unwrap_or(shown);
    let [begin, end] = [begin, end].map(|at| (at - from).min(shown.len()));
    let annotation = AnnotationKind::Primary.span(begin..end);
    Snippet::source(shown)
        .line_start(before.matches('\n').count() + 1)
        .path(file)
        .annotation(annotation)
}

/// Shortens a message to at most [`MAX_SHOWN`] characters.
fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_SHOWN) {
        message.truncate(end);
        message.push_str(" ...");
    }
    message
}

/// Breaks a text at blanks into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{}\n", self.render(problem))?;
        }
        let count = counted(self.problems.len(), "error");
        let more = if self.more { " and more" } else { "" };
        write!(f, "{}: {count}{more}; nothing was run", self.file)
    }
}

impl std::error::Error for SpecError {}
