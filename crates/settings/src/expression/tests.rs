//! Tests of expressions and of their errors.

use super::*;

fn shown(text: &str) -> Result<Shown, String> {
    let mut lookup = |name: &str, at: Range<usize>| match name {
        "rate" => constant("2 Mbit/s"),
        "rtt" => constant("500 ms"),
        "segment" => constant("1500 B"),
        "n" => Ok(DimensionedValue::number(Ratio::whole(3))),
        _ => Err(ExpressionError::new(at, format!("no parameter {name}"))),
    };
    let value = evaluate(text, &mut lookup).map_err(|fault| {
        let place = " ".repeat(fault.at.start) + &"^".repeat(fault.at.len().max(1));
        format!("{text}\n{place} {}", fault.message)
    })?;
    value.show()
}

fn text(of: &str) -> String {
    match shown(of) {
        Ok(Shown::Text(text)) => text,
        other => panic!("{of}: {other:?}"),
    }
}

#[test]
fn units_are_multiplied() {
    assert_eq!(text("2 * $rate * $rtt"), "250000 B");
    assert_eq!(text("$rate * $rtt / 2 + 1 KiB"), "63524 B");
    assert_eq!(text("64 KiB / $rtt"), "1048576 bit/s");
    assert_eq!(text("64 KiB / $rate"), "262144 us");
    assert_eq!(
        text("ceil($rate * $rtt / $segment) * 1 packet"),
        "84 packets"
    );
    assert_eq!(text("1 / 10 ms"), "1e2 Hz");
    assert_eq!(text("-(2 s - 5 s)"), "3 s");
    assert_eq!(text("min($rtt, 3 s, 200ms)"), "200 ms");
    assert_eq!(text("max($rtt, 3 min)"), "180 s");
    assert_eq!(shown("$n * 2 - 1"), Ok(Shown::Whole(5)));
    assert_eq!(shown("$n / 200"), Ok(Shown::Real(0.015)));
    assert_eq!(shown("$rtt / 1 s"), Ok(Shown::Real(0.5)));
}

/// Three times a third of a second is exactly a second, and a third of a byte is rounded only once.
#[test]
fn results_are_rounded_once_at_the_end() {
    assert_eq!(text("1 s / 3 * 3"), "1 s");
    assert_eq!(text("1 s / 3"), "333333333 ns");
    assert_eq!(text("2 s / 3"), "666666667 ns");
    assert_eq!(text("0.1 B + 0.2 B + 0.7 B"), "1 B");
    assert_eq!(text("1 B / 2"), "1 B");
    assert_eq!(text("round(1.5 B) * 2"), "4 B");
    assert_eq!(text("floor(1999.9 B) + 0.1 B"), "1999 B");
}

#[test]
fn errors_in_expressions_have_their_position() {
    for (text, at, words) in [
        ("$rtt + $rate * $rtt", 5, "a time and a size; `+` takes"),
        ("$rtt - 1", 5, "a time and a number"),
        ("max($rtt, 2)", 0, "max takes two values of one kind"),
        ("2 * $rote", 4, "no parameter rote"),
        ("2 * 5 Mbits/s", 6, "the unit `Mbits/s`"),
        ("2 * (3 + 4", 10, "the end of"),
        ("2 * * 3", 4, "found `*`"),
        ("2 ** 3", 3, "found `*`"),
        ("2 3", 2, "found `3`"),
        ("2 * rate", 4, "a parameter is written `$name`"),
        ("1 / ($n - 3)", 4, "division by 0"),
        ("log(2)", 0, "is one of those allowed"),
        ("round(1, 2)", 0, "round takes one"),
        ("min()", 4, "found `)`"),
        ("2 * $", 5, "after `$`"),
        ("", 0, "the end of"),
        ("1e30 * 1e30", 0, "too large"),
        ("1.2.3 * 2", 0, "no number"),
    ] {
        let error = shown(text).expect_err(text);
        let place = error.lines().nth(1).unwrap_or_default().find('^');
        assert!(error.contains(words), "{text}: {error}");
        assert_eq!(place, Some(at), "{error}");
    }
}

#[test]
fn some_results_cannot_be_written() {
    for (text, words) in [
        ("$rate * $rate", "size * size / (time * time)"),
        ("$rtt - 2 s", "below 0"),
        (
            "$rate * $rtt / $segment * 1 packet",
            "use round, floor or ceil",
        ),
        ("9e18 B * 9", "too large"),
    ] {
        let error = shown(text).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn nothing_is_too_deep_or_too_long_for_the_stack() {
    for deep in ["(", "-", "max("] {
        let error = shown(&deep.repeat(100_000)).expect_err(deep);
        assert!(error.contains("within one another"), "{deep}");
    }
    let long = format!("1{}", " + 1".repeat(10_000));
    assert_eq!(shown(&long), Ok(Shown::Whole(10_001)));
    let power = format!("1 s{}", " * 1 s".repeat(200));
    assert!(shown(&power).is_err());
}

#[test]
fn a_dollar_before_a_letter_names_a_parameter() {
    for (text, names) in [
        ("$rate", true),
        ("2*$rate", true),
        ("costs $5", false),
        ("$$rate", false),
        ("$$$rate", true),
        ("a $", false),
    ] {
        assert_eq!(names_parameter(text), names, "{text}");
    }
    assert!(is_compound("2 * 5 ms") && is_compound("3 s - 1 s"));
    assert!(!is_compound("5 Mbit/s") && !is_compound("-5 ms") && !is_compound("1e-3 s"));
}
