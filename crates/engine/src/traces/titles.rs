//! The line of titles of a trace: the units of its columns, where the titles say them, as `time (ms),rate_mbps` does.
//!
//! A number that is read in another unit than the one above it would make a world that nobody measured, and no error would tell.

/// Units of a time, as titles write them, and what a number in one is followed by in a spec.
const TIMES: &[(&[&str], &str)] = &[
    (&["s", "sec", "secs", "second", "seconds"], " s"),
    (&["ms", "msec", "millisecond", "milliseconds"], " ms"),
    (&["us", "usec", "microsecond", "microseconds"], " us"),
    (&["ns", "nanosecond", "nanoseconds"], " ns"),
    (&["min", "minute", "minutes"], " min"),
];

/// Units of a rate.
const RATES: &[(&[&str], &str)] = &[
    (&["bit/s", "bits/s", "bps"], " bit/s"),
    (&["kbit/s", "kbits/s", "kbps", "kb/s"], " kbit/s"),
    (&["mbit/s", "mbits/s", "mbps", "mb/s"], " Mbit/s"),
    (&["gbit/s", "gbits/s", "gbps", "gb/s"], " Gbit/s"),
];

/// The unit that follows the numbers of a column of times.
///
/// # Errors
/// The title names a unit that is none of a time.
pub fn of_times(title: &str) -> Result<&'static str, String> {
    unit(title, TIMES).map(|unit| unit.unwrap_or(" s"))
}

/// The unit that follows the numbers of a column of values, which without one are in `unit`: of a rate, of a time, or `""`, shares.
///
/// # Errors
/// The title names a unit that is none of these values.
pub fn of_values(title: &str, unit_without: &'static str) -> Result<&'static str, String> {
    let known = match unit_without {
        " bit/s" => RATES,
        " s" => TIMES,
        _ => &[],
    };
    unit(title, known).map(|unit| unit.unwrap_or(unit_without))
}

/// The unit that the last word of a title is, if it is one.
fn unit(title: &str, known: &[(&[&str], &'static str)]) -> Result<Option<&'static str>, String> {
    let is_part = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '%');
    let mut words = title.split(|c: char| !is_part(c));
    let Some(last) = words.rfind(|word| !word.is_empty()) else {
        return Ok(None);
    };
    let lower = last.to_ascii_lowercase();
    let of = |units: &[(&[&str], &'static str)]| {
        let mut units = units.iter();
        let found = units.find(|(words, _)| words.contains(&lower.as_str()));
        found.map(|(_, unit)| *unit)
    };
    // `MB/s` and `MBps` are bytes, and differ from bits by a letter.
    let prefixed = matches!(of(RATES), Some(unit) if unit != " bit/s");
    let bytes = last == "Bps" || last.contains('B') && prefixed;
    let share = matches!(lower.as_str(), "%" | "percent" | "pct");
    match of(known) {
        Some(unit) if !bytes => Ok(Some(unit)),
        None if of(TIMES).is_none() && of(RATES).is_none() && lower != "b/s" && !share => Ok(None),
        _ => Err(format!(
            "found the title {title:?}; allowed units: {}",
            allowed(known)
        )),
    }
}

fn allowed(known: &[(&[&str], &str)]) -> String {
    let units: Vec<&str> = known.iter().map(|(_, unit)| unit.trim()).collect();
    match units.is_empty() {
        true => "none, shares are from 0 to 1".to_owned(),
        false => units.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_the_unit_of_its_column() {
        for title in ["time", "t", "at", "", "timestamp", "t_s", "seconds"] {
            assert_eq!(of_times(title), Ok(" s"), "{title}");
        }
        for title in ["time_ms", "Time (ms)", "t [msec]", "ms"] {
            assert_eq!(of_times(title), Ok(" ms"), "{title}");
        }
        for title in ["mbps", "rate_mbps", "Rate (Mbit/s)", "dl Mbps", "Mb/s"] {
            assert_eq!(of_values(title, " bit/s"), Ok(" Mbit/s"), "{title}");
        }
        assert_eq!(of_values("rate", " bit/s"), Ok(" bit/s"));
        assert_eq!(of_values("delay_ms", " s"), Ok(" ms"));
        assert_eq!(of_values("loss", ""), Ok(""));
    }

    #[test]
    fn a_unit_of_something_else_is_refused() {
        for title in ["rate_MBps", "kB/s", "B/s", "Bps", "rate (ms)"] {
            let error = of_values(title, " bit/s").expect_err(title);
            assert!(error.ends_with("bit/s, kbit/s, Mbit/s, Gbit/s"), "{error}");
        }
        assert!(of_times("mbps").is_err());
        assert!(of_values("loss (%)", "").is_err());
        assert!(of_values("loss (ms)", "").is_err());
    }
}
