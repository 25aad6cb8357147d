//! Arrow's schema in the metadata of a Parquet file (key `ARROW:schema`): a message of Arrow's IPC
//! format in base64. It contains information for readers that use Arrow which the schema of Parquet
//! cannot express: the metadata of columns, which here is their unit, and types such as Duration.
//!
//! Layouts and numbers are those of `Message.fbs` and `Schema.fbs` of Apache Arrow, format 1.5.

mod builder;
mod reader;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::columns::{ColumnField, ColumnType, UNIT};
use builder::{Builder, Slot};
use reader::{Table, root};

/// Key of the metadata.
pub(crate) const KEY: &str = "ARROW:schema";

/// Begins an encapsulated message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// `MetadataVersion.V5`.
const V5: u16 = 4;
/// `MessageHeader.Schema`.
const SCHEMA: u8 = 1;

// Values of the union `Type`.
const INT: u8 = 2;
const FLOATING_POINT: u8 = 3;
const UTF8: u8 = 5;
const BOOL: u8 = 6;
const DATE: u8 = 8;
const TIME: u8 = 9;
const TIMESTAMP: u8 = 10;
const DURATION: u8 = 18;
/// `Precision.DOUBLE`.
const DOUBLE: u16 = 2;

/// Encodes the Arrow schema of these columns.
pub(crate) fn encode(fields: &[ColumnField]) -> String {
    let mut out = Builder::default();
    let fields: Vec<u32> = fields.iter().map(|it| field(&mut out, it)).collect();
    let fields = out.vector(&fields);
    let schema = out.table(&[(1, Slot::Offset(fields))]);
    let message = out.table(&[
        (0, Slot::Short(V5)),
        (1, Slot::Byte(SCHEMA)),
        (2, Slot::Offset(schema)),
    ]);
    let message = out.finish(message);
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let parts = [&CONTINUATION[..], &length.to_le_bytes(), &message];
    BASE64_STANDARD.encode(parts.concat())
}

fn field(out: &mut Builder, field: &ColumnField) -> u32 {
    let metadata = field.unit.map(|unit| {
        let (key, value) = (out.text(UNIT), out.text(unit));
        let pair = out.table(&[(0, Slot::Offset(key)), (1, Slot::Offset(value))]);
        out.vector(&[pair])
    });
    let name = out.text(&field.name);
    // A field without children has an empty list of children.
    let (tag, kind, children) = match (field.kind, field.kind.integer()) {
        (_, Some((bits, signed))) => {
            let children = out.vector(&[]);
            let bits = (0, Slot::Word(bits.unsigned_abs().into()));
            let kind = match signed {
                true => out.table(&[(1, Slot::Byte(1)), bits]),
                false => out.table(&[bits]),
            };
            (INT, kind, children)
        }
        (ColumnType::Float64, None) => {
            let children = out.vector(&[]);
            let kind = out.table(&[(0, Slot::Short(DOUBLE))]);
            (FLOATING_POINT, kind, children)
        }
        (kind, None) => {
            let tag = match kind {
                ColumnType::Boolean => BOOL,
                _ => UTF8,
            };
            (tag, out.table(&[]), out.vector(&[]))
        }
    };
    let mut slots = vec![(0, Slot::Offset(name)), (2, Slot::Byte(tag))];
    slots.extend(field.nullable.then_some((1, Slot::Byte(1))));
    slots.extend([(5, Slot::Offset(children)), (3, Slot::Offset(kind))]);
    slots.extend(metadata.map(|it| (6, Slot::Offset(it))));
    out.table(&slots)
}

/// Unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// Type of a column with times in Arrow's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeType {
    /// Time between two instants.
    Duration(TimeUnit),
    /// Instant.
    Timestamp(TimeUnit),
    /// Time of day in 32 bits.
    Time32(TimeUnit),
    /// Time of day in 64 bits.
    Time64(TimeUnit),
    /// Days in 32 bits.
    Date32,
    /// Milliseconds in 64 bits.
    Date64,
}

/// The type of each column that has times. `None` if the text is not a schema, or one of other
/// columns than those with these names.
///
/// Names are compared and not copied, because all fields of a damaged schema may refer to one long
/// name.
pub(crate) fn decode<'n>(
    text: &str,
    mut names: impl ExactSizeIterator<Item = &'n str>,
) -> Option<Vec<Option<TimeType>>> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    // Older writers omit the prefix.
    let message = match bytes.strip_prefix(&CONTINUATION) {
        Some(rest) => rest.get(4..)?,
        None => &bytes,
    };
    let message = root(message)?;
    if message.byte(1)? != SCHEMA {
        return None;
    }
    let schema = message.table(2)?;
    let fields = schema.tables(1)?;
    if fields.len() != names.len() {
        return None;
    }
    let mut column = |field: Table<'_>| {
        if field.text(0)? != names.next()?.as_bytes() {
            return None;
        }
        // Values of a dictionary have the type of the dictionary's entries.
        let plain = field.table(4).is_none();
        Some(time_type(&field).filter(|_| plain))
    };
    fields.map(|field| column(field?)).collect()
}

fn time_type(field: &Table<'_>) -> Option<TimeType> {
    let kind = field.table(3)?;
    let unit = |default| match kind.short(0).unwrap_or(default) {
        0 => Some(TimeUnit::Second),
        1 => Some(TimeUnit::Millisecond),
        2 => Some(TimeUnit::Microsecond),
        3 => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    match field.byte(2)? {
        // The unit is a `DateUnit`: days, or milliseconds, which is the default.
        DATE if kind.short(0) == Some(0) => Some(TimeType::Date32),
        DATE => Some(TimeType::Date64),
        TIME => match kind.word(1).unwrap_or(32) {
            32 => unit(1).map(TimeType::Time32),
            _ => unit(1).map(TimeType::Time64),
        },
        TIMESTAMP => unit(0).map(TimeType::Timestamp),
        DURATION => unit(1).map(TimeType::Duration),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
