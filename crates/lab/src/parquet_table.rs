//! Writes a table as a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::columns::{ColumnField, ColumnType};
use crate::parquet_schema::{self, write_column};

/// Number of rows of a row group, except the last.
const ROW_GROUP: usize = 1 << 20;

/// The values of a column, one for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Text.
    Text(Vec<String>),
    /// Whole numbers; `None` is an empty cell.
    Counts(Vec<Option<u64>>),
    /// Numbers; `None` is an empty cell.
    Numbers(Vec<Option<f64>>),
}

/// Writes named columns of equal length. Equal columns result in equal bytes.
///
/// # Errors
/// The columns have different lengths, or an error of the writer.
pub fn write_parquet(
    out: impl Write + Send,
    columns: Vec<(&str, ColumnValues)>,
) -> Result<(), ParquetError> {
    let field = |(name, column): &(&str, ColumnValues)| ColumnField {
        nullable: true,
        ..ColumnField::required(name, column.kind())
    };
    let fields: Vec<ColumnField> = columns.iter().map(field).collect();
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if let Some((name, other)) = columns.iter().find(|(_, column)| column.len() != rows) {
        return Err(ParquetError::General(format!(
            "column {name:?} has {} rows; the first has {rows}",
            other.len()
        )));
    }
    let schema = parquet_schema::schema("arrow_schema", &fields)?;
    let properties = Arc::new(parquet_schema::properties(&fields, Vec::new()));
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    for start in (0..rows).step_by(ROW_GROUP) {
        let mut group = file.next_row_group()?;
        for (_, column) in &columns {
            column.write(&mut group, start, rows.min(start + ROW_GROUP))?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

impl ColumnValues {
    fn kind(&self) -> ColumnType {
        match self {
            Self::Text(_) => ColumnType::Utf8,
            Self::Counts(_) => ColumnType::UInt64,
            Self::Numbers(_) => ColumnType::Float64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Counts(values) => values.len(),
            Self::Numbers(values) => values.len(),
        }
    }

    /// Writes the rows `start..end`.
    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        start: usize,
        end: usize,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Text(values) => {
                let values = values[start..end].iter();
                let values = values.map(|text| Some(ByteArray::from(text.as_str())));
                write_column::<ByteArrayType>(group, true, values)
            }
            Self::Counts(values) => {
                // Parquet stores an unsigned integer as the signed integer with the same bits.
                let values = values[start..end].iter();
                let values = values.map(|count| count.map(u64::cast_signed));
                write_column::<Int64Type>(group, true, values)
            }
            Self::Numbers(values) => {
                write_column::<DoubleType>(group, true, values[start..end].iter().copied())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::lines;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let columns = || {
            vec![
                (
                    "from",
                    ColumnValues::Text(vec!["1".to_owned(), "2".to_owned()]),
                ),
                ("changes", ColumnValues::Counts(vec![Some(3), None])),
                ("rtt_ms", ColumnValues::Numbers(vec![Some(1.5), None])),
            ]
        };
        let mut file = Vec::new();
        write_parquet(&mut file, columns()).expect("written");
        let mut again = Vec::new();
        write_parquet(&mut again, columns()).expect("written");
        assert!(file == again, "the bytes differ");
        let text = lines(file.into()).expect("rows");
        assert_eq!(text, "from,changes,rtt_ms\n1,3,1.5\n2,,\n");
        let mut wrong = columns();
        wrong[1].1 = ColumnValues::Counts(vec![]);
        assert!(write_parquet(Vec::new(), wrong).is_err());
    }
}
