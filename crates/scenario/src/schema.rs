//! JSON Schema of a spec, generated from the types that read it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::constellation::{RoutingModel, ShellModel};
use crate::kind_choice::{KindFamily, json_schema_of};
use crate::kind_families::{LossModel, PropagationModel, QueueDiscipline, Workloads};
use crate::measure::Metrics;
use crate::spec::Spec;
use crate::transport::TransportKind;
use crate::vocabulary::Vocabulary;

/// Generates the schema for the kinds of a vocabulary. It permits the name of a parameter
/// (`"$rate"`) or an expression (`"2 * $rate"`) in place of every value.
pub fn json_schema(vocabulary: &dyn Vocabulary) -> Schema {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<Spec>();
    if let Some(object) = schema.as_object_mut() {
        for section in ["definitions", "$defs"] {
            if let Some(Value::Object(definitions)) = object.get_mut(section) {
                if let Some(transport) = definitions.get_mut("Transport") {
                    let kinds = vocabulary.transports().into_iter();
                    let mut tables: Vec<Value> = kinds.map(TransportKind::json_schema).collect();
                    tables.push(of_some_protocol());
                    *transport = json!({
                        "description": "The transport of a flow, by its `protocol`.",
                        "oneOf": tables,
                    });
                }
                choose::<LossModel>(definitions, vocabulary);
                choose::<QueueDiscipline>(definitions, vocabulary);
                choose::<PropagationModel>(definitions, vocabulary);
                choose::<Workloads>(definitions, vocabulary);
                choose::<Metrics>(definitions, vocabulary);
                choose::<ShellModel>(definitions, vocabulary);
                choose::<RoutingModel>(definitions, vocabulary);
                definitions.values_mut().for_each(allow_parameters);
            }
        }
        object.insert("title".to_owned(), json!("A spec of anabranch"));
    }
    schema
}

/// Schema of a transport whose protocol is a parameter, so that its allowed keys are unknown.
fn of_some_protocol() -> Value {
    json!({
        "type": "object",
        "description": "The transport that a parameter names.",
        "properties": { "protocol": { "type": "string", "pattern": "^\\$" } },
        "required": ["protocol"],
    })
}

/// Adds the kinds of a family to the schema.
fn choose<F: KindFamily>(definitions: &mut Map<String, Value>, vocabulary: &dyn Vocabulary) {
    if let Some(chosen) = definitions.get_mut(F::NAME) {
        *chosen = json_schema_of::<F>(&vocabulary.kinds(F::NAME).variants());
    }
}

/// Permits the name of a parameter or an expression for every property and every list element below
/// this schema, except for tags of variants.
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
                    // `items` is a schema for all elements of a list, or a list of schemas for a
                    // tuple.
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
    *property = json!({ "anyOf": [own, { "type": "string", "pattern": "\\$|[*()]| [-+/] " }] });
    if let (Some(description), Some(property)) = (description, property.as_object_mut()) {
        property.insert("description".to_owned(), description);
    }
}
