//! A value between its text and its type.

/// A value as a spec or a command line gives it, read by a [`Kind`](crate::Kind) and in base units: nanoseconds, bytes, bits
/// per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Of a flag.
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
    /// A variant and those of its parameters that were given.
    Variant {
        /// Which.
        kind: String,
        /// Its parameters, in the order in which they were given.
        parameters: Vec<(String, Datum)>,
    },
    /// The keys of a table that were given, with their values.
    Table(Vec<(String, Datum)>),
}

impl Datum {
    /// The word of a choice.
    pub fn word(text: &str) -> Self {
        Datum::Word(text.to_owned())
    }

    /// The truth value of a flag.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Datum::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A whole number, or what is counted in a base unit.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Datum::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// A number, whole or not.
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

    /// The items of a list; none for anything else.
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
