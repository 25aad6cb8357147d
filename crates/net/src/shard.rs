//! Shards: several endpoints, each on its own core, that appear to peers as one endpoint.

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

/// Maximum number of shards in a group, because with more cores most packets would arrive at a
/// shard that has to pass them on.
const MAX_SHARDS: usize = 256;

/// One member of a group of endpoints that appear to their peers as a single endpoint, before it is
/// bound. All shards have the same SCTP port at the same addresses and UDP port, and each has its
/// own sockets, task and associations. A single endpoint has one task, and therefore uses one core;
/// a group uses one core for each shard, and each association runs on one core.
///
/// A shard is moved to its thread, and bound there. To peers the group is one endpoint, which has
/// one association with each peer (RFC 9260 §1.2), on the shard that received the peer's INIT. Each
/// shard accepts its own associations, so the application should accept associations on all shards;
/// `max_associations`, `backlog`, `undecided` and statistics are per shard. [`Endpoint::connect`]
/// starts an association on its own shard. Addresses ([`Endpoint::change_addresses`]) are changed
/// on each shard. All shards should be closed together: if one is closed or its runtime ends, the
/// others continue, but the system still delivers packets of new peers to the closed shard, which
/// refuses them as long as it has associations.
///
/// Each shard uses verification tags of one residue class modulo `count`, so that the system
/// (Linux) can select its socket by the tag. At least 2^32 / count - 1 tags remain, which makes
/// guessing a tag easier than with RFC 9260 §5.3.1 by a factor of `count`. A packet that still
/// arrives at another shard's socket is passed on, which costs time but has no other effect
/// ([`EndpointStatistics::packets_handed_over`](crate::EndpointStatistics::packets_handed_over)).
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
    /// Membership in a group of several shards; `None` for a single shard.
    shard_handle: Option<ShardHandle>,
}

/// The sockets of a shard before it is bound.
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
    /// Opens the sockets of `count` shards with the settings `config`. A single shard behaves like
    /// [`Endpoint::bind`].
    ///
    /// # Errors
    /// A setting is invalid, or a socket cannot be opened or bound. Several shards require Linux,
    /// and UDP because each raw socket receives every packet.
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

    /// Like [`Shard::open`], on packet sockets of the application: each list of sockets becomes one
    /// shard. Packets may arrive at any shard. See [`SharedSockets::on_packets`].
    ///
    /// # Errors
    /// There is no list of sockets, or a setting is invalid.
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
        // A single shard needs no group, because there is no other shard to pass packets to.
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

    /// Number of the shard in its group, counted from 0.
    pub fn number(&self) -> usize {
        self.shard_handle
            .as_ref()
            .map_or(0, |shard_handle| shard_handle.number() as usize)
    }

    /// The SCTP port.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// The local addresses with their UDP ports; an unspecified address means all addresses of its
    /// family.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Binds the endpoint on the runtime in the settings, or on the current runtime if there is
    /// none.
    ///
    /// # Errors
    /// A setting is invalid, or there is no runtime.
    pub fn bind(self) -> Result<Endpoint, BindError> {
        let config = self.config.clone();
        Endpoint::bind_with(config, &self.start()?)
    }

    /// Starts the task of the sockets, for endpoints with several SCTP ports: see
    /// [`Endpoint::bind_with`]. Each port must be bound on every shard of the group, with the same
    /// settings. Until then, packets wait in the socket buffers.
    ///
    /// # Errors
    /// A setting is invalid, or there is no runtime.
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

/// The settings with a definite SCTP port, which all shards share.
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
