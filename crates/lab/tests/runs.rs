//! Execution, storage and resumption of runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::{NullSink, Sink};
use anabranch_engine::world::WorldError;
use anabranch_lab::atomic_write::Durability;
use anabranch_lab::journal::Journal;
use anabranch_lab::run::{Quiet, RunError, Simulator, run};
use anabranch_lab::store::{Store, StoreError, key};
use anabranch_lab::threads::Threads;
use anabranch_scenario::records::{Results, RunRecord, SeriesQuery};

const SPEC: &str = r#"
anabranch = 1
name = "pair"

[parameters]
loss = 0.02

[world]
duration = "20 s"

[[node]]
name = "source"
[[node]]
name = "sink"

[[link]]
name = "wire"
between = ["source", "sink"]
rate = "1 Mbit/s"
delay = "40 ms"
queue = "10 packets"
loss = { forward = { model = "bernoulli", probability = "$loss" } }

[[flow]]
name = "tcp"
from = "source"
to = "sink"
start = { uniform = ["0 s", "1 s"] }
workload = { kind = "bulk" }
transport = { protocol = "tcp" }

[[flow]]
name = "sctp"
count = 2
from = "source"
to = "sink"
start = { uniform = ["0 s", "1 s"] }
workload = { kind = "bulk" }
transport = { protocol = "sctp", streams = 3 }

[[flow]]
name = "cross"
from = "source"
to = "sink"
workload = { kind = "cbr", rate = "50 kbit/s", message = "500 B" }
transport = { protocol = "udp" }

[[measure]]
metric = "goodput"
flow = "tcp"
[[measure]]
metric = "goodput"
flow = "sctp"
[[measure]]
metric = "goodput"
flow = "cross"
[[measure]]
metric = "link_utilization"
link = "wire"
counting = "wire"
[[measure]]
metric = "mean_one_way_delay"
flow = "sctp[1]"
[[measure]]
metric = "mean_one_way_delay"
flow = "tcp"
[[measure]]
metric = "mean_cwnd"
flow = "sctp"

[[experiment]]
id = "losses"
replications = 3
sweep = [{ parameter = "loss", values = [0.0, 0.05] }]
[[experiment.record]]
flow = "sctp"
probes = ["cwnd", "received"]
replications = [0, 2]
[[experiment.record]]
link = "wire"
probes = ["throughput", "queue", "drop"]
bin = "500 ms"
"#;

fn plan(text: &str) -> Plan {
    let request = PlanRequest::new("pair.toml", text).with(|it| it.seed = 7);
    Plan::new(request).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(directory: &Path, jobs: usize) -> Results {
    let store = Store::create(directory).expect("a directory that can be written");
    run(&plan(SPEC), &store, &Simulator::default(), jobs, &Quiet)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Contents of all files below a directory, by path.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry
                    .strip_prefix(directory)
                    .expect("below it")
                    .display()
                    .to_string();
                // Journals are omitted, because their runs are in the order in which they ended.
                if !name.ends_with(".journal") {
                    files.insert(name, fs::read(&entry).expect("a file"));
                }
            }
        }
    }
    files
}

#[test]
fn one_job_and_two_give_the_same_bytes() {
    let (one, two) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    simulate(one.path(), 1);
    simulate(two.path(), 2);
    let (one, two) = (contents(one.path()), contents(two.path()));
    assert!(
        one.contains_key("series/losses.parquet") && one.contains_key("manifest.json"),
        "{:?}",
        one.keys()
    );
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        two.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &one {
        assert_eq!(Some(bytes), two.get(name), "{name}");
    }
}

#[test]
fn flows_of_every_protocol_carry_data_and_measures_say_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = simulate(directory.path(), 2);
    assert_eq!(results.records.len(), 6);
    for record in &results.records {
        let value = |series, metric| {
            record
                .value(series, metric)
                .unwrap_or_else(|| panic!("{series} {metric}"))
        };
        let (tcp, sctp) = (value("tcp", "goodput"), value("sctp", "goodput"));
        let used = value("all", "link_utilization_wire");
        assert!(
            tcp > 10_000.0 && sctp > 10_000.0 && tcp + sctp < 1e6,
            "{tcp} {sctp}"
        );
        assert!(
            (47_000.0..=50_000.0).contains(&value("cross", "goodput")) || used < 99.0,
            "{record:?}"
        );
        assert!(used > 20.0 && used <= 100.0, "{used}");
        // The minimum delay is 40 ms of propagation and 12 ms of transmission.
        assert!(value("sctp[1]", "mean_one_way_delay") > 0.052);
        assert!(value("tcp", "mean_one_way_delay") > 0.052);
        assert!(value("sctp", "mean_cwnd") >= 1.0);
    }
}

#[test]
fn series_are_read_as_they_were_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = simulate(directory.path(), 2);
    let query = SeriesQuery {
        experiment: "losses",
        entity: Some("sctp"),
        probe: Some("cwnd"),
        ..SeriesQuery::default()
    };
    let series = results
        .series(&query)
        .unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<(String, u32, u32)> = series
        .iter()
        .map(|s| (s.point[0].1.to_string(), s.replication, s.member))
        .collect();
    let expected = [
        ("0", 0, 0),
        ("0", 0, 1),
        ("0", 2, 0),
        ("0", 2, 1),
        ("0.05", 0, 0),
        ("0.05", 0, 1),
        ("0.05", 2, 0),
        ("0.05", 2, 1),
    ];
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        expected.map(|(x, replication, member)| (x.to_owned(), replication, member))
    );
    for series in &series {
        assert!(series.samples.len() > 10 && series.samples.is_sorted_by(|a, b| a.time <= b.time));
    }
    let throughput = SeriesQuery {
        entity: Some("wire"),
        probe: Some("throughput"),
        ..query
    };
    let bins = &results
        .series(&throughput)
        .unwrap_or_else(|error| panic!("{error}"))[0]
        .samples;
    assert_eq!(bins.len(), 40);
    // A packet counts when its last bit has arrived, so a bin may exceed the rate by up to one
    // packet of 1500 bytes.
    assert!(bins.iter().all(|bin| bin.value <= 1e6 + 1500.0 * 8.0 / 0.5));
    assert!(bins.iter().any(|bin| bin.value > 0.9e6));
}

/// A runner that fails after a number of runs, as if the process was killed.
struct Killed {
    left: AtomicUsize,
    inner: Simulator,
}

impl Runner for Killed {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        if self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_err()
        {
            return Err(WorldError::NoSuchLink {
                name: "killed".into(),
                known: String::new(),
            });
        }
        self.inner.run(unit, seed, sink)
    }
}

#[test]
fn an_interrupted_sweep_goes_on_and_ends_with_the_same_files() {
    let (whole, broken) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    simulate(whole.path(), 1);
    let store = Store::create(broken.path()).expect("a directory that can be written");
    let killed = Killed {
        left: AtomicUsize::new(4),
        inner: Simulator::default(),
    };
    let error = run(&plan(SPEC), &store, &killed, 1, &Quiet).expect_err("it was killed");
    assert!(matches!(error, RunError::World { .. }), "{error}");
    // A file that was being written when the process was killed.
    fs::write(
        broken.path().join("runs/losses-1-half.json.0123.part"),
        b"{ \"experi",
    )
    .expect("a file");
    let finished = PlannedRun::all(&plan(SPEC))
        .iter()
        .filter(|unit| store.finished(unit, &Simulator::default()).is_some())
        .count();
    assert_eq!(finished, 4);
    let again = Killed {
        left: AtomicUsize::new(2),
        inner: Simulator::default(),
    };
    run(&plan(SPEC), &store, &again, 1, &Quiet)
        .unwrap_or_else(|error| panic!("only two were left: {error}"));
    let (whole, broken) = (contents(whole.path()), contents(broken.path()));
    for (name, bytes) in &whole {
        assert_eq!(Some(bytes), broken.get(name), "{name}");
    }
}

#[test]
fn a_damaged_run_is_made_again_and_those_behind_it_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = simulate(directory.path(), 1);
    let path = directory.path().join("runs/1.journal");
    let text = fs::read_to_string(&path).expect("a journal");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 6, "a head and six runs");
    let damaged = text.replacen("losses-1-", "losses-7-", 1);
    assert_ne!(damaged, text);
    fs::write(&path, damaged).expect("a file");
    let store = Store::create(directory.path()).expect("a directory that can be written");
    let found = store.damaged();
    let kept = (found.len(), found[0].runs, found[0].lost);
    assert_eq!(kept, (1, 5, 1), "{found:?}");
    let none_left = Killed {
        left: AtomicUsize::new(0),
        inner: Simulator::default(),
    };
    run(&plan(SPEC), &store, &none_left, 1, &Quiet).expect_err("one is to be made again");
    drop(store);
    assert_eq!(simulate(directory.path(), 1).records, before.records);
    // The repeated run is at the end now, and blank lines have replaced the damage.
    let sorted = |text: &str| {
        let lines = text.lines().filter(|it| !it.is_empty());
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let mended = fs::read_to_string(&path).expect("a journal");
    assert_eq!(sorted(&mended), sorted(&text));
}

/// The samples of one run are truncated, and the record of one run has the key of another run.
#[test]
fn damaged_samples_and_records_of_other_runs_are_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = simulate(directory.path(), 1);
    let whole = contents(directory.path());
    let plan = plan(SPEC);
    let units = PlannedRun::all(&plan);
    let runs = directory.path().join("runs");
    let sampled = units.iter().find(|unit| unit.records()).expect("samples");
    let samples = runs.join(format!("{}.parquet", key(sampled, "simulated")));
    let bytes = fs::read(&samples).expect("samples");
    fs::write(&samples, &bytes[..100]).expect("a file");
    let [one, other] = [1, 2].map(|index| key(&units[index], "simulated"));
    let journal = Journal::open(&runs).expect("journals");
    let record = journal.get(&one, |record| Some(record.to_vec()));
    let record = record.expect("a record");
    let added = journal.add(&other, &record, Durability::Buffered);
    added.expect("a record of another replication");
    drop(journal);
    assert_eq!(simulate(directory.path(), 1).records, before.records);
    assert_eq!(contents(directory.path()), whole);
}

#[test]
fn samples_damaged_in_the_middle_are_reported_by_their_own_name() {
    let directory = tempfile::tempdir().expect("a directory");
    simulate(directory.path(), 1);
    let plan = plan(SPEC);
    let units = PlannedRun::all(&plan);
    let sampled = units.iter().find(|unit| unit.records()).expect("samples");
    let samples = directory
        .path()
        .join(format!("runs/{}.parquet", key(sampled, "simulated")));
    let mut bytes = fs::read(&samples).expect("samples");
    bytes[4..400].fill(0xff);
    fs::write(&samples, bytes).expect("a file");
    let store = Store::create(directory.path()).expect("a directory that can be written");
    let error = run(&plan, &store, &Simulator::default(), 1, &Quiet).expect_err("it is damaged");
    let found =
        matches!(&error, RunError::Store(StoreError::Damaged { path, .. }) if *path == samples);
    assert!(found, "{error}");
    fs::remove_file(&samples).expect("as the error says");
    run(&plan, &store, &Simulator::default(), 1, &Quiet).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn several_that_work_on_one_directory_do_not_harm_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let alone = tempfile::tempdir().expect("a directory");
    simulate(alone.path(), 1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| simulate(directory.path(), 1));
        }
    });
    assert_eq!(contents(directory.path()), contents(alone.path()));
}

#[test]
fn files_of_a_killed_process_are_removed_once_the_directory_is_unused() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(directory.path()).expect("a directory that can be written");
    let left = [
        "runs/x.json.0123456789abcdef-0.part",
        "series/x.parquet.0123456789abcdef-0.part",
        "manifest.json.0123456789abcdef-0.part",
    ]
    .map(|name| directory.path().join(name));
    for path in &left {
        fs::write(path, b"half").expect("a file");
    }
    let other = Store::create(directory.path()).expect("a directory that can be written");
    assert!(
        left.iter().all(|path| path.exists()),
        "it may be the first one's"
    );
    let users = directory.path().join("film.mkv.part");
    fs::write(&users, b"a user's").expect("a file");
    drop((store, other));
    Store::create(directory.path()).expect("a directory that can be written");
    assert!(left.iter().all(|path| !path.exists()));
    assert!(users.exists(), "it is no file of ours");
}

#[test]
fn a_directory_that_cannot_be_written_is_found_before_anything_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("results");
    fs::write(&file, b"a file, not a directory").expect("a file");
    let error = Store::create(&file).expect_err("it is a file");
    assert!(
        matches!(&error, StoreError::Write { path, .. } if path.starts_with(&file)),
        "{error}"
    );
}

#[test]
fn a_finished_directory_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = simulate(directory.path(), 2);
    let read = Store::open(directory.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.records, made.records);
    assert_eq!(read.manifest, made.manifest);
    assert_eq!(read.spec, made.spec);
}

/// Records that are in memory at the end of a run give the same files as records that were stored
/// and read.
#[test]
fn stored_records_give_the_same_files_as_records_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = simulate(directory.path(), 2);
    let before = contents(directory.path());
    let store = Store::create(directory.path()).expect("a directory that can be written");
    let again = store
        .assemble(&plan(SPEC), &Simulator::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.records, made.records);
    assert_eq!(again.manifest, made.manifest);
    assert_eq!(contents(directory.path()), before);
}

/// The points of a plan, and the errors in a spec, do not depend on the number of threads.
#[test]
fn a_plan_does_not_depend_on_its_threads() {
    let losses: Vec<String> = (0..64)
        .map(|at| format!("{}", f64::from(at) / 100.0))
        .collect();
    let spec = SPEC.replace("[0.0, 0.05]", &format!("[{}]", losses.join(", ")));
    let planned = |text: &str, jobs| {
        let request = PlanRequest::new("pair.toml", text);
        let plan = Plan::with_executor(request, &Standard::default(), &Threads(jobs));
        let plan = plan.map_err(|error| error.to_string())?;
        let points = plan.experiments[0].points.iter();
        let points: Vec<_> = points
            .map(|it| (plan.experiments[0].point(it), it.hash()))
            .collect();
        Ok::<_, String>((plan.hash, points))
    };
    let wrong = spec.replace("0.41, ", "1.41, ").replace("0.63", "-1");
    let unused = spec.replace("[parameters]", "[parameters]\nspare = 1");
    for text in [&spec, &wrong, &unused] {
        let one = planned(text, 1);
        assert_eq!(one.is_ok(), text == &spec);
        for jobs in [2, 3, 64] {
            assert_eq!(planned(text, jobs), one);
        }
    }
}

#[test]
fn common_random_numbers_make_points_meet_the_same_randomness() {
    // The sweep has two points that differ only in their x values.
    let text = SPEC
        .replace(
            "sweep = [{ parameter = \"loss\", values = [0.0, 0.05] }]",
            "sweep = [{ name = \"n\", points = [{ x = 1 }, { x = 2 }] }]",
        )
        .replace(
            "replications = 3",
            "replications = 1\ncommon_random_numbers = COMMON",
        );
    let records = |common: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("a directory that can be written");
        let plan = plan(&text.replace("COMMON", common));
        run(&plan, &store, &Simulator::default(), 2, &Quiet)
            .unwrap_or_else(|error| panic!("{error}"))
            .records
    };
    let common = records("true");
    assert_eq!(common[0].metrics, common[1].metrics);
    let own = records("false");
    assert_ne!(own[0].metrics, own[1].metrics);
}

/// A lossless link of 1 Mbit/s, so that only the reading rate READING can limit the flow.
const READER: &str = r#"
anabranch = 1
name = "reader"
[world]
duration = "20 s"
[[node]]
name = "source"
[[node]]
name = "sink"
[[link]]
name = "wire"
between = ["source", "sink"]
rate = "1 Mbit/s"
delay = "40 ms"
queue = "100 packets"
[[flow]]
name = "sctp"
from = "source"
to = "sink"
workload = { kind = "bulk" }
transport = { protocol = "sctp", receive_buffer = "32 KiB" READING }
[[measure]]
metric = "goodput"
flow = "sctp"
[[measure]]
metric = "probe"
name = "window"
flow = "sctp"
probe = "a_rwnd"
statistic = "mean"
window = ["5 s", "20 s"]
[[experiment]]
id = "reading"
replications = 1
"#;

#[test]
fn a_slow_reader_sets_the_rate_and_its_buffer_fills() {
    let measured = |reading: &str| {
        let plan = plan(&READER.replace("READING", reading));
        let run = anabranch_engine::world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[])
            .expect("a run");
        let value = |metric| run.value("sctp", metric).expect("a value");
        (value("goodput"), value("window"))
    };
    let (slow, slow_window) = measured(r#", application_read_rate = "400 kbit/s""#);
    let (fast, fast_window) = measured("");
    // The start takes part of the 20 s, and data in the receive buffer counts only after it was
    // read.
    assert!((0.93 * 400e3..=400e3).contains(&slow), "{slow}");
    assert!(fast > 800e3, "{fast}");
    assert!(slow_window < 8192.0, "{slow_window}");
    assert!(fast_window > 28.0 * 1024.0, "{fast_window}");
}

/// The MTU of the link falls to 1,300 bytes after 5 s. Without path MTU discovery no more data
/// arrives; with it the transfer continues.
#[test]
fn a_link_whose_mtu_falls_is_a_black_hole_to_who_does_not_look() {
    let spec = READER.replace(
        "queue = \"100 packets\"",
        "queue = \"100 packets\"\nmtu_changes = [[\"5 s\", \"1300 B\"]]",
    );
    let goodput = |transport: &str| {
        let plan = plan(&spec.replace("READING", transport));
        let run = anabranch_engine::world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[])
            .expect("a run");
        run.value("sctp", "goodput").expect("a value")
    };
    let (blind, looking) = (goodput(""), goodput(", path_mtu_discovery = true"));
    let small = goodput(r#", mtu = "1300 B""#);
    assert!(blind < 0.26 * small, "{blind} {small}");
    assert!((0.7 * small..small).contains(&looking), "{looking} {small}");
}
