//! Allowed words of text values in a spec: those of a transport setting, or the values that a sweep
//! assigns.

use std::collections::BTreeMap;

use anabranch_engine::kinds::Standard;
use anabranch_scenario::tree::SpecNode;
use anabranch_settings::Kind;

/// Allowed words by key; keys are written as in `--set`.
#[derive(Clone, Debug, Default)]
pub struct Choices(BTreeMap<String, Vec<String>>);

impl Choices {
    /// Finds the words for all text values of a spec.
    pub fn of(root: &SpecNode) -> Self {
        let mut choices = Self::default();
        let items =
            |node: &SpecNode, key: &str| node.get(key).map_or(Vec::new(), |it| it.items().to_vec());
        for flow in items(root, "flow") {
            choices.of_transport(root, &flow);
        }
        for experiment in items(root, "experiment") {
            for sweep in items(&experiment, "sweep") {
                if let Some(parameter) = sweep.get("parameter").and_then(SpecNode::text) {
                    choices.add(
                        parameter,
                        items(&sweep, "values").iter().filter_map(SpecNode::text),
                    );
                }
                for point in items(&sweep, "points") {
                    let set = point.entries().iter().filter(|it| it.key != "x");
                    for entry in set {
                        choices.add(&entry.key, entry.node.text().into_iter());
                    }
                }
            }
        }
        choices.0.retain(|_, words| words.len() > 1);
        choices
    }

    /// The allowed words for a key, if its current `value` is one of them.
    pub fn words(&self, key: &str, value: &str) -> Option<&[String]> {
        let words = self.0.get(key)?;
        words.iter().any(|word| word == value).then_some(words)
    }

    fn add<'w>(&mut self, key: &str, words: impl Iterator<Item = &'w str>) {
        let known = self.0.entry(key.to_owned()).or_default();
        for word in words.filter(|word| !word.contains('$')) {
            if known.iter().all(|it| it != word) {
                known.push(word.to_owned());
            }
        }
    }

    /// Adds the words of the transport settings of a flow. If a setting refers to a parameter, the
    /// words are added for the parameter.
    fn of_transport(&mut self, root: &SpecNode, flow: &SpecNode) {
        let (Some(name), Some(transport)) = (flow.own_name(), flow.get("transport")) else {
            return;
        };
        let protocol = transport.get("protocol").and_then(SpecNode::text);
        let kinds = Standard::default().transports.kinds();
        let Some(kind) = kinds.into_iter().find(|kind| Some(kind.name) == protocol) else {
            return;
        };
        for entry in transport.entries() {
            let words = match (entry.key.as_str(), kind.setting(&entry.key)) {
                ("profile", _) => {
                    let own = root
                        .get("profiles")
                        .map(SpecNode::entries)
                        .unwrap_or_default();
                    let own = own.iter().map(|it| it.key.clone());
                    let known = kind.profiles.iter().map(|it| (*it).to_owned());
                    known.chain(own).collect()
                }
                (_, Some(setting))
                    if matches!(setting.kind, Kind::Choice(_) | Kind::Registered(_)) =>
                {
                    setting.kind.words()
                }
                _ => continue,
            };
            let key = match entry.node.text().and_then(|text| text.strip_prefix('$')) {
                Some(parameter) => parameter.to_owned(),
                None => format!("flow.{name}.transport.{}", entry.key),
            };
            self.add(&key, words.iter().map(String::as_str));
        }
    }
}
