//! Ground stations of constellations: interfaces, times of handovers, pairs by population.

use super::constellation::{flow, measure, plan, ring, run, value};

/// Satellites at 3,000 km, so that each station reaches those up to 38° away: the first station
/// (0° E) the satellites 11, 0 and 1, the third (60° E) 1, 2 and 3.
fn high(more: &str) -> String {
    ring("20 s", "1 Mbit/s", more).replace("altitude = 1000", "altitude = 3000")
}

const CMT: &str = "[[flow]]\nname = \"f\"\nfrom = \"city[0]\"\nto = \"city[2]\"\nworkload = { kind = \"bulk\" }\n\
    transport = { protocol = \"sctp\", multihomed = true, cmt = true, unordered = true, streams = 1 }\n";

/// The first interface uses the even satellites, 0 and 2 with the link over 1, and the second the
/// odd one between the stations: both at the same time carry twice as much as one.
#[test]
fn two_interfaces_are_two_paths() {
    let text = |more: &str| high(more) + CMT + &measure("goodput", "f");
    let single = text("").replace("multihomed = true, cmt = true, ", "");
    let one = value(&run(&single), "goodput", "f");
    let loads = "[[measure]]\nmetric = \"link_load\"\nlink = \"ring-up\"\n\
        [[measure]]\nmetric = \"link_utilization\"\ncounting = \"wire\"\nlink = \"ring-up[3]\"\n";
    let both = run(&(text("interfaces = 2") + loads));
    let goodput = value(&both, "goodput", "f");
    assert!(goodput > 1.8 * one, "{goodput} {one}");
    assert!(goodput < 2.0e6, "{goodput}");
    // The second interfaces of three stations follow the first ones.
    let second = value(&both, "link_utilization_wire", "all");
    assert!(second > 80.0, "{second}");
    // Those of both ends, one of them for acknowledgements.
    let used = value(&both, "link_load_used", "ring-up");
    assert!((used - 400.0 / 6.0).abs() < 1e-9, "{used}");
}

/// By the policy `nearest` stations change 0.5 s after the start, see
/// `a_handover_drops_packets_or_holds_them`. With given times they change at these, and lose what
/// is sent or arrives in 300 ms after it.
#[test]
fn stations_change_at_given_times() {
    let arrived = |begin: &str, changes: &str| {
        let more = format!(
            "start = \"262 s\"\npolicy = \"nearest\"\n{changes}\nhandover = {{ gap = \"300 ms\", packets = \"drop\" }}"
        );
        let text = ring("2 s", "1 Gbit/s", &more)
            + &flow("f", "city[0]", "city[2]", "800 kbit/s")
            + &format!("start = \"{begin}\"\n")
            + &measure("goodput", "f");
        value(&run(&text), "goodput", "f") * 2.0 / 8000.0
    };
    let at = |times: &str| format!("changes = {{ times = [{times}] }}");
    // Without losses 116 messages arrive of those from 0.8 s on, of which 96 are sent from 1 s on.
    let free = arrived("0.8 s", &at("\"10 s\""));
    assert!((115.0..=117.0).contains(&free), "{free}");
    assert_eq!(arrived("0.8 s", ""), free);
    assert_eq!(arrived("0.8 s", &at("\"0.45 s\"")), free);
    let lost = free - arrived("0.8 s", &at("\"1 s\""));
    assert!((32.0..=35.0).contains(&lost), "{lost}");
    // The change applies from the next multiple of 100 ms on, and so does its duration.
    let lost = free - arrived("0.8 s", &at("\"0.55 s\""));
    assert!((9.0..=11.0).contains(&lost), "{lost}");
    let repeated = "changes = { times = [\"0.1 s\"], repeat = \"0.5 s\" }";
    let lost = free - arrived("0.8 s", repeated);
    assert!((9.0..=11.0).contains(&lost), "{lost}");
}

/// Stations without population are in no pair; those of a file have the column's.
#[test]
fn pairs_are_drawn_by_population() {
    let flow =
        |pairs: &str| flow("f", "city", "city", "8 kbit/s") + &format!("pairs = {{ {pairs} }}\n");
    let people = |numbers: [&str; 3]| {
        let text = ring("1 s", "1 Mbit/s", "");
        let stations = "stations = [\"0,0\", { name = \"second\", at = \"0,30\" }, \"0,60\"]";
        assert!(text.contains(stations));
        let of = |(number, place): (&&str, &str)| {
            format!("{{ at = \"{place}\", population = {number} }}")
        };
        let places = ["0,0", "0,30", "0,60"];
        let all: Vec<String> = numbers.iter().zip(places).map(of).collect();
        text.replace(stations, &format!("stations = [{}]", all.join(", ")))
    };
    let matrix = |text: &str| {
        let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
        plan.spec.flows[0].matrix.0.clone()
    };
    for seed in 0..20 {
        let pairs = format!("random = 1, seed = {seed}, weights = \"population\"");
        let mut drawn = matrix(&(people(["5e6", "0", "1"]) + &flow(&pairs)))[0];
        drawn.sort_unstable();
        assert_eq!(drawn, [0, 2], "seed {seed}");
    }
    let pairs = "random = 1, weights = \"population\"";
    let error = |text: String| plan(&text).expect_err("an error");
    let found = error(people(["5", "0", "0"]) + &flow(pairs));
    assert!(
        found.contains("members with a population form 0"),
        "{found}"
    );
    let found = error(ring("1 s", "1 Mbit/s", "") + &flow(pairs));
    assert!(found.contains("city[0] has no `population`"), "{found}");
    let found = error(people(["5", "-1", "1"]) + &flow(pairs));
    assert!(
        found.contains("found -1; allowed: a number from 0 on"),
        "{found}"
    );
}

/// Four satellites at 3,000 km, every 90°; the first is over 0° E. At 30° E its elevation is
/// atan((cos 30° - 6371 / 9371) / sin 30°) = 20.4°. With a fifth of the rate there, 1028 B take
/// 41.12 ms at 200 kbit/s instead of 8.224 ms at 1 Mbit/s.
#[test]
fn a_rate_follows_the_elevation() {
    let text = |steps: &str| {
        let up = format!("up = {{ rate = \"1 Mbit/s\", rate_by_elevation = {steps}, ");
        let text = high("").replace("up = { rate = \"1 Mbit/s\", ", &up);
        text.replace("satellites = 12", "satellites = 4")
            + &flow("f", "city[second]", "city[0]", "8 kbit/s")
            + &measure("mean_one_way_delay", "f")
            + "[[measure]]\nmetric = \"link_load\"\nlink = \"ring-up\"\n"
    };
    let of = |steps: &str| {
        let record = run(&text(steps));
        let delay = value(&record, "mean_one_way_delay", "f");
        let delay = if delay > 1.0 { delay / 1e3 } else { delay };
        (delay, value(&record, "link_load_max", "ring-up"))
    };
    let whole = of("[[5, 1]]");
    let low = of("[[5, 0.2], [50, 1]]");
    let none = of("[[5, 0.2], [15, 1]]");
    assert!(
        (low.0 - whole.0 - 4.0 * 8.224e-3).abs() < 1e-4,
        "{low:?} {whole:?}"
    );
    assert!((none.0 - whole.0).abs() < 1e-9, "{none:?} {whole:?}");
    // One packet in each second.
    assert!((low.1 - 4.112).abs() < 0.3, "{low:?}");
    for (steps, wanted) in [
        ("[[5, 0.2], [5, 1]]", "found 5; elevations ascend"),
        ("[[5, 1.2]]", "a share above 0, at most 1"),
    ] {
        let error = plan(&text(steps)).expect_err("an error");
        assert!(error.contains(wanted), "{error}");
    }
    let error =
        plan(&text("[[5, 0.5]]").replace("isl = {", "isl = { rate_by_elevation = [[5, 1]],"));
    assert!(
        error
            .expect_err("an error")
            .contains("no effect on links between satellites")
    );
}
