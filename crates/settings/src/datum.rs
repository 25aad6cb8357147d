//! Parsed value of a setting, before its conversion to a Rust type.

/// A value from a spec or a command line, which a [`Kind`](crate::Kind) has parsed and converted to
/// base units: nanoseconds, bytes, bits per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// The value of a flag.
    Flag(bool),
    /// A count, a duration in nanoseconds, a size in bytes, or a rate in bits per second.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// A number of segments.
    Segments(u64),
    /// A word, or a text.
    Word(String),
    /// A list of values.
    List(Vec<Datum>),
    /// A variant and its parameters, as given.
    Variant {
        /// Name of the variant.
        kind: String,
        /// Parameters with their values, in the order in which they were given.
        parameters: Vec<(String, Datum)>,
    },
    /// Keys of a table that were given, with their values.
    Table(Vec<(String, Datum)>),
}

impl Datum {
    /// Creates the value of a choice.
    pub fn word(text: &str) -> Self {
        Datum::Word(text.to_owned())
    }

    /// The value of a flag; `None` for other data.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Datum::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// An integer, or a quantity in its base unit; `None` for other data.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Datum::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// A number, integer or real; `None` for other data.
    pub fn number(&self) -> Option<f64> {
        match self {
            Datum::Real(number) => Some(*number),
            Datum::Whole(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// Value of a key of a table; `None` if the key was not given.
    pub fn key(&self, name: &str) -> Option<&Datum> {
        let Datum::Table(entries) = self else {
            return None;
        };
        let found = entries.iter().find(|(key, _)| key == name);
        found.map(|(_, datum)| datum)
    }

    /// Items of a list; empty for other data.
    pub fn items(&self) -> &[Datum] {
        match self {
            Datum::List(items) => items,
            _ => &[],
        }
    }

    /// A word or a text; `None` for other data.
    pub fn text(&self) -> Option<&str> {
        match self {
            Datum::Word(word) => Some(word),
            _ => None,
        }
    }
}
