//! The endpoints of a driver, and which of them have something to do.
//!
//! Of many endpoints on the same sockets most have nothing to do at a packet. So one is run only where a packet is for it, its next timer ends,
//! somebody woke it, or its last run left something to do: what a packet costs does not grow with their number. One that is alone is run
//! whenever the driver is, and nobody keeps lists.

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
    /// Wakes the driver for this one.
    waker: Waker,
    /// It is in `EndpointSet::queue`.
    queued: bool,
    /// It is in `EndpointSet::ran`.
    ran: bool,
    /// Its entry in `EndpointSet::timers`: its next timer ends then, or later.
    timeout: Option<Nanos>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct EndpointSet {
    all: Slab<EndpointSlot>,
    port_map: PortMap,
    /// Those to be run, each once, in this order.
    queue: VecDeque<usize>,
    /// When each is run at the latest.
    timers: BTreeSet<(Nanos, usize)>,
    /// Run since the sockets took everything.
    ran: Vec<usize>,
    /// Run, with nobody who holds them and nothing open.
    over: Vec<usize>,
    calls: Arc<WakeQueue>,
    /// Those that were woken; empty between two calls.
    called: Vec<usize>,
}

/// Which of them a packet is for.
#[derive(Default)]
pub(crate) struct PortMap {
    /// By SCTP port, mostly one each.
    by_port: BTreeMap<u16, Vec<(usize, Arc<PortReservation>)>>,
    /// The one with the smallest number.
    first: usize,
}

impl PortMap {
    /// By the destination port of the packet (RFC 9260 §3.1), and of several with that port by the address that it came to. What is for none
    /// of them, or no packet at all, is left to the first: it counts, and answers, as the protocol says.
    pub(crate) fn of(&self, (local, packet): (IpAddr, &[u8])) -> usize {
        let there = match packet.first_chunk() {
            Some(&[_, _, high, low]) => self.by_port.get(&u16::from_be_bytes([high, low])),
            None => None,
        };
        match there.map(Vec::as_slice) {
            None | Some([]) => self.first,
            // Most ports have one endpoint, which takes packets to any address.
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
    /// Takes one, which is to be run.
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
            // The other was alone: it wakes the driver for itself, and no list has its timer.
            2 => self.queue_all(),
            _ => self.queue(number),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one that is alone.
    pub(crate) fn only(&mut self) -> Option<&mut EndpointDriver> {
        match self.all.len() {
            1 => self
                .all
                .get_mut(self.port_map.first)
                .map(|it| &mut it.driver),
            _ => None,
        }
    }

    /// Wakes that task from now on for those that are woken. To be called where nothing is locked.
    pub(crate) fn wakes(&self, task: Waker) {
        let former = self.calls.lock().task.replace(task);
        drop(former);
    }

    /// Lets all that were woken, and those whose timers have ended, be run.
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

    /// How many are to be run.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The next of those to be run.
    pub(crate) fn next(&mut self) -> Option<usize> {
        loop {
            let number = self.queue.pop_front()?;
            // Its number may be another's by now.
            if let Some(slot) = self.all.get_mut(number)
                && std::mem::take(&mut slot.queued)
            {
                return Some(number);
            }
        }
    }

    /// Which of them a packet is for.
    pub(crate) fn port_map(&self) -> &PortMap {
        &self.port_map
    }

    /// Runs one by `run`, which is given what wakes the driver for it, and whose packets are whose.
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

    /// Lets one sleep that is not asked for what it has to send.
    pub(crate) fn park(&mut self, number: usize) {
        let slot = &mut self.all[number];
        let timeout = slot.driver.park(&slot.waker);
        self.set_timer(number, timeout);
    }

    /// When the first of their timers ends.
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        self.timers.first().map(|it| it.0)
    }

    /// The sockets have taken all that was gathered.
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

    /// Tells each that has that port what the network says. Of several one has the association that the message is about; the others find none.
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

    /// The one that is alone is over.
    pub(crate) fn end_only(&mut self) {
        self.over.push(self.port_map.first);
    }

    /// Those that are over.
    pub(crate) fn remove_over(&mut self) -> Vec<EndpointDriver> {
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

    /// Lets one be run at `timeout`, or sooner: to move its timer at each packet costs more than a run in vain.
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

/// Those that were woken, and the task that runs them.
#[derive(Default)]
struct WakeQueue(Mutex<WakeQueueState>);

#[derive(Default)]
struct WakeQueueState {
    numbers: Vec<usize>,
    /// Taken by the first that is woken. A waker may run anything when it is cloned, woken or dropped, and so is not while this is locked.
    task: Option<Waker>,
}

impl WakeQueue {
    fn lock(&self) -> MutexGuard<'_, WakeQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that were woken since the last time. Whoever is woken from now on wakes that task.
    fn take(&self, numbers: &mut Vec<usize>, task: &Waker) {
        let was_woken = self.lock().task.is_none();
        // Where a call takes the task right now, it is woken, and comes here again.
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

/// What wakes the driver for one of them. An endpoint wakes it once, and then not before it was run.
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
