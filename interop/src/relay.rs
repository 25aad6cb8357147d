//! A bad link between two UDP ports: the simulator's loss and reordering in real time, by the emulator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_emulate::{Config, Emulator, Framing, Path};
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
    calm: Arc<AtomicBool>,
}

/// Losses that can be told to end.
struct UntilCalm {
    losses: Bernoulli,
    calm: Arc<AtomicBool>,
}

impl Loss for UntilCalm {
    fn takes(&mut self, at: u64, packet: &Packet, rng: &mut Rng) -> bool {
        self.losses.takes(at, packet, rng) && !self.calm.load(Ordering::Relaxed)
    }
}

impl Relay {
    /// Starts relaying what comes to `listen` to `to`, and back, in the network of this thread.
    ///
    /// # Errors
    ///
    /// The emulator does not start.
    pub fn start(listen: SocketAddr, to: SocketAddr, seed: u64) -> Result<Self, String> {
        let calm = Arc::new(AtomicBool::new(false));
        let losses_end = calm.clone();
        let config = Config {
            listen,
            to,
            framing: Framing::Udp,
        };
        let emulator = Emulator::start(config, move || path(seed, &losses_end));
        let emulator = emulator.map_err(|error| format!("relay: {error}"))?;
        Ok(Self { emulator, calm })
    }

    /// The UDP port that the peer at `to` sees.
    pub fn far_port(&self) -> u16 {
        self.emulator.far_port()
    }

    /// Loses nothing any more.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
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

fn path(seed: u64, calm: &Arc<AtomicBool>) -> Result<Path, BuildError> {
    let direction = || {
        let losses = UntilCalm {
            losses: Bernoulli::new(LOST)?,
            calm: calm.clone(),
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
