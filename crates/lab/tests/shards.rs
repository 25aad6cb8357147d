//! A sweep in shards gives the same results as a single run, and inconsistent shards are detected.
//! Runs of one kind of runner must never be used for another kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::Sink;
use anabranch_engine::world::WorldError;
use anabranch_lab::run::{Quiet, RunError, Simulator, run, run_shard};
use anabranch_lab::shard::{CompleteShards, FILE, ShardContents, ShardError, ShardSpec};
use anabranch_lab::store::{Store, key};
use anabranch_scenario::records::{RunRecord, SeriesQuery};

const SPEC: &str = r#"
anabranch = 1
name = "sharded"
world = { duration = "5 s" }
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "1 Mbit/s", delay = "$delay", queue = "$queue", loss = { forward = { model = "bernoulli", probability = "$loss" } } }]
flow = [{ name = "sctp", from = "a", to = "b", workload = { kind = "bulk" }, transport = { protocol = "sctp" } }]
measure = [{ metric = "goodput", flow = "sctp" }, { metric = "timeouts", flow = "sctp" }]

[parameters]
loss = 0.0
delay = "10 ms"
queue = "8 packets"

[[experiment]]
id = "losses"
replications = 3
sweep = [{ parameter = "loss", values = [0.0, 0.05] }, { parameter = "delay", values = ["5 ms", "1 s"] }]
record = [{ flow = "sctp", probes = ["cwnd"], replications = [1] }]

[[experiment]]
id = "queues"
replications = 2
sweep = [{ parameter = "queue", values = ["32 KiB", "8 packets"] }]
"#;

fn request(text: &str, seed: u64) -> PlanRequest {
    PlanRequest::new("sharded.toml", text).with(|it| it.seed = seed)
}

fn planned(request: PlanRequest) -> Plan {
    Plan::new(request).unwrap_or_else(|error| panic!("{error}"))
}

fn plan() -> Plan {
    planned(request(SPEC, 7))
}

fn share(text: &str) -> ShardSpec {
    text.parse().expect("a share")
}

/// Starts a shard of a plan in a directory, and executes its runs.
fn make(
    plan: &Plan,
    which: &str,
    directory: &Path,
    runner: &impl Runner,
) -> Result<usize, RunError> {
    let store = Store::create(directory).expect("a directory that can be written");
    let shard = ShardContents::of(plan, share(which), &[]);
    shard.begin(&store).expect("an empty directory");
    run_shard(plan, share(which), &store, runner, 1, &Quiet)
}

fn simulated(plan: &Plan, which: &str, directory: &Path) -> usize {
    let made = make(plan, which, directory, &Simulator::default());
    made.unwrap_or_else(|error| panic!("{error}"))
}

fn merge(shards: &[PathBuf], into: &Path) -> Result<(), ShardError> {
    let whole = CompleteShards::read(shards)?;
    let store = Store::create(into)?;
    whole.copy(&store, &Simulator::default())?;
    store.assemble(&whole.plan, &Simulator::default())?;
    Ok(())
}

/// Contents of all files below a directory, by path.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below it");
                let mut bytes = fs::read(&path).expect("a file");
                if name.extension().is_some_and(|it| it == "journal") {
                    // Sorted, because the file has the runs in the order in which they ended.
                    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|it| *it == b'\n').collect();
                    lines.sort();
                    bytes = lines.concat();
                }
                files.insert(name.to_owned(), bytes);
            }
        }
    }
    files
}

/// Creates three shards, and the results of a run without shards.
fn three(at: &Path) -> Vec<PathBuf> {
    let shards: Vec<PathBuf> = ["one", "two", "three"].map(|name| at.join(name)).into();
    let runs: Vec<usize> = shards
        .iter()
        .zip(["1/3", "2/3", "3/3"])
        .map(|(shard, which)| simulated(&plan(), which, shard))
        .collect();
    // The plan has 4 points with 3 replications and 2 points with 2 replications.
    assert_eq!(runs, [6, 5, 5]);
    shards
}

#[test]
fn three_shards_put_together_are_one_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let mut shards = three(at);
    // The directories may be passed in any order.
    shards.reverse();
    merge(&shards, &at.join("merged")).unwrap_or_else(|error| panic!("{error}"));
    let store = Store::create(&at.join("whole")).expect("a directory");
    let results = run(&plan(), &store, &Simulator::default(), 2, &Quiet).expect("a run");
    assert_eq!(results.records.len(), 16);
    let (merged, whole) = (contents(&at.join("merged")), contents(&at.join("whole")));
    assert!(whole.keys().any(|path| path.ends_with("losses.parquet")));
    let names =
        |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> { files.keys().cloned().collect() };
    assert_eq!(names(&merged), names(&whole));
    for (path, bytes) in &whole {
        assert!(
            merged.get(path) == Some(bytes),
            "{} differs",
            path.display()
        );
    }
}

/// A runner that executes this number of runs and fails at the next run.
struct Killed(AtomicUsize);

impl Runner for Killed {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        left.map_err(|_| WorldError::Live("killed".to_owned()))?;
        Simulator::default().run(unit, seed, sink)
    }
}

#[test]
fn a_killed_shard_goes_on_and_until_then_is_not_merged() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let (one, two) = (at.join("one"), at.join("two"));
    simulated(&plan(), "1/2", &one);
    make(&plan(), "2/2", &two, &Killed(3.into())).expect_err("it was killed");
    let shards = [one, two.clone()];
    let error = merge(&shards, &at.join("merged"))
        .expect_err("one has not ended")
        .to_string();
    assert!(
        error.contains("two: shard 2/2 lacks 5 of its 8 runs"),
        "{error}"
    );
    // Only five runs are left to be executed.
    make(&plan(), "2/2", &two, &Killed(5.into())).unwrap_or_else(|error| panic!("{error}"));
    merge(&shards, &at.join("merged")).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn shards_that_do_not_belong_together_are_distinguished() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let shards = three(at);
    let told = |shards: &[PathBuf], wanted: &[&str]| {
        let error = merge(shards, &at.join("merged"))
            .expect_err("they do not")
            .to_string();
        for wanted in wanted {
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
        assert!(!at.join("merged/measures.csv").exists());
    };
    told(&[shards[1].clone()], &["missing: shard 1/3, 3/3"]);
    told(&[], &["missing"]);
    let again = at.join("again");
    simulated(&plan(), "2/3", &again);
    told(
        &[&shards[..], std::slice::from_ref(&again)].concat(),
        &["two", "again", "both hold shard 2/3"],
    );
    let with = |name: &str, plan: &Plan, which: &str| {
        let directory = at.join(name);
        let store = Store::create(&directory).expect("a directory");
        ShardContents::of(plan, share(which), &[])
            .begin(&store)
            .expect("a shard");
        vec![shards[0].clone(), shards[2].clone(), directory]
    };
    let seed = planned(request(SPEC, 8));
    told(
        &with("seed", &seed, "2/3"),
        &["one", "different plans", "seed 7 and 8"],
    );
    let spec = planned(request(&SPEC.replace("8 packets", "9 packets"), 7));
    told(
        &with("spec", &spec, "2/3"),
        &["the texts of their specs differ"],
    );
    let more = planned(request(SPEC, 7).with(|it| it.replications = Some(4)));
    told(&with("more", &more, "2/3"), &["replications"]);
    let set =
        planned(request(SPEC, 7).with(|it| it.overrides = vec!["world.duration=6 s".to_owned()]));
    told(&with("set", &set, "2/3"), &["--set", "6 s"]);
    told(
        &with("of-four", &plan(), "2/4"),
        &["number of shards 3 and 4"],
    );
    let code = with("code", &plan(), "2/3");
    let file = at.join("code").join(FILE);
    let text = fs::read_to_string(&file).expect("a shard");
    let own = anabranch_lab::store::CODE;
    fs::write(&file, text.replace(own, "0123456789abcdef")).expect("a file");
    told(&code, &["code", "0123456789abcdef", own]);
    told(&code[2..], &["was made by other code (0123456789abcdef)"]);
    let none = at.join("none");
    fs::create_dir(&none).expect("a directory");
    told(
        &[shards[0].clone(), none],
        &["none is not a shard: it has no shard.json"],
    );
    fs::write(&file, "{ \"share\": { \"index\": 9, \"count\": 3 }").expect("a file");
    told(&code, &["code/shard.json: "]);
    // A directory can contain only one shard.
    let store = Store::create(&shards[0]).expect("a directory");
    let error = ShardContents::of(&plan(), share("2/3"), &[])
        .begin(&store)
        .expect_err("it has 1/3");
    assert!(
        error
            .to_string()
            .contains("holds shard 1/3; shard 2/3 needs a directory of its own"),
        "{error}"
    );
}

/// A runner that reports another kind than the simulator, and simulates less.
struct OfSockets;

impl Runner for OfSockets {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        let mut record = Simulator::default().run(unit, seed, sink)?;
        record.events = 0;
        Ok(record)
    }

    fn kind(&self, _: &PlannedRun<'_>) -> &'static str {
        "live"
    }
}

#[test]
fn simulated_results_are_not_used_for_live_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(directory.path()).expect("a directory");
    let plan = plan();
    let events = |results: anabranch_scenario::records::Results| -> u64 {
        results.records.iter().map(|record| record.events).sum()
    };
    let simulated = run(&plan, &store, &Simulator::default(), 1, &Quiet).expect("a run");
    assert!(events(simulated) > 1000);
    let unit = &PlannedRun::all(&plan)[0];
    assert!(
        store.finished(unit, &OfSockets).is_none(),
        "it was simulated"
    );
    assert_ne!(key(unit, "live"), key(unit, "simulated"));
    assert_eq!(
        events(run(&plan, &store, &OfSockets, 1, &Quiet).expect("a run")),
        0
    );
    // A simulation is not repeated either, although a run of sockets is stored now.
    let again = run(&plan, &store, &Killed(0.into()), 1, &Quiet).expect("all is there");
    assert!(events(again) > 1000);
}

#[test]
fn series_of_all_replications_are_kept_where_they_are_asked_for() {
    let kept = |plan: &Plan| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("a directory");
        let results = run(plan, &store, &Simulator::default(), 1, &Quiet).expect("a run");
        let query = SeriesQuery {
            experiment: "losses",
            ..SeriesQuery::default()
        };
        let series = results.series(&query).expect("samples");
        let mut replications: Vec<u32> = series.iter().map(|series| series.replication).collect();
        replications.sort_unstable();
        replications.dedup();
        (replications, results.manifest.record_all)
    };
    assert_eq!(kept(&plan()), (vec![1], false));
    let all = SPEC.replace("replications = [1]", "replications = \"all\"");
    assert_eq!(kept(&planned(request(&all, 7))), (vec![0, 1, 2], false));
    let flag = request(SPEC, 7).with(|it| it.record_all = true);
    assert_eq!(kept(&planned(flag)), (vec![0, 1, 2], true));
    let wrong = SPEC.replace("replications = [1]", "replications = \"al\"");
    let error = Plan::new(request(&wrong, 7))
        .expect_err("no such word")
        .to_string();
    assert!(
        error.contains("sharded.toml:19:62") && error.contains("\"all\""),
        "{error}"
    );
}

#[test]
fn measures_have_a_typed_column_for_each_sweep() {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(directory.path()).expect("a directory");
    let results = run(&plan(), &store, &Simulator::default(), 1, &Quiet).expect("a run");
    let text = |name: &str| fs::read_to_string(directory.path().join(name)).expect(name);
    let csv = text("measures/losses.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "experiment,loss,delay,delay_unit,replication,series,metric,value,unit"
    );
    // The values equal those in `measures.csv`, in which the x values are joined.
    let joined = text("measures.csv");
    for (line, old) in lines[1..].iter().zip(joined.lines().skip(1)) {
        let tail =
            |line: &str, from: usize| line.split(',').skip(from).collect::<Vec<_>>().join(",");
        assert_eq!(tail(line, 4), tail(old, 3));
    }
    assert_eq!(lines.len(), 1 + 12 * 2);
    assert!(
        lines[1].starts_with("losses,0,0.005,s,0,sctp,goodput,"),
        "{}",
        lines[1]
    );
    assert!(
        lines[24].starts_with("losses,0.05,1,s,2,sctp,timeouts,"),
        "{}",
        lines[24]
    );
    // A sweep with two units is stored as text.
    let csv = text("measures/queues.csv");
    assert!(
        csv.lines()
            .nth(1)
            .expect("a line")
            .starts_with("queues,32 KiB,0,sctp,goodput,"),
        "{csv}"
    );
    let file = fs::File::open(directory.path().join("measures/losses.parquet")).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = reader.schema().clone();
    let field = |name: &str| schema.field_with_name(name).expect(name);
    assert_eq!(field("delay").metadata()["unit"], "s");
    assert!(field("loss").metadata().is_empty());
    let batches: Vec<_> = reader
        .build()
        .expect("rows")
        .map(|batch| batch.expect("rows"))
        .collect();
    let [batch] = &batches[..] else {
        panic!("{} batches", batches.len())
    };
    let numbers = |name: &str| -> Vec<f64> {
        let column = batch.column_by_name(name).expect(name);
        let column = column.as_any().downcast_ref::<arrow_array::Float64Array>();
        column.expect("numbers").values().to_vec()
    };
    let values: Vec<f64> = results
        .experiment("losses")
        .flat_map(|record| record.metrics.iter().map(|measure| measure.value))
        .collect();
    assert_eq!(numbers("value"), values);
    assert_eq!(numbers("delay")[23], 1.0);
    assert_eq!(numbers("loss")[23], 0.05);
}
