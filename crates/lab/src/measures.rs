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
use anabranch_scenario::value::{Point, SweepValue};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::columns::{Axes, ColumnField, ColumnType, SweepColumn};
use crate::parquet_schema::{self, write_column};

/// Columns of every file other than those of sweeps.
const OTHERS: [&str; 6] = [
    "experiment",
    "replication",
    "series",
    "metric",
    "value",
    "unit",
];

/// Number of rows of a row group, except the last.
const ROW_GROUP: usize = 1 << 20;

/// Measures of one experiment.
#[derive(Clone, Debug)]
pub struct ExperimentMeasures<'r> {
    records: Vec<&'r RunRecord>,
    axes: Axes,
}

impl<'r> ExperimentMeasures<'r> {
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

    /// Columns of the sweeps.
    pub fn axes(&self) -> &Axes {
        &self.axes
    }

    /// Each measure with its record.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'r RunRecord, &'r Measure)> + Clone {
        let records = self.records.iter().copied();
        records.flat_map(|record| iter::repeat(record).zip(&record.metrics))
    }

    /// Writes a Parquet file. Equal measures result in equal bytes.
    ///
    /// # Errors
    /// Any error of the writer.
    pub fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let fields = fields(&self.axes);
        let schema = parquet_schema::schema("arrow_schema", &fields)?;
        let properties = Arc::new(parquet_schema::properties(&fields, Vec::new()));
        let mut file = SerializedFileWriter::new(out, schema, properties)?;
        let count = self.rows().count();
        for start in (0..count).step_by(ROW_GROUP) {
            let mut group = file.next_row_group()?;
            self.write_row_group(&mut group, start)?;
            group.close()?;
        }
        file.close()?;
        Ok(())
    }

    /// Writes the row group that begins with this row.
    fn write_row_group(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        start: usize,
    ) -> Result<(), ParquetError> {
        let rows = || self.rows().skip(start).take(ROW_GROUP);
        text(group, rows().map(|(record, _)| &*record.experiment))?;
        for axis in self.axes.iter() {
            let points = rows().map(|(record, _)| &record.point);
            axis_column(group, axis, points)?;
        }
        let replications = rows().map(|(record, _)| Some(record.replication as i32));
        write_column::<Int32Type>(group, false, replications)?;
        text(group, rows().map(|(_, measure)| &*measure.series))?;
        text(group, rows().map(|(_, measure)| &*measure.metric))?;
        let values = rows().map(|(_, measure)| Some(measure.value));
        write_column::<DoubleType>(group, false, values)?;
        text(group, rows().map(|(_, measure)| &*measure.unit))
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
                run.push(x.map_or(String::new(), |x: &SweepValue| axis.text(x)));
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

/// Columns of an experiment with these sweeps.
pub fn fields(axes: &Axes) -> Vec<ColumnField> {
    let [experiment, replication, series, metric, value, unit] = OTHERS;
    let mut fields = vec![ColumnField::required(experiment, ColumnType::Utf8)];
    fields.extend(axes.column_fields());
    fields.extend([
        ColumnField::required(replication, ColumnType::UInt32),
        ColumnField::required(series, ColumnType::Utf8),
        ColumnField::required(metric, ColumnType::Utf8),
        ColumnField::required(value, ColumnType::Float64),
        ColumnField::required(unit, ColumnType::Utf8),
    ]);
    fields
}

fn text<'t>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    rows: impl Iterator<Item = &'t str>,
) -> Result<(), ParquetError> {
    write_column::<ByteArrayType>(group, false, rows.map(|text| Some(ByteArray::from(text))))
}

/// Writes the column of a sweep.
fn axis_column<'p>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    axis: &SweepColumn,
    points: impl Iterator<Item = &'p Point>,
) -> Result<(), ParquetError> {
    let x = points.map(|point| axis.of(point));
    match axis.column_type() {
        ColumnType::Boolean => {
            let x = x.map(|x| match x {
                Some(SweepValue::Boolean(truth)) => Some(*truth),
                _ => None,
            });
            write_column::<BoolType>(group, true, x)
        }
        ColumnType::Int64 => {
            let x = x.map(|x| match x {
                Some(SweepValue::Integer(number)) => Some(*number),
                _ => None,
            });
            write_column::<Int64Type>(group, true, x)
        }
        ColumnType::Float64 => write_column::<DoubleType>(group, true, x.map(|x| axis.number(x?))),
        _ => {
            let x = x.map(|x| Some(ByteArray::from(x?.to_string().as_str())));
            write_column::<ByteArrayType>(group, true, x)
        }
    }
}

#[cfg(test)]
mod tests;
