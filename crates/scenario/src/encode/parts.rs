//! Builders of arrays and tables for the encoder.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct,
};

use super::{EncodeError, Encoded, Encoder, entry, node};
use crate::tree::{NodeValue, SpecNode, TableEntry};

/// Builder of an array.
#[derive(Default)]
pub struct Array(Vec<SpecNode>);

impl Array {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        match value.serialize(Encoder)? {
            Some(item) => self.0.push(item),
            None => return Err(EncodeError("a list has no empty places".to_owned())),
        }
        Ok(())
    }
}

macro_rules! array {
    ($($kind:ident::$add:ident),*) => {$(
        impl $kind for Array {
            type Ok = Option<SpecNode>;
            type Error = EncodeError;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.push(value)
            }

            fn end(self) -> Encoded {
                Ok(Some(node(NodeValue::Array(self.0))))
            }
        }
    )*};
}

array!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field
);

/// Builder of a table.
#[derive(Default)]
pub struct TableEncoder {
    entries: Vec<TableEntry>,
    key: Option<String>,
}

impl TableEncoder {
    /// Creates the table of an enum variant, with its tag.
    pub fn tagged(tag: &str, variant: &str) -> Self {
        let value = node(NodeValue::Text(variant.to_owned()));
        Self {
            entries: vec![entry(tag, value)],
            key: None,
        }
    }

    fn add<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), EncodeError> {
        if let Some(value) = value.serialize(Encoder)? {
            self.entries.push(entry(key, value));
        }
        Ok(())
    }

    fn finish(self) -> Encoded {
        Ok(Some(node(NodeValue::Table(self.entries))))
    }
}

macro_rules! table {
    ($($kind:ident),*) => {$(
        impl $kind for TableEncoder {
            type Ok = Option<SpecNode>;
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
                self.add(key, value)
            }

            fn end(self) -> Encoded {
                self.finish()
            }
        }
    )*};
}

table!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for TableEncoder {
    type Ok = Option<SpecNode>;
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        self.key = match key.serialize(Encoder)? {
            Some(SpecNode {
                value: NodeValue::Text(key),
                ..
            }) => Some(key),
            _ => return Err(EncodeError("the keys of a table are text".to_owned())),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let key = self.key.take().unwrap_or_default();
        self.add(&key, value)
    }

    fn end(self) -> Encoded {
        self.finish()
    }
}
