//! Profiles that a spec defines: named sets of settings and switches, which any number of flows can
//! use.
//!
//! ```toml
//! [profiles.era]              # a profile of this spec
//! base = "rfc2960"            # what it starts from; the protocol's default if left out
//! missing_reports = 4
//!
//! [flow.transport]
//! protocol = "sctp"
//! profile = "era"
//! ```
//!
//! A single value of a profile can be set by its path: by `--set profiles.era.missing_reports=3`, a
//! sweep, or the parameters of an experiment.

use crate::diagnostic::Diagnostic;
use crate::transport::SWITCHES;
use crate::tree::{NodeValue, SpecNode, TableEntry};

/// Name of the section with the profiles.
const SECTION: &str = "profiles";
/// Key of the base of a profile.
const BASE: &str = "base";
/// Key of a transport's profile.
const PROFILE: &str = "profile";

/// Replaces the profile names in flows by the contents of the spec's profiles. Values that the flow
/// sets itself take precedence.
///
/// # Errors
/// A profile is not a table.
pub fn put_in(root: &mut SpecNode) -> Result<(), Diagnostic> {
    let Some(profiles) = root.get(SECTION).cloned() else {
        return Ok(());
    };
    for entry in profiles.entries() {
        if !matches!(entry.node.value, NodeValue::Table(_)) {
            let path = SpecNode::key_path(SECTION, &entry.key);
            let message = format!("found {}; a profile is a table", entry.node.describe());
            return Err(Diagnostic::new(entry.node.place.clone(), path, message));
        }
    }
    for flow in items(root, "flow") {
        if let Some(transport) = flow.get_mut("transport") {
            expand(transport, &profiles);
        }
    }
    for node in items(root, "node") {
        for side in ["downstream", "upstream"] {
            let proxy = node.get_mut("proxy");
            if let Some(transport) = proxy.and_then(|proxy| proxy.get_mut(side)) {
                expand(transport, &profiles);
            }
        }
    }
    Ok(())
}

/// Items of a section that is a list of tables.
fn items<'a>(root: &'a mut SpecNode, section: &str) -> &'a mut [SpecNode] {
    match root.get_mut(section).map(|node| &mut node.value) {
        Some(NodeValue::Array(items)) => items,
        _ => &mut [],
    }
}

/// Errors for the profiles that no flow of the spec uses.
pub fn unused(root: &SpecNode) -> Vec<Diagnostic> {
    let profiles = root.get(SECTION).map(SpecNode::entries).unwrap_or_default();
    let unused = profiles.iter().filter(|entry| !is_named(root, &entry.key));
    let problem = |entry: &TableEntry| {
        let path = SpecNode::key_path(SECTION, &entry.key);
        let message = format!("the profile `{}` is used by no flow", entry.key);
        Diagnostic::new(entry.key_place.clone(), path, message)
    };
    unused.map(problem).collect()
}

/// Whether any text in the tree equals `name`.
fn is_named(node: &SpecNode, name: &str) -> bool {
    match &node.value {
        NodeValue::Text(text) => text == name,
        NodeValue::Array(items) => items.iter().any(|item| is_named(item, name)),
        NodeValue::Table(entries) => entries.iter().any(|entry| is_named(&entry.node, name)),
        _ => false,
    }
}

/// Replaces the profile name of a transport by the settings of that profile, then by those of its
/// base, and so on, until a profile has no base or the base is built into the protocol. Keys that
/// the transport sets itself are kept. A name that was already used counts as built in, so a
/// profile may have the same name as its base.
fn expand(transport: &mut SpecNode, profiles: &SpecNode) {
    let mut used: Vec<String> = Vec::new();
    loop {
        let Some(name) = transport
            .get(PROFILE)
            .and_then(SpecNode::text)
            .map(str::to_owned)
        else {
            return;
        };
        let Some(profile) = profiles.get(&name).filter(|_| !used.contains(&name)) else {
            return;
        };
        used.push(name);
        merge(transport, profile);
    }
}

fn merge(transport: &mut SpecNode, profile: &SpecNode) {
    let base = profile.get(BASE).cloned();
    let NodeValue::Table(entries) = &mut transport.value else {
        return;
    };
    let at = entries.iter().position(|entry| entry.key == PROFILE);
    match (at, base) {
        (Some(at), Some(base)) => entries[at].node = base,
        (Some(at), None) => drop(entries.remove(at)),
        (None, _) => {}
    }
    for entry in profile.entries() {
        match entry.key.as_str() {
            BASE => {}
            SWITCHES => {
                let switches = entry.node.entries();
                switches.iter().for_each(|switch| add(entries, switch));
            }
            _ => add(entries, entry),
        }
    }
}

/// Adds a setting or switch, unless the transport already has it.
fn add(transport: &mut Vec<TableEntry>, entry: &TableEntry) {
    let has = |entries: &[TableEntry]| entries.iter().any(|known| known.key == entry.key);
    let switches = transport.iter().find(|known| known.key == SWITCHES);
    if !has(transport) && !switches.is_some_and(|switches| has(switches.node.entries())) {
        transport.push(entry.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport(text: &str) -> String {
        let mut root = SpecNode::parse(text).expect("TOML");
        put_in(&mut root).expect("profiles");
        let flows = root.get("flow").expect("flows");
        flows.items()[0]
            .get("transport")
            .expect("a transport")
            .to_json()
            .to_string()
    }

    #[test]
    fn a_profile_of_the_spec_gives_what_the_flow_does_not_say() {
        let flow = "[[flow]]\ntransport = { protocol = 'sctp', profile = 'era', streams = 2, switches = { htna = 'off' } }\n";
        let era = "[profiles.era]\nbase = 'old'\nstreams = 1\nmtu = '1 KiB'\nswitches = { htna = 'per_sack', max_burst = 3 }\n";
        let old = "[profiles.old]\nbase = 'rfc2960'\nmissing_reports = 4\n";
        let found: serde_json::Value =
            serde_json::from_str(&transport(&format!("{era}{old}{flow}"))).expect("JSON");
        assert_eq!(
            found,
            serde_json::json!({
                "protocol": "sctp", "profile": "rfc2960", "streams": 2, "mtu": "1 KiB", "max_burst": 3,
                "missing_reports": 4, "switches": { "htna": "off" },
            })
        );
    }

    #[test]
    fn a_ring_ends_at_the_protocols_own_profile() {
        let flow = "[[flow]]\ntransport = { protocol = 'sctp', profile = 'ns2' }\n";
        let found = transport(&format!(
            "[profiles.ns2]\nbase = 'ns2'\nmtu = '1480 B'\n{flow}"
        ));
        assert!(
            found.contains("\"profile\":\"ns2\"") && found.contains("1480 B"),
            "{found}"
        );
    }

    #[test]
    fn a_profile_is_a_table() {
        let mut root = SpecNode::parse("[profiles]\nera = 4\n").expect("TOML");
        assert!(put_in(&mut root).is_err());
    }
}
