//! Formats numbers with a suitable unit.

/// Units of rates.
pub(super) const BITS: [&str; 4] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
/// Units of sizes.
pub(super) const BYTES: [&str; 4] = ["B", "KiB", "MiB", "GiB"];

/// A number with the largest unit in which it is at least 1.
pub(super) fn scaled(mut value: f64, step: f64, units: [&str; 4]) -> String {
    let mut unit = units[0];
    for larger in &units[1..] {
        if value < step {
            break;
        }
        value /= step;
        unit = larger;
    }
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        assert_eq!(scaled(999.0, 1000.0, BITS), "999.00 bit/s");
        assert_eq!(scaled(2_500_000.0, 1000.0, BITS), "2.50 Mbit/s");
        assert_eq!(scaled(7e12, 1000.0, BITS), "7000.00 Gbit/s");
    }
}
