//! Controls on the page: for the parameters of the spec, and for the numbers in its world, links
//! and flows.

use anabranch_report::unit::readable;
use anabranch_scenario::tree::{NodeValue, SpecNode};
use serde::Serialize;

use crate::choices::Choices;
use crate::slider_steps;

/// Sections whose numbers get controls, in addition to the parameters.
const SECTIONS: &[&str] = &["world", "link", "wifi", "flow"];

/// Maximum depth of a value in its section.
const MAX_DEPTH: usize = 6;

/// Maximum number of controls on a page.
const MAX_KNOBS: usize = 400;

/// A value of the spec that the page can change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Control {
    /// Key of the value, as in `--set`.
    pub key: String,
    /// Group of the control, such as `parameters` or `link satellite`.
    pub group: String,
    /// Name within the group.
    pub label: String,
    /// Current value, in the syntax of `--set`.
    pub value: String,
    /// Type of control.
    #[serde(flatten)]
    pub kind: ControlKind,
}

/// Type of control.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ControlKind {
    /// A slider with these steps, next to a text input.
    Slider {
        /// Values of the steps, in order.
        stops: Vec<String>,
    },
    /// A switch: on or off.
    Switch,
    /// A selection from a list.
    Choice {
        /// Words to select from.
        words: Vec<String>,
    },
    /// Text input.
    Text,
}

/// Controls for a spec, those of parameters first. `choices` contains the allowed words of text
/// values.
pub fn of(root: &SpecNode, choices: &Choices) -> Vec<Control> {
    let mut found = Vec::new();
    let parameters = root.get("parameters").map(SpecNode::entries);
    for entry in parameters.unwrap_or_default() {
        // Skipped, because a name with a dot would be parsed as a path.
        if entry.key.contains('.') {
            continue;
        }
        let table = matches!(entry.node.value, NodeValue::Table(_));
        let key = match table {
            true => SpecNode::key_path("parameters", &entry.key),
            false => entry.key.clone(),
        };
        let place = ValueLocation {
            group: "parameters",
            key,
            label: readable(&entry.key),
        };
        add(&entry.node, &place, 0, !table, choices, &mut found);
    }
    for section in SECTIONS {
        let Some(node) = root.get(section) else {
            continue;
        };
        if let NodeValue::Table(_) = node.value {
            let place = ValueLocation {
                group: section,
                key: (*section).to_owned(),
                label: String::new(),
            };
            add(node, &place, 0, false, choices, &mut found);
        }
        for (index, item) in node.items().iter().enumerate() {
            let name = item.own_name().map_or(index.to_string(), str::to_owned);
            let place = ValueLocation {
                group: &format!("{section} {name}"),
                key: format!("{section}.{name}"),
                label: String::new(),
            };
            add(item, &place, 0, false, choices, &mut found);
        }
    }
    found.truncate(MAX_KNOBS);
    found
}

/// Position of a value in the spec.
struct ValueLocation<'a> {
    group: &'a str,
    key: String,
    label: String,
}

/// Adds the control for a value, or for the values in a table or list. Text without a number gets a
/// control only if `wanted` is true.
fn add(
    node: &SpecNode,
    place: &ValueLocation<'_>,
    depth: usize,
    wanted: bool,
    choices: &Choices,
    found: &mut Vec<Control>,
) {
    if let NodeValue::Table(entries) = &node.value {
        for entry in entries.iter().filter(|it| !it.key.contains('.')) {
            if depth >= MAX_DEPTH {
                return;
            }
            let label = match place.label.as_str() {
                "" => readable(&entry.key),
                label => format!("{label}: {}", readable(&entry.key)),
            };
            let below = ValueLocation {
                group: place.group,
                key: SpecNode::key_path(&place.key, &entry.key),
                label,
            };
            add(&entry.node, &below, depth + 1, false, choices, found);
        }
        return;
    }
    let words = node.text().and_then(|text| choices.words(&place.key, text));
    let kind = match (&node.value, slider_steps::around(&node.value)) {
        (_, Some(stops)) => ControlKind::Slider { stops },
        (_, None) if words.is_some() => ControlKind::Choice {
            words: words.unwrap_or_default().to_vec(),
        },
        (NodeValue::Boolean(_), _) => ControlKind::Switch,
        (NodeValue::Integer(_) | NodeValue::Float(_), _) => ControlKind::Text,
        (NodeValue::Text(text), _) if wanted && !text.contains('$') => ControlKind::Text,
        _ => return,
    };
    let value = match &node.value {
        NodeValue::Text(text) => text.clone(),
        NodeValue::Float(number) => format!("{number:?}"),
        _ => node.describe(),
    };
    found.push(Control {
        key: place.key.clone(),
        group: place.group.to_owned(),
        label: place.label.clone(),
        value,
        kind,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::sweep::Assignment;

    const SPEC: &str = r#"
[parameters]
rate = "2 Mbit/s"
twice = "2 * $rate"
loss = { model = "bernoulli", probability = 0.015 }
profile = "rfc9260"
delayed = true
[world]
duration = "60 s"
[[node]]
name = "a"
[[link]]
name = "satellite"
between = ["a", "b"]
rate = "$rate"
delay = { forward = "250 ms", backward = "200 ms" }
queue = "10 packets"
down = [["1 s", "2 s"]]
[[flow]]
name = "sctp"
workload = { kind = "bulk" }
transport = { protocol = "sctp", receive_buffer = "64 KiB", streams = 4 }
"#;

    #[test]
    fn parameters_come_first_and_the_numbers_of_links_and_flows_follow() {
        let root = SpecNode::parse(SPEC).expect("TOML");
        let controls = of(&root, &Choices::default());
        let found: Vec<_> = controls
            .iter()
            .map(|it| (&*it.group, &*it.key, &*it.value))
            .collect();
        assert_eq!(
            found,
            [
                ("parameters", "rate", "2 Mbit/s"),
                ("parameters", "parameters.loss.probability", "0.015"),
                ("parameters", "profile", "rfc9260"),
                ("parameters", "delayed", "true"),
                ("world", "world.duration", "60 s"),
                ("link satellite", "link.satellite.delay.forward", "250 ms"),
                ("link satellite", "link.satellite.delay.backward", "200 ms"),
                ("link satellite", "link.satellite.queue", "10 packets"),
                ("flow sctp", "flow.sctp.transport.receive_buffer", "64 KiB"),
                ("flow sctp", "flow.sctp.transport.streams", "4"),
            ]
        );
        assert_eq!(controls[1].label, "loss: probability");
        assert_eq!(
            (&controls[2].kind, &controls[3].kind),
            (&ControlKind::Text, &ControlKind::Switch)
        );
    }

    /// A setting with a list of words, a parameter that such a setting refers to, and a parameter
    /// with texts in a sweep.
    #[test]
    fn a_text_with_known_words_is_chosen_from_a_list() {
        let text = SPEC.replace(
            "receive_buffer = \"64 KiB\"",
            "profile = \"$profile\", scheduler = \"fcfs\"",
        );
        let text = text.replace(
            "delayed = true",
            "delayed = true\nways = \"one\"\nalone = \"x\"",
        );
        let sweep = "[[experiment]]\nid = \"e\"\nsweep = [{ parameter = \"ways\", values = [\"one\", \"two\"] }]\n";
        let root = SpecNode::parse(&(text + sweep)).expect("TOML");
        let controls = of(&root, &Choices::of(&root));
        let kind = |key: &str| &controls.iter().find(|it| it.key == key).expect(key).kind;
        let words = |key: &str| match kind(key) {
            ControlKind::Choice { words } => words.clone(),
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(words("ways"), ["one", "two"]);
        assert!(words("profile").contains(&"rfc4960".to_owned()));
        assert!(words("flow.sctp.transport.scheduler").len() > 2);
        assert_eq!(kind("alone"), &ControlKind::Text);
        assert!(matches!(kind("rate"), ControlKind::Slider { .. }));
    }

    #[test]
    fn every_control_sets_the_value_that_it_shows() {
        let root = SpecNode::parse(SPEC).expect("TOML");
        for control in of(&root, &Choices::of(&root)) {
            let mut moved = root.clone();
            let argument = format!("{}={}", control.key, control.value);
            let setting = Assignment::parse(&argument, 0).expect("a setting");
            setting.apply(&mut moved).expect("a key that is there");
            assert!(moved.says_what(&root), "{argument}");
        }
    }
}
