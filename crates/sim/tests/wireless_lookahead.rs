//! Comparison of media with lookahead and media that are run event by event, with random stations,
//! packets, answers and stops.

use crate::common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use anabranch_sim::loss::Bernoulli;
use anabranch_sim::wifi::{
    AfterError, AntennaPosition, BackoffRange, IdleAccess, ResponseTimeout, StationStats,
    WifiParameters,
};
use anabranch_sim::{
    AddressFamily, Agent, AgentId, Attachment, DirectionConfig, LinkConfig, LinkDirection,
    LinkProbes, LinkSample, LinkStats, MediumConfig, MediumId, NodeId, PlacedLoss, Rng, Seed,
    Topology, WorkCounts, World,
};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{BufMut, Bytes, BytesMut};
use common::{PORT, PROTOCOL, Sender};

const US: Nanos = 1_000;
const END: Nanos = 400_000 * US;

/// Agent that records arriving packets, and answers some of them after a pause, like the receiver
/// of a transport.
struct Answering {
    back: Option<Path>,
    pause: Nanos,
    len: usize,
    every: u64,
    due: VecDeque<Nanos>,
    arrivals: Vec<(Nanos, usize)>,
}

impl Agent for Answering {
    fn handle_datagram(&mut self, now: Nanos, path: Path, _ecn: Ecn, datagram: Bytes) {
        self.arrivals.push((now, datagram.len()));
        self.back = Some(path);
        if (self.arrivals.len() as u64).is_multiple_of(self.every) {
            self.due.push_back(now + self.pause);
        }
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let path = self.back?;
        self.due.front().filter(|at| **at <= now)?;
        self.due.pop_front();
        // Answers are sent to the port of an agent that only records them.
        out.put_u16(PORT);
        out.put_u16(PORT + 3);
        out.put_bytes(0, self.len - 4);
        Some(Transmit {
            path,
            len: self.len,
            ecn: Ecn::NotEct,
            may_fragment: false,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.due.front().copied()
    }
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

fn parameters(rng: &mut Rng) -> WifiParameters {
    let named = [WifiParameters::rafiq2007(), WifiParameters::ieee80211b()];
    let mut it = one_of(rng, &named);
    it.link_layer_delay = one_of(
        rng,
        &[25 * US, 25 * US, 25 * US, 2 * US, 400 * US, 5_000 * US, 0],
    );
    it.rts_threshold = one_of(rng, &[0, 0, 500, 2347]);
    it.queue_limit = 1 + rng.below(20) as usize;
    if rng.below(2) == 0 {
        it.basic_rate = one_of(rng, &[1_000_000, 11_000_000]);
        it.ack_bytes = one_of(rng, &[14, 100]);
        it.cw_min = one_of(rng, &[1, 3, 31]);
        it.idle_access = one_of(rng, &[IdleAccess::Immediate, IdleAccess::Backoff]);
        it.after_error = one_of(
            rng,
            &[AfterError::EifsInsteadOfDifs, AfterError::EifsThenDifs],
        );
        it.backoff_range = one_of(
            rng,
            &[BackoffRange::ThroughWindow, BackoffRange::BelowWindow],
        );
        it.cca_time = one_of(rng, &[0, 15 * US, it.slot - 1]);
        it.response_timeout = one_of(
            rng,
            &[
                ResponseTimeout::Header,
                ResponseTimeout::WholeFrame(0),
                ResponseTimeout::WholeFrame(4 * US),
            ],
        );
        it.short_retry_limit = 1 + rng.below(7) as u32;
        it.long_retry_limit = 1 + rng.below(4) as u32;
    }
    it
}

struct Play {
    world: World,
    agents: Vec<AgentId>,
    stations: Vec<NodeId>,
    medium: MediumId,
    samples: Rc<RefCell<Vec<LinkSample>>>,
}

/// A random world `host - wire - access point`, with stations of which not all may hear one
/// another.
fn play(seed: u64) -> Play {
    let rng = &mut Seed::new(seed, 0).stream("play");
    let mut topology = Topology::new();
    let host = topology.add_node("host").unwrap();
    let ap = topology.add_node("ap").unwrap();
    let mut direction = || {
        let rate = one_of(rng, &[2_000_000, 20_000_000]);
        let loss = Bernoulli::new(one_of(rng, &[0.0, 0.1])).unwrap();
        DirectionConfig::new(rate, one_of(rng, &[0, 1, 25 * US, 2000 * US]))
            .with_loss(PlacedLoss::before_queue(loss))
    };
    let wire = LinkConfig {
        name: "wire".into(),
        between: [host, ap],
        forward: direction(),
        backward: direction(),
    };
    topology.add_link(wire).unwrap();
    let medium = MediumConfig {
        name: "air".into(),
        parameters: parameters(rng),
    };
    let medium = topology.add_medium(medium).unwrap();
    let side = one_of(rng, &[0, 3, 200, 200, 900]);
    let mut stations = vec![ap];
    for index in 0..1 + rng.below(4) {
        stations.push(topology.add_node(format!("s{index}")).unwrap());
    }
    for (index, &station) in stations.iter().enumerate() {
        let at = AntennaPosition::new(rng.below(side + 1) as f64, rng.below(side + 1) as f64);
        topology.add_station(medium, station, at).unwrap();
        if station != ap {
            let name = format!("air[{}]", index - 1);
            topology
                .add_wireless_link(name, [ap, station], medium)
                .unwrap();
        }
    }
    let addresses = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let hosts: Vec<(NodeId, _)> = [&[host], &stations[..]]
        .concat()
        .into_iter()
        .map(|node| (node, addresses(node)))
        .collect();
    let mut world = World::new(topology, Seed::new(seed, 0)).unwrap();
    let mut agents = Vec::new();
    for &(node, local) in &hosts {
        let at = |port| Attachment::new(node, PROTOCOL, port);
        for (port, every) in [(PORT, 1 + rng.below(3)), (PORT + 3, u64::MAX)] {
            let answering = Answering {
                back: None,
                pause: one_of(rng, &[0, 0, 1, 25 * US, 700 * US]),
                len: 4 + rng.below(1400) as usize,
                every,
                due: VecDeque::new(),
                arrivals: Vec::new(),
            };
            agents.push(world.attach(at(port), answering).unwrap());
        }
        for number in 0..rng.below(3) as u16 {
            let (other, remote) = one_of(rng, &hosts);
            if other != node {
                let sender = Sender::new(Path::new(local, remote), plan(rng));
                world.attach(at(PORT + 10 + number), sender).unwrap();
            }
        }
    }
    let samples = Rc::default();
    if rng.below(8) == 0 {
        watch(&mut world, &samples);
    }
    Play {
        world,
        agents,
        stations,
        medium,
        samples,
    }
}

/// Enables probes of the first wireless link, and records their samples.
fn watch(world: &mut World, samples: &Rc<RefCell<Vec<LinkSample>>>) {
    let link = world.topology().links().nth(1).unwrap();
    let probes = LinkProbes {
        queue: true,
        drops: true,
        ..LinkProbes::default()
    };
    world.probe(link, LinkDirection::Forward, probes).unwrap();
    let kept = Rc::clone(samples);
    world.set_recorder(Box::new(move |sample: LinkSample| {
        kept.borrow_mut().push(sample)
    }));
}

/// Random send times: single packets, bursts, or round times, so that some events coincide. Packets
/// may also be separated by the processing time of an upper layer, so that one joins a queue when
/// another is offered.
fn plan(rng: &mut Rng) -> Vec<(Nanos, usize)> {
    let mut now = rng.below(20_000) * US;
    let gap = one_of(rng, &[300, 3_000, 12_000]);
    let round = one_of(rng, &[1, US, 25 * US, 100 * US, 400 * US]);
    let mut plan = Vec::new();
    while now < END - 100_000 * US {
        for _ in 0..one_of(rng, &[1, 1, 1, 4]) {
            plan.push((now, 12 + rng.below(1480) as usize));
        }
        now += rng.below(2 * gap * US) / round * round;
    }
    plan
}

type Observations = (
    Vec<Vec<(Nanos, usize)>>,
    Vec<[LinkStats; 2]>,
    Vec<Option<StationStats>>,
    WorkCounts,
);

impl Play {
    /// All observable results of a run.
    fn told(&self) -> Observations {
        let world = &self.world;
        let arrivals = |&it| world.agent::<Answering>(it).unwrap().arrivals.clone();
        let of = |link| LinkDirection::BOTH.map(|way| world.link_stats(link, way).unwrap());
        let stats = |&it| world.station_stats(self.medium, it);
        world.packet_counts().check().unwrap();
        (
            self.agents.iter().map(arrivals).collect(),
            world.topology().links().map(of).collect(),
            self.stations.iter().map(stats).collect(),
            world.progress(),
        )
    }

    /// Runs all events up to `now` one by one.
    fn step_until(&mut self, now: Nanos) {
        while self.world.next_event().is_some_and(|at| at <= now) {
            self.world.step().unwrap();
        }
        self.world.run_until(now).unwrap();
    }
}

fn compare(seed: u64) {
    let (mut stepped, mut at_length, mut in_pieces) = (play(seed), play(seed), play(seed));
    let rng = &mut Seed::new(seed, 1).stream("stops");
    let mut now = 0;
    while now < END {
        // Some stops are at, just before or just after the next event of the stepped world.
        now += rng.below(3_000 * US);
        stepped.step_until(now);
        if let Some(at) = stepped.world.next_event()
            && rng.below(2) == 0
        {
            now = now.max(at.saturating_sub(1) + rng.below(3));
            stepped.step_until(now);
        }
        in_pieces.world.run_until(now).unwrap();
        let next = [&stepped, &in_pieces].map(|it| it.world.next_event());
        assert_eq!(next[0], next[1], "seed {seed}, at {now}");
        assert_eq!(stepped.told(), in_pieces.told(), "seed {seed}, at {now}");
    }
    at_length.world.run_until(now).unwrap();
    assert_eq!(stepped.told(), at_length.told(), "seed {seed}");
    assert_eq!(stepped.samples, in_pieces.samples, "seed {seed}");
    assert_eq!(stepped.samples, at_length.samples, "seed {seed}");
}

#[test]
fn random_media_are_as_they_are_event_by_event() {
    for seed in 0..300 {
        compare(seed);
    }
}

/// A world of `media`, each with two stations that are very close to each other, and a node that
/// sends on all media at the times of `plan`.
fn near(media: usize, parameters: WifiParameters, plan: &[(Nanos, usize)]) -> World {
    let mut topology = Topology::new();
    let ap = topology.add_node("ap").unwrap();
    let mut others = Vec::new();
    for index in 0..media {
        let name = format!("air{index}");
        let medium = MediumConfig {
            name: name.clone(),
            parameters,
        };
        let medium = topology.add_medium(medium).unwrap();
        let other = topology.add_node(format!("s{index}")).unwrap();
        for (node, east) in [(ap, 0.0), (other, 3.0)] {
            let at = AntennaPosition::new(east, 0.0);
            topology.add_station(medium, node, at).unwrap();
        }
        topology
            .add_wireless_link(format!("{name}[0]"), [ap, other], medium)
            .unwrap();
        others.push(other);
    }
    let addresses = |node| {
        topology
            .addresses(node, AddressFamily::V4)
            .collect::<Vec<_>>()
    };
    let local = addresses(ap);
    let remote: Vec<_> = others.iter().map(|&node| addresses(node)[0]).collect();
    let mut world = World::new(topology, Seed::new(1, 0)).unwrap();
    for (index, (&local, &remote)) in local.iter().zip(&remote).enumerate() {
        let sender = Sender::new(Path::new(local, remote), plan.to_vec());
        let at = Attachment::new(ap, PROTOCOL, PORT + index as u16);
        world.attach(at, sender).unwrap();
    }
    world
}

/// Events that coincide on one medium, or on two, are counted as if they were run one by one.
#[test]
fn coinciding_events_are_counted_as_if_run_one_by_one() {
    let delay = 25 * US;
    let mut near_by = WifiParameters::rafiq2007();
    near_by.idle_access = IdleAccess::Immediate;
    near_by.response_timeout = ResponseTimeout::WholeFrame(4 * US);
    let mut slow = near_by;
    slow.link_layer_delay = 5_000 * US;
    let mut unannounced = near_by;
    unannounced.rts_threshold = 2347;
    for (what, parameters, delay) in [
        ("a packet is offered when another joins", near_by, delay),
        ("long layers", slow, slow.link_layer_delay),
        ("without RTS", unannounced, delay),
    ] {
        for media in 1..3 {
            let plan: Vec<_> = (0..40)
                .flat_map(|at| [(at * 60_000 * US, 200), (at * 60_000 * US + delay, 300)])
                .collect();
            let [mut stepped, mut at_length] = [0; 2].map(|_| near(media, parameters, &plan));
            let end = 3_000_000 * US;
            while stepped.next_event().is_some_and(|at| at <= end) {
                stepped.step().unwrap();
            }
            stepped.run_until(end).unwrap();
            at_length.run_until(end).unwrap();
            let told = [&stepped, &at_length].map(|it| (it.progress(), it.next_event()));
            assert_eq!(told[0], told[1], "{what}, {media} media");
            assert!(stepped.progress().events > 300, "{what}");
        }
    }
}
