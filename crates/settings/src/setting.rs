//! A setting's declaration.

pub mod kind;
mod partners;

use crate::datum::Datum;
use crate::error::{Misfit, SettingError};
use crate::nearest;

pub use kind::{Choice, Kind, OFF};
pub use partners::{Partner, Partners, Words};

/// What a setting is where it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It must be given.
    Required,
    /// This value, as [`Kind::parse`] reads it.
    Is(&'static str),
    /// What its owner says: a protocol's configuration, under the profile chosen.
    Owner,
    /// Nothing; its text says what that means.
    Nothing,
}

/// One setting: all that specs, schemas, help, manuals and errors need to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in specs.
    pub name: &'static str,
    /// What it does and why it exists, as its doc comment: lines with a blank in front.
    pub about: &'static str,
    /// The clause it comes from, departs from, or chooses in.
    pub clause: &'static str,
    /// Its type, with unit and range.
    pub kind: Kind,
    /// What it is where it is left out.
    pub fallback: Fallback,
    /// The settings on which its effect depends.
    pub partners: Partners,
}

impl Setting {
    /// A setting that must be given: its name, its text and its type.
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

    /// The same, from that clause.
    #[must_use]
    pub const fn clause(mut self, clause: &'static str) -> Self {
        self.clause = clause;
        self
    }

    /// The same, with that default.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        self.fallback(Fallback::Is(default))
    }

    /// The same, without a default; it may be left out.
    #[must_use]
    pub const fn optional(self) -> Self {
        self.fallback(Fallback::Nothing)
    }

    /// The same, where it is left out as `fallback` says.
    #[must_use]
    pub const fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// What it does and why, on one line.
    pub fn text(&self) -> String {
        plain(self.about) + &self.partners.text()
    }

    /// The first sentence of it: what it does.
    pub fn summary(&self) -> String {
        let text = self.text();
        match text.find(". ") {
            Some(end) => text[..=end].to_owned(),
            None => text,
        }
    }

    /// Reads its value from text.
    ///
    /// # Errors
    /// The text is not of its kind, or out of its range.
    pub fn parse(&self, text: &str) -> Result<Datum, SettingError> {
        self.kind.parse(text).map_err(|misfit| self.error(misfit))
    }

    /// The error for a value of its own.
    pub fn error(&self, misfit: Misfit) -> SettingError {
        SettingError::Value {
            setting: self.name,
            misfit,
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

/// One of several kinds of a thing, such as a loss model: what specs, schemas, help and manuals need to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name in specs.
    pub name: &'static str,
    /// What it is and where it comes from, as a doc comment.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Setting],
}

impl Variant {
    /// What it is, on one line.
    pub fn text(&self) -> String {
        plain(self.about)
    }

    /// How it is written where another thing chooses it: a table with the parameters that must be given, or its name where there are none.
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

    /// Whether these are parameters of its own, each in its range.
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
