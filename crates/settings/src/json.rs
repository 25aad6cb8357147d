//! Values as JSON, and JSON Schema.

use serde_json::{Map, Value as Json, json};

use crate::datum::Datum;
use crate::error::Misfit;
use crate::kind::Kind;
use crate::setting::{Fallback, Setting, Variant};

/// The key that says which variant a table is.
const TAG: &str = "kind";

impl Kind {
    /// Reads a value from a spec, where numbers and truth values are not text.
    ///
    /// # Errors
    /// It is not of this kind, or out of its range.
    pub fn read(&self, value: &Json) -> Result<Datum, Misfit> {
        let misfit = || self.misfit(value.to_string());
        let datum = match (self, value) {
            (Kind::Variant(variants), Json::String(name)) => {
                return self.read_variant(&variants(), name, &Map::new());
            }
            (Kind::Variant(variants), Json::Object(table)) => {
                let name = table.get(TAG).and_then(Json::as_str).ok_or_else(misfit)?;
                return self.read_variant(&variants(), name, table);
            }
            (Kind::Either(_, other), Json::Number(_) | Json::Object(_) | Json::Array(_)) => {
                return other.read(value).map_err(|inner| Misfit {
                    allowed: self.allowed(),
                    range: self.range(),
                    words: self.words(),
                    ..inner
                });
            }
            (Kind::Flag | Kind::Count { .. } | Kind::Number { .. }, Json::String(_)) => {
                return Err(misfit());
            }
            (_, Json::String(text)) => return self.parse(text),
            (_, Json::Bool(flag)) => Datum::Flag(*flag),
            (Kind::Number { .. }, Json::Number(number)) => {
                Datum::Real(number.as_f64().ok_or_else(misfit)?)
            }
            (Kind::Count { .. }, Json::Number(number)) => {
                Datum::Whole(number.as_u64().ok_or_else(misfit)?)
            }
            (Kind::List(item), Json::Array(items)) => Datum::List(
                items
                    .iter()
                    .map(|value| item.read(value))
                    .collect::<Result<_, _>>()?,
            ),
            _ => return Err(misfit()),
        };
        self.check(&datum)?;
        Ok(datum)
    }

    fn read_variant(
        &self,
        variants: &[Variant],
        name: &str,
        table: &Map<String, Json>,
    ) -> Result<Datum, Misfit> {
        let variant = variants.iter().find(|variant| variant.name == name);
        let variant = variant.ok_or_else(|| Misfit {
            parameter: (!table.is_empty()).then(|| TAG.to_owned()),
            ..self.misfit(format!("{name:?}"))
        })?;
        let given = table.iter().filter(|(key, _)| *key != TAG);
        let mut parameters = Vec::new();
        for (key, value) in given {
            let at = |misfit: Misfit| Misfit {
                parameter: Some(key.clone()),
                ..misfit
            };
            let Some(parameter) = variant.parameters.iter().find(|known| known.name == key) else {
                return Err(at(unknown(key, variant.parameters)));
            };
            parameters.push((key.clone(), parameter.kind.read(value).map_err(at)?));
        }
        let is_missing = |parameter: &&Setting| {
            parameter.fallback == Fallback::Required && !table.contains_key(parameter.name)
        };
        match variant.parameters.iter().find(is_missing) {
            Some(missing) => Err(Misfit {
                parameter: Some(missing.name.to_owned()),
                ..missing.kind.misfit("nothing".to_owned())
            }),
            None => Ok(Datum::Variant {
                kind: name.to_owned(),
                parameters,
            }),
        }
    }

    /// Writes a value as [`Kind::read`] reads it.
    pub fn to_json(&self, datum: &Datum) -> Json {
        match (self, datum) {
            (_, Datum::Flag(flag)) => json!(flag),
            (_, Datum::Real(number)) => json!(number),
            (Kind::Count { .. }, Datum::Whole(number)) => json!(number),
            (Kind::Either(_, other), Datum::Whole(_) | Datum::Variant { .. }) => {
                other.to_json(datum)
            }
            (Kind::List(item), Datum::List(items)) => {
                items.iter().map(|datum| item.to_json(datum)).collect()
            }
            (Kind::Variant(variants), Datum::Variant { kind, parameters }) => {
                let variant = variants().into_iter().find(|known| known.name == kind);
                let known = variant.map_or(&[][..], |variant| variant.parameters);
                let mut table = Map::new();
                table.insert(TAG.to_owned(), json!(kind));
                for (name, datum) in parameters {
                    if let Some(parameter) = known.iter().find(|known| known.name == name) {
                        table.insert(name.clone(), parameter.kind.to_json(datum));
                    }
                }
                Json::Object(table)
            }
            _ => json!(self.show(datum)),
        }
    }

    /// The JSON Schema of its values.
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
                let units = self.unit().replace(", ", "|");
                let units = units.replace("segments", "packets?|segments?");
                let pattern = format!(r"^\s*[0-9][0-9._]*([eE][+-]?[0-9]+)?\s*({units})\s*$");
                json!({ "type": "string", "pattern": pattern, "examples": [self.example()] })
            }
            Kind::Choice(words) => json!({ "enum": names(words.iter().map(|word| word.name)) }),
            Kind::Registered(words) => {
                let words = words();
                json!({ "enum": names(words.iter().map(|word| word.name)) })
            }
            Kind::Text(_) => json!({ "type": "string" }),
            Kind::Either(words, other) => {
                let words = names(words.iter().map(|word| word.name));
                json!({ "anyOf": [{ "enum": words }, other.json_schema()] })
            }
            Kind::List(item) => json!({ "type": "array", "items": item.json_schema() }),
            Kind::Variant(variants) => {
                let tables: Vec<Json> = variants().iter().map(Variant::json_schema).collect();
                json!({ "oneOf": tables })
            }
        }
    }
}

fn names<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    words.collect()
}

fn unknown(key: &str, known: &[Setting]) -> Misfit {
    let words: Vec<String> = known.iter().map(|known| known.name.to_owned()).collect();
    Misfit {
        found: format!("the key `{key}`"),
        allowed: words.join(", "),
        range: words.join(", "),
        words,
        parameter: None,
    }
}

impl Setting {
    /// The JSON Schema of the setting; `fallback` says what holds where it is left out, if its owner knows.
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
    /// The JSON Schema of its table.
    pub fn json_schema(&self) -> Json {
        let mut properties = Map::new();
        properties.insert(TAG.to_owned(), json!({ "const": self.name }));
        let mut required = vec![TAG];
        for parameter in self.parameters {
            properties.insert(parameter.name.to_owned(), parameter.json_schema(None));
            if parameter.fallback == Fallback::Required {
                required.push(parameter.name);
            }
        }
        json!({
            "type": "object",
            "description": self.text(),
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}
