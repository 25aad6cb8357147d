//! Columns of the Parquet files that this crate writes, and their types in Parquet and in Arrow.
//!
//! The crate `parquet` can write Arrow arrays, but its feature for this depends on a dozen further
//! crates. Therefore files are written column by column, with the data types of `parquet` itself.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::arrow_metadata;
use crate::columns::{ColumnField, ColumnType};

fn parquet(field: &ColumnField) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match field.kind {
        ColumnType::Boolean => (Physical::BOOLEAN, None),
        ColumnType::UInt16 | ColumnType::UInt32 => {
            (Physical::INT32, field.kind.integer().map(logical_integer))
        }
        ColumnType::UInt64 => (Physical::INT64, field.kind.integer().map(logical_integer)),
        ColumnType::Int64 => (Physical::INT64, None),
        ColumnType::Float64 => (Physical::DOUBLE, None),
        ColumnType::Utf8 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = match field.nullable {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let kind = Type::primitive_type_builder(&field.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(kind))
}

fn logical_integer((bits, signed): (i8, bool)) -> LogicalType {
    LogicalType::integer(bits, signed)
}

/// Parquet schema of these columns, with this name.
pub(crate) fn schema(name: &str, fields: &[ColumnField]) -> Result<TypePtr, ParquetError> {
    let columns: Result<Vec<TypePtr>, ParquetError> = fields.iter().map(parquet).collect();
    let schema = Type::group_type_builder(name).with_fields(columns?);
    Ok(Arc::new(schema.build()?))
}

/// Properties of a file with these columns, and with other metadata before their Arrow schema.
pub(crate) fn properties(fields: &[ColumnField], mut other: Vec<KeyValue>) -> WriterProperties {
    other.push(KeyValue::new(
        arrow_metadata::KEY.to_owned(),
        arrow_metadata::encode(fields),
    ));
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("anabranch".into())
        .set_key_value_metadata(Some(other))
        .build()
}

/// Number of rows that are collected before they are passed to the library.
const ROWS: usize = 1024;

/// Writes the next column of a row group. `nullable` is a property of the column's field: a column
/// that is not nullable has a value in each row.
pub(crate) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    nullable: bool,
    mut rows: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "more columns written than the schema has".into(),
        ));
    };
    let mut values = Vec::new();
    let mut levels = Vec::new();
    loop {
        values.clear();
        levels.clear();
        for row in rows.by_ref().take(ROWS) {
            levels.push(i16::from(row.is_some()));
            values.extend(row);
        }
        if levels.is_empty() {
            return column.close();
        }
        let levels = nullable.then_some(&levels[..]);
        column.typed::<T>().write_batch(&values, levels, None)?;
    }
}
