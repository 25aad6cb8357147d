//! Tests of constellations as networks: geometry computed by hand, shared transmitters, handovers,
//! traffic matrices and bad input; and results of Hypatia (Kassing et al., IMC 2020; snkas/hypatia,
//! commit 0ac531c, on ns-3.37).

use std::collections::BTreeMap;

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::{Memory, NullSink};
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// The 100 ground stations of Hypatia.
const CITIES: &str = include_str!("constellation/cities.csv");

pub fn plan(text: &str) -> Result<Plan, String> {
    let files = BTreeMap::from([("cities.csv".to_owned(), CITIES.to_owned())]);
    let request = PlanRequest::new("sky.toml", format!("anabranch = 1\nname = \"sky\"\n{text}"));
    let request = request.with(|it| {
        it.seed = 1;
        it.files = Files::of(files);
    });
    Plan::new(request).map_err(|error| error.to_string())
}

pub fn run(text: &str) -> RunRecord {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run")
}

pub fn value(record: &RunRecord, metric: &str, series: &str) -> f64 {
    let mut all = record.metrics.iter();
    let found = all.find(|it| it.metric == metric && it.series == series);
    found
        .unwrap_or_else(|| panic!("{metric} of {series}: {:?}", record.metrics))
        .value
}

/// Twelve satellites at 1,000 km in one plane over the equator of a non-rotating Earth. At the
/// start the first satellite is over 0° N 0° E; the others follow every 30°. Three stations are
/// below the first three satellites.
pub fn ring(duration: &str, rate: &str, more: &str) -> String {
    format!(
        "[world]\nduration = \"{duration}\"\n[[constellation]]\nname = \"ring\"\n\
         shells = [{{ kind = \"walker\", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, earth_rotates = false, min_elevation = 10 }}]\n\
         isl = {{ rate = \"{rate}\", queue = \"10 packets\" }}\nup = {{ rate = \"{rate}\", queue = \"10 packets\" }}\n\
         down = {{ rate = \"{rate}\", queue = \"10 packets\" }}\n{more}\n\
         [[ground]]\nname = \"city\"\nstations = [\"0,0\", {{ name = \"second\", at = \"0,30\" }}, \"0,60\"]\n"
    )
}

pub fn flow(name: &str, from: &str, to: &str, rate: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ protocol = \"udp\" }}\n\
         workload = {{ kind = \"cbr\", rate = \"{rate}\", message = \"1000 B\" }}\n"
    )
}

pub fn measure(metric: &str, flow: &str) -> String {
    format!("[[measure]]\nmetric = \"{metric}\"\nflow = \"{flow}\"\n")
}

/// The path consists of 1,000 km up, two links of 2 r sin 15° = 3,815.52 km each (r = 7,371.0088
/// km), and 1,000 km down, which take 32.126 ms. Sending 1028 B four times at 1 Gbit/s takes 33 us.
#[test]
fn a_delay_is_that_of_the_lengths() {
    let text = ring("1 s", "1 Gbit/s", "")
        + &flow("f", "city[0]", "city[2]", "800 kbit/s")
        + &measure("mean_one_way_delay", "f");
    let seconds = value(&run(&text), "mean_one_way_delay", "f");
    let radius = 7371.0088_f64;
    let length = 2.0 * 1000.0 + 4.0 * radius * 15.0_f64.to_radians().sin();
    let wanted = length / 299_792.458 + 4.0 * 1028.0 * 8.0 / 1e9;
    // The satellites move by 0.06° within a second.
    assert!((seconds - wanted).abs() < 5e-6, "{seconds} {wanted}");
}

/// Two flows from different stations share the link between the second and the third satellite, and
/// the transmitter of the third satellite. Together they should use its whole rate.
#[test]
fn flows_share_the_links_on_their_ways() {
    let text = ring("10 s", "1 Mbit/s", "")
        + &flow("one", "city[0]", "city[2]", "800 kbit/s")
        + &flow("two", "city[second]", "city[2]", "800 kbit/s")
        + &measure("goodput", "one")
        + &measure("goodput", "two")
        + "[[measure]]\nmetric = \"link_load\"\nlink = \"ring-isl\"\n"
        + "[[measure]]\nmetric = \"link_utilization\"\ncounting = \"wire\"\nlink = \"ring-isl[2]\"\n";
    let record = run(&text);
    let both = value(&record, "goodput", "one") + value(&record, "goodput", "two");
    // 1028 B packets carry 972.8 kbit/s of payload at 1 Mbit/s; the first 50 ms carry nothing.
    assert!((both - 972.8e3).abs() < 10e3, "{both}");
    let used = &record.metrics.last().expect("a measure").value;
    assert!((99.0..=100.0).contains(used), "{used}");
    // Two of the twelve links are used. The link before the shared one is busy for 0.8 x 1.028 of
    // the time.
    let load = |name: &str| value(&record, &format!("link_load_{name}"), "ring-isl");
    assert!(
        (load("used") - 100.0 / 6.0).abs() < 1e-9,
        "{}",
        load("used")
    );
    assert!((load("max") - used).abs() < 0.5, "{}", load("max"));
}

/// A third of a revolution takes 2 pi sqrt(r³ / mu) / 3 = 2,099 s. 262.4 s after the start another
/// satellite becomes the nearest one, which is detected at 262.5 s. Stations should neither send
/// nor receive for 300 ms from then on.
#[test]
fn a_handover_drops_packets_or_holds_them() {
    let arrived = |handover: &str| {
        let more = format!("start = \"262 s\"\npolicy = \"nearest\"\n{handover}");
        let text = ring("2 s", "1 Gbit/s", &more)
            + &flow("f", "city[0]", "city[2]", "800 kbit/s")
            + &measure("goodput", "f");
        value(&run(&text), "goodput", "f") * 2.0 / 8000.0
    };
    let (free, held, dropped) = (
        arrived(""),
        arrived("handover = { gap = \"300 ms\" }"),
        arrived("handover = { gap = \"300 ms\", packets = \"drop\" }"),
    );
    // 100 messages are sent per second; those of the last 37 ms have not arrived.
    assert!((196.0..=197.0).contains(&free), "{free}");
    assert_eq!(free, held);
    // The lost messages are those sent during the interruption of 300 ms, and those sent in the 32
    // ms before it, which would arrive during it.
    let lost = free - dropped;
    assert!((32.0..=35.0).contains(&lost), "{lost}");
}

/// The handover of the previous test begins 0.5 s after the start of the run, before the flow
/// starts. A flow that starts at 1 s should lose nothing, and a flow that starts at 0.7 s should
/// lose the messages of the last 100 ms of the handover.
#[test]
fn a_handover_takes_place_without_traffic() {
    let arrived = |begin: &str, handover: &str| {
        let more = format!("start = \"262 s\"\npolicy = \"nearest\"\n{handover}");
        let text = ring("2 s", "1 Gbit/s", &more)
            + &flow("f", "city[0]", "city[2]", "800 kbit/s")
            + &format!("start = \"{begin}\"\n")
            + &measure("goodput", "f");
        value(&run(&text), "goodput", "f") * 2.0 / 8000.0
    };
    let lost = |begin: &str| {
        arrived(begin, "") - arrived(begin, "handover = { gap = \"300 ms\", packets = \"drop\" }")
    };
    assert_eq!(lost("1 s"), 0.0);
    let lost = lost("0.7 s");
    assert!((9.0..=11.0).contains(&lost), "{lost}");
}

/// A flow from the first to the third station is recorded in two bins. Its 100 messages per second
/// with 1028 B each occupy a link of 1 Mbit/s for 82.24 % of the time. Stations are numbered after
/// the 12 satellites.
#[test]
fn a_constellation_is_recorded() {
    let record = "[[experiment]]\nid = \"main\"\n\
        record = [{ constellation = \"ring\", probes = [\"position\", \"utilization\", \"path\"], bin = \"500 ms\" }]\n";
    let text =
        ring("1 s", "1 Mbit/s", "") + &flow("f", "city[0]", "city[2]", "800 kbit/s") + record;
    let plan = plan(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut kept = Memory::default();
    world::run(&PlannedRun::all(&plan)[0], 1, &mut kept, &[]).expect("a run");
    let samples = |entity: &str, member: u32, probe: &str| -> Vec<(u16, f64, f64)> {
        let mut all = kept.series.iter();
        let found = all.find(|it| (&*it.entity, it.member, &*it.probe) == (entity, member, probe));
        let found = found.unwrap_or_else(|| panic!("{entity}[{member}] {probe}"));
        let samples = found.samples.iter();
        samples.map(|it| (it.index, it.time, it.value)).collect()
    };
    assert_eq!(
        samples("city", 2, "position"),
        [(0, 0.0, 0.0), (1, 0.0, 60.0)]
    );
    let position = samples("ring", 1, "position");
    assert_eq!(position.len(), 4);
    assert!(position[0].2.abs() < 1e-9 && (position[1].2 - 30.0).abs() < 1e-9);
    // A revolution takes 6,298 s.
    assert_eq!(position[3].1, 0.5);
    assert!(
        (position[3].2 - 30.0 - 360.0 * 0.5 / 6298.0).abs() < 1e-4,
        "{position:?}"
    );
    let path = [12.0, 0.0, 1.0, 2.0, 14.0];
    let path: Vec<_> = (0..)
        .zip(path)
        .map(|(index, body)| (index, 0.0, body))
        .collect();
    assert_eq!(samples("f", 0, "path"), path);
    // The second link is between the first and the last satellite.
    assert_eq!(
        samples("ring-isl", 0, "ends"),
        [(0, 0.0, 0.0), (1, 0.0, 1.0)]
    );
    assert_eq!(samples("ring-isl", 1, "utilization"), []);
    let used = samples("ring-isl", 0, "utilization");
    assert_eq!(used.len(), 2, "{used:?}");
    assert_eq!([used[0].1, used[1].1], [0.0, 0.5]);
    // 50 messages are sent in the bin; the first arrives after 12 ms.
    assert!((80.0..82.3).contains(&used[0].2), "{used:?}");
    assert!((used[1].2 - 82.24).abs() < 0.9, "{used:?}");
    for (from, to, wanted) in [
        (
            "constellation = \"ring\", probes",
            "constellation = \"rong\", probes",
            "no constellation has this name",
        ),
        (
            "\"path\"], bin",
            "\"paths\"], bin",
            "no probe has this name",
        ),
        (
            "record = [{ ",
            "record = [{ flow = \"f\", ",
            "one of `flow`, `link` and `constellation`",
        ),
    ] {
        let error = self::plan(&text.replace(from, to)).expect_err("an error");
        assert!(error.contains(wanted), "{to}: {error}");
    }
}

/// A station of two constellations has an interface in each, and the paths of a flow may name both.
#[test]
fn a_flow_uses_two_constellations() {
    let second = ring("1 s", "1 Mbit/s", "");
    let second = &second[second.find("[[constellation]]").expect("a section")..];
    let second = &second[..second.find("[[ground]]").expect("a section")];
    let second = second.replace("\"ring\"", "\"other\"");
    let text = |paths: &str| {
        ring("20 s", "1 Mbit/s", "")
            + &second
            + "[[flow]]\nname = \"f\"\nfrom = \"city[0]\"\nto = \"city[2]\"\nworkload = { kind = \"bulk\" }\n\
               transport = { protocol = \"sctp\", cmt = true, unordered = true, streams = 1 }\n"
            + paths
            + "[[measure]]\nmetric = \"link_load\"\nlink = \"other-up\"\n[[measure]]\nmetric = \"link_load\"\nlink = \"ring-up\"\n"
    };
    let load = |paths: &str| {
        let record = run(&text(paths));
        ["ring-up", "other-up"].map(|link| value(&record, "link_load_max", link))
    };
    let [ring, other] = load(
        "paths = [{ from = \"ring-up\", to = \"ring-up\" }, { from = \"other-up\", to = \"other-up\" }]\n",
    );
    assert!(ring > 80.0 && other > 80.0, "{ring} {other}");
    let [ring, other] = load("paths = [{ from = \"other-up\", to = \"other-up\" }]\n");
    assert!(ring == 0.0 && other > 80.0, "{ring} {other}");
    let error = plan(&text(
        "paths = [{ from = \"other-down\", to = \"other-up\" }]\n",
    ));
    let error = error.expect_err("an error");
    assert!(
        error.contains("no link of this name ends at \"city\""),
        "{error}"
    );
}

#[test]
fn bad_constellations_are_named() {
    let flows = flow("f", "city[0]", "city[2]", "800 kbit/s");
    let error = |from: &str, to: &str| {
        let text = ring("10 s", "1 Mbit/s", "") + &flows;
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        plan(&changed).err().unwrap_or_else(|| panic!("{to}"))
    };
    for (from, to, wanted) in [
        (
            "\"0,60\"",
            "\"80,60\"",
            "no satellite of \"ring\" is in reach of 80,60",
        ),
        ("\"0,60\"", "\"0, 0\"", "stations 0 and 2 stand on one spot"),
        (
            "satellites = 12",
            "satellites = 3",
            "longer than the horizon",
        ),
        (
            "phasing = 0, ",
            "phasing = 0, phasnig = 1, ",
            "unknown key `phasnig`",
        ),
        (
            "altitude = 1000, ",
            "altitude = 1000, mean_motion = 13.7, ",
            "`altitude` has no effect",
        ),
        (
            "from = \"city[0]\"",
            "from = \"city[3]\"",
            "found \"city[3]\"",
        ),
        (
            "from = \"city[0]\"",
            "from = \"ring[12]\"",
            "found \"ring[12]\"",
        ),
        (
            "up = {",
            "handover = { gap = \"1 s\" }\nup = {",
            "set `policy`",
        ),
        (
            "up = {",
            "changes = { times = [\"1 s\"] }\nup = {",
            "set `policy`",
        ),
        (
            "up = {",
            "policy = \"nearest\"\nchanges = { times = [\"2 s\", \"1 s\"] }\nup = {",
            "found 2 s before 1 s; times ascend",
        ),
        (
            "up = {",
            "policy = \"nearest\"\nchanges = { times = [\"2 s\"], repeat = \"2 s\" }\nup = {",
            "more than the last time, 2 s",
        ),
        ("up = {", "interfaces = 17\nup = {", "allowed: 1 to 16"),
        (
            "planes = 1, satellites = 12, phasing = 0",
            "planes = 150, satellites = 150, phasing = 0",
            "found 67503 links up to here, 45000 between its satellites, 3 up and 22500 down; a world holds at most 65536",
        ),
        ("isl = {", "isls = {", "unknown key `isls`"),
        (
            "[[ground]]",
            "[world.routing]\nkind = \"least\"\n[[ground]]",
            "least-delay",
        ),
        ("\"0,60\"", "\"0,190\"", "LATITUDE,LONGITUDE"),
        (
            "name = \"second\"",
            "name = \"2\"",
            "station 1 has the name \"2\"",
        ),
    ] {
        let error = error(from, to);
        assert!(error.contains(wanted), "{to}: {error}");
    }
    // Satellites are counted only until the limit is exceeded, here after the third shell.
    let large = "shells = [".to_owned()
        + &"{ kind = \"walker\", planes = 1000, satellites = 50 }, ".repeat(5);
    let error = error("shells = [", &large);
    assert!(error.contains("found 150003 nodes"), "{error}");
    let text = ring("10 s", "1 Mbit/s", "") + &flows;
    let swapped = text.replace(
        "planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0",
        "planes = 22, satellites = 72, altitude = 550, inclination = 53",
    );
    let notes = plan(&swapped).expect("a plan").notes;
    assert!(
        notes.iter().any(|note| note.contains("wrong way round")),
        "{notes:?}"
    );
}

/// A single satellite returns to 0° N 0° E every 6,298 s. In each of the 200 revolutions of a run,
/// a station on the opposite side of the Earth sees it for 760 s, half a revolution after it was at
/// 0° N 0° E.
#[test]
fn a_station_may_wait_for_a_satellite() {
    let isl = "isl = { rate = \"1 Mbit/s\", queue = \"10 packets\" }\n";
    let text = ring("1259600 s", "1 Mbit/s", "")
        .replace("satellites = 12", "satellites = 1")
        .replace(isl, "")
        .replace("\"0,60\"", "\"0,180\"")
        + &flow("f", "city[0]", "city[1]", "800 kbit/s");
    assert!(text.contains("0,180") && !text.contains(isl));
    plan(&text).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_matrix_is_a_flow_of_many_members() {
    let text = |pairs: &str| {
        ring("1 s", "10 Mbit/s", "")
            + &flow("f", "city", "city", "80 kbit/s")
                .replace("from", &format!("pairs = {pairs}\nfrom"))
            + &measure("goodput", "f")
    };
    let members = |pairs: &str| {
        let plan = plan(&text(pairs)).unwrap_or_else(|error| panic!("{error}"));
        let spec = &plan.spec;
        spec.flows[0].matrix.0.clone()
    };
    assert_eq!(
        members("\"all\""),
        [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    );
    assert_eq!(members("[[2, 0], [0, 2]]"), [[2, 0], [0, 2]]);
    let drawn = members("{ random = 1, seed = 4, both = true }");
    assert_eq!(drawn.len(), 2);
    assert_eq!(drawn[0], [drawn[1][1], drawn[1][0]]);
    assert_ne!(drawn[0][0], drawn[0][1]);
    for (pairs, wanted) in [
        ("[[0, 3]]", "found [0, 3]"),
        ("[[1, 1]]", "a node and itself"),
        ("{ random = 2 }", "allowed: 1 to 1"),
        ("[]", "no pairs"),
        ("\"most\"", "a list of pairs"),
        ("\"all\"\ncount = 2", "found another count"),
    ] {
        let error = plan(&text(pairs))
            .err()
            .unwrap_or_else(|| panic!("{pairs}"));
        assert!(error.contains(wanted), "{pairs}: {error}");
    }
    // The number of pairs is limited before pairs of two groups are drawn.
    let hosts = "[[node]]\nname = \"a\"\ncount = 1000\n[[node]]\nname = \"b\"\ncount = 1000\n";
    let many = text("{ random = 20000 }")
        .replace("from = \"city\"", "from = \"a\"")
        .replace("to = \"city\"", "to = \"b\"");
    let error = plan(&(many + hosts)).expect_err("too many pairs");
    assert!(error.contains("allowed: 1 to 10000"), "{error}");
    let record = run(&text("\"all\""));
    // Each of the six pairs sends 10 messages (80 kbit). Messages sent in the last 40 ms are in
    // transit at the end, so each pair lacks at most one message.
    let all = value(&record, "goodput", "f");
    assert!((432e3..=480e3).contains(&all), "{all}");
}

/// Pairs of stations from Hypatia's `traffic-matrix.txt`, each used in both directions.
const PAIRS: [[u32; 2]; 50] = [
    [58, 94],
    [57, 10],
    [48, 93],
    [9, 56],
    [86, 39],
    [1, 95],
    [63, 11],
    [55, 40],
    [21, 60],
    [92, 42],
    [45, 7],
    [99, 89],
    [41, 79],
    [30, 80],
    [8, 0],
    [69, 82],
    [24, 88],
    [27, 23],
    [18, 32],
    [65, 25],
    [19, 37],
    [97, 36],
    [87, 90],
    [26, 49],
    [6, 67],
    [52, 96],
    [70, 17],
    [53, 85],
    [29, 43],
    [75, 73],
    [51, 98],
    [47, 31],
    [44, 71],
    [50, 28],
    [13, 81],
    [91, 20],
    [64, 38],
    [66, 61],
    [33, 54],
    [78, 2],
    [22, 46],
    [76, 3],
    [16, 77],
    [84, 68],
    [34, 59],
    [15, 12],
    [83, 14],
    [72, 62],
    [35, 4],
    [5, 74],
];

/// Settings of each protocol in the runs of Hypatia.
const TCP: &str = "transport = { protocol = \"tcp\", congestion = \"newreno\", mss = \"1380 B\", initial_window = \"10 segments\", \
    receive_buffer = \"32 MiB\", send_buffer = \"32 MiB\", timestamps = true, proportional_rate_reduction = true }\nworkload = { kind = \"bulk\" }\n";
const UDP: &str = "transport = { protocol = \"udp\" }\n\
    workload = { kind = \"cbr\", rate = \"0.98133333 Mbit/s\", message = \"1472 B\" }\n";

fn kuiper(duration: &str, (rate, queue): (&str, &str), flow: &str) -> String {
    let transmitter = format!("{{ rate = \"{rate}\", queue = \"{queue}\" }}");
    format!(
        "[world]\nduration = \"{duration}\"\n[[constellation]]\nname = \"kuiper\"\nshells = [\"hypatia-kuiper-630\"]\n\
         isl = {transmitter}\nup = {transmitter}\ndown = {transmitter}\n\
         [[ground]]\nname = \"city\"\nfile = \"cities.csv\"\n[[flow]]\nname = \"f\"\n{flow}"
    ) + &measure("goodput", "f")
}

fn is_near(found: f64, wanted: f64, share: f64) {
    assert!(
        (found - wanted).abs() < share * wanted,
        "{found}; Hypatia: {wanted}"
    );
}

/// `flow-manila-dalian-newreno.csv`: 23,922,300 bytes are acknowledged within 20 s, which include
/// the first change of the path at 18.0 s.
#[test]
fn a_single_flow_gets_what_it_gets_in_hypatia() {
    let flow = format!("from = \"city[Manila]\"\nto = \"city[Dalian]\"\n{TCP}");
    let record = run(&kuiper("20 s", ("10 Mbit/s", "100 packets"), &flow));
    is_near(
        value(&record, "goodput", "f"),
        23_922_300.0 * 8.0 / 20.0,
        0.01,
    );
}

/// `load.csv`: 100 flows over 1 Mbit/s for 10 s carry a total of 54.41 Mbit/s with UDP, and 34.03
/// Mbit/s with TCP.
#[test]
fn a_hundred_flows_get_what_they_get_in_hypatia() {
    let both = PAIRS
        .iter()
        .flat_map(|&[one, other]| [[one, other], [other, one]]);
    let pairs = format!("{:?}", both.collect::<Vec<_>>());
    for (protocol, wanted) in [(UDP, 54.41e6), (TCP, 34.03e6)] {
        let flow = format!("from = \"city\"\nto = \"city\"\npairs = {pairs}\n{protocol}");
        let record = run(&kuiper("10 s", ("1 Mbit/s", "10 packets"), &flow));
        is_near(value(&record, "goodput", "f"), wanted, 0.03);
    }
}
