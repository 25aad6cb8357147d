//! Tests of transport settings in a spec: their effects, and the errors of invalid ones.

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_engine::transport;
use anabranch_sctp::Config as SctpConfig;
use anabranch_tcp::Config as TcpConfig;

/// A spec of two hosts with a transport, and with extra text at the top.
fn spec(top: &str, transport: &str) -> String {
    format!(
        r#"anabranch = 1
name = "pair"
{top}
[world]
duration = "10 s"

[[node]]
name = "source"

[[node]]
name = "sink"

[[link]]
name = "wire"
between = ["source", "sink"]
rate = "2 Mbit/s"
delay = "40 ms"
queue = "10 packets"

[[flow]]
name = "data"
from = "source"
to = "sink"
workload = {{ kind = "bulk", message = "1000 B" }}
transport = {{ {transport} }}
"#
    )
}

fn plan(text: String, overrides: &[&str]) -> Result<Plan, String> {
    let request = PlanRequest::new("pair.toml", text).with(|it| {
        it.overrides = overrides.iter().map(|&text| text.to_owned()).collect();
        it.seed = 1;
    });
    Plan::new(request).map_err(|error| error.to_string())
}

fn sctp(top: &str, transport: &str, overrides: &[&str]) -> SctpConfig {
    let plan = plan(spec(top, transport), overrides).expect("a good spec");
    transport::sctp::config(&plan.spec.flows[0].transport)
}

fn tcp(transport: &str) -> TcpConfig {
    let plan = plan(spec("", transport), &[]).expect("a good spec");
    transport::tcp::config(&plan.spec.flows[0].transport, Default::default())
}

fn error(transport: &str) -> String {
    plan(spec("", transport), &[])
        .map(drop)
        .expect_err(transport)
}

#[test]
fn a_switch_may_stand_among_the_keys_or_in_its_table() {
    let [direct, table] = ["missing_reports = 4", "switches = { missing_reports = 4 }"]
        .map(|text| sctp("", &format!("protocol = \"sctp\", {text}"), &[]));
    assert_eq!(direct.profile.missing_reports, 4);
    assert_eq!(direct.profile, table.profile);
    let twice =
        error(r#"protocol = "sctp", missing_reports = 4, switches = { missing_reports = 4 }"#);
    assert!(twice.contains("found `missing_reports` twice"), "{twice}");
}

#[test]
fn timers_may_be_off_and_need_their_units() {
    let config = sctp("", r#"protocol = "sctp", heartbeat_interval = "off""#, &[]);
    assert_eq!(config.heartbeat_interval, None);
    for (value, words) in [
        ("\"of\"", "did you mean `off`"),
        ("\"30\"", "a time with its unit"),
        ("30", "found 30"),
        ("\"0 s\"", "1 ms to 86400 s"),
    ] {
        let error = error(&format!(
            "protocol = \"sctp\", heartbeat_interval = {value}"
        ));
        assert!(error.contains(words), "{value}: {error}");
    }
}

#[test]
fn settings_that_do_not_go_together_are_named() {
    for (transport, words) in [
        (
            r#"protocol = "sctp", rto_min = "5 s", rto_max = "2 s""#,
            &["transport.rto_min", "found 5 s", "1 ms to 2 s"][..],
        ),
        (
            r#"protocol = "sctp", switches = { rto_initial = "90 s" }"#,
            &["transport.switches.rto_initial", "1 s to 60 s"],
        ),
        (
            r#"protocol = "sctp", primary_switchover_max_retrans = 2"#,
            &["primary_switchover_max_retrans", "found 2", "5 or more"],
        ),
    ] {
        let error = error(transport);
        for word in words {
            assert!(error.contains(word), "{transport}: {error}");
        }
    }
}

/// Regression test: Westwood and binomial were implemented for TCP, but specs could not name them.
#[test]
fn tcp_has_a_congestion_control() {
    for name in [
        "newreno", "cubic", "bbr", "vegas", "veno", "hybla", "illinois", "westwood", "binomial",
    ] {
        let config = tcp(&format!("protocol = \"tcp\", congestion = \"{name}\""));
        assert_eq!(config.congestion.name, name);
    }
    let error = error(r#"protocol = "tcp", congestion = "westwod""#);
    assert!(error.contains("did you mean `westwood`"), "{error}");
}

#[test]
fn windows_count_segments_of_the_flow() {
    let config = tcp(r#"protocol = "tcp", receive_buffer = "45 segments", mss = "1448 B""#);
    assert_eq!(config.receive_bytes(), 45 * 1448);
    let wrong = error(r#"protocol = "tcp", receive_buffer = "45""#);
    assert!(wrong.contains("such as \"10 segments\""), "{wrong}");
}

const ERA: &str = r#"
[profiles.era]
base = "rfc2960"
streams = 1
missing_reports = 4
"#;

#[test]
fn a_profile_of_the_spec_is_named_once_and_reached_by_set() {
    let transport = r#"protocol = "sctp", profile = "era""#;
    let config = sctp(ERA, transport, &[]);
    assert_eq!(config.profile.name, "rfc2960");
    assert_eq!(
        (config.outbound_streams, config.profile.missing_reports),
        (1, 4)
    );
    let config = sctp(ERA, transport, &["profiles.era.missing_reports=3"]);
    assert_eq!(config.profile.missing_reports, 3);
    let config = sctp(
        ERA,
        r#"protocol = "sctp", profile = "era", streams = 7"#,
        &[],
    );
    assert_eq!(config.outbound_streams, 7);
    let unused = plan(spec(ERA, r#"protocol = "sctp""#), &[]);
    let unused = unused.map(drop).expect_err("nobody uses it");
    assert!(unused.contains("used by no flow"), "{unused}");
    let wrong = plan(spec(ERA, transport), &["profiles.era.missing_report=3"]);
    let wrong = wrong.map(drop).expect_err("no such switch");
    assert!(wrong.contains("did you mean `missing_reports`"), "{wrong}");
}

#[test]
fn tcps_timeouts_go_together_too() {
    let wrong = error(r#"protocol = "tcp", rto_min = "5 s", switches = { rto_max = "2 s" }"#);
    assert!(
        wrong.contains("transport.rto_min") && wrong.contains("1 us to 2 s"),
        "{wrong}"
    );
}

/// A setting that depends on another setting should be accepted if a sweep switches the other
/// setting on at one point. Without that point it should be rejected.
#[test]
fn a_setting_may_wait_for_another_point_to_have_an_effect() {
    let experiment = |values: &str| {
        let experiment = format!(
            "\n[[experiment]]\nid = \"one\"\n\n[[experiment.sweep]]\nparameter = \"on\"\nvalues = {values}\n"
        );
        let transport = r#"protocol = "sctp", lifetime = "50 ms", partial_reliability = "$on""#;
        let top = "[parameters]\non = false\n";
        plan(spec(top, transport) + &experiment, &[]).map(drop)
    };
    assert_eq!(experiment("[false, true]"), Ok(()));
    let error = experiment("[false]").expect_err("no point has it on");
    assert!(error.contains("without `partial_reliability`"), "{error}");
    let transport = r#"protocol = "sctp", lifetime = "50 ms", partial_reliability = "$on""#;
    let top = "[parameters]\non = false\n";
    let both = spec(top, transport)
        + "\n[[experiment]]\nid = \"one\"\n\n[[experiment]]\nid = \"two\"\nparameters = { on = true }\n";
    assert_eq!(plan(both, &[]).map(drop), Ok(()));
    // A point without the setting should not count as a point at which it has an effect.
    let swapped = spec("", r#"protocol = "sctp""#).replace(r#"{ protocol = "sctp" }"#, "\"$all\"")
        + "\n[[experiment]]\nid = \"one\"\n\n[[experiment.sweep]]\nname = \"all\"\npoints = [\n"
        + "{ x = \"a\", all = { protocol = \"tcp\" } },\n"
        + "{ x = \"b\", all = { protocol = \"sctp\", lifetime = \"50 ms\" } },\n]\n"
        + "[parameters]\nall = { protocol = \"tcp\" }\n";
    let error = plan(swapped, &[]).map(drop).expect_err("it has no effect");
    assert!(error.contains("without `partial_reliability`"), "{error}");
}

/// Settings that only a peer's program would use, or that no INIT offers, have no effect in a
/// world, and are rejected.
#[test]
fn settings_that_no_flow_can_trigger_are_refused() {
    for (transport, words) in [
        (
            "reconfiguration = true, accept_stream_resets = false",
            &["accept_stream_resets", "no application asks"][..],
        ),
        (
            "authentication = \"on\", address_changes = true, accept_address_changes = false",
            &["accept_address_changes", "without `asconf_on_link_change`"],
        ),
        (
            "minimal_init = true, ecn = true",
            &["ecn", "with `minimal_init`"],
        ),
        ("congestion = \"lia\"", &["congestion", "without `cmt`"]),
        (
            "congestion = \"bbr\", pacing = 1.25",
            &["pacing", "with `congestion = \"bbr\"`"],
        ),
        (
            "streams = 1, scheduler = \"fcfs\"",
            &["scheduler", "with `streams = 1`"],
        ),
    ] {
        let error = error(&format!("protocol = \"sctp\", {transport}"));
        for word in words {
            assert!(error.contains(word), "{transport}: {error}");
        }
    }
    let unknown = error("protocol = \"sctp\", partial_reliability = true, priority = 3");
    assert!(unknown.contains("priority"), "{unknown}");
}
