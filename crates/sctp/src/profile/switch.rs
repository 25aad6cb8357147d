//! A switch's description, and how its value is read and written as text.

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
    pub(super) fn unknown(found: &str, switches: &'static [Switch]) -> Self {
        let nearest = switches
            .iter()
            .map(|switch| switch.name)
            .min_by_key(|name| edit_distance(found, name));
        SwitchError::Unknown {
            found: found.to_owned(),
            nearest: nearest.unwrap_or_default(),
        }
    }
}

/// Letters to insert, delete or replace to turn `a` into `b` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

/// A value that a spec can write.
pub(super) trait SwitchValue: Sized {
    /// What is allowed, for people.
    const ALLOWED: &'static str;

    /// Reads a value; `None` if it is not allowed.
    fn parse(text: &str) -> Option<Self>;

    /// Writes it as [`SwitchValue::parse`] reads it.
    fn show(&self) -> String;
}

impl SwitchValue for bool {
    const ALLOWED: &'static str = "true, false";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SwitchValue for u32 {
    const ALLOWED: &'static str = "a whole number from 1 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        text.parse()
            .ok()
            .filter(|number| (1..=1_000_000).contains(number))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SwitchValue for u64 {
    const ALLOWED: &'static str = "a whole number from 1 to 2^40";

    fn parse(text: &str) -> Option<Self> {
        text.parse()
            .ok()
            .filter(|number| (1..=1 << 40).contains(number))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}
