//! Tests of former names of keys, kinds, metrics, probes and drop reasons: the error for each names the
//! present name, which must exist.

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_sctp::DiscardReason;
use anabranch_settings::{NameCategory, RENAMED};

/// A spec in which the table `table` has the additional key `key`.
fn spec(table: &str, key: &str) -> String {
    let at = |name: &str| if name == table { key } else { "" };
    let transport = match table {
        "tcp" => format!(r#"{{ protocol = "tcp", {key} }}"#),
        "sctp" => format!(r#"{{ protocol = "sctp", {key} }}"#),
        "stream_allocation" => format!(
            r#"{{ protocol = "sctp", stream_allocation = {{ kind = "adaptive", {key} }} }}"#
        ),
        _ => r#"{ protocol = "sctp" }"#.to_owned(),
    };
    let queue = match table {
        "red" | "dualpi2" => format!(r#"{{ kind = "{table}", {key} }}"#),
        _ => r#""10 packets""#.to_owned(),
    };
    let delay = match table {
        "jitter" => format!(r#"{{ kind = "jitter", delay = "5 ms", jitter = "2 ms", {key} }}"#),
        _ => r#""1 ms""#.to_owned(),
    };
    let workload = match table {
        "pareto" | "lognormal" | "empirical" => {
            format!(
                r#"{{ kind = "transfers", every = "1 s", size = {{ kind = "{table}", {key} }} }}"#
            )
        }
        _ => r#"{ kind = "bulk" }"#.to_owned(),
    };
    let loss = match table {
        "loss" => format!(r#"{{ model = "bernoulli", probability = 0.1, {key} }}"#),
        _ => r#""none""#.to_owned(),
    };
    let proxy = match table {
        "proxy" => format!(r#"proxy = {{ kind = "split-tcp", {key} }}"#),
        _ => String::new(),
    };
    let constellation = match table {
        "walker" => format!(
            r#"
[[constellation]]
name = "c"
shells = [{{ kind = "walker", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, {key} }}]
up = {{ rate = "1 Mbit/s" }}
down = {{ rate = "1 Mbit/s" }}
"#
        ),
        _ => String::new(),
    };
    let (experiment, flow, measure) = (at("experiment"), at("flow"), at("measure"));
    let (curve, whole_table, row, claim) = (at("curve"), at("table"), at("row"), at("claim"));
    format!(
        r#"
anabranch = 1
name = "former"
world = {{ duration = "1 s" }}
{constellation}
[[node]]
name = "a"
[[node]]
name = "m"
{proxy}
[[node]]
name = "b"
[[link]]
name = "l"
between = ["a", "m"]
rate = "1 Mbit/s"
delay = {delay}
queue = {queue}
loss = {loss}
[[link]]
name = "k"
between = ["m", "b"]
rate = "1 Mbit/s"
delay = "1 ms"
[[flow]]
name = "f"
from = "a"
to = "b"
workload = {workload}
transport = {transport}
{flow}
[[measure]]
metric = "one_way_delay"
flow = "f"
{measure}
[[experiment]]
id = "e"
{experiment}
[[table]]
id = "t"
title = "T"
{whole_table}
[[table.row]]
series = "f"
metric = "one_way_delay_p50"
{row}
[[figure]]
id = "g"
title = "G"
[[figure.curve]]
label = "f"
{curve}
[[claim]]
id = "c"
text = "C"
kind = "greater"
metric = "one_way_delay_p50"
{claim}
"#
    )
}

fn error(text: String) -> String {
    Plan::new(PlanRequest::new("former.toml", text))
        .map_or_else(|error| error.to_string(), |_| String::new())
}

/// Whether the error says that the key is unknown.
fn is_unknown(error: &str, key: &str) -> bool {
    error.contains(&format!("unknown key `{key}`"))
        || error.contains(&format!("the key `{key}`; expected"))
}

#[test]
fn each_former_key_leads_to_a_key_that_exists() {
    for it in RENAMED {
        let NameCategory::Key(table) = it.family else {
            continue;
        };
        // No key accepts this value.
        let text = |key: &str| spec(table, &format!("{key} = [[[true]]]"));
        assert!(text(it.old).contains(it.old), "no place for {table}");
        let message = error(text(it.old));
        let expected = format!("; renamed to `{}`", it.new);
        let line = 1 + text(it.old)
            .lines()
            .position(|line| line.contains("[[[true]]]"))
            .unwrap();
        assert!(
            is_unknown(&message, it.old) && message.contains(&expected),
            "{table}: {message}"
        );
        assert!(
            message.contains(&format!("former.toml:{line}:")),
            "{table}: {message}"
        );
        let message = error(text(it.new));
        assert!(!is_unknown(&message, it.new), "{table}: {message}");
        assert!(
            message.contains(&format!("former.toml:{line}:")),
            "{table}: {message}"
        );
    }
}

#[test]
fn each_former_kind_leads_to_one_that_exists() {
    let size = |kind: &str| {
        let text = spec("pareto", "scale = 1");
        error(text.replace("kind = \"pareto\"", &format!("kind = \"{kind}\"")))
    };
    let mut checked = 0;
    for it in RENAMED {
        let [old, new] = match it.family {
            NameCategory::Kind("size") => [size(it.old), size(it.new)],
            NameCategory::Kind(key) => panic!("{key}: no test of its kinds"),
            _ => continue,
        };
        checked += 1;
        let expected = format!("renamed to `{}`", it.new);
        assert!(
            old.contains(&expected) && old.contains("former.toml:"),
            "{old}"
        );
        let unknown = format!("found \"{}\"", it.new);
        assert!(!new.contains(&unknown), "{new}");
    }
    assert!(checked > 0);
}

#[test]
fn each_former_metric_and_probe_leads_to_one_that_exists() {
    let metric = |name: &str| {
        let text = spec("", "").replace("\"one_way_delay\"", &format!("\"{name}\""));
        error(text)
    };
    let probe = |name: &str| {
        let record =
            format!("[[experiment]]\nrecord = [{{ flow = \"f\", probes = [\"{name}\"] }}]");
        error(spec("", "").replace("[[experiment]]", &record))
    };
    let mut checked = 0;
    for it in RENAMED {
        let [old, new] = match it.family {
            NameCategory::Metric => [metric(it.old), metric(it.new)],
            NameCategory::Probe => [probe(it.old), probe(it.new)],
            _ => continue,
        };
        checked += 1;
        let expected = format!("renamed to `{}`", it.new);
        assert!(
            old.contains(&expected) && old.contains("former.toml:"),
            "{old}"
        );
        assert!(!new.contains(&format!("found \"{}\"", it.new)), "{new}");
    }
    assert!(checked > 10, "{checked}");
    assert!(metric("goodputs").contains("found \"goodputs\""));
}

#[test]
fn each_former_drop_reason_is_gone() {
    let names: Vec<&str> = DiscardReason::ALL
        .iter()
        .map(|reason| reason.name())
        .collect();
    let such = RENAMED
        .iter()
        .filter(|it| it.family == NameCategory::DropReason);
    for it in such {
        assert!(
            names.contains(&it.new) && !names.contains(&it.old),
            "{}",
            it.old
        );
    }
}
