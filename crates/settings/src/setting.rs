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

/// Value of a setting that is omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The setting is required.
    Required,
    /// This value, in a form that [`Kind::parse`] accepts.
    Is(&'static str),
    /// The owner of the setting defines the value: a protocol's configuration with the chosen
    /// profile.
    Owner,
    /// There is no value; the text of the setting describes the behaviour.
    Nothing,
}

/// Declaration of a setting, from which specs, schemas, help, manuals and errors are derived.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name in specs.
    pub name: &'static str,
    /// Effect and reason, as in the doc comment: lines that begin with a blank.
    pub about: &'static str,
    /// Clause of a standard or paper that specifies the setting or permits a choice, or from which
    /// the setting departs.
    pub clause: &'static str,
    /// Type of the value, with unit and range.
    pub kind: Kind,
    /// Value if the setting is omitted.
    pub fallback: Fallback,
    /// The settings on which its effect depends.
    pub partners: Partners,
}

impl Setting {
    /// Creates a required setting with a name, a text and a type.
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

    /// Makes the setting optional, without a default value.
    #[must_use]
    pub const fn optional(self) -> Self {
        self.fallback(Fallback::Nothing)
    }

    /// Sets the default, which is the value of the setting if a spec omits it.
    #[must_use]
    pub const fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// Description of the setting, its effect and reason, on one line.
    pub fn text(&self) -> String {
        plain(self.about) + &self.partners.text()
    }

    /// First sentence of the text, which states the effect.
    pub fn summary(&self) -> String {
        let text = self.text();
        match text.find(". ") {
            Some(end) => text[..=end].to_owned(),
            None => text,
        }
    }

    /// Parses a value of this setting.
    ///
    /// # Errors
    /// The text is not of the setting's kind, or is out of its range.
    pub fn parse(&self, text: &str) -> Result<Datum, SettingError> {
        self.kind
            .parse(text)
            .map_err(|invalid_value| self.error(invalid_value))
    }

    /// Creates the error for an invalid value of this setting.
    pub fn error(&self, invalid_value: InvalidValue) -> SettingError {
        SettingError::Value {
            setting: self.name,
            invalid_value,
        }
    }
}

impl SettingError {
    /// Creates the error for a name that is not in `settings`.
    pub fn unknown(found: &str, settings: &[Setting]) -> Self {
        let nearest = nearest(found, settings.iter().map(|setting| setting.name));
        SettingError::Unknown {
            found: found.to_owned(),
            nearest: nearest.map(str::to_owned),
        }
    }
}

/// Declaration of a kind, such as one of the loss models. The keys of specs, schemas, help texts
/// and manuals are derived from it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name in specs.
    pub name: &'static str,
    /// Description and source, as in the doc comment.
    pub about: &'static str,
    /// Parameters of the kind.
    pub parameters: &'static [Setting],
}

impl Variant {
    /// Description, on one line.
    pub fn text(&self) -> String {
        plain(self.about)
    }

    /// Form of the kind as a value: a table with the required parameters, or only its name if there
    /// are none.
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

    /// Whether all `parameters` belong to this kind and are in their ranges.
    pub(crate) fn holds(&self, parameters: &[(String, Datum)]) -> bool {
        parameters.iter().all(|(name, datum)| {
            let known = self.parameters.iter().find(|known| known.name == name);
            known.is_some_and(|known| known.kind.check(datum).is_ok())
        })
    }
}

/// Text of a doc comment on one line, without links.
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
