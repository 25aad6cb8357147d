//! Partners of a setting: other settings on which its effect depends.

use super::OFF;
use crate::datum::Datum;

/// Settings that a setting needs, and settings with which it has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Partners {
    /// Settings of which at least one must be on; empty: the setting needs none.
    pub needs: &'static [Partner],
    /// Settings of which none may be on.
    pub rivals: &'static [Partner],
}

impl Partners {
    /// No dependencies.
    pub const NONE: Self = Self {
        needs: &[],
        rivals: &[],
    };

    /// Sentences about the partners, which end the text of a setting.
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
    /// Words of which the value of this setting must be one.
    pub words: Words,
}

/// Set of words of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// The words that satisfy the condition; `true` or `false` for a flag, and numbers for a count.
    /// If the list is empty, any value except `off` satisfies it.
    Listed(&'static [&'static str]),
    /// Words of a registry that have a certain property. The words are computed, because a program
    /// may add entries to the registry.
    Those(fn() -> Vec<&'static str>),
}

impl Partner {
    /// The words of which the value must be one; empty: any value except `off`.
    pub fn words(&self) -> Vec<&'static str> {
        match self.words {
            Words::Listed(words) => words.to_vec(),
            Words::Those(words) => words(),
        }
    }

    /// Whether `value` satisfies this condition.
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

    /// Words of the condition in the form in which a spec contains them: in quotation marks, except
    /// booleans and numbers.
    fn quoted(&self) -> Vec<String> {
        let is_bare = |word: &str| word.parse::<bool>().is_ok() || word.parse::<u64>().is_ok();
        let quoted = |word: &str| match is_bare(word) {
            true => word.to_owned(),
            false => format!("{word:?}"),
        };
        self.words().into_iter().map(quoted).collect()
    }

    /// Formats the condition for messages: the setting with each of its words, joined by `or`.
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

    /// Formats the condition for the description of a setting: the name of the partner once, and
    /// all its words.
    fn text(&self) -> String {
        match &self.quoted()[..] {
            [] => format!("`{}`", self.setting),
            words => format!("`{} = {}`", self.setting, words.join("` or `")),
        }
    }
}
