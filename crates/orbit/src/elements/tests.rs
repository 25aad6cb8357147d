use super::*;
use crate::constellation::Constellation;
use crate::sky::{Relay, Sky};

/// The elements that the definition of the format is explained by: the space station on 20 September 2008.
const STATION: &str = "ISS (ZARYA)
1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927
2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537
";

fn sky() -> Sky {
    Sky {
        relay: Relay::BentPipe,
        ..Sky::default()
    }
}

#[test]
fn elements_are_read_with_and_without_names() {
    let named = Constellation::from_elements(STATION, &sky()).expect("elements");
    assert_eq!((named.len(), named.name(0)), (1, "ISS (ZARYA)".to_owned()));
    let lines: Vec<&str> = STATION.lines().skip(1).collect();
    let plain = Constellation::from_elements(&lines.join("\n"), &sky()).expect("elements");
    assert_eq!(plain.name(0), "25544");
    assert_eq!(plain.position(0, 600.0), named.position(0, 600.0));
}

#[test]
fn what_is_no_element_is_told_with_its_line() {
    let told = |text: &str| {
        let error = Constellation::from_elements(text, &sky()).expect_err("wrong");
        error.to_string()
    };
    assert!(told("").starts_with("found 0 satellites"), "{}", told(""));
    assert!(told("A\nB\n").starts_with("line 2:"), "{}", told("A\nB\n"));
    let broken = STATION.replace("15.72125391563537", "15.72125391563538");
    assert!(told(&broken).starts_with("line 2:"), "{}", told(&broken));
    let cut: Vec<&str> = STATION.lines().take(2).collect();
    assert!(
        told(&cut.join("\n")).contains("second line"),
        "{}",
        told(&cut.join("\n"))
    );
    let linked = Constellation::from_elements(STATION, &Sky::default()).expect_err("links");
    assert!(linked.to_string().contains("bent-pipe"), "{linked}");
}

/// Sidereal time at the epoch of J2000 is 280.4606°; a sidereal day of 86164.0905 s later it is the same.
#[test]
fn sidereal_time() {
    let at = |text: &str| NaiveDateTime::parse_from_str(text, "%F %T%.f").expect("a time");
    assert!((sidereal(&at("2000-01-01 12:00:00")).to_degrees() - 280.460_618_37).abs() < 1e-9);
    let day = sidereal(&at("2000-01-02 11:56:04.0905")).to_degrees();
    assert!((day - 280.460_618_37).abs() < 1e-4, "{day}");
}

/// Skyfield 1.55 gives these places, Earth-fixed (ITRS), so many seconds after the epoch. UTC stands for UT1 here. They are less
/// than 0.9 s apart, in which the Earth turns by less than 0.45 km at this height.
#[test]
fn positions_are_those_of_skyfield() {
    let it = Constellation::from_elements(STATION, &sky()).expect("elements");
    let table = [
        (0.0, [-3_953.198_893, 1_427.509_122, 5_243.603_675]),
        (600.0, [-4_989.207_330, -2_528.511_120, 3_728.338_279]),
        (5400.0, [-2_543.811_791, 3_307.647_707, 5_268.104_549]),
        (86_400.0, [3_913.326_014, 5_480.493_628, -104.283_987]),
    ];
    for (at, [x, y, z]) in table {
        let found = it.position(0, at).expect("a place");
        let away = found.distance(Vector { x, y, z });
        assert!(away < 0.5, "{at}: {away} km");
    }
}
