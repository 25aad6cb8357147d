//! Common type and unit of a sweep's x values, for the columns of results and the axes of figures.

use anabranch_settings::quantity::parse;
use anabranch_settings::units::{
    FREQUENCY, LENGTH, PACKETS, POWER, RATE, SEGMENTS, SIZE, TIME, Unit,
};

use crate::value::SweepValue;

/// Family of comparable quantities: times, rates or sizes.
#[derive(Debug, PartialEq)]
pub struct QuantityFamily {
    units: &'static [Unit],
    /// Unit of a column with quantities of this family.
    pub unit: &'static str,
    /// Number of base units in one [`QuantityFamily::unit`].
    base: f64,
}

const fn family(units: &'static [Unit], unit: &'static str, base: f64) -> QuantityFamily {
    QuantityFamily { units, unit, base }
}

static FAMILIES: &[QuantityFamily] = &[
    family(TIME, "s", 1e9),
    family(RATE, "bit/s", 1.0),
    family(SIZE, "B", 1.0),
    family(PACKETS, "packets", 1.0),
    family(SEGMENTS, "segments", 1.0),
    family(LENGTH, "m", 1.0),
    family(POWER, "W", 1.0),
    family(FREQUENCY, "Hz", 1.0),
];

impl QuantityFamily {
    /// Family of a quantity as written in a spec, such as `10 ms`. `None` for any other text.
    pub fn of(text: &str) -> Option<&'static QuantityFamily> {
        FAMILIES.iter().find(|family| family.read(text).is_some())
    }

    /// Number of a quantity in [`QuantityFamily::unit`].
    pub fn number(&self, text: &str) -> Option<f64> {
        self.read(text).map(|(number, _)| number / self.base)
    }

    /// Number of a quantity in base units, and the first declared unit that equals the unit in the
    /// text.
    fn read(&self, text: &str) -> Option<(f64, Unit)> {
        let (number, found) = parse(text, "", "", &[self.units]).ok()?;
        let (_, size) = self.units.iter().find(|(name, _)| *name == found)?;
        let unit = self.units.iter().find(|(_, other)| other == size)?;
        Some((number, *unit))
    }
}

/// Converts quantities of one family to the smallest unit among them. Returns the numbers and this
/// unit; `None` if a text is no quantity or the families differ.
///
/// For example, `["500 ms", "1 s"]` becomes 500 and 1000 ms.
pub fn in_one_unit<'t>(
    texts: impl IntoIterator<Item = &'t str>,
) -> Option<(Vec<f64>, &'static str)> {
    let mut texts = texts.into_iter().peekable();
    let family = QuantityFamily::of(texts.peek()?)?;
    let read: Option<Vec<(f64, Unit)>> = texts.map(|text| family.read(text)).collect();
    let read = read?;
    let units = read.iter().map(|(_, unit)| *unit);
    let (unit, size) = units.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((read.iter().map(|(number, _)| number / size).collect(), unit))
}

/// Common type of a sweep's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    /// Whole numbers.
    Integer,
    /// Numbers, some of them not whole.
    Number,
    /// Quantities of one family.
    Quantity(&'static QuantityFamily),
    /// Booleans.
    Boolean,
    /// Texts without a common type.
    Text,
}

impl ValueKind {
    /// Type of one value.
    pub fn of(x: &SweepValue) -> Self {
        match x {
            SweepValue::Integer(_) => ValueKind::Integer,
            SweepValue::Float(_) => ValueKind::Number,
            SweepValue::Boolean(_) => ValueKind::Boolean,
            SweepValue::Text(text) => {
                QuantityFamily::of(text).map_or(ValueKind::Text, ValueKind::Quantity)
            }
        }
    }

    /// Common type of two types.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (ValueKind::Integer, ValueKind::Number) | (ValueKind::Number, ValueKind::Integer) => {
                ValueKind::Number
            }
            _ => ValueKind::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_share_the_smallest_unit_that_is_written() {
        let of = |texts: &[&str]| in_one_unit(texts.iter().copied());
        assert_eq!(of(&["10 ms", "50 ms"]), Some((vec![10.0, 50.0], "ms")));
        assert_eq!(
            of(&["0 s", "200 ms", "1 s"]),
            Some((vec![0.0, 200.0, 1000.0], "ms"))
        );
        assert_eq!(of(&["64 KiB", "1 MiB"]), Some((vec![64.0, 1024.0], "KiB")));
        // Two spellings of one unit count as the same unit.
        assert_eq!(
            of(&["3 Mbps", "5 Mbit/s"]),
            Some((vec![3.0, 5.0], "Mbit/s"))
        );
        assert_eq!(
            of(&["1 packet", "20 packets"]),
            Some((vec![1.0, 20.0], "packets"))
        );
        assert_eq!(of(&["5 m", "2 km"]), Some((vec![5.0, 2000.0], "m")));
    }

    #[test]
    fn texts_without_a_common_unit_are_no_axis_of_numbers() {
        for texts in [
            &["10 ms", "unlimited"] as &[&str],
            &["10 packets", "15 kB"],
            &["4 streams", "8 streams"],
            &["10 ms, tcp"],
            &["1"],
            &[],
        ] {
            assert_eq!(in_one_unit(texts.iter().copied()), None, "{texts:?}");
        }
    }
}
