//! Wording of serde's expectations for authors of specs.

use crate::tree::{NodeValue, SpecNode};

/// Translates serde's terms for Rust types into the terms of a spec.
pub(super) fn plainly(expected: &str, found: &SpecNode) -> String {
    match expected {
        "f64" => "a number, such as 0.015".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => {
            format!("a whole number{}", range(expected, found))
        }
        "i64" => "a whole number".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a table".to_owned(),
        other => match array_length(other) {
            Some(length) => format!("a list of {length} values"),
            None if other.starts_with("struct ") => "a table".to_owned(),
            None => other.to_owned(),
        },
    }
}

/// Example for a missing key; empty for keys that not almost every spec has.
pub(super) fn example(missing: &str) -> &'static str {
    match missing {
        "anabranch" => "; write `anabranch = 1` in the first line",
        "world" => "; write a section [world] with a `duration`",
        "node" => "; write a section [[node]] for each host",
        "flow" => "; write a section [[flow]] for each flow",
        "duration" => "; write one such as `duration = \"60 s\"`",
        "between" => "; write the two nodes, such as `between = [\"a\", \"b\"]`",
        "rate" => "; write one such as `rate = \"2 Mbit/s\"`",
        "delay" => "; write one such as `delay = \"5 ms\"`",
        "transport" => "; write one such as `transport = { protocol = \"sctp\" }`",
        "protocol" => "; write one such as `protocol = \"sctp\"`",
        "workload" => "; write one such as `workload = { kind = \"bulk\" }`",
        "probes" => "; write some such as `probes = [\"cwnd\"]`",
        _ => "",
    }
}

/// Correct form of a section, which may be repeatable (`[[link]]`) or not.
pub(super) fn sections(node: &SpecNode, path: &str, expected: &str) -> String {
    match &node.value {
        NodeValue::Table(_) if expected == "a sequence" && !path.contains('.') => {
            format!("; write [[{path}]]")
        }
        _ => String::new(),
    }
}

/// Required length of an array, if the expectation of its visitor contains one. The length must be
/// checked here, because serde itself ignores surplus items.
pub(super) fn array_length(expected: &str) -> Option<usize> {
    let words = ["an array of length ", "a tuple of size "];
    words
        .iter()
        .find_map(|words| expected.strip_prefix(words)?.parse().ok())
}

fn range(kind: &str, found: &SpecNode) -> &'static str {
    match (kind, &found.value) {
        ("u8", _) => " from 0 to 255",
        ("u16", _) => " from 0 to 65535",
        // For a number that is too large, "not negative" would not explain the error.
        ("u32", NodeValue::Integer(0..)) => " from 0 to 4294967295",
        _ => ", not negative",
    }
}
