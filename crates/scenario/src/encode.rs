//! Encoding of types into the tree that [`decode`](crate::decode) reads.
//!
//! Fields without a value are left out, and a variant of an enum becomes a table with its tag, as
//! in specs.

use serde::Serialize;
use serde::ser::{self, Serializer};

use crate::decode::tag_of;
use crate::place::Place;
use crate::tree::{Entry, Node, NodeValue};

mod parts;

use parts::{Array, Table};

/// Encodes a value as a tree without source positions.
///
/// # Errors
/// A value that a spec cannot represent, such as a number above `i64::MAX`.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Node, Refused> {
    let node = value.serialize(Encoder)?;
    node.ok_or_else(|| Refused("nothing stands for no value".to_owned()))
}

/// The reason why a value cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl ser::Error for Refused {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

pub(crate) fn node(value: NodeValue) -> Node {
    Node {
        place: Place::Program,
        value,
    }
}

pub(crate) fn entry(key: &str, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        key_place: Place::Program,
        node,
    }
}

/// Returns a node, or `None` for an absent value.
#[derive(Clone, Copy)]
struct Encoder;

type Made = Result<Option<Node>, Refused>;

fn text(text: &str) -> Made {
    Ok(Some(node(NodeValue::Text(text.to_owned()))))
}

fn integer<N: TryInto<i64> + Copy + std::fmt::Display>(number: N) -> Made {
    let whole = number.try_into();
    let whole = whole.map_err(|_| Refused(format!("{number} is too large for a spec")))?;
    Ok(Some(node(NodeValue::Integer(whole))))
}

impl Serializer for Encoder {
    type Ok = Option<Node>;
    type Error = Refused;
    type SerializeSeq = Array;
    type SerializeTuple = Array;
    type SerializeTupleStruct = Array;
    type SerializeTupleVariant = ser::Impossible<Option<Node>, Refused>;
    type SerializeMap = Table;
    type SerializeStruct = Table;
    type SerializeStructVariant = Table;

    fn serialize_bool(self, truth: bool) -> Made {
        Ok(Some(node(NodeValue::Boolean(truth))))
    }

    fn serialize_i8(self, number: i8) -> Made {
        integer(number)
    }

    fn serialize_i16(self, number: i16) -> Made {
        integer(number)
    }

    fn serialize_i32(self, number: i32) -> Made {
        integer(number)
    }

    fn serialize_i64(self, number: i64) -> Made {
        integer(number)
    }

    fn serialize_u8(self, number: u8) -> Made {
        integer(number)
    }

    fn serialize_u16(self, number: u16) -> Made {
        integer(number)
    }

    fn serialize_u32(self, number: u32) -> Made {
        integer(number)
    }

    fn serialize_u64(self, number: u64) -> Made {
        integer(number)
    }

    fn serialize_f32(self, number: f32) -> Made {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Made {
        if !number.is_finite() {
            return Err(Refused(format!("{number} is not finite")));
        }
        Ok(Some(node(NodeValue::Float(number))))
    }

    fn serialize_char(self, character: char) -> Made {
        text(&character.to_string())
    }

    fn serialize_str(self, value: &str) -> Made {
        text(value)
    }

    fn serialize_bytes(self, _: &[u8]) -> Made {
        Err(Refused("a spec holds no bytes".to_owned()))
    }

    fn serialize_none(self) -> Made {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made {
        Ok(None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made {
        Ok(None)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made {
        text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Made {
        let mut inner = encode(value)?;
        match &mut inner.value {
            NodeValue::Table(entries) => {
                let tag = node(NodeValue::Text(variant.to_owned()));
                entries.insert(0, entry(tag_of(name), tag));
                Ok(Some(inner))
            }
            _ => Err(Refused(format!("{name}::{variant} is no table"))),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Array, Refused> {
        Ok(Array::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Array, Refused> {
        Ok(Array::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Array, Refused> {
        Ok(Array::default())
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Refused> {
        Err(Refused(format!("{name}::{variant} is no table")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Table, Refused> {
        Ok(Table::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Table, Refused> {
        Ok(Table::default())
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Table, Refused> {
        Ok(Table::tagged(tag_of(name), variant))
    }
}
