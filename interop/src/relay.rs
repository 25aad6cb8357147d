//! Relay: an impaired link between two UDP ports or two addresses. The emulator loses and reorders
//! packets like the simulator, but in real time.

use std::net::{IpAddr, SocketAddr};

use anabranch_emulate::{Carrier, Config, Emulator, Path};
use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    BuildError, DirectionConfig, DropTail, Impairments, LinkConfig, Loss, Packet, PlacedLoss,
    Probability, QueueLimit, Reordering, Rng, Seed, Topology, World,
};

/// Share of packets that are lost, from 0 to 1.
const LOST: f64 = 0.02;
/// Share of packets that are delayed and therefore reordered, from 0 to 1.
const LATE: f64 = 0.02;
/// Maximum additional delay of a reordered packet, nanoseconds.
const HELD_BACK: u64 = 2_000_000;
/// Delay of every packet, nanoseconds.
const DELAY: u64 = 100_000;

/// A running relay, which is stopped when it is dropped.
#[derive(Debug)]
pub struct Relay {
    emulator: Emulator,
}

/// Loss model that can exclude the last packet of an association.
struct Losses {
    losses: Bernoulli,
    /// Offset of the first chunk in a packet, bytes.
    header: usize,
    /// Whether SHUTDOWN COMPLETE, the last packet, is never lost.
    spares_the_last: bool,
}

/// Length of the UDP header, bytes.
const UDP_HEADER: usize = 8;
/// Length of the SCTP common header, bytes.
const COMMON_HEADER: usize = 12;
/// Chunk type of SHUTDOWN COMPLETE, which is sent without other chunks (RFC 9260 §6.10).
const SHUTDOWN_COMPLETE: u8 = 14;

impl Loss for Losses {
    fn takes(&mut self, at: u64, packet: &Packet, rng: &mut Rng) -> bool {
        let last = packet.bytes.get(self.header) == Some(&SHUTDOWN_COMPLETE);
        self.losses.takes(at, packet, rng) && !(last && self.spares_the_last)
    }
}

/// Addresses of a relay and of the accepting peer.
#[derive(Clone, Copy, Debug)]
pub struct RelayAddresses {
    /// Encapsulation of relayed packets: UDP, or SCTP directly over IP.
    pub carrier: Carrier,
    /// Address to which the connecting peer sends.
    pub listen: SocketAddr,
    /// Address of the relay that the accepting peer uses.
    pub from: IpAddr,
    /// Address of the accepting peer.
    pub to: SocketAddr,
    /// Whether SHUTDOWN COMPLETE, the last packet, is never lost.
    pub spares_the_last: bool,
}

impl Relay {
    /// Starts a relay in the network namespace of this thread.
    ///
    /// # Errors
    ///
    /// The emulator cannot be started.
    pub fn start(place: RelayAddresses, seed: u64) -> Result<Self, String> {
        let config = Config::new(place.listen, place.to).with(|it| {
            it.carrier = place.carrier;
            it.from = Some(place.from);
        });
        let emulator = Emulator::start(config, move || path(seed, place));
        let emulator = emulator.map_err(|error| format!("relay: {error}"))?;
        Ok(Self { emulator })
    }

    /// UDP port to which the peer at `to` must send; 0 for SCTP directly over IP.
    pub fn far_port(&self) -> u16 {
        self.emulator.far_port()
    }

    /// Number of datagrams received by the relay, and number of datagrams that it dropped.
    pub fn counts(&self) -> (u64, u64) {
        let report = self.emulator.report();
        (
            report.received.iter().sum(),
            report.dropped.total() + report.overrun,
        )
    }
}

fn path(seed: u64, place: RelayAddresses) -> Result<Path, BuildError> {
    let direction = || {
        let losses = Losses {
            losses: Bernoulli::new(LOST)?,
            header: match place.carrier {
                Carrier::Ip => COMMON_HEADER,
                _ => UDP_HEADER + COMMON_HEADER,
            },
            spares_the_last: place.spares_the_last,
        };
        let reordering = Reordering {
            probability: Probability::new(LATE)?,
            up_to: HELD_BACK,
        };
        let impairments = Impairments {
            reordering,
            ..Impairments::default()
        };
        Ok::<_, BuildError>(
            DirectionConfig::new(1_000_000_000, DELAY)
                .with_queue(DropTail::new(QueueLimit::Packets(2_000))?)
                .with_loss(PlacedLoss::before_queue(losses))
                .with_impairments(impairments),
        )
    };
    let mut topology = Topology::new();
    let near = topology.add_node("near")?;
    let far = topology.add_node("far")?;
    topology.add_link(LinkConfig {
        name: "link".to_owned(),
        between: [near, far],
        forward: direction()?,
        backward: direction()?,
    })?;
    let world = World::new(topology, Seed::new(seed, 0))?;
    Ok(Path { world, near, far })
}
