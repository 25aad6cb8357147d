//! Source positions: the location of a value in a file or on a command line.

use std::ops::Range;

/// Source position of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpan {
    /// Byte range in the spec file.
    File(Range<usize>),
    /// Index of a `--set` argument, from 0.
    Argument(usize),
    /// No position, because a program built the value.
    Program,
}

impl SourceSpan {
    /// Position of the byte range `at` inside a quoted text at this position. Returns the position
    /// of the whole text if its quoted form differs from it (escapes, several lines).
    pub fn within(&self, text: &str, at: Range<usize>) -> SourceSpan {
        match self {
            SourceSpan::File(span) if span.len() == text.len() + 2 => {
                let begin = span.start + 1 + at.start;
                SourceSpan::File(begin..begin + at.len().max(1))
            }
            _ => self.clone(),
        }
    }

    /// Orders positions by reading order.
    pub fn cmp_position(&self, other: &SourceSpan) -> std::cmp::Ordering {
        let position = |place: &SourceSpan| match place {
            SourceSpan::File(span) => (0, span.start),
            SourceSpan::Argument(number) => (1, *number),
            SourceSpan::Program => (2, 0),
        };
        position(self).cmp(&position(other))
    }
}
