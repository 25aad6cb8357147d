//! Places: where in a file or on a command line a value stands.

use std::ops::Range;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Bytes of the spec file.
    File(Range<usize>),
    /// The `--set` argument of that number, counted from 0.
    Argument(usize),
    /// Nowhere: a program built it.
    Program,
}

impl Place {
    /// The place of some bytes of a text that stands here in quotes. Where the quotes hold more than the text (escapes, several
    /// lines), the place of all of it.
    pub fn within(&self, text: &str, at: Range<usize>) -> Place {
        match self {
            Place::File(span) if span.len() == text.len() + 2 => {
                let begin = span.start + 1 + at.start;
                Place::File(begin..begin + at.len().max(1))
            }
            _ => self.clone(),
        }
    }

    /// Orders places as a reader meets them.
    pub fn cmp_position(&self, other: &Place) -> std::cmp::Ordering {
        let position = |place: &Place| match place {
            Place::File(span) => (0, span.start),
            Place::Argument(number) => (1, *number),
            Place::Program => (2, 0),
        };
        position(self).cmp(&position(other))
    }
}
