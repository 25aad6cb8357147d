//! Parsing of path properties in the notation of the command line.

use anabranch_scenario::quantity::Rate;

/// Parses a rate; `10Mbit` means `10 Mbit/s`.
///
/// # Errors
/// A message with the text found and the values allowed.
pub fn rate(text: &str) -> Result<Rate, String> {
    if text.trim_end().ends_with("bit") {
        format!("{}/s", text.trim_end()).parse()
    } else {
        text.parse()
    }
}

/// Parses a share, such as `1%` or `0.01`.
///
/// # Errors
/// A message with the text found and the values allowed.
pub fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("found {text:?}; write a share of 0 % to 100 % as 1% or 0.01");
    let trimmed = text.trim();
    let (number, divisor) = trimmed
        .strip_suffix('%')
        .map_or((trimmed, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().map_err(|_| wrong())? / divisor;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares_are_read_with_and_without_spaces() {
        assert_eq!(
            [rate("10Mbit"), rate("10 Mbit/s")],
            [Ok(Rate(10_000_000)), Ok(Rate(10_000_000))]
        );
        assert_eq!(
            [share("1%"), share("1 %"), share("0.01"), share("0")],
            [Ok(0.01), Ok(0.01), Ok(0.01), Ok(0.0)]
        );
        for wrong in ["", "%", "101%", "-1%", "nan", "1.5", "1 percent"] {
            assert!(share(wrong).is_err(), "{wrong:?}");
        }
        assert!(rate("10 Mbits").is_err_and(|message| message.contains("did you mean")));
    }
}
