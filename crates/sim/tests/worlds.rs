//! Tests of worlds: agents, addresses, determinism and conservation of packets.

use crate::common;

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    AddressFamily, Agent, Attachment, Binding, BuildError, DirectionConfig, DropReason, DropTail,
    LinkConfig, LinkDirection, LinkProbe, LinkProbes, LinkSample, PlacedLoss, QueueLimit, RunError,
    Seed, Topology, World, start_time,
};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};
use common::{Line, MS, PORT, PROTOCOL, SECOND, Sender, Sink, burst, chain, end_to_end, every};

fn lossy() -> DirectionConfig {
    DirectionConfig::new(2_000_000, 250 * MS)
        .with_queue(DropTail::new(QueueLimit::Packets(10)).unwrap())
        .with_loss(PlacedLoss::before_queue(Bernoulli::new(0.1).unwrap()))
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let run = |seed| {
        let access = DirectionConfig::new(10_000_000, 2 * MS);
        Line::new(seed, vec![access, lossy()], every(5 * MS, 2000, 1200)).run(60 * SECOND)
    };
    let (first, second, other) = (run(4), run(4), run(5));
    assert_eq!(first.arrivals(), second.arrivals());
    assert_eq!(first.world.progress(), second.world.progress());
    assert_ne!(first.arrivals(), other.arrivals());
}

#[test]
fn a_component_more_moves_no_other_components_losses() {
    let run = |extra: bool| {
        let mut topology = Topology::new();
        let a = topology.add_node("a").unwrap();
        let b = topology.add_node("b").unwrap();
        if extra {
            let c = topology.add_node("c").unwrap();
            let config = LinkConfig {
                name: "another".into(),
                between: [b, c],
                forward: lossy(),
                backward: lossy(),
            };
            topology.add_link(config).unwrap();
        }
        let config = LinkConfig {
            name: "satellite".into(),
            between: [a, b],
            forward: lossy(),
            backward: lossy(),
        };
        topology.add_link(config).unwrap();
        let c = topology.node("c");
        let address = |node| topology.addresses(node, AddressFamily::V4).last().unwrap();
        let path = Path::new(address(a), address(b));
        let cross = c.map(|c| Path::new(address(c), address(b)));
        let mut world = World::new(topology, Seed::new(9, 3)).unwrap();
        let plan = |offset| every(7 * MS, 1000, 1000).map(move |(at, len)| (at + offset, len));
        let at = |node| Attachment::new(node, PROTOCOL, PORT);
        let sink = world.attach(at(b), Sink::default()).unwrap();
        world.attach(at(a), Sender::new(path, plan(0))).unwrap();
        if let (Some(c), Some(path)) = (c, cross) {
            world.attach(at(c), Sender::new(path, plan(MS))).unwrap();
        }
        world.run_until(60 * SECOND).unwrap();
        world.packet_counts().check().unwrap();
        let sink: &Sink = world.agent(sink).unwrap();
        // 1020 bytes at 2 Mbit/s take 4.08 ms. Packets of the other sender arrive 1 ms later.
        let from_a = |(at, _): &&(Nanos, u64)| (at - 254_080_000) % (7 * MS) == 0;
        let arrivals: Vec<_> = sink.arrivals.iter().filter(from_a).copied().collect();
        (arrivals, sink.arrivals.len())
    };
    let ((alone, all_alone), (together, all)) = (run(false), run(true));
    assert!((860..940).contains(&alone.len()), "{}", alone.len());
    assert_eq!(alone, together);
    assert!(all > all_alone + 800);
}

#[test]
fn conservation_holds_at_every_event_of_random_worlds() {
    for seed in 0..30u64 {
        let mut rng = Seed::new(seed, 0).stream("world");
        let hops = 1 + rng.below(4);
        let directions = (0..hops).map(|_| {
            DirectionConfig::new(500_000 + rng.below(5_000_000), rng.below(50 * MS))
                .with_queue(DropTail::new(QueueLimit::Packets(1 + rng.below(8) as usize)).unwrap())
                .with_loss(PlacedLoss::after_queue(Bernoulli::new(0.1).unwrap()))
        });
        let directions: Vec<_> = directions.collect();
        let plan: Vec<_> = every(2 * MS, 300, 700).collect();
        let mut line = Line::new(seed, directions, plan);
        while line.world.step().unwrap() {
            if let Err(error) = line.world.packet_counts().check() {
                panic!("seed {seed}: {error}");
            }
        }
        let ledger = line.world.packet_counts();
        assert_eq!((ledger.sent, ledger.in_flight), (300, 0), "seed {seed}");
        assert_eq!(
            ledger.delivered,
            line.arrivals().len() as u64,
            "seed {seed}"
        );
    }
}

#[test]
fn two_homes_are_two_paths() {
    let mut topology = Topology::new();
    let a = topology.add_node("a").unwrap();
    let b = topology.add_node("b").unwrap();
    let mut connect = |name: &str, delay| {
        let config = LinkConfig {
            name: name.into(),
            between: [a, b],
            forward: DirectionConfig::instant(delay),
            backward: DirectionConfig::instant(delay),
        };
        topology.add_link(config).unwrap()
    };
    let (near, far) = (connect("near", MS), connect("far", 9 * MS));
    for family in [AddressFamily::V4, AddressFamily::V6] {
        for (link, delay) in [(near, MS), (far, 9 * MS)] {
            let mut world = World::new(rebuild(&topology), Seed::default()).unwrap();
            let topology = world.topology();
            let address = |node| topology.address(node, link, family).unwrap();
            let (local, remote) = (address(a), address(b));
            let unspecified = match family {
                AddressFamily::V4 => std::net::Ipv4Addr::UNSPECIFIED.into(),
                AddressFamily::V6 => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let at = |node| Attachment::new(node, PROTOCOL, PORT);
            let sender = Sender::new(Path::new(unspecified, remote), burst(0, 1, 20));
            let sink = world.attach(at(b), Sink::default()).unwrap();
            world.attach(at(a), sender).unwrap();
            world.run_until(SECOND).unwrap();
            let sink: &Sink = world.agent(sink).unwrap();
            assert_eq!(sink.arrivals, [(delay, 0)]);
            // The sender left its address unspecified, so the world has filled in that of the
            // outgoing interface.
            assert_eq!(sink.paths, [Path::new(remote, local)]);
            let stats = world.link_stats(link, LinkDirection::Forward).unwrap();
            let header = if family == AddressFamily::V4 { 20 } else { 40 };
            assert_eq!(stats.delivered.bytes, 20 + header);
        }
    }
}

/// A copy of the multihomed topology of the previous test.
fn rebuild(topology: &Topology) -> Topology {
    let mut copy = Topology::new();
    for node in topology.nodes() {
        copy.add_node(topology.node_name(node)).unwrap();
    }
    for (link, delay) in topology.links().zip([MS, 9 * MS]) {
        let config = LinkConfig {
            name: topology.link_name(link).into(),
            between: [topology.node("a").unwrap(), topology.node("b").unwrap()],
            forward: DirectionConfig::instant(delay),
            backward: DirectionConfig::instant(delay),
        };
        copy.add_link(config).unwrap();
    }
    copy
}

#[test]
fn unclaimed_and_unreachable_packets_are_counted() {
    let (mut topology, nodes, _) = chain(vec![DirectionConfig::instant(MS)]);
    topology.add_node("island").unwrap();
    let path = end_to_end(&topology, &nodes);
    let stranger = Path::new(path.local, "192.0.2.1".parse().unwrap());
    let own = Path::new(path.local, path.local);
    let mixed = Path::new("fd00::1".parse().unwrap(), path.remote);
    let mut world = World::new(topology, Seed::default()).unwrap();
    for (port, path) in [(1, path), (2, stranger), (3, own), (4, mixed)] {
        let at = Attachment::new(nodes[0], PROTOCOL, port);
        world
            .attach(at, Sender::new(path, burst(0, 1, 20)))
            .unwrap();
    }
    // The binding of this agent matches the packets, but the agent starts only after they have
    // arrived.
    let late = Attachment::new(nodes[1], PROTOCOL, PORT).starting(2 * MS);
    let late = world.attach(late, Sink::default()).unwrap();
    world.run_until(SECOND).unwrap();
    let ledger = world.packet_counts();
    ledger.check().unwrap();
    assert_eq!(ledger.dropped.count(DropReason::NoRoute), 3);
    assert_eq!(ledger.dropped.count(DropReason::NoAgent), 1);
    assert!(world.agent::<Sink>(late).unwrap().arrivals.is_empty());
}

#[test]
fn routes_in_a_circle_end_at_the_hop_limit() {
    let (mut topology, nodes, links) = chain(vec![
        DirectionConfig::instant(1),
        DirectionConfig::instant(1),
    ]);
    let path = end_to_end(&topology, &nodes);
    topology.add_route(nodes[1], path.remote, links[0]).unwrap();
    let mut world = World::new(topology, Seed::default()).unwrap();
    let at = Attachment::new(nodes[0], PROTOCOL, PORT);
    world
        .attach(at, Sender::new(path, burst(0, 1, 20)))
        .unwrap();
    world.run_until(SECOND).unwrap();
    world.packet_counts().check().unwrap();
    assert_eq!(world.packet_counts().dropped.count(DropReason::HopLimit), 1);
    assert_eq!(world.progress().hops, 64);
}

#[test]
fn a_wrong_topology_is_refused_by_name() {
    let mut topology = Topology::new();
    let a = topology.add_node("a").unwrap();
    let b = topology.add_node("b").unwrap();
    assert_eq!(
        topology.add_node("a"),
        Err(BuildError::DuplicateNode("a".into()))
    );
    let link = |name: &str, between| LinkConfig {
        name: name.into(),
        between,
        forward: DirectionConfig::instant(0),
        backward: DirectionConfig::instant(0),
    };
    let only = topology.add_link(link("l", [a, b])).unwrap();
    let again = topology.add_link(link("l", [b, a]));
    assert_eq!(again, Err(BuildError::DuplicateLink("l".into())));
    let itself = topology.add_link(link("m", [a, a])).unwrap_err();
    assert_eq!(itself.to_string(), "link `m` connects node `a` with itself");
    let taken = topology.address(b, only, AddressFamily::V4).unwrap();
    let set = topology.set_address(a, only, taken);
    assert_eq!(set, Err(BuildError::AddressTaken(taken)));
    let mut zero = link("z", [a, b]);
    zero.forward.rate = Some(0.into());
    topology.add_link(zero).unwrap();
    let built = World::new(topology, Seed::default());
    assert_eq!(built.unwrap_err(), BuildError::ZeroRate("z".into()));
    assert_eq!(
        DropTail::new(QueueLimit::Packets(0)).err(),
        Some(BuildError::EmptyQueue)
    );
}

#[test]
fn bindings_are_taken_once_and_starts_lie_ahead() {
    let mut line = Line::new(1, vec![DirectionConfig::instant(0)], []).run(SECOND);
    let node = line.nodes[1];
    let again = line.world.attach(
        Attachment::new(node, PROTOCOL, PORT).starting(2 * SECOND),
        Sink::default(),
    );
    assert!(matches!(again, Err(BuildError::BindingTaken { .. })));
    let twice = Attachment {
        bindings: vec![Binding::port(99), Binding::port(99)],
        ..Attachment::new(node, PROTOCOL, 99).starting(2 * SECOND)
    };
    let twice = line.world.attach(twice, Sink::default());
    assert!(matches!(twice, Err(BuildError::BindingTaken { .. })));
    let past = line
        .world
        .attach(Attachment::new(node, PROTOCOL, 99), Sink::default());
    assert!(matches!(past, Err(BuildError::StartsInThePast { .. })));
}

/// Agent that records every call, wakes up at given times, and sends three packets when it starts.
struct Diary {
    calls: Vec<(Nanos, &'static str)>,
    alarms: Vec<Nanos>,
    run: Option<(Path, u8)>,
}

impl Agent for Diary {
    fn start(&mut self, now: Nanos) {
        self.calls.push((now, "start"));
    }

    fn stop(&mut self, now: Nanos) {
        self.calls.push((now, "stop"));
    }

    fn handle_datagram(&mut self, now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {
        self.calls.push((now, "datagram"));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.calls.push((now, "timeout"));
        self.alarms.retain(|&alarm| alarm > now);
    }

    fn poll_transmit(&mut self, _now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // The three packets have 20, 20 and 15 bytes.
        let (path, number) = self.run.filter(|(_, number)| *number < 3)?;
        self.run = Some((path, number + 1));
        out.extend_from_slice(&[0, PORT as u8, 0, PORT as u8, 0, 0, 0, 0, 0, 0, 0, number]);
        out.extend_from_slice(if number < 2 { &[0x5a; 8] } else { &[0x5a; 3] });
        Some(Transmit {
            path,
            len: out.len(),
            ecn: Ecn::NotEct,
            may_fragment: false,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.alarms.iter().min().copied()
    }
}

#[test]
fn agents_start_wake_and_stop_in_time_and_send() {
    let (topology, nodes, links) = chain(vec![DirectionConfig::new(8_000_000, MS)]);
    let path = end_to_end(&topology, &nodes);
    let mut world = World::new(topology, Seed::default()).unwrap();
    let sink = Attachment::new(nodes[1], PROTOCOL, PORT);
    let sink = world.attach(sink, Sink::default()).unwrap();
    let diary = Diary {
        calls: Vec::new(),
        alarms: vec![3, 70 * MS, 40 * MS],
        run: Some((path, 0)),
    };
    let at = Attachment::new(nodes[0], PROTOCOL, PORT);
    let at = at.starting(10 * MS).stopping(50 * MS);
    let diary = world.attach(at, diary).unwrap();
    assert_eq!(world.next_event(), Some(0));
    world.run_until(60 * MS).unwrap();
    let set = |diary: &mut Diary, now| {
        diary.alarms = vec![now + 5];
        now
    };
    assert_eq!(world.with_agent(diary, set), Some(60 * MS));
    assert_eq!(world.with_agent(sink, set), None);
    world.run_until(SECOND).unwrap();
    let calls = &world.agent::<Diary>(diary).unwrap().calls;
    let expected = [
        (10 * MS, "start"),
        (10 * MS, "timeout"), // the timeout at 3 ns, which was in the past when it was set
        (40 * MS, "timeout"),
        (50 * MS, "stop"),
        (60 * MS + 5, "timeout"), // the timeout at 70 ms was cancelled
    ];
    assert_eq!(*calls, expected);
    let arrivals = &world.agent::<Sink>(sink).unwrap().arrivals;
    // The packets have 40, 40 and 35 bytes on the wire, at one byte per microsecond.
    let us = |us: u64| 11 * MS + us * 1000;
    assert_eq!(*arrivals, [(us(40), 0), (us(80), 1), (us(115), 2)]);
    let stats = world.link_stats(links[0], LinkDirection::Forward).unwrap();
    assert_eq!(stats.delivered.bytes, 115);
    assert_eq!(world.next_event(), None);
    assert_eq!(world.now(), SECOND);
}

#[test]
fn an_agent_that_stops_time_is_reported_so() {
    struct Impatient;
    impl Agent for Impatient {
        fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {}
        fn handle_timeout(&mut self, _now: Nanos) {}
        fn poll_transmit(&mut self, _now: Nanos, _out: &mut BytesMut) -> Option<Transmit> {
            None
        }
        fn poll_timeout(&self) -> Option<Nanos> {
            Some(17)
        }
    }
    let mut line = Line::new(1, vec![DirectionConfig::instant(0)], []);
    let at = Attachment::new(line.nodes[0], PROTOCOL, 99);
    line.world.attach(at, Impatient).unwrap();
    let stalled = line.world.run_until(SECOND);
    assert_eq!(stalled, Err(RunError::Stalled { agent: 2, at: 17 }));
}

/// The agent starts to send endlessly while the test acts on it. The world reports this error
/// before it advances.
#[test]
fn an_agent_that_stalls_from_outside_is_reported_before_the_world_goes_on() {
    struct Endless(Option<Path>);
    impl Agent for Endless {
        fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {}
        fn handle_timeout(&mut self, _now: Nanos) {}
        fn poll_transmit(&mut self, _now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
            let path = self.0?;
            out.extend_from_slice(&[0; 8]);
            Some(Transmit {
                path,
                len: 8,
                ecn: Ecn::NotEct,
                may_fragment: false,
            })
        }
        fn poll_timeout(&self) -> Option<Nanos> {
            None
        }
    }
    let plan = [(50 * MS, 100), (60 * MS, 100)];
    let (topology, nodes, _) = chain(vec![DirectionConfig::instant(0)]);
    let path = end_to_end(&topology, &nodes);
    for step in [false, true] {
        let mut line = Line::new(1, vec![DirectionConfig::instant(0)], plan);
        let at = Attachment::new(line.nodes[0], PROTOCOL, 99);
        let agent = line.world.attach(at, Endless(None)).unwrap();
        line.world.run_until(10 * MS).unwrap();
        let endless = |it: &mut Endless, _| it.0 = Some(path);
        line.world.with_agent(agent, endless).unwrap();
        let before = line.world.progress();
        let told = match step {
            true => line.world.step().map(drop),
            false => line.world.run_until(SECOND),
        };
        let stalled = RunError::Stalled {
            agent: 2,
            at: 10 * MS,
        };
        assert_eq!(told, Err(stalled));
        assert_eq!(line.world.now(), 10 * MS);
        assert_eq!(line.world.progress().events, before.events);
    }
}

/// The packet's last bit leaves before the end of time, and would arrive after it.
#[test]
fn packets_in_flight_at_the_end_of_time_are_counted() {
    let direction = DirectionConfig::new(8_000_000, SECOND);
    let at = Nanos::MAX - SECOND / 2;
    let mut line = Line::new(1, vec![direction], [(at, 980)]);
    line.world.run_until(at + 10).unwrap();
    line.world.packet_counts().check().unwrap();
    assert_eq!(line.world.packet_counts().in_flight, 1);
}

#[test]
fn probes_tell_throughput_queue_and_drops() {
    let direction = DirectionConfig::new(8_000_000, 2 * MS)
        .with_queue(DropTail::new(QueueLimit::Packets(2)).unwrap());
    // A packet has 1000 bytes on the wire, which take 1 ms. Three packets arrive at 0, of which two
    // are queued, and one arrives at 12 ms.
    let plan = [(0, 980), (0, 980), (0, 980), (12 * MS, 980)];
    let mut line = Line::new(1, vec![direction], plan);
    let samples: Rc<RefCell<Vec<LinkSample>>> = Rc::default();
    let written = Rc::clone(&samples);
    let probes = LinkProbes {
        throughput: Some(5 * MS),
        queue: true,
        drops: true,
        ..LinkProbes::default()
    };
    line.world
        .probe(line.links[0], LinkDirection::Forward, probes)
        .unwrap();
    let recorder = move |sample| written.borrow_mut().push(sample);
    line.world.set_recorder(Box::new(recorder));
    let mut line = line.run(21 * MS);
    line.world.finish().unwrap();
    let samples = samples.borrow();
    let of = |probe: LinkProbe| {
        let of_probe = samples.iter().filter(move |sample| sample.probe == probe);
        of_probe.map(|s| (s.at, s.value)).collect::<Vec<_>>()
    };
    // Packets arrive at 3, 4 and 15 ms; 1000 bytes in 5 ms are 200,000 bytes per second.
    let expected = [(0, 4e5), (5 * MS, 0.0), (10 * MS, 0.0), (15 * MS, 2e5)];
    assert_eq!(of(LinkProbe::Throughput), expected);
    let lengths = [
        (0, 1.0),
        (0, 2.0),
        (MS, 1.0),
        (2 * MS, 0.0),
        (12 * MS, 1.0),
        (13 * MS, 0.0),
    ];
    assert_eq!(of(LinkProbe::QueueLength), lengths);
    assert_eq!(of(LinkProbe::Dropped(DropReason::QueueFull)), [(0, 1.0)]);
}

#[test]
fn start_times_are_spread_and_each_flows_own() {
    let start = |flow: &str| start_time(Seed::new(1, 0), flow, 0, SECOND);
    assert_eq!(start("tcp 0"), start("tcp 0"));
    assert_ne!(start("tcp 0"), start("tcp 1"));
    let mean = (0..1000).map(|i| start(&format!("f{i}"))).sum::<u64>() / 1000;
    assert!((470 * MS..530 * MS).contains(&mean), "{mean}");
}
