use std::cell::Cell;
use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit as Unit};
use parquet::arrow::encode_arrow_schema;

use super::*;

const KINDS: [ColumnType; 7] = [
    ColumnType::Boolean,
    ColumnType::Int64,
    ColumnType::UInt16,
    ColumnType::UInt32,
    ColumnType::UInt64,
    ColumnType::Float64,
    ColumnType::Utf8,
];

/// Schemas should equal those of Arrow's own writer byte by byte, for all types, for names of any
/// length, and for columns with missing values or with units.
#[test]
fn a_schema_is_that_of_arrow() {
    let mut schemas = vec![vec![]];
    for kind in KINDS {
        for name in ["x", "rate", "x_one", "a longer name of a column"] {
            for (nullable, unit) in [
                (false, None),
                (true, None),
                (false, Some("s")),
                (true, Some("bit/s")),
            ] {
                let name = name.to_owned();
                schemas.push(vec![ColumnField {
                    name,
                    kind,
                    nullable,
                    unit,
                }]);
            }
        }
    }
    schemas.push(schemas.concat());
    for fields in schemas {
        let arrow: Vec<Field> = fields.iter().map(ColumnField::arrow).collect();
        let expected = encode_arrow_schema(&Schema::new(arrow));
        assert_eq!(encode(&fields), expected, "{fields:?}");
        let names = || fields.iter().map(|field| field.name.as_str());
        assert_eq!(decode(&expected, names()), Some(vec![None; fields.len()]));
        // Another number of columns, or another name of the last one.
        let (more, last) = (["x"], ["y"]);
        let more: Vec<&str> = names().chain(more).collect();
        assert_eq!(decode(&expected, more.into_iter()), None);
        let other: Vec<&str> = names().skip(1).chain(last).collect();
        assert_eq!(decode(&expected, other.into_iter()), None);
    }
}

fn schema(kinds: &[DataType]) -> String {
    let field = |kind: &DataType| Field::new(format!("{kind}"), kind.clone(), true);
    let fields: Vec<Field> = kinds.iter().map(field).collect();
    encode_arrow_schema(&Schema::new(fields))
}

#[test]
fn types_of_times_are_read() {
    let kinds = [
        (
            DataType::Duration(Unit::Second),
            Some(TimeType::Duration(TimeUnit::Second)),
        ),
        (
            DataType::Duration(Unit::Millisecond),
            Some(TimeType::Duration(TimeUnit::Millisecond)),
        ),
        (
            DataType::Duration(Unit::Microsecond),
            Some(TimeType::Duration(TimeUnit::Microsecond)),
        ),
        (
            DataType::Duration(Unit::Nanosecond),
            Some(TimeType::Duration(TimeUnit::Nanosecond)),
        ),
        (
            DataType::Timestamp(Unit::Second, None),
            Some(TimeType::Timestamp(TimeUnit::Second)),
        ),
        (
            DataType::Timestamp(Unit::Nanosecond, Some(Arc::from("UTC"))),
            Some(TimeType::Timestamp(TimeUnit::Nanosecond)),
        ),
        (
            DataType::Time32(Unit::Second),
            Some(TimeType::Time32(TimeUnit::Second)),
        ),
        (
            DataType::Time32(Unit::Millisecond),
            Some(TimeType::Time32(TimeUnit::Millisecond)),
        ),
        (
            DataType::Time64(Unit::Microsecond),
            Some(TimeType::Time64(TimeUnit::Microsecond)),
        ),
        (DataType::Date32, Some(TimeType::Date32)),
        (DataType::Date64, Some(TimeType::Date64)),
        (DataType::Interval(IntervalUnit::DayTime), None),
        (DataType::Float64, None),
        (DataType::LargeUtf8, None),
    ];
    let text = schema(&kinds.each_ref().map(|(kind, _)| kind.clone()));
    let names = kinds.each_ref().map(|(kind, _)| kind.to_string());
    let expected = kinds.map(|(_, time)| time).to_vec();
    assert_eq!(
        decode(&text, names.iter().map(String::as_str)),
        Some(expected)
    );
}

/// A damaged schema should cause no panic, and a schema without its end should be rejected.
#[test]
fn a_damaged_schema_is_refused() {
    let text = schema(&[DataType::Duration(Unit::Second), DataType::Utf8]);
    let bytes = BASE64_STANDARD.decode(&text).expect("base64");
    let decode = |text: &str| decode(text, ["Duration(s)", "Utf8"].into_iter());
    assert!(decode(&text).is_some());
    for length in 0..bytes.len() - 8 {
        assert_eq!(decode(&BASE64_STANDARD.encode(&bytes[..length])), None);
    }
    for position in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[position] = value;
            decode(&BASE64_STANDARD.encode(&bytes));
        }
    }
    assert_eq!(decode("no base64"), None);
    assert_eq!(decode(""), None);
}

/// All fields of a schema are one table with a long name. The message is short, but the names of
/// its fields would have a length of 5 GB.
#[test]
fn fields_that_share_a_long_name_cost_little() {
    const FIELDS: usize = 50_000;
    let mut out = Builder::default();
    let shared = field(
        &mut out,
        &ColumnField {
            name: "n".repeat(100_000),
            kind: ColumnType::Float64,
            nullable: false,
            unit: None,
        },
    );
    let fields = out.vector(&[shared; FIELDS]);
    let schema = out.table(&[(1, Slot::Offset(fields))]);
    let message = out.table(&[(1, Slot::Byte(SCHEMA)), (2, Slot::Offset(schema))]);
    let message = out.finish(message);
    assert!(message.len() < 310_000, "{} bytes", message.len());
    let text = BASE64_STANDARD.encode(message);
    let compared = Cell::new(0);
    let decode = |names: &[&str]| {
        let names = names.iter().inspect(|_| compared.set(compared.get() + 1));
        decode(&text, names.copied())
    };
    // Without the names of so many columns, none is compared, and then only the first.
    assert_eq!(decode(&["n"; FIELDS - 1]), None);
    assert_eq!(compared.get(), 0);
    assert_eq!(decode(&["n"; FIELDS]), None);
    assert_eq!(compared.get(), 1);
}
