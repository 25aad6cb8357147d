//! Scalar measures as tidy tables: one row per measure and run, one column per sweep, one file of
//! each format per experiment.
//!
//! Columns: `experiment`, one per sweep with the name of the sweep, `replication`, `series`,
//! `metric`, `value`, `unit`. If all x values of a sweep are quantities of the same kind, they are
//! stored as numbers. Their unit is in the metadata of the Parquet column (`unit`, as in Arrow),
//! and in an extra column `<sweep>_unit` of the CSV file.

use std::io::{self, Write};
use std::iter;
use std::sync::Arc;

use anabranch_scenario::records::{Measure, RunRecord};
use anabranch_scenario::value::Value;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::columns::Axes;

/// Columns of every file other than those of sweeps.
const OTHERS: [&str; 6] = [
    "experiment",
    "replication",
    "series",
    "metric",
    "value",
    "unit",
];

/// Measures of one experiment.
#[derive(Clone, Debug)]
pub struct Measures<'r> {
    records: Vec<&'r RunRecord>,
    axes: Axes,
}

impl<'r> Measures<'r> {
    /// Creates the table of these records, which must belong to one experiment.
    pub fn of(records: impl IntoIterator<Item = &'r RunRecord>) -> Self {
        let records: Vec<&RunRecord> = records.into_iter().collect();
        let axes = axes(records.iter().map(|record| &record.point));
        Self { records, axes }
    }

    /// Creates the table with the given columns, which may cover more points than the records.
    pub fn with_axes(records: impl IntoIterator<Item = &'r RunRecord>, axes: Axes) -> Self {
        let records = records.into_iter().collect();
        Self { records, axes }
    }

    /// Creates the tables of all experiments with records, in the order of the records. `axes`
    /// returns the columns of an experiment; if it returns `None`, they are derived from the
    /// records.
    pub fn by_experiment(
        records: &'r [RunRecord],
        axes: impl Fn(&str) -> Option<Axes>,
    ) -> Vec<(&'r str, Self)> {
        let mut groups: Vec<(&str, Vec<&RunRecord>)> = Vec::new();
        for record in records {
            // Records of one experiment are consecutive.
            match groups
                .iter_mut()
                .rev()
                .find(|(id, _)| *id == record.experiment)
            {
                Some((_, group)) => group.push(record),
                None => groups.push((&record.experiment, vec![record])),
            }
        }
        let groups = groups.into_iter();
        let measures = |(id, group): (&'r str, Vec<&'r RunRecord>)| match axes(id) {
            Some(axes) => (id, Self::with_axes(group, axes)),
            None => (id, Self::of(group)),
        };
        groups.map(measures).collect()
    }

    fn rows(&self) -> impl Iterator<Item = (&'r RunRecord, &'r Measure)> + Clone {
        let records = self.records.iter().copied();
        records.flat_map(|record| iter::repeat(record).zip(&record.metrics))
    }

    /// All rows as an Arrow record batch.
    ///
    /// # Errors
    /// The columns are inconsistent, which would be a bug.
    pub fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let text = |of: &dyn Fn((&'r RunRecord, &'r Measure)) -> &'r str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.rows().map(of)))
        };
        let replications = self.rows().map(|(record, _)| record.replication);
        let values = self.rows().map(|(_, measure)| measure.value);
        let mut columns = vec![text(&|(record, _)| &record.experiment)];
        let points = self.rows().map(|(record, _)| &record.point);
        columns.extend(self.axes.arrays(points));
        columns.push(Arc::new(UInt32Array::from_iter_values(replications)));
        columns.push(text(&|(_, measure)| &measure.series));
        columns.push(text(&|(_, measure)| &measure.metric));
        columns.push(Arc::new(Float64Array::from_iter_values(values)));
        columns.push(text(&|(_, measure)| &measure.unit));
        RecordBatch::try_new(schema(&self.axes), columns)
    }

    /// Writes a Parquet file. Equal measures result in equal bytes.
    ///
    /// # Errors
    /// Any error of the writer.
    pub fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("anabranch".into())
            .build();
        let mut writer = ArrowWriter::try_new(out, schema(&self.axes), Some(properties))?;
        writer.write(&self.batch()?)?;
        writer.close()?;
        Ok(())
    }

    /// Writes a CSV file.
    ///
    /// # Errors
    /// Any error of the writer.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        let mut heads = vec![OTHERS[0].to_owned()];
        for axis in self.axes.iter() {
            heads.push(axis.column().to_owned());
            heads.extend(axis.unit().map(|_| format!("{}_unit", axis.column())));
        }
        heads.extend(OTHERS[1..].iter().map(|&name| name.to_owned()));
        writer.write_record(&heads)?;
        for record in &self.records {
            let mut run = vec![record.experiment.clone()];
            for (axis, x) in self.axes.at(&record.point) {
                run.push(x.map_or(String::new(), |x: &Value| axis.text(x)));
                run.extend(axis.unit().map(str::to_owned));
            }
            run.push(record.replication.to_string());
            for measure in &record.metrics {
                let value = measure.value.to_string();
                let own = [&measure.series, &measure.metric, &value, &measure.unit];
                writer.write_record(run.iter().chain(own))?;
            }
        }
        writer.flush()
    }
}

/// Columns of the sweeps of an experiment with these points.
pub fn axes<'p>(points: impl IntoIterator<Item = &'p anabranch_scenario::value::Point>) -> Axes {
    Axes::of(points, &OTHERS)
}

/// Schema of all batches of an experiment with these sweeps.
pub fn schema(axes: &Axes) -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let [experiment, replication, series, metric, value, unit] = OTHERS;
    let mut fields = vec![text(experiment)];
    fields.extend(axes.fields());
    fields.push(Field::new(replication, DataType::UInt32, false));
    fields.extend([text(series), text(metric)]);
    fields.push(Field::new(value, DataType::Float64, false));
    fields.push(text(unit));
    Arc::new(Schema::new(fields))
}
