//! Units, and formatting of values with a unit.

use anabranch_transport::Nanos;

/// Name of a unit, and its size in base units.
pub type Unit = (&'static str, f64);

/// Units of time; the base is the nanosecond.
pub const TIME: &[Unit] = &[
    ("s", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("ns", 1.0),
    ("min", 60e9),
    ("h", 3600e9),
];
/// Units of rates; the base is the bit per second.
pub const RATE: &[Unit] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
];
/// Units of sizes, by powers of 1000 and of 1024; the base is the byte.
pub const SIZE: &[Unit] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
/// Unit of numbers of packets.
pub const PACKETS: &[Unit] = &[("packets", 1.0), ("packet", 1.0)];
/// Unit of numbers of segments or chunks.
pub const SEGMENTS: &[Unit] = &[("segments", 1.0), ("segment", 1.0)];

/// Units of lengths; the base is the metre.
pub const LENGTH: &[Unit] = &[("m", 1.0), ("km", 1e3)];
/// Units of powers; the base is the watt.
pub const POWER: &[Unit] = &[
    ("W", 1.0),
    ("mW", 1e-3),
    ("uW", 1e-6),
    ("nW", 1e-9),
    ("pW", 1e-12),
];
/// Units of frequencies; the base is the hertz.
pub const FREQUENCY: &[Unit] = &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];

/// Regular expression for a number with one of these units, for schemas.
pub fn pattern(units: &[&[Unit]]) -> String {
    let names = units.iter().flat_map(|family| family.iter());
    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
    format!(
        r"^\s*[0-9][0-9._]*([eE][+-]?[0-9]+)?\s*({})\s*$",
        names.join("|")
    )
}

/// A duration in the largest unit in which it is an integer.
pub fn show_time(span: Nanos) -> String {
    let (divisor, unit) = match span {
        ns if ns % 1_000_000_000 == 0 => (1_000_000_000, "s"),
        ns if ns % 1_000_000 == 0 => (1_000_000, "ms"),
        ns if ns % 1_000 == 0 => (1_000, "us"),
        _ => (1, "ns"),
    };
    format!("{} {unit}", span / divisor)
}

/// A size in the largest unit in which it is an integer.
pub fn show_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// A rate in the largest unit in which it is an integer.
pub fn show_rate(bits: u64) -> String {
    match bits {
        bits if bits > 0 && bits.is_multiple_of(1_000_000) => {
            format!("{} Mbit/s", bits / 1_000_000)
        }
        bits if bits > 0 && bits.is_multiple_of(1_000) => format!("{} kbit/s", bits / 1_000),
        bits => format!("{bits} bit/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_every_unit() {
        let pattern = pattern(&[PACKETS, SIZE]);
        assert!(
            pattern.ends_with("(packets|packet|B|kB|MB|GB|KiB|MiB|GiB)\\s*$"),
            "{pattern}"
        );
    }
}
