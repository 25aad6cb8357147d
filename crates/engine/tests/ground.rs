//! Tests of ground stations: interfaces, handover times, and pairs by population.

use super::constellation::{flow, measure, plan, ring, run, value};

/// At 3,000 km each station reaches the satellites up to 38° away: the first station (0° E) reaches
/// the satellites 11, 0 and 1, and the third (60° E) reaches 1, 2 and 3.
fn high(more: &str) -> String {
    ring("20 s", "1 Mbit/s", more).replace("altitude = 1000", "altitude = 3000")
}

const CMT: &str = "[[flow]]\nname = \"f\"\nfrom = \"city[0]\"\nto = \"city[2]\"\nworkload = { kind = \"bulk\" }\n\
    transport = { protocol = \"sctp\", multihomed = true, cmt = true, unordered = true, streams = 1 }\n";

/// The first interface uses the even satellites, 0 and 2, whose path leads over satellite 1. The
/// second interface uses the odd satellite, 1, which both stations reach. Both paths together carry
/// twice as much as one.
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
    // The links of the three stations' second interfaces are numbered after those of the first
    // ones.
    let second = value(&both, "link_utilization_wire", "all");
    assert!(second > 80.0, "{second}");
    // Both interfaces of both end stations send: one station sends data, and the other
    // acknowledgements.
    let used = value(&both, "link_load_used", "ring-up");
    assert!((used - 400.0 / 6.0).abs() < 1e-9, "{used}");
}

/// With the policy `nearest`, stations change to another satellite 0.5 s after the start, see
/// `a_handover_drops_packets_or_holds_them`. If the spec has the times of changes, stations change
/// at these times, and lose the messages that are sent or arrive in the 300 ms after each change.
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
    // Without losses, 116 of the messages sent from 0.8 s on arrive, of which 96 are sent from 1 s
    // on.
    let free = arrived("0.8 s", &at("\"10 s\""));
    assert!((115.0..=117.0).contains(&free), "{free}");
    assert_eq!(arrived("0.8 s", ""), free);
    assert_eq!(arrived("0.8 s", &at("\"0.45 s\"")), free);
    let lost = free - arrived("0.8 s", &at("\"1 s\""));
    assert!((32.0..=35.0).contains(&lost), "{lost}");
    // The change and the interruption start at the next multiple of 100 ms.
    let lost = free - arrived("0.8 s", &at("\"0.55 s\""));
    assert!((9.0..=11.0).contains(&lost), "{lost}");
    let repeated = "changes = { times = [\"0.1 s\"], repeat = \"0.5 s\" }";
    let lost = free - arrived("0.8 s", repeated);
    assert!((9.0..=11.0).contains(&lost), "{lost}");
}

/// Stations without population are in no pair. For stations of a file, the population is in a
/// column.
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
        found.contains("found -1; allowed: a number from 0 to 1e12"),
        "{found}"
    );
    let found = error(people(["5", "1e13", "1"]) + &flow(pairs));
    assert!(found.contains("found 10000000000000; allowed"), "{found}");
    let unused = people(["5", "1", "1"]) + &flow("random = 1");
    let found = error(unused.clone());
    let wanted = "it has no effect without a flow with `weights = \"population\"`; leave it out";
    assert!(
        found.contains("`ground.city.stations[0].population`"),
        "{found}"
    );
    assert!(found.contains(wanted), "{found}");
    // Populations have an effect if another flow draws its pairs by them.
    let used = flow(pairs).replace("name = \"f\"", "name = \"g\"");
    plan(&(unused + &used)).expect("one flow uses the populations");
}

/// Four satellites at 3,000 km, every 90°; the first is over 0° E. At 30° E its elevation is
/// atan((cos 30° - 6371 / 9371) / sin 30°) = 20.4°. With a fifth of the rate there, 1028 B take
/// 41.12 ms at 200 kbit/s, compared with 8.224 ms at 1 Mbit/s.
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
        let text = text(steps).replace("rate_by_elevation = , ", "");
        let record = run(&text);
        let delay = value(&record, "mean_one_way_delay", "f");
        (delay, value(&record, "link_load_max", "ring-up"))
    };
    let whole = of("");
    let low = of("[[5, 0.2], [50, 1]]");
    let none = of("[[5, 0.2], [15, 1]]");
    assert!(
        (low.0 - whole.0 - 4.0 * 8.224e-3).abs() < 1e-4,
        "{low:?} {whole:?}"
    );
    assert!((none.0 - whole.0).abs() < 1e-9, "{none:?} {whole:?}");
    // One packet is sent per second.
    assert!((low.1 - 4.112).abs() < 0.3, "{low:?}");
    for (steps, wanted) in [
        ("[[5, 0.2], [5, 1]]", "found 5; elevations ascend"),
        ("[[5, 1.2]]", "a share above 0, at most 1"),
        (
            "[[5, 1], [50, 1]]",
            "has no effect with shares of 1 only; leave it out",
        ),
    ] {
        let error = plan(&text(steps)).expect_err("an error");
        assert!(error.contains(wanted), "{error}");
    }
    let text = text("[[5, 0.5]]");
    for (from, to, wanted) in [
        (
            "isl = {",
            "isl = { rate_by_elevation = [[5, 0.5]],",
            "no effect on links between satellites",
        ),
        (
            "up = { rate = \"1 Mbit/s\"",
            "up = { rate = { steps = [[\"0 s\", \"1 Mbit/s\"], [\"1 s\", \"2 Mbit/s\"]] }",
            "found a rate over time; with `rate_by_elevation` it is constant",
        ),
        (
            "rate_by_elevation = [[5, 0.5]], queue = \"10 packets\"",
            "rate_by_elevation = [[5, 0.5]], queue = { kind = \"codel\" }",
            "found a queue discipline; with `rate_by_elevation` a queue is drop-tail",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        let error = plan(&changed).expect_err("an error");
        assert!(error.contains(wanted), "{error}");
    }
}

/// Satellites are every 90°; the first is over 0° E, where a station sees it at 90°. From 30° E its
/// elevation is 20.4°, at which a fifth of the rate applies: 1028 B take 41.12 ms, compared with
/// 8.224 ms. The transmitter of the satellite uses a different rate for each receiver.
#[test]
fn a_rate_down_follows_the_elevation_at_the_receiver() {
    let delay = |to: &str, steps: &str| {
        let down = format!("down = {{ rate = \"1 Mbit/s\", {steps}");
        let text = high("").replace("down = { rate = \"1 Mbit/s\", ", &down);
        let text = text.replace("satellites = 12", "satellites = 4")
            + &flow("f", "city[2]", to, "8 kbit/s").replace("city[2]", "ring[0]")
            + &measure("mean_one_way_delay", "f");
        value(&run(&text), "mean_one_way_delay", "f")
    };
    let steps = "rate_by_elevation = [[5, 0.2], [50, 0.5]], ";
    for (to, slower) in [("city[0]", 1.0), ("city[1]", 4.0)] {
        let more = delay(to, steps) - delay(to, "");
        assert!((more - slower * 8.224e-3).abs() < 1e-4, "{to}: {more}");
    }
}

/// During the handover after 0.5 s packets wait, and then leave at the rate of the elevation: 1028
/// B take 68.5 ms at 120 kbit/s.
#[test]
fn packets_held_in_a_handover_leave_at_the_rate_of_the_elevation() {
    let delay = |(class, from, to): (&str, &str, &str), transmitter: &str| {
        let more = "start = \"262 s\"\npolicy = \"nearest\"\nhandover = { gap = \"900 ms\" }";
        let text = ring("4 s", "1 Mbit/s", more);
        let full = format!("{class} = {{ rate = \"1 Mbit/s\", ");
        assert!(text.contains(&full));
        let text = text.replace(&full, &format!("{class} = {{ {transmitter}, "))
            + &flow("f", from, to, "80 kbit/s")
            + &measure("mean_one_way_delay", "f");
        value(&run(&text), "mean_one_way_delay", "f")
    };
    for ends in [("up", "city[0]", "ring[1]"), ("down", "ring[1]", "city[2]")] {
        let of = |transmitter: &str| delay(ends, transmitter);
        let slow = of("rate = \"120 kbit/s\"");
        let shared = of("rate = \"1 Mbit/s\", rate_by_elevation = [[-90, 0.12]]");
        assert!((slow - shared).abs() < 1e-6, "{ends:?}: {slow} {shared}");
        assert!(slow > of("rate = \"1 Mbit/s\"") + 0.1, "{ends:?}: {slow}");
    }
}

/// The stations at 0° E and 1° E use the first satellite until it is over 15° E and 16° E,
/// respectively, and then the last satellite. This is 262.4 s and 279.9 s after the epoch, because
/// a satellite moves by 360° in 6,298 s. Between these times each station has the whole rate, and
/// before and after them half of it: 1028 B take 16.448 ms, compared with 8.224 ms.
#[test]
fn stations_of_a_satellite_share_its_rate() {
    let text = |start: &str, duration: &str, shared: &str| {
        let more = format!("start = \"{start}\"\npolicy = \"nearest\"");
        let up = format!("up = {{ rate = \"1 Mbit/s\", {shared}");
        let stations = "stations = [\"0,0\", \"0,1\"]\n";
        let text = ring(duration, "1 Mbit/s", &more).replace("up = { rate = \"1 Mbit/s\", ", &up);
        let (network, _) = text.split_once("stations = ").expect("stations");
        network.to_owned()
            + stations
            + &flow("f", "city[0]", "ring[0]", "80 kbit/s")
            + &measure("mean_one_way_delay", "f")
    };
    let longer = |start: &str, duration: &str| {
        let of = |shared: &str| {
            value(
                &run(&text(start, duration, shared)),
                "mean_one_way_delay",
                "f",
            )
        };
        (of("rate_by_load = \"equal\", ") - of("")) / 8.224e-3
    };
    for (start, wanted) in [("250 s", 1.0), ("270 s", 0.0), ("285 s", 1.0)] {
        let longer = longer(start, "1 s");
        assert!((longer - wanted).abs() < 1e-4, "{start}: {longer}");
    }
    // Five of ten packets are sent before the routes of 0.5 s apply.
    let longer = longer("262 s", "1 s");
    assert!((longer - 0.5).abs() < 1e-4, "{longer}");
    for (from, to, wanted) in [
        (
            "policy = \"nearest\"",
            "",
            "it has no effect while a station uses any satellite",
        ),
        (
            "down = {",
            "down = { rate_by_load = \"equal\",",
            "no effect on links down",
        ),
        (
            "isl = {",
            "isl = { rate_by_load = \"equal\",",
            "no effect on links between",
        ),
        (
            "queue = \"10 packets\" }\ndown",
            "queue = { kind = \"codel\" } }\ndown",
            "with `rate_by_load` a queue is drop-tail",
        ),
    ] {
        let text = text("0 s", "1 s", "rate_by_load = \"equal\", ");
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        let error = plan(&changed).expect_err("an error");
        assert!(error.contains(wanted), "{error}");
    }
}

/// The stations at 0° E and 1° E fill their queues. The first station changes to another satellite
/// at 5 s. The packets in its queue are still sent to the former satellite, which now serves only
/// the second station.
#[test]
fn packets_queued_before_a_handover_have_a_share_of_their_satellite() {
    let more = "start = \"257.4 s\"\npolicy = \"nearest\"";
    let up = "up = { rate = \"1 Mbit/s\", rate_by_load = \"equal\", queue = \"1000 packets\"";
    let text = ring("9 s", "10 Mbit/s", more)
        .replace("up = { rate = \"10 Mbit/s\", queue = \"10 packets\"", up);
    assert!(text.contains(up));
    let (network, _) = text.split_once("stations = ").expect("stations");
    let goodput = |flow: &str| {
        format!(
            "[[measure]]\nmetric = \"goodput\"\nflow = \"{flow}\"\nwindows = {{ after = [\"6 s\", \"9 s\"] }}\n"
        )
    };
    let text = network.to_owned()
        + "stations = [\"0,0\", \"0,1\"]\n"
        + &flow("f", "city[0]", "ring[0]", "2 Mbit/s")
        + &flow("g", "city[1]", "ring[0]", "2 Mbit/s")
        + &goodput("f")
        + &goodput("g");
    let record = run(&text);
    // Of 1028 bytes, 1000 are payload.
    for (flow, wanted) in [("f", 0.4864e6), ("g", 0.9728e6)] {
        let found = value(&record, "goodput_after", flow);
        assert!((found - wanted).abs() < 0.01e6, "{flow}: {found}");
    }
}

/// If links of a constellation are down, the paths of flows are examined, even if data arrives
/// later.
#[test]
fn an_outage_of_links_between_satellites_is_reported() {
    let text = ring("10 s", "1 Mbit/s", "")
        .replace("isl = {", "isl = { down = [[\"0 s\", \"5 s\"]],")
        + &flow("f", "city[0]", "city[2]", "80 kbit/s")
        + &measure("goodput", "f");
    let record = run(&text);
    assert!(value(&record, "goodput", "f") > 0.0);
    let failures = record.failures.join("; ");
    assert!(failures.contains("no path leads from"), "{failures:?}");
}

/// A host is connected to a station by two wires: the path over each wire uses a different
/// interface of the stations.
#[test]
fn two_wires_behind_a_station_are_two_paths() {
    let wires = "[[node]]\nname = \"host\"\n\
        [[link]]\nname = \"one\"\nbetween = [\"city[1]\", \"host\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
        [[link]]\nname = \"two\"\nbetween = [\"city[1]\", \"host\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n";
    let text =
        high("interfaces = 2") + &CMT.replace("city[2]", "host") + wires + &measure("goodput", "f");
    let both = value(&run(&text), "goodput", "f");
    let single = text.replace("multihomed = true, cmt = true, ", "");
    let one = value(&run(&single), "goodput", "f");
    assert!(both > 1.8 * one, "{both} {one}");
}

/// Without inter-satellite links, the second interface of a station reaches the odd satellites.
#[test]
fn a_satellite_is_reached_by_the_interface_that_uses_it() {
    let isl = "isl = { rate = \"1 Mbit/s\", queue = \"10 packets\" }\n";
    let text = high("interfaces = 2");
    assert!(text.contains(isl));
    let text = text
        .replace(isl, "")
        .replace("planes = 1", "relay = \"bent-pipe\", planes = 1");
    for satellite in ["ring[0]", "ring[1]"] {
        let text =
            text.clone() + &flow("f", "city[0]", satellite, "80 kbit/s") + &measure("goodput", "f");
        let goodput = value(&run(&text), "goodput", "f");
        assert!((goodput - 80e3).abs() < 1e3, "{satellite}: {goodput}");
    }
}

/// Two ranges of one group are two sets: one member of each pair is from the first range, and the
/// other from the second.
#[test]
fn pairs_are_drawn_from_two_ranges_of_one_group() {
    let matrix = |(from, to): (&str, &str), people: [u32; 4], keys: &str| {
        let station =
            |(index, people)| format!("{{ at = \"0,{}\", population = {people} }}", 10 * index);
        let stations: Vec<String> = (0..4).zip(people).map(station).collect();
        let old = "stations = [\"0,0\", { name = \"second\", at = \"0,30\" }, \"0,60\"]";
        let text = ring("1 s", "1 Mbit/s", "");
        assert!(text.contains(old));
        let stations = format!("stations = [{}]", stations.join(", "));
        let stations = match keys.contains("weights") {
            true => stations,
            false => stations.replace(", population = 5", ""),
        };
        let text = text.replace(old, &stations)
            + &flow("f", from, to, "8 kbit/s")
            + &format!("pairs = {{ {keys} }}\n");
        let mut pairs = plan(&text)?.spec.flows[0].matrix.0.clone();
        pairs.sort_unstable();
        Ok::<_, String>(pairs)
    };
    let apart = ("city[0..2]", "city[2..4]");
    let overlapping = ("city[0..3]", "city[1..3]");
    for weights in ["", ", weights = \"population\""] {
        let of = |ends, keys: &str| matrix(ends, [5; 4], &format!("{keys}{weights}"));
        let all = of(apart, "random = 4");
        assert_eq!(all, Ok(vec![[0, 2], [0, 3], [1, 2], [1, 3]]));
        let all = of(overlapping, "random = 4");
        assert_eq!(all, Ok(vec![[0, 1], [0, 2], [1, 2], [2, 1]]));
        let error = of(overlapping, "random = 5").expect_err("an error");
        assert!(error.contains("allowed: 1 to 4"), "{error}");
        // If each pair is used in both directions, the pair of 1 and 2 counts only once.
        let all = of(overlapping, "random = 3, both = true");
        let wanted = [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]];
        assert_eq!(all, Ok(wanted.to_vec()));
        let error = of(overlapping, "random = 4, both = true").expect_err("an error");
        assert!(error.contains("allowed: 1 to 3"), "{error}");
    }
    // The weights are the populations of the members in each range.
    for seed in 0..10 {
        let keys = format!("random = 1, seed = {seed}, weights = \"population\"");
        assert_eq!(matrix(apart, [5, 0, 0, 5], &keys), Ok(vec![[0, 3]]));
    }
    let station = "[[ground]]\nname = \"town\"\nstations = [\"10,0\"]\n";
    let text = ring("1 s", "1 Mbit/s", "")
        + station
        + &flow("f", "city", "town", "8 kbit/s")
        + "pairs = { random = 1, both = true }\n";
    let error = plan(&text).expect_err("an error");
    assert!(
        error.contains("found `both`, but `from` and `to`"),
        "{error}"
    );
}
