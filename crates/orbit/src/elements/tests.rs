use super::*;
use crate::constellation::Constellation;
use crate::conventions::{OrbitConfig, Relay};

/// Example in the definition of the format: the space station on 20 September 2008.
const STATION: &str = "ISS (ZARYA)
1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927
2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537
";

fn sky() -> OrbitConfig {
    OrbitConfig {
        relay: Relay::BentPipe,
        ..OrbitConfig::default()
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

/// A file in the format of Hypatia's satgenpy has two counts in the first line, and numbers in the
/// names.
#[test]
fn counts_of_planes_and_satellites_may_stand_before() {
    let set = |number: u32, line: &str, checksums: [u32; 2]| {
        let [first, second] = checksums;
        format!(
            "{line}\n1 0000{number}U 00000ABC 00001.00000000  .00000000  00000-0  00000+0 0    0{first}\n\
             2 0000{number}  53.0000   0.0000 0000001   0.0000   0.0000 15.19000000    0{second}\n"
        )
    };
    let sets = set(1, "Starlink-550 0", [4, 8]) + &set(2, "Starlink-550 1", [5, 9]);
    let read = |text: &str| Constellation::from_elements(text, &sky()).expect("elements");
    let plain = read(&sets);
    for counts in ["1 2", "2 1", "\u{feff}1 2\r", "# made\n 2 1 "] {
        let it = read(&format!("{counts}\n{sets}"));
        assert_eq!(it.catalogue(), plain.catalogue(), "{counts}");
        assert_eq!((it.len(), it.name(0)), (2, "Starlink-550 0".to_owned()));
        assert_eq!(it.position(1, 600.0), plain.position(1, 600.0));
    }
    for (counts, satellites) in [("72 22", 1584), ("1 1", 1)] {
        let it = read(&format!("{counts}\n{sets}"));
        let notes = &it.catalogue().expect("elements").notes;
        let [planes, each] = [0, 1].map(|at| counts.split(' ').nth(at).expect("two"));
        let note = format!(
            "line 1: found {planes} planes of {each} satellites, {satellites} in all; the file has usable elements of 2"
        );
        assert_eq!(notes[..], [note], "{counts}");
    }
    // A name that consists of two numbers should be read as a name.
    let named = set(1, "72 22", [4, 8]);
    let it = read(&named);
    assert_eq!((it.len(), it.name(0)), (1, "72 22".to_owned()));
    assert_eq!(it.catalogue().expect("elements").notes, [""; 0]);
    // A line of counts alone should not create a satellite.
    let none = Constellation::from_elements("1 1\n", &sky()).expect_err("no elements");
    assert!(none.to_string().contains("found 0 satellites"), "{none}");
}

/// The verification of SGP4 of 2006 (Vallado, Crawford, Hujsak, Kelso, "Revisiting Spacetrack
/// Report #3") lists these positions of satellite 5 in SGP4's frame, with the constants of WGS 72.
/// With the constants of WGS 84 they would differ by some hundred metres.
#[test]
fn sgp4_computes_with_wgs_72() {
    let lines = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753
2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667
";
    let it = Constellation::from_elements(lines, &sky()).expect("elements");
    let start = it.catalogue().expect("elements").start;
    for (minutes, [x, y, z]) in [
        (0.0, [7_022.465_292_66, -1_400.082_967_55, 0.039_951_55]),
        (
            360.0,
            [-7_154.031_202_02, -3_783.176_825_04, -3_536.194_122_94],
        ),
    ] {
        let at = minutes * 60.0;
        let found = it.position(0, at).expect("a place");
        let found = found.turned(sidereal(&start.0) + SIDEREAL * at);
        let away = found.distance(Vector { x, y, z });
        assert!(away < 1e-5, "{minutes}: {away} km");
    }
}

const KEYS: [&str; 9] = [
    "EPOCH",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "NORAD_CAT_ID",
    "BSTAR",
];

/// Values of the station's elements, with a given date and catalogue number.
fn values<'a>(epoch: &'a str, number: &'a str) -> [&'a str; 9] {
    [
        epoch,
        "15.72125391",
        "0.0006703",
        "51.6416",
        "247.4627",
        "130.5360",
        "325.0288",
        number,
        "-1.1606E-05",
    ]
}

fn kvn(name: &str, values: &[&str; 9]) -> String {
    let mut text = format!(
        "CCSDS_OMM_VERS = 3.0\nCOMMENT = a = b\nCREATION_DATE = 2026-01-01T00:00:00\nORIGINATOR = X\n\nOBJECT_NAME = {name}\n\
         CENTER_NAME = EARTH\nREF_FRAME = TEME\nTIME_SYSTEM = UTC\nMEAN_ELEMENT_THEORY = SGP/SGP4\n"
    );
    for (key, value) in KEYS.iter().zip(values) {
        let unit = if *key == "MEAN_MOTION" {
            " [rev/day]"
        } else {
            ""
        };
        text += &format!("{key} = {value}{unit}\n");
    }
    text
}

fn xml(name: &str, values: &[&str; 9]) -> String {
    let mut text = format!(
        "<omm id=\"CCSDS_OMM_VERS\" version=\"2.0\"><!-- <omm> --><header/><body><segment><metadata><OBJECT_NAME>{name}\
         </OBJECT_NAME><ndm:REF_FRAME>TEME</ndm:REF_FRAME></metadata>\n<data>"
    );
    for (key, value) in KEYS.iter().zip(values) {
        text += &format!("<{key} units=\"deg\">\n{value}</{key}>");
    }
    text + "</data></segment></body></omm>\n"
}

fn json(name: &str, values: &[&str; 9]) -> String {
    let pair = |(key, value): (&&str, &&str)| match *key {
        "ECCENTRICITY" | "INCLINATION" => format!("\"{key}\": {value}"),
        _ => format!("\"{key}\": \"{value}\""),
    };
    let pairs: Vec<String> = KEYS.iter().zip(values).map(pair).collect();
    format!("{{\"OBJECT_NAME\": \"{name}\", {}}}", pairs.join(", "))
}

/// All forms of CCSDS 502.0-B should have the same result as the two lines, also with numbers of
/// nine digits and every date format of the standard.
#[test]
fn messages_are_read_in_every_form() {
    let lines = Constellation::from_elements(STATION, &sky()).expect("elements");
    let place = lines.position(0, 600.0).expect("a place");
    // The date is day 264.51782528 of a leap year.
    let dates = ["2008-09-20T12:25:40.104192", "2008-264T12:25:40.104192Z"];
    let one = values(dates[0], "25544");
    let other = values(dates[1], "123456789");
    let csv = format!(
        "OBJECT_NAME,{}\nA & B,{}\n\"C, D\",{}\n",
        KEYS.join(","),
        one.join(","),
        other.join(",")
    );
    for (form, text) in [
        ("KVN", kvn("A & B", &one) + &kvn("C, D", &other)),
        (
            "XML",
            format!(
                "\u{feff}<?xml version=\"1.0\"?>\n<ndm>{}{}</ndm>",
                xml("A &amp; B", &one),
                xml("<![CDATA[C, D]]>", &other)
            ),
        ),
        (
            "JSON",
            format!("[{},\n{}]", json("A & B", &one), json("C, D", &other)),
        ),
        ("CSV", csv),
    ] {
        let it = Constellation::from_elements(&text, &sky());
        let it = it.unwrap_or_else(|error| panic!("{form}: {error}"));
        let names: Vec<String> = (0..it.len()).map(|number| it.name(number)).collect();
        assert_eq!(names, ["A & B", "C, D"], "{form}");
        for number in 0..2 {
            let away = it.position(number, 600.0).expect("a place").distance(place);
            assert!(away < 1e-3, "{form}: {away} km");
        }
        assert_eq!(it.catalogue().expect("elements").notes, [""; 0], "{form}");
    }
    let alone = json("", &other).replace("\"OBJECT_NAME\": \"\", ", "");
    let alone = Constellation::from_elements(&alone, &sky()).expect("a message");
    assert_eq!(alone.name(0), "123456789");
    // The date has no fraction of a second.
    let whole = kvn("A", &values("2008-09-20T12:25:40", "1"));
    let whole = Constellation::from_elements(&whole, &sky()).expect("a message");
    assert_eq!(
        whole.catalogue().expect("elements").start.to_string(),
        "2008-09-20 12:25:40 UTC"
    );
}

#[test]
fn one_odd_entry_does_not_refuse_a_catalogue() {
    let good = values("2008-264T12:25:40", "7");
    let with = |at: usize, value: &'static str| {
        let mut values = values("2008-264T12:25:40", "8");
        values[at] = value;
        values
    };
    let oddities = [
        (with(0, "yesterday"), "EPOCH: found \"yesterday\""),
        (with(1, ""), "MEAN_MOTION is missing"),
        (
            with(2, "1.5"),
            "found the eccentricity 1.5; allowed: from 0 to below 1",
        ),
        (
            with(3, "NaN"),
            "INCLINATION: found \"NaN\"; expected a number",
        ),
        (with(7, "T0001"), "NORAD_CAT_ID: found \"T0001\""),
    ];
    for (odd, words) in oddities {
        for text in [
            kvn("A", &good) + &kvn("B", &odd),
            xml("A", &good) + &xml("B", &odd),
            format!("[{}, {}]", json("A", &good), json("B", &odd))
                .replace("\"INCLINATION\": NaN", "\"INCLINATION\": \"NaN\""),
            format!(
                "{}\n{}\n{}\n",
                KEYS.join(","),
                good.join(","),
                odd.join(",")
            ),
        ] {
            let it = Constellation::from_elements(&text, &sky());
            let it = it.unwrap_or_else(|error| panic!("{text}: {error}"));
            let [note] = &it.catalogue().expect("elements").notes[..] else {
                panic!("{words}: {text}");
            };
            assert!(
                note.starts_with("1 entry is left out; the first: ") && note.contains(words),
                "{note}"
            );
            assert_eq!(it.len(), 1);
        }
    }
    let frame = kvn("B", &good).replace("TEME", "GCRF");
    let error = Constellation::from_elements(&frame, &sky()).expect_err("another frame");
    assert!(
        error
            .to_string()
            .contains("REF_FRAME: found \"GCRF\"; allowed: TEME"),
        "{error}"
    );
    let two = STATION.to_owned()
        + "B\n1 25544U broken\n2 25544 broken\nC\nD\n"
        + &STATION.replace("ISS", "II");
    let it = Constellation::from_elements(&two, &sky()).expect("two of five");
    assert_eq!((it.len(), it.name(0)), (1, "II (ZARYA)".to_owned()));
    let notes = &it.catalogue().expect("elements").notes;
    assert!(
        notes[0].starts_with("3 entries are left out; the first: line 5: "),
        "{notes:?}"
    );
    assert!(notes[1].contains("nearer to the start"), "{notes:?}");
}

#[test]
fn old_elements_are_refused_or_taken() {
    let day = |day: &'static str, number: &'static str| values(day, number);
    let fresh = day("2026-03-14", "1");
    let before = day("2026-02-27", "2");
    let text = |all: &[&[&str; 9]]| -> String { all.iter().map(|it| kvn("A", it)).collect() };
    let taking = |start: Option<&str>, old| Taking {
        start: start.map(|it| it.parse().expect("a date")),
        old,
    };
    let read = |text: &str, taking| Constellation::of_catalogue(text, &sky(), taking);
    let it = read(&text(&[&fresh, &before]), Taking::default()).expect("one of two");
    let catalogue = it.catalogue().expect("elements");
    assert_eq!((it.len(), catalogue.ages), (1, [0.0; 3]));
    assert!(
        catalogue.notes[0].starts_with(
            "1 satellite is left out, with elements more than 14 days from the start, "
        ),
        "{:?}",
        catalogue.notes
    );
    let it = read(&text(&[&fresh, &before]), taking(None, true)).expect("both");
    assert_eq!(it.catalogue().expect("elements").ages, [0.0, 15.0, 15.0]);
    // With a time 0 between the dates of the two sets of elements, both sets should be used,
    // including the later one.
    let it = read(&text(&[&fresh, &before]), taking(Some("2026-03-02"), false)).expect("both");
    let catalogue = it.catalogue().expect("elements");
    assert_eq!((it.len(), catalogue.ages), (2, [3.0, 12.0, 12.0]));
    assert_eq!(catalogue.start.to_string(), "2026-03-02 00:00:00 UTC");
    let error =
        read(&text(&[&fresh, &before]), taking(Some("2026-06-01"), false)).expect_err("old");
    let words = "2 of 2 satellites have elements of a date more than 14 days from the start, 2026-06-01 00:00:00 UTC; the elements are of 2026-02-27 00:00:00 UTC to 2026-03-14 00:00:00 UTC";
    assert!(error.to_string().starts_with(words), "{error}");
    assert_eq!(
        read(&text(&[&fresh]), taking(Some("2026-06-01"), true))
            .expect("taken")
            .len(),
        1
    );
    // If time 0 is one day later, the position at 60 s should be the former position at one day and
    // 60 s.
    let [now, then] = [None, Some("2026-03-15")]
        .map(|it| read(&text(&[&fresh]), taking(it, false)).expect("fresh"));
    let away = now
        .position(0, 86_400.0 + 60.0)
        .expect("a place")
        .distance(then.position(0, 60.0).expect("a place"));
    assert!(away < 0.01, "{away}");
}

#[test]
fn invalid_elements_are_reported_with_their_line() {
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
    let linked = Constellation::from_elements(STATION, &OrbitConfig::default()).expect_err("links");
    assert!(linked.to_string().contains("bent-pipe"), "{linked}");
}

/// The sidereal time at the epoch J2000 is 280.4606°, and it should be the same after a sidereal
/// day of 86164.0905 s.
#[test]
fn sidereal_time() {
    let at = |text: &str| NaiveDateTime::parse_from_str(text, "%F %T%.f").expect("a time");
    assert!((sidereal(&at("2000-01-01 12:00:00")).to_degrees() - 280.460_618_37).abs() < 1e-9);
    let day = sidereal(&at("2000-01-02 11:56:04.0905")).to_degrees();
    assert!((day - 280.460_618_37).abs() < 1e-4, "{day}");
}

/// Skyfield 1.55 computes these Earth-fixed positions (ITRS); times are in seconds after the epoch.
/// The tolerance is needed because UTC is used in place of UT1. They differ by less than 0.9 s, in
/// which the Earth rotates by less than 0.45 km at this height.
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
