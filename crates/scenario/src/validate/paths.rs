//! Checks of the paths of flows: the interfaces that a flow uses, and their pairs.

use crate::checker::Checker;
use crate::constellation::Class;
use crate::flow::Flow;
use crate::names::{MemberSelection, NodeName};
use crate::spec::Spec;
use crate::vocabulary::{Vocabulary, names_of};
use crate::world::Link;

/// Checks that the paths of a flow start and end at its hosts, and that its transport supports
/// them.
pub(super) fn check(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    flow: &Flow,
    path: &str,
) {
    let kind = vocabulary.transport(&flow.transport);
    if flow.paths.len() > 1 && kind.is_some_and(|kind| !kind.multihoming) {
        let several = names_of(vocabulary, |kind| kind.multihoming);
        c.problem(
            &format!("{path}.paths"),
            format!(
                "found {} paths; only {several} uses more than one",
                flow.paths.len()
            ),
        );
    }
    for (index, one) in flow.paths.iter().enumerate() {
        let path = format!("{path}.paths.{index}");
        check_end(c, spec, &one.from, &flow.from, &format!("{path}.from"));
        check_end(c, spec, &one.to, &flow.to, &format!("{path}.to"));
        let again = flow.paths[..index].iter().any(|other| other.to == one.to);
        if again {
            let message = format!(
                "a second path arrives at {:?}; a flow has one path to each address of the peer",
                one.to
            );
            c.problem(&format!("{path}.to"), message);
        }
    }
}

/// Checks that a link exists, and that it ends at a host.
fn check_end(c: &mut Checker<'_>, spec: &Spec, link: &str, host: &str, path: &str) {
    let (host, _) = NodeName::split(host);
    let at_host = |name: &&String| NodeName::split(name).0 == host;
    let ends_there = |link: &Link| link.between.iter().any(|name| at_host(&name));
    let wires = spec.links.iter().filter(|link| ends_there(link));
    let wires = wires.map(|link| link.name.as_str());
    let interfaces = wires.chain(transmitters(spec, host));
    let named = MemberSelection::parse(link).group;
    if !interfaces.clone().any(|known| known == named) {
        let message = format!("found {link:?}, but no link of this name ends at {host:?}");
        c.not_among(path, &message, link, interfaces);
    }
}

/// Links by which the stations of a ground, or the satellites of a constellation, send.
fn transmitters<'a>(spec: &'a Spec, host: &'a str) -> impl Iterator<Item = &'a str> + Clone {
    spec.constellations.iter().filter_map(move |constellation| {
        let mut grounds = spec.grounds.iter();
        let class = match grounds.any(|it| it.name == host && it.uses(&constellation.name)) {
            true => Class::Up,
            false if constellation.name == host => Class::Down,
            false => return None,
        };
        Some(constellation.link_name(class))
    })
}
