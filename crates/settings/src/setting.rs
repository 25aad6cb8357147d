//! The declaration of a setting.

mod choice;
pub mod kind;
mod partners;

use crate::datum::Datum;
use crate::error::{InvalidValue, SettingError};
use crate::nearest;

pub use choice::{Choice, OFF};
pub use kind::Kind;
pub use partners::{Partner, Partners, Words};

/// The value of a setting that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The setting is required.
    Required,
    /// This value, which [`Kind::parse`] accepts.
    Is(&'static str),
    /// The value is defined by its owner: a protocol's configuration, under the chosen profile.
    Owner,
    /// No value; the text of the setting describes the behaviour.
    Nothing,
}

/// The declaration of a setting: the source of specs, schemas, help, manuals and errors.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name in specs.
    pub name: &'static str,
    /// Effect and reason, as in its doc comment: lines with a leading blank.
    pub about: &'static str,
    /// The clause that specifies it, from which it departs, or in which it chooses.
    pub clause: &'static str,
    /// Type, with unit and range.
    pub kind: Kind,
    /// The value if it is left out.
    pub fallback: Fallback,
    /// The settings on which its effect depends.
    pub partners: Partners,
}

impl Setting {
    /// A required setting with a name, a text and a type.
    pub const fn new(name: &'static str, about: &'static str, kind: Kind) -> Self {
        Self {
            name,
            about,
            clause: "",
            kind,
            fallback: Fallback::Required,
            partners: Partners::NONE,
        }
    }

    /// Sets the clause.
    #[must_use]
    pub const fn clause(mut self, clause: &'static str) -> Self {
        self.clause = clause;
        self
    }

    /// Sets the default.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        self.fallback(Fallback::Is(default))
    }

    /// Makes the setting optional, without a default.
    #[must_use]
    pub const fn optional(self) -> Self {
        self.fallback(Fallback::Nothing)
    }

    /// Sets the behaviour for a setting that is left out.
    #[must_use]
    pub const fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// Effect and reason, on one line.
    pub fn text(&self) -> String {
        plain(self.about) + &self.partners.text()
    }

    /// The first sentence of the text: its effect.
    pub fn summary(&self) -> String {
        let text = self.text();
        match text.find(". ") {
            Some(end) => text[..=end].to_owned(),
            None => text,
        }
    }

    /// Parses its value.
    ///
    /// # Errors
    /// The text is not of its kind, or out of its range.
    pub fn parse(&self, text: &str) -> Result<Datum, SettingError> {
        self.kind
            .parse(text)
            .map_err(|invalid_value| self.error(invalid_value))
    }

    /// The error for an invalid value of this setting.
    pub fn error(&self, invalid_value: InvalidValue) -> SettingError {
        SettingError::Value {
            setting: self.name,
            invalid_value,
        }
    }
}

impl SettingError {
    /// The error for a name that is not in `settings`.
    pub fn unknown(found: &str, settings: &[Setting]) -> Self {
        let nearest = nearest(found, settings.iter().map(|setting| setting.name));
        SettingError::Unknown {
            found: found.to_owned(),
            nearest: nearest.map(str::to_owned),
        }
    }
}

/// One of several kinds, such as a loss model: the source of specs, schemas, help and manuals.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name in specs.
    pub name: &'static str,
    /// Description and source, as in its doc comment.
    pub about: &'static str,
    /// Parameters.
    pub parameters: &'static [Setting],
}

impl Variant {
    /// Description, on one line.
    pub fn text(&self) -> String {
        plain(self.about)
    }

    /// Form as a value of a parameter: a table with the required parameters, or its name if
    /// there are none.
    pub fn form(&self) -> String {
        let must = self
            .parameters
            .iter()
            .filter(|it| it.fallback == Fallback::Required);
        let must: String = must.map(|it| format!(", {} = ...", it.name)).collect();
        match must.as_str() {
            "" => format!("{:?}", self.name),
            must => format!("{{ {} = {:?}{must} }}", kind::TAG, self.name),
        }
    }

    /// Whether `parameters` are those of this kind, each in its range.
    pub(crate) fn holds(&self, parameters: &[(String, Datum)]) -> bool {
        parameters.iter().all(|(name, datum)| {
            let known = self.parameters.iter().find(|known| known.name == name);
            known.is_some_and(|known| known.kind.check(datum).is_ok())
        })
    }
}

/// A doc comment on one line, without links.
fn plain(comment: &str) -> String {
    let is_target = |line: &str| line.trim().starts_with('[') && line.contains("]: ");
    let lines = comment.lines().filter(|line| !is_target(line));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let mut text = words.join(" ");
    while let Some(at) = text.find("`](") {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at + 1..end, "");
    }
    text.replace("[`", "`").replace("`]", "`")
}
