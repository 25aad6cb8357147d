//! The task that owns sockets and keeps the loop law for the endpoints on them: after each packet, drain what it causes;
//! then ask when to come back.

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

/// Rounds of receiving and sending before other tasks have their turn.
const MOST_ROUNDS: usize = 16;
/// Calls that receive from one socket in one round, and bytes after which no more follow. To receive a packet costs a small part
/// of what it costs to handle it: the sockets are emptied faster than their packets are handled, so that a flood is sorted
/// into turns and does not fill the sockets, where it would cost the others their packets.
const MOST_CALLS: usize = 32;
const MOST_BYTES: usize = 1 << 20;
/// ICMP messages taken in one round, and bytes of one that are looked at: routers quote 576 bytes (RFC 1812 §4.3.2.3), or of
/// IPv6 what makes 1,280.
const MAX_NEWS: usize = 32;
const MOST_ICMP: usize = 1_500;

/// Endpoints that were bound and that the driver has not taken yet. They come by [`DriverShared::join`] and go by [`DriverShared::take_new`], under its lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining(Arc<Mutex<Vec<EndpointDriver>>>);

impl Joining {
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
    joining: Joining,
    /// Who wakes it by that, wakes this task.
    waker: Option<Waker>,
    work: Work,
}

/// What is its own.
struct Work {
    endpoints: EndpointSet,
    receive_buffers: ReceiveBuffers,
    receive_queue: FairReceiveQueue,
    /// What others of its group received for it.
    mail: ReceivedMail,
    /// Sockets that give errors.
    backoff: SocketBackoff,
    /// Since when the sockets take nothing of what is to be sent, and how many calls they had done before; `None`: they do.
    stuck: Option<(Nanos, u64)>,
    /// How long that is borne: T5-shutdown-guard of the endpoints, within which each association that closes has ended (RFC 9260 §9.2).
    patience: Nanos,
    driver_timer: DriverTimer,
}

/// What a round of all ports came to.
struct Whole {
    /// Nothing is to be done before the timeout.
    settled: bool,
    /// Nor is anything while the sockets have no room.
    drained: bool,
    timeout: Option<Nanos>,
}

impl Driver {
    pub(crate) fn new(driver_shared: Arc<DriverShared>, joining: Joining) -> Self {
        let work = Work {
            endpoints: EndpointSet::default(),
            receive_buffers: ReceiveBuffers::new(),
            receive_queue: FairReceiveQueue::that_show(
                driver_shared.shard_handle.as_ref().map(ShardHandle::shown),
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
    /// Takes the endpoints and the sockets that are new.
    fn take_new(
        &mut self,
        driver_shared: &DriverShared,
        joining: &Joining,
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

    /// Receives from each socket, as far as a round goes. Whether more may be there: where not, each socket wakes this task when something comes.
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
            for _ in 0..MOST_CALLS {
                if !self.receive_queue.has_room() {
                    break;
                }
                let put = |arrival| match shard_handle {
                    None => self.receive_queue.push(arrival),
                    Some(shard_handle) => {
                        io.handed |= shard_handle.sort(arrival, &mut self.receive_queue)
                    }
                };
                match self.receive_buffers.poll_receive(cx, socket, put) {
                    Poll::Ready(Ok(came)) => {
                        io.receive_calls += 1;
                        io.broken += came.broken;
                        bytes += came.bytes;
                        self.backoff.worked(number);
                    }
                    // One that a former packet drew (ICMP), reported now, or one that will come again and again; nothing was received.
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
                self.receive_queue.drop_too_many();
                if bytes >= MOST_BYTES {
                    break;
                }
            }
            more |= !empty;
        }
        io.dropped = self.receive_queue.dropped() + self.mail.dropped;
        io.handed_over = self.mail.came;
        more
    }

    /// The same inside UDP, where a call on a socket said that there is something.
    fn take_reported(&mut self, io: &Io) -> bool {
        let mut came = false;
        for socket in io.sockets.iter() {
            came |= socket.take_reported(MAX_NEWS, |message| self.endpoints.handle_icmp(message));
        }
        came
    }

    /// Receives what the network says of packets from here, and tells the port that sent them. Whether anything came.
    fn receive_icmp(&mut self, cx: &mut Context<'_>, io: &Io) -> bool {
        let mut came = self.take_reported(io);
        if io.sockets.icmp().next().is_none() {
            return came;
        }
        let mut buffer = [0; MOST_ICMP];
        for socket in io.sockets.icmp() {
            for _ in 0..MAX_NEWS {
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

    /// Lets every port take what arrived for it, as far as the budget of a round goes, and do what is due. What one left to do waits behind
    /// the others, so that none that sends much leaves them no room.
    fn run_protocol(&mut self, driver_shared: &DriverShared, waker: &Waker, io: &mut Io) -> Whole {
        let mut budget = Budget::of_a_round();
        self.receive_queue.begin_round();
        if let Some(endpoint) = self.endpoints.only() {
            // It takes all there is: nothing is left to ask for whom.
            let round = endpoint.run(waker, &mut self.receive_queue, &mut budget, |_| true, io);
            let whole = Whole {
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
        // Those that are left to do more are for the next round.
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
        let whole = Whole {
            settled: drained && is_empty && self.endpoints.waiting() == 0,
            drained: drained && is_empty,
            timeout: self.endpoints.timeout(),
        };
        self.forget_ended(driver_shared);
        whole
    }

    /// Runs one of several ports.
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

    /// While the sockets have no room, and as much is gathered as may wait: lets every port do what is due, and sleep. What that has to send
    /// stays with the protocol; nothing is taken that arrives.
    #[cold]
    fn run_timers(&mut self, driver_shared: &DriverShared, waker: &Waker, io: &mut Io) -> Whole {
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
        Whole {
            settled: true,
            drained: true,
            timeout,
        }
    }

    /// Lets go of ports that nobody holds and where nothing is open.
    fn forget_ended(&mut self, driver_shared: &DriverShared) {
        for endpoint in self.endpoints.remove_over() {
            driver_shared.release(endpoint.reservation());
            drop(endpoint);
        }
    }

    /// Sets the alarm; whether it rang already. `waits`: something is to be sent that the sockets do not take.
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
                let gives_up = stuck.map(|(since, _)| since.saturating_add(self.patience));
                let backoff = self.backoff.next();
                [timeout, backoff, gives_up].into_iter().flatten().min()
            }
        };
        self.driver_timer.poll(&driver_shared.clock, timeout)
    }

    /// Sends what was gathered, as far as the sockets take it.
    fn poll_flush(
        &mut self,
        driver_shared: &DriverShared,
        cx: &mut Context<'_>,
        io: &mut Io,
    ) -> Poll<()> {
        let mut flushed = io.poll_flush(cx);
        if flushed.is_pending() && self.gives_up(driver_shared.clock.now(), io.sent.calls) {
            io.transmit_queue.throw_away(&mut io.sent);
            flushed = Poll::Ready(());
        }
        if flushed.is_ready() {
            self.endpoints.flushed();
            // What was thrown away is no sign of room.
            if self.stuck.is_some_and(|(_, calls)| calls != io.sent.calls) {
                self.stuck = None;
            }
        }
        flushed
    }

    /// The sockets have no room, and have done so many calls. Whether that lasts for longer than any association takes to end, whose last packets
    /// may be what waits: else they, and the sockets, would stay for ever. What waits of others is of no use by then, either.
    #[cold]
    fn gives_up(&mut self, now: Nanos, calls: u64) -> bool {
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
            // What is cloned or dropped may run anything: not while the sockets are held.
            drop(this.driver_timer.wakes(cx.waker().clone()));
            this.endpoints.wakes(cx.waker().clone());
            drop(
                (driver_shared.shard_handle.as_ref())
                    .and_then(|shard_handle| shard_handle.wakes(cx.waker().clone())),
            );
            *waker = Some(cx.waker().clone());
        }
        let mut held = driver_shared.io();
        let io = &mut *held;
        if driver_shared.has_news() || !is_known {
            this.take_new(driver_shared, joining, cx.waker(), io);
        }
        for _ in 0..MOST_ROUNDS {
            let mut blocked = this.poll_flush(driver_shared, cx, io).is_pending();
            let (more, round) = if blocked && io.is_full() {
                // What arrives waits in the system's bounded buffers.
                (false, this.run_timers(driver_shared, cx.waker(), io))
            } else {
                // Only a socket that has nothing left wakes this task when something comes.
                let mut more = this.receive(driver_shared, cx, io);
                more |= this.receive_icmp(cx, io);
                (more, this.run_protocol(driver_shared, cx.waker(), io))
            };
            // The socket that is blocked wakes this task when it has room.
            blocked = blocked || this.poll_flush(driver_shared, cx, io).is_pending();
            if !blocked && this.endpoints.is_empty() && driver_shared.close_unless_held() {
                return Poll::Ready(());
            }
            if std::mem::take(&mut io.handed) {
                // Those who have got mail are woken before more is done here.
                break;
            }
            // A call that sent may have told of it.
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
    /// The runtime goes down, or nothing is left to do: nobody may join any more.
    fn drop(&mut self) {
        self.driver_shared.stop();
        self.driver_shared
            .shard_handle
            .as_ref()
            .inspect(|shard_handle| shard_handle.close());
        // Their end tells those who wait.
        drop(self.joining.take());
        self.driver_shared.io().sockets.close();
    }
}
