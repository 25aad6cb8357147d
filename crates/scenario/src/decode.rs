//! Decoding of the tree into types by serde, with all errors and not only the first one.
//!
//! serde stops at the first error. The decoder records the invalid value, removes it, and decodes
//! the remaining tree again. This is repeated until all errors are consequences of removed values.
//! Unknown keys are recorded and skipped.

mod number;
mod words;

use std::cell::RefCell;
use std::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

use self::words::{array_length, plainly, sections};
use crate::diagnostic::{self, Diagnostic};
use crate::limits::MAX_PROBLEMS;
use crate::source_span::SourceSpan;
use crate::tree::{NodeValue, SpecNode, TableEntry};

/// Decodes a tree, or reports all its errors. `path` is the path of the tree itself, for error
/// messages.
///
/// # Errors
/// All errors found.
pub fn decode<T: DeserializeOwned>(root: &SpecNode, path: &str) -> Result<T, Vec<Diagnostic>> {
    let context = Context::default();
    loop {
        let decoder = Decoder {
            node: root,
            path: path.to_owned(),
            context: &context,
        };
        let error = match T::deserialize(decoder) {
            Ok(value) => {
                let problems = context.problems.into_inner();
                return if problems.is_empty() {
                    Ok(value)
                } else {
                    Err(problems)
                };
            }
            Err(error) => error,
        };
        let Some(failed) = error.node else {
            context.note(error.into_problem(root.place.clone(), path));
            return Err(context.problems.into_inner());
        };
        // If a node fails again after its removal, it cannot be skipped, so decoding ends with this
        // error.
        let again = context.out.borrow().contains(&failed);
        context.take_out(&error, failed);
        if again || failed == address(root) || context.is_full() {
            return Err(context.problems.into_inner());
        }
    }
}

/// State shared by the passes of one decoding.
#[derive(Default)]
struct Context {
    problems: RefCell<Vec<Diagnostic>>,
    /// Addresses of the nodes that are invalid and therefore skipped.
    out: RefCell<Vec<usize>>,
}

impl Context {
    fn note(&self, problem: Diagnostic) {
        let mut problems = self.problems.borrow_mut();
        // One error more than the limit is kept, because it shows that there are more.
        if problems.len() <= MAX_PROBLEMS && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Whether the limit of errors is reached. Decoding must stop then, because each further error
    /// costs one more pass.
    fn is_full(&self) -> bool {
        let (problems, out) = (self.problems.borrow(), self.out.borrow());
        problems.len().max(out.len()) > MAX_PROBLEMS
    }

    fn is_out(&self, node: &SpecNode) -> bool {
        self.out.borrow().contains(&address(node))
    }

    /// Records an error, unless it is a consequence of an earlier removal, and removes the invalid
    /// node.
    fn take_out(&self, error: &Fault, failed: usize) {
        if !error.follows {
            let place = error.place.clone().unwrap_or(SourceSpan::File(0..0));
            self.note(error.clone().into_problem(place, &error.path));
        }
        self.out.borrow_mut().push(failed);
    }

    /// Whether a direct child of this node was removed.
    fn has_gap(&self, node: &SpecNode) -> bool {
        node.items()
            .iter()
            .any(|item| self.is_out(item) || self.has_gap(item))
            || node
                .entries()
                .iter()
                .any(|entry| self.is_out(&entry.node) || self.has_gap(&entry.node))
    }
}

fn address(node: &SpecNode) -> usize {
    std::ptr::from_ref(node) as usize
}

/// An error that is being returned to [`decode`].
#[derive(Clone, Debug, Default)]
struct Fault {
    message: String,
    found: Option<String>,
    allowed: Vec<String>,
    missing: Option<&'static str>,
    fault: diagnostic::FaultClass,
    /// Address of the invalid node, set by the innermost node.
    node: Option<usize>,
    place: Option<SourceSpan>,
    path: String,
    follows: bool,
}

impl Fault {
    fn into_problem(self, place: SourceSpan, path: &str) -> Diagnostic {
        let problem = Diagnostic {
            fault: self.fault,
            ..Diagnostic::new(place, path, self.message)
        };
        match self.found {
            Some(found) => problem.allowed(&found, self.allowed.iter().map(String::as_str)),
            None => problem,
        }
    }

    /// Sets the node, if no inner node has set it.
    fn at(mut self, node: &SpecNode, path: &str, context: &Context) -> Self {
        if self.node.is_none() {
            self.follows = match self.missing {
                Some(field) => node.get(field).is_some_and(|value| context.is_out(value)),
                None => context.has_gap(node),
            };
            self.node = Some(address(node));
            self.place = Some(node.place.clone());
            self.path = path.to_owned();
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Fault {
            message: message.to_string(),
            ..Fault::default()
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("found {variant:?}, which is unknown");
        Fault {
            message,
            found: Some(variant.to_owned()),
            allowed: list(expected),
            ..Fault::default()
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("unknown key `{field}`");
        Fault {
            message,
            found: Some(field.to_owned()),
            allowed: list(expected),
            fault: diagnostic::FaultClass::UnknownKey,
            ..Fault::default()
        }
    }

    fn missing_field(field: &'static str) -> Self {
        let hint = words::example(field);
        Fault {
            message: format!("the key `{field}` is missing{hint}"),
            missing: Some(field),
            fault: diagnostic::FaultClass::MissingKey {
                key: field.to_owned(),
            },
            ..Fault::default()
        }
    }
}

/// A node as a serde deserializer.
struct Decoder<'a> {
    node: &'a SpecNode,
    path: String,
    context: &'a Context,
}

/// Key that selects the variant of the enum `name`.
pub(crate) fn tag_of(name: &str) -> &'static str {
    match name {
        "Metric" => "metric",
        _ => "kind",
    }
}

impl<'a> Decoder<'a> {
    fn entries(
        &self,
        fields: Option<&'static [&'static str]>,
        skip: Option<&'static str>,
    ) -> Entries<'a> {
        let decoder = Decoder {
            node: self.node,
            path: self.path.clone(),
            context: self.context,
        };
        Entries {
            entries: self.node.entries().iter(),
            decoder,
            fields,
            skip,
            value: None,
        }
    }

    fn wrong_type(&self, expected: &dyn de::Expected) -> Fault {
        let message = format!("found {}; expected {expected}", self.node.describe());
        Fault {
            message,
            ..Fault::default()
        }
        .at(self.node, &self.path, self.context)
    }
}

impl<'de> de::Deserializer<'de> for Decoder<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let (node, path, context) = (self.node, self.path.clone(), self.context);
        let expected = format!("{}", Expected(&visitor));
        let result = match &node.value {
            NodeValue::Text(text) => visitor.visit_str(text),
            NodeValue::Integer(number) => visitor.visit_i64(*number),
            NodeValue::Float(number) => visitor.visit_f64(*number),
            NodeValue::Boolean(truth) => visitor.visit_bool(*truth),
            NodeValue::Array(items) => visitor
                .visit_seq(Items {
                    items: items.iter().enumerate(),
                    path: path.clone(),
                    context,
                })
                .and_then(|value| match array_length(&expected) {
                    Some(length) if length != items.len() => {
                        Err(de::Error::invalid_length(items.len(), &expected.as_str()))
                    }
                    _ => Ok(value),
                }),
            NodeValue::Table(_) => visitor.visit_map(self.entries(None, None)),
        };
        result.map_err(|fault| {
            let mut fault = fault;
            let misfit = ["invalid type", "invalid value", "invalid length"];
            if fault.node.is_none() && misfit.iter().any(|words| fault.message.starts_with(words)) {
                fault.message = format!(
                    "found {}; expected {}{}",
                    node.describe(),
                    plainly(&expected, node),
                    sections(node, &path, &expected)
                );
            }
            fault.at(node, &path, context)
        })
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_number(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let directions: &'static [&'static str] = &["forward", "backward"];
        if name == crate::world::DIRECTED
            && directions.iter().any(|key| self.node.get(key).is_some())
        {
            return self.deserialize_struct(name, directions, visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.node.value {
            NodeValue::Table(_) => {}
            NodeValue::Array(items)
                if matches!(
                    items[..],
                    [
                        SpecNode {
                            value: NodeValue::Table(_),
                            ..
                        },
                        ..
                    ]
                ) =>
            {
                return Err(
                    self.wrong_type(&format!("a table; write [{}], once", self.path).as_str())
                );
            }
            _ => return self.deserialize_any(visitor),
        }
        visitor
            .visit_map(self.entries(Some(fields), None))
            .map_err(|fault| fault.at(self.node, &self.path, self.context))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let tag = tag_of(name);
        let tag_node = match &self.node.value {
            NodeValue::Text(_) => self.node,
            NodeValue::Table(_) => match self.node.get(tag) {
                Some(tag_node) => tag_node,
                None => {
                    let message = format!(
                        "the key `{tag}` is missing; it is one of: {}",
                        variants.join(", ")
                    );
                    return Err(Fault {
                        message,
                        fault: diagnostic::FaultClass::MissingKey {
                            key: tag.to_owned(),
                        },
                        ..Fault::default()
                    }
                    .at(self.node, &self.path, self.context));
                }
            },
            _ => {
                let names: Vec<String> = variants.iter().map(|name| format!("{name:?}")).collect();
                return Err(self.wrong_type(&names.join(", ").as_str()));
            }
        };
        if !std::ptr::eq(tag_node, self.node) && self.context.is_out(tag_node) {
            let fault = Fault {
                message: format!("the key `{tag}` is wrong"),
                ..Fault::default()
            };
            return Err(fault.at(self.node, &self.path, self.context));
        }
        let Some(variant) = tag_node.text() else {
            let message = format!(
                "found {}; expected one of: {}",
                tag_node.describe(),
                variants.join(", ")
            );
            let fault = Fault {
                message,
                ..Fault::default()
            };
            return Err(fault.at(tag_node, &SpecNode::key_path(&self.path, tag), self.context));
        };
        let Some(variant) = variants.iter().copied().find(|known| *known == variant) else {
            let path = if std::ptr::eq(tag_node, self.node) {
                self.path.clone()
            } else {
                SpecNode::key_path(&self.path, tag)
            };
            return Err(<Fault as de::Error>::unknown_variant(variant, variants).at(
                tag_node,
                &path,
                self.context,
            ));
        };
        let (node, path, context) = (self.node, self.path.clone(), self.context);
        visitor
            .visit_enum(Variant {
                decoder: self,
                variant,
                tag,
            })
            .map_err(|fault| fault.at(node, &path, context))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// Description of the value that a visitor expects.
struct Expected<'v, V>(&'v V);

impl<'de, V: Visitor<'de>> fmt::Display for Expected<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

/// Access to the items of an array.
struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, SpecNode>>,
    path: String,
    context: &'a Context,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let context = self.context;
        let Some((index, node)) = self.items.by_ref().find(|(_, node)| !context.is_out(node))
        else {
            return Ok(None);
        };
        let path = SpecNode::item_path(&self.path, index, node);
        seed.deserialize(Decoder {
            node,
            path: path.clone(),
            context,
        })
        .map(Some)
        .map_err(|fault| fault.at(node, &path, context))
    }
}

/// Access to the entries of a table.
struct Entries<'a> {
    entries: std::slice::Iter<'a, TableEntry>,
    decoder: Decoder<'a>,
    /// Keys of the type, if it has a fixed set of keys.
    fields: Option<&'static [&'static str]>,
    /// Key that was already read: the tag of an enum.
    skip: Option<&'static str>,
    value: Option<&'a TableEntry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        for entry in self.entries.by_ref() {
            let context = self.decoder.context;
            if context.is_out(&entry.node) || self.skip.is_some_and(|skip| skip == entry.key) {
                continue;
            }
            let path = SpecNode::key_path(&self.decoder.path, &entry.key);
            if let Some(fields) = self
                .fields
                .filter(|fields| !fields.contains(&entry.key.as_str()))
            {
                if context.is_full() {
                    continue;
                }
                let known = fields.iter().copied().chain(self.skip);
                let problem = Diagnostic::unknown_key(entry.key_place.clone(), path, &entry.key);
                context.note(problem.allowed(&entry.key, known));
                continue;
            }
            self.value = Some(entry);
            let key = entry.key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some).map_err(|mut fault: Fault| {
                fault = fault.at(&entry.node, &path, context);
                fault.place = Some(entry.key_place.clone());
                fault
            });
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.value.take() else {
            return Err(de::Error::custom("a value without a key"));
        };
        let (context, path) = (
            self.decoder.context,
            SpecNode::key_path(&self.decoder.path, &entry.key),
        );
        seed.deserialize(Decoder {
            node: &entry.node,
            path: path.clone(),
            context,
        })
        .map_err(|fault| fault.at(&entry.node, &path, context))
    }
}

/// Access to an enum, which is a text, or a table with a tag.
struct Variant<'a> {
    decoder: Decoder<'a>,
    variant: &'static str,
    tag: &'static str,
}

impl<'a, 'de> de::EnumAccess<'de> for Variant<'a> {
    type Error = Fault;
    type Variant = Variant<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Variant<'a>), Fault> {
        let variant: de::value::StrDeserializer<'_, Fault> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.decoder)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self.decoder, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor
            .visit_map(self.decoder.entries(Some(fields), Some(self.tag)))
            .map_err(|fault| fault.at(self.decoder.node, &self.decoder.path, self.decoder.context))
    }
}
