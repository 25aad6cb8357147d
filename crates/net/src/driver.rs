//! The task that owns the sockets and drives the endpoints on them. The protocol core requires that
//! after each packet the driver drains the output and then reads the next timeout.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use anabranch_transport::Nanos;

use crate::driver_shared::DriverShared;
use crate::driver_timer::DriverTimer;
use crate::endpoint_driver::{EndpointDriver, RunOutcome};
use crate::endpoint_set::EndpointSet;
use crate::io::Io;
use crate::receive_buffers::ReceiveBuffers;
use crate::receive_queue::{Budget, FairReceiveQueue};
use crate::shard_group::{ReceivedMail, ShardHandle};
use crate::socket_backoff::SocketBackoff;
use crate::socket_errors::SocketOperation;

/// Rounds of receiving and sending before the task yields to others.
const MAX_ROUNDS: usize = 16;
/// Limits per socket and round: number of receive calls, and bytes after which no further call is
/// made. Receiving a packet costs much less than handling it. Sockets are therefore emptied faster
/// than their packets are handled, so that a flood waits in the fair queue. In the socket buffers,
/// which are not fair, it would displace packets of other peers.
const MAX_RECEIVE_CALLS: usize = 32;
const MAX_RECEIVE_BYTES: usize = 1 << 20;
/// Limits per round: ICMP messages read, and bytes examined of each. Routers quote 576 bytes (RFC
/// 1812 §4.3.2.3), or for IPv6 up to 1,280 in total.
const MAX_ICMP_MESSAGES: usize = 32;
const MAX_ICMP_BYTES: usize = 1_500;

/// Endpoints that were bound but that the driver does not run yet. Endpoints are added by
/// [`DriverShared::join`] and removed by [`DriverShared::take_new`], under its lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewEndpoints(Arc<Mutex<Vec<EndpointDriver>>>);

impl NewEndpoints {
    pub(crate) fn push(&self, endpoint: EndpointDriver) {
        self.lock().push(endpoint);
    }

    fn take(&self) -> Vec<EndpointDriver> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EndpointDriver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Owns the sockets, and drives the protocol of every endpoint on them.
pub(crate) struct Driver {
    driver_shared: Arc<DriverShared>,
    joining: NewEndpoints,
    /// The waker of this task, which the shared state uses to wake the driver.
    waker: Option<Waker>,
    work: Work,
}

/// State that only the driver uses.
struct Work {
    endpoints: EndpointSet,
    receive_buffers: ReceiveBuffers,
    receive_queue: FairReceiveQueue,
    /// Packets that other shards of the group received for this driver.
    mail: ReceivedMail,
    /// Backoff of sockets that report errors.
    backoff: SocketBackoff,
    /// Time since which the sockets have accepted no packets, and the number of send calls at that
    /// time; `None` if they accept packets.
    stuck: Option<(Nanos, u64)>,
    /// Maximum time in `stuck`: the T5-shutdown-guard of the endpoints, within which every closing
    /// association has ended (RFC 9260 §9.2).
    patience: Nanos,
    driver_timer: DriverTimer,
}

/// Outcome of a round over all endpoints.
struct RoundOutcome {
    /// No endpoint has work before `timeout`.
    settled: bool,
    /// All output of the endpoints was gathered. While the sockets are not writable, there is then
    /// no work before `timeout`.
    drained: bool,
    timeout: Option<Nanos>,
}

impl Driver {
    pub(crate) fn new(driver_shared: Arc<DriverShared>, joining: NewEndpoints) -> Self {
        let work = Work {
            endpoints: EndpointSet::default(),
            receive_buffers: ReceiveBuffers::new(),
            receive_queue: FairReceiveQueue::sharing_known(
                driver_shared
                    .shard_handle
                    .as_ref()
                    .map(ShardHandle::known_peers),
            ),
            mail: ReceivedMail::default(),
            backoff: SocketBackoff::default(),
            stuck: None,
            patience: 0,
            driver_timer: DriverTimer::new(&driver_shared.clock),
        };
        Self {
            driver_shared,
            joining,
            waker: None,
            work,
        }
    }
}

impl Work {
    /// Takes the endpoints and sockets that were added since the last call.
    fn take_new(
        &mut self,
        driver_shared: &DriverShared,
        joining: &NewEndpoints,
        waker: &Waker,
        io: &mut Io,
    ) {
        let (joining, opened) = driver_shared.take_new(waker, || joining.take());
        for endpoint in joining {
            self.patience = self.patience.max(endpoint.guard());
            self.endpoints.add(endpoint);
        }
        for socket in opened {
            io.sockets.add(socket);
        }
    }

    /// Receives from each socket, within the limits of a round. Returns true if more packets may be
    /// available. If it returns false, each socket wakes this task when a packet arrives.
    fn receive(&mut self, driver_shared: &DriverShared, cx: &mut Context<'_>, io: &mut Io) -> bool {
        let shard_handle = driver_shared.shard_handle.as_ref();
        let mut more = shard_handle
            .is_some_and(|shard_handle| shard_handle.take(&mut self.mail, &mut self.receive_queue));
        for (number, socket) in io.sockets.iter().enumerate() {
            if !self.backoff.are_none()
                && self.backoff.is_waiting(number, driver_shared.clock.now())
            {
                continue;
            }
            let mut bytes = 0;
            let mut empty = false;
            for _ in 0..MAX_RECEIVE_CALLS {
                if !self.receive_queue.has_room() {
                    break;
                }
                let put = |arrival| match shard_handle {
                    None => self.receive_queue.push(arrival),
                    Some(shard_handle) => {
                        io.handed |= shard_handle.sort_by_owner(arrival, &mut self.receive_queue)
                    }
                };
                match self.receive_buffers.poll_receive(cx, socket, put) {
                    Poll::Ready(Ok(came)) => {
                        io.receive_calls += 1;
                        io.broken += came.broken;
                        bytes += came.bytes;
                        self.backoff.worked(number);
                    }
                    // No packet was received: the call reports an ICMP error of an earlier packet,
                    // or a persistent error.
                    Poll::Ready(Err(error)) => {
                        io.receive_errors += 1;
                        io.failures.count(SocketOperation::Receiving, &error);
                        if self.backoff.failed(number, driver_shared.clock.now()) {
                            empty = true;
                            break;
                        }
                    }
                    Poll::Pending => {
                        self.backoff.worked(number);
                        empty = true;
                        break;
                    }
                }
                self.receive_queue.drop_excess();
                if bytes >= MAX_RECEIVE_BYTES {
                    break;
                }
            }
            more |= !empty;
        }
        io.dropped = self.receive_queue.dropped() + self.mail.dropped;
        io.handed_over = self.mail.came;
        more
    }

    /// Processes the ICMP messages of UDP encapsulation, if a call on a socket reported that there
    /// are some.
    fn take_reported(&mut self, io: &Io) -> bool {
        let mut came = false;
        for socket in io.sockets.iter() {
            came |= socket.take_reported(MAX_ICMP_MESSAGES, |message| {
                self.endpoints.handle_icmp(message)
            });
        }
        came
    }

    /// Receives ICMP messages about packets of this host, and passes them to the endpoints that
    /// sent those packets. Returns true if there were any.
    fn receive_icmp(&mut self, cx: &mut Context<'_>, io: &Io) -> bool {
        let mut came = self.take_reported(io);
        if io.sockets.icmp().next().is_none() {
            return came;
        }
        let mut buffer = [0; MAX_ICMP_BYTES];
        for socket in io.sockets.icmp() {
            for _ in 0..MAX_ICMP_MESSAGES {
                let Poll::Ready(Ok(message)) = socket.poll_receive(cx, &mut buffer) else {
                    break;
                };
                came = true;
                if let Some(message) = message {
                    self.endpoints.handle_icmp(&message);
                }
            }
        }
        came
    }

    /// Runs every endpoint that has work: it handles its packets within the budget of a round, its
    /// expired timers, and other pending work. An endpoint with remaining work is queued behind the
    /// others, so that a busy endpoint does not starve them.
    fn run_protocol(
        &mut self,
        driver_shared: &DriverShared,
        waker: &Waker,
        io: &mut Io,
    ) -> RoundOutcome {
        let mut budget = Budget::of_a_round();
        self.receive_queue.begin_round();
        if let Some(endpoint) = self.endpoints.only() {
            // With only one endpoint no port lookup is needed, because it receives all packets.
            let round = endpoint.run(waker, &mut self.receive_queue, &mut budget, |_| true, io);
            let whole = RoundOutcome {
                settled: self.receive_queue.is_empty() && round.settled,
                drained: self.receive_queue.is_empty() && round.drained,
                timeout: round.timeout,
            };
            if round.over {
                self.endpoints.end_only();
                self.forget_ended(driver_shared);
            }
            return whole;
        }
        self.endpoints.gather(driver_shared.clock.now(), waker);
        // Endpoints that have more to do continue in the next round.
        let mut waiting = self.endpoints.waiting();
        let mut drained = true;
        while drained {
            let packet = self.receive_queue.peek().filter(|_| !budget.is_spent());
            let next = match packet.filter(|_| !self.endpoints.is_empty()) {
                Some(packet) => self.endpoints.port_map().of(packet),
                None if waiting == 0 => break,
                None => {
                    waiting -= 1;
                    let Some(next) = self.endpoints.next() else {
                        break;
                    };
                    next
                }
            };
            drained = self.run_one(next, &mut budget, io).drained;
        }
        if self.endpoints.is_empty() {
            self.receive_queue.clear();
        }
        let is_empty = self.receive_queue.is_empty();
        let whole = RoundOutcome {
            settled: drained && is_empty && self.endpoints.waiting() == 0,
            drained: drained && is_empty,
            timeout: self.endpoints.timeout(),
        };
        self.forget_ended(driver_shared);
        whole
    }

    /// Runs one of several endpoints.
    fn run_one(&mut self, number: usize, budget: &mut Budget, io: &mut Io) -> RunOutcome {
        let Self {
            endpoints,
            receive_queue,
            ..
        } = self;
        endpoints.run(number, |endpoint, waker, port_map| {
            let mine = |packet: (IpAddr, &[u8])| port_map.of(packet) == number;
            endpoint.run(waker, receive_queue, budget, mine, io)
        })
    }

    /// Runs only expired timers of the endpoints; used while the sockets are not writable and the
    /// transmit queue is full. Output stays in the protocol, and no packets are received.
    #[cold]
    fn run_timers(
        &mut self,
        driver_shared: &DriverShared,
        waker: &Waker,
        io: &mut Io,
    ) -> RoundOutcome {
        let timeout;
        let mut budget = Budget::nothing();
        if let Some(endpoint) = self.endpoints.only() {
            let round = endpoint.run(waker, &mut self.receive_queue, &mut budget, |_| false, io);
            timeout = endpoint.park(waker);
            if round.over {
                self.endpoints.end_only();
            }
        } else {
            self.endpoints.gather(driver_shared.clock.now(), waker);
            for _ in 0..self.endpoints.waiting() {
                let Some(next) = self.endpoints.next() else {
                    break;
                };
                let receive_queue = &mut self.receive_queue;
                (self.endpoints).run(next, |endpoint, waker, _| {
                    endpoint.run(waker, receive_queue, &mut budget, |_| false, io)
                });
                self.endpoints.park(next);
            }
            timeout = self.endpoints.timeout();
        }
        self.forget_ended(driver_shared);
        RoundOutcome {
            settled: true,
            drained: true,
            timeout,
        }
    }

    /// Drops endpoints that have neither handles nor open associations.
    fn forget_ended(&mut self, driver_shared: &DriverShared) {
        for endpoint in self.endpoints.remove_ended() {
            driver_shared.release(endpoint.reservation());
            drop(endpoint);
        }
    }

    /// Sets the timer; returns true if it has expired. `waits` is true if packets wait until the
    /// sockets are writable.
    fn poll_timer(
        &mut self,
        driver_shared: &DriverShared,
        timeout: Option<Nanos>,
        waits: bool,
    ) -> bool {
        let timeout = match self.backoff.are_none() && self.stuck.is_none() {
            true => timeout,
            false => {
                let stuck = self.stuck.filter(|_| waits);
                let is_stuck_too_long = stuck.map(|(since, _)| since.saturating_add(self.patience));
                let backoff = self.backoff.next();
                [timeout, backoff, is_stuck_too_long]
                    .into_iter()
                    .flatten()
                    .min()
            }
        };
        self.driver_timer.poll(&driver_shared.clock, timeout)
    }

    /// Sends queued packets until the queue is empty or the sockets are not writable.
    fn poll_flush(
        &mut self,
        driver_shared: &DriverShared,
        cx: &mut Context<'_>,
        io: &mut Io,
    ) -> Poll<()> {
        let mut flushed = io.poll_flush(cx);
        if flushed.is_pending() && self.is_stuck_too_long(driver_shared.clock.now(), io.sent.calls)
        {
            io.transmit_queue.throw_away(&mut io.sent);
            flushed = Poll::Ready(());
        }
        if flushed.is_ready() {
            self.endpoints.flushed();
            // Only a send call shows that a socket is writable again. An empty queue does not show
            // it, because packets may have been discarded from the queue.
            if self.stuck.is_some_and(|(_, calls)| calls != io.sent.calls) {
                self.stuck = None;
            }
        }
        flushed
    }

    /// Called when the sockets are not writable, with the number of send calls so far. Returns true
    /// if the sockets have accepted no packets for longer than any association takes to end. The
    /// queued packets may be the final packets of closing associations, which would otherwise keep
    /// the sockets open permanently; by then, packets of other associations are obsolete as well.
    #[cold]
    fn is_stuck_too_long(&mut self, now: Nanos, calls: u64) -> bool {
        match self.stuck {
            Some((since, before)) if before == calls => now >= since.saturating_add(self.patience),
            _ => {
                self.stuck = Some((now, calls));
                false
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.run(cx);
        if let Some(shard_handle) = &self.driver_shared.shard_handle {
            shard_handle.wake_others();
        }
        polled
    }
}

impl Driver {
    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            driver_shared,
            joining,
            waker,
            work: this,
        } = self;
        let is_known = waker.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if !is_known {
            // The wakers are cloned and dropped before the sockets are locked, because doing so may
            // run any code.
            drop(this.driver_timer.set_waker(cx.waker().clone()));
            this.endpoints.set_waker(cx.waker().clone());
            drop(
                (driver_shared.shard_handle.as_ref())
                    .and_then(|shard_handle| shard_handle.set_waker(cx.waker().clone())),
            );
            *waker = Some(cx.waker().clone());
        }
        let mut held = driver_shared.io();
        let io = &mut *held;
        if driver_shared.has_news() || !is_known {
            this.take_new(driver_shared, joining, cx.waker(), io);
        }
        for _ in 0..MAX_ROUNDS {
            let mut blocked = this.poll_flush(driver_shared, cx, io).is_pending();
            let (more, round) = if blocked && io.is_full() {
                // Packets are not received now: they wait in the bounded buffers of the system.
                (false, this.run_timers(driver_shared, cx.waker(), io))
            } else {
                // Receives until the sockets are empty, because only an empty socket wakes this
                // task when a packet arrives.
                let mut more = this.receive(driver_shared, cx, io);
                more |= this.receive_icmp(cx, io);
                (more, this.run_protocol(driver_shared, cx.waker(), io))
            };
            // If a socket is blocked, it wakes this task when it is writable.
            blocked = blocked || this.poll_flush(driver_shared, cx, io).is_pending();
            if !blocked && this.endpoints.is_empty() && driver_shared.close_unless_held() {
                return Poll::Ready(());
            }
            if std::mem::take(&mut io.handed) {
                // Yields, because the shards that received packets in their mailboxes have to be
                // woken first.
                break;
            }
            // Checks for ICMP messages that a send call has reported.
            let more = more | this.take_reported(io);
            let settled = round.settled || (blocked && round.drained);
            if settled && !more && !this.poll_timer(driver_shared, round.timeout, blocked) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    /// Called when the runtime or all endpoints have ended: no further endpoint may join.
    fn drop(&mut self) {
        self.driver_shared.stop();
        self.driver_shared
            .shard_handle
            .as_ref()
            .inspect(|shard_handle| shard_handle.close());
        // Dropping endpoints that were not started notifies their users.
        drop(self.joining.take());
        self.driver_shared.io().sockets.close();
    }
}
