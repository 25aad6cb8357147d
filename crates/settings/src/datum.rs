//! A parsed value, before its conversion to a Rust type.

/// A value from a spec or a command line, read by a [`Kind`](crate::Kind) and converted to base
/// units: nanoseconds, bytes, bits per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// The value of a flag.
    Flag(bool),
    /// A count, a duration, a number of bytes, or a rate.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// An amount counted in segments.
    Segments(u64),
    /// A word, or text.
    Word(String),
    /// Several values.
    List(Vec<Datum>),
    /// A variant and its given parameters.
    Variant {
        /// Name of the variant.
        kind: String,
        /// Parameters of the value, in the order in which they were given.
        parameters: Vec<(String, Datum)>,
    },
    /// The given keys of a table, with their values.
    Table(Vec<(String, Datum)>),
}

impl Datum {
    /// The word of a choice.
    pub fn word(text: &str) -> Self {
        Datum::Word(text.to_owned())
    }

    /// The value of a flag.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Datum::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// An integer, or a quantity in its base unit.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Datum::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// A number, integer or real.
    pub fn number(&self) -> Option<f64> {
        match self {
            Datum::Real(number) => Some(*number),
            Datum::Whole(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The value of a key of a table, if it was given.
    pub fn key(&self, name: &str) -> Option<&Datum> {
        let Datum::Table(entries) = self else {
            return None;
        };
        let found = entries.iter().find(|(key, _)| key == name);
        found.map(|(_, datum)| datum)
    }

    /// The items of a list; empty for other data.
    pub fn items(&self) -> &[Datum] {
        match self {
            Datum::List(items) => items,
            _ => &[],
        }
    }

    /// A word or text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Datum::Word(word) => Some(word),
            _ => None,
        }
    }
}
