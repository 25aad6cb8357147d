//! The task that owns an endpoint's sockets and keeps the loop law: after each packet, drain what it causes; then ask when
//! to come back.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anabranch_sctp::{AssociationId, CloseReason, Event, PathState};
use anabranch_transport::{Nanos, Path, Transport};
use tokio::time::Sleep;

use crate::config::Carrier;
use crate::event::AssociationEvent;
use crate::inbox::{Arrival, Inbox};
use crate::observer::{Direction, Seen};
use crate::outbox::{Outbox, Sent};
use crate::shared::{Entry, Phase, Shared, State};
use crate::socket::Sockets;

/// Rounds of receiving and sending before other tasks have their turn.
const MOST_ROUNDS: usize = 16;

/// Owns the sockets, and drives the protocol.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    sockets: Sockets,
    inbox: Inbox,
    arrivals: VecDeque<Arrival>,
    outbox: Outbox,
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` ends; `None`: nobody looks at it.
    alarm: Option<Nanos>,
    /// Closed associations that nobody holds, to be forgotten once their last packet is out.
    leaving: Vec<AssociationId>,
    /// How long unheld associations may take to close, and when that time is over.
    linger: Nanos,
    deadline: Option<Nanos>,
    sent: Sent,
    receive_calls: u64,
    foreign: u64,
}

/// What a round came to.
struct Round {
    /// The protocol has nothing to do before its next timeout.
    settled: bool,
    timeout: Option<Nanos>,
    /// Nobody holds anything, and nothing is open.
    over: bool,
}

impl Driver {
    pub fn new(shared: Arc<Shared>, sockets: Sockets, linger: std::time::Duration) -> Self {
        Self {
            shared,
            sockets,
            inbox: Inbox::new(),
            arrivals: VecDeque::new(),
            outbox: Outbox::default(),
            sleep: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
            alarm: None,
            leaving: Vec::new(),
            linger: linger.as_nanos().min(u128::from(u64::MAX)) as Nanos,
            deadline: None,
            sent: Sent::default(),
            receive_calls: 0,
            foreign: 0,
        }
    }

    /// Receives from each socket what one call brings. Whether anything came.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut came = false;
        for socket in self.sockets.iter() {
            match self.inbox.poll_receive(cx, socket, &mut self.arrivals) {
                Poll::Ready(Ok(broken)) => {
                    self.receive_calls += 1;
                    self.foreign += broken;
                    came = true;
                }
                // An error that a former packet drew (ICMP), reported now; nothing was received.
                Poll::Ready(Err(_)) => came = true,
                Poll::Pending => {}
            }
        }
        came
    }

    /// Everything that is done under the lock.
    fn run_protocol(&mut self, waker: &Waker) -> Round {
        let shared = Arc::clone(&self.shared);
        let mut guard = shared.lock();
        let state = &mut *guard;
        let now = shared.now();
        self.handle_arrivals(state, now);
        if state.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            state.endpoint.handle_timeout(now);
        }
        let mut settled = self.drain_transmits(state, now);
        self.drain_events(state, now);
        self.drain_samples(state);
        // What an event set off may have something to send.
        settled &= self.drain_transmits(state, now) && self.arrivals.is_empty();
        self.forget_leaving(state);
        tell_writers(state);
        self.publish(state);
        let unheld = state.handles == 0 && state.entries.values().all(|entry| entry.handles == 0);
        if unheld {
            self.hurry(state, now);
        } else {
            self.deadline = None;
        }
        let over = unheld && state.entries.is_empty() && settled;
        if settled {
            state.driver = Some(waker.clone());
        }
        let timeout = [state.endpoint.poll_timeout(), self.deadline];
        Round {
            settled,
            timeout: timeout.into_iter().flatten().min(),
            over,
        }
    }

    fn handle_arrivals(&mut self, state: &mut State, now: Nanos) {
        while let Some(arrival) = self.arrivals.front_mut() {
            let len = arrival.stride.min(arrival.packets.len());
            let packet = arrival.packets.split_to(len);
            let (local, from) = (arrival.local, arrival.from);
            if arrival.packets.is_empty() {
                self.arrivals.pop_front();
            }
            if let Carrier::Udp { peer_port, .. } = self.shared.carrier
                && from.port() != peer_port
            {
                self.foreign += 1;
                continue;
            }
            state.statistics.packets_received += 1;
            if let Some(observer) = &mut state.observer {
                observer.packet(&Seen {
                    at: now,
                    direction: Direction::In,
                    local,
                    remote: from.ip(),
                    udp_port: from.port(),
                    packet: &packet,
                });
            }
            let path = Path::new(local, from.ip());
            state.endpoint.handle_from(now, path, from.port(), packet);
            if !self.drain_transmits(state, now) {
                return;
            }
        }
    }

    /// Gathers what the protocol has to send; `false` if there is more than is gathered at a time.
    fn drain_transmits(&mut self, state: &mut State, now: Nanos) -> bool {
        while !self.outbox.is_full() {
            let Some(outgoing) = state.endpoint.poll_outgoing(now, &mut self.outbox.bytes) else {
                return true;
            };
            let (path, len) = (outgoing.transmit.path, outgoing.transmit.len);
            let to = SocketAddr::new(path.remote, outgoing.udp_port);
            if let Some(observer) = &mut state.observer {
                let start = self.outbox.bytes.len() - len;
                observer.packet(&Seen {
                    at: now,
                    direction: Direction::Out,
                    local: path.local,
                    remote: path.remote,
                    udp_port: outgoing.udp_port,
                    packet: &self.outbox.bytes[start..],
                });
            }
            let packet = (len, outgoing.transmit.may_fragment);
            if !self.outbox.push(&self.sockets, path.local, to, packet) {
                self.sent.errors += 1;
            }
        }
        false
    }

    fn drain_events(&mut self, state: &mut State, now: Nanos) {
        while let Some((id, event)) = state.endpoint.poll_event() {
            if !state.entries.contains_key(&id) {
                self.welcome(state, id);
            }
            if let Event::Closed(reason) = event {
                self.close(state, id, reason);
                continue;
            }
            let Some(entry) = state.entries.get_mut(&id) else {
                continue;
            };
            match event {
                Event::Established { .. } => {
                    entry.phase = Phase::Up;
                    entry.signals.phase.notify_waiters();
                }
                Event::Readable => {
                    let held = entry.handles > 0 || state.waiting.contains(&id);
                    entry.signals.readable.notify_waiters();
                    if !held {
                        state.orphan(id, now);
                    }
                }
                other => {
                    if let Some(told) = translate(other) {
                        entry.tell(told);
                    }
                }
            }
        }
    }

    /// An association that a peer began.
    fn welcome(&self, state: &mut State, id: AssociationId) {
        state.entries.insert(id, Entry::new(Phase::Up, 0));
        state.watch(id);
        state.waiting.push_back(id);
        state.listen();
        self.shared.acceptable.notify_one();
    }

    fn close(&mut self, state: &mut State, id: AssociationId, reason: CloseReason) {
        let Some(entry) = state.entries.get_mut(&id) else {
            return;
        };
        entry.phase = Phase::Closed(reason);
        entry.signals.all();
        if entry.handles == 0 && !state.waiting.contains(&id) {
            self.leaving.push(id);
        }
    }

    fn drain_samples(&mut self, state: &mut State) {
        let Some(observer) = &mut state.observer else {
            return;
        };
        for &id in state.entries.keys() {
            if !state
                .endpoint
                .association(id)
                .is_some_and(|association| association.has_samples())
            {
                continue;
            }
            if let Some(association) = state.endpoint.association_mut(id) {
                for sample in association.drain_trace() {
                    observer.sample(id, sample);
                }
            }
        }
    }

    /// Forgets associations that are closed and that nobody holds, once their last packet is gathered.
    fn forget_leaving(&mut self, state: &mut State) {
        let closed_unheld =
            |state: &State, id: &AssociationId| {
                state.entries.get(id).is_some_and(|entry| {
                    entry.handles == 0 && matches!(entry.phase, Phase::Closed(_))
                }) && !state.waiting.contains(id)
            };
        let dropped: Vec<AssociationId> = state.dropped.drain(..).collect();
        for id in dropped {
            if closed_unheld(state, &id) && !self.leaving.contains(&id) {
                self.leaving.push(id);
            }
        }
        let entries = state.entries.len();
        self.leaving.retain(|&id| {
            let gone = state.endpoint.association(id).is_none() || state.endpoint.release(id);
            if gone {
                state.entries.remove(&id);
            }
            !gone
        });
        if entries > 0 && state.entries.is_empty() {
            self.shared.idle.notify_waiters();
        }
    }

    /// Nobody holds the endpoint: what is open has `linger` to close.
    fn hurry(&mut self, state: &mut State, now: Nanos) {
        let deadline = *self.deadline.get_or_insert(now.saturating_add(self.linger));
        if now < deadline {
            return;
        }
        let ids: Vec<AssociationId> = state.entries.keys().copied().collect();
        for id in ids {
            if let Some(association) = state.endpoint.association_mut(id) {
                // Refused only where it is closed already.
                let _ = association.abort(now, bytes::Bytes::from_static(b"endpoint closed"));
            }
        }
        // The ABORTs go out in the next round, which nothing else may bring about.
        self.deadline = Some(now.saturating_add(anabranch_transport::time::MILLISECOND));
    }

    fn publish(&mut self, state: &mut State) {
        let statistics = &mut state.statistics;
        statistics.packets_sent = self.sent.packets;
        statistics.send_calls = self.sent.calls;
        statistics.send_errors = self.sent.errors;
        statistics.receive_calls = self.receive_calls;
        statistics.foreign = self.foreign;
    }

    /// Sets the alarm; whether it rang already.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, timeout: Option<Nanos>) -> bool {
        let Some(timeout) = timeout else {
            self.alarm = None;
            return false;
        };
        // An alarm that rings early does no harm, and to move it at each packet costs.
        if self.alarm.is_none_or(|alarm| timeout < alarm) {
            self.alarm = Some(timeout);
            let at = self.shared.clock.instant(timeout);
            self.sleep.as_mut().reset(at);
        }
        let rang = self.sleep.as_mut().poll(cx).is_ready();
        if rang {
            self.alarm = None;
        }
        rang
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..MOST_ROUNDS {
            // While a socket takes no more, nothing else is done: what arrives waits in the system's bounded buffers.
            if this
                .outbox
                .poll_flush(cx, &this.sockets, &mut this.sent)
                .is_pending()
            {
                return Poll::Pending;
            }
            // Only a socket that had nothing wakes this task when something comes.
            let came = !this.arrivals.is_empty() || this.receive(cx);
            let round = this.run_protocol(cx.waker());
            let flushed = this
                .outbox
                .poll_flush(cx, &this.sockets, &mut this.sent)
                .is_ready();
            if !flushed {
                return Poll::Pending;
            }
            if round.over {
                return Poll::Ready(());
            }
            if round.settled && !came && !this.poll_alarm(cx, round.timeout) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    /// The runtime goes down, or nothing is left to do: whoever waits is told.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stopped = true;
        for entry in state.entries.values_mut() {
            if !matches!(entry.phase, Phase::Closed(_)) {
                entry.phase = Phase::Closed(CloseReason::AbortedHere);
            }
            entry.signals.all();
        }
        self.shared.acceptable.notify_one();
        self.shared.idle.notify_waiters();
    }
}

/// Tells those who wait for room to send, once there is much of it: not at every packet.
fn tell_writers(state: &mut State) {
    let (endpoint, entries) = (&state.endpoint, &mut state.entries);
    let enough = endpoint.config().send_buffer / 2;
    state.writers.retain(|id| {
        let Some(entry) = entries.get_mut(id) else {
            return false;
        };
        let waits = endpoint
            .association(*id)
            .is_some_and(|association| !association.is_closed() && association.buffered() > enough);
        if !waits {
            entry.wants_to_write = false;
            entry.signals.writable.notify_waiters();
        }
        waits
    });
}

/// The event as users see it; `None` for what they learn in another way.
fn translate(event: Event) -> Option<AssociationEvent> {
    Some(match event {
        Event::PathChanged { address, state, .. } => match state {
            PathState::Active => AssociationEvent::PathUp(address),
            PathState::Inactive => AssociationEvent::PathDown(address),
            PathState::PotentiallyFailed => AssociationEvent::PathPotentiallyFailed(address),
            PathState::Unconfirmed => return None,
        },
        Event::PrimaryChanged { address, .. } => AssociationEvent::PrimaryChanged(address),
        Event::Restarted { data_lost } => AssociationEvent::Restarted { data_lost },
        Event::PartialDeliveryAborted { stream, .. } => {
            AssociationEvent::PartialDeliveryAborted { stream }
        }
        Event::PeerError { cause } => AssociationEvent::PeerError { cause },
        Event::SendFailed { messages } => AssociationEvent::SendFailed { messages },
        Event::StreamLimitMet { outbound_streams } => {
            AssociationEvent::StreamLimitMet { outbound_streams }
        }
        Event::PeerShutdown => AssociationEvent::PeerShutdown,
        Event::Established { .. } | Event::Readable | Event::Closed(_) => return None,
    })
}
