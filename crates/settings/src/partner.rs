//! A setting without which another has no effect, or with which.

use crate::datum::Datum;
use crate::error::{Misfit, SettingError};
use crate::setting::{OFF, Setting};

/// What another setting needs beside it, or what takes its effect away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The setting that must be on.
    pub setting: &'static str,
    /// The words of which it must have one, `true` or `false` where it is a flag, and numbers where it is a count; none: it must not be off.
    pub words: &'static [&'static str],
}

impl Partner {
    /// Whether this value of it is the one that is meant.
    fn works(&self, value: &Datum) -> bool {
        match (value, value.text()) {
            (_, Some(word)) if self.words.is_empty() => OFF.iter().all(|off| off.name != word),
            (_, Some(word)) => self.words.contains(&word),
            (Datum::Flag(on), None) if self.words.is_empty() => *on,
            (Datum::Flag(on), None) => self.words.contains(&on.to_string().as_str()),
            (Datum::Whole(number), None) if !self.words.is_empty() => {
                self.words.contains(&number.to_string().as_str())
            }
            _ => self.words.is_empty(),
        }
    }

    /// It as a spec has it.
    fn shown(&self) -> String {
        let setting = self.setting;
        if self.words.is_empty() {
            return format!("`{setting}`");
        }
        let is_bare = |word: &str| word.parse::<bool>().is_ok() || word.parse::<u64>().is_ok();
        let shown = |word: &&str| match is_bare(word) {
            true => format!("`{setting} = {word}`"),
            false => format!("`{setting} = {word:?}`"),
        };
        let all: Vec<String> = self.words.iter().map(shown).collect();
        all.join(" or ")
    }
}

/// Checks that a setting is left at its default, or that one of its partners is on and none of its rivals.
///
/// # Errors
/// It has no effect: what it is, and what it needs or what it has no effect with.
pub fn check_partners(
    setting: &Setting,
    [partners, rivals]: [&[Partner]; 2],
    value: &dyn Fn(&str) -> Option<Datum>,
    default: &dyn Fn(&str) -> Option<Datum>,
) -> Result<(), SettingError> {
    let (Some(found), Some(default)) = (value(setting.name), default(setting.name)) else {
        return Ok(());
    };
    if found == default {
        return Ok(());
    }
    let is_on = |partner: &&Partner| value(partner.setting).is_some_and(|it| partner.works(&it));
    let unknown = |partner: &&Partner| value(partner.setting).is_none();
    let why = if let Some(rival) = rivals.iter().find(is_on) {
        format!("with {}", rival.shown())
    } else if partners.is_empty() || partners.iter().any(|it| is_on(&it) || unknown(&it)) {
        return Ok(());
    } else {
        let needed: Vec<String> = partners.iter().map(Partner::shown).collect();
        format!("without {}", needed.join(" or "))
    };
    Err(without_effect(setting, [&found, &default], &why))
}

/// The error for a value that has no effect: what it is, what it is left at, and beside what, or without what, it is `why`.
pub fn without_effect(setting: &Setting, [found, default]: [&Datum; 2], why: &str) -> SettingError {
    let default = setting.kind.show(default);
    setting.error(Misfit {
        found: setting.kind.show(found),
        allowed: format!("{default}, the default: it has no effect {why}"),
        range: default,
        words: Vec::new(),
        parameter: None,
    })
}
