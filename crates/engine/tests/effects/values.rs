//! Test values of a setting, which are derived from its declaration alone.

use anabranch_settings::{Datum, Fallback, Kind, Setting, Variant};
use serde_json::Value as Json;

/// A setting, or a parameter of one of its variants, with its default and other values.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name, such as `pacing` or `allocation.adaptive.quiet`.
    pub name: String,
    /// Key in the table of the transport.
    pub key: &'static str,
    /// Default value as TOML; `None` if the key is left out.
    pub from: Option<String>,
    /// Other values as TOML.
    pub to: Vec<String>,
    /// Description of the setting, in which other settings may be named.
    pub about: String,
}

/// Subjects of a setting: the setting itself, and the parameters of its variants.
pub fn subjects(setting: &Setting, fallback: Option<&str>) -> Vec<Subject> {
    let kind = &setting.kind;
    let default = fallback.and_then(|text| kind.parse(text).ok());
    let write = |datum: &Datum| toml(&kind.to_json(datum));
    let from = default.as_ref().map(write);
    let others = values(kind, default.as_ref());
    let (words, numbers): (Vec<Datum>, Vec<Datum>) =
        others.into_iter().partition(|it| it.text().is_some());
    let subject = |name: String, to: &[Datum]| Subject {
        name,
        key: setting.name,
        from: from.clone(),
        to: to.iter().map(write).collect(),
        about: setting.text(),
    };
    // Each word must have an effect, but of several numbers only one must have an effect.
    let mut all: Vec<Subject> = words
        .iter()
        .map(|word| {
            subject(
                format!("{} = {}", setting.name, write(word)),
                std::slice::from_ref(word),
            )
        })
        .collect();
    if !numbers.is_empty() {
        all.push(subject(setting.name.to_owned(), &numbers));
    }
    for variant in variants(kind) {
        let base = least(&variant);
        for parameter in variant.parameters {
            let given = base.iter().find(|(name, _)| name == parameter.name);
            let own = given.map(|(_, datum)| datum.clone());
            let own = own.or_else(|| match parameter.fallback {
                Fallback::Is(text) => parameter.kind.parse(text).ok(),
                _ => None,
            });
            let with = |datum: Datum| {
                let mut parameters = base.clone();
                parameters.retain(|(name, _)| name != parameter.name);
                parameters.push((parameter.name.to_owned(), datum));
                write(&table(&variant, parameters))
            };
            let values = values(&parameter.kind, own.as_ref());
            all.push(Subject {
                name: format!("{}.{}.{}", setting.name, variant.name, parameter.name),
                key: setting.name,
                from: Some(write(&table(&variant, base.clone()))),
                to: values.into_iter().map(with).collect(),
                about: parameter.text(),
            });
        }
    }
    all
}

fn table(variant: &Variant, parameters: Vec<(String, Datum)>) -> Datum {
    Datum::Variant {
        kind: variant.name.to_owned(),
        parameters,
    }
}

/// Required parameters of a variant, with their smallest values.
fn least(variant: &Variant) -> Vec<(String, Datum)> {
    let required = variant.parameters.iter();
    let required = required.filter(|it| it.fallback == Fallback::Required);
    let first = |it: &Setting| Some((it.name.to_owned(), values(&it.kind, None).first()?.clone()));
    required.filter_map(first).collect()
}

/// Variants of a value kind; empty if it has none.
fn variants(kind: &Kind) -> Vec<Variant> {
    match kind {
        Kind::Variant(variants) => variants(),
        Kind::Either(_, other) => variants(other),
        _ => Vec::new(),
    }
}

/// Values of a kind other than `default`, with simple values first.
pub fn values(kind: &Kind, default: Option<&Datum>) -> Vec<Datum> {
    let mut all = candidates(kind, default);
    all.retain(|datum| kind.check(datum).is_ok() && Some(datum) != default);
    let mut unique: Vec<Datum> = Vec::new();
    for datum in all {
        if !unique.contains(&datum) {
            unique.push(datum);
        }
    }
    unique
}

fn candidates(kind: &Kind, default: Option<&Datum>) -> Vec<Datum> {
    let whole = default.and_then(Datum::whole);
    match kind {
        Kind::Flag => vec![Datum::Flag(true), Datum::Flag(false)],
        Kind::Count { least, most } => wholes(whole, 4, [*least, *most]),
        Kind::Duration { least, most } => wholes(whole, 1_000_000_000, [*least, *most]),
        Kind::Bytes { least, most } => wholes(whole, 16_384, [*least, *most]),
        Kind::Rate { least, most } => wholes(whole, 500_000, [*least, *most]),
        Kind::Number {
            least, most, step, ..
        } => {
            let own = default.and_then(Datum::number).filter(|it| *it != 0.0);
            let one = own.unwrap_or(1.25_f64.clamp(*least, *most));
            let near = [
                one,
                one / 2.0,
                one * 2.0,
                one / 10.0,
                one * 10.0,
                *least,
                *most,
            ];
            let fit = |number: f64| match *step {
                0.0 => number,
                step => (number / step).round() * step,
            };
            near.map(|number| Datum::Real(fit(number))).to_vec()
        }
        Kind::Amount {
            segments, bytes, ..
        } => {
            let counted = [4, 40, segments[0]].map(Datum::Segments).to_vec();
            [counted, wholes(whole, 16_384, *bytes)].concat()
        }
        Kind::Choice(words) => words.iter().map(|word| Datum::word(word.name)).collect(),
        Kind::Registered(words) => words().iter().map(|it| Datum::word(it.name)).collect(),
        Kind::Either(words, other) => {
            let words = words.iter().map(|word| Datum::word(word.name));
            words.chain(candidates(other, default)).collect()
        }
        Kind::List(item) => {
            let items = values(item, None);
            let first = items.iter().take(3).cloned().collect();
            let last = items.iter().rev().take(2).cloned().collect();
            vec![Datum::List(first), Datum::List(last)]
        }
        Kind::Tuple(kinds) => {
            let first = kinds.iter().map(|kind| values(kind, None).first().cloned());
            first
                .collect::<Option<_>>()
                .map(Datum::List)
                .into_iter()
                .collect()
        }
        Kind::Variant(variants) => {
            let all = variants();
            all.iter()
                .map(|variant| table(variant, least(variant)))
                .collect()
        }
        Kind::StepFunction(inner) => candidates(inner, default),
        // Valid values of these kinds depend on the spec, so none is tried.
        Kind::Text(_) | Kind::Name(_) | Kind::Table(_) | Kind::Named(_) => Vec::new(),
    }
}

/// Integers near the default, or near `usual` if there is no default.
fn wholes(default: Option<u64>, usual: u64, [least, most]: [u64; 2]) -> Vec<Datum> {
    let one = default.filter(|it| *it != 0).unwrap_or(usual);
    let near = [
        one,
        one / 2,
        one.saturating_mul(2),
        one / 10,
        one.saturating_mul(10),
        least,
    ];
    near.map(|number| Datum::Whole(number.clamp(least, most)))
        .to_vec()
}

/// A value as TOML.
pub fn toml(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(entries) => {
            let entries = entries.iter();
            let entries: Vec<String> = entries
                .map(|(key, it)| format!("{key} = {}", toml(it)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        plain => plain.to_string(),
    }
}
