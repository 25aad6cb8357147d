//! Encoding of types into the tree that [`decode`](crate::decode) reads.
//!
//! Fields without a value are omitted. A variant of an enum becomes a table with a tag, as in
//! specs.

use serde::Serialize;
use serde::ser::{self, Serializer};

use crate::decode::tag_of;
use crate::source_span::SourceSpan;
use crate::tree::{NodeValue, SpecNode, TableEntry};

mod parts;

use parts::{Array, TableEncoder};

/// Encodes a value as a tree without source positions.
///
/// # Errors
/// A spec cannot represent the value, for example because it contains a number above `i64::MAX`.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<SpecNode, EncodeError> {
    let node = value.serialize(Encoder)?;
    node.ok_or_else(|| EncodeError("nothing stands for no value".to_owned()))
}

/// The reason why a value cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl ser::Error for EncodeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

pub(crate) fn node(value: NodeValue) -> SpecNode {
    SpecNode {
        place: SourceSpan::Program,
        value,
    }
}

pub(crate) fn entry(key: &str, node: SpecNode) -> TableEntry {
    TableEntry {
        key: key.to_owned(),
        key_place: SourceSpan::Program,
        node,
    }
}

/// Serializer that returns a node, or `None` for a missing value.
#[derive(Clone, Copy)]
struct Encoder;

type Encoded = Result<Option<SpecNode>, EncodeError>;

fn text(text: &str) -> Encoded {
    Ok(Some(node(NodeValue::Text(text.to_owned()))))
}

fn integer<N: TryInto<i64> + Copy + std::fmt::Display>(number: N) -> Encoded {
    let whole = number.try_into();
    let whole = whole.map_err(|_| EncodeError(format!("{number} is too large for a spec")))?;
    Ok(Some(node(NodeValue::Integer(whole))))
}

impl Serializer for Encoder {
    type Ok = Option<SpecNode>;
    type Error = EncodeError;
    type SerializeSeq = Array;
    type SerializeTuple = Array;
    type SerializeTupleStruct = Array;
    type SerializeTupleVariant = ser::Impossible<Option<SpecNode>, EncodeError>;
    type SerializeMap = TableEncoder;
    type SerializeStruct = TableEncoder;
    type SerializeStructVariant = TableEncoder;

    fn serialize_bool(self, truth: bool) -> Encoded {
        Ok(Some(node(NodeValue::Boolean(truth))))
    }

    fn serialize_i8(self, number: i8) -> Encoded {
        integer(number)
    }

    fn serialize_i16(self, number: i16) -> Encoded {
        integer(number)
    }

    fn serialize_i32(self, number: i32) -> Encoded {
        integer(number)
    }

    fn serialize_i64(self, number: i64) -> Encoded {
        integer(number)
    }

    fn serialize_u8(self, number: u8) -> Encoded {
        integer(number)
    }

    fn serialize_u16(self, number: u16) -> Encoded {
        integer(number)
    }

    fn serialize_u32(self, number: u32) -> Encoded {
        integer(number)
    }

    fn serialize_u64(self, number: u64) -> Encoded {
        integer(number)
    }

    fn serialize_f32(self, number: f32) -> Encoded {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Encoded {
        if !number.is_finite() {
            return Err(EncodeError(format!("{number} is not finite")));
        }
        Ok(Some(node(NodeValue::Float(number))))
    }

    fn serialize_char(self, character: char) -> Encoded {
        text(&character.to_string())
    }

    fn serialize_str(self, value: &str) -> Encoded {
        text(value)
    }

    fn serialize_bytes(self, _: &[u8]) -> Encoded {
        Err(EncodeError("a spec holds no bytes".to_owned()))
    }

    fn serialize_none(self) -> Encoded {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Encoded {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Encoded {
        Ok(None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Encoded {
        Ok(None)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Encoded {
        text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Encoded {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Encoded {
        let mut inner = encode(value)?;
        match &mut inner.value {
            NodeValue::Table(entries) => {
                let tag = node(NodeValue::Text(variant.to_owned()));
                entries.insert(0, entry(tag_of(name), tag));
                Ok(Some(inner))
            }
            _ => Err(EncodeError(format!("{name}::{variant} is no table"))),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Array, EncodeError> {
        Ok(Array::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Array, EncodeError> {
        Ok(Array::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Array, EncodeError> {
        Ok(Array::default())
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, EncodeError> {
        Err(EncodeError(format!("{name}::{variant} is no table")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<TableEncoder, EncodeError> {
        Ok(TableEncoder::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<TableEncoder, EncodeError> {
        Ok(TableEncoder::default())
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<TableEncoder, EncodeError> {
        Ok(TableEncoder::tagged(tag_of(name), variant))
    }
}
