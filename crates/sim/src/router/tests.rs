//! Tests of routes over the fewest links.

use super::*;
use crate::ids::{AddressFamily, LinkId};
use crate::link::{DirectionConfig, LinkConfig, Outage};
use crate::topology::Routing;

fn connect(topology: &mut Topology, name: &str, between: [NodeId; 2]) -> LinkId {
    let link = LinkConfig {
        name: name.into(),
        between,
        forward: DirectionConfig::instant(1),
        backward: DirectionConfig::instant(1),
    };
    topology.add_link(link).unwrap()
}

fn nodes<const N: usize>(topology: &mut Topology, names: [&str; N]) -> [NodeId; N] {
    names.map(|name| topology.add_node(name).unwrap())
}

#[test]
fn two_addresses_are_two_paths() {
    // a = b by two direct links: packets to an address of b use the link of that address, whatever
    // their source address is.
    let mut topology = Topology::new();
    let [a, b] = nodes(&mut topology, ["a", "b"]);
    let upper = connect(&mut topology, "upper", [a, b]);
    let lower = connect(&mut topology, "lower", [a, b]);
    let mut routes = Router::new(&topology);
    let source = topology.address(a, upper, AddressFamily::V4).unwrap();
    for link in [upper, lower] {
        let target = topology.interface(b, link).unwrap();
        let via = topology.interface(a, link).unwrap();
        let table = routes.table(&topology, target);
        assert_eq!(routes.hop(a, table), Hop::Via(via));
        assert_eq!(routes.hop(b, table), Hop::Here);
        assert_eq!(routes.first_hop(&topology, a, source, table), Some(via));
    }
}

#[test]
fn the_source_address_names_the_interface_where_that_is_no_detour_back() {
    // a - r1 - b and a - r2 - r3 - b: the destination address of b is at the link to r1, and no
    // path through r3 arrives at that link. Router x joins the two routes to c, so both arrive at
    // the link of c's address.
    let mut topology = Topology::new();
    let [a, r1, r2, r3, x, c] = nodes(&mut topology, ["a", "r1", "r2", "r3", "x", "c"]);
    let a_r1 = connect(&mut topology, "a-r1", [a, r1]);
    let a_r2 = connect(&mut topology, "a-r2", [a, r2]);
    connect(&mut topology, "r1-x", [r1, x]);
    connect(&mut topology, "r2-r3", [r2, r3]);
    connect(&mut topology, "r3-x", [r3, x]);
    let x_c = connect(&mut topology, "x-c", [x, c]);
    let stub = topology.add_node("stub").unwrap();
    let a_stub = connect(&mut topology, "a-stub", [a, stub]);
    let target = topology.interface(c, x_c).unwrap();
    let mut routes = Router::new(&topology);
    let table = routes.table(&topology, target);
    let hop = |link| {
        let source = topology.address(a, link, AddressFamily::V6).unwrap();
        routes.first_hop(&topology, a, source, table)
    };
    assert_eq!(hop(a_r1), Some(topology.interface(a, a_r1).unwrap()));
    assert_eq!(hop(a_r2), Some(topology.interface(a, a_r2).unwrap()));
    // The only route of the stub leads back through a.
    assert_eq!(hop(a_stub), Some(topology.interface(a, a_r1).unwrap()));
}

#[test]
fn nodes_behind_the_destination_reach_each_of_its_addresses() {
    // x - b - n: x reaches the address of b on the far link through b itself.
    let mut topology = Topology::new();
    let [x, b, n] = nodes(&mut topology, ["x", "b", "n"]);
    let near = connect(&mut topology, "near", [x, b]);
    let far = connect(&mut topology, "far", [b, n]);
    let mut routes = Router::new(&topology);
    let target = topology.interface(b, far).unwrap();
    let via = topology.interface(x, near).unwrap();
    let table = routes.table(&topology, target);
    assert_eq!(routes.hop(x, table), Hop::Via(via));
}

#[test]
fn islands_are_unreachable_and_given_routes_win() {
    let mut topology = Topology::new();
    let [a, b, c, island] = nodes(&mut topology, ["a", "b", "c", "island"]);
    connect(&mut topology, "a-b", [a, b]);
    let b_c = connect(&mut topology, "b-c", [b, c]);
    let a_c = connect(&mut topology, "a-c", [a, c]);
    let destination = topology.address(c, b_c, AddressFamily::V4).unwrap();
    topology.add_route(a, destination, a_c).unwrap();
    let mut routes = Router::new(&topology);
    let target = topology.owner(destination).unwrap();
    let via = topology.interface(a, a_c).unwrap();
    let table = routes.table(&topology, target);
    assert_eq!(routes.hop(a, table), Hop::Via(via));
    assert_eq!(routes.hop(island, table), Hop::Nowhere);
}

/// A direction that comes up and goes down again at one instant is down, whatever the order in
/// which its outages were given.
#[test]
fn a_link_that_goes_down_at_once_again_stays_down() {
    let mut topology = Topology::new();
    let [a, b] = nodes(&mut topology, ["a", "b"]);
    let outages = [(10, 20), (20, 30)].map(|(from, until)| Outage { from, until });
    let link = LinkConfig {
        name: "link".into(),
        between: [a, b],
        forward: DirectionConfig::instant(1).with_outages(outages),
        backward: DirectionConfig::instant(1),
    };
    topology.add_link(link).unwrap();
    topology.routing = Routing::FollowsLinks { after: 0 };
    let mut router = Router::new(&topology);
    let down = |router: &Router| match &router.made_by {
        MadeBy::FewestLinks(made_by) => made_by.is_down(0),
        MadeBy::Moving(..) => unreachable!("nothing moves"),
    };
    for (now, changes, is_down) in [
        (9, false, false),
        (10, true, true),
        (20, false, true),
        (29, false, true),
        (30, true, false),
    ] {
        assert_eq!(router.follow(&topology, now), changes, "at {now}");
        assert_eq!(down(&router), is_down, "at {now}");
    }
    assert_eq!(router.next_change(), Nanos::MAX);
}

/// While the link of an address is down, the address is not reached through another address of the
/// same node.
#[test]
fn an_address_whose_link_is_down_is_not_reached_by_another() {
    let mut topology = Topology::new();
    let [a, b] = nodes(&mut topology, ["a", "b"]);
    let outage = Outage {
        from: 10,
        until: 20,
    };
    let upper = LinkConfig {
        name: "upper".into(),
        between: [a, b],
        forward: DirectionConfig::instant(1).with_outages([outage]),
        backward: DirectionConfig::instant(1),
    };
    let upper = topology.add_link(upper).unwrap();
    let lower = connect(&mut topology, "lower", [a, b]);
    topology.routing = Routing::FollowsLinks { after: 0 };
    let mut router = Router::new(&topology);
    assert!(router.follow(&topology, 10));
    for link in [upper, lower] {
        let target = topology.interface(b, link).unwrap();
        let via = topology.interface(a, link).unwrap();
        let table = router.table(&topology, target);
        assert_eq!(router.hop(a, table), Hop::Via(via));
    }
}

/// A ring of 2,000 nodes has no tables before a packet is sent, and then one table per destination
/// address.
#[test]
fn tables_are_made_when_they_are_asked_for() {
    let mut topology = Topology::new();
    let all: Vec<NodeId> = (0..2000)
        .map(|node| topology.add_node(format!("n{node}")).unwrap())
        .collect();
    for (index, &node) in all.iter().enumerate() {
        let next = all[(index + 1) % all.len()];
        connect(&mut topology, &format!("l{index}"), [node, next]);
    }
    let mut router = Router::new(&topology);
    assert!(router.next.is_empty());
    let target = topology.interfaces_of(all[1000])[0];
    let table = router.table(&topology, target);
    assert_eq!(router.table(&topology, target), table);
    assert_eq!(router.next.len(), 2000);
    assert_eq!(router.hop(all[1000], table), Hop::Here);
    let via = topology.interfaces_of(all[999]);
    assert_eq!(router.hop(all[999], table), Hop::Via(via[1]));
}
