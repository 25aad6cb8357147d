//! Sockets that several endpoints stand on.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::config::{Carrier, Config};
use crate::driver::Driver;
use crate::endpoint::any_port;
use crate::error::BindError;
use crate::port::Port;
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
        let ground = Arc::new(Ground {
            clock: Clock::start(),
            local: sockets.iter().map(|socket| socket.local()).collect(),
            carrier: config.carrier,
            addresses: config.addresses.clone(),
            state: Mutex::new(GroundState {
                handles: 1,
                ..GroundState::default()
            }),
        });
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

    pub(crate) fn ground(&self) -> &Ground {
        &self.ground
    }
}

impl Clone for SharedSockets {
    fn clone(&self) -> Self {
        self.ground.lock().handles += 1;
        Self {
            ground: Arc::clone(&self.ground),
        }
    }
}

impl Drop for SharedSockets {
    fn drop(&mut self) {
        let mut state = self.ground.lock();
        state.handles -= 1;
        if state.handles == 0 {
            state.wake_driver();
        }
    }
}

/// What the handles and the driver of some sockets share.
#[derive(Debug)]
pub(crate) struct Ground {
    pub clock: Clock,
    /// Local addresses with their UDP ports.
    pub local: Vec<SocketAddr>,
    /// How packets travel.
    pub carrier: Carrier,
    /// As the settings have them.
    pub addresses: Vec<IpAddr>,
    state: Mutex<GroundState>,
}

#[derive(Debug, Default)]
struct GroundState {
    /// Endpoints that the driver has not taken yet.
    joining: Vec<Port>,
    /// SCTP ports in use.
    taken: BTreeSet<u16>,
    handles: usize,
    driver: Option<Waker>,
    /// The driver is gone.
    stopped: bool,
}

impl GroundState {
    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

impl Ground {
    fn lock(&self) -> MutexGuard<'_, GroundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `port` for an endpoint, or any that is free where it is 0.
    pub fn reserve(&self, port: u16) -> Result<u16, BindError> {
        let mut state = self.lock();
        if port != 0 {
            return match state.taken.insert(port) {
                true => Ok(port),
                false => Err(BindError::PortTaken(port)),
            };
        }
        loop {
            let port = any_port()?;
            if state.taken.insert(port) {
                return Ok(port);
            }
        }
    }

    /// Nobody uses that port any more.
    pub fn release(&self, port: u16) {
        self.lock().taken.remove(&port);
    }

    /// Gives an endpoint to the driver; `false` if that is gone.
    pub fn join(&self, port: Port) -> bool {
        let mut state = self.lock();
        if !state.stopped {
            state.joining.push(port);
            state.wake_driver();
        }
        !state.stopped
    }

    /// The endpoints that came since the last time. Another will wake the driver.
    pub fn take_joining(&self, waker: &Waker) -> Vec<Port> {
        let mut state = self.lock();
        if !state.driver.as_ref().is_some_and(|it| it.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
        std::mem::take(&mut state.joining)
    }

    /// Whether it is all over: no handle, and no endpoint to come. Then none can come any more.
    pub fn close_unless_held(&self) -> bool {
        let mut state = self.lock();
        state.stopped = state.handles == 0 && state.joining.is_empty();
        state.stopped
    }

    /// The driver is gone.
    pub fn stop(&self) {
        let joining = {
            let mut state = self.lock();
            state.stopped = true;
            std::mem::take(&mut state.joining)
        };
        drop(joining);
    }
}
