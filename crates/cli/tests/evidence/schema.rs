//! A validator for the part of JSON Schema that the schema of specs uses.

use regex_lite::Regex;
use serde_json::Value;

/// Keywords that have no effect on validity.
const SILENT: &[&str] = &[
    "$schema",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "format",
    "examples",
];

/// All violations of the schema `root` in `value`. A keyword that this validator does not implement
/// counts as a violation.
pub fn faults(root: &Value, value: &Value) -> Vec<String> {
    check(root, root, value, "")
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            vec![format!("{path}: nothing is allowed here")]
        } else {
            Vec::new()
        };
    };
    keywords
        .iter()
        .flat_map(|(name, rule)| keyword(root, schema, (name, rule), value, path))
        .collect()
}

fn keyword(
    root: &Value,
    schema: &Value,
    (name, rule): (&str, &Value),
    value: &Value,
    path: &str,
) -> Vec<String> {
    let unless = |good: bool| {
        if good {
            Vec::new()
        } else {
            vec![format!("{path}: {value} is against {name} {rule}")]
        }
    };
    let rules = || rule.as_array().into_iter().flatten();
    let fits = |rule: &&Value| check(root, rule, value, path).is_empty();
    let bound = rule.as_f64().unwrap_or(f64::NAN);
    match name {
        "$ref" => {
            let pointer = rule
                .as_str()
                .and_then(|text| text.strip_prefix('#'))
                .unwrap_or("?");
            match root.pointer(pointer) {
                Some(definition) => check(root, definition, value, path),
                None => vec![format!("{path}: {rule} leads nowhere")],
            }
        }
        "allOf" => rules()
            .flat_map(|rule| check(root, rule, value, path))
            .collect(),
        "anyOf" => unless(rules().any(|rule| fits(&rule))),
        "oneOf" => unless(rules().filter(fits).count() == 1),
        "const" => unless(rule == value),
        "enum" => unless(rules().any(|allowed| allowed == value)),
        "type" => unless(match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is(value, kind)),
            kind => is(value, kind),
        }),
        "minimum" => unless(value.as_f64().is_none_or(|number| number >= bound)),
        "exclusiveMinimum" => unless(value.as_f64().is_none_or(|number| number > bound)),
        "multipleOf" => unless(
            value
                .as_f64()
                .is_none_or(|number| (number / bound).fract() == 0.0),
        ),
        "maximum" => unless(value.as_f64().is_none_or(|number| number <= bound)),
        "minItems" => unless(
            value
                .as_array()
                .is_none_or(|items| items.len() as f64 >= bound),
        ),
        "maxItems" => unless(
            value
                .as_array()
                .is_none_or(|items| items.len() as f64 <= bound),
        ),
        "pattern" => {
            let pattern = Regex::new(rule.as_str().unwrap_or("[")).expect("a regular expression");
            unless(value.as_str().is_none_or(|text| pattern.is_match(text)))
        }
        "required" => unless(value.as_object().is_none_or(|table| {
            rules().all(|key| key.as_str().is_some_and(|key| table.contains_key(key)))
        })),
        "items" => items(
            root,
            rule,
            value,
            path,
            schema["prefixItems"].as_array().map_or(0, Vec::len),
        ),
        "prefixItems" => {
            let pairs = rules()
                .zip(value.as_array().into_iter().flatten())
                .enumerate();
            pairs
                .flat_map(|(index, (rule, item))| {
                    check(root, rule, item, &format!("{path}/{index}"))
                })
                .collect()
        }
        "properties" => entries(value)
            .filter_map(|(key, item)| Some((key, rule.get(key)?, item)))
            .flat_map(|(key, rule, item)| check(root, rule, item, &format!("{path}/{key}")))
            .collect(),
        "additionalProperties" => entries(value)
            .filter(|(key, _)| schema["properties"].get(key).is_none())
            .flat_map(|(key, item)| check(root, rule, item, &format!("{path}/{key}")))
            .collect(),
        silent if SILENT.contains(&silent) => Vec::new(),
        unknown => vec![format!("{path}: this checker does not know {unknown:?}")],
    }
}

fn items(root: &Value, rule: &Value, value: &Value, path: &str, skip: usize) -> Vec<String> {
    let items = value
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .skip(skip);
    items
        .flat_map(|(index, item)| check(root, rule, item, &format!("{path}/{index}")))
        .collect()
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, item)| (key.as_str(), item))
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}
