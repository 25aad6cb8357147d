//! Dates and times in UTC, as written in elements and by users.

use std::fmt;
use std::str::FromStr;

use sgp4::chrono::{NaiveDate, NaiveDateTime, TimeDelta, Timelike};

/// A date and time in UTC, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(pub(crate) NaiveDateTime);

/// Error: the text is not a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found {found:?}; a date is in UTC, as 2026-03-14T05:09:26.5, with or without its fraction, its time, and a Z, and with the day of the year as 2026-073T05:09:26"
)]
pub struct DateError {
    found: String,
}

impl Date {
    /// Seconds from `other` to this date.
    pub fn seconds_since(self, other: Date) -> f64 {
        let span = self.0.signed_duration_since(other.0);
        span.num_seconds() as f64 + f64::from(span.subsec_nanos()) * 1e-9
    }
}

/// Parses a number whose count of digits is in `digits`, without a sign.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let plain = digits.contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn day(text: &str) -> Option<NaiveDate> {
    let (year, rest) = text.split_once('-')?;
    let year = i32::try_from(number(year, 4..=4)?).ok()?;
    match rest.split_once('-') {
        Some((month, day)) => {
            NaiveDate::from_ymd_opt(year, number(month, 2..=2)?, number(day, 2..=2)?)
        }
        None => NaiveDate::from_yo_opt(year, number(rest, 3..=3)?),
    }
}

/// Parses a time of day; returns nanoseconds since midnight. A leap second counts as the first
/// second of the next minute.
fn time(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours = number(parts.next()?, 2..=2).filter(|it| *it < 24)?;
    let minutes = number(parts.next()?, 2..=2).filter(|it| *it < 60)?;
    let seconds = parts.next().unwrap_or("00");
    let (whole, fraction) = match seconds.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (seconds, "0"),
    };
    let whole = number(whole, 2..=2).filter(|it| *it <= 60)?;
    if parts.next().is_some() || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let nanos: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let seconds = i64::from(hours * 3600 + minutes * 60 + whole);
    Some(seconds * 1_000_000_000 + nanos.parse::<i64>().ok()?)
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let plain = text.trim();
        let plain = plain.strip_suffix(['Z', 'z']).unwrap_or(plain).trim_end();
        let (date, hour) = match plain.split_once(['T', 't', ' ']) {
            Some((date, hour)) => (date, hour),
            None => (plain, "00:00"),
        };
        let read = || {
            let midnight = day(date)?.and_hms_opt(0, 0, 0)?;
            midnight.checked_add_signed(TimeDelta::nanoseconds(time(hour)?))
        };
        read().map(Date).ok_or_else(|| DateError {
            found: text.to_owned(),
        })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0.hour(), self.0.minute(), self.0.second());
        let date = self.0.date();
        write!(f, "{date} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_every_form_of_the_standard() {
        let date = |text: &str| text.parse::<Date>().map_err(|error| error.to_string());
        let wanted = date("2026-03-14T05:09:26").unwrap();
        for text in [
            "2026-03-14T05:09:26Z",
            "2026-073T05:09:26",
            "2026-073T05:09:26.000Z",
            "2026-03-14 05:09:26",
            " 2026-03-14T05:09:26.0 ",
        ] {
            assert_eq!(date(text).unwrap(), wanted, "{text}");
        }
        let midnight = date("2026-03-14").unwrap();
        assert_eq!(wanted.seconds_since(midnight), 18_566.0);
        assert_eq!(midnight.seconds_since(wanted), -18_566.0);
        assert_eq!(
            date("2026-03-14T00:00:00.25")
                .unwrap()
                .seconds_since(midnight),
            0.25
        );
        assert_eq!(date("2024-366").unwrap(), date("2024-12-31T00:00").unwrap());
        assert_eq!(
            date("2016-12-31T23:59:60").unwrap(),
            date("2017-01-01").unwrap()
        );
        assert_eq!(wanted.to_string(), "2026-03-14 05:09:26 UTC");
    }

    #[test]
    fn invalid_dates_are_refused() {
        for text in [
            "",
            "today",
            "2026",
            "2026-3-14",
            "2026-13-01",
            "2026-02-29",
            "2025-366",
            "2026-000",
            "26-03-14",
            "2026-03-14T24:00:00",
            "2026-03-14T05",
            "2026-03-14T05:60",
            "2026-03-14T05:09:61",
            "2026-03-14T05:09:26.x",
            "2026-03-14T05:09:26+01:00",
            "2026-03-14T05:09:26:00",
            "+026-03-14",
        ] {
            let error = text.parse::<Date>().expect_err(text);
            assert!(error.to_string().starts_with("found "), "{error}");
        }
    }
}
