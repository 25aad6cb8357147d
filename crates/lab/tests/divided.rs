//! Tests of runs whose world is divided among threads: records and samples should equal those of a
//! run on one thread.

use std::fmt::Write as _;
use std::io;

use anabranch_engine::parallel::Crew;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::Memory;
use anabranch_engine::world::{self, WorldError};
use anabranch_lab::threads::Team;
use anabranch_scenario::records::RunRecord;
use anabranch_sim::{Rng, Seed};

/// The record, and every sample in the order in which it reached the sink.
fn run(unit: &PlannedRun<'_>, threads: usize) -> Result<(RunRecord, Vec<String>), WorldError> {
    let mut memory = Memory::default();
    let record = world::run_divided(unit, 7, &mut memory, &Team(threads))?;
    let series = memory.series.iter().map(|it| format!("{it:?}"));
    Ok((record, series.collect()))
}

/// Compares the results of a run with one thread and with several. Returns whether its world can be
/// divided.
fn compare(unit: &PlannedRun<'_>, case: &str) -> bool {
    let one = run(unit, 1).unwrap_or_else(|error| panic!("{case}: {error}"));
    let mut divided = false;
    for threads in [2, 3, 7] {
        match run(unit, threads) {
            Ok(several) => {
                assert_eq!(one.0, several.0, "{case}, {threads} threads");
                for (one, other) in one.1.iter().zip(&several.1) {
                    assert!(
                        one == other,
                        "{case}, {threads} threads:\n{one:.400}\n{other:.400}"
                    );
                }
                assert_eq!(one.1.len(), several.1.len(), "{case}, {threads} threads");
                let parts = world::check_divisible(unit, threads).expect("a divisible world");
                assert!((2..=threads).contains(&parts), "{case}: {parts}");
                divided = true;
            }
            Err(WorldError::Indivisible(_)) => {
                let refused = world::check_divisible(unit, threads);
                assert!(matches!(refused, Err(WorldError::Indivisible(_))), "{case}");
            }
            Err(error) => panic!("{case}, {threads} threads: {error}"),
        }
    }
    divided
}

fn plan(text: String, case: &str) -> Plan {
    let request = PlanRequest::new("divided.toml", text).with(|it| it.record_all = true);
    Plan::new(request).unwrap_or_else(|error| panic!("{case}: {error}"))
}

const TRANSPORTS: [&str; 5] = [
    "{ protocol = \"tcp\", profile = \"linux\", congestion = \"cubic\" }",
    "{ protocol = \"sctp\", profile = \"rfc9260\" }",
    "{ protocol = \"quic\" }",
    "{ protocol = \"tcp\", profile = \"newreno\" }",
    "{ protocol = \"udp\" }",
];

/// Two hosts with two paths between them, of which the first fails, and an association over both.
const TWO_PATHS: &str = r#"
[[node]]
name = "client"
[[node]]
name = "router"
count = 2
[[node]]
name = "server"
[[link]]
name = "access-1"
between = ["client", "router[0]"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
name = "access-2"
between = ["client", "router[1]"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
name = "road-1"
between = ["router[0]", "server"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = "50 packets"
down = [["1 s", "2500 ms"]]
[[link]]
name = "road-2"
between = ["router[1]", "server"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = "50 packets"
[[flow]]
name = "multihomed"
from = "client"
to = "server"
paths = [{ from = "access-1", to = "road-1" }, { from = "access-2", to = "road-2" }]
workload = { kind = "bulk" }
transport = { protocol = "sctp", profile = "rfc9260", path_max_retrans = 0, rto_min = "100 ms" }
[[experiment.measure]]
metric = "timeouts"
flow = "multihomed"
[[experiment.record]]
flow = "multihomed"
probes = ["goodput", "path_state", "active_path", "rto", "a_rwnd", "received"]
"#;

/// Two stations of an access point, which has a wire to the first node of the tree.
const WIRELESS: &str = r#"
[[node]]
name = "access-point"
[[node]]
name = "laptop"
[[node]]
name = "tablet"
[[link]]
name = "up"
between = ["n0", "access-point"]
rate = "100 Mbit/s"
delay = "2 ms"
queue = "50 packets"
[[wifi]]
name = "air"
set = "802.11b"
access_point = { node = "access-point", at = ["0 m", "0 m"] }
station = [{ node = "laptop", at = ["20 m", "0 m"] }, { node = "tablet", at = ["0 m", "20 m"] }]
[[flow]]
name = "down"
from = "n1"
to = "laptop"
workload = { kind = "bulk" }
transport = { protocol = "tcp", profile = "linux" }
[[flow]]
name = "across"
from = "laptop"
to = "tablet"
workload = { kind = "cbr", rate = "200 kbit/s", message = "500 B" }
transport = { protocol = "udp" }
[[experiment.measure]]
metric = "goodput"
flow = "down"
[[experiment.measure]]
metric = "queue_delay"
link = "air"
statistic = ["p50", "p95"]
window = ["1 s", "3 s"]
"#;

/// A spec of a random tree of nodes with flows between them. Some specs also have hosts with two
/// paths, or a wireless cell.
fn random(seed: u64) -> String {
    let mut rng = Seed::new(seed, 0).stream("divided");
    let mut pick = |count: usize| Rng::below(&mut rng, count as u64) as usize;
    let mut text = String::from(
        "anabranch = 1\nname = \"divided\"\n[world]\nduration = \"3 s\"\n[[experiment]]\nid = \"e\"\nreplications = 1\n",
    );
    let nodes = 4 + pick(4);
    for node in 0..nodes {
        let _ = writeln!(text, "[[node]]\nname = \"n{node}\"");
    }
    for node in 1..nodes {
        let rate = ["2 Mbit/s", "10 Mbit/s", "4 Mbit/s"][pick(3)];
        let delay = [
            "1 ms",
            "3 ms",
            "10 ms",
            "{ kind = \"jitter\", delay = \"5 ms\", jitter = \"2 ms\" }",
        ][pick(4)];
        let queue = [
            "20 packets",
            "{ kind = \"codel\", limit = \"50 packets\" }",
            "30 KiB",
        ][pick(3)];
        let _ = writeln!(
            text,
            "[[link]]\nname = \"l{node}\"\nbetween = [\"n{node}\", \"n{}\"]\nrate = \"{rate}\"\ndelay = {}\nqueue = {}",
            pick(node),
            if delay.starts_with('{') {
                delay.to_owned()
            } else {
                format!("\"{delay}\"")
            },
            if queue.starts_with('{') {
                queue.to_owned()
            } else {
                format!("\"{queue}\"")
            },
        );
        match pick(4) {
            0 => text
                .push_str("loss = { forward = { model = \"bernoulli\", probability = 0.02 } }\n"),
            1 => text.push_str("down = [[\"1 s\", \"1500 ms\"]]\n"),
            _ => {}
        }
        let _ = writeln!(
            text,
            "[[experiment.record]]\nlink = \"l{node}\"\nprobes = [\"throughput\", \"queue\", \"drop\"]\nbin = \"100 ms\"\n\
             [[experiment.measure]]\nmetric = \"queue_delay\"\nlink = \"l{node}\"\nstatistic = [\"p50\", \"most\"]\nwindow = [\"1 s\", \"3 s\"]"
        );
    }
    for flow in 0..2 + pick(4) {
        let (from, shift) = (pick(nodes), 1 + pick(nodes - 1));
        let transport = TRANSPORTS[pick(TRANSPORTS.len())];
        let workload = match transport.contains("udp") {
            true => "{ kind = \"cbr\", rate = \"1 Mbit/s\", message = \"500 B\" }",
            false => [
                "{ kind = \"bulk\" }",
                "{ kind = \"cbr\", rate = \"1 Mbit/s\", message = \"500 B\" }",
            ][pick(2)],
        };
        let _ = writeln!(
            text,
            "[[flow]]\nname = \"f{flow}\"\nfrom = \"n{from}\"\nto = \"n{}\"\ntransport = {transport}\nworkload = {workload}\nstart = \"{} ms\"\ncount = {}\n\
             [[experiment.measure]]\nmetric = \"goodput\"\nflow = \"f{flow}\"\nwindow = [\"1 s\", \"3 s\"]\n\
             [[experiment.measure]]\nmetric = \"max_delivery_gap\"\nflow = \"f{flow}\"\n\
             [[experiment.record]]\nflow = \"f{flow}\"\nprobes = [\"goodput\"]\nbin = \"50 ms\"",
            (from + shift) % nodes,
            pick(3) * 100,
            1 + pick(2),
        );
        if transport.contains("tcp") || transport.contains("sctp") {
            let _ = writeln!(
                text,
                "[[experiment.measure]]\nmetric = \"retransmissions\"\nflow = \"f{flow}\"\n\
                 [[experiment.measure]]\nmetric = \"mean_cwnd\"\nflow = \"f{flow}\"\n\
                 [[experiment.record]]\nflow = \"f{flow}\"\nprobes = [\"cwnd\", \"srtt\", \"delivered\", \"received\", \"duplicate\"]",
            );
        }
        if pick(6) == 0 {
            // This metric requires that both ends of the flow are in the same part.
            let _ = writeln!(
                text,
                "[[experiment.measure]]\nmetric = \"mean_one_way_delay\"\nflow = \"f{flow}\""
            );
        }
    }
    for (more, parts) in [(TWO_PATHS, 3), (WIRELESS, 3)] {
        if pick(parts) == 0 {
            text.push_str(more);
        }
    }
    text
}

#[test]
fn random_specs_give_the_same_results_with_any_number_of_threads() {
    let mut divided = 0;
    for seed in 0..24 {
        let plan = plan(random(seed), &format!("seed {seed}"));
        divided += usize::from(compare(&PlannedRun::all(&plan)[0], &format!("seed {seed}")));
    }
    assert!(divided > 18, "{divided}");
}

/// Examples whose measures need the whole duration, and whose first run takes little time.
const WHOLE: [&str; 4] = [
    "air.toml",
    "concurrent.toml",
    "failover.toml",
    "parking-lot.toml",
];

/// Examples whose worlds can be divided.
const DIVIDED: [&str; 10] = [
    "air.toml",
    "concurrent.toml",
    "constellation.toml",
    "failover.toml",
    "geo-real.toml",
    "own.toml",
    "pages.toml",
    "parking-lot.toml",
    "resume-proxy.toml",
    "web-transfers.toml",
];

/// The first run of each example, with a shorter duration if its measures allow that. Nodes stay
/// together because of media, proxies, and measures that need both ends of a flow.
#[test]
fn examples_give_the_same_results_with_any_number_of_threads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    let mut divided = Vec::new();
    for name in &names {
        let path = format!("{folder}/{name}");
        let text = std::fs::read_to_string(&path).expect("an example");
        let plan = |duration: &[&str]| {
            Plan::new(PlanRequest::new(path.clone(), text.clone()).with(|it| {
                it.overrides = duration.iter().map(|&one| one.to_owned()).collect();
                it.replications = Some(1);
                it.record_all = true;
            }))
        };
        let short = plan(&["world.duration=5 s"]).or_else(|_| plan(&["duration=5 s"]));
        let whole = |refused| match WHOLE.contains(&name.as_str()) {
            true => plan(&[]),
            false => Err(refused),
        };
        // An example that reads files, or whose stacks are not compiled in, has no plan here.
        let Ok(plan) = short.or_else(whole) else {
            continue;
        };
        if compare(&PlannedRun::all(&plan)[0], name) {
            divided.push(name.as_str());
        }
    }
    assert_eq!(divided, DIVIDED);
}

/// The error should name the reasons why all nodes must stay together.
#[test]
fn a_world_that_cannot_be_divided_says_why() {
    let text = |delay: &str, measure: &str| {
        format!(
            "anabranch = 1\nname = \"two\"\n[world]\nduration = \"1 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nname = \"link\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"{delay}\"\nqueue = \"9 packets\"\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ protocol = \"tcp\", profile = \"linux\" }}\n\
             workload = {{ kind = \"bulk\" }}\n[[measure]]\nmetric = \"{measure}\"\nflow = \"f\"\n"
        )
    };
    for (delay, measure, wanted) in [
        (
            "0 ms",
            "goodput",
            Some("the delay between a and b is 0, or its kind states no least delay"),
        ),
        (
            "5 ms",
            "mean_one_way_delay",
            Some("both ends of the flow f share the times of its messages"),
        ),
        ("5 ms", "goodput", None),
    ] {
        let plan = plan(text(delay, measure), measure);
        let checked = world::check_divisible(&PlannedRun::all(&plan)[0], 2);
        match (checked, wanted) {
            (Err(WorldError::Indivisible(why)), Some(wanted)) => assert_eq!(why, wanted),
            (checked, wanted) => assert!(checked.is_ok() && wanted.is_none(), "{delay} {measure}"),
        }
    }
}

/// If a series is recorded at both ends of a flow, only the ends of this flow should have to stay
/// in the same part.
#[test]
fn only_recorded_flows_are_kept_together() {
    let text = |recorded: &str, probes: &str| {
        let mut text = String::from(
            "anabranch = 1\nname = \"two\"\n[world]\nduration = \"1 s\"\n[[experiment]]\nid = \"e\"\nreplications = 1\n",
        );
        for (from, to) in [("a", "b"), ("b", "c")] {
            let _ = writeln!(
                text,
                "[[link]]\nname = \"{from}{to}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"9 packets\"\n\
                 [[flow]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 2\ntransport = {{ protocol = \"sctp\", profile = \"rfc9260\" }}\n\
                 workload = {{ kind = \"bulk\" }}"
            );
        }
        for node in ["a", "b", "c"] {
            let _ = writeln!(text, "[[node]]\nname = \"{node}\"");
        }
        for flow in recorded.split(' ') {
            let _ = writeln!(
                text,
                "[[experiment.record]]\nflow = \"{flow}\"\nprobes = [{probes}]"
            );
        }
        text
    };
    let parts = |recorded: &str, probes: &str| {
        let plan = plan(text(recorded, probes), recorded);
        world::check_divisible(&PlannedRun::all(&plan)[0], 3)
    };
    let mutual = "\"cwnd\", \"heartbeat_bytes\"";
    for (recorded, probes, expected) in [
        ("a-b b-c", "\"cwnd\", \"received\"", 3),
        ("a-b", mutual, 2),
        ("b-c[1]", mutual, 2),
    ] {
        let parts = parts(recorded, probes);
        assert_eq!(parts.expect("a divisible world"), expected, "{recorded}");
    }
    let refused = parts("a-b[0] b-c[1]", mutual).expect_err("one part");
    let refused = refused.to_string();
    for flow in ["a-b", "b-c"] {
        let why = format!("both ends of the flow {flow} share a recorded series");
        assert!(refused.contains(&why), "{refused}");
    }
}

/// The delay of a path over satellites is at least that of light on a straight line between its
/// ends. If the ends are at different places, this minimum is above 0, and the world can therefore
/// be divided at this link.
#[test]
fn a_path_over_satellites_divides_a_world() {
    let text = |to: &str| {
        format!(
            "anabranch = 1\nname = \"two\"\n[world]\nduration = \"3 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nname = \"link\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\nqueue = \"9 packets\"\n\
             delay = {{ kind = \"satellites\", shell = \"starlink-1\", from = \"50.1,8.7\", to = \"{to}\", relay = \"bent-pipe\", jitter = \"2 ms\" }}\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ protocol = \"tcp\", profile = \"linux\" }}\n\
             workload = {{ kind = \"bulk\" }}\n[[measure]]\nmetric = \"goodput\"\nflow = \"f\"\n"
        )
    };
    for (to, is_divided) in [("50.7,4.6", true), ("50.1,8.7", false)] {
        let plan = plan(text(to), to);
        assert_eq!(compare(&PlannedRun::all(&plan)[0], to), is_divided, "{to}");
    }
}

/// A crew whose threads cannot be started.
struct Absent;

impl Crew for Absent {
    fn threads(&self) -> usize {
        2
    }

    fn processors(&self) -> usize {
        2
    }

    fn together(
        &self,
        _: usize,
        _: &(dyn Fn(usize) + Sync),
        _: &mut dyn FnMut(),
    ) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn threads_that_cannot_be_started_are_an_error() {
    let plan = plan(random(0), "seed 0");
    let unit = &PlannedRun::all(&plan)[0];
    let failed = world::run_divided(unit, 7, &mut Memory::default(), &Absent);
    let failed = failed.expect_err("no threads");
    assert!(matches!(failed, WorldError::Threads(_)), "{failed}");
    assert!(
        failed
            .to_string()
            .starts_with("cannot start the threads of the run: "),
        "{failed}"
    );
}
