//! Columns of tidy results. Each sweep of an experiment has one typed column. It has the same name
//! and type in the file of measures and in the file of samples, so that the two files can be
//! joined.

use std::collections::BTreeSet;

use anabranch_scenario::axis::ValueKind;
use anabranch_scenario::value::{Point, SweepValue};

/// Metadata key for the unit of a column.
pub const UNIT: &str = "unit";

/// Columns of measures and samples other than those of sweeps. The column of a sweep must not have
/// one of these names.
pub const OTHERS: [&str; 11] = [
    "experiment",
    "replication",
    "series",
    "metric",
    "value",
    "unit",
    "entity",
    "member",
    "probe",
    "index",
    "time_s",
];

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `true` or `false`.
    Boolean,
    /// An integer with sign, of 64 bits.
    Int64,
    /// An integer without sign, of 16 bits.
    UInt16,
    /// An integer without sign, of 32 bits.
    UInt32,
    /// An integer without sign, of 64 bits.
    UInt64,
    /// A number of double precision.
    Float64,
    /// Text in UTF-8.
    Utf8,
}

impl ColumnType {
    /// Number of bits and sign of an integer.
    pub(crate) fn integer(self) -> Option<(i8, bool)> {
        match self {
            Self::Int64 => Some((64, true)),
            Self::UInt16 => Some((16, false)),
            Self::UInt32 => Some((32, false)),
            Self::UInt64 => Some((64, false)),
            Self::Boolean | Self::Float64 | Self::Utf8 => None,
        }
    }
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnField {
    /// Name of the column.
    pub name: String,
    /// Type of its values.
    pub kind: ColumnType,
    /// Whether a row may have no value.
    pub nullable: bool,
    /// Unit of its values, stored in the metadata of the column in Arrow's schema.
    pub unit: Option<&'static str>,
}

impl ColumnField {
    /// A column with a value in each row, without a unit.
    pub fn required(name: &str, kind: ColumnType) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            nullable: false,
            unit: None,
        }
    }
}

/// Column of the values of one sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepColumn {
    sweep: String,
    column: String,
    kind: ValueKind,
    /// Distinct values as written in the spec, in the order of the points. Empty if the column
    /// contains the values unchanged.
    written: Vec<SweepValue>,
}

impl SweepColumn {
    /// Name of the column: that of the sweep, prefixed with `x_` if every file has a column with
    /// that name.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// Name of the sweep.
    pub fn sweep(&self) -> &str {
        &self.sweep
    }

    /// Distinct values of the sweep as written; empty if the column contains the values unchanged.
    pub fn written(&self) -> &[SweepValue] {
        &self.written
    }

    /// Whether a column with this name could be confused with this column or with the column for
    /// its unit.
    fn is_like(&self, column: &str) -> bool {
        let unit_of = |one: &str, other: &str| one.strip_suffix("_unit") == Some(other);
        self.column == column || unit_of(&self.column, column) || unit_of(column, &self.column)
    }

    /// Makes the column a text column if two of its quantities, such as `1 s` and `1000 ms`, are
    /// the same number, because a numeric column would not distinguish their points.
    fn settle(&mut self) {
        if let ValueKind::Quantity(_) = self.kind {
            let numbers = self.written.iter().filter_map(|x| self.number(x));
            let numbers: BTreeSet<u64> = numbers.map(f64::to_bits).collect();
            if numbers.len() == self.written.len() {
                return;
            }
            self.kind = ValueKind::Text;
        }
        let is_text = |x: &SweepValue| matches!(x, SweepValue::Text(_));
        if self.kind != ValueKind::Text || self.written.iter().all(is_text) {
            self.written.clear();
        }
    }

    /// Unit of the numbers in the column; `None` if they are not quantities.
    pub fn unit(&self) -> Option<&'static str> {
        match self.kind {
            ValueKind::Quantity(family) => Some(family.unit),
            _ => None,
        }
    }

    /// A value of the sweep as a number in the unit of the column; `None` if the column is not
    /// numeric.
    pub fn number(&self, x: &SweepValue) -> Option<f64> {
        match (self.kind, x) {
            (ValueKind::Integer | ValueKind::Number, x) => x.as_f64(),
            (ValueKind::Quantity(family), SweepValue::Text(text)) => family.number(text),
            _ => None,
        }
    }

    /// A value of the sweep as it appears in a CSV file.
    pub fn text(&self, x: &SweepValue) -> String {
        match (self.kind, self.number(x)) {
            (ValueKind::Quantity(_), Some(number)) => number.to_string(),
            _ => x.to_string(),
        }
    }

    /// The value of the sweep at a point.
    pub(crate) fn of<'p>(&self, point: &'p Point) -> Option<&'p SweepValue> {
        let mut found = point.iter().filter(|(name, _)| *name == self.sweep);
        found.next().map(|(_, x)| x)
    }

    /// Type of the column.
    pub fn column_type(&self) -> ColumnType {
        match self.kind {
            ValueKind::Integer => ColumnType::Int64,
            ValueKind::Number | ValueKind::Quantity(_) => ColumnType::Float64,
            ValueKind::Boolean => ColumnType::Boolean,
            ValueKind::Text => ColumnType::Utf8,
        }
    }

    /// Name, type and unit of the column. The column is empty for a point that has no value of this
    /// sweep.
    pub fn column_field(&self) -> ColumnField {
        ColumnField {
            name: self.column.clone(),
            kind: self.column_type(),
            nullable: true,
            unit: self.unit(),
        }
    }
}

/// Columns of the sweeps of an experiment, in the order of the sweeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes(Vec<SweepColumn>);

impl Axes {
    /// Creates the columns for these points, in a file that also has the columns `others`.
    pub fn of<'p>(points: impl IntoIterator<Item = &'p Point>, others: &[&str]) -> Self {
        let mut axes: Vec<SweepColumn> = Vec::new();
        let mut seen: BTreeSet<(usize, String)> = BTreeSet::new();
        for (sweep, x) in points.into_iter().flatten() {
            let kind = ValueKind::of(x);
            let known = axes.iter().position(|axis| axis.sweep == *sweep);
            let at = match known {
                Some(at) => {
                    axes[at].kind = axes[at].kind.with(kind);
                    at
                }
                None => {
                    let mut column = sweep.clone();
                    let taken = |column: &str| {
                        let of_all = OTHERS.contains(&column) || others.contains(&column);
                        of_all || axes.iter().any(|axis| axis.is_like(column))
                    };
                    while taken(&column) {
                        column.insert_str(0, "x_");
                    }
                    axes.push(SweepColumn {
                        sweep: sweep.clone(),
                        column,
                        kind,
                        written: Vec::new(),
                    });
                    axes.len() - 1
                }
            };
            if seen.insert((at, x.to_string())) {
                axes[at].written.push(x.clone());
            }
        }
        axes.iter_mut().for_each(SweepColumn::settle);
        Self(axes)
    }

    /// Iterates over the columns.
    pub fn iter(&self) -> impl Iterator<Item = &SweepColumn> {
        self.0.iter()
    }

    /// Iterates over the columns with their values at a point.
    pub fn at<'p>(
        &'p self,
        point: &'p Point,
    ) -> impl Iterator<Item = (&'p SweepColumn, Option<&'p SweepValue>)> {
        self.iter().map(|axis| (axis, axis.of(point)))
    }

    /// Iterates over names, types and units of the columns.
    pub fn column_fields(&self) -> impl Iterator<Item = ColumnField> {
        self.iter().map(SweepColumn::column_field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[SweepValue]) -> SweepColumn {
        let points: Vec<Point> = values
            .iter()
            .map(|x| vec![("x".to_owned(), x.clone())])
            .collect();
        Axes::of(&points, &["replication"]).0.remove(0)
    }

    /// Names are the same in measures and samples, and no two columns have the same name.
    #[test]
    fn no_two_columns_have_one_name() {
        let names = |sweeps: &[&str]| -> Vec<String> {
            let x = |name: &&str| ((*name).to_owned(), text("1 s"));
            let point: Point = sweeps.iter().map(x).collect();
            let axes = Axes::of([&point], &[]);
            axes.iter().map(|axis| axis.column().to_owned()).collect()
        };
        assert_eq!(names(&["time_s", "series"]), ["x_time_s", "x_series"]);
        assert_eq!(names(&["x_value", "value"]), ["x_value", "x_x_value"]);
        assert_eq!(names(&["rate", "rate_unit"]), ["rate", "x_rate_unit"]);
        assert_eq!(names(&["rate_unit", "rate"]), ["rate_unit", "x_rate"]);
    }

    #[test]
    fn quantities_that_are_one_number_stay_apart() {
        let same = axis(&[text("1 s"), text("1000 ms"), text("2 s")]);
        assert_eq!(
            (same.column_type(), same.written()),
            (ColumnType::Utf8, &[][..])
        );
        let apart = axis(&[text("1 s"), text("1 ms"), text("1 s")]);
        assert_eq!(apart.written(), [text("1 s"), text("1 ms")]);
    }

    fn text(text: &str) -> SweepValue {
        SweepValue::Text(text.to_owned())
    }

    #[test]
    fn a_sweep_has_the_type_of_its_values() {
        let kinds = [
            (
                vec![SweepValue::Integer(1), SweepValue::Integer(2)],
                ColumnType::Int64,
                None,
            ),
            (
                vec![SweepValue::Integer(1), SweepValue::Float(0.5)],
                ColumnType::Float64,
                None,
            ),
            (
                vec![text("5 ms"), text("1 s")],
                ColumnType::Float64,
                Some("s"),
            ),
            (
                vec![text("2 Mbit/s"), text("64 kbit/s")],
                ColumnType::Float64,
                Some("bit/s"),
            ),
            (
                vec![text("32 KiB"), text("1 MB")],
                ColumnType::Float64,
                Some("B"),
            ),
            (
                vec![text("10 packets")],
                ColumnType::Float64,
                Some("packets"),
            ),
            // Values without a common unit are stored as text.
            (
                vec![text("10 packets"), text("5 ms")],
                ColumnType::Utf8,
                None,
            ),
            (
                vec![SweepValue::Integer(0), text("5 ms")],
                ColumnType::Utf8,
                None,
            ),
            (vec![text("sctp"), text("tcp")], ColumnType::Utf8, None),
            (vec![SweepValue::Boolean(true)], ColumnType::Boolean, None),
            (
                vec![SweepValue::Boolean(true), SweepValue::Integer(1)],
                ColumnType::Utf8,
                None,
            ),
        ];
        for (values, kind, unit) in kinds {
            let field = axis(&values).column_field();
            assert_eq!((field.kind, field.unit), (kind, unit), "{values:?}");
        }
    }

    #[test]
    fn quantities_are_numbers_of_one_unit() {
        let times = axis(&[text("5 ms"), text("2 min")]);
        assert_eq!(times.number(&text("5 ms")), Some(0.005));
        assert_eq!(times.number(&text("2 min")), Some(120.0));
        assert_eq!(axis(&[text("32 KiB")]).text(&text("32 KiB")), "32768");
        assert_eq!(axis(&[text("sctp")]).text(&text("sctp")), "sctp");
        assert_eq!(
            axis(&[SweepValue::Float(0.1)]).text(&SweepValue::Float(0.1)),
            "0.1"
        );
    }

    #[test]
    fn a_sweep_called_like_another_column_is_distinguished_from_it() {
        let point = vec![
            ("replication".to_owned(), SweepValue::Integer(1)),
            ("loss".to_owned(), SweepValue::Integer(1)),
        ];
        let axes = Axes::of([&point], &["replication"]);
        let names: Vec<&str> = axes.iter().map(SweepColumn::column).collect();
        assert_eq!(names, ["x_replication", "loss"]);
    }
}
