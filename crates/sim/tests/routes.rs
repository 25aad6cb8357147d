//! Tests of routes that follow the state of links.

use crate::common;

use anabranch_sim::{
    AddressFamily, AgentId, Attachment, DirectionConfig, DropReason, LinkConfig, LinkDirection,
    LinkId, NodeId, Outage, Routing, Seed, Topology, World,
};
use anabranch_transport::{Nanos, Path};
use common::{MS, PORT, PROTOCOL, SECOND, Sender, Sink, every};

/// `a - left = right - b` with two satellites between the routers; each satellite is a node with a
/// link to either router.
struct Satellites {
    topology: Topology,
    a: NodeId,
    b: NodeId,
    /// Links of the first and of the second satellite: for each, the link from `left` and the link
    /// to `right`.
    links: [[LinkId; 2]; 2],
}

/// An outage of one direction of one of the four links: satellite, link, direction, start, end.
type Down = (usize, usize, LinkDirection, Nanos, Nanos);

fn satellites(down: &[Down]) -> Satellites {
    let mut topology = Topology::new();
    let names = ["a", "left", "one", "two", "right", "b"];
    let [a, left, one, two, right, b] = names.map(|name| topology.add_node(name).unwrap());
    let mut link = |name: &str, between, satellite| {
        let direction = |way| {
            let spans = down.iter().filter(|&&(number, link, direction, ..)| {
                satellite == Some((number, link)) && direction == way
            });
            let spans = spans.map(|&(.., from, until)| Outage { from, until });
            DirectionConfig::instant(MS).with_outages(spans)
        };
        let config = LinkConfig {
            name: name.into(),
            between,
            forward: direction(LinkDirection::Forward),
            backward: direction(LinkDirection::Backward),
        };
        topology.add_link(config).unwrap()
    };
    link("a-left", [a, left], None);
    let links = [
        [
            link("up one", [left, one], Some((0, 0))),
            link("down one", [one, right], Some((0, 1))),
        ],
        [
            link("up two", [left, two], Some((1, 0))),
            link("down two", [two, right], Some((1, 1))),
        ],
    ];
    link("right-b", [right, b], None);
    Satellites {
        topology,
        a,
        b,
        links,
    }
}

/// Sends one packet every 10 ms for a second in each direction. Returns the world after the run,
/// the receivers at `a` and `b`, and the links.
fn run(satellites: Satellites) -> (World, [AgentId; 2], [[LinkId; 2]; 2]) {
    let Satellites {
        topology,
        a,
        b,
        links,
    } = satellites;
    let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let path = Path::new(address(a), address(b));
    let mut world = World::new(topology, Seed::new(1, 0)).unwrap();
    let listeners = [a, b].map(|node| {
        let attachment = Attachment::new(node, PROTOCOL, PORT);
        world.attach(attachment, Sink::default()).unwrap()
    });
    for (node, path) in [(a, path), (b, path.reversed())] {
        let mut attachment = Attachment::new(node, PROTOCOL, PORT);
        attachment.bindings.clear();
        let sender = Sender::new(path, every(10 * MS, 100, 80));
        world.attach(attachment, sender).unwrap();
    }
    world.run_until(2 * SECOND).unwrap();
    world.packet_counts().check().unwrap();
    (world, listeners, links)
}

fn arrived(world: &World, listeners: [AgentId; 2]) -> [usize; 2] {
    listeners.map(|id| world.agent::<Sink>(id).unwrap().arrivals.len())
}

/// Numbers of packets that the first link of each satellite delivered, forward and backward.
fn carried(world: &World, links: [[LinkId; 2]; 2]) -> [[u64; 2]; 2] {
    links.map(|[up, _]| {
        LinkDirection::BOTH.map(|way| world.link_stats(up, way).unwrap().delivered.packets)
    })
}

#[test]
fn the_first_of_two_equal_ways_is_used() {
    let (world, listeners, links) = run(satellites(&[]));
    assert_eq!(arrived(&world, listeners), [100, 100]);
    assert_eq!(carried(&world, links), [[100, 100], [0, 0]]);
}

/// The first satellite is down from 300 to 600 ms, so 30 packets in each direction use the second.
/// A packet that is on its first hop when the second hop goes down is forwarded by a router that
/// knows the new route, so none is lost.
#[test]
fn a_second_satellite_takes_over_and_hands_back() {
    let gone = |link| LinkDirection::BOTH.map(|way| (0, link, way, 300 * MS, 600 * MS));
    let down = [gone(0), gone(1)].concat();
    let (world, listeners, links) = run(satellites(&down));
    assert_eq!(arrived(&world, listeners), [100, 100]);
    assert_eq!(carried(&world, links), [[70, 70], [30, 30]]);
    assert_eq!(world.packet_counts().dropped.total(), 0);
}

/// Only the return direction through the first satellite is down, but its link is then used in
/// neither direction.
#[test]
fn a_link_that_receives_nothing_is_not_sent_on() {
    let down = [(0, 1, LinkDirection::Backward, 0, Nanos::MAX)];
    let (world, listeners, links) = run(satellites(&down));
    assert_eq!(arrived(&world, listeners), [100, 100]);
    assert_eq!(carried(&world, links), [[0, 0], [100, 100]]);
}

#[test]
fn routes_may_be_late_or_static() {
    let down: Vec<Down> = LinkDirection::BOTH
        .map(|way| (0, 1, way, 300 * MS, 600 * MS))
        .to_vec();
    let mut late = satellites(&down);
    late.topology
        .set_routing(Routing::FollowsLinks { after: 50 * MS });
    let (world, listeners, _) = run(late);
    // Five packets in each direction reach the link before the outage is known. At 650 ms the first
    // route has been available again for 50 ms.
    assert_eq!(arrived(&world, listeners), [95, 95]);
    assert_eq!(
        world.packet_counts().dropped.count(DropReason::LinkDown),
        10
    );
    let mut fixed = satellites(&down);
    fixed.topology.set_routing(Routing::Static);
    let (world, listeners, links) = run(fixed);
    assert_eq!(arrived(&world, listeners), [70, 70]);
    assert_eq!(carried(&world, links)[1], [0, 0]);
}

/// If there is no alternative route, packets are still sent to the link that is down, and are
/// dropped there.
#[test]
fn the_only_way_is_kept() {
    let down: Vec<Down> = (0..2)
        .flat_map(|satellite| {
            LinkDirection::BOTH.map(|way| (satellite, 0, way, 300 * MS, 600 * MS))
        })
        .collect();
    let (world, listeners, _) = run(satellites(&down));
    assert_eq!(arrived(&world, listeners), [70, 70]);
    assert_eq!(
        world.packet_counts().dropped.count(DropReason::LinkDown),
        60
    );
    assert_eq!(world.packet_counts().dropped.count(DropReason::NoRoute), 0);
}

/// Two addresses are two paths: when the link of one address is down, packets to this address are
/// not rerouted over the other link.
#[test]
fn an_address_goes_down_with_its_link() {
    let mut topology = Topology::new();
    let [a, b] = ["a", "b"].map(|name| topology.add_node(name).unwrap());
    for (name, outages) in [("upper", Some((300 * MS, 600 * MS))), ("lower", None)] {
        let outages = outages.map(|(from, until)| Outage { from, until });
        let config = LinkConfig {
            name: name.into(),
            between: [a, b],
            forward: DirectionConfig::instant(MS).with_outages(outages),
            backward: DirectionConfig::instant(MS),
        };
        topology.add_link(config).unwrap();
    }
    let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let path = Path::new(address(a), address(b));
    let mut world = World::new(topology, Seed::new(1, 0)).unwrap();
    let sink = world
        .attach(Attachment::new(b, PROTOCOL, PORT), Sink::default())
        .unwrap();
    let sender = Sender::new(path, every(10 * MS, 100, 80));
    world
        .attach(Attachment::new(a, PROTOCOL, PORT), sender)
        .unwrap();
    world.run_until(2 * SECOND).unwrap();
    assert_eq!(world.agent::<Sink>(sink).unwrap().arrivals.len(), 70);
    assert_eq!(
        world.packet_counts().dropped.count(DropReason::LinkDown),
        30
    );
}

/// A static route stays in use when its link goes down.
#[test]
fn a_given_route_follows_nothing() {
    let down: Vec<Down> = LinkDirection::BOTH
        .map(|way| (0, 0, way, 300 * MS, 600 * MS))
        .to_vec();
    let mut satellites = satellites(&down);
    let left = satellites.topology.node("left").unwrap();
    let target = satellites
        .topology
        .addresses(satellites.b, AddressFamily::V4)
        .next()
        .unwrap();
    let via = satellites.links[0][0];
    satellites.topology.add_route(left, target, via).unwrap();
    let (world, listeners, _) = run(satellites);
    assert_eq!(arrived(&world, listeners), [100, 70]);
}
