//! Conservation in random worlds. Each message is delivered once, intact and in order within its
//! stream, or the association reports a failure. For packets, sent + duplicated = delivered +
//! dropped + in flight at all times.
//!
//! Each world is determined by its seed, which a failure prints. To run and display a single world:
//! `CASE=7 cargo test -p anabranch-lab --test conservation -- --nocapture gentle`

mod agents;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use anabranch_sctp::{Endpoint, config, profile::Profile as SctpProfile};
use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    AddressFamily, Attachment, DirectionConfig, DropReason, DropTail, Impairments, LinkConfig,
    NodeId, Outage, PlacedLoss, Probability, QueueLimit, Reordering, Rng, Seed, Topology, World,
};
use anabranch_tcp::profile::WindowSize;
use anabranch_tcp::{Config as TcpConfig, Connection, Ports, Profile as TcpProfile};
use anabranch_transport::Path;
use anabranch_transport::time::{MILLISECOND, SECOND};

use agents::{Flow, Offer, SctpSink, SctpSource, Shared, TcpSink, TcpSource, secret};

/// Maximum probabilities of impairments, in thousandths.
#[derive(Clone, Copy)]
struct Weather {
    loss: u64,
    duplication: u64,
    corruption: u64,
    reordering: u64,
    /// Whether the link may be down for some seconds.
    outage: bool,
    /// Whether all messages must arrive, so that no failure is allowed.
    all_arrive: bool,
}

const GENTLE: Weather = Weather {
    loss: 20,
    duplication: 20,
    corruption: 10,
    reordering: 50,
    outage: false,
    all_arrive: true,
};
const ROUGH: Weather = Weather {
    loss: 120,
    duplication: 100,
    corruption: 60,
    reordering: 300,
    outage: true,
    all_arrive: false,
};
const HOPELESS: Weather = Weather {
    loss: 600,
    duplication: 100,
    corruption: 100,
    reordering: 300,
    outage: true,
    all_arrive: false,
};

fn chance(rng: &mut Rng, most: u64) -> Probability {
    Probability::new(rng.below(most + 1) as f64 / 1000.0).expect("below one")
}

fn direction(rng: &mut Rng, weather: Weather) -> DirectionConfig {
    let loss = Bernoulli::new(chance(rng, weather.loss).value()).expect("below one");
    let place = if rng.below(2) == 0 {
        PlacedLoss::before_queue(loss)
    } else {
        PlacedLoss::after_queue(loss)
    };
    let queue = DropTail::new(QueueLimit::Packets(6 + rng.below(60) as usize)).expect("some room");
    let outages = (weather.outage && rng.below(3) == 0).then(|| {
        let from = rng.below(20 * SECOND);
        Outage {
            from,
            until: from + 1 + rng.below(8 * SECOND),
        }
    });
    DirectionConfig::new(300_000 + rng.below(8_000_000), rng.below(120 * MILLISECOND))
        .with_queue(queue)
        .with_loss(place)
        .with_outages(outages)
        .with_impairments(Impairments {
            reordering: Reordering {
                probability: chance(rng, weather.reordering),
                up_to: 1 + rng.below(200 * MILLISECOND),
            },
            duplication: chance(rng, weather.duplication),
            corruption: chance(rng, weather.corruption),
        })
}

/// A random topology: a chain of one to four links, or two parallel links between two hosts.
fn topology(rng: &mut Rng, weather: Weather) -> (Topology, [NodeId; 2], bool) {
    let mut topology = Topology::new();
    let first = topology.add_node("n0").expect("a new name");
    let two_homes = rng.below(4) == 0;
    let links = if two_homes { 2 } else { 1 + rng.below(4) };
    let mut last = first;
    for number in 0..links {
        let side_by_side = two_homes && number > 0;
        let from = if side_by_side { first } else { last };
        let to = if side_by_side {
            last
        } else {
            topology
                .add_node(format!("n{}", number + 1))
                .expect("a new name")
        };
        let (mut forward, mut backward) = (direction(rng, weather), direction(rng, weather));
        // At most one link on a path flips bits. The checksum of TCP misses two opposite flips at
        // the same bit position of two words, which would occur for 1 of 33 pairs of flips. A
        // single flip is always detected.
        if number > 0 && !two_homes {
            forward.impairments.corruption = Probability::ZERO;
            backward.impairments.corruption = Probability::ZERO;
        }
        topology
            .add_link(LinkConfig {
                name: format!("l{number}"),
                between: [from, to],
                forward,
                backward,
            })
            .expect("a link");
        last = to;
    }
    (topology, [first, last], two_homes)
}

/// A world that is being simulated.
struct Case {
    world: World,
    rng: Rng,
    nodes: [NodeId; 2],
    two_homes: bool,
    flows: Vec<(Shared, bool)>,
}

impl Case {
    fn new(seed: u64, weather: Weather) -> Self {
        let mut rng = Seed::new(seed, 0).stream("case");
        let (topology, nodes, two_homes) = topology(&mut rng, weather);
        let world = World::new(topology, Seed::new(seed, 1)).expect("a world");
        let mut case = Self {
            world,
            rng,
            nodes,
            two_homes,
            flows: Vec::new(),
        };
        // The profile is selected by the seed, so that a few seeds cover all profiles.
        case.add_sctp(SctpProfile::NAMES[seed as usize % SctpProfile::NAMES.len()]);
        case.add_tcp(TcpProfile::NAMES[seed as usize % TcpProfile::NAMES.len()]);
        if case.rng.below(2) == 0 {
            let other = case.rng.below(SctpProfile::NAMES.len() as u64) as usize;
            case.add_sctp(SctpProfile::NAMES[other]);
        }
        case
    }

    /// Creates messages of up to `largest` bytes, and a few of up to `huge` bytes.
    fn offers(&mut self, streams: u16, largest: u64, huge: u64) -> Vec<Offer> {
        let rng = &mut self.rng;
        (0..40 + rng.below(120))
            .map(|_| Offer {
                stream: rng.below(streams.into()) as u16,
                unordered: rng.below(6) == 0,
                // Most messages fit in a packet; some need several packets.
                size: 4 + match rng.below(32) {
                    0 => rng.below(huge),
                    1..8 => rng.below(largest),
                    _ => rng.below(700),
                } as usize,
            })
            .collect()
    }

    fn ports(&self) -> [u16; 2] {
        let number = self.flows.len() as u16;
        [1000 + number, 2000 + number]
    }

    fn add_sctp(&mut self, profile: &str) {
        let rng = &mut self.rng;
        let streams = [1, 1, 4, 40][rng.below(4) as usize];
        let mut near =
            config::Config::new(SctpProfile::by_name(profile).expect("a profile")).with(|it| {
                it.mtu = 576 + rng.below(925) as usize;
                it.receive_buffer = 8_000 + rng.below(60_000) as u32;
                it.send_buffer = 30_000;
                it.delayed_sack = rng.below(2) == 0;
                it.bundling = rng.below(4) > 0;
                it.pack_messages = rng.below(2) == 0;
                it.data_with_cookie_echo = rng.below(2) == 0;
                it.outbound_streams = streams;
                it.scheduler = config::SchedulerKind::ALL[rng.below(6) as usize];
                it.association_max_retrans = 20;
                it.path_max_retrans = 10;
                it.max_init_retransmits = 20;
            });
        let mut far = near.clone();
        let addresses = self.nodes.map(|node| {
            self.world
                .topology()
                .addresses(node, AddressFamily::V4)
                .collect::<Vec<_>>()
        });
        let mut remote = addresses[1].clone();
        if self.two_homes {
            near.addresses.clone_from(&addresses[0]);
            far.addresses.clone_from(&addresses[1]);
        } else {
            remote.truncate(1);
        }
        far.partial_delivery_point = [None, None, Some(5_000)][rng.below(3) as usize];
        let in_parts = rng.below(2) == 0;
        let buffer = u64::from(near.receive_buffer);
        let secrets = [secret(&mut self.rng), secret(&mut self.rng)];
        let offers = self.offers(streams, buffer / 3, 3 * buffer);
        let [source, sink] = self.ports();
        let name = format!(
            "sctp {profile}, {streams} streams, {} messages",
            offers.len()
        );
        let flow = Flow::new(name, offers);
        let mut endpoint = Endpoint::new(far, sink, secrets[1]).expect("settings");
        endpoint.listen(true);
        let receiver = SctpSink {
            endpoint,
            in_parts,
            begun: Default::default(),
            flow: flow.clone(),
        };
        let endpoint = Endpoint::new(near, source, secrets[0]).expect("settings");
        let sender = SctpSource {
            endpoint,
            remote,
            port: sink,
            association: None,
            flow: flow.clone(),
        };
        let start = self.rng.below(2 * SECOND);
        self.world
            .attach(Attachment::new(self.nodes[1], 132, sink), receiver)
            .expect("free ports");
        self.world
            .attach(
                Attachment::new(self.nodes[0], 132, source).starting(start),
                sender,
            )
            .expect("free ports");
        self.flows.push((flow, true));
    }

    fn add_tcp(&mut self, profile: &str) {
        let rng = &mut self.rng;
        let config = TcpConfig::new(TcpProfile::by_name(profile).expect("a profile")).with(|it| {
            it.mss = 300 + rng.below(1160) as u16;
            it.receive_buffer = WindowSize::Bytes(8_000 + rng.below(60_000));
            it.send_buffer = 70_000;
        });
        let isns = [rng.bits() as u32, u32::MAX - rng.below(20_000) as u32];
        let offers = self.offers(1, 9_000, 9_000);
        let [local, remote] = self.ports();
        let address = |node| {
            self.world
                .topology()
                .addresses(node, AddressFamily::V4)
                .next()
                .expect("an address")
        };
        let path = Path::new(address(self.nodes[0]), address(self.nodes[1]));
        let flow = Flow::new(format!("tcp {profile}, {} writes", offers.len()), offers);
        let connection = Connection::listen(config.clone(), remote, isns[0]);
        let receiver = TcpSink {
            connection,
            flow: flow.clone(),
        };
        let connect = Some(Connection::connect(
            config,
            path,
            Ports { local, remote },
            isns[1],
        ));
        let sender = TcpSource {
            connect,
            connection: None,
            written: 0,
            flow: flow.clone(),
        };
        let start = self.rng.below(2 * SECOND);
        self.world
            .attach(Attachment::new(self.nodes[1], 6, remote), receiver)
            .expect("free ports");
        self.world
            .attach(
                Attachment::new(self.nodes[0], 6, local).starting(start),
                sender,
            )
            .expect("free ports");
        self.flows.push((flow, false));
    }

    /// Runs until no event is left. Checks the packet accounting after every event at first, and
    /// later at intervals.
    fn run(&mut self) {
        let mut events = 0_u64;
        while self.world.now() < 4_000_000 * SECOND && self.world.step().expect("it goes on") {
            events += 1;
            if events < 500 || events.is_multiple_of(61) {
                self.world
                    .packet_counts()
                    .check()
                    .unwrap_or_else(|error| panic!("at event {events}: {error}"));
            }
        }
    }

    fn check(&self, weather: Weather) {
        let ledger = self.world.packet_counts();
        ledger.check().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (self.world.next_event(), ledger.in_flight),
            (None, 0),
            "everything has come to an end"
        );
        let by_reason: u64 = DropReason::ALL
            .iter()
            .map(|&reason| ledger.dropped.count(reason))
            .sum();
        assert_eq!(
            by_reason,
            ledger.dropped.total(),
            "every drop has its reason"
        );
        for (flow, messages) in &self.flows {
            let flow = flow.borrow();
            let (came, of) = if *messages {
                (flow.received(), flow.offers.len())
            } else {
                (flow.bytes, flow.total_bytes())
            };
            println!(
                "  {}: {came} of {of}, {}",
                flow.name,
                flow.failed.as_deref().unwrap_or("closed")
            );
            assert!(
                flow.finished || flow.failed.is_some(),
                "{}: it ended, but nobody was told",
                flow.name
            );
            if flow.finished || weather.all_arrive {
                assert_eq!(
                    came, of,
                    "{}: closed in good order, but something is missing",
                    flow.name
                );
            }
            if weather.all_arrive {
                assert!(
                    flow.finished,
                    "{}: it failed in gentle weather: {:?}",
                    flow.name, flow.failed
                );
            }
        }
    }
}

fn case(seed: u64, weather: Weather) {
    println!("CASE={seed}");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut case = Case::new(seed, weather);
        case.run();
        case.check(weather);
    }));
    if let Err(panic) = outcome {
        eprintln!(
            "the world of CASE={seed} failed; `CASE={seed} cargo test -p anabranch-lab --test conservation` runs it alone"
        );
        resume_unwind(panic);
    }
}

fn cases(seeds: std::ops::Range<u64>, weather: Weather) {
    match std::env::var("CASE") {
        Ok(seed) => case(seed.parse().expect("CASE=number"), weather),
        Err(_) => seeds.for_each(|seed| case(seed, weather)),
    }
}

#[test]
fn gentle_weather() {
    cases(0..24, GENTLE);
}

#[test]
fn rough_weather() {
    cases(1000..1024, ROUGH);
}

#[test]
fn hopeless_weather() {
    cases(2000..2012, HOPELESS);
}
