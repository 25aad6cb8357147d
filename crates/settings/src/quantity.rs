//! Parsing of quantities, which are numbers with a unit.

use crate::expression::{Ratio, constant, is_compound};
use crate::nearest;
use crate::units::Unit;

/// Splits a text such as `"2 Mbit/s"` into number and unit. Returns the number in base units, and
/// the unit. `what` and `example` are used in errors: `a rate`, `2 Mbit/s`. An expression without
/// parameters, such as `"2 * 250 ms"`, may replace the number.
///
/// # Errors
/// A message: there is no number or no unit, the unit is unknown, or the number is negative or does
/// not fit into 64 bits.
pub fn parse(
    text: &str,
    what: &str,
    example: &str,
    units: &[&[Unit]],
) -> Result<(f64, &'static str), String> {
    if is_compound(text) {
        let (number, unit) = compute(text, what, example, units)?;
        return Ok((number.real(), unit));
    }
    let names = || {
        units
            .iter()
            .flat_map(|family| family.iter().map(|(name, _)| *name))
    };
    let allowed = || names().collect::<Vec<_>>().join(", ");
    let text = text.trim();
    let (number, unit) = split(text);
    let Ok(number) = number.parse::<f64>() else {
        return Err(format!(
            "found {text:?}, which does not begin with a number; write {what} as {example:?}"
        ));
    };
    if unit.is_empty() {
        return Err(format!(
            "found {text:?} without a unit; allowed units: {}; for example {example:?}",
            allowed()
        ));
    }
    let all = units.iter().flat_map(|family| family.iter());
    let Some(&(name, factor)) = all.clone().find(|(name, _)| *name == unit) else {
        if unit.starts_with(',') {
            return Err(format!(
                "found {text:?}; write decimals with a point, as in {:?}",
                text.replacen(',', ".", 1)
            ));
        }
        let hint = hint(unit, names);
        return Err(format!(
            "found the unit {unit:?} in {text:?}; allowed units: {}{hint}",
            allowed()
        ));
    };
    if !number.is_finite() || number * factor > 9e18 {
        return Err(format!("found {text:?}, which is too large"));
    }
    if number < 0.0 {
        return Err(format!("found {text:?}; {what} cannot be negative"));
    }
    Ok((number * factor, name))
}

/// Suggestion for an unknown unit.
fn hint<'a, N: Iterator<Item = &'a str>>(unit: &str, names: impl Fn() -> N) -> String {
    let in_bytes = unit.contains('B') && !unit.to_lowercase().contains("bit");
    if in_bytes && names().any(|name| name == "bit/s") {
        return "; rates are in bits, and a byte has 8".to_owned();
    }
    // The micro sign has two code points, neither of which resembles the letter `u` that specs use.
    let plain = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let name = nearest(&plain, names());
    name.map_or(String::new(), |name| format!("; did you mean {name:?}?"))
}

/// A number of base units that was rounded to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The rounded number; a half is rounded up.
    pub number: u64,
    /// Whether the number was already an integer.
    pub exact: bool,
    /// Unit that was written.
    pub unit: &'static str,
}

/// Like [`parse`], for quantities that are integers in the base unit. Unlike a 64-bit float, the
/// result is also exact from 2^53 on.
///
/// # Errors
/// The errors of [`parse`].
pub fn whole(text: &str, what: &str, example: &str, units: &[&[Unit]]) -> Result<Whole, String> {
    let (near, unit) = parse(text, what, example, units)?;
    let exact = match is_compound(text) {
        true => Some(compute(text, what, example, units)?.0),
        false => {
            let mut all = units.iter().flat_map(|family| family.iter());
            let factor = all
                .find(|(name, _)| *name == unit)
                .map(|(_, factor)| *factor);
            let factor = factor.and_then(|factor| Ratio::decimal(&factor.to_string()));
            let number = Ratio::decimal(&split(text.trim()).0);
            number
                .zip(factor)
                .and_then(|(number, factor)| number.times(factor))
        }
    };
    // If the number has too many digits for exact arithmetic, the floating-point result is rounded
    // instead.
    let number = exact.and_then(|exact| u64::try_from(exact.round()).ok());
    Ok(Whole {
        number: number.unwrap_or(near.round() as u64),
        exact: exact.is_some_and(|exact| exact.as_whole().is_some()),
        unit,
    })
}

/// Like [`whole`], for a text that is an expression.
fn compute(
    text: &str,
    what: &str,
    example: &str,
    units: &[&[Unit]],
) -> Result<(Ratio, &'static str), String> {
    let value = constant(text).map_err(|fault| fault.message)?;
    let Some((number, unit)) = value.in_units(units) else {
        let kind = value.kind();
        return Err(format!(
            "found {text:?}, which is {kind}; expected {what}, such as {example:?}"
        ));
    };
    value
        .show()
        .map_err(|message| format!("found {text:?}: {message}"))?;
    Ok((number, unit))
}

/// Number at the start of the text, without separators, and the remaining text.
fn split(text: &str) -> (String, &str) {
    let is_number = |i: usize, c: char| {
        c.is_ascii_digit()
            || matches!(c, '.' | '-' | '+' | '_')
            || (c == 'e' && is_exponent(text, i))
    };
    let end = text
        .char_indices()
        .find(|&(i, c)| !is_number(i, c))
        .map_or(text.len(), |(i, _)| i);
    (text[..end].replace('_', ""), text[end..].trim())
}

/// Whether the `e` at index `i` belongs to a number (`1e6 bit/s`), and not to a unit.
fn is_exponent(text: &str, i: usize) -> bool {
    i > 0 && text[i + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{RATE, SIZE, TIME};

    #[test]
    fn sizes_go_by_thousands_and_by_1024_and_rates_have_two_spellings() {
        let size = |text: &str| whole(text, "a size", "1448 B", &[SIZE]).map(|it| it.number);
        assert_eq!(
            ["1 GB", "1 GiB", "1.5MB", "1.5 MiB", "2kB", "2KiB"].map(size),
            [
                Ok(1_000_000_000),
                Ok(1 << 30),
                Ok(1_500_000),
                Ok(3 << 19),
                Ok(2000),
                Ok(2048)
            ]
        );
        let rate = |text: &str| whole(text, "a rate", "2 Mbit/s", &[RATE]).map(|it| it.number);
        for (word, letters) in RATE
            .iter()
            .map(|(name, _)| *name)
            .zip(["bps", "kbps", "Mbps", "Gbps"])
        {
            assert_eq!(rate(&format!("3 {word}")), rate(&format!("3{letters}")));
        }
        assert_eq!(rate("10 Mbps"), Ok(10_000_000));
        // A unit such as Gbps is also accepted in a product.
        assert_eq!(rate("2 * 5 Gbps"), Ok(10_000_000_000));
        assert_eq!(size("2 * 1 GiB"), Ok(1 << 31));
    }

    #[test]
    fn an_unknown_unit_is_answered_with_those_there_are() {
        let error = parse("1 Gib", "a size", "1448 B", &[SIZE]).expect_err("no such unit");
        assert!(
            error.contains("allowed units: B, kB, MB, GB, KiB, MiB, GiB"),
            "{error}"
        );
        assert!(error.ends_with("did you mean \"GiB\"?"), "{error}");
    }

    #[test]
    fn a_unit_in_words_is_known() {
        for (text, units, meant) in [
            ("60 sec", TIME, "s"),
            ("5 seconds", TIME, "s"),
            ("20 msec", TIME, "ms"),
            ("7 microseconds", TIME, "us"),
            ("2 minutes", TIME, "min"),
            ("3 hours", TIME, "h"),
            ("10 Mbit", RATE, "Mbit/s"),
            ("5 kbits", RATE, "kbit/s"),
            ("1500 bytes", SIZE, "B"),
            ("64 KB", SIZE, "kB"),
        ] {
            let error = parse(text, "it", "1 s", &[units]).expect_err("no such unit");
            let hint = format!("; did you mean {meant:?}?");
            assert!(error.ends_with(&hint), "{error}");
        }
    }

    #[test]
    fn a_micro_sign_means_a_millionth_and_bytes_are_no_bits() {
        let told =
            |text: &str, units| parse(text, "it", "1 s", &[units]).expect_err("no such unit");
        for sign in ["40 \u{b5}s", "40 \u{3bc}s"] {
            let error = told(sign, TIME);
            assert!(error.ends_with("did you mean \"us\"?"), "{error}");
        }
        for bytes in ["5 MB/s", "5 MB", "5 KB/s", "5 MiB/s"] {
            let error = told(bytes, RATE);
            assert!(
                error.ends_with("; rates are in bits, and a byte has 8"),
                "{error}"
            );
        }
        for bits in ["5 Mb/s", "5 MBit/s"] {
            assert!(told(bits, RATE).contains("did you mean \"M"), "{bits}");
        }
    }
}
