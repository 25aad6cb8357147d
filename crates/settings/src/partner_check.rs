//! Checks of settings that have an effect only with, or only without, another setting.

use crate::datum::Datum;
use crate::error::{InvalidValue, SettingError};
use crate::setting::{Partner, Partners, Setting};

/// Checks that a setting is at its default, or that it has an effect: one of the settings that it
/// needs is on, and no setting disables it.
///
/// # Errors
/// The setting has no effect. The error contains its value, and the settings that it needs or that
/// disable it.
pub fn check_partners(
    setting: &Setting,
    value: &dyn Fn(&str) -> Option<Datum>,
    default: &dyn Fn(&str) -> Option<Datum>,
) -> Result<(), SettingError> {
    let Partners { needs, rivals } = setting.partners;
    if needs.is_empty() && rivals.is_empty() {
        return Ok(());
    }
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
    } else if needs.is_empty() || needs.iter().any(|it| is_on(&it) || unknown(&it)) {
        return Ok(());
    } else {
        let needed: Vec<String> = needs.iter().map(Partner::shown).collect();
        format!("without {}", needed.join(" or "))
    };
    Err(without_effect(setting, [&found, &default], &why))
}

/// Error for a value without effect: it contains the value, the default, and the settings that are
/// the reason (`why`).
pub fn without_effect(setting: &Setting, [found, default]: [&Datum; 2], why: &str) -> SettingError {
    let default = setting.kind.show(default);
    setting.error(InvalidValue {
        found: setting.kind.show(found),
        allowed: format!("{default}, the default: it has no effect {why}"),
        range: default,
        words: Vec::new(),
        parameter: None,
    })
}
