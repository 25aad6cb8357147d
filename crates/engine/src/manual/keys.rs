//! Generation of the manual's page of keys, from the JSON Schema. The page shows every section of a
//! spec with its allowed contents, and is always consistent with the types that read a spec.

use std::collections::BTreeMap;
use std::fmt::Write;

use anabranch_scenario::flow::StartTime;
use anabranch_scenario::kind_choice::KindFamily;
use anabranch_scenario::kind_families::{LossModel, PropagationModel, QueueDiscipline, Workloads};
use anabranch_scenario::measure::Metrics;
use anabranch_scenario::schema::json_schema;
use serde_json::{Map, Value};

use crate::kinds::Standard;

const ABOUT: &str = "# Keys of a spec

This page is generated from the code (`REFERENCE=write cargo test -p anabranch-engine --test reference`). Do not edit it. It lists
all sections of a spec and their keys, like `anabranch schema`. [spec.md](spec.md) states the rules for all keys: units, parameters, expressions,
groups. A key is optional unless its default is *required*. Every value can also be a parameter (`\"$rate\"`) or an expression.
";

/// Sections in the usual order of a spec; all other sections follow.
const ORDER: [&str; 14] = [
    "parameters",
    "world",
    "node",
    "link",
    "wifi",
    "flow",
    "profiles",
    "route",
    "measure",
    "experiment",
    "table",
    "figure",
    "derived",
    "claim",
];

/// Types that another page describes: name in the schema, description, and page.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    (LossModel::NAME, LossModel::WHAT, "settings.md"),
    (QueueDiscipline::NAME, QueueDiscipline::WHAT, "settings.md"),
    (
        PropagationModel::NAME,
        PropagationModel::WHAT,
        "settings.md",
    ),
    (Workloads::NAME, Workloads::WHAT, "settings.md"),
    (Metrics::NAME, Metrics::WHAT, "metrics.md"),
    ("Transport", "a transport", "settings.md"),
    (
        "Parameters",
        "a table of names and values",
        "spec.md#parameters",
    ),
];

/// Generates the page of keys: those at the top level, and then each section with its tables.
pub fn keys() -> String {
    let schema = json_schema(&Standard::default());
    let empty = Map::new();
    let root = schema.as_object().unwrap_or(&empty);
    let definitions = root.get("definitions").and_then(Value::as_object);
    let writer = Writer {
        definitions: definitions.unwrap_or(&empty),
    };
    let mut page = ABOUT.to_owned();
    page.push_str("\n## Top level\n\n");
    writer.rows(&mut page, "", root);
    let sections = root
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let listed = ORDER
        .iter()
        .copied()
        .filter(|name| sections.contains_key(*name));
    let others = sections.keys().map(String::as_str);
    let others = others.filter(|name| !ORDER.contains(name));
    let mut seen = BTreeMap::new();
    for name in listed.chain(others) {
        writer.section(&mut page, name, &sections[name], &mut seen);
    }
    page
}

/// Writer of the page of keys.
struct Writer<'a> {
    definitions: &'a Map<String, Value>,
}

impl<'a> Writer<'a> {
    /// Writes the section at a path and its subsections, if the schema describes a section.
    fn section(
        &self,
        page: &mut String,
        path: &str,
        schema: &'a Value,
        seen: &mut BTreeMap<&'a str, String>,
    ) {
        for name in references(plain(schema)) {
            let is_elsewhere = ELSEWHERE.iter().any(|(known, ..)| *known == name);
            let Some(definition) = self.definitions.get(name).filter(|_| !is_elsewhere) else {
                continue;
            };
            let tables: Vec<&Value> = forms(definition)
                .filter(|form| form.get("properties").is_some())
                .collect();
            let brackets = match is_list(plain(schema)) {
                true => format!("[[{path}]]"),
                false => format!("[{path}]"),
            };
            if let Some(first) = seen.get(name) {
                if !tables.is_empty() && *first != brackets {
                    let _ = write!(page, "\n## `{brackets}`\n\nThe keys of `{first}`.\n");
                }
                continue;
            }
            seen.insert(name, brackets.clone());
            if tables.is_empty() {
                self.section(page, path, definition, seen);
                continue;
            }
            let _ = write!(page, "\n## `{brackets}`\n\n");
            if !text(definition).is_empty() {
                let _ = write!(page, "{}\n\n", text(definition));
            }
            for (number, table) in tables.iter().enumerate() {
                if let Some(kind) = table
                    .pointer("/properties/kind/const")
                    .and_then(Value::as_str)
                {
                    let _ = write!(page, "`kind = \"{kind}\"`: {}\n\n", text(table));
                } else if number > 0 {
                    let _ = write!(page, "Alternatively: {}\n\n", text(table));
                }
                if let Some(table) = table.as_object() {
                    self.rows(page, path, table);
                    page.push('\n');
                }
            }
            page.truncate(page.trim_end().len());
            page.push('\n');
            let inner = tables
                .iter()
                .filter_map(|it| it.get("properties")?.as_object());
            for (key, schema) in inner.flatten() {
                self.section(page, &format!("{path}.{key}"), schema, seen);
            }
        }
    }

    /// Writes the keys of a table, required keys first.
    fn rows(&self, page: &mut String, path: &str, table: &'a Map<String, Value>) {
        let empty = Map::new();
        let keys = table.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = table.get("required").map_or(Vec::new(), |it| {
            it.as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        });
        page.push_str("| key | value | default | description |\n|---|---|---|---|\n");
        let mut keys: Vec<(&String, &Value)> = keys.unwrap_or(&empty).iter().collect();
        keys.sort_by_key(|(key, _)| !required.contains(&key.as_str()));
        let is_tag = |schema: &Value| schema.get("const").is_some();
        for (key, schema) in keys.into_iter().filter(|(_, schema)| !is_tag(schema)) {
            let default = match (
                required.contains(&key.as_str()),
                plain(schema).get("default"),
            ) {
                (true, _) => "required".to_owned(),
                (false, Some(Value::Null) | None) => String::new(),
                (false, Some(Value::Object(table))) if table.is_empty() => String::new(),
                (false, Some(Value::Array(list))) if list.is_empty() => String::new(),
                (false, Some(Value::Object(table))) => {
                    let keys = table.iter().map(|(key, value)| format!("{key} = {value}"));
                    format!("`{{ {} }}`", keys.collect::<Vec<_>>().join(", "))
                }
                (false, Some(default)) => format!("`{default}`"),
            };
            let takes = match path.is_empty() {
                true if is_list(plain(schema)) => format!("sections `[[{key}]]`"),
                true if references(plain(schema)).next().is_some() => {
                    format!("a section `[{key}]`")
                }
                _ => self.takes(plain(schema), &format!("{path}.{key}")),
            };
            // At the top level, the description of a text belongs to the key and not to its type.
            let takes = match takes == text(schema) {
                true => "text".to_owned(),
                false => takes,
            };
            let cells = [format!("`{key}`"), takes, default, text(schema)];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }

    /// Describes the values that a schema allows.
    fn takes(&self, schema: &'a Value, path: &str) -> String {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return self.named(name.rsplit('/').next().unwrap_or(name), path);
        }
        if let Some([one]) = schema
            .get("allOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            return self.takes(one, path);
        }
        if schema.pointer("/properties/forward").is_some() {
            return "`{ forward = ..., backward = ... }`".to_owned();
        }
        for key in ["anyOf", "oneOf"] {
            let Some(forms) = schema.get(key).and_then(Value::as_array) else {
                continue;
            };
            let is_null = |form: &&Value| form.get("type").and_then(Value::as_str) == Some("null");
            let forms = forms.iter().filter(|form| !is_null(form));
            let mut all: Vec<String> = Vec::new();
            for form in forms.map(|form| self.takes(plain(form), path)) {
                if !form.is_empty() && !all.contains(&form) {
                    all.push(form);
                }
            }
            return either(all);
        }
        if let Some(word) = schema.get("const") {
            return format!("`{word}`");
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            return words.join(", ");
        }
        let of = schema.get("type");
        let kind = of.and_then(|of| of.as_str().or_else(|| of.as_array()?.first()?.as_str()));
        match kind {
            Some("array") => match schema.get("items") {
                Some(Value::Array(items)) => {
                    let items = items.iter().map(|item| self.takes(plain(item), path));
                    let items: Vec<String> = items.collect();
                    let pair = if items.len() == 2 { "pair" } else { "list" };
                    format!("a {pair} of {}", items.join(", and "))
                }
                Some(item @ Value::Object(_)) => list_of(&self.takes(plain(item), path)),
                _ => "a list".to_owned(),
            },
            Some("object") => match schema.get("additionalProperties") {
                Some(item @ Value::Object(_)) => {
                    format!(
                        "a table of named values; each is {}",
                        self.takes(plain(item), path)
                    )
                }
                _ => "a table".to_owned(),
            },
            Some("integer") => "a whole number".to_owned(),
            Some("number") => "a number".to_owned(),
            Some("boolean") => "true or false".to_owned(),
            Some("string") => match (text(schema), schema.pointer("/examples/0")) {
                // A full sentence describes the key and not its values, so it is not used here.
                (phrase, _) if !phrase.is_empty() && !phrase.ends_with('.') => phrase,
                (_, Some(example)) => format!("text such as `{example}`"),
                (_, None) => "text".to_owned(),
            },
            _ => "a value of any type".to_owned(),
        }
    }

    /// Describes the values of a type, or refers to the page that describes them.
    fn named(&self, name: &'a str, path: &str) -> String {
        if let Some((_, what, page)) = ELSEWHERE.iter().find(|(known, ..)| *known == name) {
            return format!("[{what}]({page})");
        }
        let Some(definition) = self.definitions.get(name) else {
            return "a value of any type".to_owned();
        };
        let is_table = |form: &&Value| form.get("properties").is_some();
        if name == StartTime::schema_name() || !forms(definition).any(|form| is_table(&form)) {
            return self.takes(definition, path);
        }
        let others = forms(definition).filter(|form| !is_table(form));
        let mut all: Vec<String> = others.map(|form| self.takes(form, path)).collect();
        all.push(format!("a table: `[{}]`", path.trim_start_matches('.')));
        either(all)
    }
}

/// Description of a list whose items have the description `item`.
fn list_of(item: &str) -> String {
    match item.strip_prefix("a list; each item is ") {
        Some(inner) => format!("a list of lists; each of their items is {inner}"),
        None => format!("a list; each item is {item}"),
    }
}

/// Joins the descriptions of alternative forms. If both a form and a list of this form are allowed,
/// the list is last. "a whole number" is omitted if "a number" is allowed.
fn either(mut forms: Vec<String>) -> String {
    if forms.iter().any(|form| form == "a number") {
        forms.retain(|form| form != "a whole number");
    }
    let alone = |form: &String| forms.iter().any(|it| list_of(it) == *form);
    let (lists, mut others): (Vec<String>, Vec<String>) = forms.iter().cloned().partition(alone);
    let mut text = match others.pop() {
        None => String::new(),
        Some(last) if others.is_empty() => last,
        Some(last) => format!("{}, or {last}", others.join(", ")),
    };
    if !lists.is_empty() {
        text.push_str(", or a list of such values");
    }
    text
}

/// A property without the alternative of a parameter's name, because every key allows that.
fn plain(schema: &Value) -> &Value {
    match schema
        .get("anyOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([own, parameter]) if parameter.get("pattern").is_some() && is_parameter(parameter) => {
            own
        }
        _ => schema,
    }
}

fn is_parameter(schema: &Value) -> bool {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|pattern| pattern.starts_with("\\$"))
}

/// Names of the types that a schema refers to, directly or for its items.
fn references(schema: &Value) -> impl Iterator<Item = &str> {
    let mut names = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            names.push(name.rsplit('/').next().unwrap_or(name));
        }
        for key in ["anyOf", "allOf", "oneOf"] {
            open.extend(
                schema
                    .get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        }
        for key in ["items", "additionalProperties"] {
            open.extend(schema.get(key).filter(|it| it.is_object()));
        }
        let sides = ["/properties/forward", "/properties/backward"];
        open.extend(sides.iter().filter_map(|side| schema.pointer(side)));
    }
    names.dedup();
    names.into_iter()
}

fn is_list(schema: &Value) -> bool {
    schema.get("items").is_some()
}

/// Alternative tables that a definition allows.
fn forms(definition: &Value) -> impl Iterator<Item = &Value> {
    let many = ["oneOf", "anyOf"];
    let many = many
        .into_iter()
        .filter_map(|key| definition.get(key)?.as_array());
    std::iter::once(definition).chain(many.flatten())
}

/// Description of a schema on one line.
fn text(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}
