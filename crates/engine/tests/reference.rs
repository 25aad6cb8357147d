//! Tests of the reference: the manual and the JSON Schema must agree with the declarations of
//! settings.

use anabranch_engine::kinds::Standard;
use anabranch_engine::manual;
use anabranch_scenario::schema::json_schema;
use serde_json::Value;

/// Compares a page of docs/reference with the generated text. With `REFERENCE=write` in the
/// environment, first writes the text to the page.
fn generated(name: &str, wanted: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let path = format!("{folder}/{name}.md");
    if std::env::var("REFERENCE").is_ok_and(|how| how == "write") {
        std::fs::write(&path, wanted).expect("the page");
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = page.lines().zip(wanted.lines()).enumerate();
    let first = lines.find(|(_, (is, should))| is != should);
    assert!(
        page == wanted,
        "docs/reference/{name}.md is not what the code says ({first:?}); \
         `REFERENCE=write cargo test -p anabranch-engine --test reference` writes it"
    );
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    generated("settings", &manual::page());
}

#[test]
fn the_page_of_keys_is_up_to_date() {
    generated("keys", &manual::keys());
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    generated("metrics", &manual::metrics());
}

/// Each row of a table must end with a description of the key.
#[test]
fn every_key_has_a_text() {
    for page in [manual::page(), manual::keys(), manual::metrics()] {
        let bare = page.lines().filter(|line| line.ends_with("|  |"));
        assert_eq!(bare.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

/// The page lists the error messages that other tests keep as snapshots, by test file and name of
/// the mistake.
#[test]
fn the_page_of_errors_is_up_to_date() {
    let mut page = include_str!("reference/errors.md").to_owned();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for (title, folder, prefix) in [
        ("Mistakes in a spec", "engine", "spec_errors__"),
        ("Mistakes in expressions", "engine", "expressions__"),
        ("Mistakes in a Wi-Fi cell", "lab", "wifi__"),
    ] {
        page += &format!("\n## {title}\n");
        let folder = format!("{tests}/{folder}/tests/snapshots");
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .expect("snapshots")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| name.starts_with(prefix) && name.ends_with(".snap"))
            .collect();
        names.sort_unstable();
        for name in names {
            let text = std::fs::read_to_string(format!("{folder}/{name}")).expect("a snapshot");
            let message = text.splitn(3, "---\n").nth(2).expect("a header and a body");
            let mistake = name[prefix.len()..].trim_end_matches(".snap");
            let mut mistake = mistake.replace('_', " ");
            mistake[..1].make_ascii_uppercase();
            page += &format!("\n### {mistake}\n\n```text\n{}\n```\n", message.trim());
        }
    }
    generated("errors", &page);
}

/// Every setting must have a description, and a default that can be written in a spec, so that an
/// override can be undone.
#[test]
fn every_setting_has_a_text_a_range_and_a_default() {
    for kind in Standard::default().transports.kinds() {
        let mut names: Vec<&str> = kind.all().map(|setting| setting.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}: a name stands twice", kind.name);
        for setting in kind.all() {
            let name = setting.name;
            assert!(!setting.text().is_empty(), "{}: {name}", kind.name);
            assert!(!setting.kind.range().is_empty(), "{}: {name}", kind.name);
            for profile in kind.profiles {
                let fallback = (kind.fallback)(profile, name).expect(name);
                setting
                    .parse(&fallback)
                    .unwrap_or_else(|error| panic!("{profile}: {error}"));
            }
        }
    }
}

fn schema() -> Value {
    json_schema(&Standard::default()).to_value()
}

#[test]
fn every_section_of_a_spec_is_in_the_schema() {
    let schema = schema();
    let properties = schema["properties"].as_object().expect("an object");
    for section in [
        "anabranch",
        "parameters",
        "profiles",
        "world",
        "node",
        "link",
        "flow",
        "experiment",
        "table",
        "figure",
    ] {
        assert!(properties.contains_key(section), "{section}");
    }
}

#[test]
fn a_parameter_may_stand_for_a_rate() {
    let rate = &schema()["definitions"]["Link"]["properties"]["rate"];
    let pattern = rate["anyOf"][1]["pattern"].as_str();
    assert_eq!(pattern, Some(r"\$|[*()]| [-+/] "), "{rate}");
}

/// The keys that specs had before keys were generated from declarations, and some that were added
/// then.
#[test]
fn every_key_of_a_transport_is_in_the_schema_with_range_and_default() {
    let schema = schema();
    let transport = &schema["definitions"]["Transport"]["oneOf"];
    let tables = transport.as_array().expect("a table for each transport");
    let table = |name: &str| {
        let is = |table: &&Value| table["properties"]["protocol"]["const"] == name;
        &tables.iter().find(is).expect(name)["properties"]
    };
    let described = |protocol: &str, key: &str, words: &[&str]| {
        let description = table(protocol)[key]["description"].as_str();
        let description = description.unwrap_or_else(|| panic!("{protocol}: {key}"));
        for word in words {
            assert!(
                description.contains(word),
                "{protocol}: {key}: {description}"
            );
        }
    };
    let sctp = "profile switches congestion mtu path_mtu_discovery streams stream_allocation rate_estimate receive_buffer \
                partial_delivery_point application_read_rate initial_window initial_ssthresh delayed_sack unordered \
                heartbeat_interval rto_initial rto_min rto_max path_max_retrans pf_max_retrans \
                primary_switchover_max_retrans association_max_retrans multihomed sack_delay bundling missing_reports";
    for key in sctp.split_whitespace() {
        described("sctp", key, &[]);
    }
    let tcp = "profile switches mss receive_buffer initial_window initial_ssthresh delayed_ack limited_transmit \
               rtt_granularity rto_min congestion";
    for key in tcp.split_whitespace() {
        described("tcp", key, &[]);
    }
    described(
        "sctp",
        "heartbeat_interval",
        &["\"off\", or 1 ms to 86400 s", "Default: 30 s", "RFC 9260"],
    );
    described(
        "sctp",
        "rto_initial",
        &["Default: 1 s; rfc4960, rfc2960, ns2: 3 s"],
    );
    described("tcp", "congestion", &["Default: newreno"]);
    let streams = table("sctp")["streams"].to_string();
    assert!(streams.contains("\"maximum\":65535"), "{streams}");
    let fixed = table("sctp")["stream_allocation"].to_string();
    assert!(fixed.contains("weight_single"), "{fixed}");
}
