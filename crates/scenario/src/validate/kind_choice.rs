//! Checks of chosen kinds: their names, parameters and values.

use anabranch_settings::{Datum, Fallback, Kind, Kinds};

use crate::checker::Checker;
use crate::kind_choice::{KindChoice, KindFamily, find};
use crate::spec::Spec;
use crate::validate::names::{check_flow_name, check_link_name, check_node};

/// Checks the kind that is chosen at `path`: first each name and value independently, then their
/// combination.
pub(super) fn check<F: KindFamily>(
    c: &mut Checker<'_>,
    spec: &Spec,
    kinds: &dyn Kinds,
    chosen: &KindChoice<F>,
    path: &str,
) {
    let variants = kinds.variants();
    let Some(variant) = variants.iter().find(|known| known.name == chosen.kind) else {
        let names = variants.iter().map(|known| known.name);
        if chosen.kind.is_empty() {
            return c.missing_tag(path, F::TAG, &format!("; it names {}", F::WHAT), names);
        }
        let message = format!("found {:?}, which is unknown", chosen.kind);
        let path = format!("{path}.{}", F::TAG);
        return c.not_among(&path, &message, &chosen.kind, names);
    };
    let before = c.count();
    for (name, value) in &chosen.parameters {
        let path = format!("{path}.{name}");
        let setting = find(variant.parameters, name).or_else(|| find(F::SHARED, name));
        let Some(setting) = setting else {
            let own = variant.parameters.iter().chain(F::SHARED);
            let known = own.map(|setting| setting.name).chain([F::TAG]);
            c.unknown_key(&path, name, known);
            continue;
        };
        match setting.kind.read(value) {
            Ok(datum) => check_names(c, spec, &setting.kind, &datum, &path),
            Err(invalid_value) => c.invalid_value(&path, &invalid_value),
        }
    }
    let mut complete = true;
    for setting in variant.parameters {
        if setting.fallback == Fallback::Required && !chosen.parameters.contains_key(setting.name) {
            let (name, takes) = (setting.name, setting.kind.allowed());
            c.missing_key(path, name, &format!("; it is {takes}"));
            complete = false;
        }
    }
    if complete
        && c.count() == before
        && let Err(refusal) = kinds.check(&chosen.kind, &chosen.values(kinds))
    {
        c.problem_once(path, refusal.to_string());
    }
}

/// Checks that a value which is the name of a flow or link refers to an existing one.
fn check_names(c: &mut Checker<'_>, spec: &Spec, kind: &Kind, datum: &Datum, path: &str) {
    let mut inner = |kind: &Kind, datum: &Datum, name: &str| {
        check_names(c, spec, kind, datum, &format!("{path}.{name}"));
    };
    match kind {
        Kind::List(item) => {
            for (index, datum) in datum.items().iter().enumerate() {
                inner(item, datum, &index.to_string());
            }
        }
        Kind::Tuple(kinds) => {
            for (index, (kind, datum)) in kinds.iter().zip(datum.items()).enumerate() {
                inner(kind, datum, &index.to_string());
            }
        }
        Kind::Table(settings) => {
            for setting in *settings {
                if let Some(datum) = datum.key(setting.name) {
                    inner(&setting.kind, datum, setting.name);
                }
            }
        }
        Kind::Either(_, other) => check_names(c, spec, other, datum, path),
        Kind::Name(what) => {
            let name = datum.text().unwrap_or_default();
            match *what {
                "flow" => check_flow_name(c, spec, name, path),
                "link" => check_link_name(c, spec, name, path),
                _ => drop(check_node(c, spec, name, path)),
            }
        }
        _ => {}
    }
}
