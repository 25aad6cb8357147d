//! Names of groups and of their members: `satellite[3]`, `satellite[last]`.

use crate::spec::Spec;

/// Which member of a group of nodes a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeName {
    /// `satellite[3]`.
    Number(u32),
    /// `satellite[last]`.
    Last,
}

impl NodeName {
    /// Splits `satellite[last]` into the group and the member.
    pub fn split(name: &str) -> (&str, Option<NodeName>) {
        if let Some(group) = name.strip_suffix("[last]") {
            return (group, Some(NodeName::Last));
        }
        let (group, index) = member(name);
        (group, index.map(NodeName::Number))
    }

    /// The member's number in a group of `count`.
    pub fn index(self, count: u32) -> u32 {
        match self {
            NodeName::Number(index) => index,
            NodeName::Last => count.saturating_sub(1),
        }
    }

    /// How many nodes a name means: the members of a group, or one.
    pub fn count(spec: &Spec, name: &str) -> Option<u32> {
        let (group, member) = Self::split(name);
        let count = count_of(spec, group)?;
        Some(if member.is_some() { 1 } else { count })
    }
}

/// How many members the nodes of a name have; `None` if there is no such node.
pub fn count_of(spec: &Spec, node: &str) -> Option<u32> {
    spec.nodes
        .iter()
        .find(|known| known.name == node)
        .map(|known| known.count.0)
}

/// Splits `flow[1]` into the group and the member.
pub fn member(name: &str) -> (&str, Option<u32>) {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((group, index)) => match index.parse() {
            Ok(index) => (group, Some(index)),
            Err(_) => (name, None),
        },
        None => (name, None),
    }
}

/// The name of a member of a group of `count`.
pub fn member_name(group: &str, count: u32, index: u32) -> String {
    if count == 1 {
        group.to_owned()
    } else {
        format!("{group}[{index}]")
    }
}
