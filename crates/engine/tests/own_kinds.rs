//! Tests of kinds that a program adds: specs can name them, and worlds are built from them, without
//! a change to this project.

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::schema::json_schema;
use anabranch_settings::{Kind, KindEntry, KindError, kind};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::queue::{DropTail, QueueDiscipline, QueueLimit};
use anabranch_sim::{Packet, Rng};

const SPEC: &str = r#"anabranch = 1
name = "own"
node = [{ name = "a" }, { name = "b" }]
measure = [{ metric = "drops", link = "wire", reason = "loss" }]

[world]
duration = "10 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "two" }
loss = { forward = { model = "every-nth", n = 4 } }

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "cbr", rate = "80 kbit/s", message = "1000 B" }
transport = { protocol = "udp" }
"#;

/// Loss model that drops each packet whose number is a multiple of `n`.
struct EveryNth(u64, u64);

impl Loss for EveryNth {
    fn takes(&mut self, _: u64, _: &Packet, _: &mut Rng) -> bool {
        self.1 += 1;
        self.1.is_multiple_of(self.0)
    }
}

kind! {
    /// The parameter of [`EveryNth`].
    struct Nth {
        /// Number of packets per loss.
        n: u64, Kind::count(1, 99);
    }
    /// Loses each n-th packet.
    static EVERY_NTH: KindEntry<Box<dyn Loss>, Traffic> = "every-nth", |it, _| match it.n {
        13 => Err(KindError::together("13 is unlucky")),
        n => Ok(Box::new(EveryNth(n, 0))),
    };
}

kind! {
    /// The queue has no parameters.
    struct Two {}
    /// A drop-tail queue of two packets.
    static TWO: KindEntry<Box<dyn QueueDiscipline>> =
        "two", |_, ()| Ok(Box::new(DropTail::new(QueueLimit::Packets(2))?));
}

fn own() -> Standard {
    Standard::default().with_loss(&EVERY_NTH).with_queue(&TWO)
}

fn plan(text: &str, kinds: &Standard) -> Result<Plan, String> {
    let request = PlanRequest::new("own.toml", text).with(|it| {
        it.seed = 1;
    });
    Plan::with(request, kinds).map_err(|error| error.to_string())
}

#[test]
fn worlds_are_built_from_them() {
    let plan = plan(SPEC, &own()).unwrap_or_else(|error| panic!("{error}"));
    let unit = PlannedRun::all(&plan)[0];
    let record = world::run(&unit, 1, &mut NullSink, &[]).expect("a run");
    let lost = record.metrics.iter().map(|value| value.value).sum::<f64>();
    // Ten messages per second are sent for ten seconds, and a quarter of them is lost.
    assert_eq!(lost, 25.0, "{:?}", record.metrics);
}

#[test]
fn without_them_the_spec_is_wrong() {
    let error = plan(SPEC, &Standard::default()).unwrap_err();
    assert!(
        error.contains("`link.wire.loss.forward.model`: found \"every-nth\""),
        "{error}"
    );
    assert!(
        error.contains("`link.wire.queue.kind`: found \"two\""),
        "{error}"
    );
    assert!(error.contains("allowed: drop-tail, codel"), "{error}");
}

#[test]
fn their_parameters_are_checked_by_their_declarations() {
    for (right, wrong, words) in [
        (
            "n = 4",
            "n = 0",
            "`link.wire.loss.forward.n`: found 0; expected a whole number, 1 to 99",
        ),
        ("n = 4", "m = 4", "unknown key `m`"),
        (
            ", n = 4",
            "",
            "the key `n` is missing; it is a whole number, 1 to 99",
        ),
        ("n = 4", "n = 13", "`link.wire.loss.forward`: 13 is unlucky"),
        (
            "model = \"every-nth\", ",
            "",
            "the key `model` is missing; it names a loss model",
        ),
        (
            "\"every-nth\"",
            "\"every-nht\"",
            "did you mean `every-nth`?",
        ),
    ] {
        assert!(SPEC.contains(right));
        let error = plan(&SPEC.replace(right, wrong), &own()).unwrap_err();
        assert!(error.contains(words), "{wrong}: {error}");
    }
}

#[test]
fn the_schema_has_them() {
    let schema = json_schema(&own()).to_value();
    let losses = schema["definitions"]["Loss"]["anyOf"]
        .as_array()
        .expect("forms");
    let is_own = |form: &&serde_json::Value| form["properties"]["model"]["const"] == "every-nth";
    let table = losses.iter().find(is_own);
    let table = table.expect("a table of it");
    assert!(
        table["properties"]["n"]
            .to_string()
            .contains("\"maximum\":99"),
        "{table}"
    );
    assert!(
        table["properties"]["position"]
            .to_string()
            .contains("after-queue"),
        "{table}"
    );
    let text = |name: &str| schema["definitions"][name].to_string();
    assert!(text("RateOverTime").contains("\"opportunities\""));
    assert!(text("Propagation").contains("\"steps\"") && text("Propagation").contains("jitter"));
    assert!(text("Queue").contains("packets|packet") && text("Queue").contains("codel"));
}
