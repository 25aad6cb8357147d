//! State of a set of sockets, shared by the driver, the handles, and the endpoints on them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;

use crate::clock::Clock;
use crate::config::{Carrier, Config};
use crate::error::BindError;
use crate::io::Io;
use crate::port_reservation::PortReservation;
use crate::random::dynamic_port;
use crate::runtime::Runtime;
use crate::shard_group::ShardHandle;
use crate::socket::{Socket, Sockets};

/// State shared by the driver and the handles of a set of sockets.
#[derive(Debug)]
pub(crate) struct DriverShared {
    pub clock: Clock,
    /// Local addresses with their UDP ports.
    pub local: Vec<SocketAddr>,
    /// Encapsulation of packets.
    pub carrier: Carrier,
    /// The local addresses in the settings; empty: all.
    pub addresses: Vec<IpAddr>,
    /// Settings with which further sockets are opened.
    config: Config,
    /// The driver's membership in a shard group; `None` in the usual case that no other driver uses
    /// the same port.
    pub shard_handle: Option<ShardHandle>,
    /// True if the application has passed its own sockets: no further sockets are opened.
    given: bool,
    /// The sockets, which the driver locks while it runs. Lock order: a task that holds this lock
    /// may wait for the lock of an endpoint's state; a task that holds the lock of a state must not
    /// wait for this lock.
    io: Mutex<Io>,
    state: Mutex<DriverSharedState>,
    /// True if `state` has changed since the driver last read it. This flag is changed under the
    /// lock of `state`.
    news: AtomicBool,
}

#[derive(Debug, Default)]
struct DriverSharedState {
    /// Number of new endpoints that the driver has not taken yet.
    joining: usize,
    /// Sockets that were opened for later addresses and that the driver has not taken yet, and
    /// their addresses.
    opened: Vec<Socket>,
    deferred: Vec<IpAddr>,
    /// Addresses for which a socket is being opened.
    opening: Vec<IpAddr>,
    /// Reserved SCTP ports, with their reservations.
    taken: BTreeMap<u16, Vec<Arc<PortReservation>>>,
    handles: usize,
    driver: Option<Waker>,
    /// True after the driver has ended.
    stopped: bool,
}

impl DriverShared {
    /// Creates the state of sockets that were opened by `config`, with one handle.
    pub(crate) fn new(config: &Config, runtime: Arc<dyn Runtime>, sockets: Sockets) -> Self {
        Self {
            clock: Clock::start(runtime),
            local: sockets.locals(),
            carrier: config.carrier,
            addresses: config.addresses.clone(),
            config: config.clone(),
            shard_handle: None,
            given: false,
            io: Mutex::new(Io::new(sockets)),
            state: Mutex::new(DriverSharedState {
                handles: 1,
                ..DriverSharedState::default()
            }),
            news: AtomicBool::new(true),
        }
    }

    /// Like [`DriverShared::new`], for sockets that the application has passed.
    pub(crate) fn from_caller(
        config: &Config,
        runtime: Arc<dyn Runtime>,
        sockets: Sockets,
    ) -> Self {
        Self {
            given: true,
            ..Self::new(config, runtime, sockets)
        }
    }

    /// Sets the membership in a shard group.
    pub(crate) fn in_group(self, shard_handle: Option<ShardHandle>) -> Self {
        Self {
            shard_handle,
            ..self
        }
    }

    fn lock(&self) -> MutexGuard<'_, DriverSharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the driver after a change. The waker is called after the lock is released, because it
    /// may run any code.
    fn wake_driver(&self, mut state: MutexGuard<'_, DriverSharedState>) {
        self.news.store(true, Ordering::Relaxed);
        let driver = state.driver.take();
        drop(state);
        driver.into_iter().for_each(Waker::wake);
    }

    /// Locks the sockets for the driver.
    pub(crate) fn io(&self) -> MutexGuard<'_, Io> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the sockets; `None` if another task holds the lock.
    pub(crate) fn idle_io(&self) -> Option<MutexGuard<'_, Io>> {
        match self.io.try_lock() {
            Ok(io) => Some(io),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Locks the sockets to send from a task other than the driver's. `None` if the driver is using
    /// them or has packets queued, or if they are packet sockets of the application.
    pub(crate) fn try_io(&self) -> Option<MutexGuard<'_, Io>> {
        let io = self.idle_io()?;
        (io.transmit_queue.is_empty() && io.sockets.are_os_sockets()).then_some(io)
    }

    /// Registers another handle.
    pub(crate) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Removes a handle. If it was the last, the driver ends.
    pub(crate) fn drop_handle(&self) {
        let mut state = self.lock();
        state.handles -= 1;
        if state.handles == 0 {
            self.wake_driver(state);
        }
    }

    /// Reserves the SCTP port `port` at these addresses (none: all addresses), or any free port if
    /// `port` is 0.
    pub(crate) fn reserve(
        &self,
        port: u16,
        addresses: &[IpAddr],
    ) -> Result<Arc<PortReservation>, BindError> {
        let mut state = self.lock();
        let port = match port {
            0 => dynamic_port(|port| !state.taken.contains_key(&port))?
                .ok_or(BindError::NoFreePort)?,
            port => port,
        };
        let there = state.taken.entry(port).or_default();
        if there.iter().any(|it| it.overlaps(addresses)) {
            return Err(BindError::PortTaken(port));
        }
        let reservation = Arc::new(PortReservation::new(port, addresses));
        there.push(Arc::clone(&reservation));
        Ok(reservation)
    }

    /// Changes the addresses of a port reservation.
    pub(crate) fn change(
        &self,
        reservation: &Arc<PortReservation>,
        addresses: Vec<IpAddr>,
    ) -> Result<(), BindError> {
        let state = self.lock();
        let there = state.taken.get(&reservation.port);
        let mut others = there
            .into_iter()
            .flatten()
            .filter(|it| !Arc::ptr_eq(it, reservation));
        if others.any(|it| it.overlaps(&addresses)) {
            return Err(BindError::PortTaken(reservation.port));
        }
        reservation.change(addresses);
        Ok(())
    }

    /// Checks that there is a socket for each of these addresses.
    pub(crate) fn check(&self, addresses: &[IpAddr]) -> Result<(), BindError> {
        let has = |address: &IpAddr| {
            let of_socket = |local: &SocketAddr| match local.ip() {
                ip if ip.is_unspecified() => ip.is_ipv4() == address.is_ipv4(),
                ip => ip == *address,
            };
            self.local.iter().any(of_socket)
        };
        match addresses.iter().find(|address| !has(address)) {
            None => Ok(()),
            Some(address) => Err(BindError::Config(format!(
                "addresses: found {address}, which the sockets do not have"
            ))),
        }
    }

    /// Releases a reservation.
    pub(crate) fn release(&self, reservation: &Arc<PortReservation>) {
        let mut state = self.lock();
        if let Some(there) = state.taken.get_mut(&reservation.port) {
            there.retain(|it| !Arc::ptr_eq(it, reservation));
            if there.is_empty() {
                state.taken.remove(&reservation.port);
            }
        }
    }

    /// Announces a new endpoint to the driver; `hand` passes the endpoint. Returns `false`, without
    /// a call of `hand`, if the driver has ended.
    pub(crate) fn join(&self, hand: impl FnOnce()) -> bool {
        let mut state = self.lock();
        if state.stopped {
            drop(state);
            // Dropping `hand` drops the endpoint, which notifies its users.
            drop(hand);
            return false;
        }
        // The endpoint is passed and counted under the lock, so that the driver finds the endpoint
        // when it reads the count.
        hand();
        state.joining += 1;
        self.wake_driver(state);
        true
    }

    /// Opens a socket for an address of this host, with the UDP port of the other sockets. Does
    /// nothing if the address has a socket, or if one socket has all addresses. The runtime is
    /// called without the lock, because it may run any code.
    pub(crate) fn open_for(&self, address: IpAddr) -> Result<(), BindError> {
        if self.begins_to_open(address)? {
            let port = self.local.first().map_or(0, SocketAddr::port);
            let opened = {
                let shares = self.shard_handle.is_some();
                Socket::open(address, port, &self.config, shares, &**self.clock.runtime())
            };
            let mut state = self.lock();
            state.opening.retain(|it| *it != address);
            state.opened.push(opened?);
            state.deferred.push(address);
            self.wake_driver(state);
        }
        Ok(())
    }

    /// Returns true if the caller should open a socket for the address, and records that it is
    /// being opened.
    fn begins_to_open(&self, address: IpAddr) -> Result<bool, BindError> {
        let mut state = self.lock();
        let all = self.addresses.is_empty();
        if all || self.addresses.contains(&address) || state.deferred.contains(&address) {
            return Ok(false);
        }
        if self.given {
            return Err(BindError::Config(format!(
                "addresses: found {address}, which the given sockets do not have"
            )));
        }
        if state.opening.contains(&address) {
            return Err(BindError::Config(format!(
                "addresses: found {address}, for which another call opens a socket just now"
            )));
        }
        state.opening.push(address);
        Ok(true)
    }

    /// Returns true if [`DriverShared::take_new`] would return an endpoint or a socket. Changes
    /// after this call wake the driver.
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// Removes the new endpoints by `take`, and returns them and the sockets that were added since
    /// the last call. Changes after this call wake the driver by `waker`.
    pub(crate) fn take_new<P>(&self, waker: &Waker, take: impl FnOnce() -> P) -> (P, Vec<Socket>) {
        let waker = waker.clone();
        let mut state = self.lock();
        self.news.store(false, Ordering::Relaxed);
        let former = state.driver.replace(waker);
        state.joining = 0;
        let new = (take(), std::mem::take(&mut state.opened));
        drop(state);
        drop(former);
        new
    }

    /// Returns true if there are no handles and no endpoints to take, and then prevents further
    /// endpoints from being added.
    pub(crate) fn close_unless_held(&self) -> bool {
        let mut state = self.lock();
        state.stopped = state.handles == 0 && state.joining == 0;
        state.stopped
    }

    /// Called when the driver ends: no endpoint can be added afterwards.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
    }
}
