//! Names of groups and their members: `satellite[3]`, `satellite[last]`, `r[1..3]`, `r[..last]`.

use std::ops::Range;

use crate::spec::Spec;
use crate::wifi::LinkMedium;
use crate::world::Link;

/// Index of a member in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeName {
    /// A number, as in `satellite[3]`.
    Number(u32),
    /// The last member, as in `satellite[last]`.
    Last,
}

/// Selection of members in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Members {
    /// All members, selected by the name of the group alone.
    All,
    /// One member.
    One(NodeName),
    /// A range: the index of the first member, and the index after that of the last.
    Slice(Option<NodeName>, Option<NodeName>),
}

/// A name in a spec, parsed into a group and a selection of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSelection<'a> {
    /// Name of the group.
    pub group: &'a str,
    members: Members,
}

impl<'a> MemberSelection<'a> {
    /// Parses a name. Brackets without a valid member or range are kept as part of the group's
    /// name, which then matches no group.
    pub fn parse(name: &'a str) -> Self {
        let inside = name.strip_suffix(']').and_then(|name| name.split_once('['));
        let read = inside.and_then(|(group, members)| Some((group, Members::parse(members)?)));
        let (group, members) = read.unwrap_or((name, Members::All));
        Self { group, members }
    }

    /// Indices of the selected members in a group of `count`. The range may extend beyond the
    /// group; such a name does not fit the group.
    pub fn range(&self, count: u32) -> Range<u32> {
        let begin = |place: Option<NodeName>| place.map_or(0, |place| place.index(count));
        match self.members {
            Members::All => 0..count,
            Members::One(place) => place.index(count)..place.index(count).saturating_add(1),
            Members::Slice(from, until) => {
                begin(from)..until.map_or(count, |place| place.index(count))
            }
        }
    }

    /// Whether the name selects the member with this index in a group of `count`.
    pub fn contains(&self, index: u32, count: u32) -> bool {
        self.range(count).contains(&index)
    }

    /// Number of members that the name selects in a group of `count`.
    pub fn count(&self, count: u32) -> u32 {
        match self.members {
            Members::One(_) => 1,
            _ => self.range(count).len() as u32,
        }
    }

    /// Whether all selected members exist in a group of `count`. Every name fits an empty group,
    /// because such a group is switched off.
    pub fn fits(&self, count: u32) -> bool {
        let range = self.range(count);
        count == 0 || range.start <= range.end && range.end <= count
    }

    /// Whether the name selects exactly one member.
    pub fn is_one(&self) -> bool {
        matches!(self.members, Members::One(_))
    }
}

impl Members {
    /// Parses the text in brackets: `3`, `last`, `1..3`, `..last`.
    fn parse(text: &str) -> Option<Self> {
        let place = |text: &str| match text.trim() {
            "last" => Some(NodeName::Last),
            number => number.parse().ok().map(NodeName::Number),
        };
        let end = |text: &str| match text.trim() {
            "" => Some(None),
            text => place(text).map(Some),
        };
        match text.split_once("..") {
            Some((from, until)) => Some(Members::Slice(end(from)?, end(until)?)),
            None => place(text).map(Members::One),
        }
    }
}

impl NodeName {
    /// Splits a name such as `satellite[last]` into the group and the member. For a range the
    /// member is `None`.
    pub fn split(name: &str) -> (&str, Option<NodeName>) {
        let name = MemberSelection::parse(name);
        match name.members {
            Members::One(place) => (name.group, Some(place)),
            _ => (name.group, None),
        }
    }

    /// Number of the member in a group of `count`.
    pub fn index(self, count: u32) -> u32 {
        match self {
            NodeName::Number(index) => index,
            NodeName::Last => count.saturating_sub(1),
        }
    }

    /// Number of nodes that a name selects: all members of a group, a range of them, or one node; 0
    /// for a group that is switched off.
    pub fn count(spec: &Spec, name: &str) -> Option<u32> {
        let name = MemberSelection::parse(name);
        let count = count_of(spec, name.group)?;
        Some(match count {
            0 => 0,
            count => name.count(count),
        })
    }
}

/// Number of members of a link: the size of the larger group at its ends, or one less in a chain; 0
/// if a group at either end is switched off.
pub fn link_members(spec: &Spec, link: &Link) -> u32 {
    let ends = link.between.iter();
    let ends: Vec<u32> = ends
        .filter_map(|name| NodeName::count(spec, name))
        .collect();
    if ends.contains(&0) {
        return 0;
    }
    let chained = u32::from(link.between[0] == link.between[1]);
    ends.into_iter().max().unwrap_or(1).saturating_sub(chained)
}

/// Number of members of a link of any kind.
pub fn carrier_members(spec: &Spec, carrier: LinkMedium<'_>) -> u32 {
    match carrier {
        LinkMedium::Wire(link) => link_members(spec, link),
        LinkMedium::Air(cell) => cell.stations.len() as u32,
        LinkMedium::Beam(constellation, class) => constellation.members(class),
    }
}

/// Number of members of a node; `None` if the node does not exist.
pub fn count_of(spec: &Spec, node: &str) -> Option<u32> {
    let mut groups = spec.groups();
    groups
        .find(|(name, _)| *name == node)
        .map(|(_, count)| count)
}

/// Splits a name such as `flow[1]` into the group and the number of the member.
pub fn member(name: &str) -> (&str, Option<u32>) {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((group, index)) => match index.parse() {
            Ok(index) => (group, Some(index)),
            Err(_) => (name, None),
        },
        None => (name, None),
    }
}

/// Name of a member of a group of `count`.
pub fn member_name(group: &str, count: u32, index: u32) -> String {
    if count == 1 {
        group.to_owned()
    } else {
        format!("{group}[{index}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_group_a_member_or_a_slice() {
        let range = |name: &str| MemberSelection::parse(name).range(4);
        for (name, wanted) in [
            ("r", 0..4),
            ("r[0]", 0..1),
            ("r[last]", 3..4),
            ("r[1..3]", 1..3),
            ("r[..3]", 0..3),
            ("r[1..]", 1..4),
            ("r[..last]", 0..3),
            ("r[ 1 .. last ]", 1..3),
            ("r[2..2]", 2..2),
        ] {
            assert_eq!(MemberSelection::parse(name).group, "r", "{name}");
            assert_eq!(range(name), wanted, "{name}");
            assert!(MemberSelection::parse(name).fits(4), "{name}");
            assert_eq!(
                MemberSelection::parse(name).count(4),
                wanted.len() as u32,
                "{name}"
            );
        }
        for name in ["r[4]", "r[1..5]", "r[3..1]", "r[5..]"] {
            assert!(!MemberSelection::parse(name).fits(4), "{name}");
            assert!(MemberSelection::parse(name).fits(0), "{name}: switched off");
        }
        for name in ["r[]", "r[-1]", "r[a]", "r[1..2..3]", "r[1", "r]", "r[1.5]"] {
            assert_eq!(MemberSelection::parse(name).group, name);
        }
    }
}
