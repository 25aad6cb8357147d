//! State of sockets that several endpoints share, used by their driver and by handles.

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
    /// How packets travel.
    pub carrier: Carrier,
    /// The addresses in the settings.
    pub addresses: Vec<IpAddr>,
    /// Settings for opening sockets.
    config: Config,
    /// The driver's membership in a shard group, if other drivers have sockets at the same port;
    /// usually there is none.
    pub shard_handle: Option<ShardHandle>,
    /// The sockets belong to the caller: no others are opened.
    given: bool,
    /// The sockets, which the driver locks while it runs. Lock order: a task that holds this lock
    /// may wait for the lock of an endpoint's state; a task that holds the lock of a state must not
    /// wait for this lock.
    io: Mutex<Io>,
    state: Mutex<DriverSharedState>,
    /// The driver should examine `state`. Changed under its lock.
    news: AtomicBool,
}

#[derive(Debug, Default)]
struct DriverSharedState {
    /// Number of new endpoints that the driver does not run yet.
    joining: usize,
    /// Sockets for later addresses that the driver does not use yet, and their addresses.
    opened: Vec<Socket>,
    deferred: Vec<IpAddr>,
    /// Addresses for which a socket is being opened.
    opening: Vec<IpAddr>,
    /// SCTP ports in use, with their reservations.
    taken: BTreeMap<u16, Vec<Arc<PortReservation>>>,
    handles: usize,
    driver: Option<Waker>,
    /// The driver is gone.
    stopped: bool,
}

impl DriverShared {
    /// The state of sockets that were opened by `config`, with one handle.
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

    /// Like [`DriverShared::new`], for sockets of the caller.
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

    /// Notifies the driver of a change. The task is woken without the lock, because a waker may run
    /// any code.
    fn wake_driver(&self, mut state: MutexGuard<'_, DriverSharedState>) {
        self.news.store(true, Ordering::Relaxed);
        let driver = state.driver.take();
        drop(state);
        driver.into_iter().for_each(Waker::wake);
    }

    /// The sockets, for the driver.
    pub(crate) fn io(&self) -> MutexGuard<'_, Io> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sockets, if they are not locked.
    pub(crate) fn idle_io(&self) -> Option<MutexGuard<'_, Io>> {
        match self.io.try_lock() {
            Ok(io) => Some(io),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The sockets, for sending from another task; `None`: the driver is using them, has packets to
    /// send, or has exclusive access.
    pub(crate) fn try_io(&self) -> Option<MutexGuard<'_, Io>> {
        let io = self.idle_io()?;
        (io.transmit_queue.is_empty() && io.sockets.are_os_sockets()).then_some(io)
    }

    /// Registers another handle.
    pub(crate) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Removes a handle. The driver checks whether it was the last.
    pub(crate) fn drop_handle(&self) {
        let mut state = self.lock();
        state.handles -= 1;
        if state.handles == 0 {
            self.wake_driver(state);
        }
    }

    /// Reserves `port` for an endpoint, or a free port if it is 0, at these addresses (none: all
    /// addresses).
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

    /// Changes the addresses of an endpoint.
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

    /// Checks that the sockets have all these addresses.
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

    /// Announces an endpoint to the driver; `hand` passes the endpoint. Returns `false` if the
    /// driver is gone; the endpoint is then not passed.
    pub(crate) fn join(&self, hand: impl FnOnce()) -> bool {
        let mut state = self.lock();
        if state.stopped {
            drop(state);
            // Dropping it notifies the users of the endpoint.
            drop(hand);
            return false;
        }
        // Under the lock, so that a reader of the count finds the endpoint.
        hand();
        state.joining += 1;
        self.wake_driver(state);
        true
    }

    /// Opens a socket for an address of this host, with the UDP port of the other sockets, if the
    /// address has no socket yet and sockets are bound to addresses. The runtime, which should
    /// watch it, is called without the lock, because it may run any code.
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

    /// Returns true if a socket should be opened for the address and no other task is opening it.
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

    /// Returns true if [`DriverShared::take_new`] would return an endpoint or a socket. Later
    /// changes wake the driver.
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// The endpoints, which `take` removes, and the sockets that were added since the last call.
    /// Later changes wake the driver by this waker.
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

    /// Returns true if there is no handle and no endpoint to come. No endpoint can be added
    /// afterwards.
    pub(crate) fn close_unless_held(&self) -> bool {
        let mut state = self.lock();
        state.stopped = state.handles == 0 && state.joining == 0;
        state.stopped
    }

    /// The driver ends: no endpoint is passed to it any more.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
    }
}
