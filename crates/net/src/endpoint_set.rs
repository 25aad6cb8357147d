//! The endpoints of a driver, and their run queue.
//!
//! Many endpoints may share the same sockets, but each packet concerns only one of them. Therefore
//! an endpoint is run only if it receives a packet, its next timer expires, it was woken, or its
//! last run left work: the cost of a packet does not grow with the number of endpoints. A single
//! endpoint needs no queue: it is run whenever the driver runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use anabranch_sctp::Icmp;
use anabranch_transport::Nanos;
use slab::Slab;

use crate::endpoint_driver::{EndpointDriver, RunOutcome};
use crate::port_reservation::PortReservation;

/// An endpoint with its scheduling state.
struct EndpointSlot {
    driver: EndpointDriver,
    /// Waker that queues this endpoint and wakes the driver.
    waker: Waker,
    /// True if the endpoint is in `EndpointSet::queue`.
    queued: bool,
    /// True if the endpoint is in `EndpointSet::ran`.
    ran: bool,
    /// Time of the endpoint's entry in `EndpointSet::timers`, which is never later than its next
    /// timer.
    timeout: Option<Nanos>,
}

/// All endpoints on the sockets of a driver.
#[derive(Default)]
pub(crate) struct EndpointSet {
    all: Slab<EndpointSlot>,
    port_map: PortMap,
    /// Run queue: endpoints that have work, without duplicates.
    queue: VecDeque<usize>,
    /// Endpoints by the time at which each has to run at the latest.
    timers: BTreeSet<(Nanos, usize)>,
    /// Endpoints that ran since the sockets last accepted all packets.
    ran: Vec<usize>,
    /// Endpoints that ran and then had neither handles nor open associations.
    over: Vec<usize>,
    calls: Arc<WakeQueue>,
    /// Buffer for endpoints that were woken; empty between two calls.
    called: Vec<usize>,
}

/// Maps packets to endpoints.
#[derive(Default)]
pub(crate) struct PortMap {
    /// Endpoints by SCTP port, usually one for each port.
    by_port: BTreeMap<u16, Vec<(usize, Arc<PortReservation>)>>,
    /// The endpoint with the smallest number, which receives packets that match no endpoint.
    first: usize,
}

impl PortMap {
    /// The endpoint for a packet, by its destination port (RFC 9260 §3.1), and by the destination
    /// address if several endpoints have that port. Packets that match no endpoint, and invalid
    /// packets, go to the first endpoint, which counts and answers them as the protocol requires.
    pub(crate) fn of(&self, (local, packet): (IpAddr, &[u8])) -> usize {
        let there = match packet.first_chunk() {
            Some(&[_, _, high, low]) => self.by_port.get(&u16::from_be_bytes([high, low])),
            None => None,
        };
        match there.map(Vec::as_slice) {
            None | Some([]) => self.first,
            // Only one endpoint has this port, which is usual: packets to any address go to it.
            Some([(one, _)]) => *one,
            Some(several @ [(first, _), ..]) => {
                let has = several
                    .iter()
                    .find(|(_, reservation)| reservation.has(local));
                has.map_or(*first, |(number, _)| *number)
            }
        }
    }
}

impl EndpointSet {
    /// Adds an endpoint, and queues it to be run.
    pub(crate) fn add(&mut self, driver: EndpointDriver) {
        let reservation = Arc::clone(driver.reservation());
        let slot = self.all.vacant_entry();
        let number = slot.key();
        let there = self.port_map.by_port.entry(reservation.port).or_default();
        there.push((number, reservation));
        slot.insert(EndpointSlot {
            driver,
            waker: Waker::from(Arc::new(EndpointWaker {
                number,
                calls: Arc::clone(&self.calls),
            })),
            queued: false,
            ran: false,
            timeout: None,
        });
        self.port_map.first = self.port_map.first.min(number);
        match self.all.len() {
            1 => self.port_map.first = number,
            // Until now there was a single endpoint, which has no entry in the timers and wakes the
            // driver directly: it must run to be scheduled.
            2 => self.queue_all(),
            _ => self.queue(number),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The single endpoint, if there is only one.
    pub(crate) fn only(&mut self) -> Option<&mut EndpointDriver> {
        match self.all.len() {
            1 => self
                .all
                .get_mut(self.port_map.first)
                .map(|it| &mut it.driver),
            _ => None,
        }
    }

    /// Sets the waker that is called when an endpoint is woken. Must be called without locks.
    pub(crate) fn set_waker(&self, task: Waker) {
        let former = self.calls.lock().task.replace(task);
        drop(former);
    }

    /// Queues all endpoints that were woken, or whose timers have expired.
    pub(crate) fn gather(&mut self, now: Nanos, task: &Waker) {
        let mut called = std::mem::take(&mut self.called);
        self.calls.take(&mut called, task);
        called.drain(..).for_each(|it| self.queue(it));
        self.called = called;
        while let Some((_, number)) = self.timers.first().copied().filter(|it| it.0 <= now) {
            self.forget_timer(number);
            self.queue(number);
        }
    }

    /// Number of queued endpoints.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Removes the next endpoint from the queue.
    pub(crate) fn next(&mut self) -> Option<usize> {
        loop {
            let number = self.queue.pop_front()?;
            // Skips numbers whose endpoint was removed; another endpoint may have the number now.
            if let Some(slot) = self.all.get_mut(number)
                && std::mem::take(&mut slot.queued)
            {
                return Some(number);
            }
        }
    }

    /// The map from packets to endpoints.
    pub(crate) fn port_map(&self) -> &PortMap {
        &self.port_map
    }

    /// Runs the endpoint `number` by `run`, which gets the waker for this endpoint and the port
    /// map.
    pub(crate) fn run(
        &mut self,
        number: usize,
        run: impl FnOnce(&mut EndpointDriver, &Waker, &PortMap) -> RunOutcome,
    ) -> RunOutcome {
        let slot = &mut self.all[number];
        let outcome = run(&mut slot.driver, &slot.waker, &self.port_map);
        if !std::mem::replace(&mut slot.ran, true) {
            self.ran.push(number);
        }
        if outcome.over {
            self.over.push(number);
        } else if !outcome.settled {
            self.queue(number);
        }
        self.set_timer(number, outcome.timeout);
        outcome
    }

    /// Parks an endpoint without gathering its output.
    pub(crate) fn park(&mut self, number: usize) {
        let slot = &mut self.all[number];
        let timeout = slot.driver.park(&slot.waker);
        self.set_timer(number, timeout);
    }

    /// The earliest time at which an endpoint has to run.
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        self.timers.first().map(|it| it.0)
    }

    /// Records that the sockets have accepted everything that was gathered.
    pub(crate) fn flushed(&mut self) {
        if let Some(driver) = self.only() {
            return driver.flushed();
        }
        for number in self.ran.drain(..) {
            if let Some(slot) = self.all.get_mut(number) {
                slot.ran = false;
                slot.driver.flushed();
            }
        }
    }

    /// Passes an ICMP message to all endpoints with the source port of the quoted packet. Only the
    /// endpoint with the association handles it; the others ignore it.
    pub(crate) fn handle_icmp(&mut self, icmp: &Icmp<'_>) {
        let there = icmp
            .source_port()
            .and_then(|it| self.port_map.by_port.get(&it));
        let there = there.into_iter().flatten();
        let numbers: Vec<usize> = there.map(|(number, _)| *number).collect();
        for number in numbers {
            self.all[number].driver.handle_icmp(icmp);
            self.queue(number);
        }
    }

    /// Removes the single endpoint when it has ended.
    pub(crate) fn end_only(&mut self) {
        self.over.push(self.port_map.first);
    }

    /// Removes the endpoints that have ended.
    pub(crate) fn remove_ended(&mut self) -> Vec<EndpointDriver> {
        let mut gone = Vec::new();
        while let Some(number) = self.over.pop() {
            self.forget_timer(number);
            if let Some(EndpointSlot { driver, .. }) = self.all.try_remove(number) {
                self.disown(driver.reservation().port, number);
                gone.push(driver);
            }
        }
        gone
    }

    fn disown(&mut self, port: u16, number: usize) {
        let PortMap { by_port, first } = &mut self.port_map;
        if let Some(there) = by_port.get_mut(&port) {
            there.retain(|it| it.0 != number);
            if there.is_empty() {
                by_port.remove(&port);
            }
        }
        if number == *first {
            *first = self.all.iter().next().map_or(0, |(number, _)| number);
        }
    }

    fn queue(&mut self, number: usize) {
        if let Some(slot) = self.all.get_mut(number)
            && !std::mem::replace(&mut slot.queued, true)
        {
            self.queue.push_back(number);
        }
    }

    fn queue_all(&mut self) {
        let numbers: Vec<usize> = self.all.iter().map(|(number, _)| number).collect();
        numbers.into_iter().for_each(|it| self.queue(it));
    }

    /// Schedules an endpoint for `timeout` at the latest. An earlier entry is kept, because moving
    /// the timer at each packet costs more than an unnecessary run.
    fn set_timer(&mut self, number: usize, timeout: Option<Nanos>) {
        let (Some(slot), Some(timeout)) = (self.all.get_mut(number), timeout) else {
            return;
        };
        if slot.timeout.is_none_or(|before| timeout < before) {
            if let Some(before) = slot.timeout.replace(timeout) {
                self.timers.remove(&(before, number));
            }
            self.timers.insert((timeout, number));
        }
    }

    fn forget_timer(&mut self, number: usize) {
        let slot = self.all.get_mut(number);
        if let Some(at) = slot.and_then(|it| it.timeout.take()) {
            self.timers.remove(&(at, number));
        }
    }
}

/// Endpoints that were woken, and the task that runs them.
#[derive(Default)]
struct WakeQueue(Mutex<WakeQueueState>);

#[derive(Default)]
struct WakeQueueState {
    numbers: Vec<usize>,
    /// The driver's waker, which the first wakeup takes. Wakers must not be cloned, woken or
    /// dropped under this lock, because that may run any code.
    task: Option<Waker>,
}

impl WakeQueue {
    fn lock(&self) -> MutexGuard<'_, WakeQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the endpoints that were woken since the last call; later wakeups wake `task`.
    fn take(&self, numbers: &mut Vec<usize>, task: &Waker) {
        let was_woken = self.lock().task.is_none();
        // If the waker is still stored, it is kept, because it wakes the same task. If a wakeup
        // takes it meanwhile, the task is woken and calls this method again.
        let task = was_woken.then(|| task.clone());
        let mut called = self.lock();
        std::mem::swap(&mut called.numbers, numbers);
        let former = match task {
            Some(task) => called.task.replace(task),
            None => None,
        };
        drop(called);
        drop(former);
    }
}

/// Waker of one endpoint: queues the endpoint and wakes the driver, only once until the endpoint
/// has run.
struct EndpointWaker {
    number: usize,
    calls: Arc<WakeQueue>,
}

impl Wake for EndpointWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut called = self.calls.lock();
        called.numbers.push(self.number);
        let task = called.task.take();
        drop(called);
        if let Some(task) = task {
            task.wake();
        }
    }
}
