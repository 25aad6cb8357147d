//! Runs as Arrow record batches in memory, for further processing by programs.

use std::iter;
use std::mem;
use std::sync::Arc;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::records::{Measure, RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::value::{Point, SweepValue};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt16Array,
    UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema, SchemaRef};

use crate::columns::{Axes, ColumnField, ColumnType, SweepColumn, UNIT};
use crate::measures::{self, ExperimentMeasures};
use crate::series;

/// Maximum number of samples in a batch. Limited, so that memory for building a batch does not
/// depend on the length of a run.
const BATCH: usize = 1 << 16;

/// Sink that collects the runs of one experiment as record batches: samples ordered by time, and
/// measures as in `measures/<experiment>.parquet`. All batches of a kind have the same schema, with
/// a typed column for each sweep.
#[derive(Clone, Debug)]
pub struct Batches {
    /// Batches of samples.
    pub samples: Vec<RecordBatch>,
    /// Batches of measures, one for each run.
    pub measures: Vec<RecordBatch>,
    axes: Axes,
    measure_axes: Axes,
    experiment: String,
    point: Point,
    replication: u32,
    keys: Vec<SeriesKey>,
    open: Vec<(u32, SeriesSample)>,
}

impl Batches {
    /// Creates empty batches for runs at these points.
    pub fn new<'p>(points: impl Iterator<Item = &'p Point> + Clone) -> Self {
        Self {
            samples: Vec::new(),
            measures: Vec::new(),
            axes: Axes::of(points.clone(), &[]),
            measure_axes: measures::axes(points),
            experiment: String::new(),
            point: Point::new(),
            replication: 0,
            keys: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Schema of all sample batches.
    pub fn schema(&self) -> SchemaRef {
        schema(&series::fields(&self.axes))
    }

    /// Converts the pending samples to a batch.
    fn flush(&mut self) -> Result<(), ArrowError> {
        let open = mem::take(&mut self.open);
        let count = open.len();
        if count == 0 {
            return Ok(());
        }
        let keys: Vec<&SeriesKey> = open
            .iter()
            .map(|(key, _)| &self.keys[*key as usize])
            .collect();
        let text = |of: &dyn Fn(&SeriesKey) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                keys.iter().map(|key| of(key)),
            ))
        };
        let number = |of: &dyn Fn(&SeriesSample) -> f64| -> ArrayRef {
            let numbers = open.iter().map(|(_, sample)| of(sample));
            Arc::new(Float64Array::from_iter_values(numbers))
        };
        let mut columns = vec![text(&|_| self.experiment.clone())];
        columns.extend(self.axes.arrays(iter::repeat_n(&self.point, count)));
        columns.push(Arc::new(UInt32Array::from_value(self.replication, count)));
        columns.push(text(&|key| key.entity.clone()));
        let members = keys.iter().map(|key| key.member);
        columns.push(Arc::new(UInt32Array::from_iter_values(members)));
        columns.push(text(&|key| key.probe.to_owned()));
        let indices = open.iter().map(|(_, sample)| sample.index);
        columns.push(Arc::new(UInt16Array::from_iter_values(indices)));
        columns.push(number(&|sample| sample.time));
        columns.push(number(&|sample| sample.value));
        self.samples
            .push(RecordBatch::try_new(self.schema(), columns)?);
        Ok(())
    }
}

impl Sink for Batches {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        run.experiment.clone_into(&mut self.experiment);
        self.point.clone_from(run.point);
        self.replication = run.replication;
        self.keys = keys.to_vec();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        if let Some((key, _)) = samples
            .iter()
            .find(|(key, _)| *key as usize >= self.keys.len())
        {
            return Err(format!("a sample of series {key}, which did not begin").into());
        }
        for part in samples.chunks(BATCH) {
            self.open.extend_from_slice(part);
            if self.open.len() >= BATCH {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError> {
        self.flush()?;
        let measures = ExperimentMeasures::with_axes([record], self.measure_axes.clone());
        self.measures.push(measures.batch()?);
        Ok(())
    }
}

/// Arrow schema of these columns.
fn schema(fields: &[ColumnField]) -> SchemaRef {
    let fields: Vec<Field> = fields.iter().map(ColumnField::arrow).collect();
    Arc::new(Schema::new(fields))
}

impl ColumnField {
    /// Arrow field of the column.
    pub fn arrow(&self) -> Field {
        let kind = match self.kind {
            ColumnType::Boolean => DataType::Boolean,
            ColumnType::Int64 => DataType::Int64,
            ColumnType::UInt16 => DataType::UInt16,
            ColumnType::UInt32 => DataType::UInt32,
            ColumnType::UInt64 => DataType::UInt64,
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Utf8 => DataType::Utf8,
        };
        let unit = self.unit.map(|unit| (UNIT.to_owned(), unit.to_owned()));
        Field::new(&self.name, kind, self.nullable).with_metadata(Metadata::from_iter(unit))
    }
}

impl SweepColumn {
    /// Arrow field of the column.
    pub fn field(&self) -> Field {
        self.column_field().arrow()
    }

    /// The column for these points.
    fn array<'p>(&self, points: impl Iterator<Item = &'p Point>) -> ArrayRef {
        let x = points.map(|point| self.of(point));
        match self.column_type() {
            ColumnType::Int64 => Arc::new(Int64Array::from_iter(x.map(|x| match x {
                Some(SweepValue::Integer(number)) => Some(*number),
                _ => None,
            }))),
            ColumnType::Float64 => Arc::new(Float64Array::from_iter(x.map(|x| self.number(x?)))),
            ColumnType::Boolean => Arc::new(BooleanArray::from_iter(x.map(|x| match x {
                Some(SweepValue::Boolean(truth)) => Some(*truth),
                _ => None,
            }))),
            _ => Arc::new(StringArray::from_iter(x.map(|x| Some(x?.to_string())))),
        }
    }
}

impl Axes {
    /// Arrow fields of the columns.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        self.iter().map(SweepColumn::field)
    }

    /// The columns for these points.
    pub fn arrays<'p>(
        &self,
        points: impl Iterator<Item = &'p Point> + Clone,
    ) -> impl Iterator<Item = ArrayRef> {
        self.iter().map(move |axis| axis.array(points.clone()))
    }
}

impl<'r> ExperimentMeasures<'r> {
    /// All rows as an Arrow record batch.
    ///
    /// # Errors
    /// The columns are inconsistent, which does not happen.
    pub fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let text = |of: &dyn Fn((&'r RunRecord, &'r Measure)) -> &'r str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.rows().map(of)))
        };
        let replications = self.rows().map(|(record, _)| record.replication);
        let values = self.rows().map(|(_, measure)| measure.value);
        let mut columns = vec![text(&|(record, _)| &record.experiment)];
        let points = self.rows().map(|(record, _)| &record.point);
        columns.extend(self.axes().arrays(points));
        columns.push(Arc::new(UInt32Array::from_iter_values(replications)));
        columns.push(text(&|(_, measure)| &measure.series));
        columns.push(text(&|(_, measure)| &measure.metric));
        columns.push(Arc::new(Float64Array::from_iter_values(values)));
        columns.push(text(&|(_, measure)| &measure.unit));
        RecordBatch::try_new(schema(&measures::fields(self.axes())), columns)
    }
}
