//! Conversion of values from and to JSON, and JSON Schemas.

use serde_json::{Map, Value as Json, json};

use crate::datum::Datum;
use crate::error::InvalidValue;
use crate::expression::is_compound;
use crate::setting::kind::{REPEAT, STEP_TIME, STEPS, TAG};
use crate::setting::{Fallback, Kind, Setting, Variant};
use crate::units::pattern;

impl Kind {
    /// Reads a value from a spec, in which numbers and booleans have separate types.
    ///
    /// # Errors
    /// The value is not of this kind, or is out of its range.
    pub fn read(&self, value: &Json) -> Result<Datum, InvalidValue> {
        let invalid_value = || self.invalid_value(value.to_string());
        let datum = match (self, value) {
            (Kind::Variant(variants), Json::String(name)) => {
                return self.read_variant(&variants(), name, &Map::new());
            }
            (Kind::Variant(variants), Json::Object(table)) => {
                let name = table
                    .get(TAG)
                    .and_then(Json::as_str)
                    .ok_or_else(invalid_value)?;
                return self.read_variant(&variants(), name, table);
            }
            (Kind::StepFunction(inner), Json::Object(table)) => read_steps(inner, table)?,
            (Kind::StepFunction(inner), _) => return inner.read(value),
            (Kind::Either(_, other), Json::Number(_) | Json::Object(_) | Json::Array(_)) => {
                return other.read(value).map_err(|inner| InvalidValue {
                    allowed: self.allowed(),
                    range: self.range(),
                    words: self.words(),
                    ..inner
                });
            }
            (Kind::Count { .. } | Kind::Number { .. }, Json::String(text)) if is_compound(text) => {
                return self.parse(text);
            }
            (Kind::Flag | Kind::Count { .. } | Kind::Number { .. }, Json::String(_)) => {
                return Err(invalid_value());
            }
            (_, Json::String(text)) => return self.parse(text),
            (_, Json::Bool(flag)) => Datum::Flag(*flag),
            (Kind::Number { .. }, Json::Number(number)) => {
                Datum::Real(number.as_f64().ok_or_else(invalid_value)?)
            }
            (Kind::Count { .. }, Json::Number(number)) => {
                Datum::Whole(number.as_u64().ok_or_else(invalid_value)?)
            }
            (Kind::List(item), Json::Array(items)) => {
                let kinds = items.iter().map(|_| *item);
                Datum::List(read_items(kinds, items)?)
            }
            (Kind::Tuple(kinds), Json::Array(items)) if kinds.len() == items.len() => {
                Datum::List(read_items(kinds.iter(), items)?)
            }
            (Kind::Tuple(kinds), Json::Array(items)) => {
                return Err(InvalidValue {
                    found: format!("a list of {}", items.len()),
                    allowed: format!("a list of {}", kinds.len()),
                    ..invalid_value()
                });
            }
            (Kind::Table(settings), Json::Object(table)) => {
                Datum::Table(read_keys(settings, table, &[])?)
            }
            (Kind::Named(item), Json::Object(table)) => {
                let entries = table.iter().map(|(name, value)| {
                    let datum = item
                        .read(value)
                        .map_err(|invalid_value| invalid_value.within(name))?;
                    Ok((name.clone(), datum))
                });
                Datum::Table(entries.collect::<Result<_, InvalidValue>>()?)
            }
            _ => return Err(invalid_value()),
        };
        self.check(&datum)?;
        Ok(datum)
    }

    fn read_variant(
        &self,
        variants: &[Variant],
        name: &str,
        table: &Map<String, Json>,
    ) -> Result<Datum, InvalidValue> {
        let variant = variants.iter().find(|variant| variant.name == name);
        let variant = variant.ok_or_else(|| InvalidValue {
            parameter: (!table.is_empty()).then(|| TAG.to_owned()),
            ..self.invalid_value(format!("{name:?}"))
        })?;
        Ok(Datum::Variant {
            kind: name.to_owned(),
            parameters: read_keys(variant.parameters, table, &[TAG])?,
        })
    }

    /// Converts a value to the JSON form that [`Kind::read`] accepts.
    pub fn to_json(&self, datum: &Datum) -> Json {
        match (self, datum) {
            (_, Datum::Flag(flag)) => json!(flag),
            (_, Datum::Real(number)) => json!(number),
            (Kind::Count { .. }, Datum::Whole(number)) => json!(number),
            (Kind::Either(_, other), datum) if datum.text().is_none() => other.to_json(datum),
            (Kind::List(item), Datum::List(items)) => {
                items.iter().map(|datum| item.to_json(datum)).collect()
            }
            (Kind::Tuple(kinds), Datum::List(items)) => {
                let items = kinds.iter().zip(items);
                items.map(|(kind, datum)| kind.to_json(datum)).collect()
            }
            (Kind::StepFunction(inner), Datum::Table(_)) => {
                let steps = datum.key(STEPS).map_or(&[][..], Datum::items);
                let steps = steps.iter().map(|step| match step.items() {
                    [at, value] => json!([STEP_TIME.to_json(at), inner.to_json(value)]),
                    _ => Json::Null,
                });
                let mut table = Map::new();
                table.insert(STEPS.to_owned(), steps.collect());
                if let Some(repeat) = datum.key(REPEAT) {
                    table.insert(REPEAT.to_owned(), STEP_TIME.to_json(repeat));
                }
                Json::Object(table)
            }
            (Kind::StepFunction(inner), _) => inner.to_json(datum),
            (Kind::Table(settings), Datum::Table(entries)) => {
                Json::Object(keys_to_json(settings, entries))
            }
            (Kind::Named(item), Datum::Table(entries)) => {
                let entries = entries.iter();
                let entries = entries.map(|(name, datum)| (name.clone(), item.to_json(datum)));
                Json::Object(entries.collect())
            }
            (Kind::Variant(variants), Datum::Variant { kind, parameters }) => {
                let variant = variants().into_iter().find(|known| known.name == kind);
                let known = variant.map_or(&[][..], |variant| variant.parameters);
                let mut table = keys_to_json(known, parameters);
                table.insert(TAG.to_owned(), json!(kind));
                Json::Object(table)
            }
            _ => json!(self.show(datum)),
        }
    }

    /// JSON Schema of the values of this kind.
    pub fn json_schema(&self) -> Json {
        match self {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Count { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::Number {
                least,
                most,
                above,
                step,
            } => {
                let bound = if *above {
                    "exclusiveMinimum"
                } else {
                    "minimum"
                };
                let mut schema = json!({ "type": "number", bound: least });
                if most.is_finite() {
                    schema["maximum"] = json!(most);
                }
                if *step > 0.0 {
                    schema["multipleOf"] = json!(step);
                }
                schema
            }
            Kind::Duration { .. }
            | Kind::Bytes { .. }
            | Kind::Rate { .. }
            | Kind::Amount { .. } => {
                let pattern = pattern(self.families());
                json!({ "type": "string", "pattern": pattern, "examples": [self.example()] })
            }
            Kind::Choice(words) => json!({ "enum": names(words.iter().map(|word| word.name)) }),
            Kind::Registered(words) => {
                let words = words();
                json!({ "enum": names(words.iter().map(|word| word.name)) })
            }
            Kind::Text(_) | Kind::Name(_) => json!({ "type": "string" }),
            Kind::Either(words, other) => {
                let words = names(words.iter().map(|word| word.name));
                json!({ "anyOf": [{ "enum": words }, other.json_schema()] })
            }
            // A list with one item may be written without brackets.
            Kind::List(item) => {
                let item = item.json_schema();
                json!({ "anyOf": [item.clone(), { "type": "array", "items": item }] })
            }
            Kind::Variant(variants) => {
                let tables = variants();
                let tables: Vec<Json> = tables.iter().map(|it| it.json_schema(TAG, &[])).collect();
                json!({ "oneOf": tables })
            }
            Kind::Tuple(kinds) => {
                let items: Vec<Json> = kinds.iter().map(Kind::json_schema).collect();
                let count = items.len();
                json!({ "type": "array", "items": items, "minItems": count, "maxItems": count })
            }
            Kind::Table(settings) => table_schema(settings),
            Kind::StepFunction(inner) => {
                let step = json!({
                    "type": "array",
                    "items": [STEP_TIME.json_schema(), inner.json_schema()],
                    "minItems": 2,
                    "maxItems": 2,
                });
                let mut repeat = STEP_TIME.json_schema();
                repeat["description"] = json!(
                    "Period of a repetition, after which the steps start again at time 0. Without it the last value remains."
                );
                let table = json!({
                    "type": "object",
                    "description": "A value over time: from each time on, until the next; the first time is 0.",
                    "properties": {
                        STEPS: { "type": "array", "items": step, "description": "Times, in order, each with the value from that time on; the first time is 0." },
                        "trace": { "type": "string", "description": "Instead of `steps`: a file of lines `time,value`, text or Parquet. A number without a unit is in seconds and, of a rate, in bit/s, unless a title line gives other units, such as `time_ms,rate_mbps`; an unknown title is an error. A rate may name `opportunities` instead: a file in the format of mahimahi." },
                        REPEAT: repeat,
                    },
                    "additionalProperties": false,
                });
                json!({ "anyOf": [inner.json_schema(), table] })
            }
            Kind::Named(item) => {
                json!({ "type": "object", "additionalProperties": item.json_schema() })
            }
        }
    }
}

fn names<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    words.collect()
}

fn unknown(key: &str, known: &[Setting]) -> InvalidValue {
    let words: Vec<String> = known.iter().map(|known| known.name.to_owned()).collect();
    let keys: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    InvalidValue {
        found: format!("the key `{key}`"),
        allowed: keys.join(", "),
        range: words.join(", "),
        words,
        parameter: None,
    }
}

impl Setting {
    /// JSON Schema of the setting; `fallback` is the default, if the owner of the setting defines
    /// it.
    pub fn json_schema(&self, fallback: Option<&str>) -> Json {
        let mut schema = self.kind.json_schema();
        let mut words = vec![self.text()];
        let described = ["pattern", "anyOf"]
            .iter()
            .any(|key| schema.get(key).is_some());
        if described && !matches!(self.kind, Kind::Variant(_)) {
            words.push(format!("Range: {}.", self.kind.range()));
        }
        let own = match self.fallback {
            Fallback::Is(value) => Some(value),
            _ => None,
        };
        if let Some(fallback) = fallback.or(own) {
            words.push(format!("Default: {fallback}."));
        }
        if !self.clause.is_empty() {
            words.push(format!("({})", self.clause));
        }
        schema["description"] = json!(words.join(" "));
        schema
    }
}

impl Variant {
    /// JSON Schema of the variant's table. The key `tag` contains the name of the variant; the keys
    /// `shared` are also allowed.
    pub fn json_schema(&self, tag: &str, shared: &[Setting]) -> Json {
        let mut schema = table_schema(&[self.parameters, shared].concat());
        schema["description"] = json!(self.text());
        schema["properties"][tag] = json!({ "const": self.name });
        if let Some(required) = schema["required"].as_array_mut() {
            required.insert(0, json!(tag));
        }
        schema
    }
}

/// JSON Schema of a table with these keys.
fn table_schema(settings: &[Setting]) -> Json {
    let properties = settings.iter();
    let properties = properties.map(|key| (key.name.to_owned(), key.json_schema(None)));
    let required = settings.iter();
    let required = required.filter(|key| key.fallback == Fallback::Required);
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": names(required.map(|key| key.name)),
        "additionalProperties": false,
    })
}

/// Reads a step function of time.
fn read_steps(inner: &Kind, table: &Map<String, Json>) -> Result<Datum, InvalidValue> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let datum = match (key.as_str(), value) {
            (STEPS, Json::Array(items)) => {
                let read = |(index, item): (usize, &Json)| {
                    let pair = match item.as_array().map(Vec::as_slice) {
                        Some([at, value]) => read_items(
                            [&STEP_TIME, inner].into_iter(),
                            &[at.clone(), value.clone()],
                        ),
                        _ => Err(InvalidValue {
                            allowed: "a time and a value: [\"10 s\", ...]".to_owned(),
                            ..inner.invalid_value(item.to_string())
                        }),
                    };
                    pair.map(Datum::List)
                        .map_err(|invalid_value| invalid_value.within(&index.to_string()))
                };
                let items = items.iter().enumerate().map(read);
                items.collect::<Result<_, _>>().map(Datum::List)
            }
            (STEPS, other) => Err(Kind::List(&STEP_TIME).invalid_value(other.to_string())),
            (REPEAT, value) => STEP_TIME.read(value),
            _ => {
                let words = vec![STEPS.to_owned(), "trace".to_owned(), REPEAT.to_owned()];
                Err(InvalidValue {
                    allowed: words.join(", "),
                    words,
                    ..inner.invalid_value(format!("the key `{key}`"))
                })
            }
        };
        entries.push((
            key.clone(),
            datum.map_err(|invalid_value| invalid_value.within(key))?,
        ));
    }
    let read = Datum::Table(entries);
    check_steps(&read)?;
    Ok(read)
}

/// Checks that steps begin at 0, that times increase, and that they end before the period.
fn check_steps(read: &Datum) -> Result<(), InvalidValue> {
    let wrong = |key: &str, found: String, allowed: &str| {
        let invalid_value = InvalidValue {
            allowed: allowed.to_owned(),
            ..STEP_TIME.invalid_value(found)
        };
        Err(invalid_value.within(key))
    };
    let steps = read.key(STEPS).map_or(&[][..], Datum::items);
    let times: Vec<u64> = steps
        .iter()
        .filter_map(|step| step.items().first()?.whole())
        .collect();
    let show = |at: u64| STEP_TIME.show(&Datum::Whole(at));
    let Some((first, last)) = times.first().zip(times.last()) else {
        return wrong(STEPS, "no steps".to_owned(), "at least one, at \"0 s\"");
    };
    if *first != 0 {
        let found = format!("a first step at {:?}", show(*first));
        return wrong(STEPS, found, "one at \"0 s\" first");
    }
    if let Some(pair) = times.windows(2).find(|pair| pair[0] >= pair[1]) {
        let found = format!("{:?} after {:?}", show(pair[1]), show(pair[0]));
        return wrong(STEPS, found, "times that rise");
    }
    match read.key(REPEAT).and_then(Datum::whole) {
        Some(repeat) if repeat <= *last => {
            let found = format!("{:?}", show(repeat));
            let allowed = format!("a time after the last step, at {:?}", show(*last));
            wrong(REPEAT, found, &allowed)
        }
        _ => Ok(()),
    }
}

/// Reads each item of a list as a value of the kind that has the same index in `kinds`.
fn read_items<'a>(
    kinds: impl Iterator<Item = &'a Kind>,
    items: &[Json],
) -> Result<Vec<Datum>, InvalidValue> {
    let items = kinds.zip(items).enumerate();
    items
        .map(|(index, (kind, value))| {
            kind.read(value)
                .map_err(|invalid_value| invalid_value.within(&index.to_string()))
        })
        .collect()
}

/// Reads the keys of a table, except those in `others`.
fn read_keys(
    settings: &[Setting],
    table: &Map<String, Json>,
    others: &[&str],
) -> Result<Vec<(String, Datum)>, InvalidValue> {
    let mut read = Vec::new();
    for (key, value) in table {
        if others.contains(&key.as_str()) {
            continue;
        }
        let Some(setting) = settings.iter().find(|known| known.name == key) else {
            return Err(unknown(key, settings).within(key));
        };
        let datum = setting.kind.read(value);
        read.push((
            key.clone(),
            datum.map_err(|invalid_value| invalid_value.within(key))?,
        ));
    }
    let is_missing =
        |key: &&Setting| key.fallback == Fallback::Required && !table.contains_key(key.name);
    match settings.iter().find(is_missing) {
        Some(missing) => {
            let nothing = format!("no `{}`", missing.name);
            Err(missing.kind.invalid_value(nothing).within(missing.name))
        }
        None => Ok(read),
    }
}

fn keys_to_json(settings: &[Setting], entries: &[(String, Datum)]) -> Map<String, Json> {
    let known = |name: &str| settings.iter().find(|known| known.name == name);
    let entries = entries.iter().filter_map(|(name, datum)| {
        let setting = known(name)?;
        Some((name.clone(), setting.kind.to_json(datum)))
    });
    entries.collect()
}
