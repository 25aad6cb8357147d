//! Divided worlds: however a world is divided into parts, the results equal those of the undivided
//! world.

use std::collections::VecDeque;

use anabranch_sim::loss::Bernoulli;
use anabranch_sim::propagation::{Jitter, Spread, TimeVarying};
use anabranch_sim::{
    AddressFamily, Agent, AgentId, Attachment, BuildError, CoDel, CoDelConfig, DirectionConfig,
    DropTail, Impairments, LinkConfig, LinkDirection, LinkStats, NodeId, Outage, PacketCounts,
    PlacedLoss, Probability, QueueLimit, Reordering, Rng, RouteTables, Routing, RunError, Seed,
    StepFunction, Topology, WorkCounts, World,
};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{BufMut, Bytes, BytesMut};

use crate::common::{MS, PORT, PROTOCOL, SECOND};

mod constellations;

/// An arrival: its time, path and ECN field, and the number and size of the packet.
type Heard = (Nanos, Path, Ecn, u64, usize);

/// A host that sends packets to other hosts, answers some of the packets that arrive, and records
/// all arrivals. `number` is a checksum of the arrivals, which depends on their order.
struct Host {
    peers: Vec<Path>,
    rng: Rng,
    next: Nanos,
    until: Nanos,
    queue: VecDeque<(Path, u64)>,
    number: u64,
    heard: Vec<Heard>,
}

impl Host {
    fn new(peers: Vec<Path>, mut rng: Rng, until: Nanos) -> Self {
        Self {
            next: rng.below(20) * MS,
            peers,
            rng,
            until,
            queue: VecDeque::new(),
            number: 0,
            heard: Vec::new(),
        }
    }
}

impl Agent for Host {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let mut word = [0; 8];
        word.copy_from_slice(&datagram[4..12]);
        let number = u64::from_be_bytes(word);
        self.heard.push((now, path, ecn, number, datagram.len()));
        // The number that is sent next depends on all numbers received so far and on their order,
        // so that a packet in the wrong order changes all later packets.
        self.number = self.number.wrapping_mul(31).wrapping_add(number ^ now);
        if self.rng.below(3) > 0 {
            self.queue
                .push_back((Path::new(path.local, path.remote), self.number));
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if now < self.next || now >= self.until || self.peers.is_empty() {
            return;
        }
        let place = self.rng.below(self.peers.len() as u64) as usize;
        for _ in 0..=self.rng.below(4) {
            self.number += 1;
            self.queue.push_back((self.peers[place], self.number));
        }
        // Times are whole milliseconds, so that many events happen at the same instants.
        self.next = now + (1 + self.rng.below(8)) * MS;
    }

    fn poll_transmit(&mut self, _now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let (path, number) = self.queue.pop_front()?;
        let len = if number % 3 == 0 { 105 } else { 605 };
        out.put_u16(PORT);
        out.put_u16(PORT);
        out.put_u64(number);
        out.put_bytes(0x5a, len - 12);
        Some(Transmit {
            path,
            len,
            ecn: Ecn::Ect0,
            may_fragment: false,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        (self.next < self.until).then_some(self.next)
    }
}

/// All observable results of a world.
#[derive(Debug, PartialEq)]
struct Seen {
    heard: Vec<Vec<Heard>>,
    links: Vec<[LinkStats; 2]>,
    progress: WorkCounts,
    ledger: PacketCounts,
}

impl Seen {
    fn compare(&self, other: &Self, case: &str) {
        for (host, (one, two)) in self.heard.iter().zip(&other.heard).enumerate() {
            if let Some(at) = one.iter().zip(two).position(|(one, two)| one != two) {
                panic!("{case}: host {host}: {:?} {:?}", one[at], two[at]);
            }
            assert_eq!(one.len(), two.len(), "{case}: host {host}");
        }
        assert_eq!(self.links, other.links, "{case}");
        assert_eq!(
            (self.progress, self.ledger),
            (other.progress, other.ledger),
            "{case}"
        );
    }
}

/// Function that builds a world. Each call returns an identical world, with its agents and their
/// nodes.
type Build<'a> = &'a dyn Fn() -> (World, Vec<(NodeId, AgentId)>);

fn both(
    world: &World,
    owners: Option<(&[u32], u32)>,
    nodes: &[[NodeId; 2]],
) -> Vec<Option<LinkStats>> {
    let links = world.topology().links();
    let all = links.zip(nodes).flat_map(|(link, ends)| {
        LinkDirection::BOTH.map(|direction| {
            let own = owners
                .is_none_or(|(owners, part)| owners[ends[direction as usize].index()] == part);
            own.then(|| world.link_stats(link, direction).unwrap())
        })
    });
    all.collect()
}

/// Runs an undivided world to each of the times `slices`.
fn whole(build: Build<'_>, ends: &[[NodeId; 2]], slices: &[Nanos]) -> Seen {
    let (mut world, agents) = build();
    for slice in slices {
        world.run_until(*slice).unwrap();
    }
    seen(vec![(world, agents)], ends, None)
}

fn seen(
    worlds: Vec<(World, Vec<(NodeId, AgentId)>)>,
    ends: &[[NodeId; 2]],
    owners: Option<&[u32]>,
) -> Seen {
    let mut links = vec![None; ends.len() * 2];
    let mut progress = WorkCounts::default();
    let mut ledger = PacketCounts::default();
    let agents = worlds[0].1.len();
    let mut heard = vec![Vec::new(); agents];
    for (part, (world, agents)) in (0..).zip(&worlds) {
        let owners = owners.map(|owners| (owners, part));
        for (known, own) in links.iter_mut().zip(both(world, owners, ends)) {
            *known = known.or(own);
        }
        progress.add(world.progress());
        ledger.add(&world.packet_counts());
        for (heard, (node, id)) in heard.iter_mut().zip(agents) {
            let host: &Host = world.agent(*id).unwrap();
            match owners {
                Some((owners, part)) if owners[node.index()] != part => {
                    assert!(host.heard.is_empty(), "it belongs to another part");
                }
                _ => heard.clone_from(&host.heard),
            }
        }
    }
    ledger.check().unwrap();
    let links: Vec<LinkStats> = links.into_iter().flatten().collect();
    Seen {
        heard,
        links: links.chunks(2).map(|pair| [pair[0], pair[1]]).collect(),
        progress,
        ledger,
    }
}

/// Order in which the parts run a window, and in which their packets are accepted.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Forward,
    Reverse,
    /// Packets from other parts are accepted in reverse order, so that packets that arrive together
    /// over one link change places. The results then depend on the division.
    Scrambled,
}

/// Lets all parts compute their shares of the routes, if these change at `begin`.
fn share_routes(worlds: &mut [(World, Vec<(NodeId, AgentId)>)], begin: Nanos) {
    let due = worlds[0].0.shares_routes(begin);
    let mut all = worlds.iter().map(|(world, _)| world.shares_routes(begin));
    assert!(all.all(|it| it == due), "the parts disagree");
    if !due {
        return;
    }
    let mut targets = Vec::new();
    for (world, _) in worlds.iter_mut() {
        // The targets are in another order for each division.
        targets.splice(0..0, world.take_targets());
    }
    let mut tables = vec![RouteTables::default(); worlds.len()];
    for ((world, _), tables) in worlds.iter_mut().zip(&mut tables) {
        world.compute_routes(begin, targets.clone(), tables);
    }
    for (part, (world, _)) in worlds.iter_mut().enumerate() {
        let others = tables.iter().enumerate().filter(|(it, _)| *it != part);
        others.for_each(|(_, tables)| world.accept_routes(tables));
    }
}

/// Runs the parts of a divided world one after the other, window by window. Returns the results,
/// and the number of packets that crossed between parts.
fn divided(
    build: Build<'_>,
    ends: &[[NodeId; 2]],
    owners: &[u32],
    slices: &[Nanos],
    order: Order,
) -> Result<(Seen, u64), RunError> {
    let parts = owners.iter().max().map_or(1, |last| last + 1);
    let mut worlds: Vec<_> = (0..parts)
        .map(|part| {
            let (mut world, agents) = build();
            world.divide(part, owners).unwrap();
            (world, agents)
        })
        .collect();
    let mut crossed = 0;
    for &slice in slices {
        loop {
            let mut leaving: Vec<Vec<_>> = worlds
                .iter_mut()
                .map(|(world, _)| world.take_crossings())
                .collect();
            if order == Order::Reverse {
                leaving.reverse();
            }
            let mut leaving: Vec<_> = leaving.into_iter().flatten().collect();
            if order == Order::Scrambled {
                leaving.reverse();
            }
            crossed += leaving.len() as u64;
            for crossing in leaving {
                worlds[crossing.part()].0.accept(crossing)?;
            }
            let next = worlds
                .iter()
                .filter_map(|(world, _)| world.next_event())
                .min();
            let Some(begin) = next.filter(|next| *next <= slice) else {
                break;
            };
            share_routes(&mut worlds, begin);
            let mut turns: Vec<usize> = (0..worlds.len()).collect();
            if order == Order::Reverse {
                turns.reverse();
            }
            let mut windows = Vec::new();
            for part in turns {
                windows.push(worlds[part].0.run_window(begin, slice + 1)?);
            }
            assert!(windows.iter().all(|end| *end == windows[0] && *end > begin));
        }
        for (world, _) in &mut worlds {
            world.end_windows(slice);
        }
    }
    Ok((seen(worlds, ends, Some(owners)), crossed))
}

/// Assigns nodes to parts at random, but inseparable nodes to the same part.
fn owners(topology: &Topology, parts: u32, rng: &mut Rng) -> Vec<u32> {
    let mut owners: Vec<u32> = topology
        .nodes()
        .map(|_| rng.below(parts.into()) as u32)
        .collect();
    let pairs = topology.inseparable();
    while let Some([one, other]) = pairs
        .iter()
        .find(|[a, b]| owners[a.index()] != owners[b.index()])
    {
        let (known, new) = (owners[other.index()], owners[one.index()]);
        owners
            .iter_mut()
            .filter(|it| **it == known)
            .for_each(|it| *it = new);
    }
    owners
}

fn direction(rng: &mut Rng) -> DirectionConfig {
    let delay = [0, 1, 2, 5][rng.below(4) as usize] * MS;
    let mut config = match rng.below(4) {
        0 => DirectionConfig::instant(delay),
        // 125 bytes take one millisecond, so that many packets arrive at the same time.
        _ => DirectionConfig::new(1_000_000, delay),
    };
    let limit = QueueLimit::Packets(2 + rng.below(20) as usize);
    config = match rng.below(3) {
        0 => config,
        1 => config.with_queue(DropTail::new(limit).unwrap()),
        _ if config.rate.is_some() => config.with_queue(
            CoDel::new(CoDelConfig {
                ecn: true,
                ..CoDelConfig::default()
            })
            .unwrap(),
        ),
        _ => config,
    };
    match rng.below(8) {
        0 => config = config.with_loss(PlacedLoss::before_queue(Bernoulli::new(0.05).unwrap())),
        1 => config = config.with_loss(PlacedLoss::after_queue(Bernoulli::new(0.05).unwrap())),
        2 => {
            let steps =
                StepFunction::steps(3 * MS, vec![(100 * MS, MS), (200 * MS, 6 * MS)]).unwrap();
            let varying = Jitter::new(TimeVarying::new(steps), Spread::Uniform(3 * MS));
            config = config.with_propagation(varying, rng.below(2) == 0);
        }
        3 => {
            config.impairments = Impairments {
                reordering: Reordering {
                    probability: Probability::new(0.1).unwrap(),
                    up_to: 4 * MS,
                },
                duplication: Probability::new(0.1).unwrap(),
                corruption: Probability::default(),
            }
        }
        4 => {
            let from = (50 + rng.below(200)) * MS;
            let until = from + (1 + rng.below(100)) * MS;
            config = config.with_outages([Outage { from, until }]);
        }
        _ => {}
    }
    config
}

/// A random topology, and the nodes at the ends of each of its links.
fn network(seed: u64) -> (Topology, Vec<[NodeId; 2]>) {
    let mut rng = Seed::new(seed, 0).stream("topology");
    let mut topology = Topology::new();
    let count = 3 + rng.below(8);
    let nodes: Vec<NodeId> = (0..count)
        .map(|it| topology.add_node(format!("n{it}")).unwrap())
        .collect();
    let mut ends = Vec::new();
    for index in 1..count + rng.below(4) {
        let one = index.min(count - 1);
        let other = rng.below(one);
        let between = [nodes[one as usize], nodes[other as usize]];
        ends.push(between);
        let link = LinkConfig {
            name: format!("l{index}"),
            between,
            forward: direction(&mut rng),
            backward: direction(&mut rng),
        };
        topology.add_link(link).unwrap();
    }
    if rng.below(2) == 0 {
        topology.set_routing(Routing::FollowsLinks {
            after: rng.below(3) * MS,
        });
    }
    (topology, ends)
}

/// Creates a world with a host at each of the nodes `hosts`; all hosts send to one another.
fn attach(
    topology: Topology,
    hosts: &[NodeId],
    seed: u64,
    until: Nanos,
) -> (World, Vec<(NodeId, AgentId)>) {
    let address = |node: NodeId| topology.addresses(node, AddressFamily::V4).next();
    let unspecified = std::net::Ipv4Addr::UNSPECIFIED.into();
    let all: Vec<_> = hosts.iter().map(|node| (*node, address(*node))).collect();
    let mut world = World::new(topology, Seed::new(seed, 1)).unwrap();
    let agents = all.iter().map(|&(node, own)| {
        let others = all.iter().filter(|(_, other)| *other != own);
        let peers = others.filter_map(|(_, other)| Some(Path::new(unspecified, (*other)?)));
        let rng = world.stream(&format!("host {}", node.index()));
        let host = Host::new(peers.collect(), rng, until);
        (
            node,
            world
                .attach(Attachment::new(node, PROTOCOL, PORT), host)
                .unwrap(),
        )
    });
    let agents = agents.collect::<Vec<_>>();
    (world, agents)
}

#[test]
fn random_worlds_are_the_same_in_any_division() {
    let slices = [100 * MS, 100 * MS + 1, 333 * MS, SECOND];
    let (mut compared, mut noticed, mut crossings, mut ties, mut lost) = (0, 0, 0, 0, 0);
    for seed in 0..120 {
        let build = || {
            let (topology, _) = network(seed);
            let hosts: Vec<NodeId> = topology.nodes().collect();
            attach(topology, &hosts, seed, 400 * MS)
        };
        let (topology, ends) = network(seed);
        let one = whole(&build, &ends, &slices);
        ties += one
            .heard
            .iter()
            .flat_map(|it| it.windows(2))
            .filter(|it| it[0].0 == it[1].0)
            .count();
        lost += one.ledger.dropped.total();
        let mut rng = Seed::new(seed, 2).stream("owners");
        for parts in [1, 2, 3, 7] {
            let owners = owners(&topology, parts, &mut rng);
            let order = [Order::Forward, Order::Reverse][rng.below(2) as usize];
            let (several, crossed) = divided(&build, &ends, &owners, &slices, order).unwrap();
            one.compare(&several, &format!("seed {seed}, {parts} parts: {owners:?}"));
            crossings += crossed;
            compared += usize::from(crossed > 0);
            let scrambled = divided(&build, &ends, &owners, &slices, Order::Scrambled);
            noticed += usize::from(scrambled.is_ok_and(|(scrambled, _)| scrambled != one));
        }
    }
    assert!(
        compared > 150 && crossings > 50_000,
        "{compared} {crossings}"
    );
    // As a control, the scrambled order, which depends on the division, must give other results.
    assert!(noticed > compared / 4, "{noticed} of {compared}");
    assert!(ties > 1_000 && lost > 1_000, "{ties} {lost}");
}

#[test]
fn a_part_that_runs_ahead_of_the_others_is_an_error() {
    let build = || {
        let mut topology = Topology::new();
        let nodes = ["a", "b"].map(|name| topology.add_node(name).unwrap());
        let link = LinkConfig {
            name: "link".into(),
            between: nodes,
            forward: DirectionConfig::instant(5 * MS),
            backward: DirectionConfig::instant(5 * MS),
        };
        topology.add_link(link).unwrap();
        attach(topology, &nodes, 1, SECOND)
    };
    let parts = [0, 1].map(|part| {
        let (mut world, _) = build();
        world.divide(part, &[0, 1]).unwrap();
        world
    });
    let [mut one, mut other] = parts;
    // The second part runs from 200 ms after its first event, without regard to the first part.
    let (begin, ahead) = (
        one.next_event().unwrap(),
        other.next_event().unwrap() + 200 * MS,
    );
    other.run_window(ahead, Nanos::MAX).unwrap();
    one.run_window(begin, Nanos::MAX).unwrap();
    let mut crossings = one.take_crossings();
    let at = crossings[0].at();
    let refused = other.accept(crossings.remove(0));
    assert_eq!(refused, Err(RunError::Lookahead { at }));
}

#[test]
fn a_division_assigns_each_node_before_the_world_runs() {
    let build = || {
        let mut topology = Topology::new();
        let nodes = ["a", "b"].map(|name| topology.add_node(name).unwrap());
        attach(topology, &nodes, 1, SECOND).0
    };
    let mut world = build();
    for owners in [&[0][..], &[0, 1, 1]] {
        let refused = world.divide(0, owners).unwrap_err();
        let owners = owners.len();
        assert_eq!(refused, BuildError::Owners { owners, nodes: 2 });
        assert_eq!(refused.to_string(), format!("{owners} owners for 2 nodes"));
    }
    world.divide(0, &[0, 1]).unwrap();
    // The first event, at time 0, starts an agent.
    let mut world = build();
    assert!(world.step().unwrap());
    assert_eq!(world.divide(0, &[0, 1]), Err(BuildError::AlreadyRun(0)));
    world.run_until(MS).unwrap();
    assert_eq!(world.divide(0, &[0, 1]), Err(BuildError::AlreadyRun(MS)));
    let mut world = World::new(Topology::new(), Seed::new(1, 0)).unwrap();
    world.run_until(MS).unwrap();
    assert_eq!(world.divide(0, &[]), Err(BuildError::AlreadyRun(MS)));
}

/// Two nodes are inseparable if their link has no delay in at least one direction.
#[test]
fn nodes_without_a_delay_between_them_are_inseparable() {
    let mut topology = Topology::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| topology.add_node(name).unwrap());
    for (name, between, delays) in [("ab", [a, b], [5, 5]), ("bc", [b, c], [5, 0])] {
        let [forward, backward] = delays.map(DirectionConfig::instant);
        let link = LinkConfig {
            name: name.into(),
            between,
            forward,
            backward,
        };
        topology.add_link(link).unwrap();
    }
    assert_eq!(topology.inseparable(), [[b, c]]);
}
