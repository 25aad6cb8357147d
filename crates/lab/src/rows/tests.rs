use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, DurationMillisecondArray, DurationNanosecondArray, Float64Array,
    Int64Array, RecordBatch, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::*;

fn file(columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) -> Bytes {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    );
    let batch = batch.expect("columns of one length");
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).expect("a schema");
    writer.write(&batch).expect("a batch");
    writer.close().expect("closed");
    file.into()
}

fn read(columns: Vec<(&str, ArrayRef)>) -> Result<String, String> {
    lines(file(columns, WriterProperties::new())).map_err(|error| error.to_string())
}

fn numbers(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

/// A row whose size is missing. The text must not be mistaken for a stream of sizes.
#[test]
fn a_field_without_a_value_is_empty() {
    let text = read(vec![
        ("time", numbers(&[0.0, 1.0, 2.0])),
        (
            "size",
            Arc::new(Int64Array::from(vec![Some(100), None, None])),
        ),
        (
            "stream",
            Arc::new(Int64Array::from(vec![Some(0), Some(700), None])),
        ),
    ]);
    assert_eq!(
        text.as_deref(),
        Ok("time,size,stream\n0,100,0\n1,,700\n2,,\n")
    );
}

#[test]
fn spans_have_their_units_and_moments_count_from_the_first() {
    let rate = || numbers(&[20.0, 8.0]);
    // The first time is 2026-03-14, and the second 1.5 s later.
    let moment = 1_773_446_400_i64;
    let columns: [(ArrayRef, &str); 7] = [
        (
            Arc::new(DurationMillisecondArray::from(vec![0, 1500])),
            "time,mbps\n0 ms,20\n1500 ms,8\n",
        ),
        (
            Arc::new(DurationNanosecondArray::from(vec![0, 5])),
            "time,mbps\n0 ns,20\n5 ns,8\n",
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![
                moment * 1000,
                moment * 1000 + 1500,
            ])),
            "time,mbps\n0 ms,20\n1500 ms,8\n",
        ),
        (
            Arc::new(
                TimestampMicrosecondArray::from(vec![moment * 1_000_000, moment * 1_000_000 + 7])
                    .with_timezone("UTC"),
            ),
            "time,mbps\n0 us,20\n7 us,8\n",
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![
                moment * 1_000_000_000,
                moment * 1_000_000_000 + 3,
            ])),
            "time,mbps\n0 ns,20\n3 ns,8\n",
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![moment, moment + 10])),
            "time,mbps\n0 s,20\n10 s,8\n",
        ),
        (
            Arc::new(Time64MicrosecondArray::from(vec![60_000_000, 61_500_000])),
            "time,mbps\n0 us,20\n1500000 us,8\n",
        ),
    ];
    for (times, expected) in columns {
        let kind = times.data_type().clone();
        let text = read(vec![("time", times), ("mbps", rate())]);
        assert_eq!(text.as_deref(), Ok(expected), "{kind}");
    }
}

#[test]
fn columns_that_a_trace_cannot_have_are_refused() {
    let rate = || ("mbps", numbers(&[20.0, 8.0]));
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec!["0", text])) };
    for (columns, words) in [
        (
            vec![
                ("day", Arc::new(Date32Array::from(vec![1, 2])) as ArrayRef),
                rate(),
            ],
            "column \"day\": found the type Date",
        ),
        (
            vec![("0", numbers(&[0.0, 1.0])), rate()],
            "column \"0\": found a name that is no title",
        ),
        (
            vec![("time,s", numbers(&[0.0, 1.0])), rate()],
            "found a name that is no title",
        ),
        (
            vec![("time", text("1,5")), rate()],
            "row 2, column \"time\": found \"1,5\"",
        ),
        (
            vec![("time", text("#1")), rate()],
            "row 2, column \"time\": found \"#1\"",
        ),
    ] {
        let error = read(columns).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn pages_are_decompressed() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder()
                .set_compression(codec)
                .set_writer_version(version)
                .build();
            let columns = vec![
                ("time", numbers(&[0.0, 1.0])),
                (
                    "rate",
                    Arc::new(StringArray::from(vec![Some("2 Mbit/s"), None])) as ArrayRef,
                ),
            ];
            let text = lines(file(columns, properties)).expect("a file");
            assert_eq!(text, "time,rate\n0,2 Mbit/s\n1,\n", "{codec:?}");
        }
    }
}
