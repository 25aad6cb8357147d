//! Joining measures and samples of an experiment: in both files a sweep has a column with the same
//! name and type.

use std::fs::File;
use std::path::Path;

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_lab::run::{Quiet, Simulator, run};
use anabranch_lab::store::Store;
use anabranch_scenario::records::{Results, SeriesQuery};
use anabranch_scenario::value::{Point, SweepValue};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Results of an experiment with these sweeps.
fn results(directory: &Path, sweeps: &str) -> Results {
    let text = format!(
        r#"
anabranch = 1
name = "sw"
world = {{ duration = "200 ms" }}
node = [{{ name = "a" }}, {{ name = "b" }}]
measure = [{{ metric = "goodput", flow = "cbr" }}]
[parameters]
rate = "1 Mbit/s"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "$rate"
delay = "1 ms"
[[flow]]
name = "cbr"
from = "a"
to = "b"
workload = {{ kind = "cbr", rate = "100 kbit/s", message = "100 B" }}
transport = {{ protocol = "udp" }}
[[experiment]]
id = "e"
replications = 2
record = [{{ flow = "cbr", probes = ["goodput"], bin = "50 ms" }}]
{sweeps}
"#
    );
    let plan = Plan::new(PlanRequest::new("sw.toml", text));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let store = Store::create(directory).expect("a store");
    run(&plan, &store, &Simulator::default(), 1, &Quiet).expect("a run")
}

fn schema(path: &Path) -> Schema {
    let file = File::open(path).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    reader.schema().as_ref().clone()
}

#[test]
fn a_sweep_has_one_name_and_one_type() {
    for (sweeps, name, kind) in [
        (
            "[[experiment.sweep]]\nname = \"tm\"\npoints = [{ x = \"500 ms\" }, { x = \"1 s\", rate = \"2 Mbit/s\" }]",
            "tm",
            DataType::Float64,
        ),
        (
            "[[experiment.sweep]]\nparameter = \"rate\"\nvalues = [\"500 kbit/s\", \"2 Mbit/s\"]",
            "rate",
            DataType::Float64,
        ),
        (
            "[[experiment.sweep]]\nname = \"series\"\npoints = [{ x = 1 }, { x = 2 }]",
            "x_series",
            DataType::Int64,
        ),
        (
            "[[experiment.sweep]]\nname = \"time_s\"\npoints = [{ x = 1 }, { x = 0.5 }]",
            "x_time_s",
            DataType::Float64,
        ),
        (
            "[[experiment.sweep]]\nname = \"index\"\npoints = [{ x = \"1 s\" }, { x = \"1000 ms\" }]",
            "x_index",
            DataType::Utf8,
        ),
        (
            "[[experiment.sweep]]\nname = \"odd\"\npoints = [{ x = 0 }, { x = \"off\" }]",
            "odd",
            DataType::Utf8,
        ),
        (
            "[[experiment.sweep]]\nname = \"flag\"\npoints = [{ x = true }, { x = false }]",
            "flag",
            DataType::Boolean,
        ),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let results = results(directory.path(), sweeps);
        let path = |folder: &str| directory.path().join(folder).join("e.parquet");
        let (measures, samples) = (schema(&path("measures")), schema(&path("series")));
        let of = |schema: &Schema, name: &str| {
            let field = schema.field_with_name(name);
            let field =
                field.unwrap_or_else(|_| panic!("{sweeps}: no column {name} in {schema:?}"));
            (field.data_type().clone(), field.metadata().clone())
        };
        assert_eq!(of(&measures, name), of(&samples, name), "{sweeps}");
        assert_eq!(of(&samples, name).0, kind, "{sweeps}");
        for shared in ["experiment", "replication"] {
            assert_eq!(of(&measures, shared), of(&samples, shared), "{shared}");
        }
        // The points read back are as written in the spec.
        let query = SeriesQuery {
            experiment: "e",
            ..SeriesQuery::default()
        };
        let series = results.series(&query).expect("samples");
        let read: Vec<(&Point, u32)> = series
            .iter()
            .map(|it| (&it.point, it.replication))
            .collect();
        // Only the first replication has samples.
        let ran = results.records.iter().filter(|it| it.replication == 0);
        let ran = ran.map(|it| (&it.point, it.replication));
        assert_eq!(read, ran.collect::<Vec<_>>(), "{sweeps}");
        assert!(series.iter().all(|it| it.samples.len() == 4), "{sweeps}");
    }
}

/// Points of several sweeps are read back with all their values.
#[test]
fn several_sweeps_are_kept_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweeps = "[[experiment.sweep]]\nparameter = \"rate\"\nvalues = [\"1 Mbit/s\", \"2 Mbit/s\"]\n\
                  [[experiment.sweep]]\nname = \"x\"\npoints = [{ x = \"a\" }, { x = \"b\" }]";
    let results = results(directory.path(), sweeps);
    let query = SeriesQuery {
        experiment: "e",
        replication: Some(0),
        ..SeriesQuery::default()
    };
    let series = results.series(&query).expect("samples");
    let text = |text: &str| SweepValue::Text(text.to_owned());
    let points: Vec<[SweepValue; 2]> = series
        .iter()
        .map(|it| [it.point[0].1.clone(), it.point[1].1.clone()])
        .collect();
    let point = |rate: &str, x: &str| [text(rate), text(x)];
    assert_eq!(
        points,
        [
            point("1 Mbit/s", "a"),
            point("1 Mbit/s", "b"),
            point("2 Mbit/s", "a"),
            point("2 Mbit/s", "b")
        ]
    );
}
