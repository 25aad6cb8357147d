//! What a profile is made of: named switches, each with its clause and its reason, that a spec reads and a manual lists.
//!
//! SCTP and TCP each declare theirs with [`switches!`](crate::switches); an enumeration becomes a value with
//! [`spelled!`](crate::spelled).
#![forbid(unsafe_code)]

mod value;

pub use value::{Factor, Fraction, Limit, Pause, Span, SwitchValue};

use thiserror::Error;

/// One switch of a profile, for manuals, schemas and error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name in specs.
    pub name: &'static str,
    /// The clause it departs from or chooses in.
    pub clause: &'static str,
    /// What it does and why it exists.
    pub about: &'static str,
    /// What it may be set to.
    pub allowed: &'static str,
}

/// Why a switch could not be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SwitchError {
    /// There is no such switch.
    #[error("there is no switch `{found}`; the nearest is `{nearest}`")]
    Unknown {
        /// What was asked for.
        found: String,
        /// The switch whose name is nearest.
        nearest: &'static str,
    },
    /// The switch does not take that value.
    #[error("switch `{switch}` cannot be `{found}`; it takes {allowed}")]
    Value {
        /// The switch.
        switch: &'static str,
        /// What it was to be set to.
        found: String,
        /// What it takes.
        allowed: &'static str,
    },
}

impl SwitchError {
    /// The error for a name that is not in `switches`, which must not be empty.
    pub fn unknown(found: &str, switches: &'static [Switch]) -> Self {
        let nearest = switches
            .iter()
            .map(|switch| switch.name)
            .min_by_key(|name| edits(found, name));
        SwitchError::Unknown {
            found: found.to_owned(),
            nearest: nearest.unwrap_or_default(),
        }
    }
}

/// Letters to insert, delete or replace between two words (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let target: Vec<char> = to.chars().collect();
    let mut costs: Vec<usize> = (0..=target.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut previous = costs[0];
        costs[0] = row + 1;
        for (column, other) in target.iter().enumerate() {
            let replace = previous + usize::from(letter != *other);
            previous = costs[column + 1];
            costs[column + 1] = replace.min(costs[column] + 1).min(previous + 1);
        }
    }
    costs[target.len()]
}

/// Declares `Profile`: a field for each switch, the list of them all, and to set and show each by its name.
///
/// A line is the reason as a doc comment, then `name: type, "clause";`, the type one that implements
/// [`SwitchValue`].
#[macro_export]
macro_rules! switches {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty, $clause:literal;)+) => {
        /// The switches, each with its clause and reason. Start from [`Profile::by_name`].
        #[derive(Clone, Debug, PartialEq)]
        pub struct Profile {
            /// Name of the profile this one started from.
            pub name: &'static str,
            $($(#[doc = $doc])+ pub $name: $kind,)+
        }

        impl Profile {
            /// Every switch with its clause, its text and what it may be set to.
            pub const SWITCHES: &'static [$crate::Switch] = &[$($crate::Switch {
                name: stringify!($name),
                clause: $clause,
                about: concat!($($doc, "\n"),+),
                allowed: <$kind as $crate::SwitchValue>::ALLOWED,
            }),+];

            /// Sets one switch from its text, as a spec writes it.
            ///
            /// # Errors
            /// The switch is unknown (the nearest name is offered) or does not take the value.
            pub fn set(&mut self, switch: &str, value: &str) -> Result<(), $crate::SwitchError> {
                match switch {
                    $(stringify!($name) => {
                        self.$name = $crate::SwitchValue::parse(value).ok_or_else(|| $crate::SwitchError::Value {
                            switch: stringify!($name),
                            found: value.to_owned(),
                            allowed: <$kind as $crate::SwitchValue>::ALLOWED,
                        })?;
                        Ok(())
                    })+
                    unknown => Err($crate::SwitchError::unknown(unknown, Self::SWITCHES)),
                }
            }

            /// The value of one switch, as [`Profile::set`] takes it.
            pub fn show(&self, switch: &str) -> Option<String> {
                match switch {
                    $(stringify!($name) => Some($crate::SwitchValue::show(&self.$name)),)+
                    _ => None,
                }
            }
        }
    };
}

/// Makes an enumeration without fields a value of switches: each variant and how a spec spells it.
#[macro_export]
macro_rules! spelled {
    ($kind:ty: $($variant:path = $text:literal),+ $(,)?) => {
        impl $crate::SwitchValue for $kind {
            const ALLOWED: &'static str = $crate::spelled!(@list $($text),+);

            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some($variant),)+ _ => None }
            }

            fn show(&self) -> String {
                match self { $($variant => $text.to_owned()),+ }
            }
        }
    };
    (@list $first:literal $(, $more:literal)*) => { concat!("\"", $first, "\"" $(, ", \"", $more, "\"")*) };
}

#[cfg(test)]
mod tests;
