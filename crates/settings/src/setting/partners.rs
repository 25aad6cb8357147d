//! The settings on which the effect of another setting depends.

use super::OFF;
use crate::datum::Datum;

/// The settings that a setting needs, and those with which it has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Partners {
    /// The setting has an effect only with one of these; empty: always.
    pub needs: &'static [Partner],
    /// The setting has no effect with any of these.
    pub rivals: &'static [Partner],
}

impl Partners {
    /// No dependencies.
    pub const NONE: Self = Self {
        needs: &[],
        rivals: &[],
    };

    /// The sentences about the partners, for the end of a setting's text.
    pub(super) fn text(&self) -> String {
        let or = |partners: &[Partner]| {
            let texts: Vec<String> = partners.iter().map(Partner::text).collect();
            texts.join(" or ")
        };
        let mut text = String::new();
        if !self.needs.is_empty() {
            text = format!(" A value other than the default needs {}.", or(self.needs));
        }
        if !self.rivals.is_empty() {
            text += &format!(" It has no effect with {}.", or(self.rivals));
        }
        text
    }
}

/// A setting that another setting needs, or that disables it.
#[derive(Clone, Copy, Debug)]
pub struct Partner {
    /// Name of the setting that must be on.
    pub setting: &'static str,
    /// The value of that setting must be one of these words.
    pub words: Words,
}

/// A set of words of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// These words; `true` or `false` for a flag, and numbers for a count. Empty: any value except
    /// `off`.
    Listed(&'static [&'static str]),
    /// The words of a registry with a certain property. The registry may grow.
    Those(fn() -> Vec<&'static str>),
}

impl Partner {
    /// The words, one of which must be set; empty: any value except `off`.
    pub fn words(&self) -> Vec<&'static str> {
        match self.words {
            Words::Listed(words) => words.to_vec(),
            Words::Those(words) => words(),
        }
    }

    /// Whether this value matches.
    pub(crate) fn works(&self, value: &Datum) -> bool {
        if matches!(self.words, Words::Listed([])) {
            return match (value, value.text()) {
                (_, Some(word)) => OFF.iter().all(|off| off.name != word),
                (Datum::Flag(on), None) => *on,
                _ => true,
            };
        }
        let words = self.words();
        match (value, value.text()) {
            (_, Some(word)) => words.contains(&word),
            (Datum::Flag(on), None) => words.contains(&on.to_string().as_str()),
            (Datum::Whole(number), None) => words.contains(&number.to_string().as_str()),
            _ => false,
        }
    }

    /// The words in the form of specs.
    fn quoted(&self) -> Vec<String> {
        let is_bare = |word: &str| word.parse::<bool>().is_ok() || word.parse::<u64>().is_ok();
        let quoted = |word: &str| match is_bare(word) {
            true => word.to_owned(),
            false => format!("{word:?}"),
        };
        self.words().into_iter().map(quoted).collect()
    }

    /// The partner in the form of specs.
    pub(crate) fn shown(&self) -> String {
        let setting = self.setting;
        let words = self.quoted();
        if words.is_empty() {
            return format!("`{setting}`");
        }
        let all: Vec<String> = words
            .iter()
            .map(|word| format!("`{setting} = {word}`"))
            .collect();
        all.join(" or ")
    }

    /// The partner in the text of a setting.
    fn text(&self) -> String {
        match &self.quoted()[..] {
            [] => format!("`{}`", self.setting),
            words => format!("`{} = {}`", self.setting, words.join("` or `")),
        }
    }
}
