//! The network of a file, without its flows.

use std::collections::BTreeSet;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::substitute::substitute;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use anabranch_scenario::{Spec, decode, validate};

use super::overrides;
use crate::files::Files;
use crate::kinds::Standard;
use crate::network::constellation;
use crate::resolved_point::check_network;
use crate::traces;

/// Reads the network of a file: its nodes and links. Flows and outputs are ignored, and may be
/// missing, as may the name and the world.
///
/// # Errors
/// All errors of the other parts.
pub fn network(
    file: &str,
    text: &str,
    overrides: &[String],
    files: &Files,
) -> Result<Spec, SpecError> {
    read_network(text, overrides, files)
        .map_err(|found| SpecError::new(file, text, overrides, found))
}

/// Parts of a file that a network does not need, each with its replacement.
const NOT_NETWORK: &[(&str, Option<&str>)] = &[
    ("name", Some("\"network\"")),
    ("world", Some("{ duration = \"1 s\" }")),
    ("flow", Some("[]")),
    ("paper", None),
    ("reference", None),
    ("assumption", None),
    ("measure", None),
    ("experiment", None),
    ("derived", None),
    ("table", None),
    ("figure", None),
    ("claim", None),
];

fn read_network(text: &str, arguments: &[String], files: &Files) -> Result<Spec, Vec<Diagnostic>> {
    let mut root = SpecNode::parse(text)?;
    if let NodeValue::Table(entries) = &mut root.value {
        for &(key, stands) in NOT_NETWORK {
            entries.retain(|entry| entry.key != key);
            let place = SourceSpan::File(0..0);
            let value = stands.and_then(|value| SpecNode::parse_argument(key, value, 0).ok());
            entries.extend(value.map(|node| TableEntry {
                key: key.to_owned(),
                key_place: place.clone(),
                node: SpecNode { place, ..node },
            }));
        }
    }
    let mut problems = Vec::new();
    let settings = overrides::read(arguments, &root, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut tree = substitute(overrides::applied(&root, &settings), &mut BTreeSet::new())?;
    traces::put_in(&mut tree, files)?;
    let mut spec: Spec = decode::decode(&tree, "")?;
    let kinds = Standard::default();
    let mut problems = constellation::complete(&mut spec, &kinds, &tree);
    problems.extend(validate::validate(&spec, &tree, &kinds));
    if problems.is_empty() {
        problems = check_network(&spec, &kinds, &tree);
    }
    if problems.is_empty() {
        problems = without_proxies(&spec, &tree);
    }
    match problems.is_empty() {
        true => Ok(spec),
        false => Err(problems),
    }
}

/// Rejects proxies, because a proxy supports only the transports of the simulator, and not packets
/// from outside.
fn without_proxies(spec: &Spec, tree: &SpecNode) -> Vec<Diagnostic> {
    let mut checker = Checker::new(tree);
    for (index, node) in spec.nodes.iter().enumerate() {
        if node.proxy.is_some() {
            let message = "found a proxy; packets of real programs pass by it, so leave it out";
            checker.problem(&format!("node.{index}.proxy"), message);
        }
    }
    checker.into_problems()
}

#[cfg(test)]
mod tests {
    use super::{Files, network};

    const SECOND: u64 = 1_000_000_000;

    /// Outages of the two directions of a link, in seconds.
    fn outages(schedule: &str) -> [Vec<[u64; 2]>; 2] {
        let text = format!(
            "anabranch = 1\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{schedule}\n"
        );
        let spec = network("link.toml", &text, &[], &Files::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let seconds = |end: u64| if end == u64::MAX { end } else { end / SECOND };
        [true, false].map(|forward| {
            let outages = spec.links[0].outages(forward).into_iter();
            outages.map(|outage| outage.map(seconds)).collect()
        })
    }

    #[test]
    fn a_link_is_down_in_both_directions_or_in_one() {
        assert_eq!(outages(""), [Vec::<[u64; 2]>::new(), vec![]]);
        let both = vec![[1, 2], [5, 7]];
        assert_eq!(
            outages("down = [[\"1 s\", \"2 s\"], [\"5 s\", \"7 s\"]]"),
            [both.clone(), both]
        );
        assert_eq!(
            outages("down = { backward = [[\"1 s\", \"2 s\"]] }"),
            [vec![], vec![[1, 2]]]
        );
    }

    #[test]
    fn up_says_the_same_the_other_way_round() {
        assert_eq!(
            outages(
                "up = { forward = [[\"1 s\", \"2 s\"], [\"2 s\", \"4 s\"]] }\ndown = { backward = [[\"3 s\", \"9 s\"]] }"
            ),
            [vec![[0, 1], [4, u64::MAX]], vec![[3, 9]]]
        );
        assert_eq!(
            outages("up = [[\"0 s\", \"2 s\"]]"),
            [vec![[2, u64::MAX]], vec![[2, u64::MAX]]]
        );
    }
}
