//! A switch's description, and how its value is read and written as text.

use anabranch_transport::{Nanos, time};
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
    const ALLOWED: &'static str = "a whole number from 0 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= 1_000_000)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SwitchValue for Nanos {
    const ALLOWED: &'static str = "a time such as \"1.5 s\", \"200 ms\" or \"0 s\"";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = match text.strip_suffix("ms") {
            Some(number) => (number, 1e-3),
            None => (text.strip_suffix('s')?, 1.0),
        };
        let value = number
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=1e6).contains(value))?;
        Some(time::from_seconds(value * unit))
    }

    fn show(&self) -> String {
        format!("{} s", time::seconds(*self))
    }
}
