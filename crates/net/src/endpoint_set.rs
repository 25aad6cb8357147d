//! The endpoints of a driver, and their run queue.
//!
//! If many endpoints share the same sockets, a packet concerns only one of them. Therefore an
//! endpoint is run only if it receives a packet, its next timer expires, it was woken, or its last
//! run left work: the cost of a packet does not grow with the number of endpoints. A single
//! endpoint is run whenever the driver is, without these lists.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use anabranch_sctp::Icmp;
use anabranch_transport::Nanos;
use slab::Slab;

use crate::endpoint_driver::{EndpointDriver, RunOutcome};
use crate::port_reservation::PortReservation;

/// One endpoint.
struct EndpointSlot {
    driver: EndpointDriver,
    /// Wakes the driver for this endpoint.
    waker: Waker,
    /// The endpoint is in `EndpointSet::queue`.
    queued: bool,
    /// The endpoint is in `EndpointSet::ran`.
    ran: bool,
    /// Time of the endpoint's entry in `EndpointSet::timers`: the next timer expires at this time
    /// or later.
    timeout: Option<Nanos>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct EndpointSet {
    all: Slab<EndpointSlot>,
    port_map: PortMap,
    /// Endpoints to be run, each once, in this order.
    queue: VecDeque<usize>,
    /// The latest time at which each is run.
    timers: BTreeSet<(Nanos, usize)>,
    /// Endpoints that ran since the sockets accepted everything.
    ran: Vec<usize>,
    /// Endpoints that ran, without handles and open associations.
    over: Vec<usize>,
    calls: Arc<WakeQueue>,
    /// Endpoints that were woken; empty between two calls.
    called: Vec<usize>,
}

/// Maps packets to endpoints.
#[derive(Default)]
pub(crate) struct PortMap {
    /// Endpoints by SCTP port, usually one for each port.
    by_port: BTreeMap<u16, Vec<(usize, Arc<PortReservation>)>>,
    /// The endpoint with the smallest number.
    first: usize,
}

impl PortMap {
    /// By the destination port of the packet (RFC 9260 §3.1), and, if several endpoints have that
    /// port, by the destination address. Packets without a matching endpoint, and invalid packets,
    /// go to the first endpoint, which counts and answers them by the rules of the protocol.
    pub(crate) fn of(&self, (local, packet): (IpAddr, &[u8])) -> usize {
        let there = match packet.first_chunk() {
            Some(&[_, _, high, low]) => self.by_port.get(&u16::from_be_bytes([high, low])),
            None => None,
        };
        match there.map(Vec::as_slice) {
            None | Some([]) => self.first,
            // Most ports have one endpoint, which accepts packets to any address.
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
    /// Adds an endpoint, which is run next.
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
            // The first endpoint was alone until now: it wakes the driver directly, and has no
            // timer entry.
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

    /// Sets the task to wake for woken endpoints. Call this only without locks.
    pub(crate) fn set_waker(&self, task: Waker) {
        let former = self.calls.lock().task.replace(task);
        drop(former);
    }

    /// Queues all endpoints that were woken or whose timers have expired.
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

    /// Number of endpoints to be run.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The next endpoint to be run.
    pub(crate) fn next(&mut self) -> Option<usize> {
        loop {
            let number = self.queue.pop_front()?;
            // The number of the endpoint may have been reused.
            if let Some(slot) = self.all.get_mut(number)
                && std::mem::take(&mut slot.queued)
            {
                return Some(number);
            }
        }
    }

    /// Maps packets to endpoints.
    pub(crate) fn port_map(&self) -> &PortMap {
        &self.port_map
    }

    /// Runs one by `run`, which gets the waker of the driver for it, and the port map.
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

    /// Parks one whose output is not polled.
    pub(crate) fn park(&mut self, number: usize) {
        let slot = &mut self.all[number];
        let timeout = slot.driver.park(&slot.waker);
        self.set_timer(number, timeout);
    }

    /// The earliest expiry of their timers.
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        self.timers.first().map(|it| it.0)
    }

    /// The sockets have accepted everything that was gathered.
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

    /// Passes an ICMP message to each endpoint with that port. One of the endpoints has the
    /// association that the message concerns; the others ignore the message.
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

    /// The single endpoint has ended.
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

    /// Schedules one for `timeout`, or earlier, because moving its timer at each packet costs more
    /// than an unnecessary run.
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
    /// The first wakeup takes the waker. Cloning, waking or dropping a waker may run any code, and
    /// must not happen under this lock.
    task: Option<Waker>,
}

impl WakeQueue {
    fn lock(&self) -> MutexGuard<'_, WakeQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the endpoints that were woken since the last call. Later wakeups wake that task.
    fn take(&self, numbers: &mut Vec<usize>, task: &Waker) {
        let was_woken = self.lock().task.is_none();
        // If another call has taken the waker, its task is woken and calls this method again.
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

/// Wakes the driver for an endpoint. The waker wakes the driver only once until the endpoint was
/// run.
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
