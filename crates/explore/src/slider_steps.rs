//! Steps of sliders: values in the syntax of a spec, so that the page need not know units.

use anabranch_report::compare::digits;
use anabranch_scenario::tree::NodeValue;
use anabranch_settings::expression::is_compound;
use anabranch_settings::quantity;
use anabranch_settings::units::{
    FREQUENCY, LENGTH, PACKETS, POWER, RATE, SEGMENTS, SIZE, TIME, Unit,
};

/// Range of a slider: from the value of the spec divided by this factor to the value multiplied by
/// it.
const SPAN: f64 = 100.0;
/// The same factor for counts, which is smaller because runs with high counts are slow.
const SPAN_OF_COUNTS: f64 = 20.0;
/// Multiples of each power of ten, and of each power of two, at which a slider has steps.
const DECADE: &[f64] = &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
const DOUBLING: &[f64] = &[1.0, 1.25, 1.5, 1.75];
/// Smallest positive step of a slider for shares.
const MIN_SHARE: f64 = 1e-4;
/// Minimum upper end of a slider for counts.
const MIN_COUNT: f64 = 16.0;

/// A family of units: all its units, those used for steps in ascending order, and the range of a
/// slider in base units if the value is zero (`"0 s"`).
struct Family {
    units: &'static [Unit],
    shown: &'static [&'static str],
    of_nothing: (f64, f64),
}

const FAMILIES: &[Family] = &[
    family(TIME, &["ns", "us", "ms", "s"], (1e6, 1e10)),
    family(RATE, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], (1e5, 1e8)),
    family(SIZE, &["B", "kB", "MB", "GB"], (1e3, 1e6)),
    family(LENGTH, &["m", "km"], (1.0, 1e4)),
    family(POWER, &["pW", "nW", "uW", "mW", "W"], (1e-3, 1.0)),
    family(FREQUENCY, &["Hz", "kHz", "MHz", "GHz"], (1e6, 1e10)),
];
const BINARY: &[&str] = &["B", "KiB", "MiB", "GiB"];

const fn family(
    units: &'static [Unit],
    shown: &'static [&'static str],
    of_nothing: (f64, f64),
) -> Family {
    Family {
        units,
        shown,
        of_nothing,
    }
}

/// Numbers from `low` to `high` that are a power of `base` times one of `steps`.
fn scale(low: f64, high: f64, base: f64, steps: &[f64]) -> Vec<f64> {
    let slack = 1.0 + 1e-9;
    let mut power = (low.ln() / base.ln()).floor() as i32;
    let mut all = Vec::new();
    while base.powi(power) <= high * slack {
        let at = base.powi(power);
        all.extend(steps.iter().map(|step| step * at));
        power += 1;
    }
    all.retain(|at| low <= at * slack && *at <= high * slack);
    all
}

/// Steps around a value of a spec, in ascending order and including the value itself; `None` for
/// values without a slider.
pub fn around(value: &NodeValue) -> Option<Vec<String>> {
    match value {
        NodeValue::Integer(number) if *number >= 0 => Some(counts(*number as f64, "")),
        NodeValue::Float(number) if (0.0..=1.0).contains(number) => Some(shares(*number)),
        NodeValue::Float(number) if *number > 0.0 => {
            let stops = scale(number / SPAN, number * SPAN, 10.0, DECADE);
            Some(texts(stops, *number, |at| digits(at, 3)))
        }
        NodeValue::Text(text) if !text.contains('$') && !is_compound(text) => quantities(text),
        _ => None,
    }
}

/// Steps for a count: all small numbers, then increasingly sparse ones.
fn counts(number: f64, unit: &str) -> Vec<String> {
    let high = (number * SPAN_OF_COUNTS).max(MIN_COUNT);
    let each = (0..=MIN_COUNT as u32).map(f64::from);
    let further = scale(MIN_COUNT, high, 10.0, DECADE).into_iter();
    // The smallest step is 1 unless the value is 0, because a count of zero is rarely intended and
    // often not allowed.
    let least = if number == 0.0 { 0.0 } else { 1.0 };
    let stops = each.chain(further.map(f64::round));
    let stops = stops.filter(|at| *at >= least).collect();
    texts(stops, number, |at| match unit {
        "" => at.to_string(),
        unit => format!("{at} {unit}"),
    })
}

fn shares(number: f64) -> Vec<String> {
    let stops = [0.0].into_iter();
    let stops = stops.chain(scale(MIN_SHARE, 1.0, 10.0, DECADE)).collect();
    // The steps are formatted as floats, as in `1.0`, so that a spec parses them as floats.
    texts(stops, number, |at| format!("{:?}", rounded(at)))
}

fn quantities(text: &str) -> Option<Vec<String>> {
    for (units, unit) in [(PACKETS, "packets"), (SEGMENTS, "segments")] {
        if let Ok((number, _)) = quantity::parse(text, "", "", &[units]) {
            return Some(with_own(counts(number.round(), unit), text, number, units));
        }
    }
    for family in FAMILIES {
        let Ok((number, unit)) = quantity::parse(text, "", "", &[family.units]) else {
            continue;
        };
        let (low, high) = match number {
            0.0 => family.of_nothing,
            number => (number / SPAN, number * SPAN),
        };
        let binary = BINARY[1..].contains(&unit);
        let (base, steps, shown) = match binary {
            true => (2.0, DOUBLING, BINARY),
            false => (10.0, DECADE, family.shown),
        };
        let mut stops = scale(low, high, base, steps);
        if number == 0.0 {
            stops.insert(0, 0.0);
        }
        let stops = texts(stops, number, |at| written(at, family.units, shown));
        return Some(with_own(stops, text, number, family.units));
    }
    None
}

/// Formats a number of base units, in the largest unit in which it is at least 1.
fn written(number: f64, units: &[Unit], shown: &[&str]) -> String {
    let of = |name: &str| units.iter().find(|(unit, _)| *unit == name);
    let known = shown.iter().filter_map(|name| of(name));
    // Zero is formatted in the largest unit.
    let fits = |(_, size): &&Unit| number == 0.0 || *size <= number * 1.000_001;
    let unit = known.clone().rev().find(fits);
    match unit.or_else(|| known.clone().next()) {
        Some((name, size)) => format!("{} {name}", rounded(number / size)),
        None => number.to_string(),
    }
}

/// Rounds away the errors of binary fractions.
fn rounded(number: f64) -> f64 {
    let text = digits(number, 9);
    text.parse().unwrap_or(number)
}

/// Formats the steps; the value of the spec is always one of them.
fn texts(mut stops: Vec<f64>, own: f64, text: impl Fn(f64) -> String) -> Vec<String> {
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    stops.retain(|at| !same(*at, own));
    stops.push(own);
    stops.sort_by(f64::total_cmp);
    let mut texts: Vec<String> = stops.into_iter().map(text).collect();
    texts.dedup();
    texts
}

/// Replaces the step that equals the value of the spec by the text in the spec.
fn with_own(mut stops: Vec<String>, text: &str, number: f64, units: &[Unit]) -> Vec<String> {
    let same = |stop: &String| {
        let read = quantity::parse(stop, "", "", &[units]);
        read.is_ok_and(|(at, _)| (at - number).abs() <= 1e-6 * number.abs())
    };
    if let Some(stop) = stops.iter_mut().find(|stop| same(stop)) {
        text.clone_into(stop);
    }
    stops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        around(&NodeValue::Text(text.to_owned())).expect("a slider")
    }

    #[test]
    fn a_slider_has_the_specs_own_value_as_it_is_written_and_round_ones_around_it() {
        let rates = of("2.048 Mbit/s");
        let at = rates
            .iter()
            .position(|it| it == "2.048 Mbit/s")
            .expect("its own");
        assert_eq!(
            rates[at - 1..=at + 1],
            ["2 Mbit/s", "2.048 Mbit/s", "2.5 Mbit/s"]
        );
        assert_eq!(rates[0], "25 kbit/s");
        assert_eq!(rates.last().expect("stops"), "200 Mbit/s");
        let times = of("250 ms");
        assert!(times.contains(&"1 s".to_owned()) && times.contains(&"2.5 ms".to_owned()));
        assert_eq!(of("64 KiB").iter().filter(|it| *it == "64 KiB").count(), 1);
        assert!(of("64 KiB").contains(&"80 KiB".to_owned()));
        assert!(of("10 packets").contains(&"11 packets".to_owned()));
        assert_eq!(of("1 packet")[0], "1 packet");
    }

    #[test]
    fn shares_end_at_one_and_begin_at_none() {
        let shares = around(&NodeValue::Float(0.015)).expect("a slider");
        assert_eq!(shares[..2], ["0.0", "0.0001"]);
        assert_eq!(shares.last().expect("stops"), "1.0");
        assert!(shares.contains(&"0.015".to_owned()));
    }

    #[test]
    fn every_stop_is_read_back_and_they_rise() {
        for text in [
            "0 s",
            "250 ms",
            "2 Mbit/s",
            "1448 B",
            "64 KiB",
            "45 segments",
            "3 GHz",
            "0 B",
        ] {
            let stops = of(text);
            let read = |stop: &String| {
                let families = [TIME, RATE, SIZE, PACKETS, SEGMENTS, FREQUENCY];
                quantity::parse(stop, "", "", &families)
                    .expect("a quantity")
                    .0
            };
            let numbers: Vec<f64> = stops.iter().map(read).collect();
            assert!(
                numbers.windows(2).all(|pair| pair[0] < pair[1]),
                "{text}: {stops:?}"
            );
            assert!(stops.iter().any(|stop| stop == text), "{text}: {stops:?}");
        }
    }

    #[test]
    fn only_plain_numbers_have_a_slider() {
        for text in ["rfc9260", "$rate", "2 * 5 ms", "", "5 Mbits"] {
            assert_eq!(around(&NodeValue::Text(text.to_owned())), None, "{text}");
        }
        assert_eq!(around(&NodeValue::Integer(-1)), None);
    }
}
