//! Shards: endpoints on several cores that are one endpoint to their peers.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::{Carrier, Config};
use crate::endpoint::Endpoint;
use crate::error::BindError;
use crate::random::dynamic_port;
use crate::runtime::Runtime;
use crate::shard_group::ShardHandle;
use crate::shared_sockets::SharedSockets;
use crate::socket::{Bound, PacketSocket, Sockets, bind_shared};

/// Maximum number of shards in a group, because more cores would mostly pass packets to each other.
const MAX_SHARDS: usize = 256;

/// One of several endpoints that appear as one endpoint to their peers, before it is bound. All
/// shards have the same SCTP port at the same addresses and UDP port, and each has its own sockets,
/// task and associations. A single endpoint has one task, and therefore uses one core; a group uses
/// one core for each shard, and each association runs on one core.
///
/// A shard is moved to its thread, and bound on that thread. To peers the group is one endpoint,
/// which has one association with each peer (RFC 9260 §1.2), on the shard that received the peer's
/// INIT; each shard accepts its own associations. The application should therefore accept
/// associations on all shards, and `max_associations`, `backlog`, `undecided` and statistics are
/// per shard. [`Endpoint::connect`] starts an association on its own shard. Addresses
/// ([`Endpoint::change_addresses`]) are changed on each shard. If one shard is closed or its
/// runtime ends, the others continue, but the system still delivers peers to the closed shard,
/// which refuses them as long as it has associations. Therefore close all shards together.
///
/// Each shard draws verification tags of one residue class, so that the system (Linux) can give
/// packets to its socket: at least 2^32 / count - 1 different tags, which makes guessing a tag
/// easier than with RFC 9260 §5.3.1 by a factor of `count`. Packets that another shard's socket
/// receives all the same are handed over
/// ([`EndpointStatistics::packets_handed_over`](crate::EndpointStatistics::packets_handed_over)),
/// which only costs more.
///
/// ```no_run
/// # #[cfg(all(feature = "thread", target_os = "linux"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anabranch_net::{Config, Shard, ThreadRuntime};
///
/// let shards = Shard::open(&Config::server(5001), 4)?;
/// let threads = shards.into_iter().map(|shard| {
///     std::thread::spawn(move || {
///         let runtime = ThreadRuntime::new().expect("a runtime");
///         runtime.block_on(async {
///             let server = shard.bind().expect("a port");
///             while let Ok(association) = server.accept().await {
///                 // ...
/// #               drop(association);
///             }
///         });
///     })
/// });
/// for thread in threads.collect::<Vec<_>>() {
///     thread.join().expect("no panic");
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "thread", target_os = "linux")))]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Shard {
    config: Config,
    carries: ShardSockets,
    local: Vec<SocketAddr>,
    /// `None`: the endpoint is not a shard of a group.
    shard_handle: Option<ShardHandle>,
}

/// The sockets of the shard.
enum ShardSockets {
    Bound(Vec<Bound>),
    Given(Vec<Box<dyn PacketSocket>>),
}

impl std::fmt::Debug for ShardSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bound(_) => "Bound",
            Self::Given(_) => "Given",
        })
    }
}

impl Shard {
    /// Opens the sockets of `count` shards by `config`. A single shard is like [`Endpoint::bind`]
    /// without shards.
    ///
    /// # Errors
    /// A setting that cannot be used, or a socket that cannot be opened or bound. Several shards
    /// require UDP, because each raw socket gets every packet, and Linux.
    pub fn open(config: &Config, count: usize) -> Result<Vec<Self>, BindError> {
        if count > 1 && config.carrier == Carrier::Ip {
            return Err(BindError::Config(format!(
                "found {count} shards directly over IP, where each of their sockets gets every packet; allowed there: 1, or inside UDP 1 to {MAX_SHARDS}"
            )));
        }
        if count > 1 && !cfg!(target_os = "linux") {
            return Err(BindError::Config(format!(
                "found {count} shards; only Linux spreads packets over them: allowed here: 1"
            )));
        }
        let config = with_port(config, count)?;
        let all = bind_shared(&config, count as u32)?;
        let all = all.into_iter().map(ShardSockets::Bound);
        Ok(Self::with_seats(&config, all.collect()))
    }

    /// Like [`Shard::open`], on packet sockets of the caller: one shard for each list of them. A
    /// packet may arrive at any shard. See [`SharedSockets::on_packets`].
    ///
    /// # Errors
    /// No list, or a setting that cannot be used.
    pub fn on_packets(
        config: &Config,
        sockets: Vec<Vec<Box<dyn PacketSocket>>>,
    ) -> Result<Vec<Self>, BindError> {
        let config = with_port(config, sockets.len())?;
        let all = sockets.into_iter().map(ShardSockets::Given);
        Ok(Self::with_seats(&config, all.collect()))
    }

    fn with_seats(config: &Config, all: Vec<ShardSockets>) -> Vec<Self> {
        let mut seats = ShardHandle::all(all.len() as u32);
        // A single shard has no other shard to hand packets to.
        let several = seats.len() > 1;
        let seats = seats
            .drain(..)
            .map(|shard_handle| several.then_some(shard_handle));
        let shard = |(carries, shard_handle): (ShardSockets, Option<ShardHandle>)| Self {
            config: config.clone(),
            local: match &carries {
                ShardSockets::Bound(bound) => bound.iter().map(Bound::local).collect(),
                ShardSockets::Given(given) => given.iter().map(|it| it.local_addr()).collect(),
            },
            carries,
            shard_handle,
        };
        all.into_iter().zip(seats).map(shard).collect()
    }

    /// Number in the group, counted from 0.
    pub fn number(&self) -> usize {
        self.shard_handle
            .as_ref()
            .map_or(0, |shard_handle| shard_handle.number() as usize)
    }

    /// The SCTP port.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// The local addresses with their UDP ports; an unspecified address stands for all of its
    /// family.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Binds the endpoint, on the runtime in the settings, or else on the current runtime.
    ///
    /// # Errors
    /// A setting that cannot be used, or no runtime.
    pub fn bind(self) -> Result<Endpoint, BindError> {
        let config = self.config.clone();
        Endpoint::bind_with(config, &self.start()?)
    }

    /// Starts the task of the sockets, for endpoints with several SCTP ports: see
    /// [`Endpoint::bind_with`]. Each port must be bound on every shard of the group, with the same
    /// settings. Until then packets wait in the sockets.
    ///
    /// # Errors
    /// A setting that cannot be used, or no runtime.
    pub fn start(self) -> Result<SharedSockets, BindError> {
        let Self {
            config,
            carries,
            shard_handle,
            ..
        } = self;
        match carries {
            ShardSockets::Bound(bound) => {
                let watched =
                    |runtime: &Arc<dyn Runtime>| Sockets::watched(bound, &config, &**runtime);
                SharedSockets::in_group(&config, shard_handle, watched)
            }
            ShardSockets::Given(given) => {
                SharedSockets::given_in_group(&config, shard_handle, given)
            }
        }
    }
}

/// The settings with an SCTP port, which all shards share.
fn with_port(config: &Config, count: usize) -> Result<Config, BindError> {
    if !(1..=MAX_SHARDS).contains(&count) {
        return Err(BindError::Config(format!(
            "found {count} shards; allowed: 1 to {MAX_SHARDS}"
        )));
    }
    config.check()?;
    config.check_sockets()?;
    let port = match config.port {
        0 => dynamic_port(|_| true)?.ok_or(BindError::NoFreePort)?,
        port => port,
    };
    Ok(config.clone().with(|it| it.port = port))
}
