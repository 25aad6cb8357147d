//! Sockets that several endpoints share.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::config::Config;
use crate::driver::{Driver, NewEndpoints};
use crate::driver_shared::DriverShared;
use crate::endpoint_driver::EndpointDriver;
use crate::error::BindError;
use crate::runtime::{self, Runtime};
use crate::shard_group::ShardHandle;
use crate::socket::{PacketSocket, Sockets};

/// Sockets for several endpoints with different SCTP ports: one UDP port carries all SCTP ports of
/// a host (RFC 6951 §5.1). A packet goes to the endpoint that has its destination port. Over UDP,
/// packets to unused ports are answered as RFC 9260 §8.4 requires for packets without an
/// association.
///
/// Clones are handles of the same sockets. The sockets are closed after every handle was dropped
/// and every endpoint on them has ended.
///
/// ```no_run
/// use anabranch_net::{Config, Endpoint, SharedSockets};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let sockets = SharedSockets::open(&Config::server(0))?; // UDP port 9899
/// let echo = Endpoint::bind_with(Config::server(7), &sockets)?;
/// let discard = Endpoint::bind_with(Config::server(9), &sockets)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SharedSockets {
    driver_shared: Arc<DriverShared>,
    joining: NewEndpoints,
}

impl SharedSockets {
    /// Opens the sockets that `config` specifies (its carrier, addresses, `socket_buffer` and
    /// `offload`) and starts their task on the runtime in `config`, or on the current runtime if
    /// there is none.
    ///
    /// # Errors
    /// A setting is invalid, a socket cannot be opened or bound, or there is no runtime.
    pub fn open(config: &Config) -> Result<Self, BindError> {
        Self::in_group(config, None, |runtime| Sockets::open(config, &**runtime))
    }

    /// Like [`SharedSockets::open`], on sockets that `open` returns. If `shard_handle` is given,
    /// the sockets belong to a shard group.
    pub(crate) fn in_group(
        config: &Config,
        shard_handle: Option<ShardHandle>,
        open: impl FnOnce(&Arc<dyn Runtime>) -> Result<Sockets, BindError>,
    ) -> Result<Self, BindError> {
        let runtime = Self::checked(config)?;
        let sockets = open(&runtime)?;
        Ok(Self::start(
            DriverShared::new(config, runtime, sockets),
            shard_handle,
        ))
    }

    /// Like [`SharedSockets::on_packets`]. If `shard_handle` is given, the sockets belong to a
    /// shard group.
    pub(crate) fn given_in_group(
        config: &Config,
        shard_handle: Option<ShardHandle>,
        sockets: Vec<Box<dyn PacketSocket>>,
    ) -> Result<Self, BindError> {
        let runtime = Self::checked(config)?;
        Self::start_given(
            runtime,
            config,
            shard_handle,
            Sockets::from_caller(sockets, config),
        )
    }

    /// Like [`SharedSockets::open`], on UDP sockets that the application has bound (for example
    /// with special options) or got from another process. The carrier in `config` specifies the
    /// encapsulation on them; its addresses and `socket_buffer` are ignored. With
    /// [`Carrier::Ip`](crate::Carrier::Ip) the sockets are raw sockets of protocol 132 (`std` has
    /// no type for raw sockets: create one by `UdpSocket::from(OwnedFd)`).
    ///
    /// Sockets for further addresses are not opened later
    /// ([`Association::change_addresses`](crate::Association::change_addresses)).
    ///
    /// # Errors
    /// There is no socket, a setting is invalid, the system returned an error for a socket, or
    /// there is no runtime.
    pub fn on_udp(config: &Config, sockets: Vec<std::net::UdpSocket>) -> Result<Self, BindError> {
        let runtime = Self::checked(config)?;
        let sockets = Sockets::adopt(sockets, config, &*runtime)?;
        Self::start_given(runtime, config, None, sockets)
    }

    /// Like [`SharedSockets::open`], on packet sockets of the application. `addresses`,
    /// `socket_buffer`, `offload` and `dscp` in `config` are ignored; its carrier determines the
    /// size of headers, and whether packets have UDP ports.
    ///
    /// # Errors
    /// There is no socket, a setting is invalid, or there is no runtime.
    pub fn on_packets(
        config: &Config,
        sockets: Vec<Box<dyn PacketSocket>>,
    ) -> Result<Self, BindError> {
        Self::given_in_group(config, None, sockets)
    }

    fn checked(config: &Config) -> Result<Arc<dyn Runtime>, BindError> {
        config.check_sockets()?;
        runtime_of(config, runtime::current)
    }

    fn start_given(
        runtime: Arc<dyn Runtime>,
        config: &Config,
        shard_handle: Option<ShardHandle>,
        sockets: Sockets,
    ) -> Result<Self, BindError> {
        let local = sockets.locals();
        if local.is_empty() {
            return Err(BindError::Config(
                "found no socket; at least one is needed".to_owned(),
            ));
        }
        let mut addresses: Vec<IpAddr> = local.iter().map(SocketAddr::ip).collect();
        if addresses.iter().any(IpAddr::is_unspecified) {
            addresses.clear();
        }
        let config = config.clone().with(|it| it.addresses = addresses);
        config.check_sockets()?;
        Ok(Self::start(
            DriverShared::from_caller(&config, runtime, sockets),
            shard_handle,
        ))
    }

    fn start(driver_shared: DriverShared, shard_handle: Option<ShardHandle>) -> Self {
        let driver_shared = Arc::new(driver_shared.in_group(shard_handle));
        let joining = NewEndpoints::default();
        let driver = Driver::new(Arc::clone(&driver_shared), joining.clone());
        driver_shared.clock.runtime().spawn(Box::pin(driver));
        Self {
            driver_shared,
            joining,
        }
    }

    /// The local addresses with their UDP ports (0 over raw IP); an unspecified address means all
    /// addresses of its family.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.driver_shared.local
    }

    /// The UDP port; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.driver_shared.local.first().map_or(0, SocketAddr::port)
    }

    pub(crate) fn driver_shared(&self) -> &Arc<DriverShared> {
        &self.driver_shared
    }

    /// Passes an endpoint to the driver. Returns `false` if the driver has ended.
    pub(crate) fn join(&self, port: EndpointDriver) -> bool {
        self.driver_shared.join(|| self.joining.push(port))
    }
}

/// The runtime for the task of the sockets: that in the settings, or else the current one.
fn runtime_of(
    config: &Config,
    current: impl FnOnce() -> Option<Arc<dyn Runtime>>,
) -> Result<Arc<dyn Runtime>, BindError> {
    let named = config.runtime.clone();
    named.or_else(current).ok_or(BindError::NoRuntime)
}

impl Clone for SharedSockets {
    fn clone(&self) -> Self {
        self.driver_shared.add_handle();
        Self {
            driver_shared: Arc::clone(&self.driver_shared),
            joining: self.joining.clone(),
        }
    }
}

impl Drop for SharedSockets {
    fn drop(&mut self) {
        self.driver_shared.drop_handle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_runtime_there_is_no_endpoint() {
        let none = runtime_of(&Config::default(), || None);
        assert!(matches!(none, Err(BindError::NoRuntime)));
        let named = Config::default().with(|it| it.runtime = runtime::current());
        assert!(runtime_of(&named, || None).is_ok(), "it is named");
    }
}
