//! State shared by the driver and the handles of an endpoint.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use anabranch_sctp::{Association, AssociationId, CloseReason, Endpoint};
use anabranch_transport::{Nanos, Trace, Transport};
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
use crate::resume::Resuming;
use crate::status::EndpointStatistics;

/// An endpoint's state under its lock, and its constant properties.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    state: Mutex<EndpointState>,
    pub clock: Clock,
    /// State of the sockets, which other endpoints may share.
    pub driver_shared: Arc<DriverShared>,
    /// Reservation of the SCTP port on the sockets.
    pub reservation: Arc<PortReservation>,
    /// Local addresses with their UDP ports.
    pub local: Vec<SocketAddr>,
    /// Encapsulation of packets.
    pub carrier: Carrier,
    pub max_message_size: usize,
    /// The default timeout of `connect`.
    pub connect_timeout: Duration,
    /// Span of the log entries of this endpoint.
    pub span: Span,
    /// Notified when an association waits to be accepted, or when none will come any more.
    pub acceptable: Notify,
    /// Notified when the last association has ended.
    pub idle: Notify,
}

/// The part of an endpoint's state that changes, under the lock.
pub(crate) struct EndpointState {
    pub endpoint: Endpoint,
    pub entries: BTreeMap<AssociationId, AssociationEntry>,
    /// Associations that peers started and that were not accepted yet, oldest first.
    pub waiting: VecDeque<AssociationId>,
    /// Maximum number of associations that wait to be accepted, and the number of accepted
    /// associations that still count towards it ([`BacklogPermit`](crate::BacklogPermit)).
    pub backlog: usize,
    pub kept: usize,
    /// Maximum number of peers that wait for the application's decision; 0: the endpoint accepts
    /// all peers.
    pub undecided: usize,
    /// Number of attempt groups (Happy Eyeballs) so far.
    pub races: u64,
    /// Associations whose last handle was dropped. The driver checks whether they can be removed.
    pub dropped: Vec<AssociationId>,
    /// Timeout for closing an association without handles.
    pub linger: Duration,
    /// Waker of the driver, and whether the driver is parked.
    pub driver: Option<Waker>,
    pub driver_sleeps: bool,
    /// Time at which a parked driver runs this endpoint at the latest; `None`: only when it is
    /// woken.
    pub driver_comes: Option<Nanos>,
    /// Work that is done after the lock is released.
    pub deferred: DeferredWakeups,
    /// Number of handles of the endpoint itself.
    pub handles: usize,
    /// True if peers may start associations.
    pub accepts: bool,
    /// True if the endpoint was closed or is draining.
    pub closed: bool,
    /// True if the driver has ended, so that the endpoint makes no further progress.
    pub stopped: bool,
    pub observer: Option<Box<dyn Observer>>,
    /// State of Careful Resume, if configured.
    pub resuming: Option<Box<Resuming>>,
    /// Number of packets that were dropped because they came from another UDP port than that in the
    /// settings.
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

/// Life cycle of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Up,
    Closed(CloseReason),
}

/// State of an association for its users: handles, waiting tasks, receipts.
#[derive(Debug)]
pub(crate) struct AssociationEntry {
    pub signals: Arc<Signals>,
    pub phase: Phase,
    pub handles: usize,
    /// Source addresses that were unknown when this association accepted a packet from them, and
    /// that count as known since then: see
    /// [`FairReceiveQueue`](crate::receive_queue::FairReceiveQueue).
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

    /// Records the end of the association, and defers the notification of all its users.
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

    /// Locks the state. The poison flag after a panic is ignored, because every change under the
    /// lock leaves the state consistent.
    #[inline]
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        StateGuard::new(self, state)
    }

    /// Span of the log entries of an association.
    pub(crate) fn span_of(&self, id: AssociationId) -> Span {
        tracing::info_span!(parent: &self.span, "association", id = %id)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }
}

impl EndpointState {
    /// Wakes the driver if it is parked, after a change of the state.
    pub(crate) fn wake_driver(&mut self) {
        if std::mem::take(&mut self.driver_sleeps)
            && let Some(driver) = self.driver.take()
        {
            self.deferred.wake_driver(driver);
        }
    }

    /// Parks the driver until `waker` wakes it, or until `timeout`. `own` is a clone of the waker,
    /// which is taken if it has to be stored: `waker` must not be cloned here, because cloning a
    /// waker may run any code while the state is locked.
    pub(crate) fn park(&mut self, waker: &Waker, own: &mut Option<Waker>, timeout: Option<Nanos>) {
        if !self.driver.as_ref().is_some_and(|it| it.will_wake(waker))
            && let Some(former) = std::mem::replace(&mut self.driver, own.take())
        {
            self.deferred.drop_waker(former);
        }
        self.driver_sleeps = true;
        self.driver_comes = timeout;
    }

    /// Returns true if a timer of the protocol expires before a parked driver would run.
    pub(crate) fn must_wake(&self) -> bool {
        let due = self.endpoint.poll_timeout();
        due.is_some_and(|due| self.driver_comes.is_none_or(|comes| due < comes))
    }

    /// Requests that the users of an association are notified when the send buffer has space for a
    /// message of `size` bytes.
    pub(crate) fn wait_writable(&mut self, id: AssociationId, size: usize) {
        if let Some(association) = self.endpoint.association_mut(id) {
            association.wait_writable(size);
        }
        self.wake_driver();
    }

    /// Checks that associations can be accepted. If they cannot, notifies all tasks that wait in
    /// `accept`.
    ///
    /// # Errors
    /// [`AcceptError::Stopped`], [`AcceptError::Closed`] or [`AcceptError::NotListening`].
    pub(crate) fn check_accepts(&mut self) -> Result<(), AcceptError> {
        let error = match self {
            Self { stopped: true, .. } => AcceptError::Stopped,
            Self { closed: true, .. } => AcceptError::Closed,
            Self { accepts: false, .. } => AcceptError::NotListening,
            _ => return Ok(()),
        };
        self.deferred.notify_acceptable();
        Err(error)
    }

    /// The association in the protocol core.
    pub(crate) fn association(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.endpoint.association_mut(id)
    }

    /// Removes a handle. Dropping the last handle closes the association: queued messages are still
    /// delivered, but arriving messages are discarded.
    pub(crate) fn drop_handle(&mut self, id: AssociationId, now: Nanos) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.handles -= 1;
        if entry.handles == 0 {
            self.close_without_handles(id, now);
        }
    }

    /// Starts a graceful close. After the timeout `within` the association is aborted; if several
    /// timeouts are set, the earliest applies.
    pub(crate) fn shut_down(&mut self, id: AssociationId, now: Nanos, within: Option<Duration>) {
        if let Some(association) = self.endpoint.association_mut(id) {
            // `shutdown` fails only if the association is closed already.
            let timeout = within.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
            let _ = association.shutdown(now, timeout);
        }
        self.wake_driver();
    }

    /// Records that the association ended.
    pub(crate) fn end(&mut self, id: AssociationId, reason: CloseReason) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.end(reason, &mut self.deferred);
        }
    }

    /// Starts to close an association that has no handles.
    pub(crate) fn close_without_handles(&mut self, id: AssociationId, now: Nanos) {
        self.shut_down(id, now, Some(self.linger));
        if let Some(association) = self.endpoint.association_mut(id) {
            while association.poll_part().is_some() {}
        }
        self.dropped.push(id);
    }

    /// Enables the samples that the observer requests from an association.
    pub(crate) fn watch(&mut self, id: AssociationId) {
        let Some(probes) = self.observer.as_ref().map(|observer| observer.probes()) else {
            return;
        };
        if !probes.is_empty()
            && let Some(association) = self.endpoint.association_mut(id)
        {
            *association.trace_mut() = Trace::new(probes);
        }
    }

    /// Updates whether the protocol core accepts associations: only if the endpoint listens and the
    /// backlog is not full.
    pub(crate) fn listen(&mut self) {
        let room = match self.accepts {
            true => self.backlog.saturating_sub(self.waiting.len() + self.kept),
            false => 0,
        };
        self.endpoint.set_backlog(room);
    }
}

/// The locked state of an endpoint. Deferred work is done when the lock is released.
#[derive(Debug)]
pub(crate) struct StateGuard<'a> {
    /// Always present, except while the guard is being dropped.
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
