//! Tables as Arrow record batches, which other libraries read through the Arrow PyCapsule
//! interface.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error;

/// A table in Arrow's memory layout. `pyarrow.table(t)`, `polars.DataFrame(t)` and DuckDB read it
/// without a copy; `t.to_pandas()` and `t.to_pyarrow()` need pyarrow.
#[pyclass(module = "anabranch", frozen)]
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Creates a table of batches with a common schema.
    pub fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Reads the rows of a Parquet file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_parquet(path: &Path) -> io::Result<Self> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)
            .and_then(|builder| builder.with_batch_size(1 << 16).build())
            .map_err(io::Error::other)?;
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        let batches: Result<Vec<_>, _> = reader.collect();
        let batches = batches.map_err(io::Error::other)?;
        Ok(Self { schema, batches })
    }

    /// Parses a CSV text. A column is numeric if all its values are numbers, and otherwise text.
    /// Empty values become null.
    ///
    /// # Errors
    /// The text is not valid CSV.
    pub fn of_csv(text: &[u8]) -> Result<Self, ArrowError> {
        let external = |error: csv::Error| ArrowError::ExternalError(Box::new(error));
        let mut reader = csv::Reader::from_reader(text);
        let names = reader.headers().map_err(external)?.clone();
        let rows: Result<Vec<_>, _> = reader.records().collect();
        let rows = rows.map_err(external)?;
        let column = |index: usize| -> ArrayRef {
            let cells = rows.iter().map(|row| row.get(index).unwrap_or_default());
            let cells: Vec<Option<&str>> = cells
                .map(|cell| Some(cell).filter(|it| !it.is_empty()))
                .collect();
            let numbers: Option<Vec<Option<f64>>> = cells
                .iter()
                .map(|cell| match cell {
                    Some(text) => text.parse().ok().map(Some),
                    None => Some(None),
                })
                .collect();
            match numbers.filter(|numbers| numbers.iter().any(Option::is_some)) {
                Some(numbers) => Arc::new(Float64Array::from(numbers)),
                None => Arc::new(StringArray::from(cells)),
            }
        };
        let columns: Vec<ArrayRef> = (0..names.len()).map(column).collect();
        let field =
            |(name, column): (&str, &ArrayRef)| Field::new(name, column.data_type().clone(), true);
        let fields: Vec<Field> = names.iter().zip(&columns).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        Ok(Self::of(schema, vec![batch]))
    }
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface: exports the table as a stream of record batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The requested schema is ignored, which is allowed, because each column has only one type.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The type of each column: "text", "number", "integer" or "truth".
    #[getter]
    fn column_types(&self) -> Vec<&'static str> {
        let name = |kind: &DataType| match kind {
            DataType::Utf8 => "text",
            DataType::Boolean => "truth",
            DataType::Float64 => "number",
            _ => "integer",
        };
        let fields = self.schema.fields().iter();
        fields.map(|field| name(field.data_type())).collect()
    }

    /// Units by name of the column, for columns that have one.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for field in self.schema.fields() {
            if let Some(unit) = field.metadata().get("unit") {
                units.set_item(field.name(), unit)?;
            }
        }
        Ok(units)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The table as a pyarrow table.
    fn to_pyarrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow")?;
        pyarrow.call_method1("table", (slf,))
    }

    /// The table as a pandas DataFrame.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    fn __repr__(&self) -> String {
        format!(
            "Table({} rows: {})",
            self.__len__(),
            self.column_names().join(", ")
        )
    }
}

/// Creates a table of one batch.
///
/// # Errors
/// The error of the batch.
pub fn table(batch: Result<RecordBatch, ArrowError>) -> PyResult<Table> {
    let batch = batch.map_err(error::failed)?;
    Ok(Table::of(batch.schema(), vec![batch]))
}
