//! Tests of capacity on demand: utilisation and delay on an idle, a loaded and an overloaded link,
//! compared with values computed from the parameters.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// Ten terminals share 1.88 Mbit/s, in superframes of 40 ms with 50 slots of 188 bytes and 0.8 ms
/// each. A request and an assignment take 250 ms each, so the slots for a request are 2 x 7
/// superframes later, which is 560 ms.
fn spec(queue: &str, workload: &str) -> String {
    format!(
        r#"
anabranch = 1
name = "dvb"
world = {{ duration = "60 s" }}
[[node]]
name = "terminal"
count = 10
[[node]]
name = "satellite"
[[node]]
name = "gateway"
[[link]]
name = "lan"
between = ["terminal", "satellite"]
rate = "1 Gbit/s"
delay = "0 ms"
[[link]]
name = "return"
between = ["satellite", "gateway"]
rate = "1.88 Mbit/s"
delay = "250 ms"
queue = {{ forward = {{ kind = "dvb-rcs2", terminals = 10, {queue} }} }}
[[flow]]
name = "data"
count = 10
from = "terminal"
to = "gateway"
start = "3 ms"
transport = {{ protocol = "udp" }}
workload = {workload}
[[measure]]
metric = "link_utilization"
link = "return"
counting = "wire"
window = ["20 s", "60 s"]
[[measure]]
metric = "link_load"
link = "return"
[[measure]]
metric = "queue_delay"
link = "return"
statistic = ["mean"]
window = ["20 s", "60 s"]
[[measure]]
metric = "assignment_delay"
link = "return"
[[measure]]
metric = "assignment_efficiency"
link = "return"
"#
    )
}

fn plan(text: &str) -> Result<Plan, String> {
    Plan::new(PlanRequest::new("dvb.toml", text)).map_err(|error| error.to_string())
}

fn run(text: &str) -> RunRecord {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run")
}

fn value(record: &RunRecord, metric: &str) -> f64 {
    let found = record.metrics.iter().find(|value| value.metric == metric);
    found
        .unwrap_or_else(|| panic!("{metric}: {:?}", record.metrics))
        .value
}

#[track_caller]
fn within_two_percent(record: &RunRecord, metric: &str, expected: f64) {
    let value = value(record, metric);
    assert!(
        (value / expected - 1.0).abs() < 0.02,
        "{metric}: {value}, expected {expected}"
    );
}

/// Idle link: every 2 s each terminal sends a packet of 160 bytes, which needs one slot, 3 ms after
/// the start of a superframe. The request is sent 37 ms later, and its slot is 560 ms after that.
/// The ten slots are consecutive, so they end 0.8 to 8 ms later.
#[test]
fn an_idle_link_costs_one_request_and_its_answer() {
    let workload = r#"{ kind = "cbr", rate = "528 bit/s", message = "132 B" }"#;
    let record = run(&spec(r#"vbdc = "100 kB""#, workload));
    within_two_percent(&record, "queue_delay_mean", 0.037 + 0.560 + 0.0044);
    within_two_percent(&record, "assignment_delay_mean", 0.560);
    within_two_percent(&record, "assignment_efficiency", 160.0 / 188.0 * 100.0);
    // Each packet occupies a slot of 0.8 ms. The tolerance is needed because the last packets have
    // not left when the run ends after 60 s.
    let load = value(&record, "link_load_max");
    assert!((load - 10.0 * 0.8e-3 / 2.0 * 100.0).abs() < 0.02, "{load}");
    within_two_percent(
        &record,
        "link_utilization_wire",
        10.0 * 80.0 * 8.0 / 1.88e6 * 100.0,
    );
}

/// Idle link with CRA: 4.7 kbit/s are one slot in every eighth superframe, that is every 320 ms. A
/// packet every 2 s waits for this slot for 160 ms on average, and no request is sent.
#[test]
fn a_constant_rate_saves_the_request() {
    let workload = r#"{ kind = "cbr", rate = "528 bit/s", message = "132 B" }"#;
    let queue = r#"cra = "4.7 kbit/s", vbdc = "0 B""#;
    let record = run(&spec(queue, workload));
    let delay = value(&record, "queue_delay_mean");
    assert!((0.12..0.20).contains(&delay), "{delay}");
    assert!(
        record
            .metrics
            .iter()
            .all(|it| it.metric != "assignment_delay_mean")
    );
}

/// Loaded link: 940 bytes, which are five slots, from each terminal every 50 ms use 80 % of the
/// link. The requested rate follows the arrivals. A packet arrives 20 ms before the next request on
/// average, and its slots are 560 ms later.
#[test]
fn a_loaded_link_is_used_as_offered_and_delays_by_the_loop() {
    let workload = r#"{ kind = "cbr", rate = "145.92 kbit/s", message = "912 B" }"#;
    let queue = r#"rbdc = "1 Mbit/s", vbdc = "0 B""#;
    let record = run(&spec(queue, workload));
    within_two_percent(&record, "link_utilization_wire", 80.0);
    within_two_percent(&record, "queue_delay_mean", 0.020 + 0.560 + 0.020);
}

/// Overloaded link: twice the rate of the link is offered, so all slots are used. Each terminal
/// gets a tenth of the link, and has 50 packets of 940 bytes in its queue, which are 47000 bytes at
/// 188 kbit/s.
#[test]
fn an_overloaded_link_is_full_and_delays_by_the_queue() {
    let workload = r#"{ kind = "cbr", rate = "364.8 kbit/s", message = "912 B" }"#;
    for queue in [
        r#"vbdc = "1 MB", limit = "50 packets""#,
        r#"rbdc = "1 Mbit/s", vbdc = "0 B", limit = "50 packets""#,
        r#"fca = true, vbdc = "0 B", limit = "50 packets""#,
    ] {
        let record = run(&spec(queue, workload));
        within_two_percent(&record, "link_utilization_wire", 100.0);
        within_two_percent(&record, "queue_delay_mean", 49.5 * 940.0 * 8.0 / 188e3);
        within_two_percent(&record, "assignment_efficiency", 100.0);
        // The first requested slots are 0.6 s after the start of the run of 60 s.
        let load = value(&record, "link_load_max");
        assert!((98.0..=100.0).contains(&load), "{load}");
    }
}

/// The errors should name the link and the reason.
#[test]
fn a_queue_that_cannot_serve_is_refused() {
    let workload = r#"{ kind = "cbr", rate = "528 bit/s", message = "132 B" }"#;
    let error = |queue: &str| match plan(&spec(queue, workload)) {
        Err(error) => error,
        Ok(plan) => {
            let run = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]);
            run.map(|_| ()).expect_err("an error").to_string()
        }
    };
    for (queue, words) in [
        (
            r#"vbdc = "0 B""#,
            "one of `cra`, `rbdc`, `vbdc` and `fca` is needed",
        ),
        (
            r#"superframe = "1 ms", slot = "1 kB""#,
            "must have 1 to 1000000 slots",
        ),
        (
            r#"cra = "200 kbit/s""#,
            "`cra` times `terminals` exceeds the rate",
        ),
        (
            r#"cra = "1 kbit/s", vbdc = "0 B", request_delay = "1 ms""#,
            "`rbdc` and `vbdc`",
        ),
    ] {
        let error = error(queue);
        assert!(error.contains(words), "{queue}: {error}");
    }
}

/// Settings of the queues `leo-access` and `dvb-s2` that have no effect, and the same settings in
/// combination with others that give them an effect.
#[test]
fn settings_of_access_links_without_effect_are_refused() {
    let workload = r#"{ kind = "cbr", rate = "528 bit/s", message = "132 B" }"#;
    let text = spec("QUEUE", workload);
    let measures = text
        .find("[[measure]]\nmetric = \"assignment_delay\"")
        .expect("a measure");
    let text = &text[..measures];
    let all = r#"kind = "dvb-rcs2", terminals = 10, QUEUE"#;
    assert!(text.contains(all));
    for (queue, key) in [
        (r#"kind = "leo-access", interval = "10 s""#, "interval"),
        (
            r#"kind = "leo-access", first_handover = "1 s""#,
            "first_handover",
        ),
        (
            r#"kind = "leo-access", interval = "10 s", least_elevation = 90, least_rate = 0.5"#,
            "interval",
        ),
        (
            r#"kind = "leo-access", least_elevation = 90, least_rate = 0.5"#,
            "least_rate",
        ),
        (
            r#"kind = "leo-access", least_elevation = 90, loss = 0.5"#,
            "loss",
        ),
        (
            r#"kind = "dvb-s2", clear_sky = 13, attenuation = 2, hysteresis = 1"#,
            "hysteresis",
        ),
        (
            r#"kind = "dvb-s2", clear_sky = 13, attenuation = 2, measurement_interval = "1 s""#,
            "measurement_interval",
        ),
        (
            r#"kind = "dvb-s2", clear_sky = 13, attenuation = 2, reaction_delay = "1 s""#,
            "reaction_delay",
        ),
    ] {
        let error = plan(&text.replace(all, queue)).expect_err(queue);
        assert!(error.contains("it has no effect"), "{queue}: {error}");
        assert!(error.contains(key), "{queue}: {error}");
    }
    for queue in [
        r#"kind = "leo-access", interval = "10 s", load = 0.5"#,
        r#"kind = "leo-access", first_handover = "1 s", handover = "10 ms""#,
        r#"kind = "leo-access", interval = "10 s", least_rate = 0.5"#,
        r#"kind = "dvb-s2", clear_sky = 13, attenuation = 2, margin = 2"#,
        r#"kind = "dvb-s2", clear_sky = 13, attenuation = 2, rain_probability = 5, hysteresis = 1"#,
    ] {
        let plan = plan(&text.replace(all, queue));
        assert!(plan.is_ok(), "{queue}: {:?}", plan.err());
    }
}
