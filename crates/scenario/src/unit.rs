//! Units of probes, and units that tables and figures can show.

use anabranch_transport::Probe;

use crate::measure::{CONSTELLATION_PROBES, LinkProbe};

/// Name of the only probe of a flow that is computed by the engine.
const GOODPUT: &str = "goodput";

/// Units that a curve or a row may have.
pub const UNITS: &[&str] = &[
    "bytes", "segments", "streams", "KiB", "MiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "packets",
    "s", "ms", "us", "1", "%",
];

/// Conversions: original unit, shown unit, and the number of original units in one shown unit.
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

/// Number of units `own` in one unit `shown`; `None` if they cannot be converted.
pub fn divisor(own: &str, shown: &str) -> Option<f64> {
    if own == shown {
        return Some(1.0);
    }
    let mut all = CONVERSIONS.iter();
    let found = all.find(|(from, to, _)| *from == own && *to == shown);
    found.map(|(_, _, divisor)| *divisor)
}

/// Number of units `to` in one unit `from`, such as 1000 for Mbit/s and kbit/s; `None` if they
/// cannot be converted.
pub fn factor(from: &str, to: &str) -> Option<f64> {
    let bases = CONVERSIONS.iter().map(|(own, ..)| *own);
    let through = |base| Some(divisor(base, from)? / divisor(base, to)?);
    match from == to {
        true => Some(1.0),
        false => bases.into_iter().find_map(through),
    }
}

/// All units to which a quantity in `unit` can be converted, in order of declaration.
pub fn alike(unit: &str) -> impl Iterator<Item = &'static str> {
    let others = UNITS.iter().copied();
    others.filter(move |other| factor(unit, other).is_some())
}

/// Units in which a quantity of the unit `own` can be shown, with `own` first.
pub fn shown_for(own: &str) -> impl Iterator<Item = &str> {
    let others = CONVERSIONS.iter().filter(move |(from, ..)| *from == own);
    std::iter::once(own).chain(others.map(|(_, to, _)| *to))
}

/// Unit of a recorded probe of a flow or a link.
pub fn of_probe(probe: &str) -> &'static str {
    if let Some(probe) = Probe::from_name(probe) {
        return probe.unit();
    }
    match LinkProbe::from_name(probe) {
        Some(probe) => probe.unit,
        None if probe == GOODPUT => "bit/s",
        None => {
            let mut all = CONSTELLATION_PROBES.iter();
            let found = all.find(|it| it.name == probe);
            found.map_or("1", |it| it.unit)
        }
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
