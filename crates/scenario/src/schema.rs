//! The JSON Schema of a spec, made from the types that read it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::spec::Spec;

/// The schema. Wherever a value may stand, a parameter's name (`"$rate"`) may stand too.
pub fn json_schema() -> Schema {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<Spec>();
    if let Some(object) = schema.as_object_mut() {
        for section in ["definitions", "$defs"] {
            if let Some(Value::Object(definitions)) = object.get_mut(section) {
                definitions.values_mut().for_each(allow_parameters);
            }
        }
        object.insert("title".to_owned(), json!("A spec of anabranch"));
    }
    schema
}

/// Lets every property and every element of a list below this schema be a parameter's name instead, tags of variants
/// aside.
fn allow_parameters(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                allow_parameters(value);
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties
                        .values_mut()
                        .filter(|property| property.get("const").is_none())
                        .for_each(or_parameter),
                    // A list of one kind, or a tuple.
                    ("items", Value::Array(items)) => items.iter_mut().for_each(or_parameter),
                    ("items", item @ Value::Object(_)) => or_parameter(item),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(allow_parameters),
        _ => {}
    }
}

fn or_parameter(property: &mut Value) {
    let description = property
        .as_object_mut()
        .and_then(|property| property.remove("description"));
    let own = property.take();
    *property = json!({ "anyOf": [own, { "type": "string", "pattern": "^\\$" }] });
    if let (Some(description), Some(property)) = (description, property.as_object_mut()) {
        property.insert("description".to_owned(), description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_a_spec_is_in_the_schema() {
        let schema = json_schema();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .expect("an object");
        for section in [
            "anabranch",
            "parameters",
            "world",
            "node",
            "link",
            "flow",
            "experiment",
            "table",
            "figure",
        ] {
            assert!(properties.contains_key(section), "{section}");
        }
    }

    #[test]
    fn a_parameter_may_stand_for_a_rate() {
        let text = json_schema().to_value().to_string();
        assert!(
            text.contains(r#"{"pattern":"^\\$","type":"string"}"#)
                || text.contains(r#"{"type":"string","pattern":"^\\$"}"#)
        );
    }
}
