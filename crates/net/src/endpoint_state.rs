//! What the driver and the handles of an endpoint share.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use anabranch_sctp::{Association, AssociationId, CloseReason, Endpoint};
use anabranch_transport::{Nanos, Transport};
use tokio::sync::Notify;
use tracing::Span;

use crate::clock::Clock;
use crate::config::Carrier;
use crate::deferred_wakeups::{DeferredWakeups, Signals};
use crate::driver_shared::DriverShared;
use crate::error::{AcceptError, AssociationError};
use crate::observer::Observer;
use crate::port_reservation::PortReservation;
use crate::receipt::{DeliveryError, Receipts};
use crate::status::EndpointStatistics;

/// An endpoint's state and what cannot change of it.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    state: Mutex<EndpointState>,
    pub clock: Clock,
    /// The sockets.
    pub driver_shared: Arc<DriverShared>,
    /// What it has of them.
    pub reservation: Arc<PortReservation>,
    /// Local addresses with their UDP ports.
    pub local: Vec<SocketAddr>,
    /// How packets travel.
    pub carrier: Carrier,
    pub max_message_size: usize,
    /// The limit of attempts to connect that have none.
    pub connect_timeout: Duration,
    /// What is logged of the endpoint is within it.
    pub span: Span,
    /// An association waits to be accepted, or none will.
    pub acceptable: Notify,
    /// The last association has ended.
    pub idle: Notify,
}

/// What changes.
pub(crate) struct EndpointState {
    pub endpoint: Endpoint,
    pub entries: BTreeMap<AssociationId, AssociationEntry>,
    /// Associations that peers began and nobody took yet, oldest first.
    pub waiting: VecDeque<AssociationId>,
    /// The most of them, with those that were accepted and keep their place.
    pub backlog: usize,
    pub kept: usize,
    /// Races of attempts begun so far.
    pub races: u64,
    /// Associations whose last handle is gone: the driver looks whether they can be forgotten.
    pub dropped: Vec<AssociationId>,
    /// How long an association that nobody holds may take to close.
    pub linger: Duration,
    /// What wakes the driver, and whether that sleeps.
    pub driver: Option<Waker>,
    pub driver_sleeps: bool,
    /// When the driver looks at this endpoint at the latest, if it sleeps; `None`: when it is woken.
    pub driver_comes: Option<Nanos>,
    /// What waits until the lock is free.
    pub deferred: DeferredWakeups,
    /// Handles of the endpoint itself.
    pub handles: usize,
    /// Peers may begin associations.
    pub accepts: bool,
    /// The endpoint was closed, or goes out of service.
    pub closed: bool,
    /// The driver is gone: nothing will happen any more.
    pub stopped: bool,
    pub observer: Option<Box<dyn Observer>>,
    /// Packets from another UDP port than the one that the settings name.
    pub foreign: u64,
    pub statistics: EndpointStatistics,
}

impl std::fmt::Debug for EndpointState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("entries", &self.entries)
            .field("waiting", &self.waiting)
            .field("handles", &self.handles)
            .finish_non_exhaustive()
    }
}

/// How far an association is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Up,
    Closed(CloseReason),
}

/// An association as its users see it.
#[derive(Debug)]
pub(crate) struct AssociationEntry {
    pub signals: Arc<Signals>,
    pub phase: Phase,
    pub handles: usize,
    /// Where its packets came from while that was a stranger's address, and counts as a peer's since: see [`FairReceiveQueue`](crate::receive_queue::FairReceiveQueue).
    pub senders: Vec<SocketAddr>,
    pub receipts: Receipts,
    pub span: Span,
}

impl AssociationEntry {
    pub(crate) fn new(phase: Phase, handles: usize, span: Span) -> Self {
        Self {
            signals: Arc::default(),
            phase,
            handles,
            senders: Vec::new(),
            receipts: Receipts::default(),
            span,
        }
    }

    /// The association is over.
    pub(crate) fn end(&mut self, reason: CloseReason, deferred: &mut DeferredWakeups) {
        let lost = DeliveryError::Association(AssociationError(reason.clone()));
        if !self.receipts.is_empty() {
            deferred.answer(self.receipts.answer_all(&lost));
        }
        self.phase = Phase::Closed(reason);
        deferred.wake_all(&self.signals);
    }
}

impl EndpointShared {
    pub(crate) fn new(
        state: EndpointState,
        driver_shared: Arc<DriverShared>,
        reservation: Arc<PortReservation>,
        max_message_size: usize,
        connect_timeout: Duration,
        span: Span,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            clock: driver_shared.clock.clone(),
            local: driver_shared.local.clone(),
            carrier: driver_shared.carrier,
            driver_shared,
            reservation,
            max_message_size,
            connect_timeout,
            span,
            acceptable: Notify::new(),
            idle: Notify::new(),
        }
    }

    /// The state. A panic of another holder leaves it as whole as any network error would.
    #[inline]
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        StateGuard::new(self, state)
    }

    /// What is logged of an association is within it.
    pub(crate) fn span_of(&self, id: AssociationId) -> Span {
        tracing::info_span!(parent: &self.span, "association", id = %id)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }
}

impl EndpointState {
    /// Lets the driver look at what has changed.
    pub(crate) fn wake_driver(&mut self) {
        if std::mem::take(&mut self.driver_sleeps)
            && let Some(driver) = self.driver.take()
        {
            self.deferred.wake_driver(driver);
        }
    }

    /// The driver sleeps until `waker` wakes it, or until `timeout`.
    /// `own`: one like it, which is taken where it is needed. A waker may run anything when it is cloned, and so is not while this is locked.
    pub(crate) fn park(&mut self, waker: &Waker, own: &mut Option<Waker>, timeout: Option<Nanos>) {
        if !self.driver.as_ref().is_some_and(|it| it.will_wake(waker))
            && let Some(former) = std::mem::replace(&mut self.driver, own.take())
        {
            self.deferred.drop_waker(former);
        }
        self.driver_sleeps = true;
        self.driver_comes = timeout;
    }

    /// Whether something is due before the driver comes.
    pub(crate) fn must_wake(&self) -> bool {
        let due = self.endpoint.poll_timeout();
        due.is_some_and(|due| self.driver_comes.is_none_or(|comes| due < comes))
    }

    /// Lets the driver tell the association's users when there is room to send a message of `size` bytes.
    pub(crate) fn wait_writable(&mut self, id: AssociationId, size: usize) {
        if let Some(association) = self.endpoint.association_mut(id) {
            association.wait_writable(size);
        }
        self.wake_driver();
    }

    /// Whether associations can be accepted. If not, all that wait for one should learn it.
    ///
    /// # Errors
    /// Why they cannot.
    pub(crate) fn check_accepts(&mut self) -> Result<(), AcceptError> {
        let error = match self {
            Self { stopped: true, .. } => AcceptError::Stopped,
            Self { closed: true, .. } => AcceptError::Closed,
            Self { accepts: false, .. } => AcceptError::NotListening,
            _ => return Ok(()),
        };
        self.deferred.tell_acceptable();
        Err(error)
    }

    /// The protocol's side of an association.
    pub(crate) fn association(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.endpoint.association_mut(id)
    }

    /// One handle less. The last closes what is open: what was sent still arrives, what comes is thrown away.
    pub(crate) fn drop_handle(&mut self, id: AssociationId, now: Nanos) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.handles -= 1;
        if entry.handles == 0 {
            self.orphan(id, now);
        }
    }

    /// Begins to close gracefully; `within`: and to abort if that takes longer. Of several bounds the earliest counts.
    pub(crate) fn shut_down(&mut self, id: AssociationId, now: Nanos, within: Option<Duration>) {
        if let Some(association) = self.endpoint.association_mut(id) {
            // Refused only where it is closed already.
            let timeout = within.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
            let _ = association.shutdown(now, timeout);
        }
        self.wake_driver();
    }

    /// Notes that the association ended.
    pub(crate) fn end(&mut self, id: AssociationId, reason: CloseReason) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.end(reason, &mut self.deferred);
        }
    }

    /// Nobody holds the association any more.
    pub(crate) fn orphan(&mut self, id: AssociationId, now: Nanos) {
        self.shut_down(id, now, Some(self.linger));
        if let Some(association) = self.endpoint.association_mut(id) {
            while association.poll_part().is_some() {}
        }
        self.dropped.push(id);
    }

    /// Lets the observer have what it wants of an association.
    pub(crate) fn watch(&mut self, id: AssociationId) {
        let Some(probes) = self.observer.as_ref().map(|observer| observer.probes()) else {
            return;
        };
        if !probes.is_empty()
            && let Some(association) = self.endpoint.association_mut(id)
        {
            association.set_probes(probes);
        }
    }

    /// Lets peers begin as many associations as the backlog has room for.
    pub(crate) fn listen(&mut self) {
        let room = match self.accepts {
            true => self.backlog.saturating_sub(self.waiting.len() + self.kept),
            false => 0,
        };
        self.endpoint.listen_for(room);
    }
}

/// The state of an endpoint under its lock. What is left for later is done when the lock is free.
#[derive(Debug)]
pub(crate) struct StateGuard<'a> {
    /// There until it is dropped.
    state: Option<MutexGuard<'a, EndpointState>>,
    shared: &'a EndpointShared,
}

impl<'a> StateGuard<'a> {
    #[inline]
    fn new(shared: &'a EndpointShared, state: MutexGuard<'a, EndpointState>) -> Self {
        Self {
            state: Some(state),
            shared,
        }
    }

    #[cold]
    fn run_deferred(&mut self) {
        if let Some(mut state) = self.state.take() {
            let deferred = std::mem::take(&mut state.deferred);
            drop(state);
            deferred.run(&self.shared.acceptable, &self.shared.idle);
        }
    }
}

impl Drop for StateGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.deferred.any {
            self.run_deferred();
        }
    }
}

impl Deref for StateGuard<'_> {
    type Target = EndpointState;

    #[inline]
    fn deref(&self) -> &EndpointState {
        match &self.state {
            Some(state) => state,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl DerefMut for StateGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut EndpointState {
        match &mut self.state {
            Some(state) => state,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}
