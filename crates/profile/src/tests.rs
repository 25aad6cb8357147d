use super::*;

/// A lamp's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Colour {
    /// Stop.
    Red,
    /// Go.
    Green,
}
spelled!(Colour: Colour::Red = "red", Colour::Green = "green");

switches! {
    /// Which colour
    /// the light has.
    colour: Colour, "RFC 0 §1";
    /// How long it lasts.
    lasts: Span, "RFC 0 §2";
    /// How long it waits before.
    waits: Pause, "RFC 0 §3";
    /// How often it blinks.
    blinks: Limit, "RFC 0 §4";
    /// Its share of the night.
    share: Fraction, "RFC 0 §5";
}

fn profile() -> Profile {
    Profile {
        name: "lamp",
        colour: Colour::Red,
        lasts: Span(1_500_000_000),
        waits: Pause(0),
        blinks: Limit(0),
        share: Fraction(0.25),
    }
}

#[test]
fn every_switch_reads_what_it_shows() {
    let shown: Vec<_> = Profile::SWITCHES
        .iter()
        .map(|switch| profile().show(switch.name).expect("it has it"))
        .collect();
    assert_eq!(shown, ["red", "1.5 s", "0 s", "0", "0.25"]);
    for (switch, value) in Profile::SWITCHES.iter().zip(&shown) {
        let mut copy = profile();
        copy.set(switch.name, value).expect("what it shows");
        assert_eq!(copy, profile(), "{}", switch.name);
    }
    assert_eq!(profile().show("hue"), None);
}

#[test]
fn a_switch_tells_its_reason_its_clause_and_its_values() {
    let colour = Profile::SWITCHES[0];
    assert_eq!(colour.name, "colour");
    assert_eq!(colour.clause, "RFC 0 §1");
    assert_eq!(colour.about, " Which colour\n the light has.\n");
    assert_eq!(colour.allowed, "\"red\", \"green\"");
}

#[test]
fn values_have_bounds() {
    for (switch, right) in [
        ("colour", "green"),
        ("lasts", "200 ms"),
        ("lasts", "1e6"),
        ("waits", "0s"),
        ("blinks", "1000000"),
        ("share", "1"),
    ] {
        profile().set(switch, right).expect(right);
    }
    for (switch, wrong) in [
        ("colour", "Red"),
        ("lasts", "0 s"),
        ("lasts", "-1 s"),
        ("lasts", "NaN s"),
        ("lasts", "1000001 s"),
        ("waits", "-1 ms"),
        ("waits", "5 minutes"),
        ("blinks", "-1"),
        ("blinks", "1000001"),
        ("share", "0"),
        ("share", "1.1"),
        ("share", "NaN"),
    ] {
        let error = profile().set(switch, wrong).expect_err(wrong);
        assert!(
            matches!(error, SwitchError::Value { .. }),
            "{switch} = {wrong}"
        );
    }
}

#[test]
fn a_wrong_name_brings_the_nearest() {
    let error = profile().set("blink", "3").expect_err("no such switch");
    assert_eq!(
        error.to_string(),
        "there is no switch `blink`; the nearest is `blinks`"
    );
    assert_eq!(edits("kitten", "sitting"), 3);
    assert_eq!(edits("", "abc"), 3);
}
