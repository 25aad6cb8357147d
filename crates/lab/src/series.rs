//! Series of samples as tidy Parquet: one row for each sample, one file for each experiment.
//!
//! Columns: `experiment`, one `x_<name>` for each sweep (DOUBLE where every x is a number, else text), `replication`,
//! `entity`, `member`, `probe`, `index`, `time_s`, `value`. Rows stand in the order in which runs are listed, and
//! within a run in the order of time, so that the same spec and seed give the same bytes.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::records::{
    RunRecord, Series, SeriesError, SeriesKey, SeriesQuery, SeriesSample, SeriesSource,
};
use anabranch_scenario::value::{Point, Value};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::plain;

/// Rows held before they are written out as a row group.
const ROW_GROUP: usize = 1 << 18;

/// The shape of the x columns: the names of the sweeps, and whether every x of each is a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes(Vec<(String, bool)>);

impl Axes {
    /// The axes that an experiment's points need.
    pub fn of<'a>(points: impl IntoIterator<Item = &'a Point>) -> Self {
        let mut axes: Vec<(String, bool)> = Vec::new();
        for point in points {
            for (name, x) in point {
                let number = x.as_f64().is_some();
                match axes.iter_mut().find(|(known, _)| known == name) {
                    Some(axis) => axis.1 &= number,
                    None => axes.push((name.clone(), number)),
                }
            }
        }
        Axes(axes)
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let text = |name: &str| {
            Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_repetition(Repetition::REQUIRED)
                .with_converted_type(ConvertedType::UTF8)
                .build()
        };
        let plain = |name: &str, kind| {
            Type::primitive_type_builder(name, kind)
                .with_repetition(Repetition::REQUIRED)
                .build()
        };
        let mut fields = vec![text("experiment")?];
        for (name, number) in &self.0 {
            let name = format!("x_{name}");
            fields.push(if *number {
                plain(&name, Physical::DOUBLE)?
            } else {
                text(&name)?
            });
        }
        fields.push(plain("replication", Physical::INT32)?);
        fields.push(text("entity")?);
        fields.push(plain("member", Physical::INT32)?);
        fields.push(text("probe")?);
        fields.push(plain("index", Physical::INT32)?);
        fields.push(plain("time_s", Physical::DOUBLE)?);
        fields.push(plain("value", Physical::DOUBLE)?);
        let fields = fields.into_iter().map(Arc::new).collect();
        Type::group_type_builder("series")
            .with_fields(fields)
            .build()
            .map(Arc::new)
    }
}

/// Writes series; rows go out in groups, so that memory does not follow their number.
pub struct SeriesWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    axes: Axes,
    experiment: String,
    point: Point,
    replication: u32,
    keys: Vec<SeriesKey>,
    rows: Rows,
}

/// Rows of one run that are not yet written.
#[derive(Default)]
struct Rows {
    key: Vec<u32>,
    index: Vec<i32>,
    time: Vec<f64>,
    value: Vec<f64>,
}

impl<W: Write + Send> SeriesWriter<W> {
    /// A writer to `sink`, for one experiment.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: W, experiment: &str, axes: Axes) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("anabranch".into())
            .build();
        Ok(Self {
            file: SerializedFileWriter::new(sink, axes.schema()?, Arc::new(properties))?,
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
        for (name, number) in &self.axes.0 {
            let x = self
                .point
                .iter()
                .find(|(axis, _)| axis == name)
                .map(|(_, x)| x);
            if *number {
                column::<DoubleType>(
                    &mut group,
                    &vec![x.and_then(Value::as_f64).unwrap_or(f64::NAN); count],
                )?;
            } else {
                let x = x.map(ToString::to_string).unwrap_or_default();
                column::<ByteArrayType>(&mut group, &vec![ByteArray::from(x.as_str()); count])?;
            }
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

    /// Adds a row group of a finished file of the same axes to the end of this one.
    ///
    /// # Errors
    /// The sink's.
    pub fn append(&mut self, group: &[Column]) -> Result<(), ParquetError> {
        self.flush()?;
        let mut out = self.file.next_row_group()?;
        for values in group {
            match values {
                Column::Int(values) => column::<Int32Type>(&mut out, values)?,
                Column::Double(values) => column::<DoubleType>(&mut out, values)?,
                Column::Text(values) => column::<ByteArrayType>(&mut out, values)?,
            }
        }
        out.close()?;
        Ok(())
    }

    /// Writes what is left and the footer, and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
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

    /// The record is kept beside the samples, not among them.
    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "more columns written than the schema has".into(),
        ));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The values of one column of a row group.
pub enum Column {
    /// Whole numbers.
    Int(Vec<i32>),
    /// Numbers.
    Double(Vec<f64>),
    /// Text.
    Text(Vec<ByteArray>),
}

/// The row groups of a finished file, one after the other.
///
/// # Errors
/// A file without a footer. Each row group has its own: values that do not fit what the footer says.
pub fn row_groups(
    source: &File,
) -> Result<impl Iterator<Item = Result<Vec<Column>, ParquetError>>, ParquetError> {
    let reader = SerializedFileReader::new(source.try_clone()?)?;
    Ok((0..reader.num_row_groups())
        .map(move |index| columns(reader.get_row_group(index)?.as_ref())))
}

fn columns(group: &dyn RowGroupReader) -> Result<Vec<Column>, ParquetError> {
    let column = |index| {
        Ok(match group.metadata().column(index).column_type() {
            Physical::INT32 => Column::Int(values::<Int32Type>(group, index)?),
            Physical::DOUBLE => Column::Double(values::<DoubleType>(group, index)?),
            _ => Column::Text(values::<ByteArrayType>(group, index)?),
        })
    };
    (0..group.num_columns()).map(column).collect()
}

/// Whether a file of samples was written to its end: its footer can be read.
pub fn is_whole(path: &Path) -> bool {
    plain::open(path).is_ok_and(|file| SerializedFileReader::new(file).is_ok())
}

/// All values of a column of a row group.
fn values<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
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
    while values.len() < rows {
        let (_, read, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF("a column ends early".into()));
        }
    }
    Ok(values)
}

/// The path of an experiment's series file in a results directory.
pub fn path(directory: &Path, experiment: &str) -> PathBuf {
    directory
        .join("series")
        .join(format!("{experiment}.parquet"))
}

/// The series of a results directory: `DIR/series/<experiment>.parquet`.
#[derive(Clone, Debug)]
pub struct Directory(
    /// The results directory.
    pub PathBuf,
);

/// An experiment without a file has no series.
impl SeriesSource for Directory {
    fn read(&self, query: &SeriesQuery<'_>) -> Result<Vec<Series>, SeriesError> {
        let path = path(&self.0, query.experiment);
        let file = match plain::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&path, error)),
        };
        read_file(file, query).map_err(|error| failed(&path, error))
    }
}

/// A file's error.
pub fn failed(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> SeriesError {
    SeriesError {
        place: path.display().to_string(),
        source: Box::new(source),
    }
}

fn read_file(file: File, query: &SeriesQuery<'_>) -> Result<Vec<Series>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let mut found: Vec<Series> = Vec::new();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        read_row_group(group.as_ref(), &names, query, &mut found)?;
    }
    Ok(found)
}

fn read_row_group(
    group: &dyn RowGroupReader,
    names: &[String],
    query: &SeriesQuery<'_>,
    found: &mut Vec<Series>,
) -> Result<(), ParquetError> {
    let at = |name: &str| {
        names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| ParquetError::General(format!("no column {name}: not a series file")))
    };
    let point = read_point(group, names)?;
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
        let same = |s: &Series| {
            s.member == member
                && s.probe == probe
                && s.entity == entity
                && s.replication == replication
                && s.point == point
        };
        // A run's series interleave and are few: the search is short, and from the end it stays within the run.
        match found.iter_mut().rev().find(|s| same(s)) {
            Some(series) => series.samples.push(sample),
            None => found.push(Series {
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

/// An x of a column of fractions, where whole numbers stand as such. Beyond 2^53 not all of them can, and none is one.
fn number(x: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if x.fract() == 0.0 && x.abs() <= EXACT {
        Value::Integer(x as i64)
    } else {
        Value::Float(x)
    }
}

/// The point of a row group, which holds one run's rows.
fn read_point(group: &dyn RowGroupReader, names: &[String]) -> Result<Point, ParquetError> {
    let mut point = Point::new();
    for (index, name) in names.iter().enumerate() {
        let Some(axis) = name.strip_prefix("x_") else {
            continue;
        };
        let x = if group.metadata().column(index).column_type() == Physical::DOUBLE {
            let x = values::<DoubleType>(group, index)?
                .first()
                .copied()
                .unwrap_or(f64::NAN);
            number(x)
        } else {
            let x = values::<ByteArrayType>(group, index)?;
            Value::Text(
                x.first()
                    .map(|x| x.as_utf8().map(str::to_owned))
                    .transpose()?
                    .unwrap_or_default(),
            )
        };
        point.push((axis.to_owned(), x));
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x_is_read_as_the_number_that_it_is() {
        for (x, read) in [
            (20.0, Value::Integer(20)),
            (-3.0, Value::Integer(-3)),
            (0.5, Value::Float(0.5)),
            (1e15, Value::Integer(1_000_000_000_000_000)),
            (1e19, Value::Float(1e19)),
            (-1e300, Value::Float(-1e300)),
        ] {
            assert_eq!(number(x), read);
            assert!(read.is_same(&Value::Float(x)), "{x}");
        }
    }
}
