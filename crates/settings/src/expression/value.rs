//! Numbers with a dimension, such as times, sizes, rates, and their products.

use super::ratio::Ratio;
use crate::units::{
    self, FREQUENCY, LENGTH, PACKETS, POWER, RATE, SEGMENTS, SIZE, TIME, Unit, show_rate,
    show_size, show_time,
};

/// Exponent of each base in a dimension: bits, seconds, packets, segments, metres, watts.
pub type Dimension = [i8; 6];

/// Names of the bases of dimensions.
const BASES: [&str; 6] = ["size", "time", "packets", "segments", "length", "power"];

/// Family of units: a dimension for which units exist.
struct Family {
    /// Name of the family, with an article.
    name: &'static str,
    dimension: Dimension,
    units: &'static [Unit],
    /// Size of the family's base unit (byte, nanosecond) in the base of the dimension (bit,
    /// second), as a fraction.
    scale: (i128, i128),
}

const FAMILIES: &[Family] = &[
    family("a time", [0, 1, 0, 0, 0, 0], TIME, (1, 1_000_000_000)),
    family("a rate", [1, -1, 0, 0, 0, 0], RATE, (1, 1)),
    family("a size", [1, 0, 0, 0, 0, 0], SIZE, (8, 1)),
    family("packets", [0, 0, 1, 0, 0, 0], PACKETS, (1, 1)),
    family("segments", [0, 0, 0, 1, 0, 0], SEGMENTS, (1, 1)),
    family("a length", [0, 0, 0, 0, 1, 0], LENGTH, (1, 1)),
    family("a power", [0, 0, 0, 0, 0, 1], POWER, (1, 1)),
    family("a frequency", [0, -1, 0, 0, 0, 0], FREQUENCY, (1, 1)),
];

const NUMBER: Dimension = [0; 6];

const fn family(
    name: &'static str,
    dimension: Dimension,
    units: &'static [Unit],
    scale: (i128, i128),
) -> Family {
    Family {
        name,
        dimension,
        units,
        scale,
    }
}

/// A number with a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionedValue {
    /// Number in bits, seconds, packets, segments, metres or watts.
    pub(super) number: Ratio,
    pub(super) dimension: Dimension,
}

/// A value as it is written in a spec.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// An integer without a unit.
    Whole(i64),
    /// A number without a unit.
    Real(f64),
    /// A number with its unit.
    Text(String),
}

/// Names of all units.
pub(super) fn unit_names() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .iter()
        .flat_map(|family| family.units.iter().map(|(name, _)| *name))
}

/// Name of a dimension, with an article: `a time`, `size * time`.
pub(super) fn name(dimension: Dimension) -> String {
    if dimension == NUMBER {
        return "a number".to_owned();
    }
    if let Some(family) = FAMILIES.iter().find(|family| family.dimension == dimension) {
        return family.name.to_owned();
    }
    let part = |above: bool| {
        let bases = BASES.iter().zip(dimension);
        let bases = bases.filter(|(_, power)| (*power > 0) == above && *power != 0);
        bases
            .flat_map(|(base, power)| vec![*base; power.unsigned_abs().into()])
            .collect::<Vec<_>>()
            .join(" * ")
    };
    match (part(true), part(false)) {
        (above, below) if below.is_empty() => above,
        (above, below) if above.is_empty() => format!("1 / ({below})"),
        (above, below) => format!("{above} / ({below})"),
    }
}

impl DimensionedValue {
    /// Creates a number without a unit.
    pub const fn number(number: Ratio) -> Self {
        Self {
            number,
            dimension: NUMBER,
        }
    }

    /// Creates the value of an unquoted number in a spec, exactly as written.
    pub fn real(number: f64) -> Option<Self> {
        // `to_string` returns the shortest text that parses to this number, which has the value
        // that was written in the spec.
        Ratio::decimal(&number.to_string()).map(Self::number)
    }

    /// Creates a number with a unit; `None` if the unit does not exist or the number is too large.
    pub(super) fn with_unit(number: Ratio, unit: &str) -> Option<Self> {
        let mut found = FAMILIES.iter().filter_map(|family| {
            let of_family = family.units.iter().find(|(name, _)| *name == unit);
            of_family.map(|(_, factor)| (family, *factor))
        });
        let (family, factor) = found.next()?;
        let (above, below) = family.scale;
        let scale = Ratio::new(above, below)?.times(Ratio::decimal(&factor.to_string())?)?;
        Some(Self {
            number: number.times(scale)?,
            dimension: family.dimension,
        })
    }

    /// Kind of the value, with an article.
    pub fn kind(&self) -> String {
        name(self.dimension)
    }

    fn family(&self) -> Option<&'static Family> {
        FAMILIES
            .iter()
            .find(|family| family.dimension == self.dimension)
    }

    /// The number in the base unit of its family: nanoseconds, bytes, bits per second.
    fn in_base(&self) -> Option<Ratio> {
        let Some(family) = self.family() else {
            return Some(self.number);
        };
        let (above, below) = family.scale;
        self.number.times(Ratio::new(below, above)?)
    }

    /// The value, with its number in nanoseconds, bytes, bits per second or packets rounded by
    /// `to_whole`.
    pub(super) fn rounded(self, to_whole: fn(Ratio) -> i128) -> Option<Self> {
        let whole = Ratio::whole(to_whole(self.in_base()?));
        let (above, below) = self.family().map_or((1, 1), |family| family.scale);
        Some(Self {
            number: whole.times(Ratio::new(above, below)?)?,
            dimension: self.dimension,
        })
    }

    /// The value in one of the families of units `units`: the number (an integer for times, rates
    /// and sizes), and the name of the base unit.
    pub(crate) fn in_units(&self, units: &[&[Unit]]) -> Option<(Ratio, &'static str)> {
        let family = self.family()?;
        let name = family.units.first()?.0;
        let wanted = units
            .iter()
            .any(|known| known.iter().any(|(unit, _)| *unit == name));
        let base = self.in_base()?;
        let number = match self.rounds() {
            true => Ratio::whole(base.round()),
            false => base,
        };
        wanted.then_some((number, name))
    }

    /// Whether the value is rounded to whole nanoseconds, bytes or bits per second.
    fn rounds(&self) -> bool {
        let whole: [&[Unit]; 3] = [TIME, RATE, SIZE];
        self.family()
            .is_some_and(|family| whole.contains(&family.units))
    }

    /// The value as it is written in a spec. Times are rounded to the nanosecond, sizes to the
    /// byte, and rates to the bit per second, a half upwards. Numbers of packets and segments must
    /// be integers.
    ///
    /// # Errors
    /// A message that specs cannot represent the value, or that it is too large.
    pub fn show(&self) -> Result<Shown, String> {
        let large = || "the result is too large".to_owned();
        if self.dimension == NUMBER {
            return match self.number.as_whole() {
                Some(number) => i64::try_from(number).map(Shown::Whole).map_err(|_| large()),
                None => Ok(Shown::Real(self.number.real())),
            };
        }
        let Some(family) = self.family() else {
            return Err(format!(
                "the result is {}, for which there is no unit; a value is a number, a time, a rate, a size, packets or segments",
                self.kind()
            ));
        };
        if self.number.is_negative() {
            return Err(format!(
                "the result is below 0; {} cannot be negative",
                family.name
            ));
        }
        let base = self.in_base().ok_or_else(large)?;
        if self.rounds() {
            let whole = u64::try_from(base.round()).ok().filter(|&it| it < 1 << 63);
            let whole = whole.ok_or_else(large)?;
            let show: fn(u64) -> String = match family.units {
                TIME => show_time,
                SIZE => show_size,
                _ => show_rate,
            };
            return Ok(Shown::Text(show(whole)));
        }
        let unit = family.units[0].0;
        if [units::PACKETS, units::SEGMENTS].contains(&family.units) {
            let Some(whole) = base.as_whole() else {
                return Err(format!(
                    "the result is {} {unit}; expected a whole number; use round, floor or ceil",
                    base.real()
                ));
            };
            return Ok(Shown::Text(format!("{whole} {unit}")));
        }
        Ok(Shown::Text(format!("{:e} {unit}", base.real())))
    }
}
