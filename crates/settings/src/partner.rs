//! A setting without which another has no effect.

use crate::datum::Datum;
use crate::error::{Misfit, SettingError};
use crate::setting::{OFF, Setting};

/// What another setting needs beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The setting that must be on.
    pub setting: &'static str,
    /// The words of which it must have one; none: it must not be off.
    pub words: &'static [&'static str],
}

impl Partner {
    /// Whether the other setting has an effect with this value of the partner.
    fn works(&self, value: &Datum) -> bool {
        match (value, value.text()) {
            (_, Some(word)) if self.words.is_empty() => OFF.iter().all(|off| off.name != word),
            (_, Some(word)) => self.words.contains(&word),
            (Datum::Flag(on), None) => *on,
            _ => self.words.is_empty(),
        }
    }

    /// It as a spec has it.
    fn shown(&self) -> String {
        let setting = self.setting;
        if self.words.is_empty() {
            return format!("`{setting}`");
        }
        let shown = |word: &&str| format!("`{setting} = {word:?}`");
        let all: Vec<String> = self.words.iter().map(shown).collect();
        all.join(" or ")
    }
}

/// Checks that a setting is left at its default, or that one of its partners is on.
///
/// # Errors
/// It is neither: what it is, and what it needs.
pub fn check_partners(
    setting: &Setting,
    partners: &[Partner],
    value: &dyn Fn(&str) -> Option<Datum>,
    default: &dyn Fn(&str) -> Option<Datum>,
) -> Result<(), SettingError> {
    let works = |partner: &Partner| value(partner.setting).is_none_or(|it| partner.works(&it));
    let (Some(found), Some(default)) = (value(setting.name), default(setting.name)) else {
        return Ok(());
    };
    if found == default || partners.iter().any(works) {
        return Ok(());
    }
    let needed: Vec<String> = partners.iter().map(Partner::shown).collect();
    let default = setting.kind.show(&default);
    let misfit = Misfit {
        found: setting.kind.show(&found),
        allowed: format!(
            "{default}, the default: it has no effect without {}",
            needed.join(" or ")
        ),
        range: default,
        words: Vec::new(),
        parameter: None,
    };
    Err(setting.error(misfit))
}
