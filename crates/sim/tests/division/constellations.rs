//! Divided worlds with constellations, whose delays change.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anabranch_orbit::{Constellation, Edge, Graph, OrbitConfig, Place, Shells, Tree};
use anabranch_sim::routing::RoutingKind;
use anabranch_sim::{
    BuildError, ConstellationConfig, DirectionConfig, DropTail, GroundAccess, GroundPolicy,
    Handover, LinkConfig, MovingRoutes, NodeId, Outage, QueueLimit, Routing, Seed, Topology,
};
use anabranch_transport::Nanos;

use super::{Order, attach, divided, owners, whole};
use crate::common::{MS, SECOND};

/// A topology with a constellation whose stations change to other satellites, and with one
/// inter-satellite link that fails; the nodes at the ends of its links; and its stations.
fn sky(seed: u64) -> (Topology, Vec<[NodeId; 2]>, Vec<NodeId>) {
    let mut rng = Seed::new(seed, 0).stream("sky");
    let mut config = OrbitConfig::default();
    config.altitude = 600.0;
    (config.planes, config.satellites) = (9, 11);
    config.min_elevation = 5.0;
    let shells = Shells::new(vec![Constellation::walker(&config).unwrap()]);
    let mut topology = Topology::new();
    let satellites: Vec<NodeId> = (0..shells.len())
        .map(|it| topology.add_node(format!("s{it}")).unwrap())
        .collect();
    let stations: Vec<(NodeId, Place)> = (0..8)
        .map(|it| {
            let node = topology.add_node(format!("g{it}")).unwrap();
            let (north, east) = (rng.below(90) as i64 - 45, rng.below(360) as i64 - 180);
            (node, format!("{north},{east}").parse().unwrap())
        })
        .collect();
    let hosts: Vec<NodeId> = stations.iter().map(|(node, _)| *node).collect();
    let isls = shells.isls();
    let policy = [
        GroundPolicy::Any,
        GroundPolicy::Nearest,
        GroundPolicy::Longest,
    ][seed as usize % 3];
    let (shared, handover) = match policy {
        GroundPolicy::Any => (false, Handover::Hold),
        _ => (
            rng.below(2) == 0,
            [Handover::Hold, Handover::Drop][rng.below(2) as usize],
        ),
    };
    let outages = [Outage {
        from: 700 * MS,
        until: 2_100 * MS,
    }];
    let mut ends: Vec<[NodeId; 2]> = isls
        .iter()
        .map(|[one, other]| [satellites[*one], satellites[*other]])
        .collect();
    ends.extend(stations.iter().map(|(node, _)| [*node; 2]));
    ends.extend(satellites.iter().map(|node| [*node; 2]));
    let queue = || DropTail::new(QueueLimit::Packets(30)).unwrap();
    let config = ConstellationConfig {
        name: "sky".into(),
        shells,
        satellites,
        stations,
        start: seed * 100 * SECOND,
        access: GroundAccess {
            policy,
            times: None,
            interfaces: 1,
            up: Vec::new(),
            shared,
            down: Vec::new(),
            gap: if policy == GroundPolicy::Any {
                0
            } else {
                300 * MS
            },
            handover,
        },
    };
    let left = std::cell::Cell::new(3);
    topology
        .add_constellation(config, |_| {
            left.set(left.get().max(1) - 1);
            let direction = DirectionConfig::new(2_000_000, 0).with_queue(queue());
            Ok::<_, BuildError>(match left.get() {
                0 => direction,
                _ => direction.with_outages(outages),
            })
        })
        .unwrap();
    topology.set_routing(Routing::FollowsLinks { after: 0 });
    topology.set_moving_routes(MovingRoutes {
        interval: 500 * MS,
        ..MovingRoutes::default()
    });
    (topology, ends, hosts)
}

#[test]
fn constellations_are_the_same_in_any_division() {
    let slices = [SECOND, 4 * SECOND];
    let mut crossings = 0;
    for seed in 0..9 {
        let build = || {
            let (topology, _, hosts) = sky(seed);
            attach(topology, &hosts, seed, 3 * SECOND)
        };
        let (topology, ends, _) = sky(seed);
        let one = whole(&build, &ends, &slices);
        assert!(
            one.heard.iter().map(Vec::len).sum::<usize>() > 2_000,
            "seed {seed}"
        );
        let mut rng = Seed::new(seed, 2).stream("owners");
        for parts in [2, 7] {
            let owners = owners(&topology, parts, &mut rng);
            let (several, crossed) =
                divided(&build, &ends, &owners, &slices, Order::Forward).unwrap();
            one.compare(&several, &format!("seed {seed}, {parts} parts"));
            crossings += crossed;
        }
    }
    assert!(crossings > 10_000, "{crossings}");
}

/// Routing by least delay that counts the trees it computes.
struct Counting(Rc<Cell<usize>>);

impl RoutingKind for Counting {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        self.0.set(self.0.get() + 1);
        tree.find(graph, destination, |edge| edge.delay, arrives);
    }
}

/// The parts compute the trees of an interval together: with n parts, each computes 1/n of them,
/// rounded up or down to whole trees. Each part also computes a tree for each destination of its
/// packets when it first sends to it.
#[test]
fn parts_divide_the_trees_of_an_interval() {
    const UNTIL: Nanos = 3 * SECOND;
    let counts: RefCell<Vec<Rc<Cell<usize>>>> = RefCell::default();
    let build = || {
        let (mut topology, _, hosts) = sky(0);
        let count = Rc::new(Cell::new(0));
        counts.borrow_mut().push(Rc::clone(&count));
        topology.set_moving_routes(MovingRoutes {
            kind: Box::new(move || Box::new(Counting(Rc::clone(&count)))),
            interval: 50 * MS,
            relays: false,
        });
        attach(topology, &hosts, 1, UNTIL)
    };
    let (topology, ends, hosts) = sky(0);
    let one = whole(&build, &ends, &[2 * UNTIL]);
    let all = counts.take()[0].get();
    let changes = all / hosts.len();
    assert!(changes > 55, "{all} trees to {} hosts", hosts.len());
    let mut rng = Seed::new(0, 2).stream("owners");
    for parts in [2, 3, 7] {
        let owners = owners(&topology, parts, &mut rng);
        let (several, _) = divided(&build, &ends, &owners, &[2 * UNTIL], Order::Forward).unwrap();
        one.compare(&several, &format!("{parts} parts"));
        let (trees, first) = (hosts.len(), 2 * hosts.len());
        let [least, most] = [trees / parts as usize, trees.div_ceil(parts as usize)];
        for count in counts.take() {
            let count = count.get();
            assert!(
                count + first >= changes * least && count <= changes * most + first,
                "{count} of {all} trees in one of {parts} parts"
            );
        }
    }
}

/// Access of stations to all satellites in reach, without handovers.
fn any() -> GroundAccess {
    GroundAccess {
        policy: GroundPolicy::Any,
        times: None,
        interfaces: 1,
        up: Vec::new(),
        shared: false,
        down: Vec::new(),
        gap: 0,
        handover: Handover::Hold,
    }
}

/// A topology with a shell at 570 km and 70 degrees and one station, whose links take no
/// transmission time; the shell; the nodes of the satellites and of the station; and the nodes at
/// the ends of the links.
fn steep(
    planes: u32,
    satellites: u32,
    start: Nanos,
) -> (Topology, Shells, [Vec<NodeId>; 2], Vec<[NodeId; 2]>) {
    let mut config = OrbitConfig::default();
    (config.altitude, config.inclination) = (570.0, 70.0);
    (config.planes, config.satellites) = (planes, satellites);
    let shells = Shells::new(vec![Constellation::walker(&config).unwrap()]);
    let mut topology = Topology::new();
    let satellites: Vec<NodeId> = (0..shells.len())
        .map(|it| topology.add_node(format!("s{it}")).unwrap())
        .collect();
    let station = topology.add_node("station").unwrap();
    let isls = shells.isls().into_iter();
    let mut ends: Vec<_> = isls.map(|ends| ends.map(|it| satellites[it])).collect();
    ends.push([station; 2]);
    ends.extend(satellites.iter().map(|node| [*node; 2]));
    let config = ConstellationConfig {
        name: "sky".into(),
        shells: shells.clone(),
        satellites: satellites.clone(),
        stations: vec![(station, "60,10".parse().unwrap())],
        start,
        access: any(),
    };
    let instant = |_| Ok::<_, BuildError>(DirectionConfig::instant(0));
    topology.add_constellation(config, instant).unwrap();
    (topology, shells, [satellites, vec![station]], ends)
}

/// Two satellites approach each other, so the delay between them falls from window to window. It
/// bounds the windows, because the satellites are nearer to each other than to the ground.
#[test]
fn windows_follow_a_delay_that_falls() {
    const START: Nanos = 1_200 * SECOND;
    const UNTIL: Nanos = 3 * SECOND;
    let slices = [UNTIL / 2, 2 * UNTIL];
    let (topology, shells, [satellites, _], ends) = steep(36, 20, START);
    let lengths = |at: Nanos| {
        let mut positions = Vec::new();
        shells.positions((START + at) as f64 / SECOND as f64, &mut positions);
        let isls = shells.isls().into_iter().filter(|ends| ends.contains(&0));
        isls.map(|ends| (shells.isl_length(ends, &positions).unwrap(), ends))
            .collect::<Vec<_>>()
    };
    let shortest = |all: Vec<(f64, [usize; 2])>| all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (before, pair) = shortest(lengths(0)).unwrap();
    let (after, same) = shortest(lengths(UNTIL)).unwrap();
    assert!(
        pair == same && before < 560.0 && after < before - 0.5,
        "{before} {after}"
    );
    let hosts = pair.map(|it| satellites[it]);
    let build = || {
        let (topology, ..) = steep(36, 20, START);
        attach(topology, &hosts, 1, UNTIL)
    };
    let one = whole(&build, &ends, &slices);
    let owners: Vec<u32> = topology
        .nodes()
        .map(|node| u32::from(node == satellites[0]))
        .collect();
    let (both, crossed) = divided(&build, &ends, &owners, &slices, Order::Forward).unwrap();
    one.compare(&both, "two satellites");
    assert!(crossed > 2_000, "{crossed}");
}

/// A constellation bounds the windows only if its nodes belong to different parts.
#[test]
fn a_constellation_within_one_part_does_not_bound_the_windows() {
    let window = |apart: bool| {
        let ends = [0, 1].map(|part| {
            let (mut topology, _, [satellites, stations], _) = steep(2, 2, 0);
            let server = topology.add_node("server").unwrap();
            let link = LinkConfig {
                name: "terrestrial".into(),
                between: [stations[0], server],
                forward: DirectionConfig::instant(15 * MS),
                backward: DirectionConfig::instant(15 * MS),
            };
            topology.add_link(link).unwrap();
            let nodes = topology.nodes();
            let owners: Vec<u32> = nodes
                .map(|node| u32::from(node == server || apart && node == satellites[0]))
                .collect();
            let (mut world, _) = attach(topology, &[], 1, SECOND);
            world.divide(part, &owners).unwrap();
            world.run_window(0, SECOND).unwrap()
        });
        assert_eq!(ends[0], ends[1], "all parts have the same windows");
        ends[0]
    };
    assert_eq!(window(false), 15 * MS);
    // Delay over 570 km, the height of the satellites above the ground.
    assert_eq!(window(true), 1_901_315);
}
