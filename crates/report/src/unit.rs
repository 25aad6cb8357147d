//! Units in which tables and figures display probes.

use anabranch_scenario::quantity::Size;
use anabranch_scenario::unit::{divisor, of_probe};

/// A display unit, with the factor to the unit of the probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisplayUnit<'a> {
    /// Name of the unit.
    pub name: &'a str,
    /// Number by which recorded values are divided.
    pub divisor: f64,
}

/// Display unit of a probe: the requested unit, or its own. Without a segment size, segments have
/// one byte.
pub fn shown<'a>(probe: &str, wanted: Option<&'a str>, segment: Option<Size>) -> DisplayUnit<'a> {
    let own = of_probe(probe);
    let name = wanted.unwrap_or(own);
    let divisor = match (own, name) {
        ("bytes", "segments") => segment.map_or(1.0, |size| size.0.max(1) as f64),
        _ => divisor(own, name).unwrap_or(1.0),
    };
    DisplayUnit { name, divisor }
}

/// Display unit of a quantity in figures: the requested unit, or Mbit/s for rates.
pub fn in_figures<'a>(wanted: Option<&'a str>, own: &str) -> Option<&'a str> {
    wanted.or(matches!(own, "bit/s" | "B/s").then_some("Mbit/s"))
}

/// Display units of differences for each measured unit, largest first.
const SUITED: &[(&str, &[&str])] = &[
    ("bit/s", &["Gbit/s", "Mbit/s", "kbit/s"]),
    ("B/s", &["Gbit/s", "Mbit/s", "kbit/s"]),
    ("s", &["s", "ms", "us"]),
    ("bytes", &["MiB", "KiB"]),
];

/// Display unit of differences that are measured in `own` (`bit/s`, or `bit/s per loss` for
/// slopes), and its factor. It is the requested unit, or the largest unit in which the greatest
/// difference is at least 1.
pub fn of_differences(
    own: &str,
    wanted: Option<&str>,
    values: impl Iterator<Item = f64>,
) -> (String, f64) {
    let (base, per) = own.split_at(own.find(" per ").unwrap_or(own.len()));
    let greatest = values.fold(0.0_f64, |most, value| most.max(value.abs()));
    let suited = SUITED.iter().find(|(known, _)| *known == base);
    let suited = || {
        let mut suited = suited?.1.iter().copied();
        suited.find(|unit| divisor(base, unit).is_some_and(|one| greatest >= one))
    };
    let shown = wanted.or_else(suited);
    match shown.and_then(|unit| Some((unit, divisor(base, unit)?))) {
        Some((unit, divisor)) => (format!("{unit}{per}"), divisor),
        None => (own.to_owned(), 1.0),
    }
}

/// Label of an axis: quantity and unit.
pub fn axis_label(quantity: &str, unit: &str) -> String {
    match unit {
        "1" | "" => quantity.to_owned(),
        unit => format!("{quantity} ({unit})"),
    }
}

/// Readable name of a metric or probe: `link utilization` for `link_utilization`.
pub fn readable(name: &str) -> String {
    name.replace('_', " ")
}

/// Formats `error, streams` and `0.01, 4` as `error 0.01, streams 4`. If a value contains a comma,
/// the texts are used unchanged.
pub fn coordinates(names: &str, values: &str) -> String {
    let (each_name, each_value): (Vec<&str>, Vec<&str>) =
        (names.split(", ").collect(), values.split(", ").collect());
    if each_name.len() != each_value.len() {
        return format!("{} {values}", readable(names));
    }
    let pair = |(name, value)| format!("{} {value}", readable(name));
    let pairs: Vec<String> = each_name.into_iter().zip(each_value).map(pair).collect();
    pairs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_segments_and_bits_megabits() {
        assert_eq!(
            shown("cwnd", Some("segments"), Some(Size(1448))),
            DisplayUnit {
                name: "segments",
                divisor: 1448.0
            }
        );
        assert_eq!(
            shown("cwnd", None, Some(Size(1448))),
            DisplayUnit {
                name: "bytes",
                divisor: 1.0
            }
        );
        assert_eq!(shown("throughput", Some("Mbit/s"), None).divisor, 1e6);
        assert_eq!(shown("rto", Some("ms"), None).divisor, 1e-3);
        assert_eq!(shown("chunk_loss_rate", Some("%"), None).divisor, 1e-2);
        assert_eq!(
            shown("sent", Some("segments"), Some(Size(1448))).divisor,
            1.0
        );
    }

    #[test]
    fn differences_are_shown_in_a_unit_that_suits_them() {
        let shown = |own: &str, values: &[f64]| of_differences(own, None, values.iter().copied());
        assert_eq!(shown("bit/s", &[2.0, -8.65e7]), ("Mbit/s".to_owned(), 1e6));
        assert_eq!(
            shown("bit/s per loss", &[4e3]),
            ("kbit/s per loss".to_owned(), 1e3)
        );
        assert_eq!(shown("s", &[0.02]), ("ms".to_owned(), 1e-3));
        assert_eq!(shown("bit/s", &[12.0]), ("bit/s".to_owned(), 1.0));
        assert_eq!(shown("packets", &[1e9]), ("packets".to_owned(), 1.0));
        let wanted = of_differences("bit/s", Some("Gbit/s"), [1e6].into_iter());
        assert_eq!(wanted, ("Gbit/s".to_owned(), 1e9));
    }

    #[test]
    fn each_value_stands_with_its_name() {
        let two = coordinates("error, streams", "0.01, 4");
        assert_eq!(two, "error 0.01, streams 4");
        assert_eq!(coordinates("buffer", "15"), "buffer 15");
        // A value with a comma cannot be distinguished from two values.
        assert_eq!(coordinates("variant", "1 s, cap 64"), "variant 1 s, cap 64");
    }
}
