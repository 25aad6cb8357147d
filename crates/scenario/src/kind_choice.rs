//! A kind and its parameters, as a spec writes them: a loss model, a queue discipline. The
//! vocabulary lists the available kinds.
//!
//! A family of kinds is a type that implements [`KindFamily`]: its name, the key that selects the
//! kind of a table, the keys that all its tables may have, and the meaning of a text.
//! `KindChoice<F>` is then a value of a spec. A kind choice is read from a table
//! (`{ model = "bernoulli", probability = 0.01 }`) or from the name of a kind (`"codel"`), and it
//! is written as a table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use anabranch_settings::{Datum, Fallback, Kinds, Setting, Variant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A family of kinds.
pub trait KindFamily: Sized + 'static {
    /// Name of the family in a vocabulary and in schemas: `Loss`.
    const NAME: &'static str;
    /// Name of a member in error messages: `a loss model`.
    const WHAT: &'static str;
    /// The key that selects the kind of a table.
    const TAG: &'static str = "kind";
    /// Keys that a table of any kind may have, because they concern its use and not its behavior.
    const SHARED: &'static [Setting] = &[];

    /// The allowed forms, for error messages.
    const EXPECTED: &'static str = "a table, or a name in quotes";

    /// The meaning of a table without the key [`KindFamily::TAG`].
    fn untagged(parameters: BTreeMap<String, Value>) -> KindChoice<Self> {
        KindChoice::of("", parameters)
    }

    /// The JSON Schemas of the short forms.
    fn short_forms() -> Vec<Value> {
        Vec::new()
    }

    /// The meaning of a text: the kind of that name, unless the family has a short form.
    ///
    /// # Errors
    /// An invalid text; the message names the text and the allowed values.
    fn from_text(text: &str) -> Result<KindChoice<Self>, String> {
        Ok(KindChoice::new(text))
    }
}

/// A kind of a family with its parameters.
pub struct KindChoice<F> {
    /// Name of the kind. Empty if a table does not name one, because the check reports that.
    pub kind: String,
    /// Parameters of the kind and shared keys of the family, as written.
    pub parameters: BTreeMap<String, Value>,
    family: PhantomData<fn() -> F>,
}

impl<F: KindFamily> KindChoice<F> {
    /// The kind of that name, without parameters.
    pub fn new(kind: &str) -> Self {
        Self::of(kind, BTreeMap::new())
    }

    /// The kind of that name with the given parameters.
    pub fn of(kind: &str, parameters: BTreeMap<String, Value>) -> Self {
        Self {
            kind: kind.to_owned(),
            parameters,
            family: PhantomData,
        }
    }

    /// Sets a parameter, or a shared key of the family.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// The parameters and their values, as [`anabranch_settings::Registry::build`] takes them.
    /// Shared keys of the family are omitted. Invalid values are omitted as well, because the check
    /// of a spec reports them.
    pub fn values(&self, kinds: &dyn Kinds) -> Vec<(String, Datum)> {
        let variants = kinds.variants();
        let Some(variant) = variants.iter().find(|known| known.name == self.kind) else {
            return Vec::new();
        };
        let given = self.parameters.iter().filter_map(|(name, value)| {
            let setting = find(variant.parameters, name)?;
            Some((name.clone(), setting.kind.read(value).ok()?))
        });
        given.collect()
    }

    /// Whether a shared key of the family differs from its default.
    pub fn differs(&self, name: &str) -> bool {
        self.shared(name) != Self::new("").shared(name)
    }

    /// The value of a shared key of the family, or its default.
    pub fn shared(&self, name: &str) -> Option<Datum> {
        let setting = find(F::SHARED, name)?;
        match (self.parameters.get(name), setting.fallback) {
            (Some(value), _) => setting.kind.read(value).ok(),
            (None, Fallback::Is(text)) => setting.parse(text).ok(),
            (None, _) => None,
        }
    }
}

/// The setting of that name.
pub(crate) fn find<'a>(settings: &'a [Setting], name: &str) -> Option<&'a Setting> {
    settings.iter().find(|setting| setting.name == name)
}

/// The text with a capital letter at its beginning.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The JSON Schema of a family's values.
pub fn json_schema_of<F: KindFamily>(variants: &[Variant]) -> Value {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    let tables = variants.iter();
    let tables: Vec<Value> = tables
        .map(|variant| variant.json_schema(F::TAG, F::SHARED))
        .collect();
    let mut forms = F::short_forms();
    forms.push(json!({ "enum": names }));
    forms.extend(tables);
    json!({
        "description": format!("{}: a table, or the name of a kind that needs no parameter.", capitalized(F::WHAT)),
        "anyOf": forms,
    })
}

impl<'de, F: KindFamily> Deserialize<'de> for KindChoice<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<F>(PhantomData<F>);
        impl<'de, F: KindFamily> Visitor<'de> for Reader<F> {
            type Value = KindChoice<F>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(F::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<KindChoice<F>, E> {
                F::from_text(text).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KindChoice<F>, A::Error> {
                let map = MapAccessDeserializer::new(map);
                let mut parameters = BTreeMap::<String, Value>::deserialize(map)?;
                match parameters.remove(F::TAG) {
                    Some(Value::String(kind)) => Ok(KindChoice::of(&kind, parameters)),
                    None => Ok(F::untagged(parameters)),
                    Some(other) => {
                        let (what, tag) = (F::WHAT, F::TAG);
                        let message = format!(
                            "found {other} as `{tag}`; expected the name of {what} in quotes"
                        );
                        Err(de::Error::custom(message))
                    }
                }
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<F: KindFamily> Serialize for KindChoice<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.parameters.len() + 1))?;
        map.serialize_entry(F::TAG, &self.kind)?;
        for (name, value) in &self.parameters {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<F: KindFamily> JsonSchema for KindChoice<F> {
    fn schema_name() -> Cow<'static, str> {
        F::NAME.into()
    }

    /// The schema without a vocabulary; [`crate::schema::json_schema`] adds the kinds.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["object", "string"] })
    }
}

impl<F> Clone for KindChoice<F> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            parameters: self.parameters.clone(),
            family: PhantomData,
        }
    }
}

impl<F> PartialEq for KindChoice<F> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.parameters == other.parameters
    }
}

impl<F> fmt::Debug for KindChoice<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.parameters)
    }
}

#[cfg(test)]
mod tests;
