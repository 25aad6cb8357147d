//! Runs whose world is divided among threads: records and samples are those of one thread.

use std::fmt::Write as _;
use std::thread;

use anabranch_engine::parallel::Crew;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::Memory;
use anabranch_engine::world::{self, WorldError};
use anabranch_scenario::records::RunRecord;
use anabranch_sim::{Rng, Seed};

/// Threads of the program.
struct Team(usize);

impl Crew for Team {
    fn threads(&self) -> usize {
        self.0
    }

    fn together(&self, parts: usize, others: &(dyn Fn(usize) + Sync), first: &mut dyn FnMut()) {
        thread::scope(|scope| {
            for part in 1..parts {
                scope.spawn(move || others(part));
            }
            first();
        });
    }
}

/// The record, and every sample in the order in which it reached the sink.
fn run(unit: &PlannedRun<'_>, threads: usize) -> Result<(RunRecord, Vec<String>), WorldError> {
    let mut memory = Memory::default();
    let record = world::run_divided(unit, 7, &mut memory, &Team(threads))?;
    let series = memory.series.iter().map(|it| format!("{it:?}"));
    Ok((record, series.collect()))
}

/// Compares a unit with several numbers of threads; returns whether its world can be divided.
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

/// A random tree of nodes with flows between them.
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
            "[[experiment.record]]\nlink = \"l{node}\"\nprobes = [\"throughput\", \"queue\", \"drop\"]\nbin = \"100 ms\""
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
            "[[flow]]\nname = \"f{flow}\"\nfrom = \"n{from}\"\nto = \"n{}\"\ntransport = {transport}\nworkload = {workload}\n\
             [[experiment.measure]]\nmetric = \"goodput\"\nflow = \"f{flow}\"\nwindow = [\"1 s\", \"3 s\"]\n\
             [[experiment.measure]]\nmetric = \"max_delivery_gap\"\nflow = \"f{flow}\"\n\
             [[experiment.record]]\nflow = \"f{flow}\"\nprobes = [\"goodput\"]\nbin = \"50 ms\"",
            (from + shift) % nodes,
        );
        if transport.contains("tcp") || transport.contains("sctp") {
            let _ = writeln!(
                text,
                "[[experiment.measure]]\nmetric = \"retransmissions\"\nflow = \"f{flow}\"\n\
                 [[experiment.measure]]\nmetric = \"mean_cwnd\"\nflow = \"f{flow}\"\n\
                 [[experiment.record]]\nflow = \"f{flow}\"\nprobes = [\"cwnd\", \"srtt\", \"delivered\"]",
            );
        }
        if pick(6) == 0 {
            // Its ends stay together.
            let _ = writeln!(
                text,
                "[[experiment.measure]]\nmetric = \"mean_one_way_delay\"\nflow = \"f{flow}\""
            );
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
        // An example that reads files, or whose stacks are not compiled in, has no plan here.
        let Ok(plan) = plan(&["world.duration=5 s"]).or_else(|_| plan(&["duration=5 s"])) else {
            continue;
        };
        if compare(&PlannedRun::all(&plan)[0], name) {
            divided.push(name.as_str());
        }
    }
    assert!(divided.len() > 3, "{divided:?}");
    assert!(divided.contains(&"constellation.toml"), "{divided:?}");
}

/// The error names the reasons for which all nodes must stay together.
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
        ("0 ms", "goodput", Some("no delay separates a and b")),
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
