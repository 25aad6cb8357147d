//! Two flows share a bottleneck, under every congestion control, with and without RACK-TLP, and
//! with every queue discipline that has no required parameters. No flow should stall, and the link
//! should carry at least two fifths of its rate.

use anabranch_congestion::Protocol;
use anabranch_congestion::registry;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

/// Two flows over 10 Mbit/s with a round trip of 45 ms run for 20 s; the second half is measured.
fn spec(queue: &str, transport: &str) -> String {
    format!(
        r#"
anabranch = 1
name = "race"
world = {{ duration = "20 s" }}
node = [{{ name = "a" }}, {{ name = "b" }}, {{ name = "left" }}, {{ name = "right" }}]
measure = [
    {{ metric = "goodput", flow = "first", window = ["10 s", "20 s"] }},
    {{ metric = "goodput", flow = "second", window = ["10 s", "20 s"] }},
]
[[link]]
name = "access-a"
between = ["a", "left"]
rate = "100 Mbit/s"
delay = "2.5 ms"
[[link]]
name = "access-b"
between = ["b", "left"]
rate = "100 Mbit/s"
delay = "2.5 ms"
[[link]]
name = "middle"
between = ["left", "right"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ forward = {{ kind = "{queue}" }} }}
[[flow]]
name = "first"
from = "a"
to = "right"
workload = {{ kind = "bulk" }}
transport = {{ {transport} }}
[[flow]]
name = "second"
from = "b"
to = "right"
start = "700 ms"
workload = {{ kind = "bulk" }}
transport = {{ {transport} }}
"#
    )
}

/// Goodputs of both flows in Mbit/s; an error if a spec must not combine the queue and the
/// transport.
fn race(queue: &str, transport: &str) -> Result<[f64; 2], String> {
    let request = PlanRequest::new("race.toml", spec(queue, transport)).with(|it| it.seed = 1);
    let plan = Plan::new(request).map_err(|error| error.to_string())?;
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    assert_eq!(
        record.failures,
        Vec::<String>::new(),
        "{queue}, {transport}"
    );
    let of = |flow: &str| {
        let found = record.metrics.iter().find(|it| it.series == flow);
        found.expect("its goodput").value / 1e6
    };
    Ok([of("first"), of("second")])
}

/// Transports of a protocol: each congestion control, with and without RACK.
fn senders(protocol: Protocol, beginning: &str) -> Vec<String> {
    let controls = registry::all(protocol).into_iter();
    let both = controls.flat_map(|it| {
        // This algorithm has an effect only with the switch of the same name.
        let switch = if it.name == "rsctp" { ", rsctp = true" } else { "" };
        [false, true].map(|rack| {
            format!(
                "{beginning}, congestion = \"{}\"{switch}, rack = {rack}, proportional_rate_reduction = {rack}",
                it.name
            )
        })
    });
    both.collect()
}

/// Whether the congestion control couples the paths of an association.
fn is_of_several_paths(transport: &str) -> bool {
    ["lia", "olia", "cmt_rp"]
        .iter()
        .any(|it| transport.contains(&format!("congestion = \"{it}\"")))
}

/// Expected error for a combination that a spec must not contain: some disciplines require a
/// setting, one control requires marks, and some require several paths.
fn refusal(queue: &str, transport: &str) -> Option<&'static str> {
    match queue {
        "token-bucket" => Some("the key `rate` is missing"),
        "priority" => Some("the key `order` is missing"),
        "step" => Some("the key `threshold` is missing"),
        "dvb-rcs2" => Some("the key `terminals` is missing"),
        "dvb-s2" => Some("the key `clear_sky` is missing"),
        _ if ["dctcp", "prague"]
            .iter()
            .any(|it| transport.contains(&format!("{it}\""))) =>
        {
            Some("this control reacts to marks")
        }
        _ if transport.contains("protocol = \"sctp\"") && is_of_several_paths(transport) => {
            Some("it has no effect without `cmt`")
        }
        _ => None,
    }
}

#[test]
fn no_flow_stands_still() {
    let (mut raced, mut refused) = (0, 0);
    let transports = [
        senders(
            Protocol::Tcp,
            "protocol = \"tcp\", profile = \"rfc6675\", receive_buffer = \"4 MiB\"",
        ),
        senders(
            Protocol::Tcp,
            "protocol = \"tcp\", profile = \"linux\", receive_buffer = \"4 MiB\"",
        ),
        senders(
            Protocol::Sctp,
            "protocol = \"sctp\", receive_buffer = \"4 MiB\"",
        ),
    ]
    .concat();
    for queue in anabranch_sim::queue::kinds().variants() {
        let queue = queue.name;
        for transport in &transports {
            let outcome = race(queue, transport);
            if let Some(reason) = refusal(queue, transport) {
                let error = outcome.expect_err("no spec may ask for it");
                assert!(error.contains(reason), "{queue}, {transport}: {error}");
                refused += 1;
                continue;
            }
            let [first, second] =
                outcome.unwrap_or_else(|error| panic!("{queue}, {transport}: {error}"));
            raced += 1;
            // The lowest goodput of a flow is 0.09 Mbit/s, for Hybla with RED, with a sum of 5.1
            // Mbit/s. The lowest sum is 4.4 Mbit/s, for Hybla with PIE.
            assert!(
                first > 0.05 && second > 0.05 && first + second > 4.0,
                "{queue}, {transport}: {first} and {second} Mbit/s"
            );
        }
    }
    // Six disciplines have defaults for all settings, and each protocol has about ten congestion
    // controls.
    assert!(raced > 300 && refused > 100, "{raced}, {refused}");
}
