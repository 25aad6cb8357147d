//! Conversion of a Parquet file to lines of text, for trace readers.
//!
//! A missing value becomes an empty field. Durations get a unit. Times of day and timestamps become
//! relative to the first value of their column. All other values are converted unchanged.

mod pages;

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::basic::{ConvertedType, IntType, LogicalType, TimeUnit as ParquetUnit};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use crate::arrow_metadata::{self, TimeType, TimeUnit};
use crate::spec_source::{MAX_FILE, too_large};
use pages::{Group, metadata};

/// Meaning of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    /// The number or text is used unchanged.
    Plain,
    /// A duration in this unit.
    Span(&'static str),
    /// A point in time, in this unit unless the field has another one. Contains the first value of
    /// the column, once it was read.
    Moment(&'static str, Option<i64>),
}

fn unit(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn wrong(what: String) -> ParquetError {
    ParquetError::General(what)
}

/// Types in the Arrow schema of the file. `None` if the file has no such schema, or if the schema
/// has other columns.
fn arrow_types(metadata: &ParquetMetaData, fields: &[Arc<Type>]) -> Option<Vec<Option<TimeType>>> {
    let mut pairs = metadata.file_metadata().key_value_metadata()?.iter();
    let text = pairs.find(|pair| pair.key == arrow_metadata::KEY)?;
    let names = fields.iter().map(|field| field.name());
    arrow_metadata::decode(text.value.as_deref()?, names)
}

/// Type of a column of times. The type in the schema of Parquet has precedence. The schema of Arrow
/// is used for types that Parquet does not have.
fn time_type(field: &Type, arrow: Option<TimeType>) -> Option<TimeType> {
    let info = field.get_basic_info();
    let unit = |unit: &ParquetUnit| match unit {
        ParquetUnit::MILLIS => TimeUnit::Millisecond,
        ParquetUnit::MICROS => TimeUnit::Microsecond,
        ParquetUnit::NANOS => TimeUnit::Nanosecond,
    };
    let own = match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => TimeType::Date32,
        (Some(LogicalType::Time(time)), _) => match field.get_physical_type() {
            Physical::INT32 => TimeType::Time32(unit(&time.unit)),
            _ => TimeType::Time64(unit(&time.unit)),
        },
        (Some(LogicalType::Timestamp(it)), _) => TimeType::Timestamp(unit(&it.unit)),
        (None, ConvertedType::TIME_MILLIS) => TimeType::Time32(TimeUnit::Millisecond),
        (None, ConvertedType::TIME_MICROS) => TimeType::Time64(TimeUnit::Microsecond),
        (None, ConvertedType::TIMESTAMP_MILLIS) => TimeType::Timestamp(TimeUnit::Millisecond),
        (None, ConvertedType::TIMESTAMP_MICROS) => TimeType::Timestamp(TimeUnit::Microsecond),
        // A signed integer that uses all bits of its physical type, to which the Arrow schema may
        // give a unit of time.
        (None, ConvertedType::NONE | ConvertedType::INT_32 | ConvertedType::INT_64)
        | (
            Some(LogicalType::Integer(IntType {
                bit_width: 32 | 64,
                is_signed: true,
            })),
            _,
        ) => {
            return match (field.get_physical_type(), arrow?) {
                (Physical::INT32, TimeType::Timestamp(_) | TimeType::Time32(_))
                | (
                    Physical::INT64,
                    TimeType::Timestamp(_)
                    | TimeType::Time64(_)
                    | TimeType::Duration(_)
                    | TimeType::Date64,
                ) => arrow,
                _ => None,
            };
        }
        _ => return None,
    };
    Some(own)
}

/// Names of the columns, and the meaning of their values.
fn columns(metadata: &ParquetMetaData) -> Result<Vec<(String, Meaning)>, ParquetError> {
    let file = metadata.file_metadata();
    let schema = file.schema_descr();
    let fields = schema.root_schema().get_fields();
    // Without the Arrow schema, a duration is read as a number, as in the file.
    let arrow = arrow_types(metadata, fields).unwrap_or_default();
    let mut columns = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let name = field.name();
        if !field.is_primitive() || schema.column(index).max_rep_level() > 0 {
            return Err(wrong(format!(
                "column {name:?} is nested; expected a number, a time or text in each row"
            )));
        }
        if name.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '#'))
            || name.contains([',', '\n', '\r'])
        {
            return Err(wrong(format!(
                "column {name:?}: found a name that is no title; expected a quantity with its unit, such as time_s or rate_mbps"
            )));
        }
        let kind = time_type(field, arrow.get(index).copied().flatten());
        let meaning = match kind {
            Some(TimeType::Duration(of)) => Meaning::Span(unit(of)),
            Some(TimeType::Timestamp(of) | TimeType::Time32(of) | TimeType::Time64(of)) => {
                Meaning::Moment(unit(of), None)
            }
            _ => Meaning::Plain,
        };
        let refused = match (field.get_physical_type(), kind) {
            (Physical::INT96, _) => Some("INT96, which is no longer used for timestamps"),
            (_, Some(TimeType::Date32 | TimeType::Date64)) => Some("Date"),
            _ if field.get_basic_info().converted_type() == ConvertedType::INTERVAL => {
                Some("Interval")
            }
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(wrong(format!(
                "column {name:?}: found the type {refused}; allowed: numbers, text, Duration, Time, Timestamp"
            )));
        }
        columns.push((name.to_owned(), meaning));
    }
    Ok(columns)
}

/// Appends a field to a line.
fn write(text: &mut String, field: &Field, meaning: &mut Meaning) -> Result<(), String> {
    let whole = match field {
        Field::Null => return Ok(()),
        Field::Long(number) => Some((*number, None)),
        Field::Int(number) => Some((i64::from(*number), None)),
        Field::TimeMillis(number) => Some((i64::from(*number), Some("ms"))),
        Field::TimestampMillis(number) => Some((*number, Some("ms"))),
        Field::TimeMicros(number) | Field::TimestampMicros(number) => Some((*number, Some("us"))),
        _ => None,
    };
    // Writing to a string cannot fail.
    let _ = match (meaning, whole, field) {
        (Meaning::Span(unit), Some((number, _)), _) => write!(text, "{number} {unit}"),
        (Meaning::Moment(unit, first), Some((number, own)), _) => {
            let first = *first.get_or_insert(number);
            let since = number.checked_sub(first);
            let since =
                since.ok_or_else(|| format!("found {number}, which is too far from the first"))?;
            write!(text, "{since} {}", own.unwrap_or(unit))
        }
        (_, _, Field::Double(number)) => write!(text, "{number}"),
        (_, _, Field::Float(number)) => write!(text, "{number}"),
        (_, _, Field::Str(string)) => {
            if string.contains([',', '\n', '\r', '#', '"']) {
                return Err(format!(
                    "found {string:?}; expected a number, with or without its unit"
                ));
            }
            write!(text, "{string}")
        }
        (_, _, other) => write!(text, "{other}"),
    };
    Ok(())
}

/// Converts the rows of a Parquet file to comma-separated lines; the first line contains the column
/// names.
///
/// # Errors
/// The file is damaged, or has columns of types that a trace cannot have.
pub(crate) fn lines(file: Bytes) -> Result<String, ParquetError> {
    let metadata = metadata(&file)?;
    let mut columns = columns(&metadata)?;
    let titles: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = titles.join(",");
    let mut number = 0_u64;
    for index in 0..metadata.num_row_groups() {
        let group = Group::new(file.clone(), metadata.row_group(index));
        for row in RowIter::from_row_group(None, &group)? {
            number += 1;
            text.push('\n');
            let row = row?;
            let fields = row.get_column_iter().map(|(_, field)| field);
            for (index, (field, (name, meaning))) in fields.zip(&mut columns).enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(&mut text, field, meaning)
                    .map_err(|what| wrong(format!("row {number}, column {name:?}: {what}")))?;
            }
            // Limited, because a few bytes of a Parquet file can encode the same row any number of
            // times.
            if text.len() as u64 > MAX_FILE {
                return Err(too_large().into());
            }
        }
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests;
