//! A kind and its parameters as written in a spec, for example a loss model or a queue discipline.
//! The vocabulary provides the available kinds.
//!
//! A family of kinds is a type that implements [`KindFamily`], which defines its name, the key that
//! selects the kind of a table, the keys that all its tables may have, and the meaning of a text. A
//! value of a spec then has the type `KindChoice<F>`. It is read from a table (`{ model =
//! "bernoulli", probability = 0.01 }`) or from the name of a kind (`"codel"`), and it is always
//! written as a table.

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

/// A family of kinds, such as the loss models.
pub trait KindFamily: Sized + 'static {
    /// Name of the family in a vocabulary and in schemas, such as `Loss`.
    const NAME: &'static str;
    /// Description of a kind of the family in error messages, such as `a loss model`.
    const WHAT: &'static str;
    /// Key that selects the kind of a table.
    const TAG: &'static str = "kind";
    /// Keys that the table of any kind may have, because they concern the use of the kind and not
    /// its behaviour.
    const SHARED: &'static [Setting] = &[];

    /// Allowed forms, for error messages.
    const EXPECTED: &'static str = "a table, or a name in quotes";

    /// Meaning of a table without the key [`KindFamily::TAG`].
    fn untagged(parameters: BTreeMap<String, Value>) -> KindChoice<Self> {
        KindChoice::of("", parameters)
    }

    /// JSON Schemas of the short forms.
    fn short_forms() -> Vec<Value> {
        Vec::new()
    }

    /// Meaning of a text: by default it is the name of a kind.
    ///
    /// # Errors
    /// The text is invalid; the message contains the text and the allowed values.
    fn from_text(text: &str) -> Result<KindChoice<Self>, String> {
        Ok(KindChoice::new(text))
    }
}

/// A kind of a family with its parameters.
pub struct KindChoice<F> {
    /// Name of the kind. Empty if a table does not name one; the check of the spec reports that.
    pub kind: String,
    /// Parameters of the kind, and shared keys of the family, as written.
    pub parameters: BTreeMap<String, Value>,
    family: PhantomData<fn() -> F>,
}

impl<F: KindFamily> KindChoice<F> {
    /// Creates a choice of the kind `kind` without parameters.
    pub fn new(kind: &str) -> Self {
        Self::of(kind, BTreeMap::new())
    }

    /// Creates a choice of the kind `kind` with the given parameters.
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

    /// Parameters with their values, as input for [`anabranch_settings::Registry::build`]. Shared
    /// keys of the family are omitted. Invalid values are omitted, too, because the check of the
    /// spec reports them.
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

    /// Whether the value of a shared key differs from its default.
    pub fn differs(&self, name: &str) -> bool {
        self.shared(name) != Self::new("").shared(name)
    }

    /// Value of a shared key of the family, or its default.
    pub fn shared(&self, name: &str) -> Option<Datum> {
        let setting = find(F::SHARED, name)?;
        match (self.parameters.get(name), setting.fallback) {
            (Some(value), _) => setting.kind.read(value).ok(),
            (None, Fallback::Is(text)) => setting.parse(text).ok(),
            (None, _) => None,
        }
    }
}

/// The setting named `name`.
pub(crate) fn find<'a>(settings: &'a [Setting], name: &str) -> Option<&'a Setting> {
    settings.iter().find(|setting| setting.name == name)
}

/// The text, with its first letter in upper case.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// JSON Schema of a family's values.
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

    /// Schema without kinds, which [`crate::schema::json_schema`] adds from the vocabulary.
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
