//! The task that owns sockets and keeps the loop law for the endpoints on them: after each packet, drain what it causes;
//! then ask when to come back.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use anabranch_transport::Nanos;

use crate::alarm::Alarm;
use crate::claim::Claim;
use crate::failures::Doing;
use crate::ground::Ground;
use crate::inbox::Inbox;
use crate::io::Io;
use crate::port::{Port, Round};
use crate::rest::Rests;
use crate::turns::{Budget, Turns};

/// Rounds of receiving and sending before other tasks have their turn.
const MOST_ROUNDS: usize = 16;
/// Calls that receive from one socket in one round, and bytes after which no more follow. To receive a packet costs a small part
/// of what it costs to handle it: the sockets are emptied faster than their packets are handled, so that a flood is sorted
/// into turns and does not fill the sockets, where it would cost the others their packets.
const MOST_CALLS: usize = 32;
const MOST_BYTES: usize = 1 << 20;
/// ICMP messages taken in one round, and bytes of one that are looked at: routers quote 576 bytes (RFC 1812 §4.3.2.3), or of
/// IPv6 what makes 1,280.
const MOST_NEWS: usize = 32;
const MOST_ICMP: usize = 1_500;

/// Endpoints that were bound and that the driver has not taken yet. They come by [`Ground::join`] and go by [`Ground::take_new`], under its lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining(Arc<Mutex<Vec<Port>>>);

impl Joining {
    pub fn push(&self, port: Port) {
        self.lock().push(port);
    }

    fn take(&self) -> Vec<Port> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Port>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Owns the sockets, and drives the protocol of every endpoint on them.
pub(crate) struct Driver {
    ground: Arc<Ground>,
    joining: Joining,
    /// Who wakes it by that, wakes this task.
    waker: Option<Waker>,
    work: Work,
}

/// What is its own.
struct Work {
    ports: Vec<Port>,
    /// The SCTP ports of `ports`, with their addresses, and what their last runs came to.
    claims: Vec<Arc<Claim>>,
    rounds: Vec<Option<Round>>,
    /// The port that is first to send.
    turn: usize,
    inbox: Inbox,
    turns: Turns,
    /// Sockets that give errors.
    rests: Rests,
    /// Since when the sockets take nothing of what is to be sent, and how many calls they had done before; `None`: they do.
    stuck: Option<(Nanos, u64)>,
    /// How long that is borne: T5-shutdown-guard of the endpoints, within which each association that closes has ended (RFC 9260 §9.2).
    patience: Nanos,
    alarm: Alarm,
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
    pub fn new(ground: Arc<Ground>, joining: Joining) -> Self {
        let work = Work {
            ports: Vec::new(),
            claims: Vec::new(),
            rounds: Vec::new(),
            turn: 0,
            inbox: Inbox::new(),
            turns: Turns::default(),
            rests: Rests::default(),
            stuck: None,
            patience: 0,
            alarm: Alarm::new(&ground.clock),
        };
        Self {
            ground,
            joining,
            waker: None,
            work,
        }
    }
}

impl Work {
    /// Takes the endpoints and the sockets that are new.
    fn take_new(&mut self, ground: &Ground, joining: &Joining, waker: &Waker, io: &mut Io) {
        let (joining, opened) = ground.take_new(waker, || joining.take());
        for port in joining {
            self.claims.push(Arc::clone(port.claim()));
            self.patience = self.patience.max(port.guard());
            self.ports.push(port);
        }
        for socket in opened {
            io.sockets.add(socket);
        }
    }

    /// Receives from each socket, as far as a round goes. Whether more may be there: where not, each socket wakes this task when something comes.
    fn receive(&mut self, ground: &Ground, cx: &mut Context<'_>, io: &mut Io) -> bool {
        let mut more = false;
        for (number, socket) in io.sockets.iter().enumerate() {
            if !self.rests.are_none() && self.rests.rests(number, ground.clock.now()) {
                continue;
            }
            let mut bytes = 0;
            let mut empty = false;
            for _ in 0..MOST_CALLS {
                if !self.turns.has_room() {
                    break;
                }
                let put = |arrival| self.turns.push(arrival);
                match self.inbox.poll_receive(cx, socket, put) {
                    Poll::Ready(Ok(came)) => {
                        io.receive_calls += 1;
                        io.broken += came.broken;
                        bytes += came.bytes;
                        self.rests.worked(number);
                    }
                    // One that a former packet drew (ICMP), reported now, or one that will come again and again; nothing was received.
                    Poll::Ready(Err(error)) => {
                        io.receive_errors += 1;
                        io.failures.count(Doing::Receiving, &error);
                        if self.rests.failed(number, ground.clock.now()) {
                            empty = true;
                            break;
                        }
                    }
                    Poll::Pending => {
                        self.rests.worked(number);
                        empty = true;
                        break;
                    }
                }
                self.turns.drop_too_many();
                if bytes >= MOST_BYTES {
                    break;
                }
            }
            more |= !empty;
        }
        io.dropped = self.turns.dropped();
        more
    }

    /// Receives what the network says of packets from here, and tells the port that sent them. Whether anything came.
    fn receive_icmp(&mut self, cx: &mut Context<'_>, io: &Io) -> bool {
        let mut came = false;
        if io.sockets.icmp().next().is_none() {
            return came;
        }
        let mut buffer = [0; MOST_ICMP];
        for socket in io.sockets.icmp() {
            for _ in 0..MOST_NEWS {
                let Poll::Ready(Ok(message)) = socket.poll_receive(cx, &mut buffer) else {
                    break;
                };
                came = true;
                let Some(message) = message else { continue };
                // Of several with that port one has the association that the message is about; the others find none.
                let has_port = |it: &&Port| message.is_about(it.claim().port);
                for port in self.ports.iter().filter(has_port) {
                    port.handle_icmp(&message);
                }
            }
        }
        came
    }

    /// Lets every port take what arrived for it, as far as the budget of a round goes, and do what is due; the next one first
    /// each time, so that none that sends much leaves the others no room.
    fn run_protocol(&mut self, ground: &Ground, waker: &Waker, io: &mut Io) -> Whole {
        self.rounds.clear();
        let mut drained = true;
        let mut budget = Budget::of_a_round();
        self.turns.begin_round();
        if let [port] = &mut self.ports[..] {
            // It takes all there is: nothing is left to ask for whom.
            let round = port.run(waker, &mut self.turns, &mut budget, |_| true, io);
            let whole = Whole {
                settled: self.turns.is_empty() && round.settled,
                drained: self.turns.is_empty() && round.drained,
                timeout: round.timeout,
            };
            self.rounds.push(Some(round));
            if round.over {
                self.forget_ended(ground);
            }
            return whole;
        }
        self.rounds.resize(self.ports.len(), None);
        self.turn = (self.turn + 1) % self.ports.len().max(1);
        let mut next = Some(self.turn).filter(|_| !self.ports.is_empty());
        while let Some(index) = next {
            let claims = &self.claims;
            let mine = |next: (IpAddr, &[u8])| owner(claims, next) == index;
            let port = &mut self.ports[index];
            let round = port.run(waker, &mut self.turns, &mut budget, mine, io);
            self.rounds[index] = Some(round);
            drained = round.drained;
            next = match self.turns.peek().filter(|_| !budget.is_spent()) {
                _ if !drained => None,
                Some(packet) => Some(owner(claims, packet)),
                None => self.rounds.iter().position(Option::is_none),
            };
        }
        if self.ports.is_empty() {
            self.turns.clear();
        }
        let rounds = || self.rounds.iter().flatten();
        let whole = Whole {
            settled: drained && self.turns.is_empty() && rounds().all(|round| round.settled),
            drained: drained && self.turns.is_empty() && rounds().all(|round| round.drained),
            timeout: rounds().filter_map(|round| round.timeout).min(),
        };
        self.forget_ended(ground);
        whole
    }

    /// While the sockets have no room, and as much is gathered as may wait: lets every port do what is due, and sleep. What that has to send
    /// stays with the protocol; nothing is taken that arrives.
    #[cold]
    fn run_timers(&mut self, ground: &Ground, waker: &Waker, io: &mut Io) -> Whole {
        self.rounds.clear();
        let mut timeout: Option<Nanos> = None;
        for port in &mut self.ports {
            let mut budget = Budget::nothing();
            let round = port.run(waker, &mut self.turns, &mut budget, |_| false, io);
            let next = port.let_sleep(waker);
            timeout = [timeout, next].into_iter().flatten().min();
            self.rounds.push(Some(round));
        }
        self.forget_ended(ground);
        Whole {
            settled: true,
            drained: true,
            timeout,
        }
    }

    /// Lets go of ports that nobody holds and where nothing is open.
    fn forget_ended(&mut self, ground: &Ground) {
        for index in (0..self.rounds.len()).rev() {
            if self.rounds[index].is_some_and(|round| round.over) {
                let port = self.ports.remove(index);
                ground.release(&self.claims.remove(index));
                drop(port);
            }
        }
    }

    /// Sets the alarm; whether it rang already. `waits`: something is to be sent that the sockets do not take.
    fn poll_alarm(&mut self, ground: &Ground, timeout: Option<Nanos>, waits: bool) -> bool {
        let timeout = match self.rests.are_none() && self.stuck.is_none() {
            true => timeout,
            false => {
                let stuck = self.stuck.filter(|_| waits);
                let gives_up = stuck.map(|(since, _)| since.saturating_add(self.patience));
                let rests = self.rests.next();
                [timeout, rests, gives_up].into_iter().flatten().min()
            }
        };
        self.alarm.poll(&ground.clock, timeout)
    }

    /// Sends what was gathered, as far as the sockets take it.
    fn poll_flush(&mut self, ground: &Ground, cx: &mut Context<'_>, io: &mut Io) -> Poll<()> {
        let mut flushed = io.poll_flush(cx);
        if flushed.is_pending() && self.gives_up(ground.clock.now(), io.sent.calls) {
            io.outbox.throw_away(&mut io.sent);
            flushed = Poll::Ready(());
        }
        if flushed.is_ready() {
            self.ports.iter_mut().for_each(Port::flushed);
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
        let Self {
            ground,
            joining,
            waker,
            work: this,
        } = &mut *self;
        let is_known = waker.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if !is_known {
            // What is cloned or dropped may run anything: not while the sockets are held.
            drop(this.alarm.wakes(cx.waker().clone()));
            *waker = Some(cx.waker().clone());
        }
        let mut held = ground.io();
        let io = &mut *held;
        if ground.has_news() || !is_known {
            this.take_new(ground, joining, cx.waker(), io);
        }
        for _ in 0..MOST_ROUNDS {
            let mut blocked = this.poll_flush(ground, cx, io).is_pending();
            let (more, round) = if blocked && io.is_full() {
                // What arrives waits in the system's bounded buffers.
                (false, this.run_timers(ground, cx.waker(), io))
            } else {
                // Only a socket that has nothing left wakes this task when something comes.
                let mut more = this.receive(ground, cx, io);
                more |= this.receive_icmp(cx, io);
                (more, this.run_protocol(ground, cx.waker(), io))
            };
            // The socket that is blocked wakes this task when it has room.
            blocked = blocked || this.poll_flush(ground, cx, io).is_pending();
            if !blocked && this.ports.is_empty() && ground.close_unless_held() {
                return Poll::Ready(());
            }
            let settled = round.settled || (blocked && round.drained);
            if settled && !more && !this.poll_alarm(ground, round.timeout, blocked) {
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
        self.ground.stop();
        // Their end tells those who wait.
        drop(self.joining.take());
        self.ground.io().sockets.close();
    }
}

/// Which of the ports a packet is for, by its destination port (RFC 9260 §3.1), and of several with that port by the address that it came
/// to. What is for none of them, or no packet at all, is left to the first: it counts, and answers, as the protocol says.
fn owner(claims: &[Arc<Claim>], (local, packet): (IpAddr, &[u8])) -> usize {
    let (Some(&[_, _, high, low]), true) = (packet.first_chunk(), claims.len() > 1) else {
        return 0;
    };
    let port = u16::from_be_bytes([high, low]);
    let mut with_port = (0..claims.len()).filter(|&index| claims[index].port == port);
    let Some(first) = with_port.next() else {
        return 0;
    };
    // Most ports have one endpoint, which takes packets to any address.
    let mut others = with_port.peekable();
    if others.peek().is_none() || claims[first].has(local) {
        return first;
    }
    others
        .find(|&index| claims[index].has(local))
        .unwrap_or(first)
}
