//! Benchmark of the cost of a packet per link: a million packets from a sender without a transport
//! cross two hops to a sink that discards them. Prints nanoseconds per packet and hop, excluding
//! the generation of the packets. With `air` the second hop leads from an 802.11b access point to
//! one of two stations, protected by RTS and CTS.
//!
//! ```sh
//! cargo run --release -p anabranch-sim --example packet_hops [packets] [payload bytes] [air]
//! ```

use anabranch_sim::loss::Bernoulli;
use anabranch_sim::wifi::{AntennaPosition, WifiParameters};
use anabranch_sim::{
    AddressFamily, Agent, Attachment, DirectionConfig, DropTail, LinkConfig, MediumConfig, NodeId,
    PlacedLoss, QueueLimit, Seed, Topology, World,
};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

const PROTOCOL: u8 = 253;
const PORT: u16 = 7;

/// Sends a packet at regular intervals.
struct Sender {
    path: Path,
    interval: Nanos,
    payload: usize,
    left: u64,
    next: Nanos,
}

impl Agent for Sender {
    fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {}

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        (self.next <= now && self.left > 0).then(|| self.write(out))
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        (self.left > 0).then_some(self.next)
    }
}

impl Sender {
    /// Writes the packet in a function separate from the check whether a packet is due, as in a
    /// transport.
    #[inline(never)]
    fn write(&mut self, out: &mut BytesMut) -> Transmit {
        self.left -= 1;
        self.next += self.interval;
        // Both ports are `PORT`; all other bytes are zero.
        let [high, low] = PORT.to_be_bytes();
        out.resize(self.payload, 0);
        out[..4].copy_from_slice(&[high, low, high, low]);
        Transmit {
            path: self.path,
            len: self.payload,
            ecn: Ecn::NotEct,
            may_fragment: false,
        }
    }
}

/// Counts the packets that it receives.
#[derive(Default)]
struct Sink {
    packets: u64,
}

impl Agent for Sink {
    fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {
        self.packets += 1;
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, _now: Nanos, _out: &mut BytesMut) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

/// A world of two hops. The second hop is a satellite link (10 Mbit/s, 250 ms, a queue of 50
/// packets, 1.5 % loss) or a wireless link.
fn world(packets: u64, payload: usize, air: bool) -> Result<World, Box<dyn std::error::Error>> {
    let mut topology = Topology::new();
    let nodes = ["source", "router", "destination"].map(|name| topology.add_node(name));
    let [source, router, destination] = nodes;
    let (source, router, destination) = (source?, router?, destination?);
    let access = DirectionConfig::new(100_000_000, 2_000_000);
    wire(&mut topology, "access", [source, router], access)?;
    if air {
        cell(&mut topology, router, destination)?;
    } else {
        let queue = DropTail::new(QueueLimit::Packets(50))?;
        let satellite = DirectionConfig::new(10_000_000, 250_000_000)
            .with_queue(queue)
            .with_loss(PlacedLoss::before_queue(Bernoulli::new(0.015)?));
        wire(&mut topology, "satellite", [router, destination], satellite)?;
    }
    let address = |node| topology.addresses(node, AddressFamily::V4).next();
    let (local, remote) = (address(source), address(destination));
    let path = Path::new(local.ok_or("no address")?, remote.ok_or("no address")?);
    // The sender's rate is slightly below that of the satellite link, and far below that of the
    // medium.
    let bits = (payload as u64 + 20) * 8;
    let interval = bits * if air { 400 } else { 100 } + 1;
    let sender = Sender {
        path,
        interval,
        payload,
        left: packets,
        next: 0,
    };
    let mut world = World::new(topology, Seed::new(1, 0))?;
    world.attach(
        Attachment::new(destination, PROTOCOL, PORT),
        Sink::default(),
    )?;
    world.attach(Attachment::new(source, PROTOCOL, PORT), sender)?;
    Ok(world)
}

fn wire(
    topology: &mut Topology,
    name: &str,
    between: [NodeId; 2],
    forward: DirectionConfig,
) -> Result<(), Box<dyn std::error::Error>> {
    topology.add_link(LinkConfig {
        name: name.into(),
        between,
        forward,
        backward: DirectionConfig::instant(0),
    })?;
    Ok(())
}

/// A wireless cell: an access point, the destination station, and another station that overhears
/// the packets.
fn cell(
    topology: &mut Topology,
    access_point: NodeId,
    station: NodeId,
) -> Result<(), Box<dyn std::error::Error>> {
    let parameters = WifiParameters::rafiq2007();
    let name = "air".into();
    let medium = topology.add_medium(MediumConfig { name, parameters })?;
    let bystander = topology.add_node("bystander")?;
    for (node, x) in [(access_point, 0.0), (station, 80.0), (bystander, 190.0)] {
        topology.add_station(medium, node, AntennaPosition::new(x, 0.0))?;
    }
    topology.add_wireless_link("near", [access_point, station], medium)?;
    topology.add_wireless_link("far", [access_point, bystander], medium)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let packets = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let payload = arguments
        .next()
        .map_or(Ok(1480), |n| n.parse::<usize>())?
        .max(4);
    let air = arguments.next().is_some_and(|word| word == "air");
    let mut world = world(packets, payload, air)?;
    #[allow(clippy::disallowed_methods)] // A benchmark measures time.
    let begin = std::time::Instant::now();
    while let Some(at) = world.next_event() {
        world.run_until(at + 1_000_000_000)?;
    }
    let spent = begin.elapsed().as_nanos() as f64;
    world.packet_counts().check()?;
    let progress = world.progress();
    println!(
        "{} packets of {payload} bytes, {} hops, {} events, {:.0} simulated seconds: {:.1} ns per packet and hop, \
         {:.1} ns per event",
        progress.sent,
        progress.hops,
        progress.events,
        world.now() as f64 / 1e9,
        spent / progress.hops as f64,
        spent / progress.events as f64,
    );
    Ok(())
}
