//! The settings on which the effect of another depends.

use super::kind::OFF;
use crate::datum::Datum;

/// The settings that a setting needs beside it, and those beside which it has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Partners {
    /// It needs one of these to have an effect; none: it needs none.
    pub needs: &'static [Partner],
    /// It has no effect beside one of these.
    pub rivals: &'static [Partner],
}

impl Partners {
    /// None at all.
    pub const NONE: Self = Self {
        needs: &[],
        rivals: &[],
    };

    /// The end of a setting's text that says it.
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

/// What another setting needs beside it, or what takes its effect away.
#[derive(Clone, Copy, Debug)]
pub struct Partner {
    /// The setting that must be on.
    pub setting: &'static str,
    /// The words of which it must have one.
    pub words: Words,
}

/// Words of a setting, of which one is meant.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// These; `true` or `false` where it is a flag, and numbers where it is a count. None: any but `off`.
    Listed(&'static [&'static str]),
    /// Those of a registry that have a property, which may grow.
    Those(fn() -> Vec<&'static str>),
}

impl Partner {
    /// The words of which the setting must have one; none: any but `off`.
    pub fn words(&self) -> Vec<&'static str> {
        match self.words {
            Words::Listed(words) => words.to_vec(),
            Words::Those(words) => words(),
        }
    }

    /// Whether this value of it is the one that is meant.
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

    /// Its words as a spec has them.
    fn quoted(&self) -> Vec<String> {
        let is_bare = |word: &str| word.parse::<bool>().is_ok() || word.parse::<u64>().is_ok();
        let quoted = |word: &str| match is_bare(word) {
            true => word.to_owned(),
            false => format!("{word:?}"),
        };
        self.words().into_iter().map(quoted).collect()
    }

    /// It as a spec has it.
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

    /// It in the text of a setting.
    fn text(&self) -> String {
        match &self.quoted()[..] {
            [] => format!("`{}`", self.setting),
            words => format!("`{} = {}`", self.setting, words.join("` or `")),
        }
    }
}
