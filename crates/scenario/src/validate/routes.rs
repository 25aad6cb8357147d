//! Checks of static routes: names exist, and the link is attached to the node.

use crate::checker::Checker;
use crate::names::NodeName;
use crate::spec::Spec;
use crate::validate::names::{check_link_name, check_node};

/// Checks the static routes of a spec. Routing loops are not detected here, because that requires
/// the whole world.
pub(super) fn check(c: &mut Checker<'_>, spec: &Spec) {
    for (index, route) in spec.routes.iter().enumerate() {
        let path = format!("route.{index}");
        check_node(c, spec, &route.node, &format!("{path}.node"));
        check_node(c, spec, &route.to, &format!("{path}.to"));
        let via = format!("{path}.via");
        check_link_name(c, spec, &route.via, &via);
        let group = |name: &str| NodeName::split(name).0.to_owned();
        if group(&route.node) == group(&route.to) && route.node == route.to {
            let message = format!("the route leads from {:?} to itself", route.node);
            c.problem(&format!("{path}.to"), message);
        }
        let (link, _) = crate::names::member(&route.via);
        let Some(link) = spec.links.iter().find(|known| known.name == link) else {
            if spec.cells.iter().any(|cell| cell.name == route.via) {
                c.problem(&via, "found a cell; a route leaves by a link");
            }
            continue;
        };
        if !link
            .between
            .iter()
            .any(|end| group(end) == group(&route.node))
        {
            let [a, b] = &link.between;
            let message = format!(
                "the link {:?} joins {a:?} and {b:?}; it is not at {:?}",
                route.via, route.node
            );
            c.problem(&via, message);
        }
    }
}
