//! Runs as Arrow record batches in memory, for further processing by programs.

use std::iter;
use std::mem;
use std::sync::Arc;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::value::Point;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array};
use arrow_schema::{ArrowError, SchemaRef};

use crate::columns::Axes;
use crate::measures::{self, Measures};
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
        series::schema(&self.axes)
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
        let measures = Measures::with_axes([record], self.measure_axes.clone());
        self.measures.push(measures.batch()?);
        Ok(())
    }
}
