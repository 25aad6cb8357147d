//! Series of samples as tidy Parquet: one row per sample, one file per experiment.
//!
//! Columns: `experiment`, one per sweep with the name and type that it has in the measures
//! ([`crate::columns`]), `replication`, `entity`, `member`, `probe`, `index`, `time_s`, `value`.
//! Rows are ordered by run and, within a run, by time, so that the same spec and seed give the same
//! bytes.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::axis::QuantityFamily;
use anabranch_scenario::records::{
    RunRecord, SeriesError, SeriesKey, SeriesQuery, SeriesRecord, SeriesSample, SeriesSource,
};
use anabranch_scenario::value::{Point, SweepValue};
use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use serde::{Deserialize, Serialize};

use crate::columns::{Axes, ColumnField, ColumnType, SweepColumn};
use crate::parquet_schema;
use crate::plain;

/// Number of buffered rows after which a row group is written.
const ROW_GROUP: usize = 1 << 18;

/// Key of the file metadata that describes the columns of the sweeps.
const SWEEPS: &str = "anabranch.sweeps";

/// Metadata of a sweep: the name of its column, and its values as written in the spec.
#[derive(Debug, Serialize, Deserialize)]
struct Sweep {
    sweep: String,
    column: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    written: Vec<SweepValue>,
}

/// Columns of samples with these sweeps.
pub fn fields(axes: &Axes) -> Vec<ColumnField> {
    let mut fields = vec![ColumnField::required("experiment", ColumnType::Utf8)];
    fields.extend(axes.column_fields());
    fields.extend([
        ColumnField::required("replication", ColumnType::UInt32),
        ColumnField::required("entity", ColumnType::Utf8),
        ColumnField::required("member", ColumnType::UInt32),
        ColumnField::required("probe", ColumnType::Utf8),
        ColumnField::required("index", ColumnType::UInt16),
        ColumnField::required("time_s", ColumnType::Float64),
        ColumnField::required("value", ColumnType::Float64),
    ]);
    fields
}

/// Properties of a Parquet file with these sweeps.
fn properties(axes: &Axes) -> WriterProperties {
    let sweep = |axis: &SweepColumn| Sweep {
        sweep: axis.sweep().to_owned(),
        column: axis.column().to_owned(),
        written: axis.written().to_vec(),
    };
    let sweeps: Vec<Sweep> = axes.iter().map(sweep).collect();
    // Serializing names and values cannot fail.
    let sweeps = serde_json::to_string(&sweeps).unwrap_or_default();
    let sweeps = vec![KeyValue::new(SWEEPS.to_owned(), sweeps)];
    parquet_schema::properties(&fields(axes), sweeps)
}

/// Writer of a Parquet file with series. Rows are written in groups, so that memory use does not
/// depend on their number.
pub struct SeriesWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    axes: Axes,
    experiment: String,
    point: Point,
    replication: u32,
    keys: Vec<SeriesKey>,
    rows: Rows,
}

impl<W: Write + Send> fmt::Debug for SeriesWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesWriter").finish_non_exhaustive()
    }
}

/// Rows of one run that were not written yet.
#[derive(Default)]
struct Rows {
    key: Vec<u32>,
    index: Vec<i32>,
    time: Vec<f64>,
    value: Vec<f64>,
}

impl<W: Write + Send> SeriesWriter<W> {
    /// Creates a writer to `sink` for one experiment.
    ///
    /// # Errors
    /// Any error of the sink.
    pub fn new(sink: W, experiment: &str, axes: Axes) -> Result<Self, ParquetError> {
        let schema = parquet_schema::schema("series", &fields(&axes))?;
        let properties = Arc::new(properties(&axes));
        Ok(Self {
            file: SerializedFileWriter::new(sink, schema, properties)?,
            axes,
            experiment: experiment.to_owned(),
            point: Vec::new(),
            replication: 0,
            keys: Vec::new(),
            rows: Rows::default(),
        })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let count = self.rows.key.len();
        if count == 0 {
            return Ok(());
        }
        let rows = &self.rows;
        let key = |row: &u32| &self.keys[*row as usize];
        let text = |of: &dyn Fn(&SeriesKey) -> ByteArray| -> Vec<ByteArray> {
            let names: Vec<ByteArray> = self.keys.iter().map(of).collect();
            rows.key
                .iter()
                .map(|row| names[*row as usize].clone())
                .collect()
        };
        let mut group = self.file.next_row_group()?;
        column::<ByteArrayType>(
            &mut group,
            &vec![ByteArray::from(self.experiment.as_str()); count],
        )?;
        for (axis, x) in self.axes.at(&self.point) {
            let values = axis_column(axis, x, count);
            values.write(&mut group)?;
        }
        column::<Int32Type>(&mut group, &vec![self.replication as i32; count])?;
        column::<ByteArrayType>(
            &mut group,
            &text(&|key| ByteArray::from(key.entity.as_str())),
        )?;
        column::<Int32Type>(
            &mut group,
            &rows
                .key
                .iter()
                .map(|row| key(row).member as i32)
                .collect::<Vec<_>>(),
        )?;
        column::<ByteArrayType>(&mut group, &text(&|key| ByteArray::from(key.probe)))?;
        column::<Int32Type>(&mut group, &rows.index)?;
        column::<DoubleType>(&mut group, &rows.time)?;
        column::<DoubleType>(&mut group, &rows.value)?;
        group.close()?;
        self.rows.key.clear();
        self.rows.index.clear();
        self.rows.time.clear();
        self.rows.value.clear();
        Ok(())
    }

    /// Appends a row group of another complete file with the same axes.
    ///
    /// # Errors
    /// Any error of the sink.
    pub fn append(&mut self, group: &[SeriesColumn]) -> Result<(), ParquetError> {
        self.flush()?;
        let mut out = self.file.next_row_group()?;
        for values in group {
            values.write(&mut out)?;
        }
        out.close()?;
        Ok(())
    }

    /// Writes the remaining rows and the footer, and returns the sink.
    ///
    /// # Errors
    /// Any error of the sink.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.file.into_inner()
    }
}

impl<W: Write + Send> Sink for SeriesWriter<W> {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.flush()?;
        self.point.clone_from(run.point);
        self.replication = run.replication;
        self.keys = keys.to_vec();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        for &(key, sample) in samples {
            self.rows.key.push(key);
            self.rows.index.push(i32::from(sample.index));
            self.rows.time.push(sample.time);
            self.rows.value.push(sample.value);
            if self.rows.key.len() >= ROW_GROUP {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// The record is stored separately, in the journal.
    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    with_levels::<T>(group, values, None)
}

/// Writes a column. The level of a row is 1 if it has a value, and 0 if it has none.
fn with_levels<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "more columns written than the schema has".into(),
        ));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// One column of a row group.
#[derive(Debug)]
pub struct SeriesColumn {
    values: Values,
    /// Levels of a nullable column: 1 for each row with a value, and 0 for each without.
    levels: Option<Vec<i16>>,
}

/// Values of a column of a row group.
#[derive(Debug)]
enum Values {
    Boolean(Vec<bool>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl SeriesColumn {
    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    ) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &self.values {
            Values::Boolean(values) => with_levels::<BoolType>(group, values, levels),
            Values::Int(values) => with_levels::<Int32Type>(group, values, levels),
            Values::Long(values) => with_levels::<Int64Type>(group, values, levels),
            Values::Double(values) => with_levels::<DoubleType>(group, values, levels),
            Values::Text(values) => with_levels::<ByteArrayType>(group, values, levels),
        }
    }
}

/// Column of a sweep in a row group. All rows of the group belong to one run, and so have the same
/// value or none.
fn axis_column(axis: &SweepColumn, x: Option<&SweepValue>, count: usize) -> SeriesColumn {
    let number = x.and_then(|x| axis.number(x));
    let all = |has: bool| if has { count } else { 0 };
    let (values, has) = match (axis.column_type(), x) {
        (ColumnType::Boolean, Some(SweepValue::Boolean(truth))) => {
            (Values::Boolean(vec![*truth; count]), true)
        }
        (ColumnType::Boolean, _) => (Values::Boolean(Vec::new()), false),
        (ColumnType::Int64, Some(SweepValue::Integer(whole))) => {
            (Values::Long(vec![*whole; count]), true)
        }
        (ColumnType::Int64, _) => (Values::Long(Vec::new()), false),
        (ColumnType::Float64, _) => {
            let values = vec![number.unwrap_or_default(); all(number.is_some())];
            (Values::Double(values), number.is_some())
        }
        (_, x) => {
            let text = x.map(ToString::to_string).unwrap_or_default();
            let text = vec![ByteArray::from(text.as_str()); all(x.is_some())];
            (Values::Text(text), x.is_some())
        }
    };
    SeriesColumn {
        values,
        levels: Some(vec![i16::from(has); count]),
    }
}

/// Reads the row groups of a complete file, in order.
///
/// # Errors
/// The file has no valid footer. In addition, each row group can have an error: values that do not
/// match the footer.
pub fn row_groups(
    source: &File,
) -> Result<impl Iterator<Item = Result<Vec<SeriesColumn>, ParquetError>>, ParquetError> {
    let reader = SerializedFileReader::new(source.try_clone()?)?;
    Ok((0..reader.num_row_groups())
        .map(move |index| columns(reader.get_row_group(index)?.as_ref())))
}

fn columns(group: &dyn RowGroupReader) -> Result<Vec<SeriesColumn>, ParquetError> {
    let column = |index| read_column(group, index);
    (0..group.num_columns()).map(column).collect()
}

fn read_column(group: &dyn RowGroupReader, index: usize) -> Result<SeriesColumn, ParquetError> {
    let mut levels = Vec::new();
    let descriptor = group.metadata().column(index);
    let levels_of = (descriptor.column_descr().max_def_level() > 0).then_some(&mut levels);
    let values = match descriptor.column_type() {
        Physical::BOOLEAN => Values::Boolean(present::<BoolType>(group, index, levels_of)?),
        Physical::INT32 => Values::Int(present::<Int32Type>(group, index, levels_of)?),
        Physical::INT64 => Values::Long(present::<Int64Type>(group, index, levels_of)?),
        Physical::DOUBLE => Values::Double(present::<DoubleType>(group, index, levels_of)?),
        _ => Values::Text(present::<ByteArrayType>(group, index, levels_of)?),
    };
    let optional = descriptor.column_descr().max_def_level() > 0;
    let levels = optional.then_some(levels);
    Ok(SeriesColumn { values, levels })
}

/// Whether a file of samples is complete, so that its footer can be read.
pub fn is_whole(path: &Path) -> bool {
    plain::open(path).is_ok_and(|file| SerializedFileReader::new(file).is_ok())
}

/// Values of a column that must have no missing values.
fn values<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
) -> Result<Vec<T::T>, ParquetError> {
    present::<T>(group, index, None)
}

/// Reads the values of a column. If the column is nullable, also reads which rows have a value.
fn present<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
    mut levels: Option<&mut Vec<i16>>,
) -> Result<Vec<T::T>, ParquetError> {
    let descriptor = group.metadata().column(index);
    if descriptor.column_type() != T::get_physical_type() {
        return Err(ParquetError::General(format!(
            "column {} has another type",
            descriptor.column_path()
        )));
    }
    let rows = group.metadata().num_rows().max(0) as usize;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let mut values = Vec::with_capacity(rows);
    let mut read = 0;
    while read < rows {
        let levels = levels.as_deref_mut();
        let (more, _, _) = reader.read_records(rows - read, levels, None, &mut values)?;
        if more == 0 {
            return Err(ParquetError::EOF("a column ends early".into()));
        }
        read += more;
    }
    Ok(values)
}

/// Path of the series file of an experiment in a results directory.
pub fn path(directory: &Path, experiment: &str) -> PathBuf {
    directory
        .join("series")
        .join(format!("{experiment}.parquet"))
}

/// Series of a results directory: `DIR/series/<experiment>.parquet`.
#[derive(Clone, Debug)]
pub struct Directory(
    /// The results directory.
    pub PathBuf,
);

/// An experiment without a file has no series.
impl SeriesSource for Directory {
    fn read(&self, query: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, SeriesError> {
        let path = path(&self.0, query.experiment);
        let file = match plain::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&path, error)),
        };
        read_file(file, query).map_err(|error| failed(&path, error))
    }
}

/// Error of reading a file.
pub fn failed(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> SeriesError {
    SeriesError {
        place: path.display().to_string(),
        source: Box::new(source),
    }
}

fn read_file(file: File, query: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let sweeps = sweeps(
        reader.metadata().file_metadata().key_value_metadata(),
        &names,
    )?;
    let mut found: Vec<SeriesRecord> = Vec::new();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        read_row_group(group.as_ref(), (&names, &sweeps), query, &mut found)?;
    }
    Ok(found)
}

fn read_row_group(
    group: &dyn RowGroupReader,
    (names, sweeps): (&[String], &[(usize, Sweep)]),
    query: &SeriesQuery<'_>,
    found: &mut Vec<SeriesRecord>,
) -> Result<(), ParquetError> {
    let at = |name: &str| {
        names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| ParquetError::General(format!("no column {name}: not a series file")))
    };
    let point = read_point(group, sweeps)?;
    let replications = values::<Int32Type>(group, at("replication")?)?;
    let replication = replications.first().map_or(0, |&r| r as u32);
    if query
        .replication
        .is_some_and(|wanted| wanted != replication)
    {
        return Ok(());
    }
    let entities = values::<ByteArrayType>(group, at("entity")?)?;
    let members = values::<Int32Type>(group, at("member")?)?;
    let probes = values::<ByteArrayType>(group, at("probe")?)?;
    let indices = values::<Int32Type>(group, at("index")?)?;
    let times = values::<DoubleType>(group, at("time_s")?)?;
    let values = values::<DoubleType>(group, at("value")?)?;
    for row in 0..times.len() {
        let (entity, probe, member) = (
            entities[row].as_utf8()?,
            probes[row].as_utf8()?,
            members[row] as u32,
        );
        if !query.matches(query.experiment, entity, member, probe, replication) {
            continue;
        }
        let sample = SeriesSample {
            index: indices[row] as u16,
            time: times[row],
            value: values[row],
        };
        let same = |s: &SeriesRecord| {
            s.member == member
                && s.probe == probe
                && s.entity == entity
                && s.replication == replication
                && s.point == point
        };
        // A run has few series, and their samples are interleaved. Therefore a search from the end
        // is short, and stays within the run.
        match found.iter_mut().rev().find(|s| same(s)) {
            Some(series) => series.samples.push(sample),
            None => found.push(SeriesRecord {
                experiment: query.experiment.to_owned(),
                point: point.clone(),
                replication,
                entity: entity.to_owned(),
                member,
                probe: probe.to_owned(),
                samples: vec![sample],
            }),
        }
    }
    Ok(())
}

/// An x value of a numeric column; whole numbers become integers, except beyond 2^53, because not
/// all integers are exact there.
fn number(x: f64) -> SweepValue {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if x.fract() == 0.0 && x.abs() <= EXACT {
        SweepValue::Integer(x as i64)
    } else {
        SweepValue::Float(x)
    }
}

/// Sweeps in a file, each with the index of its column.
fn sweeps(
    metadata: Option<&Vec<KeyValue>>,
    names: &[String],
) -> Result<Vec<(usize, Sweep)>, ParquetError> {
    let mut entries = metadata.into_iter().flatten();
    let text = entries.find(|entry| entry.key == SWEEPS);
    let Some(text) = text.and_then(|entry| entry.value.as_deref()) else {
        let what = format!("no metadata {SWEEPS}: made by another version, or not a series file");
        return Err(ParquetError::General(what));
    };
    let wrong = |error: serde_json::Error| ParquetError::General(format!("{SWEEPS}: {error}"));
    let sweeps: Vec<Sweep> = serde_json::from_str(text).map_err(wrong)?;
    let of = |sweep: Sweep| {
        let at = names.iter().position(|name| *name == sweep.column);
        let at = at.ok_or_else(|| ParquetError::General(format!("no column {}", sweep.column)))?;
        Ok((at, sweep))
    };
    sweeps.into_iter().map(of).collect()
}

/// Point of a row group, which contains only rows of one run.
fn read_point(
    group: &dyn RowGroupReader,
    sweeps: &[(usize, Sweep)],
) -> Result<Point, ParquetError> {
    let mut point = Point::new();
    for (index, sweep) in sweeps {
        let x = match read_column(group, *index)?.values {
            Values::Boolean(values) => values.first().map(|truth| SweepValue::Boolean(*truth)),
            Values::Int(values) => values.first().map(|it| SweepValue::Integer(i64::from(*it))),
            Values::Long(values) => values.first().map(|it| SweepValue::Integer(*it)),
            Values::Double(values) => values.first().map(|x| as_written(*x, sweep)),
            Values::Text(values) => {
                let text = values.first().map(ByteArray::as_utf8).transpose()?;
                let known = |text: &str| sweep.written.iter().find(|x| x.to_string() == text);
                text.map(|text| {
                    known(text)
                        .cloned()
                        .unwrap_or_else(|| SweepValue::Text(text.to_owned()))
                })
            }
        };
        point.extend(x.map(|x| (sweep.sweep.clone(), x)));
    }
    Ok(point)
}

/// The x value, as written in the spec, that is stored as this number.
fn as_written(x: f64, sweep: &Sweep) -> SweepValue {
    let is_it = |value: &&SweepValue| match value {
        SweepValue::Text(text) => {
            QuantityFamily::of(text).and_then(|family| family.number(text)) == Some(x)
        }
        _ => false,
    };
    let written = sweep.written.iter().find(is_it);
    written.cloned().unwrap_or_else(|| number(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x_is_read_as_the_number_that_it_is() {
        for (x, read) in [
            (20.0, SweepValue::Integer(20)),
            (-3.0, SweepValue::Integer(-3)),
            (0.5, SweepValue::Float(0.5)),
            (1e15, SweepValue::Integer(1_000_000_000_000_000)),
            (1e19, SweepValue::Float(1e19)),
            (-1e300, SweepValue::Float(-1e300)),
        ] {
            assert_eq!(number(x), read);
            assert!(read.is_same(&SweepValue::Float(x)), "{x}");
        }
    }
}
