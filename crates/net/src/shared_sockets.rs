//! Sockets that several endpoints use.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::config::Config;
use crate::driver::Driver;
use crate::error::BindError;
use crate::ground::Ground;
use crate::socket::Sockets;

/// Sockets for several endpoints, each with an SCTP port of its own: one UDP port carries all SCTP ports of a host
/// (RFC 6951 §5.1). Packets go to the endpoint that has their destination port; over UDP those for ports that nobody has
/// are answered as RFC 9260 §8.4 says of packets that belong to no association.
///
/// Clones are handles of the same sockets. The sockets are closed when every handle is dropped and every endpoint on them
/// has ended.
///
/// ```no_run
/// use anabranch_net::{Config, Endpoint, SharedSockets};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let sockets = SharedSockets::open(&Config::server(0))?; // UDP port 9899
/// let echo = Endpoint::bind_on(&sockets, Config::server(7))?;
/// let discard = Endpoint::bind_on(&sockets, Config::server(9))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SharedSockets {
    ground: Arc<Ground>,
}

impl SharedSockets {
    /// Opens the sockets that `config` asks for (its carrier, addresses, `socket_buffer` and `offload`) and starts their task
    /// on the current tokio runtime.
    ///
    /// # Errors
    /// A setting that cannot be used, a socket that cannot be opened or bound, or no runtime.
    pub fn open(config: &Config) -> Result<Self, BindError> {
        config.check_sockets()?;
        let runtime = Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let sockets = Sockets::open(config)?;
        let local = sockets.iter().map(|socket| socket.local()).collect();
        let ground = Arc::new(Ground::new(config, local));
        runtime.spawn(Driver::new(Arc::clone(&ground), sockets));
        Ok(Self { ground })
    }

    /// The local addresses with their UDP ports (0 over raw IP); an unspecified address stands for all of its family.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.ground.local
    }

    /// The UDP port; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.ground.local.first().map_or(0, SocketAddr::port)
    }

    pub(crate) fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }
}

impl Clone for SharedSockets {
    fn clone(&self) -> Self {
        self.ground.add_handle();
        Self {
            ground: Arc::clone(&self.ground),
        }
    }
}

impl Drop for SharedSockets {
    fn drop(&mut self) {
        self.ground.drop_handle();
    }
}
