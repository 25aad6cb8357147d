//! The driver's part of an endpoint: all work that is done under the lock of the endpoint.

mod output;

use std::net::{IpAddr, SocketAddr};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use anabranch_sctp::{
    AssociationId, CloseReason, DiscardCounts, Icmp, Recipient, TransmitOptions, UdpTransmit,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::checksum;
use bytes::{Bytes, BytesMut};

use crate::config::Carrier;
use crate::endpoint_state::{EndpointShared, EndpointState, Phase};
use crate::io::Io;
use crate::observer::{Direction, ObservedPacket};
use crate::port_reservation::PortReservation;
use crate::receive_buffers::Arrival;
use crate::receive_queue::{Budget, FairReceiveQueue, QueuedPacket};
use crate::socket::Sockets;
use crate::transmit_queue::{GsoBatches, SendCounters, TransmitQueue};

/// Number of packets of a long run that the protocol handles before its output is polled. A run is
/// long if at least `LONG_RUN` more packets of the same receive call follow its first packet. Two,
/// because an acknowledgement is due for at least every second packet (RFC 9260 §6.2), and the
/// sender's window grows with each SACK (§7.2.1). With eight, floods of 16 KiB messages on loopback
/// reached 417 instead of 290 MB/s, but in slow start the sender's window then grows by an eighth
/// per round trip, instead of by half.
const TOGETHER: usize = 2;
const LONG_RUN: usize = 16;

/// If the sockets are not writable for the last packets of an association, its end is reported
/// after this time at the latest.
const FINAL_SEND_TIMEOUT: Nanos = SECOND;

/// An endpoint, with the state that only the driver uses.
#[derive(Debug)]
pub(crate) struct EndpointDriver {
    shared: Arc<EndpointShared>,
    own: DriverLocal,
}

/// State that only the driver uses, without the lock.
#[derive(Debug)]
struct DriverLocal {
    /// Associations that have ended, with the reason. The end is reported after the last packets
    /// were passed to the sockets, because a user that waits for the end may exit the process,
    /// which discards packets that were not sent.
    ended: Vec<(AssociationId, CloseReason)>,
    /// The time of the oldest entry of `ended`.
    since: Nanos,
    /// True if the last run gathered all output of the protocol.
    drained: bool,
    /// True if the sockets have accepted all output that the last run gathered.
    flushed: bool,
    /// Closed associations without handles; each is removed after its last packet was sent.
    leaving: Vec<AssociationId>,
    /// Number of socket errors that the statistics already include.
    failures: u64,
    /// Discard counters at the time of the last log entry.
    told: DiscardCounts,
    /// A clone of the waker of the driver's task; `None` after it was taken.
    waker: Option<Waker>,
    /// Source addresses of unknown sources from which an association has accepted a packet in this
    /// run.
    new_peers: Vec<(AssociationId, SocketAddr)>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOutcome {
    /// True if the protocol has no work before `timeout`.
    pub settled: bool,
    /// True if all output of the protocol was gathered.
    pub drained: bool,
    pub timeout: Option<Nanos>,
    /// True if there are neither handles nor open associations.
    pub over: bool,
}

impl EndpointDriver {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        let own = DriverLocal {
            ended: Vec::new(),
            drained: true,
            flushed: true,
            since: 0,
            leaving: Vec::new(),
            failures: 0,
            told: DiscardCounts::default(),
            waker: None,
            new_peers: Vec::new(),
        };
        Self { shared, own }
    }

    /// Reservation of the SCTP port on the sockets.
    pub(crate) fn reservation(&self) -> &Arc<PortReservation> {
        &self.shared.reservation
    }

    /// T5-shutdown-guard: the maximum duration of a shutdown.
    pub(crate) fn guard(&self) -> Nanos {
        self.shared.lock().endpoint.config().shutdown_guard()
    }

    /// Records that the sockets have accepted everything that was gathered.
    pub(crate) fn flushed(&mut self) {
        self.own.flushed = self.own.drained;
    }

    /// Handles an ICMP message about a packet of this endpoint. The response is sent in the next
    /// run.
    pub(crate) fn handle_icmp(&self, icmp: &Icmp<'_>) {
        let now = self.shared.now();
        self.shared.lock().endpoint.handle_icmp(now, icmp);
    }

    /// Runs the endpoint under its lock: handles packets within `budget` while `mine` accepts the
    /// next one (by local address and packet), then expired timers and other pending work.
    pub(crate) fn run(
        &mut self,
        waker: &Waker,
        receive_queue: &mut FairReceiveQueue,
        budget: &mut Budget,
        mine: impl Fn((IpAddr, &[u8])) -> bool,
        io: &mut Io,
    ) -> RunOutcome {
        let Self { shared, own } = self;
        own.keep_waker(waker);
        let mut guard = shared.lock();
        let state = &mut *guard;
        let now = shared.now();
        let flushed = std::mem::take(&mut own.flushed);
        if !own.ended.is_empty() && (flushed || own.has_waited(now)) {
            own.tell_ends(state);
        }
        own.handle_arrivals(
            (shared, state),
            now,
            (&mut *receive_queue, budget),
            mine,
            io,
        );
        receive_queue.release_block();
        if state.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            state.endpoint.handle_timeout(now);
        }
        let mut settled = drain_transmits(state, now, io);
        own.drained = settled;
        if own.drain_output(shared, state, receive_queue, now) {
            own.drained = drain_transmits(state, now, io);
            own.drain_output(shared, state, receive_queue, now);
        }
        for (id, from) in own.new_peers.drain(..) {
            record_sender(state, receive_queue, id, from);
        }
        if state.endpoint.has_incoming() {
            state.deferred.notify_acceptable();
        }
        drain_samples(state);
        if let Some(resuming) = &mut state.resuming {
            resuming.observe_all(now, &state.endpoint);
        }
        settled &= own.drained && own.ended.is_empty();
        if !(own.leaving.is_empty() && state.dropped.is_empty()) {
            own.forget_leaving(state, receive_queue);
        }
        own.publish(shared, state, io);
        let over = state.handles == 0 && state.entries.is_empty() && settled;
        let timeout = own.next(state);
        // If output remains, the driver runs again anyway and needs no wakeup.
        if own.drained {
            state.park(waker, &mut own.waker, timeout);
        }
        RunOutcome {
            settled,
            drained: own.drained,
            timeout,
            over,
        }
    }

    /// Prepares the endpoint for a pause: the driver waits until the sockets are writable, until it
    /// is woken, or until the returned timeout.
    pub(crate) fn park(&mut self, waker: &Waker) -> Option<Nanos> {
        let Self { shared, own } = self;
        own.keep_waker(waker);
        let mut state = shared.lock();
        let timeout = own.next(&state);
        state.park(waker, &mut own.waker, timeout);
        timeout
    }
}

impl DriverLocal {
    /// Stores a clone of `waker`. Must be called without the lock of the endpoint, because cloning
    /// or dropping a waker may run any code.
    fn keep_waker(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|it| it.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    fn handle_arrivals(
        &mut self,
        (shared, state): (&EndpointShared, &mut EndpointState),
        now: Nanos,
        (receive_queue, budget): (&mut FairReceiveQueue, &mut Budget),
        mine: impl Fn((IpAddr, &[u8])) -> bool,
        io: &mut Io,
    ) {
        let (mut together, mut long) = (0, false);
        while receive_queue.peek().is_some_and(&mine) && !budget.is_spent() {
            let Some(turn) = receive_queue.pop() else {
                return;
            };
            budget.spend(turn.packet.len());
            let QueuedPacket {
                local,
                from,
                ecn,
                packet,
                unknown,
                behind,
            } = turn;
            if let Carrier::Udp { peer_port, .. } = shared.carrier
                && from.port() != peer_port
            {
                state.foreign += 1;
                continue;
            }
            let (path, came) = (Path::new(local, from.ip()), (receive_queue.block(), packet));
            let endpoint = &mut state.endpoint;
            let recipient = endpoint.handle_udp_datagram(now, path, from.port(), ecn, came.clone());
            if let Recipient::Shard(other) = recipient
                && hand_over(shared, other, came.clone(), (local, from, ecn), io)
            {
                // The other shard counts the packet and shows it to its observer.
                continue;
            }
            observe_packet(state, now, came, (local, from, ecn));
            if unknown && let Recipient::Association(id) = recipient {
                self.new_peers.push((id, from));
            }
            // Output that is not gathered here is gathered at the end of the round.
            together += 1;
            long = behind > 0 && (long || behind >= LONG_RUN);
            if long && together < TOGETHER {
                continue;
            }
            together = 0;
            if !drain_transmits(state, now, io) {
                return;
            }
        }
    }

    /// The time of the next timer or deadline.
    fn next(&self, state: &EndpointState) -> Option<Nanos> {
        let timeout = state.endpoint.poll_timeout();
        if self.ended.is_empty() {
            return timeout;
        }
        let patience = self.since.saturating_add(FINAL_SEND_TIMEOUT);
        Some(timeout.map_or(patience, |at| at.min(patience)))
    }

    /// Returns true if ended associations have waited for `FINAL_SEND_TIMEOUT`, so that their end
    /// should be reported.
    fn has_waited(&self, now: Nanos) -> bool {
        now >= self.since.saturating_add(FINAL_SEND_TIMEOUT)
    }

    fn tell_ends(&mut self, state: &mut EndpointState) {
        for (id, reason) in self.ended.drain(..) {
            state.end(id, reason);
            let unheld = state.entries.get(&id).is_some_and(|it| it.handles == 0);
            if unheld && !state.waiting.contains(&id) {
                self.leaving.push(id);
            }
        }
    }

    /// Removes closed associations without handles, after their last packets were gathered.
    fn forget_leaving(&mut self, state: &mut EndpointState, receive_queue: &mut FairReceiveQueue) {
        let closed_unheld =
            |state: &EndpointState, id: &AssociationId| {
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
            if gone && let Some(entry) = state.entries.remove(&id) {
                entry
                    .senders
                    .iter()
                    .for_each(|it| receive_queue.remove_known(it));
                if !entry.receipts.is_empty() {
                    state.deferred.drop_receipts(entry.receipts);
                }
            }
            !gone
        });
        if entries > 0 && state.entries.is_empty() {
            state.deferred.notify_idle();
        }
    }

    fn publish(&mut self, shared: &EndpointShared, state: &mut EndpointState, io: &Io) {
        let statistics = &mut state.statistics;
        io.publish(state.foreign, statistics);
        if io.failures.all() != self.failures {
            self.failures = io.failures.all();
            io.publish_failures(statistics);
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            self.log_discards(shared, state);
        }
    }

    /// Logs the packets that the protocol has dropped since the last call.
    fn log_discards(&mut self, shared: &EndpointShared, state: &EndpointState) {
        let discards = state.endpoint.discards();
        for (reason, count) in discards.iter() {
            let more = count - self.told.of(reason);
            if more > 0 {
                let reason = reason.name();
                tracing::debug!(parent: &shared.span, reason, more, "discarded");
            }
        }
        if *discards != self.told {
            self.told = discards.clone();
        }
    }
}

impl Drop for EndpointDriver {
    /// Called when the driver drops the endpoint, because the runtime has ended or no work is left:
    /// notifies all waiting tasks.
    fn drop(&mut self) {
        let Self { shared, own } = self;
        let mut guard = shared.lock();
        let state: &mut EndpointState = &mut guard;
        own.tell_ends(state);
        state.stopped = true;
        if let Some(mut resuming) = state.resuming.take() {
            resuming.observe_all(Nanos::MAX, &state.endpoint);
        }
        state.endpoint.set_shard(None);
        for entry in state.entries.values_mut() {
            match &entry.phase {
                Phase::Closed(_) => state.deferred.wake_all(&entry.signals),
                _ => entry.end(CloseReason::AbortedHere, &mut state.deferred),
            }
        }
        state.deferred.notify_acceptable();
        state.deferred.notify_idle();
    }
}

/// Counts a received packet, and shows it to the observer.
fn observe_packet(
    state: &mut EndpointState,
    now: Nanos,
    (block, packet): (&Bytes, Range<usize>),
    (local, from, ecn): (IpAddr, SocketAddr, Ecn),
) {
    state.statistics.packets_received += 1;
    if let Some(observer) = &mut state.observer {
        observer.packet(&ObservedPacket {
            at: Duration::from_nanos(now),
            direction: Direction::In,
            local,
            remote: from.ip(),
            udp_port: from.port(),
            ecn,
            packet: &block[packet],
        });
    }
}

/// Puts a packet into the mailbox of the shard that has its association. Returns `false` if that
/// shard is gone; the packet is then lost, and an INIT is retransmitted by its sender.
#[cold]
fn hand_over(
    shared: &EndpointShared,
    to: u32,
    (block, packet): (&Bytes, Range<usize>),
    (local, from, ecn): (IpAddr, SocketAddr, Ecn),
    io: &mut Io,
) -> bool {
    let Some(shard_handle) = &shared.driver_shared.shard_handle else {
        return false;
    };
    let arrival = Arrival {
        local,
        from,
        ecn,
        stride: packet.len(),
        packets: block.slice(packet),
        taken: 0,
    };
    let handed = shard_handle.hand_over(to, arrival).is_ok();
    io.handed |= handed;
    handed
}

/// Gathers output of the protocol into the transmit queue. Returns `false` if the queue was filled
/// before all output was gathered.
fn drain_transmits(state: &mut EndpointState, now: Nanos, io: &mut Io) -> bool {
    let TransmitQueue { bytes, runs } = &mut io.transmit_queue;
    if TransmitQueue::is_full(bytes.len()) {
        return false;
    }
    let mut full = false;
    let observer = &mut state.observer;
    let deferred = TransmitOptions::default().with_deferred_checksums(true);
    state
        .endpoint
        .poll_transmit_batch(now, deferred, bytes, |mut outgoing, bytes| {
            if let Some(observer) = observer {
                let packet = bytes.len() - outgoing.transmit.len..;
                if std::mem::take(&mut outgoing.unsummed) {
                    checksum::fill(&mut bytes[packet.clone()]);
                }
                observer.packet(&ObservedPacket {
                    at: Duration::from_nanos(now),
                    direction: Direction::Out,
                    local: outgoing.transmit.path.local,
                    remote: outgoing.transmit.path.remote,
                    udp_port: outgoing.udp_port,
                    ecn: outgoing.transmit.ecn,
                    packet: &bytes[packet],
                });
            }
            gather(&outgoing, bytes, runs, &io.sockets, &mut io.sent);
            full = TransmitQueue::is_full(bytes.len());
            if full {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    !full
}

/// Records the destination of a packet, which occupies the last bytes of `bytes`.
fn gather(
    outgoing: &UdpTransmit,
    bytes: &mut BytesMut,
    runs: &mut GsoBatches,
    sockets: &Sockets,
    sent: &mut SendCounters,
) {
    if !runs.push(bytes, sockets, outgoing) {
        sent.errors += 1;
    }
}

/// Gathers the output of one association after the caller's task has queued a message. Returns true
/// if the driver need not be woken, because all output is gathered, no event is to be reported, and
/// the driver will run before the next timeout.
pub(crate) fn gather_one(
    state: &mut EndpointState,
    id: AssociationId,
    now: Nanos,
    io: &mut Io,
) -> bool {
    let TransmitQueue { bytes, runs } = &mut io.transmit_queue;
    let (endpoint, sockets, sent) = (&mut state.endpoint, &io.sockets, &mut io.sent);
    let alone = TransmitOptions::default().with_association(id);
    let settled = endpoint.poll_transmit_batch(now, alone, bytes, |outgoing, bytes| {
        gather(&outgoing, bytes, runs, sockets, sent);
        match TransmitQueue::is_full(bytes.len()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    settled && !state.must_wake()
}

fn drain_samples(state: &mut EndpointState) {
    let Some(observer) = &mut state.observer else {
        return;
    };
    for &id in state.entries.keys() {
        let association = state.endpoint.association(id);
        if association.is_none_or(|it| it.trace().is_empty()) {
            continue;
        }
        if let Some(association) = state.endpoint.association_mut(id) {
            for sample in association.trace_mut().drain() {
                observer.sample(id, sample);
            }
        }
    }
}

/// Maximum number of known source addresses per association: a peer has at most eight addresses,
/// each with a UDP port, which may change.
const MAX_KNOWN_SENDERS: usize = 16;

/// Makes the sender a known peer. It stays known until every association that has recorded it has
/// ended. Nothing is recorded for an association without an entry, because it has ended or was
/// never reported to a user.
fn record_sender(
    state: &mut EndpointState,
    receive_queue: &mut FairReceiveQueue,
    id: AssociationId,
    from: SocketAddr,
) {
    let Some(entry) = state.entries.get_mut(&id) else {
        return;
    };
    if entry.senders.contains(&from) {
        return;
    }
    if entry.senders.len() == MAX_KNOWN_SENDERS {
        receive_queue.remove_known(&entry.senders.remove(0));
    }
    entry.senders.push(from);
    receive_queue.add_known(from);
}

/// Called when an association is established. Its primary address is recorded even if another
/// association has recorded it already, because it belongs to this peer.
fn record_primary_sender(
    state: &mut EndpointState,
    receive_queue: &mut FairReceiveQueue,
    id: AssociationId,
) {
    let paths = state.endpoint.association(id).map(|it| it.paths());
    let primary = paths.map(|paths| {
        let primary = paths.get(paths.primary());
        SocketAddr::new(primary.path().remote, primary.udp_port())
    });
    if let Some(primary) = primary {
        record_sender(state, receive_queue, id, primary);
    }
}
