//! Writes a table as a Parquet file.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// The values of a column, one for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
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
    columns: Vec<(&str, Column)>,
) -> Result<(), ParquetError> {
    let array = |column: Column| -> ArrayRef {
        match column {
            Column::Text(values) => Arc::new(StringArray::from(values)),
            Column::Counts(values) => Arc::new(UInt64Array::from(values)),
            Column::Numbers(values) => Arc::new(Float64Array::from(values)),
        }
    };
    let columns = columns.into_iter();
    let columns = columns.map(|(name, column)| (name, array(column), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("anabranch".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::lines;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let columns = || {
            vec![
                ("from", Column::Text(vec!["1".to_owned(), "2".to_owned()])),
                ("changes", Column::Counts(vec![Some(3), None])),
                ("rtt_ms", Column::Numbers(vec![Some(1.5), None])),
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
        wrong[1].1 = Column::Counts(vec![]);
        assert!(write_parquet(Vec::new(), wrong).is_err());
    }
}
