//! Sinks: a run gives the same results in memory, through a channel and in a file.

use std::thread;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_engine::sink::{Memory, NullSink, Sink};
use anabranch_engine::world::{self, WorldError};
use anabranch_lab::channel::{Channel, RunEvent};
use anabranch_lab::run::{Quiet, Simulator, run};
use anabranch_lab::store::Store;
use anabranch_scenario::records::{RunRecord, SeriesQuery, SeriesRecord};

const SPEC: &str = r#"
anabranch = 1
name = "sinks"
world = { duration = "5 s" }
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "1 Mbit/s", delay = "10 ms", queue = "8 packets" }]
flow = [{ name = "sctp", from = "a", to = "b", workload = { kind = "bulk" }, transport = { protocol = "sctp" } }]
experiment = [{ id = "main", record = [{ flow = "sctp", probes = ["cwnd", "timeout"] }, { link = "wire", probes = ["queue"] }] }]
"#;

fn plan() -> Plan {
    let request = PlanRequest::new("sinks.toml", SPEC).with(|it| it.seed = 3);
    Plan::new(request).unwrap_or_else(|error| panic!("{error}"))
}

fn into(sink: &mut dyn Sink) -> RunRecord {
    world::run(&PlannedRun::all(&plan())[0], 3, sink, &[]).expect("a run")
}

/// Series that have samples; a file contains no others.
fn full(series: Vec<SeriesRecord>) -> Vec<SeriesRecord> {
    series
        .into_iter()
        .filter(|series| !series.samples.is_empty())
        .collect()
}

fn in_memory() -> (RunRecord, Vec<SeriesRecord>) {
    let mut memory = Memory::default();
    let record = into(&mut memory);
    assert_eq!(memory.records, std::slice::from_ref(&record));
    assert_eq!(memory.series.len(), 3, "one for each probe, sampled or not");
    (record, full(memory.series))
}

#[test]
fn memory_holds_what_the_directory_holds() {
    let (record, mut kept) = in_memory();
    assert_eq!(record, into(&mut NullSink));
    assert!(kept.len() == 2 && kept.iter().all(|series| series.samples.len() > 20));
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(directory.path()).expect("a directory that can be written");
    let results = run(&plan(), &store, &Simulator::default(), 1, &Quiet).expect("a run");
    assert_eq!(results.records, [record]);
    let query = SeriesQuery {
        experiment: "main",
        ..SeriesQuery::default()
    };
    let mut read = results.series(&query).expect("a file");
    for all in [&mut kept, &mut read] {
        all.sort_by(|a, b| (&a.entity, &a.probe).cmp(&(&b.entity, &b.probe)));
    }
    assert_eq!(read, kept);
}

#[test]
fn a_channel_reports_all_in_order() {
    let (record, kept) = in_memory();
    let (mut channel, told) = Channel::new(2);
    let running = thread::spawn(move || into(&mut channel));
    let mut heard: Vec<RunEvent> = told.iter().collect();
    assert_eq!(running.join().expect("no panic"), record);
    assert_eq!(heard.pop(), Some(RunEvent::Ended(Box::new(record))));
    let RunEvent::Begun {
        keys, experiment, ..
    } = heard.remove(0)
    else {
        panic!("a run begins");
    };
    assert_eq!(experiment, "main");
    let mut samples = Vec::new();
    for told in heard {
        match told {
            RunEvent::Samples(more) => samples.extend(more),
            other => panic!("{other:?}"),
        }
    }
    for series in kept {
        let key = keys
            .iter()
            .position(|key| key.entity == series.entity && key.probe == series.probe);
        let key = key.expect("it began") as u32;
        let of: Vec<_> = samples
            .iter()
            .filter(|(of, _)| *of == key)
            .map(|(_, it)| *it)
            .collect();
        assert_eq!(of, series.samples);
    }
}

#[test]
fn a_run_without_a_listener_ends_with_an_error() {
    let (mut channel, told) = Channel::new(1);
    drop(told);
    let error = world::run(&PlannedRun::all(&plan())[0], 3, &mut channel, &[]).expect_err("nobody");
    assert!(error.to_string().contains("nobody listens"), "{error}");
}

#[test]
fn record_batches_hold_what_memory_holds() {
    use anabranch_lab::arrow::Batches;
    use arrow_array::{Array, Float64Array, StringArray, UInt32Array};

    let (record, kept) = in_memory();
    let plan = plan();
    let axes = plan.experiments[0].axes();
    let mut batches = Batches::new(axes.iter());
    assert_eq!(into(&mut batches), record);
    let schema = batches.schema();
    assert!(batches.samples.iter().all(|batch| batch.schema() == schema));
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(
        names,
        [
            "experiment",
            "replication",
            "entity",
            "member",
            "probe",
            "index",
            "time_s",
            "value"
        ]
    );
    let mut rows = Vec::new();
    for batch in &batches.samples {
        let text = |name: &str| -> Vec<String> {
            let column = batch.column_by_name(name).expect(name).as_any();
            let column = column.downcast_ref::<StringArray>().expect("text");
            column
                .iter()
                .map(|text| text.expect("text").to_owned())
                .collect()
        };
        let numbers = |name: &str| -> Vec<f64> {
            let column = batch.column_by_name(name).expect(name).as_any();
            column
                .downcast_ref::<Float64Array>()
                .expect("numbers")
                .values()
                .to_vec()
        };
        let (entities, probes) = (text("entity"), text("probe"));
        for (row, (time, value)) in numbers("time_s")
            .into_iter()
            .zip(numbers("value"))
            .enumerate()
        {
            rows.push((entities[row].clone(), probes[row].clone(), time, value));
        }
        assert!(text("experiment").iter().all(|id| id == "main"));
    }
    let total: usize = kept.iter().map(|series| series.samples.len()).sum();
    assert_eq!(rows.len(), total);
    for series in &kept {
        let mut own = rows
            .iter()
            .filter(|(entity, probe, ..)| *entity == series.entity && *probe == series.probe);
        for sample in &series.samples {
            let (.., time, value) = own.next().expect("as many rows");
            assert_eq!((*time, *value), (sample.time, sample.value));
        }
    }
    let [measures] = &batches.measures[..] else {
        panic!("{} batches of measures", batches.measures.len())
    };
    let values = measures.column_by_name("value").expect("values").as_any();
    let values = values
        .downcast_ref::<Float64Array>()
        .expect("numbers")
        .values()
        .to_vec();
    let wanted: Vec<f64> = record.metrics.iter().map(|measure| measure.value).collect();
    assert_eq!(values, wanted);
    let replications = measures
        .column_by_name("replication")
        .expect("replications")
        .as_any();
    assert_eq!(
        replications
            .downcast_ref::<UInt32Array>()
            .expect("numbers")
            .value(0),
        0
    );
}

/// A runner whose second replication has a measure that JSON cannot represent.
struct Endless;

impl Runner for Endless {
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError> {
        let mut record = world::run(unit, seed, sink, &[])?;
        if unit.replication == 1 {
            record.metrics[0].value = f64::INFINITY;
        }
        Ok(record)
    }
}

/// A record that cannot be stored must be omitted at the end of a run, as it is when the directory
/// is read later.
#[test]
fn a_record_that_cannot_be_kept_is_not_reported() {
    let measure = "measure = [{ metric = \"goodput\", flow = \"sctp\" }]\nexperiment";
    let text = SPEC.replace("experiment", measure);
    let request = PlanRequest::new("sinks.toml", text).with(|it| it.replications = Some(3));
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().expect("a directory");
    let told = || {
        let store = Store::create(directory.path()).expect("a directory that can be written");
        let results = run(&plan, &store, &Endless, 1, &Quiet).expect("runs");
        let again = store.assemble(&plan, &Endless).expect("results");
        assert_eq!(results.records, again.records);
        results.records
    };
    let first = told();
    let replications: Vec<u32> = first.iter().map(|it| it.replication).collect();
    assert_eq!(replications, [0, 2]);
    assert_eq!(told(), first);
}
