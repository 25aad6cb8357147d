//! Units of probes, and the units that tables and figures may ask for.

use anabranch_transport::Probe;

use crate::measure::LinkProbe;

/// The one probe of a flow that is no transport's and whose samples have a unit.
const GOODPUT: &str = "goodput";

/// Units that a curve or a row may ask for.
pub const UNITS: &[&str] = &[
    "bytes", "segments", "streams", "KiB", "MiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "packets",
    "s", "ms", "us", "1", "%",
];

/// Units that a quantity can be shown in: its own, the shown one, and how many of its own the shown one holds.
const CONVERSIONS: &[(&str, &str, f64)] = &[
    ("bytes", "KiB", 1024.0),
    ("bytes", "MiB", 1_048_576.0),
    ("bit/s", "kbit/s", 1e3),
    ("bit/s", "Mbit/s", 1e6),
    ("bit/s", "Gbit/s", 1e9),
    ("B/s", "bit/s", 0.125),
    ("B/s", "kbit/s", 125.0),
    ("B/s", "Mbit/s", 125e3),
    ("B/s", "Gbit/s", 125e6),
    ("s", "ms", 1e-3),
    ("s", "us", 1e-6),
    ("1", "%", 1e-2),
];

/// How many of the unit `own` the unit `shown` holds; `None` where a quantity of the one cannot be shown in the other.
pub fn divisor(own: &str, shown: &str) -> Option<f64> {
    if own == shown {
        return Some(1.0);
    }
    let mut all = CONVERSIONS.iter();
    let found = all.find(|(from, to, _)| *from == own && *to == shown);
    found.map(|(_, _, divisor)| *divisor)
}

/// How many of the unit `to` the unit `from` holds: 1000 for Mbit/s in kbit/s; `None` where a quantity of the one cannot be shown in the
/// other.
pub fn factor(from: &str, to: &str) -> Option<f64> {
    let bases = CONVERSIONS.iter().map(|(own, ..)| *own);
    let through = |base| Some(divisor(base, from)? / divisor(base, to)?);
    match from == to {
        true => Some(1.0),
        false => bases.into_iter().find_map(through),
    }
}

/// The units that a quantity in any unit can be converted into, sorted as they are declared.
pub fn alike(unit: &str) -> impl Iterator<Item = &'static str> {
    let others = UNITS.iter().copied();
    others.filter(move |other| factor(unit, other).is_some())
}

/// The units that a quantity of the unit `own` can be shown in, its own first.
pub fn shown_for(own: &str) -> impl Iterator<Item = &str> {
    let others = CONVERSIONS.iter().filter(move |(from, ..)| *from == own);
    std::iter::once(own).chain(others.map(|(_, to, _)| *to))
}

/// The unit in which a probe is recorded, of a flow or of a link.
pub fn of_probe(probe: &str) -> &'static str {
    if let Some(probe) = Probe::from_name(probe) {
        return probe.unit();
    }
    match LinkProbe::from_name(probe) {
        Some(probe) => probe.unit,
        None if probe == GOODPUT => "bit/s",
        None => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_to_show_can_be_asked_for() {
        for (_, shown, divisor) in CONVERSIONS {
            assert!(UNITS.contains(shown), "{shown}");
            assert!(*divisor > 0.0);
        }
    }

    #[test]
    fn a_quantity_is_shown_only_in_units_of_its_kind() {
        assert_eq!(divisor("s", "ms"), Some(1e-3));
        assert_eq!(divisor("bytes", "bytes"), Some(1.0));
        assert_eq!(divisor("bit/s", "ms"), None);
        assert_eq!(divisor("packets", "%"), None);
        assert_eq!(factor("Mbit/s", "kbit/s"), Some(1e3));
        assert_eq!(factor("B/s", "kbit/s"), Some(8e-3));
        assert_eq!(factor("%", "1"), Some(1e-2));
        assert_eq!(factor("ms", "kbit/s"), None);
        assert_eq!(factor("mbps", "mbps"), Some(1.0));
        let all: Vec<&str> = shown_for("bit/s").collect();
        assert_eq!(all, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
    }
}
