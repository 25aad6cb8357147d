//! A bad link between two UDP ports, or two addresses: the simulator's loss and reordering in real time, by the emulator.

use std::net::{IpAddr, SocketAddr};

use anabranch_emulate::{Carrier, Config, Emulator, Path};
use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    BuildError, DirectionConfig, DropTail, Impairments, Limit, LinkConfig, Loss, Packet,
    PlacedLoss, Probability, Reordering, Rng, Seed, Topology, World,
};

/// Of all packets, how many are lost.
const LOST: f64 = 0.02;
/// Of all packets, how many are held back, so that later ones overtake them.
const LATE: f64 = 0.02;
/// How long such a packet is held back at most, nanoseconds.
const HELD_BACK: u64 = 2_000_000;
/// How long every packet takes, nanoseconds.
const DELAY: u64 = 100_000;

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    emulator: Emulator,
}

/// Losses that may spare the last packet of an association.
struct Losses {
    losses: Bernoulli,
    /// Where the first chunk begins.
    header: usize,
    /// The last packet of all, SHUTDOWN COMPLETE, always arrives.
    spares_the_last: bool,
}

/// Bytes of the UDP header.
const UDP_HEADER: usize = 8;
/// Bytes of SCTP's common header.
const COMMON_HEADER: usize = 12;
/// SHUTDOWN COMPLETE, which travels alone (RFC 9260 §6.10).
const SHUTDOWN_COMPLETE: u8 = 14;

impl Loss for Losses {
    fn takes(&mut self, at: u64, packet: &Packet, rng: &mut Rng) -> bool {
        let last = packet.bytes.get(self.header) == Some(&SHUTDOWN_COMPLETE);
        self.losses.takes(at, packet, rng) && !(last && self.spares_the_last)
    }
}

/// Where a relay stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// UDP, or SCTP directly over IP.
    pub carrier: Carrier,
    /// Where the connecting peer sends to.
    pub listen: SocketAddr,
    /// The address that the accepting peer sees.
    pub from: IpAddr,
    /// Where the accepting peer is.
    pub to: SocketAddr,
    /// The last packet of all, SHUTDOWN COMPLETE, always arrives.
    pub spares_the_last: bool,
}

impl Relay {
    /// Starts relaying, in the network of this thread.
    ///
    /// # Errors
    ///
    /// The emulator does not start.
    pub fn start(place: Place, seed: u64) -> Result<Self, String> {
        let config = Config::new(place.listen, place.to).with(|it| {
            it.carrier = place.carrier;
            it.from = Some(place.from);
        });
        let emulator = Emulator::start(config, move || path(seed, place));
        let emulator = emulator.map_err(|error| format!("relay: {error}"))?;
        Ok(Self { emulator })
    }

    /// The UDP port that the peer at `to` sees; 0 over IP.
    pub fn far_port(&self) -> u16 {
        self.emulator.far_port()
    }

    /// Datagrams that came, and how many of them were lost.
    pub fn counts(&self) -> (u64, u64) {
        let report = self.emulator.report();
        (
            report.received.iter().sum(),
            report.dropped.total() + report.overrun,
        )
    }
}

fn path(seed: u64, place: Place) -> Result<Path, BuildError> {
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
                .with_queue(DropTail::new(Limit::Packets(2_000))?)
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
