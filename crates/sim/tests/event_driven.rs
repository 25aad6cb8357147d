//! Tests of links that are simulated event by event: their results equal those of analytic links,
//! and they also support other disciplines and time-dependent rates and delays.

use crate::common;

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use anabranch_sim::loss::{Bernoulli, GilbertElliott, GilbertElliottConfig};
use anabranch_sim::propagation::{ConstantDelay, Jitter, Spread, TimeVarying};
use anabranch_sim::queue::{
    CoDel, CoDelConfig, EnqueueError, Fifo, Occupancy, QueueDiscipline, QueuedPacket,
    TransmitterView,
};
use anabranch_sim::{
    AddressFamily, Attachment, BuildError, DirectionConfig, DropReason, DropTail, Impairments,
    LinkConfig, LinkDirection, LinkId, LinkProbe, LinkProbes, LinkSample, LinkStats, NodeId,
    Outage, PacketCounts, PlacedLoss, Probability, QueueLimit, Reordering, Rng, Seed, StepFunction,
    Topology, World,
};
use anabranch_transport::{Ecn, Nanos, Path};
use common::{Line, MS, PORT, PROTOCOL, SECOND, Sender, Sink, burst, every};

/// A buffer that the world writes and the test reads.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn chance(rng: &mut Rng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

/// A direction with random rate, queue, losses, impairments, outages and MTU. Only a few different
/// rates and delays are used, so that events of different links coincide.
fn direction(rng: &mut Rng, event_driven: bool) -> DirectionConfig {
    let delay = rng.below(5) * 4 * MS;
    let mut config = match rng.below(8) {
        0 => DirectionConfig::instant(delay),
        n => DirectionConfig::new(500_000 * (1 + n % 4), delay),
    };
    config = match rng.below(4) {
        0 => config.with_queue(DropTail::new(QueueLimit::Bytes(1500 + rng.below(9000))).unwrap()),
        1 => config,
        _ => {
            let limit = QueueLimit::Packets(1 + rng.below(12) as usize);
            config.with_queue(DropTail::new(limit).unwrap())
        }
    };
    if chance(rng, 3) {
        let loss = Bernoulli::new(0.05).unwrap();
        config = config.with_loss(PlacedLoss::before_queue(loss));
    }
    if chance(rng, 3) {
        let bursts = GilbertElliottConfig {
            to_bad: 0.02.into(),
            to_good: 0.4.into(),
            loss_good: 0.0.into(),
            loss_bad: 1.0.into(),
        };
        let loss = GilbertElliott::new(&bursts).unwrap();
        config = config.with_loss(PlacedLoss::after_queue(loss));
    }
    if chance(rng, 4) {
        config = config.with_impairments(Impairments {
            reordering: Reordering {
                probability: Probability::new(0.1).unwrap(),
                up_to: 30 * MS,
            },
            duplication: Probability::new(0.05).unwrap(),
            corruption: Probability::ZERO,
        });
    }
    if chance(rng, 4) {
        let from = rng.below(400) * MS;
        config = config.with_outages([Outage {
            from,
            until: from + (1 + rng.below(200)) * MS,
        }]);
    }
    if chance(rng, 6) {
        config = config.with_mtu(Some(1500), [(200 * MS, 900), (500 * MS, 1500)]);
    }
    if chance(rng, 4) {
        let jitter = Jitter::new(ConstantDelay(delay), Spread::Exponential(2 * MS));
        config = config.with_propagation(jitter, chance(rng, 2));
    }
    config.event_driven = event_driven;
    config
}

/// All observable results of one run.
#[derive(Debug, PartialEq)]
struct Outcome {
    ledger: PacketCounts,
    arrivals: Vec<Vec<(Nanos, u64)>>,
    stats: Vec<LinkStats>,
    /// Link statistics at several times before the end; empty if the run is not split.
    midway: Vec<Vec<LinkStats>>,
    hops: u64,
    /// Samples in the order of time, because drops on an analytic link are reported before they
    /// occur.
    samples: Vec<(Nanos, usize, String)>,
    /// Blocks of the captures, sorted, because packets at one instant may be written in any order.
    capture: Vec<Vec<u8>>,
}

/// Runs a world of four hosts at two routers. Traffic between all hosts shares the link between the
/// routers. Probes are enabled from `watched` on.
fn run(seed: u64, event_driven: bool, watched: Option<Nanos>) -> Outcome {
    let mut rng = Seed::new(seed, 0).stream("world");
    let mut topology = Topology::new();
    let names = ["a", "b", "left", "right", "c", "d"];
    let [a, b, left, right, c, d] = names.map(|name| topology.add_node(name).unwrap());
    let ends = [[a, left], [b, left], [left, right], [right, c], [right, d]];
    let links: Vec<LinkId> = ends
        .into_iter()
        .enumerate()
        .map(|(number, between)| {
            let config = LinkConfig {
                name: format!("l{number}"),
                between,
                forward: direction(&mut rng, event_driven),
                backward: direction(&mut rng, event_driven),
            };
            topology.add_link(config).unwrap()
        })
        .collect();
    let address = |node: NodeId| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let hosts = [a, b, c, d].map(|node| (node, address(node)));
    let mut world = World::new(topology, Seed::new(seed, 1)).unwrap();
    let sinks = hosts.map(|(node, _)| {
        let attachment = Attachment::new(node, PROTOCOL, PORT);
        world.attach(attachment, Sink::default()).unwrap()
    });
    for (from, local) in hosts {
        for (to, remote) in hosts {
            if from != to {
                let plan = plan(&mut rng);
                let sender = Sender::new(Path::new(local, remote), plan);
                let mut attachment = Attachment::new(from, PROTOCOL, PORT);
                attachment.bindings.clear();
                world.attach(attachment, sender).unwrap();
            }
        }
    }
    let samples = Rc::new(RefCell::new(Vec::new()));
    let capture = Shared::default();
    if let Some(from) = watched {
        if from > 0 {
            world.run_until(from).unwrap();
        }
        look(&mut world, &links, Rc::clone(&samples));
        let interfaces = [(left, links[2]), (right, links[2])];
        world
            .capture(Box::new(capture.clone()), &interfaces)
            .unwrap();
    }
    let counted = |world: &World| -> Vec<LinkStats> {
        let stats = links
            .iter()
            .flat_map(|&link| LinkDirection::BOTH.map(|way| world.link_stats(link, way).unwrap()));
        stats.collect()
    };
    let mut midway = Vec::new();
    if chance(&mut rng, 2) {
        for _ in 0..20 {
            let until = world.now() + rng.below(90 * MS);
            world.run_until(until).unwrap();
            midway.push(counted(&world));
        }
    }
    while world.step().unwrap() {}
    world.run_until(10 * SECOND).unwrap();
    world.finish().unwrap();
    world.packet_counts().check().unwrap();
    let mut samples: Vec<_> = samples.borrow().iter().map(told_of).collect();
    samples.sort();
    let capture = blocks(&capture.0.borrow());
    Outcome {
        ledger: world.packet_counts(),
        arrivals: sinks
            .map(|sink| world.agent::<Sink>(sink).unwrap().arrivals.clone())
            .to_vec(),
        stats: counted(&world),
        midway,
        hops: world.progress().hops,
        samples,
        capture,
    }
}

/// Enables every probe of every direction.
fn look(world: &mut World, links: &[LinkId], samples: Rc<RefCell<Vec<LinkSample>>>) {
    world.set_recorder(Box::new(move |sample: LinkSample| {
        samples.borrow_mut().push(sample);
    }));
    let probes = LinkProbes {
        throughput: Some(50 * MS),
        queue: true,
        sojourn: true,
        drops: true,
        marks: true,
    };
    for &link in links {
        for direction in LinkDirection::BOTH {
            world.probe(link, direction, probes).unwrap();
        }
    }
}

/// Blocks of a pcapng file, sorted; each block begins with its length.
fn blocks(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let len = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        let (block, rest) = file.split_at(len);
        blocks.push(block.to_vec());
        file = rest;
    }
    blocks.sort();
    blocks
}

/// Time, link and value of a sample. For drops the value is omitted, because the number of drops so
/// far depends on the time of reporting.
fn told_of(sample: &LinkSample) -> (Nanos, usize, String) {
    let value = match sample.probe {
        LinkProbe::Dropped(_) => 0.0,
        _ => sample.value,
    };
    let lane = sample.link.index() * 2 + sample.direction as usize;
    (sample.at, lane, format!("{:?} {value}", sample.probe))
}

fn plan(rng: &mut Rng) -> Vec<(Nanos, usize)> {
    let mut at = rng.below(4) * 4 * MS;
    let packets = rng.below(120);
    let plan = (0..packets).map(|_| {
        at += rng.below(3) * 2 * MS;
        (at, [1480, 480, 80][rng.below(3) as usize])
    });
    plan.collect()
}

#[test]
fn event_driven_and_immediate_transmission_give_the_same_result() {
    let mut drops = 0;
    for seed in 0..150 {
        let at_once = run(seed, false, Some(0));
        let event_driven = run(seed, true, Some(0));
        // The parts are compared separately, so that a failure shows the part that differs.
        assert_eq!(at_once.ledger, event_driven.ledger, "seed {seed}");
        assert_eq!(at_once.arrivals, event_driven.arrivals, "seed {seed}");
        assert_eq!(at_once.stats, event_driven.stats, "seed {seed}");
        assert_eq!(at_once.samples, event_driven.samples, "seed {seed}");
        assert!(
            at_once.capture == event_driven.capture,
            "capture, seed {seed}"
        );
        drops += at_once.ledger.dropped.total();
    }
    assert!(drops > 10_000, "{drops}: the worlds are hard enough");
}

/// A plain direction without probes uses the fast path until a probe is enabled.
#[test]
fn unobserved_runs_are_the_same() {
    for seed in 0..150 {
        let watched = run(seed, false, Some(0));
        for from in [None, Some(100 * MS), Some(301 * MS)] {
            let other = run(seed, false, from);
            assert_eq!(watched.ledger, other.ledger, "seed {seed}, {from:?}");
            assert_eq!(watched.arrivals, other.arrivals, "seed {seed}, {from:?}");
            assert_eq!(watched.stats, other.stats, "seed {seed}, {from:?}");
            assert_eq!(watched.hops, other.hops, "seed {seed}, {from:?}");
            if from.is_none() {
                assert_eq!(watched.midway, other.midway, "seed {seed}");
            }
            let Some(from) = from else { continue };
            // Throughput bins begin at another time, and a drop may have been reported before it
            // occurs.
            let later = |outcome: &Outcome| {
                let samples = outcome.samples.iter();
                let later = samples.filter(|(at, _, what)| {
                    *at > from && !what.starts_with("Throughput") && !what.starts_with("Dropped")
                });
                later.cloned().collect::<Vec<_>>()
            };
            assert_eq!(later(&watched), later(&other), "seed {seed}, {from}");
            let mut told = other.samples.iter();
            let early = told.find(|(at, _, what)| *at < from && !what.starts_with("Throughput"));
            assert_eq!(early, None, "seed {seed}, {from}");
        }
    }
}

/// 1500 bytes at 1.2 Mbit/s take 10 ms. 100 packets that arrive together form a standing queue. The
/// results equal the trace of the discipline that was computed by hand.
#[test]
fn codel_drops_at_the_head_of_a_standing_queue() {
    let config = CoDelConfig::default();
    let direction = DirectionConfig::new(1_200_000, MS).with_queue(CoDel::new(config).unwrap());
    let line = Line::new(1, vec![direction], burst(0, 100, 1480)).run(400 * MS - 1);
    assert_eq!(line.stats(0).dropped.count(DropReason::Aqm), 5);
    let gone: Vec<u64> = (0..44).filter(|n| !line.numbers().contains(n)).collect();
    assert_eq!(gone, [11, 22, 31, 37, 43]);
}

#[test]
fn codel_marks_reach_the_receiver() {
    let config = CoDelConfig {
        ecn: true,
        ..CoDelConfig::default()
    };
    let direction = DirectionConfig::new(1_200_000, MS).with_queue(CoDel::new(config).unwrap());
    let line = Line::with_sender(1, vec![direction], |path| Sender {
        ecn: Ecn::Ect0,
        ..Sender::new(path, burst(0, 100, 1480))
    });
    let line = line.run(2 * SECOND);
    assert_eq!(line.sink().marked[..5], [11, 21, 29, 34, 39]);
    assert_eq!(line.sink().marked.len() as u64, line.stats(0).marked);
    assert_eq!(line.numbers().len(), 100);
}

/// Discipline that sends one packet at each multiple of `tick` and queues at most `most` packets;
/// for a new packet it drops the oldest.
struct Ticker {
    tick: Nanos,
    most: usize,
    next: Nanos,
    waiting: Fifo,
}

impl QueueDiscipline for Ticker {
    fn enqueue(
        &mut self,
        _now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        self.waiting.push(packet);
        if self.waiting.occupancy().packets > self.most
            && let Some(oldest) = self.waiting.pop()
        {
            transmitter.drop(oldest, DropReason::QueueFull);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        if now < self.next {
            return None;
        }
        self.next = now - now % self.tick + self.tick;
        self.waiting.pop()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }

    fn wake_up(&self, _now: Nanos) -> Option<Nanos> {
        Some(self.next)
    }
}

#[test]
fn a_discipline_may_wait_and_drop_what_waits() {
    let ticker = Ticker {
        tick: 10 * MS,
        most: 3,
        next: 0,
        waiting: Fifo::new(),
    };
    let direction = DirectionConfig::instant(0).with_queue(ticker);
    let line = Line::new(1, vec![direction], burst(MS, 6, 80)).run(SECOND);
    // Packet 0 is sent immediately; of the other five, the two oldest are dropped.
    let expected = [(MS, 0), (10 * MS, 3), (20 * MS, 4), (30 * MS, 5)];
    assert_eq!(line.arrivals(), expected);
    assert_eq!(line.stats(0).dropped.count(DropReason::QueueFull), 2);
}

#[test]
fn an_outage_empties_a_queue_that_waits_for_its_time() {
    let ticker = Ticker {
        tick: 10 * MS,
        most: 9,
        next: 0,
        waiting: Fifo::new(),
    };
    let outage = Outage {
        from: 15 * MS,
        until: 16 * MS,
    };
    let direction = DirectionConfig::instant(0)
        .with_queue(ticker)
        .with_outages([outage]);
    let plan = burst(MS, 6, 80).chain([(17 * MS, 80)]);
    let line = Line::new(1, vec![direction], plan).run(SECOND);
    assert_eq!(line.arrivals(), [(MS, 0), (10 * MS, 1), (20 * MS, 6)]);
    assert_eq!(line.stats(0).dropped.count(DropReason::LinkDown), 4);
}

/// 1500 bytes take 6 ms at 2 Mbit/s and 12 ms at 1 Mbit/s. The rate is halved when 3 ms of the
/// third packet's 6 ms have passed.
#[test]
fn a_rate_may_change_while_a_packet_is_sent() {
    let rate = StepFunction::steps(2_000_000, [(15 * MS, 1_000_000)]).unwrap();
    let direction = DirectionConfig::instant(MS).with_rate(rate);
    let line = Line::new(1, vec![direction], burst(0, 4, 1480)).run(SECOND);
    let at: Vec<Nanos> = line.arrivals().iter().map(|arrival| arrival.0).collect();
    assert_eq!(at, [7 * MS, 13 * MS, 22 * MS, 34 * MS]);
    assert_eq!(line.stats(0).busy, 33 * MS);
}

#[test]
fn a_link_that_never_sends_is_refused() {
    let dead = StepFunction::steps(0, [(MS, 0)]).unwrap();
    let (topology, _, _) = common::chain(vec![DirectionConfig::instant(0).with_rate(dead)]);
    let error = World::new(topology, Seed::new(1, 0)).unwrap_err();
    assert_eq!(error, BuildError::ZeroRate("l0".into()));
}

/// At 10 ms the delay decreases from 20 to 5 ms, so a packet sent then could arrive before packets
/// sent up to 15 ms earlier.
#[test]
fn a_shorter_way_overtakes_only_where_it_may() {
    let delay = || TimeVarying::new(StepFunction::steps(20 * MS, [(10 * MS, 5 * MS)]).unwrap());
    let run = |allow_reordering| {
        let direction = DirectionConfig::instant(0).with_propagation(delay(), allow_reordering);
        let line = Line::new(1, vec![direction], every(5 * MS, 4, 80)).run(SECOND);
        line.arrivals().to_vec()
    };
    let kept = [(20, 0), (25, 1), (25, 2), (25, 3)];
    assert_eq!(run(false), kept.map(|(at, number)| (at * MS, number)));
    let overtaken = [(15, 2), (20, 0), (20, 3), (25, 1)];
    assert_eq!(run(true), overtaken.map(|(at, number)| (at * MS, number)));
}

#[test]
fn jitter_draws_from_its_own_stream() {
    let run = |seed, spread, allow_reordering| {
        let jitter = Jitter::new(ConstantDelay(10 * MS), spread);
        let direction = DirectionConfig::instant(0).with_propagation(jitter, allow_reordering);
        let line = Line::new(seed, vec![direction], every(MS, 2000, 80)).run(10 * SECOND);
        line.arrivals().to_vec()
    };
    let delays = |arrivals: &[(Nanos, u64)]| -> Vec<Nanos> {
        arrivals.iter().map(|&(at, n)| at - n * MS).collect()
    };
    let free = run(1, Spread::Uniform(4 * MS), true);
    let uniform = delays(&free);
    assert!(
        uniform
            .iter()
            .all(|delay| (10 * MS..14 * MS).contains(delay))
    );
    let mean = uniform.iter().sum::<Nanos>() / 2000;
    // The standard deviation of the mean is 4 ms / sqrt (12 * 2000) = 26 us.
    assert!(mean.abs_diff(12 * MS) < MS / 10, "{mean}");
    assert!(!free.is_sorted_by_key(|arrival| arrival.1), "some overtake");
    let kept = run(1, Spread::Uniform(4 * MS), false);
    assert!(kept.is_sorted_by_key(|arrival| arrival.1));
    assert!(kept.is_sorted(), "by time");
    assert_ne!(free, run(2, Spread::Uniform(4 * MS), true));
    let listed = delays(&run(1, Spread::Listed(vec![0, 7 * MS]), true));
    assert!(
        listed
            .iter()
            .all(|delay| [10 * MS, 17 * MS].contains(delay))
    );
    // As in netem, the random stream is named after the direction and contains only the draws of
    // this model.
    let mut rng = Seed::new(1, 0).stream("link l0 forward propagation");
    let mut drawn: Vec<_> = (0..2000u64)
        .map(|n| (n * MS + 10 * MS + rng.below(4 * MS), n))
        .collect();
    drawn.sort_unstable();
    assert_eq!(free, drawn);
}
