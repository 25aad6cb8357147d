//! Tests that run the examples and check their main results.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

/// Runs an experiment of an example with some overrides, once per point.
fn run(name: &str, experiment: &str, overrides: &[&str]) -> Vec<RunRecord> {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let plan = Plan::new(PlanRequest::new(path, text).with(|it| {
        it.overrides = overrides.iter().map(|&one| one.to_owned()).collect();
        it.only = vec![experiment.to_owned()];
        it.replications = Some(1);
        it.seed = 1;
    }));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let run = |unit: &PlannedRun<'_>| {
        let record = world::run(unit, 1, &mut NullSink, &[]);
        record.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    PlannedRun::all(&plan).iter().map(run).collect()
}

fn value(record: &RunRecord, series: &str, metric: &str) -> f64 {
    let found = record.value(series, metric);
    found.unwrap_or_else(|| panic!("{series} {metric}: {:?}", record.metrics))
}

/// x value of a run in the first sweep.
fn x(record: &RunRecord) -> String {
    record.point[0].1.to_string()
}

/// With a buffer of one bandwidth-delay product, a halved window should still fill the link. With a
/// tenth of this buffer it should leave the link partly idle (Appenzeller et al., 2004, section 2).
#[test]
fn a_buffer_of_one_product_keeps_the_link_busy() {
    let runs = run("buffer-sizing", "buffers", &[]);
    let use_at = |products: &str| {
        let at = runs
            .iter()
            .find(|record| x(record) == products)
            .expect("a point");
        value(at, "all", "link_utilization_wire")
    };
    let uses = ["0.1", "0.25", "0.5", "1", "2"].map(use_at);
    assert!(uses[0] < 90.0, "{uses:?}");
    assert!(uses[3] > 97.0 && uses[4] > 97.0, "{uses:?}");
    assert!(uses.is_sorted_by(|a, b| a <= &(b + 1.5)), "{uses:?}");
}

#[test]
fn the_long_flow_of_a_parking_lot_gets_the_least() {
    for hops in [2, 3] {
        let record = &run("parking-lot", "lot", &[&format!("hops={hops}")])[0];
        let long = value(record, "long", "goodput");
        let first = value(record, "short[0]", "goodput");
        let others = value(record, "short[1..]", "goodput") / f64::from(hops - 1);
        assert!(
            long > 100e3 && long < first && long < others,
            "{long} {first} {others}"
        );
        assert!(value(record, "all", "link_utilization_wire") > 85.0);
        // The traffic of the two flows over a hop should not exceed the rate of the hop.
        assert!(long + first < 4e6, "{long} {first}");
    }
}

#[test]
fn a_transfer_goes_on_after_a_handover() {
    let runs = run("handover", "gaps", &[]);
    assert_eq!(runs.len(), 8);
    for record in &runs {
        let silence = value(record, "download", "max_delivery_gap");
        let gap = match x(record).as_str() {
            "0 s" => 0.0,
            "200 ms" => 0.2,
            "1 s" => 1.0,
            _ => 3.0,
        };
        // Nothing is delivered while there is no cell, and afterwards until the backed-off timer
        // expires.
        assert!(
            silence > gap && silence < 2.0 * gap + 2.5,
            "{gap}: {silence}"
        );
        // 10 Mbit/s for 30 s are 37 MB, which are about 25,000 segments.
        let delivered = value(record, "download", "segments_delivered");
        assert!(delivered > 20_000.0, "{gap}: {delivered}");
        assert!(value(record, "cell-west", "drops_link_down") > 0.0);
    }
    // Routes follow the schedule, so nothing should be sent towards a cell that does not exist yet.
    assert_eq!(value(&runs[0], "cell-east", "drops_link_down"), 0.0);
}

/// Routes should use the second satellite as soon as it is available. A sender whose retransmission
/// timer expires before that time sends again only at the next expiry. With an RTO of 1 s (RTO.Min)
/// that doubles (RFC 9260 §6.3.3 E2; RFC 6298 §5.5), timers expire 1, 3, 7 and 15 s after the loss.
/// Data then arrives after the 256 ms of the path.
#[test]
fn a_transfer_goes_on_over_the_second_satellite_when_the_timer_permits() {
    let runs = run("two-satellites", "rises", &[]);
    assert_eq!(runs.len(), 10);
    for record in &runs {
        let (rises, protocol) = (x(record), record.point[1].1.to_string());
        let name = format!("{rises} {protocol}");
        let silence = value(record, "upload", "max_delivery_gap");
        let resumed = value(record, "upload", "recovery_time");
        let timeouts = value(record, "upload", "timeouts");
        let gap = match rises.as_str() {
            "10 s" | "20 s" => 0.0,
            "21 s" => 1.0,
            "25 s" => 5.0,
            _ => 10.0,
        };
        // At the end of the run, the upload should send its window of 64 KiB in each round trip of
        // 512 ms.
        assert!(value(record, "upload", "goodput") > 950e3, "{name}");
        if gap == 0.0 {
            // Lost data is detected by duplicate acknowledgements, within one or two round trips.
            assert_eq!(timeouts, 0.0, "{name}");
            assert!(silence < 0.5, "{name}: {silence}");
            continue;
        }
        let waited = 2f64.powf(timeouts) - 1.0;
        let excess = silence - waited;
        assert!((0.0..0.8).contains(&excess), "{name}: {silence} {timeouts}");
        // After the second satellite is available, no timer should expire, except for data in
        // transit.
        let before = 2f64.powf(timeouts - 1.0) - 1.0;
        assert!(before < gap + 0.8, "{name}: {timeouts}");
        // The data that was in flight still arrives for 251 ms before the silence begins.
        assert!(
            (0.2..0.3).contains(&(resumed - silence)),
            "{name}: {resumed}"
        );
    }
}

/// An empty group should have no values, and should not affect the other groups.
#[test]
fn a_group_of_none_is_switched_off() {
    let quiet = &run("cross-traffic", "quiet", &[])[0];
    assert_eq!(quiet.value("web", "goodput"), None);
    assert_eq!(quiet.value("web", "timeouts"), None);
    // 188 B over 100, 2 and 100 Mbit/s, and 22 ms of propagation, determine the delay without other
    // traffic.
    let alone = 22.0 + 188.0 * 8.0 * (1.0 / 2e3 + 2.0 / 100e3);
    let delay = value(quiet, "call", "mean_delay");
    assert!((delay - alone).abs() < 1e-6, "{delay} {alone}");
    let runs = run("cross-traffic", "downloads", &[]);
    let delays: Vec<f64> = runs
        .iter()
        .map(|record| value(record, "call", "mean_delay"))
        .collect();
    assert!((delays[0] - alone).abs() < 1e-6, "{delays:?}");
    assert!(
        delays[1] > 2.0 * alone && delays[2] > delays[0],
        "{delays:?}"
    );
    assert!(value(&runs[1], "web", "goodput") > 1e6);
    assert_eq!(runs[0].value("web", "goodput"), None);
}

/// DualPI2 couples the two queues. A scalable sender with the codepoint ECT(1) leaves the classic
/// sender its share, and has a shorter delay. If the scalable sender uses the classic queue, it
/// gets almost the whole rate: it reduces its window by half of the marked share, while the classic
/// sender reduces its window by 30 % (RFC 9332, section 1).
#[test]
fn dualpi2_shares_between_scalable_and_classic() {
    for record in run("l4s", "shares", &[]) {
        let classic = value(&record, "classic", "goodput");
        let scalable = value(&record, "scalable", "goodput");
        let share = classic / (classic + scalable);
        let told = record.point[0].1.to_string() == "ECT(1)";
        assert_eq!(told, share > 0.25, "{:?}: {share}", record.point);
        assert!(told || share < 0.12, "{:?}: {share}", record.point);
        let wait = value(&record, "middle", "queue_delay_p50");
        assert_eq!(told, wait < 0.005, "{:?}: {wait}", record.point);
    }
}
