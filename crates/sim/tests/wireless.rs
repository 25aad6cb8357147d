//! Tests of wireless links in a world, with an access point between a wired link and its stations.

use crate::common;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use anabranch_sim::wifi::{AntennaPosition, ParameterError, WifiParameters};
use anabranch_sim::{
    AddressFamily, AgentId, Attachment, BuildError, DirectionConfig, DropReason, LinkConfig,
    LinkDirection, LinkId, LinkProbe, LinkProbes, LinkSample, MediumConfig, MediumId, NodeId,
    Packet, PacketTap, Seed, Topology, World,
};
use anabranch_transport::{Nanos, Path};
use common::{MS, PORT, PROTOCOL, SECOND, Sender, Sink, burst, every};
use pcap_file::pcapng::{Block, PcapNgReader};

const US: Nanos = 1_000;
/// Payload of a packet that has 1500 bytes with its IP header.
const PAYLOAD: usize = 1480;
/// Propagation delay over 30 m, nanoseconds.
const LIGHT: Nanos = 100;
/// Air time of a data frame with 1500 bytes at 11 Mb/s according to the standard: 192 us for the
/// PLCP, and 1118 us for 1536 bytes.
const DATA: Nanos = 1310 * US;

/// `host - wire - ap`, with stations at given distances from the access point.
struct Cell {
    topology: Topology,
    host: NodeId,
    stations: Vec<NodeId>,
    ap: NodeId,
    medium: MediumId,
    links: Vec<LinkId>,
}

fn cell(parameters: WifiParameters, wire: Option<u64>, distances: &[f64]) -> Cell {
    let mut topology = Topology::new();
    let host = topology.add_node("host").unwrap();
    let ap = topology.add_node("ap").unwrap();
    let wired = || DirectionConfig {
        rate: wire.map(Into::into),
        ..DirectionConfig::instant(MS)
    };
    let wire = LinkConfig {
        name: "wire".into(),
        between: [host, ap],
        forward: wired(),
        backward: wired(),
    };
    topology.add_link(wire).unwrap();
    let medium = MediumConfig {
        name: "air".into(),
        parameters,
    };
    let medium = topology.add_medium(medium).unwrap();
    let place = |distance| AntennaPosition::new(distance, 0.0);
    topology.add_station(medium, ap, place(0.0)).unwrap();
    let (mut stations, mut links) = (Vec::new(), Vec::new());
    for (index, &distance) in distances.iter().enumerate() {
        let station = topology.add_node(format!("s{index}")).unwrap();
        topology
            .add_station(medium, station, place(distance))
            .unwrap();
        let link = topology.add_wireless_link(format!("air[{index}]"), [ap, station], medium);
        links.push(link.unwrap());
        stations.push(station);
    }
    Cell {
        topology,
        host,
        stations,
        ap,
        medium,
        links,
    }
}

/// A world in which `from` sends packets to `to` at the times of `plan`, and the receiving agent.
fn sending(
    topology: Topology,
    seed: u64,
    [from, to]: [NodeId; 2],
    plan: impl IntoIterator<Item = (Nanos, usize)>,
) -> (World, AgentId) {
    let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let path = Path::new(address(from), address(to));
    let mut world = World::new(topology, Seed::new(seed, 0)).unwrap();
    let at = |node, port| Attachment::new(node, PROTOCOL, port);
    let sink = world.attach(at(to, PORT), Sink::default()).unwrap();
    // The sender needs another port than the sink.
    let sender = Sender::new(path, plan);
    world.attach(at(from, PORT + 2), sender).unwrap();
    (world, sink)
}

fn arrivals(world: &World, sink: AgentId) -> Vec<(Nanos, u64)> {
    world.agent::<Sink>(sink).unwrap().arrivals.clone()
}

/// Parameters for behaviour of the thesis' ns-2 that 802.11b does not specify.
fn with_layers_above() -> WifiParameters {
    WifiParameters {
        link_layer_delay: 25 * US,
        routing_header: 20,
        ..WifiParameters::ieee80211b()
    }
}

#[test]
fn a_packet_from_the_wire_is_on_the_air_for_its_frame() {
    let cell = cell(WifiParameters::ieee80211b(), None, &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let (mut world, sink) = sending(cell.topology, 1, ends, burst(10 * MS, 1, PAYLOAD));
    world.run_until(SECOND).unwrap();
    // The packet takes 1 ms on the wire, after which the medium has been idle for longer than DIFS.
    assert_eq!(arrivals(&world, sink), [(11 * MS + DATA + LIGHT, 0)]);
    assert_eq!(world.progress().hops, 2);
    let stats = world
        .link_stats(cell.links[0], LinkDirection::Forward)
        .unwrap();
    assert_eq!((stats.offered.bytes, stats.delivered.bytes), (1500, 1500));
    assert_eq!((stats.busy, stats.longest_queue), (DATA, 1));
    assert_eq!(stats.sojourn, u128::from(DATA + LIGHT));
    let ap = world.station_stats(cell.medium, cell.ap).unwrap();
    let station = world.station_stats(cell.medium, ends[1]).unwrap();
    assert_eq!((ap.data_sent, ap.confirmed, station.acks_sent), (1, 1, 1));
    assert_eq!(world.station_stats(cell.medium, cell.host), None);
}

#[test]
fn the_layers_above_take_their_time_on_both_sides() {
    let cell = cell(with_layers_above(), None, &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let (mut world, sink) = sending(cell.topology, 1, ends, burst(10 * MS, 1, PAYLOAD));
    world.run_until(SECOND).unwrap();
    // The access point adds no header, because it did not originate the packet.
    assert_eq!(
        arrivals(&world, sink),
        [(11 * MS + DATA + LIGHT + 50 * US, 0)]
    );
}

#[test]
fn the_routing_header_of_a_station_stays_on_the_packet() {
    let cell = cell(with_layers_above(), Some(2_000_000), &[30.0]);
    let ends = [cell.stations[0], cell.host];
    let (mut world, sink) = sending(cell.topology, 1, ends, burst(10 * MS, 1, PAYLOAD));
    world.run_until(SECOND).unwrap();
    // 1520 bytes take 192 us and 1132 us (for 1556 bytes) on the air, and 6080 us and 1 ms on the
    // wire.
    let expected = 10 * MS + (1324 + 50) * US + LIGHT + 6080 * US + MS;
    assert_eq!(arrivals(&world, sink), [(expected, 0)]);
    assert_eq!(world.agent::<Sink>(sink).unwrap().bytes, PAYLOAD);
}

#[test]
fn stations_reach_each_other_through_the_access_point() {
    let cell = cell(WifiParameters::rafiq2007(), None, &[30.0, 60.0]);
    let ends = [cell.stations[0], cell.stations[1]];
    let (mut world, sink) = sending(cell.topology, 1, ends, every(10 * MS, 20, PAYLOAD));
    world.run_until(SECOND).unwrap();
    assert_eq!(arrivals(&world, sink).len(), 20);
    assert_eq!(world.progress().hops, 40);
    let forwarded = world.station_stats(cell.medium, cell.ap).unwrap();
    assert_eq!((forwarded.confirmed, forwarded.acks_sent), (20, 20));
}

#[test]
fn an_interface_holds_fifty_packets_of_all_its_links_together() {
    let cell = cell(WifiParameters::ieee80211b(), None, &[30.0, 60.0]);
    let (host, stations) = (cell.host, cell.stations.clone());
    let path_to = |topology: &Topology, to| {
        let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
        Path::new(address(host), address(to))
    };
    let other = path_to(&cell.topology, stations[1]);
    let (mut world, sink) = sending(cell.topology, 1, [host, stations[0]], burst(0, 30, PAYLOAD));
    let second = Attachment::new(host, PROTOCOL, PORT + 1);
    world
        .attach(second, Sender::new(other, burst(0, 30, PAYLOAD)))
        .unwrap();
    let other = Attachment::new(stations[1], PROTOCOL, PORT);
    let other = world.attach(other, Sink::default()).unwrap();
    world.run_until(SECOND).unwrap();
    assert_eq!(arrivals(&world, sink).len(), 30);
    assert_eq!(arrivals(&world, other).len(), 20);
    let ledger = world.packet_counts();
    ledger.check().unwrap();
    assert_eq!(ledger.dropped.count(DropReason::QueueFull), 10);
    let stats = world
        .link_stats(cell.links[1], LinkDirection::Forward)
        .unwrap();
    assert_eq!(stats.dropped.count(DropReason::QueueFull), 10);
    assert_eq!((stats.offered.packets, stats.longest_queue), (30, 20));
}

#[test]
fn unreceived_frames_are_abandoned_and_accounted_for() {
    // At 5 km the signal is far below the carrier-sense threshold.
    for rts_threshold in [2347, 0] {
        let parameters = WifiParameters {
            rts_threshold,
            ..WifiParameters::ieee80211b()
        };
        let cell = cell(parameters, None, &[5000.0]);
        let ends = [cell.host, cell.stations[0]];
        let (mut world, sink) = sending(cell.topology, 1, ends, burst(0, 5, PAYLOAD));
        world.run_until(10 * SECOND).unwrap();
        assert_eq!(arrivals(&world, sink), []);
        let ledger = world.packet_counts();
        ledger.check().unwrap();
        let given_up = ledger.dropped.count(DropReason::ShortRetryLimit);
        assert_eq!((given_up, ledger.in_flight), (5, 0));
        let ap = world.station_stats(cell.medium, cell.ap).unwrap();
        assert_eq!(ap.rts_sent + ap.data_sent, 5 * 7);
    }
}

#[test]
fn a_packet_longer_than_a_frame_carries_is_too_big() {
    let cell = cell(WifiParameters::ieee80211b(), None, &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let plan = [(0, 2276), (MS, 2277)]; // 2296 and 2297 bytes with the IP header
    let (mut world, sink) = sending(cell.topology, 1, ends, plan);
    world.run_until(SECOND).unwrap();
    assert_eq!(arrivals(&world, sink).len(), 1);
    assert_eq!(world.packet_counts().dropped.count(DropReason::TooBig), 1);
}

/// A world in which two stations and the host send simultaneously, on a medium with RTS and upper
/// layers.
fn busy(seed: u64) -> (World, Vec<AgentId>) {
    let cell = cell(WifiParameters::rafiq2007(), Some(5_000_000), &[84.0, 191.0]);
    let (host, stations) = (cell.host, cell.stations.clone());
    let ends = [host, stations[0]];
    let address = |node| {
        cell.topology
            .addresses(node, AddressFamily::V4)
            .next()
            .unwrap()
    };
    let back = |from| Path::new(address(from), address(host));
    let paths: Vec<Path> = stations.iter().map(|&station| back(station)).collect();
    let (mut world, first) = sending(cell.topology, seed, ends, every(3 * MS, 600, PAYLOAD));
    let mut sinks = vec![first];
    for (number, (&station, path)) in stations.iter().zip(paths).enumerate() {
        let source = Attachment::new(station, PROTOCOL, PORT + 1);
        let plan = every(4 * MS, 400, 200 + 1000 * number);
        world.attach(source, Sender::new(path, plan)).unwrap();
    }
    let host = Attachment::new(host, PROTOCOL, PORT);
    sinks.push(world.attach(host, Sink::default()).unwrap());
    (world, sinks)
}

#[test]
fn a_run_is_a_function_of_its_seed_and_its_ledger_balances_at_every_event() {
    let run = |seed| {
        let (mut world, sinks) = busy(seed);
        while world.step().unwrap() {
            world.packet_counts().check().unwrap();
        }
        assert_eq!(world.packet_counts().in_flight, 0);
        let all: Vec<_> = sinks.iter().map(|&sink| arrivals(&world, sink)).collect();
        (all, world.progress())
    };
    let (first, again, other) = (run(3), run(3), run(4));
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    assert!(first.0.iter().all(|arrivals| arrivals.len() > 200));
}

/// If the world is stepped, every edge of a frame is an event. In a long run undisturbed frames are
/// processed in one step, but count as the same number of events.
#[test]
fn a_run_is_the_same_event_by_event() {
    for seed in 0..20 {
        let [stepped, at_length, in_pieces] = [0, 1, 2].map(|way| {
            let (mut world, sinks) = busy(seed);
            match way {
                0 => while world.step().unwrap() {},
                1 => world.run_until(20 * SECOND).unwrap(),
                _ => (1..20_000).for_each(|piece| world.run_until(piece * MS).unwrap()),
            }
            let all: Vec<_> = sinks.iter().map(|&sink| arrivals(&world, sink)).collect();
            let links = world.topology().links();
            let of = |link| LinkDirection::BOTH.map(|way| world.link_stats(link, way).unwrap());
            let stats: Vec<_> = links.map(of).collect();
            (all, stats, world.packet_counts(), world.progress())
        });
        assert_eq!(stepped, at_length, "seed {seed}");
        assert_eq!(stepped, in_pieces, "seed {seed}");
    }
}

#[test]
fn probes_see_the_queue_the_drops_and_the_throughput_of_a_link() {
    let cell = cell(WifiParameters::rafiq2007(), None, &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let link = cell.links[0];
    let (mut world, sink) = sending(cell.topology, 1, ends, burst(0, 60, PAYLOAD));
    let probes = LinkProbes {
        throughput: Some(100 * MS),
        queue: true,
        drops: true,
        ..LinkProbes::default()
    };
    world.probe(link, LinkDirection::Forward, probes).unwrap();
    let samples = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&samples);
    world.set_recorder(Box::new(move |sample: LinkSample| {
        kept.borrow_mut().push(sample)
    }));
    world.run_until(SECOND).unwrap();
    world.finish().unwrap();
    let samples = samples.borrow();
    let of = |probe: LinkProbe| samples.iter().filter(move |sample| sample.probe == probe);
    let queue: Vec<f64> = of(LinkProbe::QueueLength).map(|s| s.value).collect();
    assert_eq!(queue.iter().copied().fold(0.0, f64::max), 50.0);
    assert_eq!((queue.len(), queue.last()), (100, Some(&0.0)));
    assert!(queue.windows(2).all(|w| (w[1] - w[0]).abs() == 1.0));
    assert_eq!(of(LinkProbe::Dropped(DropReason::QueueFull)).count(), 10);
    let bytes: f64 = of(LinkProbe::Throughput).map(|s| s.value * 0.1).sum();
    assert!((bytes - 50.0 * 1500.0).abs() < 1e-6, "{bytes}");
    assert_eq!(arrivals(&world, sink).len(), 50);
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_at_a_wireless_interface_shows_what_its_queue_took_and_what_arrived() {
    let cell = cell(with_layers_above(), None, &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let taps = [(cell.ap, cell.links[0]), (ends[1], cell.links[0])];
    let (mut world, _) = sending(cell.topology, 1, ends, burst(10 * MS, 1, PAYLOAD));
    let file = Shared::default();
    world.capture(Box::new(file.clone()), &taps).unwrap();
    world.run_until(SECOND).unwrap();
    world.finish().unwrap();
    let bytes = file.0.borrow();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let at = packet.timestamp.as_nanos() as Nanos;
            seen.push((at, packet.interface_id, packet.data.len()));
        }
    }
    let taken = 11 * MS + 25 * US;
    let arrived = taken + DATA + LIGHT + 25 * US;
    assert_eq!(seen, [(taken, 0, 1500), (arrived, 1, 1500)]);
}

/// Calls of a packet tap: time of delivery (`None` if sent), `sent`, and `departed`.
type Shown = Rc<RefCell<Vec<(Option<Nanos>, Nanos, Nanos)>>>;

struct Watch(Shown);

impl PacketTap for Watch {
    fn sent(&mut self, packet: &Packet) {
        let shown = (None, packet.sent, packet.departed);
        self.0.borrow_mut().push(shown);
    }

    fn delivered(&mut self, now: Nanos, packet: &Packet) {
        let shown = (Some(now), packet.sent, packet.departed);
        self.0.borrow_mut().push(shown);
    }
}

#[test]
fn a_watch_is_shown_when_packets_were_sent_and_departed() {
    // Packets of the host take 6 ms each on its wire, so the second departs when the first has
    // left.
    let cell = cell(WifiParameters::ieee80211b(), Some(2_000_000), &[30.0]);
    let ends = [cell.host, cell.stations[0]];
    let (mut world, _) = sending(cell.topology, 1, ends, burst(0, 2, PAYLOAD));
    let shown = Shown::default();
    world.set_tap(Box::new(Watch(Rc::clone(&shown))));
    world.run_until(SECOND).unwrap();
    let arrival = 7 * MS + DATA + LIGHT;
    let shown = shown.borrow();
    assert_eq!(shown[..2], [(None, 0, Nanos::MAX), (None, 0, Nanos::MAX)]);
    assert_eq!(shown[2], (Some(arrival), 0, 0));
    // The backoff after the first packet ended long before.
    assert_eq!(shown[3], (Some(arrival + 6 * MS), 0, 6 * MS));
}

#[test]
fn a_wireless_link_that_cannot_be_is_refused() {
    let mut topology = Topology::new();
    let [a, b] = ["a", "b"].map(|name| topology.add_node(name).unwrap());
    let config = |parameters| MediumConfig {
        name: "air".into(),
        parameters,
    };
    let wrong = WifiParameters {
        slot: 0,
        ..WifiParameters::ieee80211b()
    };
    assert_eq!(
        topology.add_medium(config(wrong)),
        Err(BuildError::Medium {
            medium: "air".into(),
            error: ParameterError::Positive("slot")
        })
    );
    let right = || config(WifiParameters::ieee80211b());
    let medium = topology.add_medium(right()).unwrap();
    assert_eq!(
        topology.add_medium(right()),
        Err(BuildError::DuplicateMedium("air".into()))
    );
    assert_eq!(topology.medium("air"), Some(medium));
    topology
        .add_station(medium, a, AntennaPosition::default())
        .unwrap();
    assert!(matches!(
        topology.add_station(medium, a, AntennaPosition::default()),
        Err(BuildError::StationTwice { node, .. }) if node == "a"
    ));
    assert!(matches!(
        topology.add_wireless_link("l", [a, b], medium),
        Err(BuildError::NoStation { node, .. }) if node == "b"
    ));
    assert_eq!(topology.links().len(), 0);
    let nowhere = AntennaPosition::new(f64::NAN, 0.0);
    topology.add_station(medium, b, nowhere).unwrap();
    assert!(matches!(
        World::new(topology, Seed::new(1, 0)),
        Err(BuildError::Medium {
            error: ParameterError::Position,
            ..
        })
    ));
}
