use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::*;

/// Records with a sweep of each type. Every fifth point has no value of the sweep `count`.
fn records(count: u32) -> Vec<RunRecord> {
    let record = |number: u32| {
        let texts = ["drop-tail", "codel", "fq_codel"];
        let x = |name: &str, x: SweepValue| (name.to_owned(), x);
        let mut point = vec![
            x("loss", SweepValue::Float(f64::from(number % 7) / 100.0)),
            x(
                "queue",
                SweepValue::Text(texts[number as usize % 3].to_owned()),
            ),
            x("delay", SweepValue::Text(format!("{} ms", number % 50))),
            x("sack", SweepValue::Boolean(number.is_multiple_of(2))),
        ];
        if !number.is_multiple_of(5) {
            point.push(x("count", SweepValue::Integer(i64::from(number) * 1000)));
        }
        let measure = |metric: &str, value: f64| Measure {
            series: format!("flow {}", number % 11),
            metric: metric.to_owned(),
            value,
            unit: "bit/s".to_owned(),
        };
        let value = match number % 13 {
            12 => f64::NAN,
            _ => f64::from(number).sqrt(),
        };
        let metrics = vec![measure("goodput", value), measure("delay", 1.0 / value)];
        RunRecord {
            experiment: "e".to_owned(),
            point,
            replication: number,
            metrics,
            events: 0,
            packet_hops: 0,
            simulated: 1.0,
            failures: Vec::new(),
        }
    };
    (0..count).map(record).collect()
}

/// Schema and rows of a file, as a program with Arrow reads them.
fn read(file: &[u8]) -> (SchemaRef, Vec<RecordBatch>) {
    let file = Bytes::copy_from_slice(file);
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let schema = Arc::clone(reader.schema());
    let reader = reader.with_batch_size(1 << 16).build().expect("a reader");
    let batches: Result<Vec<_>, _> = reader.collect();
    (schema, batches.expect("rows"))
}

/// A file should have the same rows and schema as a file that Arrow's own writer makes from the
/// same columns. A short file should also have the same bytes; the pages of a long file end at
/// other rows.
#[test]
fn a_file_is_that_of_arrow() {
    for count in [0, 1, 3, 1500, 11_000] {
        let records = records(count);
        let measures = ExperimentMeasures::of(&records);
        let mut own = Vec::new();
        measures.write_parquet(&mut own).expect("written");
        let batch = measures.batch().expect("a batch");
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("anabranch".into())
            .build();
        let mut expected = Vec::new();
        let writer = ArrowWriter::try_new(&mut expected, batch.schema(), Some(properties));
        let mut writer = writer.expect("a schema");
        writer.write(&batch).expect("a batch");
        writer.close().expect("closed");
        if count <= 1500 {
            assert!(own == expected, "{count} records: the bytes differ");
        }
        let ((schema, rows), expected) = (read(&own), read(&expected));
        assert_eq!(schema, expected.0);
        assert_eq!(rows, expected.1);
        let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 2 * count as usize);
    }
}
